"""The entries of `PYTHONPATH` that a process may use: the absolute ones (docs/reference/command-line.md#start-up).

An empty entry means the working directory, and a relative one a folder below it. Both can be of a foreign project.
"""

from __future__ import annotations

import os
import sys

NAME = "PYTHONPATH"


def absolute_entries(text: str) -> str:
    """Return a value of `PYTHONPATH` without its relative and empty entries."""
    return os.pathsep.join(entry for entry in text.split(os.pathsep) if os.path.isabs(entry))


def resolve_entries(text: str, folder: str) -> str:
    """Return a value of `PYTHONPATH` whose relative entries start at `folder`, without its empty entries."""
    entries = [entry for entry in text.split(os.pathsep) if entry]
    return os.pathsep.join(os.path.join(folder, entry) for entry in entries)


def relative_folders(text: str) -> set[str]:
    """Return the folders that the relative and empty entries of a `PYTHONPATH` mean, with the working directory.

    Folders of the interpreter itself are left out. The set holds only "" if the working directory does not exist.
    """
    try:
        here = os.getcwd()
    except OSError:
        return {""}
    relative = [entry for entry in text.split(os.pathsep) if not os.path.isabs(entry)]
    folders = {here, *(os.path.abspath(entry) for entry in relative)}
    return {"", *relative, *(folder for folder in folders if not _belongs_to_interpreter(folder))}


def drop_relative_entries() -> None:
    """Remove the relative and empty entries of `PYTHONPATH` from this process, and from those that it starts.

    The working directory is removed from the import paths even if an absolute entry names it.
    """
    text = os.environ[NAME]
    dropped = relative_folders(text)
    sys.path[:] = [place for place in sys.path if place not in dropped]
    os.environ[NAME] = absolute_entries(text)


def _belongs_to_interpreter(folder: str) -> bool:
    prefixes = {sys.prefix, sys.base_prefix}
    return any(
        folder == prefix or folder.startswith(prefix.rstrip(os.sep) + os.sep) for prefix in prefixes
    )
