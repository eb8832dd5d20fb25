"""Files and folders."""

from __future__ import annotations

import base64
import fnmatch
import hashlib
import os
from typing import TYPE_CHECKING

from cogcli.official.files import OPENED_AS as OPENED_AS
from cogcli.official.files import (
    read_whole,
    refusal_of_real_path,
    resolve_folder,
    text_of,
    write_whole,
)
from cogcli.sdk import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAX_BYTES = 8 * 1024 * 1024
_MAX_ENTRIES = 10_000
_MAX_SEEN = 200_000


def read_file(path: str, mode: str = "text") -> dict[str, object]:
    """Return a file of at most 8 MiB.

    In the mode `text`, `content` is its UTF-8 text; in `lenient`, invalid bytes are replaced; in
    `bytes`, `bytes.base64` holds all bytes. `bytes` also has `size` and `sha256`. Raise Refused for
    a file that is not text in the mode `text`, or cannot be read.
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
    """Return the entries of a folder, sorted by path.

    An entry has `path` relative to the folder, `name`, `type` (file, folder, link or other), `size`
    (0 unless a file), and `refused`: why a file of such a name is never read, else empty. Links are
    not followed. A `pattern` with `*`, `?` and `[...]` is compared with the name, one with a slash
    with the path. At most 10,000 entries are listed; `total` counts all. Raise Refused if it is not
    a folder, or has more than 200,000 entries.
    """
    entries = [
        entry
        for entry in _iterate_entries(resolve_folder(path), recursive)
        if not pattern
        or fnmatch.fnmatchcase(str(entry["path" if "/" in pattern else "name"]), pattern)
    ]
    entries.sort(key=lambda entry: str(entry["path"]))
    return {
        "entries": entries[:_MAX_ENTRIES],
        "total": len(entries),
        "truncated": len(entries) > _MAX_ENTRIES,
    }


def _iterate_entries(root: str, recursive: bool) -> Iterator[dict[str, object]]:
    waiting, entry_count = [""], 0
    while waiting:
        parent = waiting.pop()
        try:
            children = list(os.scandir(os.path.join(root, parent)))
        except OSError:
            continue  # a folder that may not be looked into is listed itself
        for entry in children:
            entry_count += 1
            if entry_count > _MAX_SEEN:
                raise Refused(
                    "too-large",
                    f"more than {_MAX_SEEN:,} files and folders",
                    "list a folder below it",
                )
            relative = f"{parent}/{entry.name}" if parent else entry.name
            path_text = relative.encode("utf-8", "replace").decode()
            kind = _entry_type(entry)
            size = entry.stat(follow_symlinks=False).st_size if kind == "file" else 0
            refused = refusal_of_real_path(entry.path) if kind == "file" else ""
            yield {
                "path": path_text,
                "name": path_text.rpartition("/")[2],
                "type": kind,
                "size": size,
                "refused": refused,
            }
            if recursive and kind == "folder":
                waiting.append(relative)


def _entry_type(entry: os.DirEntry[str]) -> str:
    if entry.is_symlink():
        return "link"
    if entry.is_dir(follow_symlinks=False):
        return "folder"
    return "file" if entry.is_file(follow_symlinks=False) else "other"


def write_file(path: str, content: str, mode: str = "create") -> dict[str, object]:
    """Write a text as UTF-8, atomically.

    `create` refuses an existing file, `overwrite` replaces it, `append` adds to it. Raise Refused
    for another mode, and if the file cannot be written.
    """
    if mode not in ("create", "overwrite", "append"):
        raise Refused(
            "unsupported", f"no mode {mode!r:.40}", "there are create, overwrite and append"
        )
    try:
        added = content.encode()
    except UnicodeEncodeError as error:
        raise Refused("bad-data", f"character {error.start} is not text") from None
    old_content = (
        read_whole(path, _MAX_BYTES) if mode == "append" and os.path.lexists(path) else b""
    )
    write_whole(path, old_content + added, replace=mode != "create")
    return {"path": path, "bytes_written": len(added)}
