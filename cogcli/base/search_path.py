"""The entries of `PYTHONPATH` that a process may use: only absolute ones
(docs/reference/command-line.md#start-up).

An empty entry means the working directory, and a relative entry a folder below it. Both may belong
to a foreign project.
"""

from __future__ import annotations

import os
import sys

NAME = "PYTHONPATH"


def absolute_entries(text: str) -> str:
    """Return a `PYTHONPATH` value without its relative and empty entries."""
    return os.pathsep.join(entry for entry in text.split(os.pathsep) if os.path.isabs(entry))


def resolve_entries(text: str, folder: str) -> str:
    """Return a `PYTHONPATH` value without empty entries, and with relative entries below `folder`."""
    entries = [entry for entry in text.split(os.pathsep) if entry]
    return os.pathsep.join(os.path.join(folder, entry) for entry in entries)


def relative_folders(text: str) -> set[str]:
    """Return the working directory and the folders that relative `PYTHONPATH` entries name.

    Folders of the interpreter itself are excluded. The set contains only "" if the working
    directory does not exist.
    """
    try:
        here = os.getcwd()
    except OSError:
        return {""}
    relative = [entry for entry in text.split(os.pathsep) if not os.path.isabs(entry)]
    folders = {here, *(os.path.abspath(entry) for entry in relative)}
    return {"", *relative, *(folder for folder in folders if not _belongs_to_interpreter(folder))}


def drop_relative_entries() -> None:
    """Remove relative and empty `PYTHONPATH` entries from this process and from its children.

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
