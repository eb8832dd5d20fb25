"""The files that a function in a sandbox may read (docs/reference/service.md#isolation)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from cogcli.base.file_roots import is_within
from cogcli.base.walk import Walk
from cogcli.protocols.pythoncall.readable_files import Reads

_MAX_PATH: Final = 4096
_ENVIRONMENT, _INSTALLED = "pyvenv.cfg", "node_modules"
"""What marks a folder of installed packages, by a file in it or by its own name. No function imports from there."""


class SandboxFiles(NamedTuple):
    """What a sandboxed function may read: files and folders, and the folders whose names it may see."""

    read: tuple[str, ...]
    listed: tuple[str, ...]


def sandbox_files(root: str, payload: Any, reads: Reads | None) -> SandboxFiles:
    """The files of a call in a sandbox: those that are named by a whole text in its payload, within the declared roots,
    and what lies in the root of its module, without links and hidden names such as `.git` and `.env`.

    Raises SafetyScopeError as `Reads.require_no_credentials`, EnvironmentRefusal `registry.size`."""
    roots = reads.roots if reads else ()
    named = {path for path in _regular_files(payload) if is_within(os.path.realpath(path), roots)}
    if reads is not None:
        for path in sorted(named):
            reads.require_no_credentials(path, os.path.realpath(path))
    if not os.path.isdir(root):
        return SandboxFiles(tuple(sorted(named)), ())
    own, _ = _shown_below(Walk(root), root)
    return SandboxFiles(tuple(sorted(named.union(own))), (root,))


def _shown_below(walk: Walk, folder: str) -> tuple[list[str], bool]:
    """The files and folders below a folder that are shown, and whether that is all below it. A folder without hidden
    names is shown whole. Of links nothing is shown but the name, and nothing of what was installed there."""
    entries = walk.entries(folder)
    is_root = folder == walk.root
    if not is_root and any(entry.name == _ENVIRONMENT for entry in entries):
        return [], False
    shown, is_all = [], not is_root
    for entry in entries:
        if entry.name.startswith(".") or entry.name == _INSTALLED:
            is_all = False
        elif entry.is_dir(follow_symlinks=False):
            below, is_whole = _shown_below(walk, entry.path)
            shown += [entry.path] if is_whole else below
            is_all = is_all and is_whole
        elif not entry.is_symlink():
            shown.append(entry.path)
    return shown, is_all


def _regular_files(payload: Any) -> Iterator[str]:
    """The absolute paths of the regular files that a value names, and what links among them lead to."""
    pending = [payload]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            pending += value.values()
        elif isinstance(value, list):
            pending += value
        elif isinstance(value, str) and 0 < len(value) < _MAX_PATH and "\0" not in value:
            path = os.path.abspath(value)
            if os.path.isfile(path):
                yield from (path, os.path.realpath(path))
