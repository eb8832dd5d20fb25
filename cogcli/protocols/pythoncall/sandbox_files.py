"""The files that a function in a sandbox may read (docs/reference/service.md#isolation)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

from cogcli.base.file_roots import is_within
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.walk import FolderWalk
from cogcli.protocols.pythoncall.readable_files import ReadableFiles, possible_paths

_MAX_PATH: Final = 4096
_ENVIRONMENT, _INSTALLED = "pyvenv.cfg", "node_modules"
"""The markers of folders with installed packages: a file in the folder, and the folder's name.
Functions do not import from them."""


class SandboxFiles(NamedTuple):
    """The files and folders that a sandboxed function may read, and the folders that it may list."""

    read: tuple[str, ...]
    listed: tuple[str, ...]


def sandbox_files(root: str, payload: object, reads: ReadableFiles | None) -> SandboxFiles:
    """Return the files of a call in a sandbox.

    A file belongs to the call if a string in its payload is the path of that file, within the declared roots. The
    content of the module's root is included, without links and hidden names such as `.git` and `.env`. Raise the errors
    of `Reads.require_no_credentials`, and UnusableEnvironment `registry.size`.
    """
    roots = reads.roots if reads else ()
    named = {path for path in _regular_files(payload) if is_within(os.path.realpath(path), roots)}
    if reads is not None:
        for path in sorted(named):
            reads.require_no_credentials(path, os.path.realpath(path))
    if not os.path.isdir(root):
        return SandboxFiles(tuple(sorted(named)), ())
    own, _ = _list_visible(FolderWalk(root), root)
    return SandboxFiles(tuple(sorted(named.union(own))), (root,))


def _list_visible(walk: FolderWalk, folder: str) -> tuple[list[str], bool]:
    """Return the visible files and folders below a folder, and whether these are all.

    A folder without hidden names is shown whole. Of links only the name is shown. Installed
    packages are not shown."""
    entries = walk.entries(folder)
    is_root = folder == walk.root
    if not is_root and any(entry.name == _ENVIRONMENT for entry in entries):
        return [], False
    shown, is_all = [], not is_root
    for entry in entries:
        if entry.name.startswith(".") or entry.name == _INSTALLED:
            is_all = False
        elif entry.is_dir(follow_symlinks=False):
            below, is_whole = _list_visible(walk, entry.path)
            shown += [entry.path] if is_whole else below
            is_all = is_all and is_whole
        elif not entry.is_symlink():
            shown.append(entry.path)
    return shown, is_all


def _regular_files(payload: object) -> Iterator[str]:
    """Yield the absolute paths of the regular files that a value names, and the targets of links
    among them."""
    for text in possible_paths(payload):
        path = os.path.abspath(text)
        if len(text) < _MAX_PATH and os.path.isfile(path):
            yield from (path, os.path.realpath(path))
