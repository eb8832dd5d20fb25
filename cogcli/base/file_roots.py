"""The roots that limit which files functions read and write (docs/reference/service.md#roots)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

from cogcli.base.terminal_text import visible

Roots = tuple[tuple[str, ...], ...]
"""Directories with links followed, one group per declaration. A file must be in a root of each
group."""
_SHOWN: Final = 200


def roots_of(declared: Sequence[Sequence[str]]) -> Roots:
    """Return roots from absolute paths, with links resolved."""
    return tuple(tuple(os.path.realpath(path) for path in paths) for paths in declared)


def is_within(real: str, roots: Roots) -> bool:
    """Return whether each declaration has a root that equals or contains a path. `real` must contain no links. True
    without any declaration.
    """
    return all(any(real == root or is_below(real, root) for root in paths) for paths in roots)


def is_below(path: str, folder: str) -> bool:
    """Return whether a path is below a folder."""
    return path.startswith(folder.rstrip(os.sep) + os.sep)


def outside_text(path: str, setting: str) -> str:
    """Return the message about a path outside the roots that a setting declares."""
    return f"`{visible(path[:_SHOWN])}` is outside of `{setting}`"


def resolve_write_path(path: str, roots: Roots) -> str:
    """Return the path to write a file to, with the links of its folders resolved.

    Without roots the path must be below the working directory. Raise ValueError with the reason for
    a path outside, for a link, and for anything that is not a regular file.
    """
    folder, name = os.path.split(path)
    if not name or name in (".", "..") or "\0" in path:
        raise ValueError("the path names no file")
    real = os.path.join(os.path.realpath(folder or os.curdir), name)
    if not is_within(real, roots or roots_of([[os.getcwd()]])):
        if roots:
            raise ValueError(outside_text(path, "files.write_roots"))
        shown = visible(path[:_SHOWN])
        raise ValueError(
            f"`{shown}` is not below the working directory; `files.write_roots` names no other place"
        )
    if os.path.islink(real) or (os.path.lexists(real) and not os.path.isfile(real)):
        raise ValueError(f"`{visible(name[:_SHOWN])}` is not a regular file")
    return real
