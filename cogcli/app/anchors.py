"""Anchors: the heads of all episodes, stored where a program that can write to the runs directory
cannot change them (docs/reference/episode.md#anchors)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

import orjson

from cogcli.base.errors import CogcliError, UsageError
from cogcli.base.files import UnreadableFile, read_regular
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.episode.layout import is_digest, is_episode_id
from cogcli.episode.manifest import read_chain
from cogcli.episode.refusals import open_episode, unreadable

_LIMIT: Final = 256 * 1024 * 1024
_NUMBER: Final = re.compile(r"[0-9]{1,15}")


class Head(NamedTuple):
    """The end of a log: the number of its complete lines, and the hash of the last line."""

    episode_id: str
    events: int
    head: str

    def to_line(self) -> str:
        """Return the line of an anchor file."""
        return f"{self.episode_id} {self.events} {self.head}"


def read_heads(directories: Iterable[Path], warn: Callable[[CogcliError], None]) -> Iterator[Head]:
    """Yield the head of each episode that has an event. `warn` receives the error of each
    unreadable episode."""
    for directory in directories:
        try:
            with open_episode(directory) as folder:
                chain = read_chain(folder, directory.name)
        except UnreadableFile as error:
            warn(unreadable(directory, error.message, file=Path(error.path).name))
            continue
        except CogcliError as error:
            warn(error)
            continue
        if chain["events"]:
            yield Head(directory.name, chain["events"], chain["head"])


def read_anchor(path: str) -> dict[str, Head]:
    """Return the heads in an anchor file, by episode.

    The file is the output of `verify --heads`, plain or with `--json`. Raise UsageError for a file
    that is unreadable, invalid or without a head."""
    try:
        data = read_regular(path, limit=_LIMIT)
    except UnreadableFile as error:
        raise UsageError("usage.value", f"`--anchor`: {path} {error.message}") from error
    rows = _rows_from_json(data) if data.lstrip().startswith(b"{") else _rows_from_lines(data)
    found: dict[str, Head] = {}
    for number, row in enumerate(rows, 1):
        if row is None:
            continue
        head = _parse_head(row)
        if head is None or found.get(head.episode_id, head) != head:
            raise UsageError(
                "usage.value",
                f"`--anchor`: entry {number} of {path} is not a head",
                expected="EPISODE EVENTS sha256:HASH, one line per episode",
                found=" ".join(row)[:120],
                hint="write the file with: cogcli verify --heads > FILE",
            )
        found[head.episode_id] = head
    if not found:
        raise UsageError(
            "usage.value",
            f"`--anchor`: {path} holds no head",
            hint="write the file with: cogcli verify --heads > FILE",
        )
    return found


def _rows_from_lines(data: bytes) -> list[list[str] | None]:
    """Return the words of each line. An empty line or a comment becomes None."""
    lines = data.decode("utf-8", "replace").splitlines()
    return [None if not line.strip() or line.startswith("#") else line.split() for line in lines]


class HeadsDocument(Record):
    """The output of `verify --heads --json`."""

    heads: list[object]


class HeadEntry(Record):
    """A head in the output."""

    episode_id: object = None
    events: object = None
    head: object = None


def _rows_from_json(data: bytes) -> list[list[str] | None]:
    """Return the members of each head in the output of `verify --heads --json`, as words."""
    try:
        document = read_record(HeadsDocument, orjson.loads(data))
    except ValueError:
        return [["no JSON"]]
    heads = (read_record(HeadEntry, entry) for entry in document.heads)
    return [[str(head.episode_id), str(head.events), str(head.head)] for head in heads]


def _parse_head(fields: list[str]) -> Head | None:
    """Return the head that an entry describes; None if the entry is invalid."""
    if len(fields) != 3 or not is_episode_id(fields[0]) or not _NUMBER.fullmatch(fields[1]):
        return None
    return Head(fields[0], int(fields[1]), fields[2]) if is_digest(fields[2]) else None
