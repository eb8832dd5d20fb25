"""The files of an episode, at a glance: is each what the manifest names?

The log and what stands beside it are told if they are there or should be; any other file only where it is not what the
manifest names, or gone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from cogcli.core.files import FileRefused
from cogcli.core.strict_json import JsonRefused
from cogcli.episode.blobs import parse
from cogcli.episode.folder import Folder
from cogcli.episode.layout import EVENTS, LEARN, MANIFEST, SUMMARY
from cogcli.episode.log_lines import first_line, parse_line
from cogcli.episode.named_files import NamedFile, NamedFiles, manifest_files, unlike

_LIMIT: Final = 64 * 1024 * 1024
_SHOWN: Final = (EVENTS, LEARN, SUMMARY, MANIFEST)


class FileStatus(NamedTuple):
    """One file: the lines of a log, 0 for others, and whether nothing speaks against it."""

    name: str
    lines: int
    good: bool


def file_statuses(folder: Folder) -> Iterator[FileStatus]:
    """Every file worth telling. What no manifest names has nothing against it: `verify` knows more."""
    known = _known(folder)
    for name in _SHOWN:
        file = known.files.get(name) or NamedFile(name, "", None)
        good = not known.problems if name == MANIFEST else True
        try:
            folder.size(name)  # whether it is there
            yield FileStatus(name, _lines(folder, name), good and not unlike(folder, file))
        except FileRefused as error:
            if error.reason != "missing" or name in known.files:
                yield FileStatus(name, 0, False)
    for name, file in known.files.items():
        if name not in _SHOWN and not _fits(folder, file):
            yield FileStatus(name, 0, False)


def _lines(folder: Folder, name: str) -> int:
    return sum(c.count(b"\n") for c in folder.chunks(name)) if name.endswith(".jsonl") else 0


def _fits(folder: Folder, file: NamedFile) -> bool:
    try:
        return not unlike(folder, file)
    except FileRefused:
        return False


def _known(folder: Folder) -> NamedFiles:
    """The files that the manifest names; none where there is no manifest."""
    try:
        manifest: Any = parse(folder.read(MANIFEST, limit=_LIMIT))
    except FileRefused:
        return NamedFiles({}, [])
    except JsonRefused as error:
        return NamedFiles({}, [error.message])
    known = manifest_files(manifest)
    named = manifest.get("episode_id") if type(manifest) is dict else None
    if named is not None and named != (told := _episode_id(folder)) and told is not None:
        known.problems.append("is the manifest of another episode")
    return known


def _episode_id(folder: Folder) -> Any:
    """The episode that the log is of, None where that cannot be read."""
    try:
        return parse_line(first_line(folder)).get("episode_id")
    except (FileRefused, JsonRefused):
        return None
