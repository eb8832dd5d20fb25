"""The `next` commands of an error (docs/reference/command-line.md#errors): the typed command corrected, or where to
look."""

from __future__ import annotations

import re

from cogcli.core.errors import CogcliError

_LOOK = {
    "skill.not-found": "cogcli skills ls",
    "input.file": "cogcli help inputs",
    "input.json": "cogcli help inputs",
    "input.encoding": "cogcli help inputs",
    "input.empty": "cogcli help inputs",
    "usage.flag": "cogcli {command} --help",
    "usage.value": "cogcli {command} --help",
    "env.runs-dir": "cogcli doctor",
    "config.key": "cogcli config show --origin",
    "path.absent": "",
}
"""By code; every other error has its page. An absent path has said all there is."""
_MEANT = re.compile(r"did you mean `([^`]+)`")
_TYPED = re.compile(r"`([^`]+)`")


def next_steps(error: CogcliError, command: str, argv: list[str], again: str = "") -> list[str]:
    """The corrected command, else the commands that the error names, else a command that shows more.

    `again` holds the flags for the same episodes and specs.
    """
    fixed = _corrected(error, argv)
    if not fixed and not error.next:
        look = _LOOK.get(error.code, f"cogcli explain {error.code}")
        return [redirect_command(" ".join(look.format(command=command).split()), again)] if look else []
    return [*([fixed] if fixed else []), *(redirect_command(text, again) for text in error.next)]


def redirect_command(command: str, again: str) -> str:
    """The command with the flags `again` added, where it reads episodes or specs."""
    tool, _, rest = command.partition(" ")
    if (
        tool != "cogcli"
        or rest.startswith(("help", "explain"))
        or rest.endswith("--help")
        or again in command
    ):
        return command
    return f"{command}{again}"


def _corrected(error: CogcliError, argv: list[str]) -> str:
    """The typed command with the wrong word replaced; empty where that is ambiguous or a secret may be in it."""
    meant, typed = _MEANT.match(error.hint), _TYPED.findall(error.message)
    if meant is None or not typed:
        return ""
    places = [n for n, word in enumerate(argv) if typed[-1] in _parts(word)]
    if len(places) != 1 or _holds_secret(argv):
        return ""
    (place,) = places
    parts = [meant[1] if part == typed[-1] else part for part in _parts(argv[place])]
    return _pasteable([*argv[:place], "=".join(parts), *argv[place + 1 :]])


def _parts(word: str) -> list[str]:
    """A word, or the two sides of its equals sign."""
    return word.split("=", 1)


def _pasteable(argv: list[str]) -> str:
    from shlex import join

    from cogcli.cli.typer_app import parse

    try:
        parse(argv)
    except CogcliError:
        return ""
    return join(["cogcli", *argv])


def _holds_secret(argv: list[str]) -> bool:
    from cogcli.core.redact import names_secret

    return any(names_secret(word.partition("=")[0].rstrip(":")) for word in argv if "=" in word)
