"""The options of a run on a command line, parsed with all problems reported together
(docs/reference/command-line.md#problems-at-once).
"""

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
    """Return the typed options, by name. For an invalid text, add an error to `problems` and omit
    the option.

    The file of the frame is read with the inputs.
    """
    found = {}
    for name, given in flags.options.items():
        option = OPTIONS[name]
        if type(option.type) is not NamedValues:
            found[name] = _READERS.get(type(option.type), _keep_value)(option, given, problems)
    return found


def parse_pairs(texts: list[str], flag: str, shape: str, problems: Problems) -> dict[str, str]:
    """Return the `name=value` strings of a repeatable flag as a mapping. For any other string, add an
    error to `problems`.
    """
    pairs: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name or not value:
            what = f"`{flag}`: found `{text[:60]}`, expected {shape}"
            problems.append(UsageError("usage.value", what))
        elif pairs.setdefault(name, value) != value:
            what = f"`{flag} {name}` is given twice"
            problems.append(UsageError("usage.value", what, hint="keep one of them"))
    return pairs


def _keep_value(option: Option, value: object, problems: Problems) -> object:
    """Return the value unchanged: the parser has already converted it."""
    return value


def _match_text(option: Option, text: str, problems: Problems) -> str | None:
    """Return the text if the option accepts it. Otherwise add an error and return None."""
    if option.type.accepts(text):
        return text
    what = f"`{option.flag}`: found `{text[:60]}`"
    problems.append(UsageError("usage.value", what, expected=option.type.expected))
    return None


def _read_pairs(option: Option, texts: list[str], problems: Problems) -> dict[str, str]:
    """Return the `name=value` strings of an option."""
    return parse_pairs(texts, option.flag, option.metavar, problems)


def _read_numbers(option: Option, texts: list[str], problems: Problems) -> dict[str, int]:
    """Return the `name=number` strings of an option."""
    numbers = {}
    for key, value in _read_pairs(option, texts, problems).items():
        if value.isascii() and value.isdigit() and len(value) < 16:
            numbers[key] = int(value)
        else:
            what = f"`{option.flag} {key}`: found `{value[:60]}`, expected a number"
            problems.append(UsageError("usage.value", what))
    return numbers


def _read_hosts(option: Option, texts: list[str], problems: Problems) -> list[str]:
    """Return the hosts of an option."""
    hosts: list[str] = []
    for text in texts:
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
