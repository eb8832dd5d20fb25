"""The blobs of an episode: files of large values, and the references of a log under rules 1 (`log_lines`).

1. A payload member, and in `attempts[]` a `request` or `reply`, whose JSON exceeds 64 KiB is in the log as
   `{"$blob": "sha256:...", "bytes": n, "media_type": "application/json"}`; the blob is on disk before the event is.
2. Data in such a place that looks like a reference is put into a blob too, so that every reference there is real.
   Elsewhere `$blob` is data.
3. If the line still exceeds its limit, its largest members become blobs as well.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TypeGuard

import orjson

from cogcli.base.files import UnreadableFile
from cogcli.base.strict_json import InvalidJson
from cogcli.base.strict_json import loads as strict_loads
from cogcli.declarations.value_types import Json
from cogcli.episode.folder import SYNCED, Folder, disk_errors
from cogcli.episode.layout import BLOBS, is_digest

SPILL: Final = 64 * 1024
"""Bytes of JSON above which a member becomes a blob."""
MAX_LINE: Final = 1024 * 1024
MAX_BLOB: Final = 256 * 1024 * 1024
MARK: Final = b'"$blob"'
"""The bytes of any line with a key `$blob`."""
RARE: Final = b"$"
"""The byte of that mark which few lines have."""
PLAIN_TYPE: Final = "application/json"
LIST_TYPE: Final = "application/vnd.cogcli.list+json"
"""The media type of a blob with the parts of a list, in order. A part is a list, a reference to a blob with a list, or
a reference to a blob with parts.
"""
_ROOM: Final = MAX_LINE - 64 * 1024
_MEMBERS: Final = ("request", "reply")

Put = Callable[[bytes], str]
Get = Callable[[str], "bytes | None"]


def may_refer(data: bytes) -> bool:
    """Return whether the JSON has the mark of a reference.

    Its first byte begins every text of JSON, so a search for it alone takes 20 times as long as for the rare byte.
    """
    return RARE in data and MARK in data


def is_reference(value: object) -> TypeGuard[Json]:
    """Return whether a payload member is a reference to a blob."""
    return (
        type(value) is dict
        and value.keys() == {"$blob", "bytes", "media_type"}
        and is_digest(value["$blob"])
        and type(value["bytes"]) is int
        and value["media_type"] == PLAIN_TYPE
    )


def is_list_reference(value: object) -> TypeGuard[Json]:
    """Return whether a value is a reference to the parts of a list (rules 3)."""
    return (
        type(value) is dict
        and value.get("media_type") == LIST_TYPE
        and is_reference({**value, "media_type": PLAIN_TYPE})
    )


def spill(payload: Json, put: Put) -> Json:
    """Return the payload for the log. `put` stores its large members and returns their digests."""
    result: Json = {}
    sizes: dict[str, int] = {}
    for key, value in payload.items():
        if key == "attempts" and type(value) is list:
            value = [
                _spill_attempt(attempt, put) if type(attempt) is dict else attempt
                for attempt in value
            ]
        result[key], sizes[key] = _shrink_member(value, put)
    while sum(sizes.values()) > _ROOM:
        largest = max(sizes, key=sizes.__getitem__)
        sizes[largest] = 0
        result[largest] = reference_to(orjson.dumps(result[largest]), put)
    return result


def _spill_attempt(attempt: Json, put: Put) -> Json:
    return {
        key: _shrink_member(value, put)[0] if key in _MEMBERS else value
        for key, value in attempt.items()
    }


def _shrink_member(value: object, put: Put) -> tuple[object, int]:
    """Return the value as the log contains it, and the size of its JSON there. The size is 0 for a reference."""
    text = orjson.dumps(value)
    if len(text) > SPILL or is_reference(value):
        return reference_to(text, put), 0
    return value, len(text)


def reference_to(text: bytes, put: Put, media_type: str = PLAIN_TYPE) -> Json:
    """Store a JSON text with `put`, and return the reference to it."""
    return {"$blob": put(text), "bytes": len(text), "media_type": media_type}


def resolve(payload: Json, get: Get) -> Json:
    """Return the payload with its blobs loaded. A reference to a missing or altered blob is kept."""
    result = {key: _resolve_member(member, get) for key, member in payload.items()}
    attempts = result.get("attempts")
    if type(attempts) is list:
        result["attempts"] = [_resolve_attempt(attempt, get) for attempt in attempts]
    return result


def _resolve_attempt(attempt: object, get: Get) -> object:
    if type(attempt) is not dict:
        return attempt
    return {
        key: _resolve_member(each, get) if key in _MEMBERS else each
        for key, each in attempt.items()
    }


def _resolve_member(member: object, get: Get) -> object:
    if not is_reference(member):
        return member
    data = get(member["$blob"])
    if data is None or len(data) != member["bytes"]:
        return member
    with suppress(InvalidJson):
        return parse(data)
    return member


def parse(data: bytes) -> Any:
    """Parse one JSON text strictly. Text that cogcli wrote is parsed by a fast parser, with the same result. Raise
    InvalidJson.
    """
    try:
        value = orjson.loads(data)
        if data[1:2] == b"\n":  # a document, whose lines are indented
            is_ours = orjson.dumps(value, option=orjson.OPT_INDENT_2) == data.removesuffix(b"\n")
        else:
            is_ours = orjson.dumps(value) == data
        if is_ours:
            return value
    except (ValueError, TypeError):
        pass
    return strict_loads(data, max_bytes=MAX_BLOB, max_nodes=10_000_000)


class BlobFolder:
    """The blobs of one episode, named by their content."""

    def __init__(self, folder: Folder) -> None:
        self._episode = folder
        self._folder: Folder | None = None
        self._written: set[str] = set()
        self._unsynced: list[str] = []
        self.stored = 0
        """The number of written bytes."""

    def put(self, data: bytes) -> str:
        """Store bytes and return `sha256:...`. They survive the process; after `sync` also a power loss.

        Raise UnusableEnvironment `env.disk`.
        """
        name = _sha256(data)
        if name not in self._written:
            self._open_folder().replace(name, data, sync=False)
            self._written.add(name)
            self.stored += len(data)
            self._unsynced.append(name)
        return f"sha256:{name}"

    def sync(self) -> None:
        """Sync all blobs stored so far to disk, then the directory. Raise OSError."""
        folder = self._folder
        if folder is None or not self._unsynced:
            return
        for name in self._unsynced:
            fd = folder.descriptor(name, SYNCED)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
        folder.sync()
        self._unsynced.clear()

    def _open_folder(self) -> Folder:
        if self._folder is None:
            with disk_errors(self._episode.place_of(BLOBS)):
                try:
                    self._folder = self._episode.make(BLOBS)
                except FileExistsError:
                    self._folder = self._episode.sub(BLOBS)
        return self._folder

    def get(self, digest: str) -> bytes | None:
        """Return the bytes of a blob, or None if it is missing, not a regular file, or does not match its name."""
        if not is_digest(digest):
            return None
        try:
            if self._folder is None:
                self._folder = self._episode.sub(BLOBS)
            data = self._folder.read(digest[7:], limit=MAX_BLOB)
        except (OSError, UnreadableFile):
            return None
        return data if _sha256(data) == digest[7:] else None

    def close(self) -> None:
        """Close the directory; may be called twice."""
        if self._folder is not None:
            self._folder.close()
            self._folder = None


def _sha256(data: bytes) -> str:
    # It loads OpenSSL, which is not needed by commands that read a few small episodes.
    from hashlib import sha256

    return sha256(data).hexdigest()
