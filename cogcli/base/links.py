"""Links that leave a project which is not trusted (docs/reference/service.md#links).

`bound` is the real path of such a project, or of another folder that links must not leave. An empty `bound` refuses
nothing: that is a trusted project, and any place that the user names.
"""

from __future__ import annotations

import os

from cogcli.base.errors import EnvironmentRefusal

LEAVES = "project.link"
"""The code of the error about such a link."""
BY_DESCRIPTOR = os.open in os.supports_dir_fd
"""Whether names can be resolved inside an open directory. Windows cannot; there a directory is found by its path."""

_DIRECTORY = (
    os.O_RDONLY
    | getattr(os, "O_DIRECTORY", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
_PASSED = _DIRECTORY | getattr(os, "O_PATH", 0)
"""The flags for a directory on the way. With `O_PATH` the right to enter it is enough, as for any path."""


def is_below(path: str, folder: str) -> bool:
    """Whether a normalized path is this folder or lies below it. Links are not looked at."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def find_leaving_link(path: str, bound: str) -> str:
    """The first link on the way from `bound` to `path` that leads out of `bound`; empty if there is none.

    A path that is not below `bound` is a path that the user names: it has none.
    """
    path = os.path.abspath(path)
    if not bound or not is_below(path, bound):
        return ""
    inside = os.path.realpath(bound)
    if is_below(os.path.realpath(path), inside):
        return ""
    place = bound
    for name in os.path.relpath(path, bound).split(os.sep):
        place = os.path.join(place, name)
        if os.path.islink(place) and not is_below(os.path.realpath(place), inside):
            return place
    return path


def link_refusal(link: str) -> EnvironmentRefusal:
    """The error for a link that leaves a project which is not trusted."""
    try:
        target = os.readlink(link)
    except OSError:
        target = os.path.realpath(link)
    place, here = link, os.getcwd()
    if is_below(link, here):
        place = os.path.relpath(link, here)
    shown = place.replace(os.sep, "/")
    return EnvironmentRefusal(
        LEAVES,
        f"`{shown}` is a link that leaves the project, which is not trusted",
        expected="a path inside the project",
        found=f"a link to `{target}`",
        hint="remove the link; trusting the project accepts what its links lead to",
        file=shown,
        next=("cogcli config trust",),
    )


def require_inside(path: str, bound: str) -> str:
    """The path, of which no link leaves `bound`; its real path if there is a bound.

    Raises EnvironmentRefusal `project.link`.
    """
    if not bound:
        return path
    if link := find_leaving_link(path, bound):
        raise link_refusal(link)
    return os.path.realpath(path)


def open_directory(path: str, *, make: bool = False) -> int:
    """A descriptor of the directory at a real path: no name on the way may be a link, so that a link which was made
    since the path was resolved is not followed.

    `make` makes the directories that are missing, 0700. Raises OSError.
    """
    *above, last = os.path.abspath(path).split(os.sep)
    place = os.open(os.sep, _PASSED)
    try:
        for name in filter(None, above):
            place = _entered(place, name, _PASSED, make=make)
        return _opened(place, last or os.curdir, _DIRECTORY, make=make)
    finally:
        os.close(place)


def _opened(place: int, name: str, flags: int, *, make: bool) -> int:
    """A descriptor of a directory in another one. Raises OSError."""
    try:
        return os.open(name, flags, dir_fd=place)
    except FileNotFoundError:
        if not make:
            raise
    try:  # noqa: SIM105  # `contextlib` takes time at every start
        os.mkdir(name, 0o700, dir_fd=place)
    except FileExistsError:  # another process was first
        pass
    return os.open(name, flags, dir_fd=place)


def _entered(place: int, name: str, flags: int, *, make: bool) -> int:
    """As `_opened`; the outer directory is closed, unless that raises."""
    inner = _opened(place, name, flags, make=make)
    os.close(place)
    return inner
