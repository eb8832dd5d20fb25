"""Help as plain text out of the table (docs/reference/command-line.md#flags): three examples, grouped flags,
exit codes."""

from __future__ import annotations

from cogcli.cli.table import BY_NAME, GLOBAL_FLAGS, GROUPS, VERBS, Command, Flag

EXIT_WORDS = {
    0: "ok",
    1: "the work ran and the answer is no",
    2: "asked wrongly; nothing ran, nothing was written",
    3: "machine, project or episode not fit",
    4: "vetoed by policy, safety, trust level or budget",
    5: "waits for a human; the episode is saved",
    6: "a service was unreachable, late or overloaded",
    70: "a bug; a report is saved",
    130: "interrupted (Ctrl-C)",
    143: "terminated",
}


def command_help(command: Command) -> str:
    """The help of one command."""
    usage = f"cogcli {command.name} {command.arguments}".rstrip()
    lines = [
        f"{usage}: {command.summary}" if len(usage) < 20 else f"{usage}\n{command.summary}",
        "",
        "Examples",
    ]
    width = min(60, max(len(line) for line, _ in command.examples))
    lines += [f"  {line:<{width}}  {why}" for line, why in command.examples]
    for group in GROUPS:
        flags = [flag for flag in command.flags if flag.group == group]
        lines += ["", group, *_rows(flags)] if flags else []
    lines += ["", "Global options", *_rows(list(GLOBAL_FLAGS))]
    lines += ["", "Exit codes", *(f"  {code:>3}  {EXIT_WORDS[code]}" for code in command.exits)]
    return "\n".join(lines) + "\n"


def group_help(group: str) -> str:
    """The verbs of a bare group."""
    commands = [BY_NAME[f"{group} {verb}"] for verb in VERBS[group]]
    uses = [f"cogcli {c.name} {c.arguments}".rstrip() for c in commands]
    width = max(map(len, uses))
    rows = [f"  {use:<{width}}  {c.summary}" for use, c in zip(uses, commands, strict=True)]
    return "\n".join([f"cogcli {group}", "", *rows, ""])


def _rows(flags: list[Flag]) -> list[str]:
    width = max(len(flag.spelling) for flag in flags)
    return [_row(flag, width) for flag in flags]


def _row(flag: Flag, width: int) -> str:
    default = f" (default {flag.default})" if flag.default else ""
    return f"  {flag.spelling:<{width}}  {flag.help}{default}"
