"""Temporary folders that are removed at every end of the process that can be caught."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from cogcli.base.errors import UnusableEnvironment

_OPEN: dict[str, int] = {}
"""The folders that are in use, with the process that made them."""
_TRIES = 20


@contextmanager
def scratch_folder(purpose: str, *, keep: bool = False) -> Iterator[str]:
    """Return the real path of a new folder, which is removed at the end.

    With `keep` it is removed only if it is empty, unless a signal ends the process. Raise
    UnusableEnvironment `env.disk` if no folder can be created.
    """
    try:
        folder = os.path.realpath(tempfile.mkdtemp(prefix=f"cogcli-{purpose}-"))
    except OSError as error:
        hint = "free some space, or set TMPDIR to a directory that is writable"
        message = f"the directory of temporary files cannot be written: {error.strerror}"
        raise UnusableEnvironment("env.disk", message, hint=hint) from error
    _OPEN[folder] = os.getpid()
    try:
        yield folder
    finally:
        del _OPEN[folder]
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):  # one that holds something
            os.rmdir(folder)


def remove_scratch_folders() -> None:
    """Remove the scratch folders in use, even while threads still write there.

    The process must end now.
    """
    for folder in [folder for folder, process in list(_OPEN.items()) if process == os.getpid()]:
        for _ in range(_TRIES):
            shutil.rmtree(folder, ignore_errors=True)
            if not os.path.lexists(folder):
                break
