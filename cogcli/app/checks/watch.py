"""Waiting until a file that a check reads changes: by looking at times and sizes again and again, as every file system
has them."""

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
"""Of files beside these folders: settings, documents of APIs, modules of services."""
_SECONDS: Final = 0.3
Snapshot = dict[str, tuple[int, int]]
"""By path: time of the last change, and size."""


def snapshot(settings: Settings, paths: Sequence[str]) -> Snapshot:
    """The files that a check of the paths, or of everything, reads, but for the shipped ones."""
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
    """Return once a file is there, gone or other than before."""
    while look() == before:
        sleep(_SECONDS)


def _files_of(root: str) -> Iterator[str]:
    with os.scandir(root) as entries:
        yield from (entry.path for entry in entries if entry.name.endswith(_ENDINGS))
    yield from _below(os.path.join(root, folder) for folder in _FOLDERS)


def _below(paths: Iterable[str]) -> Iterator[str]:
    """Files, and all that is below directories."""
    for path in paths:
        yield path
        yield from (entry.path for entry in Walk(path).files(enters=lambda _: True))
