"""Help as plain text from the parameters that typer parses (docs/reference/command-line.md#flags): three examples,
grouped flags, exit codes."""

from __future__ import annotations

from typing import Any

from cogcli import __version__
from cogcli.cli.app import COMMANDS, ROWS, TOPICS, commands_of
from cogcli.cli.options import PANELS, Call
from cogcli.cli.typer_app import load, root, usage

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


def text_of(call: Call) -> str:
    """The text that a call without an action asks for: the version, or help."""
    return f"cogcli {__version__}\n" if call.flags.version else help_text(call.command)


def help_text(words: str) -> str:
    """The help of a command or group; the home screen without words."""
    if not words:
        from cogcli.cli.home import HOME

        return HOME
    return _command(words) if words in COMMANDS else _group(words)


def _command(words: str) -> str:
    command = load(words)
    head, summary = f"cogcli {words} {usage(command)}".rstrip(), COMMANDS[words][1]
    examples = command.declared.examples_of(words)
    width = min(60, max(len(line) for line, _ in examples))
    lines = [f"{head}: {summary}" if len(head) < 20 else f"{head}\n{summary}", "", "Examples"]
    lines += [f"  {line:<{width}}  {why}" for line, why in examples]
    for panel, flags in grouped(command.params).items():
        lines += ["", panel, *_rows(flags)]
    lines += ["", "Global options", *_rows(root().params)]
    lines += ["", "Exit codes", *(f"  {code:>3}  {EXIT_WORDS[code]}" for code in command.declared.exits)]
    return "\n".join(lines) + "\n"


def grouped(params: list[Any]) -> dict[str, list[Any]]:
    """The flags among the parameters by their groups, in the order of help."""
    flags = [param for param in params if param.param_type_name == "option"]
    groups = {panel: [flag for flag in flags if flag.rich_help_panel == panel] for panel in PANELS}
    return {panel: found for panel, found in groups.items() if found}


def _group(words: str) -> str:
    names = commands_of(words)
    uses = [f"cogcli {name} {usage(load(name))}".rstrip() for name in names]
    width = max(map(len, uses))
    rows = [f"  {use:<{width}}  {COMMANDS[name][1]}" for use, name in zip(uses, names, strict=True)]
    return "\n".join([f"cogcli {words}", "", *rows, ""])


def spelling(flag: Any) -> str:
    """How a flag is typed: `-q, --quiet`, `--input JSON`."""
    return f"{', '.join(flag.opts)} {flag.metavar or ''}".strip()


def _rows(flags: list[Any]) -> list[str]:
    width = max(len(spelling(flag)) for flag in flags)
    return [f"  {spelling(flag):<{width}}  {flag.help}{_default(flag)}" for flag in flags]


def _default(flag: Any) -> str:
    return f" (default {flag.show_default})" if flag.show_default else ""


def home_text() -> str:
    """The home screen, at most 24 lines; `tooling/generate_cli_docs.py` writes it to `cli/home.py`."""
    flags = sorted(root().params, key=lambda flag: flag.name == "help")
    first, rest = [f"{flag.opts[0]} {flag.metavar or ''}".rstrip() for flag in flags[:7]], flags[7:]
    return "\n".join(
        [
            f"cogcli {__version__}: run declared skills under governance, and see what each run did.",
            "",
            "  cogcli skills ls                              what can I run?",
            "  cogcli run text.summarize -p text=@notes.md   run one",
            "  cogcli trace @last                            what happened?",
            "",
            *(f"{head:<8} {'  '.join(names):<31}  {what}" for head, names, what in ROWS),
            f"{'Options':<8} {'  '.join(first)}",
            f"{'':<8} {'  '.join(flag.opts[0] for flag in rest)}",
            f"{'Topics':<8} cogcli help {' | '.join(TOPICS)}",
            "",
        ]
    )
