"""The files of an episode beside `state.json`, at a glance: is each what the manifest names?"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Final, NamedTuple

from cogcli.core.files import FileRefused
from cogcli.core.strict_json import JsonRefused
from cogcli.episode.blobs import parsed
from cogcli.episode.folder import Folder
from cogcli.episode.layout import EVENTS, LEARN, MANIFEST, SUMMARY

_LIMIT: Final = 64 * 1024 * 1024


class Mark(NamedTuple):
    """One file: the lines of a log, 0 for others, and whether nothing speaks against it."""

    name: str
    lines: int
    good: bool


def marks(folder: Folder) -> Iterator[Mark]:
    """The files that can be read. What no manifest names has nothing against it: `verify` knows more."""
    known = _named(folder)
    for name in (EVENTS, LEARN, SUMMARY, MANIFEST):
        content, lines = sha256(), 0
        try:
            for chunk in folder.chunks(name):
                content.update(chunk)
                lines += chunk.count(b"\n")
        except FileRefused:
            continue
        yield Mark(
            name,
            lines if name.endswith(".jsonl") else 0,
            known.get(name) in (None, content.hexdigest()),
        )


def _named(folder: Folder) -> dict[str, str]:
    """Hash by name as the manifest gives them; nothing where it cannot be read."""
    try:
        manifest = parsed(folder.read(MANIFEST, limit=_LIMIT))
    except (FileRefused, JsonRefused):
        return {}
    files = manifest.get("files") if type(manifest) is dict else None
    entries = [entry for entry in files if type(entry) is dict] if type(files) is list else []
    return {str(entry.get("name")): str(entry.get("sha256")) for entry in entries}
