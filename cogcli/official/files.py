"""Files as the shipped functions open them: regular ones, within a size, never through a last link when writing."""

from __future__ import annotations

import os
import sys
from contextvars import ContextVar
from typing import TYPE_CHECKING

from cogcli.sdk import (
    Refused,
    credential_refusal,
    open_for_reading,
    outside_roots,
    writable_path,
    write_file,
)

if TYPE_CHECKING:
    from collections.abc import Callable


_SYSTEM_PLACES = ("/dev", "/proc", "/sys", "/run")

OPENED_AS: ContextVar[Callable[[str], str] | None] = ContextVar("OPENED_AS", default=None)
"""Asked for each path before anything is opened: what to open, where only some files may be read. It raises for others.

Whoever calls these functions sets it; a project that calls them cannot.
"""


def refusal_of_path(path: str) -> str:
    """Return why a path may never be read, or an empty text. Links are followed."""
    return refusal_of_real_path(os.path.realpath(path))


def refusal_of_real_path(real: str) -> str:
    """Return why a path may never be read, or an empty text. `real` is a path without links."""
    if any(real == place or real.startswith(place + os.sep) for place in _SYSTEM_PLACES):
        return "system folders hold no documents"
    return credential_refusal(real)


def name_of(path: str) -> str:
    """Return the last part of a path, for messages."""
    return os.path.basename(path.rstrip(os.sep)) or path


def read_whole(path: str, limit: int) -> bytes:
    """Return the bytes of a regular file. Raise Refused if it may not or cannot be read, or exceeds
    the limit.
    """
    content, is_longer = read_start(path, limit)
    if is_longer:
        raise Refused("too-large", f"{name_of(path)}: larger than {limit // 1024 // 1024} MiB")
    return content


def text_of(content: bytes, path: str, hint: str = "") -> str:
    """Return the text of a file's bytes. Raise Refused for bytes that are not UTF-8."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Refused(
            "bad-data", f"{name_of(path)}: byte {error.start} is not UTF-8 text", hint
        ) from None


def read_start(path: str, limit: int) -> tuple[bytes, bool]:
    """Return the first bytes of a regular file, and whether it has more. Raise Refused."""
    with open_for_reading(resolve_path(path), sys.maxsize) as file:
        content = file.read(limit + 1)
    return content[:limit], len(content) > limit


def resolve_path(path: str) -> str:
    """Return the path to open for a path. Raise Refused, before anything is opened, if it may not
    be read.
    """
    if not path or "\0" in path:
        raise Refused("bad-data", "the path is empty or holds a NUL character")
    if (opened_as := OPENED_AS.get()) is not None:
        path = opened_as(path)
    if reason := refusal_of_path(path):
        raise Refused("bad-data", f"{name_of(path)}: {reason}")
    return path


def resolve_folder(path: str) -> str:
    """Return the real path of a folder that may be read. Raise Refused."""
    real = os.path.realpath(resolve_path(path))
    if reason := outside_roots(real):
        raise Refused("bad-data", reason, "add it to `files.roots`, if it may be read")
    if not os.path.isdir(real):
        problem = "a file, not a folder" if os.path.lexists(real) else "no such folder"
        raise Refused("bad-data", f"{name_of(path)}: {problem}")
    return real


def write_whole(path: str, content: bytes, *, replace: bool = True) -> str:
    """Write a file atomically, in a place where files may be written. Return the path written.

    Raise Refused for another place, a link, a path that is not a regular file, and an existing file
    unless `replace`.
    """
    if reason := refusal_of_path(writable_path(path)):
        raise Refused("bad-data", f"{name_of(path)}: {reason}")
    return write_file(path, content, replace=replace)
