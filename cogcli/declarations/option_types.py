"""The types of options and settings: which values are valid, how text is parsed, and how both are
described.

A type is created for each option when its module is imported, so these are plain classes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from cogcli.declarations.value_types import Json

YEAR: Final = 31_536_000
"""Seconds."""
LARGEST_WHOLE: Final = 2**53 - 1
"""The largest whole number that every reader of JSON represents exactly."""
_LONGEST_NUMBER: Final = 40
_LONGEST_LINE: Final = 500
_BOOLEANS: Final = {"1": True, "true": True, "0": False, "false": False}


class OptionType:
    """The base of the types of option values. A type defines the accepted texts, which `expected` describes in an
    error message. The other methods default to those of text.
    """

    expected: str = ""
    many: bool = False
    """Whether the flag of such an option may be repeated, once for each part of the value."""
    in_environment: bool = True
    """Whether an environment variable may contain a setting of this type."""
    words: tuple[str, ...] = ()
    """The only possible texts; empty if other texts are valid too."""
    is_read_at_once: bool = False
    """Whether the text of a flag is read alone. Other texts are read together with the inputs, so that all problems
    are reported at once.
    """
    is_switch: bool = False
    """Whether the flag of such an option has no text."""
    is_joined: bool = False
    """Whether the values of all settings files are joined."""
    may_hide: bool = False
    """Whether a value of another type may be a secret, so that messages must not show it."""

    def accepts(self, value: object) -> bool:
        """Return whether a value from Python, JSON or TOML has this type."""
        raise NotImplementedError

    def parse(self, text: str) -> Any:
        """Return the value in the text of a flag or an environment variable; None if the text is
        invalid.
        """
        return text if self.accepts(text) else None

    def normalize(self, value: Any) -> Any:
        """Return the canonical form of a valid value."""
        return value

    def recorded_form(self, value: Any) -> object:
        """Return a value in the form of the log. Equal values have the same form."""
        return value

    def json_schema(self) -> Json:
        """Return the JSON Schema of a value in a configuration file."""
        return {"type": "string"}


class AnyText(OptionType):
    """A text that can be encoded as UTF-8."""

    def __init__(self, expected: str = "a text") -> None:
        self.expected = expected

    def accepts(self, value: object) -> bool:
        return is_utf8(value)


class MatchingText(OptionType):
    """A text that completely matches a pattern."""

    def __init__(self, pattern: str, expected: str) -> None:
        self.pattern = pattern
        self.expected = expected

    def accepts(self, value: object) -> bool:
        return isinstance(value, str) and re.fullmatch(self.pattern, value) is not None


class EnumOption(OptionType):
    """An option whose value is one of several strings."""

    is_read_at_once = True

    def __init__(self, *words: str) -> None:
        self.words = words
        self.expected = f"one of {', '.join(words)}"

    def accepts(self, value: object) -> bool:
        return isinstance(value, str) and value in self.words

    def json_schema(self) -> Json:
        return {"type": "string", "enum": list(self.words)}


class BooleanOption(OptionType):
    """True or false."""

    expected = "true or false"
    is_switch = True

    def accepts(self, value: object) -> bool:
        return isinstance(value, bool)

    def parse(self, text: str) -> bool | None:
        return _BOOLEANS.get(text.lower())

    def json_schema(self) -> Json:
        return {"type": "boolean"}


class IntegerOption(OptionType):
    """A whole number from `minimum` to `maximum`."""

    is_read_at_once = True

    def __init__(self, minimum: int = 0, maximum: int = LARGEST_WHOLE) -> None:
        self.minimum = minimum
        self.maximum = maximum
        self.expected = f"a whole number from {minimum:,} to {maximum:,}"

    def accepts(self, value: object) -> bool:
        if isinstance(value, bool) or not isinstance(value, int):
            return False
        return self.minimum <= value <= self.maximum

    def parse(self, text: str) -> int | None:
        value = _parse_plain_number(text, int)
        return int(value) if value is not None and self.accepts(value) else None

    def json_schema(self) -> Json:
        return {"type": "integer", "minimum": self.minimum, "maximum": self.maximum}


class PositiveNumber(OptionType):
    """A number above 0, such as seconds, and at most `maximum`."""

    is_read_at_once = True

    def __init__(self, maximum: int = YEAR) -> None:
        self.maximum = maximum
        self.expected = f"a number above 0 to {maximum:,}"

    def accepts(self, value: object) -> bool:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        return 0 < value <= self.maximum

    def parse(self, text: str) -> float | None:
        value = _parse_plain_number(text, float)
        return value if self.accepts(value) else None

    def normalize(self, value: Any) -> float:
        return float(value)

    def json_schema(self) -> Json:
        return {"type": "number", "exclusiveMinimum": 0, "maximum": self.maximum}


class Price(PositiveNumber):
    """Dollars per million tokens, from 0 to 1,000,000."""

    def __init__(self) -> None:
        super().__init__(1_000_000)
        self.expected = f"a number from 0 to {self.maximum:,}"

    def accepts(self, value: object) -> bool:
        return super().accepts(value) or (value == 0 and not isinstance(value, bool))

    def json_schema(self) -> Json:
        return {"type": "number", "minimum": 0, "maximum": self.maximum}


class TextList(OptionType):
    """A list of texts."""

    many = True
    in_environment = False

    def __init__(self, expected: str) -> None:
        self.expected = expected

    def accepts(self, value: object) -> bool:
        if isinstance(value, str | bytes) or not isinstance(value, Sequence):
            return False
        return all(map(is_utf8, value))

    def normalize(self, value: Any) -> list[str]:
        return list(value)

    def json_schema(self) -> Json:
        return {"type": "array", "items": {"type": "string", "minLength": 1}}


class TextSet(TextList):
    """A list of texts whose order and duplicates do not matter."""

    def recorded_form(self, value: Any) -> list[str]:
        return sorted(set(value))


class IdList(TextList):
    """A list of single-line texts, as JSON and TOML represent it."""

    def __init__(self) -> None:
        super().__init__("a list of ids")

    def accepts(self, value: object) -> bool:
        return isinstance(value, list) and all(map(is_line, value))


class HostList(TextSet):
    """A list of public hosts."""

    def __init__(self) -> None:
        super().__init__("a list of host names")


class NamedValues(OptionType):
    """A mapping of names to values of any kind. Subclasses also limit the values."""

    def __init__(self, expected: str) -> None:
        self.expected = expected

    def accepts(self, value: object) -> bool:
        if not isinstance(value, Mapping):
            return False
        return all(map(is_utf8, value)) and all(map(self._accepts_value, value.values()))

    def _accepts_value(self, value: object) -> bool:
        return True

    def normalize(self, value: Any) -> Json:
        return dict(value)


class TextPairs(NamedValues):
    """A mapping of names to texts."""

    many = True

    def _accepts_value(self, value: object) -> bool:
        return is_utf8(value)


class NumberPairs(NamedValues):
    """A mapping of names to whole numbers."""

    many = True
    _number = IntegerOption()

    def _accepts_value(self, value: object) -> bool:
        return self._number.accepts(value)


def is_utf8(value: object) -> bool:
    """Return whether a value is a text that can be encoded as UTF-8."""
    return isinstance(value, str) and value.encode(errors="replace").decode() == value


def is_line(value: object) -> bool:
    """Return whether a value is a nonempty text of one line."""
    return (
        isinstance(value, str)
        and bool(value)
        and value.isprintable()
        and len(value) <= _LONGEST_LINE
    )


def _parse_plain_number(text: str, read: Callable[[str], float]) -> float | None:
    """Return the number written in plain digits in a text. None for the other forms that Python accepts."""
    if not text.isascii() or "_" in text or len(text) > _LONGEST_NUMBER:
        return None
    try:
        return read(text)
    except ValueError:
        return None
