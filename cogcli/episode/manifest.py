"""`manifest.json`: what a finished episode consists of. Its presence seals the episode."""

from __future__ import annotations

import stat
from hashlib import sha256
from operator import itemgetter
from typing import Any, Final

from cogcli.core.canonical import digest
from cogcli.core.files import FileRefused
from cogcli.episode.folder import TEMPORARY, Folder
from cogcli.episode.journal import first_link
from cogcli.episode.layout import BALLAST, BLOBS, EVENTS, MANIFEST, kind_of
from cogcli.episode.log_lines import Lines

SCHEMA: Final = "manifest/1"


def manifest_of(
    *,
    episode_id: str,
    created_at: str,
    files: list[dict[str, Any]],
    chain: dict[str, Any],
    pins: dict[str, Any],
) -> dict[str, Any]:
    """The manifest of an episode. `created_at` is the last event's timestamp."""
    return {
        "schema_version": SCHEMA,
        "episode_id": episode_id,
        "created_at": created_at,
        "files": files,
        "chain": chain,
        "pins": pins,
        "signature": None,
    }


def entry(name: str, digest: str, size: int) -> dict[str, Any]:
    """One file of a manifest; `digest` is plain hex, as `sha256sum` prints it."""
    return {"name": name, "sha256": digest, "size_bytes": size, "kind": kind_of(name)}


def files_of(folder: Folder) -> list[dict[str, Any]]:
    """Every file but the manifest itself, by name. Raises FileRefused."""
    entries = [entry(name, *measure(folder, name)) for name in _regular(folder) if name != MANIFEST]
    try:
        kept = folder.sub(BLOBS)
    except FileNotFoundError:
        return entries
    except OSError as error:
        # A manifest without what could not be looked at would seal an episode that never verifies.
        why = f"cannot be read: {error.strerror}"
        raise FileRefused(str(folder.path / BLOBS), "unreadable", why) from error
    with kept:
        entries += [entry(f"{BLOBS}/{name}", *measure(kept, name)) for name in _regular(kept)]
    return sorted(entries, key=itemgetter("name"))


def _regular(folder: Folder) -> list[str]:
    return [
        name
        for name, found in folder.entries().items()
        if stat.S_ISREG(found.st_mode) and not name.startswith(TEMPORARY) and name != BALLAST
    ]


def measure(folder: Folder, name: str) -> tuple[str, int]:
    """Hash and size of a file. Raises FileRefused."""
    content, size = sha256(), 0
    for chunk in folder.chunks(name):
        content.update(chunk)
        size += len(chunk)
    return content.hexdigest(), size


def chain_of(folder: Folder, episode_id: str) -> dict[str, Any]:
    """How many lines the log has, and the hash of the last. Raises FileRefused."""
    count, last = 0, None
    for count, last in Lines(folder.chunks(EVENTS)):  # noqa: B007
        pass
    return {"events": count, "head": first_link(episode_id) if last is None else digest(last)}
