"""Links that leave an untrusted project (docs/reference/service.md#links).

`bound` is the real path of such a project, or of another folder that links must not leave. If
`bound` is empty, nothing is refused: the project is trusted, or the user named the place.
"""

from __future__ import annotations

import os

from cogcli.base.errors import UnusableEnvironment

LEAVES = "project.link"
"""The code of the error for a link that leaves its project."""
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
"""The flags for opening a directory on the path. With `O_PATH` the right to enter it is enough."""


def is_below(path: str, folder: str) -> bool:
    """Return whether a normalized path is this folder, or below it. Links are not followed."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def resolve_path(path: str, bound: str) -> tuple[str, str]:
    """Return the real path of `path`, and the first link by which it leaves `bound`; empty if no link does.

    The check applies to exactly the returned path, so a link that is created or replaced meanwhile has no effect. No
    link of a path outside `bound` counts, because the user typed that path.
    """
    real, path = os.path.realpath(path), os.path.abspath(path)
    if not bound or not is_below(path, bound) or is_below(real, os.path.realpath(bound)):
        return real, ""
    return real, _first_leaving_link(path, bound)


def find_leaving_link(path: str, bound: str) -> str:
    """Return the first link between `bound` and `path` that leads out of `bound`; empty if no link does."""
    return resolve_path(path, bound)[1]


def _first_leaving_link(path: str, bound: str) -> str:
    """Return the first link on a path that leads out of `bound`. Return the path itself if it no longer exists."""
    inside, place = os.path.realpath(bound), bound
    for name in os.path.relpath(path, bound).split(os.sep):
        place = os.path.join(place, name)
        if os.path.islink(place) and not is_below(os.path.realpath(place), inside):
            return place
    return path


def link_refusal(link: str) -> UnusableEnvironment:
    """Return the error for a link that leaves an untrusted project."""
    try:
        target = os.readlink(link)
    except OSError:
        target = os.path.realpath(link)
    place, here = link, os.getcwd()
    if is_below(link, here):
        place = os.path.relpath(link, here)
    shown = place.replace(os.sep, "/")
    return UnusableEnvironment(
        LEAVES,
        f"`{shown}` is a link that leaves the project, which is not trusted",
        expected="a path inside the project",
        found=f"a link to `{target}`",
        hint="remove the link; trusting the project accepts what its links lead to",
        file=shown,
        next=("cogcli config trust",),
    )


def require_inside(path: str, bound: str) -> str:
    """Return the path after checking that none of its links leaves `bound`.

    With a bound, the result is the real path. Raise UnusableEnvironment `project.link`.
    """
    if not bound:
        return path
    real, link = resolve_path(path, bound)
    if link:
        raise link_refusal(link)
    return real


def open_directory(path: str, *, make: bool = False, mode: int = 0o700) -> int:
    """Return a descriptor of the directory at a real path. No name on the path may be a link.

    So a link that was created after the path was resolved is not followed. With `make`, missing
    directories are created with this mode. Raise OSError.
    """
    *above, last = os.path.abspath(path).split(os.sep)
    place = os.open(os.sep, _PASSED)
    try:
        for name in filter(None, above):
            place = _enter_child(place, name, _PASSED, make=make, mode=mode)
        return _open_child(place, last or os.curdir, _DIRECTORY, make=make, mode=mode)
    finally:
        os.close(place)


def _open_child(place: int, name: str, flags: int, *, make: bool, mode: int) -> int:
    """Return a descriptor of a directory inside another one. Raise OSError."""
    try:
        return os.open(name, flags, dir_fd=place)
    except FileNotFoundError:
        if not make:
            raise
    try:
        os.mkdir(name, 0o700, dir_fd=place)
        if mode != 0o700:  # `mkdir` obeys the umask and ignores the bit for the group
            os.chmod(name, mode, dir_fd=place)
    except FileExistsError:  # another process created it first
        pass
    return os.open(name, flags, dir_fd=place)


def _enter_child(place: int, name: str, flags: int, *, make: bool, mode: int) -> int:
    """Return the same descriptor as `_open_child`, and close the outer directory on success."""
    inner = _open_child(place, name, flags, make=make, mode=mode)
    os.close(place)
    return inner
