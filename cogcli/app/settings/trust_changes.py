"""The changes of a project since it was accepted, each with the new actions that it allows
(docs/reference/service.md#trust).

Each changed file is read in its accepted and its present form. Two declarations of the same thing are
compared, wherever their files are: a renamed file means nothing by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import unified_diff
from itertools import islice
from shlex import quote
from typing import Any, Final, NamedTuple

from cogcli.app.settings.trust_accept import ProjectSnapshot
from cogcli.app.settings.trust_copies import Copies
from cogcli.app.settings.trust_declarations import (
    DeclarationKey,
    find_declarations,
    is_spec,
    read_mapping,
)
from cogcli.app.settings.trust_meaning import MISSING, Meaning, find_meanings, mask_line
from cogcli.base.jsonvalue import Json

_MOST_LINES: Final = 2000
_LARGEST_DIFF: Final = 512 * 1024
_CODE_ALONE: Final = 5
_SPEC_ALONE: Final = 6

Declarations = dict[DeclarationKey, dict[str, Any]]
"""By kind and subject what each file declares, by the name of the file."""
Contents = dict[str, tuple[bytes | None, bytes | None]]
"""By the name of a changed file its accepted and its present content, as far as there is one."""


class FileChange(NamedTuple):
    """A file or program that was `added`, `changed` or `removed`, its contents, and what the change means, the gravest
    first.

    `before` is also None if no copy of the accepted file is left; then `meaning` says so.
    """

    change: str
    name: str
    before: bytes | None
    after: bytes | None
    meaning: tuple[Meaning, ...]
    copy: str = ""
    """The path of the copy of the accepted file; empty without one."""

    @property
    def severity(self) -> int:
        """Return the severity of its gravest meaning. Files without a meaning come last, code
        before specs."""
        if self.meaning:
            return self.meaning[0].severity
        return _SPEC_ALONE if is_spec(self.name) else _CODE_ALONE

    def diff(self) -> str:
        """Return the changed text as a unified diff, with secrets hidden. For hidden parts a line
        shows the command that prints them."""
        before, after = self.before or b"", self.after or b""
        if max(len(before), len(after)) > _LARGEST_DIFF:
            return f"{self.name}: too large to be shown{self._see}\n"
        try:
            old, new = before.decode().splitlines(), after.decode().splitlines()
        except UnicodeDecodeError:
            return f"{self.name}: no text{self._see}\n"
        lines = unified_diff(
            old, new, f"accepted/{self.name}", f"now/{self.name}", n=2, lineterm=""
        )
        shown = [mask_line(line) for line in islice(lines, _MOST_LINES)]
        if left := sum(1 for _ in lines):
            shown.append(f"{self.name}: {left:,} more lines{self._see}")
        return "".join(f"{line}\n" for line in shown)

    @property
    def _see(self) -> str:
        """Return the command that shows all of the change."""
        if self.copy and self.after is not None:
            return f"; all: diff -u {quote(self.copy)} {quote(self.name)}"
        return f"; all: less {quote(self.copy or self.name)}"

    def to_payload(self) -> Json:
        """Return the change as a JSON object, without contents."""
        return {
            "change": self.change,
            "name": self.name,
            "meaning": [each.text for each in self.meaning],
        }


def changes_of(look: ProjectSnapshot, environ: Mapping[str, str]) -> list[FileChange]:
    """Return the changes of a project since it was accepted, each with its meaning, the gravest
    first.

    Empty for the first time."""
    copies, accepted = Copies(look.project, environ), look.before or {}

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
        about = _about_file(name, accepted.get(name, ""), look.digests.get(name, ""), before, after)
        meanings = sorted(dict.fromkeys((*about, *meant[name])), key=lambda each: each.severity)
        copy = copies.path_of(accepted[name].partition(" ")[0]) if before is not None else ""
        changes.append(FileChange(change, name, before, after, tuple(meanings), copy))
    return sorted(changes, key=lambda each: each.severity)


def _compare_declarations(contents: Contents) -> dict[str, list[Meaning]]:
    """Return by file what the changed declarations in it mean."""
    old, new = Declarations(), Declarations()
    for name, (before, after) in contents.items():
        for found, data in ((old, before), (new, after)):
            for key, value in find_declarations(name, data).items():
                found.setdefault(key, {})[name] = value
    meant: dict[str, list[Meaning]] = {name: [] for name in contents}
    for key in sorted(old.keys() | new.keys()):
        for name, one, other in _pairs(old.get(key, {}), new.get(key, {})):
            meant[name] += find_meanings(key, one, other)
    return meant


def _pairs(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Yield the values of one declaration to compare, with the file to name.

    They are those of the same file, and those of a removed file with those of a new one."""
    gone = {name: value for name, value in before.items() if name not in after}
    for name, value in after.items():
        if name in before:
            yield name, before[name], value
        else:
            yield from ((name, one, value) for one in gone.values() or (MISSING,))
    if not after.keys() - before.keys():
        yield from ((name, value, MISSING) for name, value in gone.items())


def _about_file(
    name: str, accepted: str, now: str, before: bytes | None, after: bytes | None
) -> Iterator[Meaning]:
    """Yield the changed target of a link or place of a program, and why the meaning of a change is
    unknown."""
    link, was_link = now.partition("link to ")[2], accepted.partition("link to ")[2]
    if link != was_link:
        yield Meaning(1, f"leads to {link}" if link else "is not a link any more")
    if name.startswith("program "):
        yield Meaning(1, f"is found at {now}" if now else "is found nowhere")
    if accepted.startswith("sha256:") and before is None:
        yield Meaning(
            0, "no copy of the accepted file is left: what has changed in it is not known"
        )
    if after is not None and is_spec(name) and read_mapping(name, after) is None:
        yield Meaning(4, "cannot be read: what it means is not known")
