"""Waiting until a file that a check reads changes.

It polls times and sizes, which every file system has."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from cogcli.app.settings import Settings
from cogcli.base.walk import Walk
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
    """Return the state of all files that a check of the paths reads, without the shipped ones."""
    shipped = os.path.realpath(builtin_root())
    roots = [layer.root for layer in settings.layers if os.path.realpath(layer.root) != shipped]
    roots += [settings.project] if settings.project and settings.project not in roots else []
    named = (os.path.join(settings.base, path) for path in paths)
    found: Snapshot = {}
    for path in (*(file for root in roots for file in _files_of(root)), *_below(named)):
        try:
            state = os.stat(path)
        except OSError:
            continue
        found[path] = (state.st_mtime_ns, state.st_size)
    return found


def wait_for_change(
    before: Snapshot, look: Callable[[], Snapshot], sleep: Callable[[float], None]
) -> None:
    """Return once a file is added, removed or changed."""
    while look() == before:
        sleep(_SECONDS)


def _files_of(root: str) -> Iterator[str]:
    with os.scandir(root) as entries:
        yield from (entry.path for entry in entries if entry.name.endswith(_ENDINGS))
    yield from _below(os.path.join(root, folder) for folder in _FOLDERS)


def _below(paths: Iterable[str]) -> Iterator[str]:
    """Yield files, and all files below directories."""
    for path in paths:
        yield path
        yield from (entry.path for entry in Walk(path).files(enters=lambda _: True))
