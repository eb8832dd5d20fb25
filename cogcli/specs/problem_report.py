"""Collects problems: each has a position in a file and a stable code (docs/reference/spec-files.md#problems)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Protocol, TypedDict, Unpack

from cogcli.base.json_pointer import pointer_of
from cogcli.base.jsonvalue import Json
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import KeyPath, Problem, Severity
from cogcli.base.terminal_text import shorten_middle
from cogcli.specs.cached_positions import Within

_LONGEST: Final = 1000
"""The maximum length of a message in characters. Many messages quote a text of the file, which has no limit."""


class Positions(Protocol):
    """The positions in one file."""

    def position(self, path: KeyPath, *, key: bool, within: Within = None) -> tuple[int, int]:
        """Return the line and column of the value or key at a path, or of an offset in the value's text."""
        ...

    def declares(self, path: KeyPath) -> bool:
        """Return whether the file contains the last key of a path."""
        ...


class Details(TypedDict, total=False):
    """Optional details of a problem.

    With `key` its position is the key of its path, with `within` an offset in its text.
    """

    hint: str
    key: bool
    within: Within


class TextFault(NamedTuple):
    """A fault in a string whose position in a file is not known yet."""

    code: str
    message: str
    hint: str = ""
    severity: Severity = "E"


class CheckedFile(NamedTuple):
    """The result of checking a file: its cleaned mapping, or None if it has errors, and all problems of its content."""

    raw: Json | None
    problems: list[Problem]


class ProblemReport:
    """The problems of one file. Positions are computed only for reported problems.

    Paths are relative to `at`, so that a report can be about one of several specs in a file. Each message begins with
    `subject`.
    """

    def __init__(
        self, file: str, places: Positions | None, *, at: KeyPath = (), subject: str = ""
    ) -> None:
        self.file = file
        self.subject = subject
        self.problems: list[Problem] = []
        self._at = at
        self._places = places

    def part(self, subject: str, *path: str | int) -> ProblemReport:
        """Return a report about the part at `path`. It adds to the same list of problems."""
        part = ProblemReport(self.file, self._places, at=(*self._at, *path), subject=subject)
        part.problems = self.problems
        return part

    def inner(self, name: str, *path: str | int) -> ProblemReport:
        """Return a report about a part, as `part` does. Its subject is `name` within this report's subject."""
        return self.part(f"{self.subject}: {name}", *path)

    def error(self, code: str, path: KeyPath, message: str, **details: Unpack[Details]) -> None:
        """Add an error at `path`."""
        self.add(code, "E", path, message, **details)

    def warn(self, code: str, path: KeyPath, message: str, **details: Unpack[Details]) -> None:
        """Add a warning at `path`."""
        self.add(code, "W", path, message, **details)

    def add_for_run(
        self, code: str, path: KeyPath, message: str, **details: Unpack[Details]
    ) -> None:
        """Add a warning that is an error for a run of the spec."""
        self.add(code, "R", path, message, **details)

    def fault(
        self, fault: TextFault, path: KeyPath, *, key: bool = False, within: Within = None
    ) -> None:
        """Add a problem for the fault of a string."""
        self.add(
            fault.code, fault.severity, path, fault.message, hint=fault.hint, key=key, within=within
        )

    def add(
        self,
        code: str,
        severity: Severity,
        path: KeyPath,
        message: str,
        *,
        hint: str = "",
        key: bool = False,
        within: Within = None,
    ) -> None:
        """Add a problem at `path`. Its position is the value, the key, or an offset in the text."""
        path = (*self._at, *path)
        place = (0, 0)
        if self._places is not None:
            place = self._places.position(path, key=key, within=within)
        message = _shorten_message(f"{self.subject}: {message}" if self.subject else message)
        self.problems.append(
            Problem(code, severity, self.file, *place, pointer_of(path), message, hint)
        )

    def add_at(
        self, code: str, severity: Severity, place: tuple[int, int], message: str, *, hint: str = ""
    ) -> None:
        """Add a problem at a known line and column. Both are 0 for a problem that concerns the whole file."""
        self.problems.append(
            Problem(code, severity, self.file, *place, "", _shorten_message(message), hint)
        )

    def first(self, *paths: KeyPath) -> KeyPath:
        """Return the first of these paths whose key exists in the file, or the last path if none exists."""
        if self._places is not None:
            for path in paths:
                if self._places.declares((*self._at, *path)):
                    return path
        return paths[-1]


def has_errors(problems: Iterable[Problem]) -> bool:
    """Return whether any problem is an error in every command."""
    return any(p.severity == "E" for p in problems)


def _shorten_message(message: str) -> str:
    return message if len(message) <= _LONGEST // 2 else shorten_middle(message, _LONGEST)
