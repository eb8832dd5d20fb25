"""A wait for changes of the files that a check reads.

Times and sizes of the files are polled, because every file system has them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from cogcli.app.settings import Settings
from cogcli.base.walk import FolderWalk
from cogcli.specs.layers import HOST_FOLDER, builtin_root

_FOLDERS: Final = (
    "skills",
    "capabilities",
    "bindings",
    "services",
    "packs",
    "policies",
    HOST_FOLDER,
)
_ENDINGS: Final = (".yaml", ".yml", ".json", ".toml", ".py")
"""Endings of watched files outside the spec folders: settings, API documents, modules of services.
"""
_SECONDS: Final = 0.3
Snapshot = dict[str, tuple[int, int]]
"""The time of the last change and the size of each file, by path."""


def take_snapshot(settings: Settings, paths: Sequence[str]) -> Snapshot:
    """Return the time and size of each file that a check of these paths reads, except shipped
    files."""
    shipped = os.path.realpath(builtin_root())
    roots = [layer.root for layer in settings.layers if os.path.realpath(layer.root) != shipped]
    roots += [settings.project] if settings.project and settings.project not in roots else []
    named = (os.path.join(settings.base, path) for path in paths)
    found: Snapshot = {}
    for path in (
        *(file for root in roots for file in _find_watched_files(root)),
        *_walk_paths(named),
    ):
        try:
            state = os.stat(path)
        except OSError:
            continue
        found[path] = (state.st_mtime_ns, state.st_size)
    return found


def wait_for_change(
    snapshot: Snapshot, take_snapshot: Callable[[], Snapshot], sleep: Callable[[float], None]
) -> None:
    """Wait until a file is added, removed or changed since the snapshot."""
    while take_snapshot() == snapshot:
        sleep(_SECONDS)


def _find_watched_files(root: str) -> Iterator[str]:
    """Yield the watched files of a registry root or project."""
    with os.scandir(root) as entries:
        yield from (entry.path for entry in entries if entry.name.endswith(_ENDINGS))
    yield from _walk_paths(os.path.join(root, folder) for folder in _FOLDERS)


def _walk_paths(paths: Iterable[str]) -> Iterator[str]:
    """Yield these paths, and all files below the directories among them."""
    for path in paths:
        yield path
        yield from (entry.path for entry in FolderWalk(path).files(enters=lambda _: True))
