"""Write docs/cli.md and cogcli/cli/home.py from the commands, or with `--check` say which of them is stale."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from cogcli import __version__
from cogcli.app.explain import read_topic
from cogcli.cli.app import COMMANDS, TOPICS
from cogcli.cli.command_help import EXIT_WORDS, group_flags, home_text, spelling
from cogcli.cli.typer_app import load, root, usage

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    """Exit code 0, or 1 where `--check` found a file to differ."""
    stale = 0
    for name, text in (("docs/cli.md", document()), ("cogcli/cli/home.py", home_module())):
        file = ROOT / name
        if file.exists() and file.read_text(encoding="utf-8") == text:
            continue
        if "--check" in sys.argv[1:]:
            print(f"stale: {name} (python tooling/generate_cli_docs.py)", file=sys.stderr)
            stale = 1
        else:
            file.write_text(text, encoding="utf-8")
            print(file)
    return stale


def home_module() -> str:
    """The module with the home screen: a bare `cogcli` and `cogcli --help` print it without importing typer."""
    text = home_text().replace(__version__, "{__version__}", 1)
    return (
        f'"""The home screen, generated from the commands by `tooling/generate_cli_docs.py`."""\n\n'
        f"from cogcli import __version__\n\n"
        f'HOME = f"""\\\n{text}"""\n'
    )


def document() -> str:
    """The whole page."""
    parts = [
        "# Commands",
        "Generated from the commands (`cogcli/cli/app.py`, `cogcli/cli/commands/`); edit those.",
        "Standard output is the answer, standard error the conversation.",
        "## Global options",
        _flags(root().params),
        *map(_command, COMMANDS),
        "## Topics",
        *(
            f"### {name}\n\n```text\n{read_topic(name).rstrip()}\n```"
            for name in TOPICS
            if name != "commands"
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _command(words: str) -> str:
    command, summary = load(words), COMMANDS[words][1]
    examples = command.declared.examples_of(words)
    parts = [f"## {words}", f"`{f'cogcli {words} {usage(command)}'.rstrip()}`"]
    parts.append(f"{summary[0].upper()}{summary[1:]}.")
    parts.append("```sh\n" + "\n".join(f"{line}    # {why}" for line, why in examples) + "\n```")
    for panel, flags in group_flags(command.params).items():
        parts += [f"**{panel}**", _flags(flags)]
    exits = "; ".join(f"{code} {EXIT_WORDS[code]}" for code in command.declared.exits)
    return "\n\n".join([*parts, f"Exit codes: {exits}."])


def _flags(flags: list[Any]) -> str:
    rows = ["| flag | default | meaning |", "| --- | --- | --- |"]
    for flag in flags:
        typed = spelling(flag).replace("|", "\\|")
        rows.append(f"| `{typed}` | {flag.show_default or ''} | {flag.help} |")
    return "\n".join(rows)


if __name__ == "__main__":
    sys.exit(main())
