"""The files of several operations of a service: those without a problem are written."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from cogcli.app.settings import Settings
from cogcli.app.settings.own_writes import keep_trust
from cogcli.authoring.new_specs.new_files import NewFile, find_write_problems, refused_problem
from cogcli.base.errors import UsageError
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import Problem
from cogcli.base.terminal_text import visible
from cogcli.declarations.spec_types import LONGEST_ID
from cogcli.specs.id_grammar import CAPABILITY_ID

_PREFIX: Final = re.compile(r"[a-z0-9]+(?:[_-][a-z0-9]+)*(?:\.[a-z0-9]+(?:[_-][a-z0-9]+)*){0,3}")
Written = Callable[[str, bytes], None]
"""A function that notes a file as written, or named, by the user."""
Skipped = list[tuple[str, str]]
"""Operations that are not bound, with their reasons."""


class OperationFiles(NamedTuple):
    """An operation with the files made for it."""

    title: str
    capability: str
    binding: str
    files: list[NewFile]
    notes: list[str]


class WrittenOperations(NamedTuple):
    """The operations whose files were written, all written files, and doubts about them."""

    bound: list[OperationFiles]
    files: list[NewFile]
    doubts: list[Problem]


def require_capability_id(id: str, *, is_prefix: bool) -> None:
    """Raise UsageError for a text that is no id of a capability, or cannot begin one."""
    grammar = _PREFIX if is_prefix else CAPABILITY_ID
    if grammar.fullmatch(id) and len(id) <= LONGEST_ID:
        return
    expected = (
        "1 to 4 words joined by dots, each id is to begin so"
        if is_prefix
        else "2 to 5 words joined by dots"
    )
    message = f"`{visible(id[:80])}` is not an id of a capability"
    raise UsageError(
        "usage.value", message, expected=f"{expected}, in small letters, digits, `-` and `_`"
    )


def write_operations(
    settings: Settings,
    shared_files: Sequence[NewFile],
    operations: list[OperationFiles],
    skipped: Skipped,
    *,
    force: bool,
    keep: Callable[[Written], None] = lambda written: None,
) -> WrittenOperations:
    """Write the files of the operations that have no problem, and add the others to `skipped`.

    `keep` notes further files that the user named. Raise UsageError for a problem of a shared file.
    """
    bound = operations
    while bound:
        files = [*shared_files, *(file for each in bound for file in each.files)]
        with keep_trust(settings) as written:
            found = find_write_problems(settings, files, force=force)
            if not found.problems:
                keep(written)
                return WrittenOperations(bound, files, found.doubts)
        bound = _without_blamed(settings, bound, found.problems, skipped)
    return WrittenOperations([], [], [])


def _without_blamed(
    settings: Settings,
    bound: list[OperationFiles],
    problems: Sequence[Problem],
    skipped: Skipped,
) -> list[OperationFiles]:
    """Return the operations without those that have problems."""
    of_file = {
        settings.display_path(f"{settings.project}/{file.path}"): each
        for each in bound
        for file in each.files
    }
    blamed: dict[str, Problem] = {}
    for problem in problems:  # causes are reported first
        if problem.file in of_file:
            blamed.setdefault(of_file[problem.file].capability, problem)
    if not blamed:
        raise refused_problem(problems[0])
    for each in bound:
        if cause := blamed.get(each.capability):
            skipped.append((each.title, f"{cause.message} ({cause.code})"))
    return [each for each in bound if each.capability not in blamed]


def require_bound_operations(bound: list[OperationFiles], skipped: Skipped, *, all: bool) -> None:
    """Raise UsageError with the reasons if nothing was bound."""
    if bound:
        return
    reasons = [f"{title}: {reason}" for title, reason in skipped]
    message = "no operation can be bound" if all else f"operation {reasons[0]}"
    raise UsageError("usage.value", message, hint="\n".join(reasons[:5]) if all else "")


def listed_paths(settings: Settings, files: Sequence[NewFile]) -> list[str]:
    """Return the paths of the files that the command lists."""
    return [
        settings.display_path(f"{settings.project}/{file.path}") for file in files if file.is_listed
    ]
