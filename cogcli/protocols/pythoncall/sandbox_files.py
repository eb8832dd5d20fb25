"""The files that a function in a sandbox may read (docs/reference/service.md#isolation)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from cogcli.core.file_roots import is_within
from cogcli.protocols.pythoncall.readable_files import Reads

_MAX_PATH: Final = 4096


class SandboxFiles(NamedTuple):
    """What a sandboxed function may read: files and folders, and the folders whose names it may see."""

    read: tuple[str, ...]
    listed: tuple[str, ...]


def sandbox_files(root: str, payload: Any, reads: Reads | None) -> SandboxFiles:
    """The files of a call in a sandbox: those that are named by a whole text in its payload, within the declared roots,
    and what lies in the root of its module, without links and hidden names such as `.git` and `.env`.

    Raises SafetyScopeError as `Reads.require_no_credentials`."""
    roots = reads.roots if reads else ()
    named = {path for path in _regular_files(payload) if is_within(os.path.realpath(path), roots)}
    if reads is not None:
        for path in sorted(named):
            reads.require_no_credentials(path, os.path.realpath(path))
    if not os.path.isdir(root):
        return SandboxFiles(tuple(sorted(named)), ())
    with os.scandir(root) as entries:
        own = {entry.path for entry in entries if not entry.name.startswith(".") and not entry.is_symlink()}
    return SandboxFiles(tuple(sorted(named | own)), (root,))


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
