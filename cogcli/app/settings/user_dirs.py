"""The directories of the user (configuration, state and caches), the project, and display paths."""

from __future__ import annotations

import os
import sys

from cogcli.base.errors import UnusableEnvironment
from cogcli.base.system_text import require_text, variable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def config_home(environ: Mapping[str, str]) -> str:
    """Return the directory of the user's configuration."""
    return _platform_folder(
        environ, "XDG_CONFIG_HOME", "APPDATA", "Library/Application Support", ".config"
    )


def state_home(environ: Mapping[str, str]) -> str:
    """Return the directory of persistent files, such as crash reports and the episodes of runs
    outside projects."""
    return _platform_folder(
        environ, "XDG_STATE_HOME", "LOCALAPPDATA", "Library/Application Support", ".local/state"
    )


def store_home(project: str | None, environ: Mapping[str, str]) -> str:
    """Return the directory of a project's stores. Without a project, return the user's."""
    return os.path.join(project, ".cogcli") if project else state_home(environ)


def cache_home(environ: Mapping[str, str]) -> str:
    """Return the directory of files that may be deleted at any time."""
    return _platform_folder(environ, "XDG_CACHE_HOME", "LOCALAPPDATA", "Library/Caches", ".cache")


def _platform_folder(
    environ: Mapping[str, str], xdg: str, windows: str, mac: str, fallback: str
) -> str:
    """Return a directory of the user for this platform.

    A relative XDG path is ignored, as the XDG specification requires."""
    if os.path.isabs(named := variable(environ, xdg)):
        return os.path.join(named, "cogcli")
    if sys.platform == "win32" and (named := variable(environ, windows)):
        return os.path.join(named, "cogcli")
    home = variable(environ, "HOME") or _own_home()
    return os.path.join(home, mac if sys.platform == "darwin" else fallback, "cogcli")


def _own_home() -> str:
    """Return the home directory that the system records for this user.

    It is used instead of an empty `HOME`, which would mean the root directory.
    """
    if sys.platform == "win32":
        return os.path.expanduser("~")
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return os.sep


def working_directory() -> str:
    """Return the working directory.

    Raise UnusableEnvironment if it was removed, or UsageError if its name is not UTF-8."""
    try:
        return require_text(os.getcwd(), "the name of the working directory", "rename it")
    except OSError as error:
        raise UnusableEnvironment(
            "project.none",
            f"the working directory cannot be used: {error.strerror}",
            hint="change to a directory that exists, or give one with -C DIR",
        ) from error


def display_path(path: str, base: str) -> str:
    """Return the display path: relative to `base` if the path is below it, otherwise absolute. The
    separator is always `/`."""
    path = os.path.abspath(path)
    inside = path == base or path.startswith(base.rstrip(os.sep) + os.sep)
    return (os.path.relpath(path, base) if inside else path).replace(os.sep, "/")


PROJECT_MARKS = ("cogcli.toml", "skills", "capabilities")


def find_project(start: str) -> str | None:
    """Return the real path of the project: the nearest directory, from `start` upward, that
    contains `cogcli.toml`, `skills/` or `capabilities/`. None if no directory does."""
    folder = os.path.realpath(start)
    while True:
        if os.path.isfile(os.path.join(folder, PROJECT_MARKS[0])) or any(
            os.path.isdir(os.path.join(folder, mark)) for mark in PROJECT_MARKS[1:]
        ):
            return folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent
