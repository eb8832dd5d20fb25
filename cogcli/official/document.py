"""Text documents on disk, and the gate before anything is read."""

from __future__ import annotations

import hashlib

from cogcli.official.files import OPENED_AS as OPENED_AS
from cogcli.official.files import name_of, read_whole, refusal_of_path, text_of
from cogcli.sdk import outside_roots

_TEXT_BYTES = 8 * 1024 * 1024


def check_path(path: str) -> dict[str, object]:
    """Return whether a document may be read: it is outside of system folders and usual places of
    credentials.

    Links are followed first. This protects against accidents and misled callers; it is not a
    sandbox.
    """
    if not path or "\0" in path:
        return {"allowed": False, "reason": "the path is empty or holds a NUL character"}
    reason = refusal_of_path(path) or outside_roots(path)
    return {"allowed": not reason, "reason": reason or "an ordinary place for a document"}


def read_text(path: str) -> dict[str, object]:
    """Return the text of a UTF-8 file of at most 8 MiB, with its name, size in bytes and SHA-256."""
    content = read_whole(path, _TEXT_BYTES)
    return {
        "text": text_of(content, path),
        "name": name_of(path),
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }
