"""The options of a run on a command line: parsing of their texts, with all problems reported
together (docs/reference/command-line.md#problems-at-once)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from cogcli.app.run_skill import parse_hosts
from cogcli.base.errors import CogcliError, UsageError
from cogcli.cli.run_flags import OptionFlags
from cogcli.declarations.option_types import (
    HostList,
    MatchingText,
    NamedValues,
    NumberPairs,
    OptionType,
    TextPairs,
)
from cogcli.declarations.options import OPTIONS, Option
from cogcli.declarations.value_types import Json

Problems = list[CogcliError]


def read_options(flags: OptionFlags, problems: Problems) -> Json:
    """Return the typed options, by name. A wrong text is added to `problems`, and its option is
    left out.

    The file of the frame is read with the inputs."""
    found = {}
    for name, given in flags.options.items():
        option = OPTIONS[name]
        if type(option.type) is not NamedValues:
            found[name] = _READERS.get(type(option.type), _keep)(option, given, problems)
    return found


def parse_pairs(given: list[str], flag: str, shape: str, problems: Problems) -> dict[str, str]:
    """Return the `name=value` texts of a repeatable flag. An error for any other text is added to
    `problems`."""
    pairs: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name or not value:
            what = f"`{flag}`: found `{text[:60]}`, expected {shape}"
            problems.append(UsageError("usage.value", what))
        elif pairs.setdefault(name, value) != value:
            what = f"`{flag} {name}` is given twice"
            problems.append(UsageError("usage.value", what, hint="keep one of them"))
    return pairs


def _keep(option: Option, given: object, problems: Problems) -> object:
    return given


def _match_text(option: Option, given: str, problems: Problems) -> str | None:
    if option.type.accepts(given):
        return given
    what = f"`{option.flag}`: found `{given[:60]}`"
    problems.append(UsageError("usage.value", what, expected=option.type.expected))
    return None


def _read_pairs(option: Option, given: list[str], problems: Problems) -> dict[str, str]:
    return parse_pairs(given, option.flag, option.metavar, problems)


def _read_numbers(option: Option, given: list[str], problems: Problems) -> dict[str, int]:
    numbers = {}
    for key, value in _read_pairs(option, given, problems).items():
        if value.isascii() and value.isdigit() and len(value) < 16:
            numbers[key] = int(value)
        else:
            what = f"`{option.flag} {key}`: found `{value[:60]}`, expected a number"
            problems.append(UsageError("usage.value", what))
    return numbers


def _read_hosts(option: Option, given: list[str], problems: Problems) -> list[str]:
    hosts: list[str] = []
    for text in given:
        try:
            hosts += parse_hosts([text])
        except UsageError as error:
            problems.append(error)
    return hosts


_READERS: Final[dict[type[OptionType], Callable[[Option, Any, Problems], object]]] = {
    MatchingText: _match_text,
    TextPairs: _read_pairs,
    NumberPairs: _read_numbers,
    HostList: _read_hosts,
}
"""The function that converts a typed text, by option type. The parser already converts words and
numbers."""
