"""Collecting problems: a position in a file, and a stable code (docs/reference/spec-files.md#problems)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypedDict, Unpack

from cogcli.core.problems import KeyPath, Problem, Severity
from cogcli.core.terminal_text import shorten_middle
from cogcli.specs.cached_positions import FilePlaces, Within

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cogcli.yaml.reader import Places

_LONGEST: Final = 1000
"""The most columns of a message: many quote a text of the file, which has no limit."""


class Details(TypedDict, total=False):
    """What a problem may have beside its message; `key`: it is at the key of its path, `within`: inside its text."""

    hint: str
    key: bool
    within: Within


class ProblemReport:
    """The problems of one file. Positions are looked up at a problem, not before.

    Paths are below `at`: a report of a file with several specs is about one of them.
    """

    def __init__(self, file: str, places: Places | FilePlaces | None, *, at: KeyPath = ()) -> None:
        self.file = file
        self._at = at
        self.problems: list[Problem] = []
        self._places = places

    def error(self, code: str, path: KeyPath, message: str, **details: Unpack[Details]) -> None:
        """Add an error at `path`."""
        self.add(code, "E", path, message, **details)

    def warn(self, code: str, path: KeyPath, message: str, **details: Unpack[Details]) -> None:
        """Add a warning at `path`."""
        self.add(code, "W", path, message, **details)

    def need(self, code: str, path: KeyPath, message: str, **details: Unpack[Details]) -> None:
        """Add a warning that becomes an error for a run that needs the spec."""
        self.add(code, "R", path, message, **details)

    def add(
        self, code: str, severity: Severity, path: KeyPath, message: str, **details: Unpack[Details]
    ) -> None:
        """Add a problem at `path`: at its value, at its key, or within its text."""
        path = (*self._at, *path)
        key, within = details.get("key", False), details.get("within")
        place = self._position(path, key=key, within=within)
        pointer = "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in path)
        hint = details.get("hint", "")
        self.problems.append(Problem(code, severity, self.file, *place, pointer, _shorten(message), hint))

    def place(
        self, code: str, severity: Severity, place: tuple[int, int], message: str, *, hint: str = ""
    ) -> None:
        """A problem at a known line and column; 0 for the whole file."""
        self.problems.append(Problem(code, severity, self.file, *place, "", _shorten(message), hint))

    def first(self, *paths: KeyPath) -> KeyPath:
        """The first of several paths to a mapping's key that exists in the file, else the last."""
        places = self._places[self.file] if isinstance(self._places, FilePlaces) else self._places
        for path in paths:
            whole = (*self._at, *path)
            # The place of an absent key is that of what would hold it.
            if places and places.key(whole) != places.value(whole[:-1]):
                return path
        return paths[-1]

    def _position(self, path: KeyPath, *, key: bool, within: Within) -> tuple[int, int]:
        if self._places is None:
            return 0, 0
        if isinstance(self._places, FilePlaces):
            return self._places.position(self.file, path, key=key, within=within)
        span = self._places.key(path) if key else self._places.value(path)
        return span.line, span.column_of(*within) if within else span.column

    @property
    def failed(self) -> bool:
        """Whether an error is among the problems."""
        return has_errors(self.problems)


def has_errors(problems: Iterable[Problem]) -> bool:
    """Whether any problem is an error in every command."""
    return any(p.severity == "E" for p in problems)


def _shorten(message: str) -> str:
    return message if len(message) <= _LONGEST // 2 else shorten_middle(message, _LONGEST)
