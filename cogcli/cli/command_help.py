"""Help as plain text from the parameters that typer parses (docs/reference/command-line.md#flags).

It contains three examples, grouped flags and exit codes. Lines have at most 80 columns; longer
texts wrap in their column.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap

from cogcli import __version__
from cogcli.cli.app import COMMANDS, COMMON, GROUPS, TOPICS, commands_of
from cogcli.cli.options import PANELS, Call
from cogcli.cli.typer_app import load, root, usage
from cogcli.cli.typer_core import TyperOption

WIDTH = 80
_WIDEST_NAME = 26
"""Columns of a name before its text; a longer name gets its own line."""
_LONGEST_EXAMPLE = 52
"""Columns of an example before its text."""

EXIT_WORDS = {
    0: "ok",
    1: "it ran, and the answer is no",
    2: "usage error; nothing ran, nothing was written",
    3: "environment, project or episode unusable",
    4: "vetoed by policy, safety, trust level or budget",
    5: "waits for a person; the episode is saved",
    6: "a service was unreachable, late or overloaded",
    70: "a bug; a report is saved",
    130: "interrupted (Ctrl-C)",
    143: "terminated",
}


def render_text(call: Call) -> str:
    """Return the text for a command line that runs nothing: the version, or help."""
    return f"cogcli {__version__}\n" if call.flags.version else help_text(call.command)


def help_text(name: str) -> str:
    """Return the help of a command or group; without words the home screen."""
    if not name:
        from cogcli.cli.home import HOME

        return HOME
    return _command_help(name) if name in COMMANDS else _group_help(name)


def _command_help(name: str) -> str:
    """Return the help of a command."""
    command = load(name)
    head, summary = f"cogcli {name} {usage(command)}".rstrip(), COMMANDS[name][1]
    lines = [f"{head}: {summary}"] if len(head) < 20 else [head, summary]
    lines = [part for line in lines for part in wrap(line, WIDTH)]
    lines += ["", "Examples", *_example_lines(command.declared.examples_of(name))]
    for panel, flags in group_flags(command.params).items():
        lines += ["", panel, *_flag_lines(flags)]
    lines += ["", "Global options", *_flag_lines(_flags_in(root().params))]
    lines += [
        "",
        "Exit codes",
        *(f"  {code:>3}  {EXIT_WORDS[code]}" for code in command.declared.exits),
    ]
    return "\n".join(lines) + "\n"


def commands_text() -> str:
    """Return the help topic `commands`: every command with its summary."""
    lines = ["Every command, and what it does. cogcli help COMMAND shows its flags."]
    for heading, firsts in GROUPS.items():
        names = [name for first in firsts for name in COMMANDS if name.split()[0] == first]
        lines += ["", heading, *_two_columns((name, COMMANDS[name][1]) for name in names)]
    return "\n".join(lines) + "\n"


def group_flags(params: Sequence[object]) -> dict[str, list[TyperOption]]:
    """Return the flags among the parameters by group, in the order of help."""
    flags = _flags_in(params)
    groups = {panel: [flag for flag in flags if flag.rich_help_panel == panel] for panel in PANELS}
    return {panel: found for panel, found in groups.items() if found}


def _flags_in(params: Sequence[object]) -> list[TyperOption]:
    return [param for param in params if isinstance(param, TyperOption)]


def _group_help(words: str) -> str:
    """Return the help of a group."""
    command_names = commands_of(words)
    rows = [
        (f"cogcli {name} {usage(load(name))}".rstrip(), COMMANDS[name][1]) for name in command_names
    ]
    return "\n".join([f"cogcli {words}", "", *_two_columns(rows, widest=34), ""])


def spelling(flag: TyperOption) -> str:
    """Return the notation of a flag, such as `-q, --quiet` or `--input JSON`."""
    return f"{', '.join(flag.opts)} {flag.metavar or ''}".strip()


def _flag_lines(flags: list[TyperOption]) -> Iterator[str]:
    """Yield the help lines of flags: notation, description, default."""
    return _two_columns((spelling(flag), f"{flag.help}{_default_note(flag)}") for flag in flags)


def _default_note(flag: TyperOption) -> str:
    """Return the note about a flag's default; empty without one."""
    return f" (default {flag.show_default})" if flag.show_default else ""


def _two_columns(rows: Iterable[tuple[str, str]], widest: int = _WIDEST_NAME) -> Iterator[str]:
    """Yield names and descriptions in two columns. A long description wraps in its column."""
    pairs = list(rows)
    size = max((len(name) for name, _ in pairs if len(name) <= widest), default=widest)
    for name, text in pairs:
        parts = wrap(text, WIDTH - size - 4, break_long_words=False, break_on_hyphens=False)
        if len(name) > size:
            yield f"  {name}"
            name = ""
        for part in parts:
            yield f"  {name:<{size}}  {part}"
            name = ""


def _example_lines(examples: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield example commands, each with its purpose after or below it.

    A long command wraps after a backslash, so that it can be pasted.
    """
    pairs = list(examples)
    size = max((len(line) for line, why in pairs if _fits_on_one_line(line, why)), default=0)
    for line, why in pairs:
        if _fits_on_one_line(line, why) and 4 + size + len(why) <= WIDTH:
            yield f"  {line:<{size}}  {why}"
            continue
        for number, part in enumerate(parts := list(_split_command(line))):
            end = " \\" if number < len(parts) - 1 else ""
            yield f"  {'    ' if number else ''}{part}{end}"
        yield from wrap(why, WIDTH, initial_indent="      ", subsequent_indent="      ")


def _fits_on_one_line(line: str, purpose: str) -> bool:
    """Return whether a command and its purpose fit on one line."""
    return len(line) <= _LONGEST_EXAMPLE and 4 + len(line) + len(purpose) <= WIDTH


_BREAK = re.compile(r" (?=--?[a-z]|\| |> )")
"""The places where a command may wrap: before a flag and before a pipe."""


def _split_command(line: str) -> Iterator[str]:
    """Yield the parts of a command, each short enough for the indentation and the backslash."""
    pieces: list[str] = []
    for piece in _BREAK.split(line):
        if pieces and pieces[-1].count("'") % 2 == 1:  # inside quotes
            pieces[-1] += f" {piece}"
        else:
            pieces.append(piece)
    part = pieces[0]
    for piece in pieces[1:]:
        if len(part) + 1 + len(piece) > WIDTH - 8:
            yield part
            part = piece
        else:
            part += f" {piece}"
    yield part


def home_text() -> str:
    """Return the home screen, at most 24 lines. `tooling/generate_cli_docs.py` writes it to
    `cli/home.py`."""
    flags = sorted(root().params, key=lambda flag: flag.name == "help")
    options = "  ".join(f"{flag.opts[0]} {flag.metavar or ''}".rstrip() for flag in flags)
    return "\n".join(
        [
            f"cogcli {__version__}: run declared skills under governance, and see what each run did.",
            "",
            *_two_columns((f"cogcli {words}", what) for words, what in COMMON.items()),
            "",
            "Try      cogcli run text.brief -p text=@README.md",
            *wrap(f"Options  {options}", WIDTH, subsequent_indent=" " * 9, break_on_hyphens=False),
            *wrap(f"Topics   cogcli help {' | '.join(TOPICS)}", WIDTH, subsequent_indent=" " * 9),
            "",
        ]
    )
