"""Files and folders."""

from __future__ import annotations

import base64
import fnmatch
import hashlib
import os
from typing import TYPE_CHECKING

from cogcli.official.files import OPENED_AS as OPENED_AS
from cogcli.official.files import checked_folder, closed_place, read_whole, text_of, write_whole
from cogcli.sdk import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAX_BYTES = 8 * 1024 * 1024
_MAX_ENTRIES = 10_000
_MAX_SEEN = 200_000


def read_file(path: str, mode: str = "text") -> dict[str, object]:
    """Return a file of at most 8 MiB: in the mode `text` its `content` as UTF-8, in `lenient` with what is none
    replaced, in `bytes` as `bytes.base64`; `bytes` also has `size` and `sha256`. Raise Refused for a file that is
    not text in the mode `text`, or cannot be read.
    """
    if mode not in ("text", "lenient", "bytes"):
        raise Refused("unsupported", f"no mode {mode!r:.40}", "there are text, lenient and bytes")
    content = read_whole(path, _MAX_BYTES)
    facts: dict[str, object] = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    if mode == "bytes":
        return {"bytes": facts | {"base64": base64.b64encode(content).decode()}}
    if mode == "lenient":
        return {"content": content.decode("utf-8-sig", "replace"), "bytes": facts}
    return {
        "content": text_of(content, path, "read it with the mode lenient or bytes"),
        "bytes": facts,
    }


def list_files(path: str, pattern: str | None = None, recursive: bool = False) -> dict[str, object]:
    """Return what lies in a folder, sorted by path: `path` below it, `name`, `type` (file, folder, link or other),
    `size`, 0 but for files, and `refused`: why nothing reads a file of such a name, empty for others. Links are not
    followed.

    A `pattern` with `*`, `?` and `[...]` is compared with the name, one with a slash with the path. At most 10,000
    entries are listed; `total` counts all. Raise Refused for what is not a folder, and for more than 200,000 entries.
    """
    found = [
        entry
        for entry in _entries(checked_folder(path), recursive)
        if not pattern
        or fnmatch.fnmatchcase(str(entry["path" if "/" in pattern else "name"]), pattern)
    ]
    found.sort(key=lambda entry: str(entry["path"]))
    return {
        "entries": found[:_MAX_ENTRIES],
        "total": len(found),
        "truncated": len(found) > _MAX_ENTRIES,
    }


def _entries(root: str, recursive: bool) -> Iterator[dict[str, object]]:
    waiting, seen = [""], 0
    while waiting:
        below = waiting.pop()
        try:
            listed = list(os.scandir(os.path.join(root, below)))
        except OSError:
            continue  # a folder that may not be looked into is listed itself
        for entry in listed:
            seen += 1
            if seen > _MAX_SEEN:
                raise Refused(
                    "too-large",
                    f"more than {_MAX_SEEN:,} files and folders",
                    "list a folder below it",
                )
            place = f"{below}/{entry.name}" if below else entry.name
            shown = place.encode("utf-8", "replace").decode()
            kind = _kind(entry)
            size = entry.stat(follow_symlinks=False).st_size if kind == "file" else 0
            refused = closed_place(entry.path) if kind == "file" else ""
            yield {
                "path": shown,
                "name": shown.rpartition("/")[2],
                "type": kind,
                "size": size,
                "refused": refused,
            }
            if recursive and kind == "folder":
                waiting.append(place)


def _kind(entry: os.DirEntry[str]) -> str:
    if entry.is_symlink():
        return "link"
    if entry.is_dir(follow_symlinks=False):
        return "folder"
    return "file" if entry.is_file(follow_symlinks=False) else "other"


def write_file(path: str, content: str, mode: str = "create") -> dict[str, object]:
    """Write a text as UTF-8, whole or not at all. `create` refuses where a file is, `overwrite` replaces it, `append`
    adds to it. Raise Refused for another mode, and where it cannot be written."""
    if mode not in ("create", "overwrite", "append"):
        raise Refused(
            "unsupported", f"no mode {mode!r:.40}", "there are create, overwrite and append"
        )
    try:
        added = content.encode()
    except UnicodeEncodeError as error:
        raise Refused("bad-data", f"character {error.start} is not text") from None
    before = read_whole(path, _MAX_BYTES) if mode == "append" and os.path.lexists(path) else b""
    write_whole(path, before + added, replace=mode != "create")
    return {"path": path, "bytes_written": len(added)}
