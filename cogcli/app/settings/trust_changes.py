"""The changes of a project since it was accepted, each with its consequences
(docs/reference/service.md#trust).

Each changed file is read in its accepted and in its present form. Two declarations of the same
thing are compared even if they are in different files, so that renaming a file has no consequence
by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import unified_diff
from itertools import islice
from shlex import quote
from typing import Any, Final

from cogcli.app.settings.trust_accept import ProjectSnapshot
from cogcli.app.settings.trust_consequences import (
    MISSING,
    Consequence,
    find_consequences,
    mask_line,
)
from cogcli.app.settings.trust_copies import AcceptedCopies
from cogcli.app.settings.trust_declarations import (
    DeclarationKey,
    find_declarations,
    is_spec,
    read_mapping,
)
from cogcli.base.jsonvalue import Json
from cogcli.base.named_tuple import NamedTuple

_MAX_LINES: Final = 2000
_LARGEST_DIFF: Final = 512 * 1024
_CODE_ALONE: Final = 5
_SPEC_ALONE: Final = 6

Declarations = dict[DeclarationKey, dict[str, Any]]
"""The declarations of each file, by kind, subject and file name."""
Contents = dict[str, tuple[bytes | None, bytes | None]]
"""The accepted and the current content of each changed file, by name; None if the file does not exist in that
state.
"""


class FileChange(NamedTuple):
    """A file or program that was `added`, `changed` or `removed`, its contents, and the
    consequences of the change, most severe first.

    `before` is None also if no copy of the accepted file exists. Then a consequence reports
    this."""

    change: str
    name: str
    before: bytes | None
    after: bytes | None
    consequences: tuple[Consequence, ...]
    copy: str = ""
    """The path of the copy of the accepted file; empty without one."""

    @property
    def severity(self) -> int:
        """The severity of the change: the lowest number among its consequences, where 0 is the most severe. Without
        consequences, code files precede specs.
        """
        if self.consequences:
            return self.consequences[0].severity
        return _SPEC_ALONE if is_spec(self.name) else _CODE_ALONE

    def diff(self) -> str:
        """Return the changes of the text as a unified diff, without secrets. The last line of a truncated diff is the
        command that displays the whole diff.
        """
        before, after = self.before or b"", self.after or b""
        if max(len(before), len(after)) > _LARGEST_DIFF:
            return f"{self.name}: too large to be shown{self._full_diff_hint}\n"
        try:
            old, new = before.decode().splitlines(), after.decode().splitlines()
        except UnicodeDecodeError:
            return f"{self.name}: no text{self._full_diff_hint}\n"
        lines = unified_diff(
            old, new, f"accepted/{self.name}", f"now/{self.name}", n=2, lineterm=""
        )
        shown = [mask_line(line) for line in islice(lines, _MAX_LINES)]
        if left := sum(1 for _ in lines):
            shown.append(f"{self.name}: {left:,} more lines{self._full_diff_hint}")
        return "".join(f"{line}\n" for line in shown)

    @property
    def _full_diff_hint(self) -> str:
        """Return `; all:` and the command that shows the whole change."""
        if self.copy and self.after is not None:
            return f"; all: diff -u {quote(self.copy)} {quote(self.name)}"
        return f"; all: less {quote(self.copy or self.name)}"

    def to_payload(self) -> Json:
        """Return the change as a JSON object, without contents."""
        return {
            "change": self.change,
            "name": self.name,
            "meaning": [each.text for each in self.consequences],
        }


def changes_of(look: ProjectSnapshot, environ: Mapping[str, str]) -> list[FileChange]:
    """Return the changes of a project since it was accepted, the most severe first; empty if it was never accepted."""
    copies, accepted = AcceptedCopies(look.project, environ), look.before or {}

    def content(digest: str) -> bytes | None:
        own = digest.partition(" ")[0]
        found = look.contents.get(own)
        return copies.read(own) if found is None else found

    contents = {
        name: (content(accepted.get(name, "")), content(look.digests.get(name, "")))
        for _, name in look.changes
    }
    meant = _compare_declarations(contents)
    changes = []
    for change, name in look.changes:
        before, after = contents[name]
        about = _file_level_changes(
            name, accepted.get(name, ""), look.digests.get(name, ""), before, after
        )
        meanings = sorted(dict.fromkeys((*about, *meant[name])), key=lambda each: each.severity)
        copy = copies.path_of(accepted[name].partition(" ")[0]) if before is not None else ""
        changes.append(FileChange(change, name, before, after, tuple(meanings), copy))
    return sorted(changes, key=lambda each: each.severity)


def _compare_declarations(contents: Contents) -> dict[str, list[Consequence]]:
    """Return the consequences of the changed declarations in each file."""
    old, new = Declarations(), Declarations()
    for name, (before, after) in contents.items():
        for found, data in ((old, before), (new, after)):
            for key, value in find_declarations(name, data).items():
                found.setdefault(key, {})[name] = value
    meant: dict[str, list[Consequence]] = {name: [] for name in contents}
    for key in sorted(old.keys() | new.keys()):
        for name, one, other in _pair_values(old.get(key, {}), new.get(key, {})):
            meant[name] += find_consequences(key, one, other)
    return meant


def _pair_values(
    before: Mapping[str, Any], after: Mapping[str, Any]
) -> Iterator[tuple[str, Any, Any]]:
    """Yield the values of one declaration to compare, with the file in which the change is
    reported.

    The values in one file are compared. So are the values in a removed file and in a new one."""
    gone = {name: value for name, value in before.items() if name not in after}
    for name, value in after.items():
        if name in before:
            yield name, before[name], value
        else:
            yield from ((name, one, value) for one in gone.values() or (MISSING,))
    if not after.keys() - before.keys():
        yield from ((name, value, MISSING) for name, value in gone.items())


def _file_level_changes(
    name: str, accepted: str, now: str, before: bytes | None, after: bytes | None
) -> Iterator[Consequence]:
    """Yield the consequences of a change that do not follow from declarations.

    They are a new target of a link, a new path of a program, and files whose consequences are
    unknown."""
    link, was_link = now.partition("link to ")[2], accepted.partition("link to ")[2]
    if link != was_link:
        yield Consequence(1, f"leads to {link}" if link else "is not a link any more")
    if name.startswith("program "):
        yield Consequence(1, f"is found at {now}" if now else "is found nowhere")
    if accepted.startswith("sha256:") and before is None:
        yield Consequence(
            0, "no copy of the accepted file is left: what has changed in it is not known"
        )
    if after is not None and is_spec(name) and read_mapping(name, after) is None:
        yield Consequence(4, "cannot be read: what it means is not known")
