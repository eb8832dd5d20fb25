"""The names that `--exclusive` holds: one file for each in `.exclusive/` of the runs directory
(docs/reference/execution.md#exclusive).

1. A file contains the id of the episode that holds its name. It is synced before the run begins.
2. The episode holds the name until it has ended: while it runs, while it waits for a person, and if it was cut off.
   A crash frees nothing, since its run may be resumed and act again.
3. The file is locked from the look at its holder until the next episode exists with a locked log. So of two runs that
   start at once one gets the name.
4. An episode that has no first event, or that was removed, holds nothing.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from cogcli.base.errors import CogcliError, UnusableEnvironment, UsageError
from cogcli.base.file_lock import lock
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.options import HELD_NAME
from cogcli.episode.folder import Folder, disk_errors, read_at, write_all
from cogcli.episode.layout import MAX_ID, is_own_id

HELD: Final = "run.exclusive"
"""The code of the error for a name that another episode holds."""
_FOLDER: Final = ".exclusive"
_ENDED: Final = ("ok", "error", "vetoed", "aborted", "partial", "unsealed")


class Holder(NamedTuple):
    """The episode that holds a name."""

    name: str
    episode_id: str
    """Empty if the file of the name contains no episode id."""
    status: str
    """`running`, `pending`, `interrupted`, or `unknown` if its log cannot be read or was altered."""
    file: str

    @property
    def ends_by_itself(self) -> bool:
        """Whether the run works or waits for a person, so that waiting for its end makes sense."""
        return self.status in ("running", "pending")

    def to_error(self) -> UnusableEnvironment:
        """Return the error for a run that needs the name."""
        id = self.episode_id
        text, hint, next = {
            "running": ("which runs", "wait for its end", (f"cogcli trace {id} --follow",)),
            "pending": (
                "which waits for a person",
                "answer it, or end it; `cogcli gc --end-waiting AGE` ends old ones",
                (f"cogcli trace {id}", f"cogcli resume {id} --abort"),
            ),
            "interrupted": (
                "which was cut off and has not ended",
                "continue it, or end it: until then its effects may still happen",
                (f"cogcli resume {id}", f"cogcli resume {id} --abort"),
            ),
            "unknown": (
                "whose log cannot be read",
                "look at it, then remove it",
                (f"cogcli verify {id}",),
            ),
        }[self.status]
        if not id:
            text, hint, next = "", f"if no run holds the name, remove {self.file}", ()
        found = f"{id}, {text}" if id else "a file without an episode id"
        return UnusableEnvironment(HELD, f"`{self.name}` is held by {found}", hint=hint, next=next)


@contextmanager
def hold_name(
    runs_dir: Path, name: str, episode_id: str, *, shared: bool = False
) -> Iterator[None]:
    """Let an episode hold a name. The `with` block must create the episode, or have locked its log already. An empty
    name is not held.

    `shared`: other users of the group may also hold names here. Raise UnusableEnvironment `run.exclusive`, or
    `env.disk`; UsageError.
    """
    if not name:
        yield
        return
    with _open_locked_file(runs_dir, name, shared=shared) as handle:
        holder = _read_holder(runs_dir, name, handle)
        if holder is not None and holder.episode_id != episode_id:
            raise holder.to_error()
        with disk_errors(runs_dir / _FOLDER / name):
            os.lseek(handle, 0, os.SEEK_SET)
            write_all(handle, f"{episode_id}\n".encode())
            os.fsync(handle)
        yield


def find_holder(runs_dir: Path, name: str, *, shared: bool = False) -> Holder | None:
    """Return the episode that holds a name now; None if the name is free. Raise UnusableEnvironment `env.disk`."""
    with _open_locked_file(runs_dir, name, shared=shared) as handle:
        return _read_holder(runs_dir, name, handle)


@contextmanager
def _open_locked_file(runs_dir: Path, name: str, *, shared: bool) -> Iterator[int]:
    """Yield the descriptor of the file of a name, locked."""
    if not HELD_NAME.accepts(name):  # of a log, which may be forged
        raise UsageError(
            "usage.value", f"`--exclusive`: found `{name[:60]}`", expected=HELD_NAME.expected
        )
    with disk_errors(runs_dir / _FOLDER / name):
        handle = _open_name_file(runs_dir, name, shared=shared)
    try:
        with disk_errors(runs_dir / _FOLDER / name):
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise OSError("is not a regular file")
            lock(handle, wait=True)
        yield handle
    finally:
        os.close(handle)


def _open_name_file(runs_dir: Path, name: str, *, shared: bool) -> int:
    """Open the file of a name, creating and syncing it if necessary. Raise OSError."""
    with Folder.open(runs_dir, make=True, shared=shared) as runs:
        with suppress(FileExistsError):
            runs.make(_FOLDER).close()
        with runs.sub(_FOLDER) as names:
            with suppress(FileExistsError):
                os.close(names.create(name, os.O_RDWR))
            handle = names.descriptor(name, os.O_RDWR | getattr(os, "O_NONBLOCK", 0))
            names.sync_with_parent()
    return handle


def _read_holder(runs_dir: Path, name: str, handle: int) -> Holder | None:
    file = runs_dir / _FOLDER / name
    with disk_errors(file):
        text = read_at(handle, MAX_ID + 2, 0).decode("ascii", "replace")
    if not text:
        return None
    id = text.removesuffix("\n")
    if not is_own_id(id):
        return Holder(name, "", "unknown", str(file))
    status = _find_status(runs_dir / id)
    return Holder(name, id, status, str(file)) if status else None


def _find_status(directory: Path) -> str:
    """Return the status of an unfinished episode, as in Holder; empty if the episode no longer holds the name."""
    from cogcli.episode.listing.episode_row import read_row  # most runs hold no name

    if not directory.exists():
        return ""
    try:
        row = read_row(directory)
    except CogcliError:
        return "unknown" if directory.exists() else ""
    status = row.shown_status
    if status == "running":
        return status
    if status in _ENDED or row.started_at is None:
        return ""
    return status if status in ("pending", "interrupted") else "unknown"
