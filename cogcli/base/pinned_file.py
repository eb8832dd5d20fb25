"""Files of a run, pinned by their size and SHA-256 when the run begins
(docs/reference/spec-files.md#file-inputs)."""

from __future__ import annotations

import hashlib

from cogcli.base.files import UnreadableFile, open_regular
from cogcli.base.jsonvalue import Json
from cogcli.base.named_tuple import NamedTuple

MAX_FILE = 1 << 30
"""The most bytes of a pinned file: 1 GiB."""
_CHUNK = 1 << 20


class PinnedFile(NamedTuple):
    """A file with its content at the beginning of the run. `path` is absolute, with links followed. `name` is the file
    name sent to a service.
    """

    path: str
    name: str
    size: int
    sha256: str

    def to_payload(self) -> Json:
        """Return the value of an input of the type `file`."""
        return {"path": self.path, "name": self.name, "bytes": self.size, "sha256": self.sha256}


def pin_file(path: str, name: str) -> PinnedFile:
    """Return the pinned file at a path, with the name that it has for a service. A link at the path
    is not followed. Raise UnreadableFile."""
    size, digest = 0, hashlib.sha256()
    with open_regular(path, limit=MAX_FILE) as file:
        while chunk := file.read(_CHUNK):
            size += len(chunk)
            if size > MAX_FILE:
                raise UnreadableFile(path, "too-large", f"has more than {MAX_FILE:,} bytes")
            digest.update(chunk)
    return PinnedFile(path, name, size, digest.hexdigest())


def read_pinned_file(value: object) -> PinnedFile | None:
    """Return the pinned file that a value describes; None for any other value.

    Data may have the same form. Only a file that the run pinned itself is ever opened."""
    match value:
        case {
            "path": str(path),
            "name": str(name),
            "bytes": int(size),
            "sha256": str(digest),
            **rest,
        } if not rest and not isinstance(size, bool):
            return PinnedFile(path, name, size, digest)
    return None
