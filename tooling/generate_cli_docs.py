"""Write docs/cli.md from the table of commands, or with `--check` say whether it is stale."""

from __future__ import annotations

import sys
from pathlib import Path

from cogcli.app.explain import topic
from cogcli.cli.help import EXIT_WORDS
from cogcli.cli.table import COMMANDS, GLOBAL_FLAGS, GROUPS, TOPICS, Command, Flag

FILE = Path(__file__).resolve().parent.parent / "docs" / "cli.md"


def main() -> int:
    """Exit code 0, or 1 where `--check` found the file to differ."""
    text = document()
    if FILE.exists() and FILE.read_text(encoding="utf-8") == text:
        return 0
    if "--check" in sys.argv[1:]:
        print("stale: docs/cli.md (python tooling/generate_cli_docs.py)", file=sys.stderr)
        return 1
    FILE.parent.mkdir(parents=True, exist_ok=True)
    FILE.write_text(text, encoding="utf-8")
    print(FILE)
    return 0


def document() -> str:
    """The whole page."""
    parts = [
        "# Commands",
        "Generated from `cogcli/cli/table.py`; edit that file.",
        "Standard output is the answer, standard error the conversation.",
        "## Global options",
        _flags(list(GLOBAL_FLAGS)),
        *(_command(command) for command in COMMANDS),
        "## Topics",
        *(f"### {name}\n\n```text\n{topic(name).rstrip()}\n```" for name in TOPICS),
    ]
    return "\n\n".join(parts) + "\n"


def _command(command: Command) -> str:
    parts = [f"## {command.name}", f"`cogcli {command.name} {command.arguments}`".replace(" `", "`")]
    parts.append(f"{command.summary[0].upper()}{command.summary[1:]}.")
    parts.append("```sh\n" + "\n".join(f"{line}    # {why}" for line, why in command.examples) + "\n```")
    for group in GROUPS:
        if own := [flag for flag in command.flags if flag.group == group]:
            parts += [f"**{group}**", _flags(own)]
    parts.append("Exit codes: " + "; ".join(f"{code} {EXIT_WORDS[code]}" for code in command.exits) + ".")
    return "\n\n".join(parts)


def _flags(flags: list[Flag]) -> str:
    rows = ["| flag | default | meaning |", "| --- | --- | --- |"]
    for flag in flags:
        spelling = flag.spelling.replace("|", "\\|")
        rows.append(f"| `{spelling}` | {flag.default} | {flag.help} |")
    return "\n".join(rows)


if __name__ == "__main__":
    sys.exit(main())
