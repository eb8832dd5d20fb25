"""The input of a batch as a file of JSON lines. Stdin and tables are written to such a file first, since the input is
read twice (docs/reference/batch.md#input).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import BinaryIO, Final

from cogcli.base.errors import UnusableEnvironment, UsageError
from cogcli.base.file_lock import lock
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.field_spec import Fields
from cogcli.episode.folder import Folder, disk_refusal
from cogcli.scale.batch_folder import LINES, BatchFolder, batches_dir
from cogcli.scale.input_lines import read_lines
from cogcli.scale.tables import kind_of_file, read_table, require_reader

STDIN: Final = "-"
_SPOOL: Final = ".spool-"


class LineFile(NamedTuple):
    """A file of JSON lines: the user's file, or a spooled copy in the folder of all batches."""

    path: str
    shown: str
    """The name of the input in messages."""
    is_spooled: bool = False
    header_lines: int = 0
    """Lines of the original before its first row."""
    lock: int = -1
    """The descriptor that locks a spooled file."""

    def place(self, batch: BatchFolder) -> LineFile:
        """Move a spooled file to the folder of its batch, and return the file. Raise UnusableEnvironment."""
        if not self.is_spooled:
            return self
        target = os.fspath(batch.folder.path / LINES)
        try:
            os.replace(self.path, target)
        except OSError as error:
            raise disk_refusal(target, error) from error
        return self._replace(path=target)

    def discard(self) -> None:
        """Remove the file if it is spooled."""
        if self.is_spooled:
            with suppress(OSError):
                os.unlink(self.path)
            os.close(self.lock)


def open_line_file(
    runs_dir: str, path: str, shown: str, stdin: BinaryIO | None, fields: Fields
) -> LineFile:
    """Return the file of the lines. `path` is the real path of a file, or `-`.

    Raise UsageError for an input that cannot be read, UnusableEnvironment, or `env.extra`.
    """
    require_reader(path)
    if path == STDIN:
        if stdin is None:
            raise UsageError("input.empty", "stdin is closed")
        return _write_spool_file(runs_dir, read_lines(stdin), "stdin", 0)
    if not kind_of_file(path):
        return LineFile(path, shown)
    header_lines = 1 if kind_of_file(path) == ".csv" else 0
    lines = read_table(path, shown, fields)
    return _write_spool_file(runs_dir, lines, shown, header_lines)


def _write_spool_file(
    runs_dir: str, lines: Iterator[bytes], shown: str, header_lines: int
) -> LineFile:
    """Write lines to a new file in the folder of all batches. Raise UnusableEnvironment."""
    folder = batches_dir(runs_dir)
    try:
        path, handle = _create_locked(folder)
    except OSError as error:
        text = f"nothing can be kept in `{folder}`: {error.strerror or error}"
        raise UnusableEnvironment("env.runs-dir", text) from error
    file = LineFile(path, shown, is_spooled=True, header_lines=header_lines, lock=handle)
    with ExitStack() as undo:
        undo.callback(file.discard)
        try:
            with os.fdopen(os.dup(handle), "wb", buffering=1 << 20) as target:
                for line in lines:
                    target.write(line + b"\n")
        except OSError as error:
            raise disk_refusal(path, error) from error
        undo.pop_all()
    return file


def _create_locked(folder: Path) -> tuple[str, int]:
    """Return the path and the descriptor of a new, locked file. Raise OSError."""
    with Folder.open(folder, make=True) as opened:
        _remove_abandoned_files(opened)
        while True:
            name = f"{_SPOOL}{os.urandom(8).hex()}"
            handle = opened.create(name, os.O_WRONLY)
            lock(handle, wait=True)
            if os.fstat(handle).st_nlink:  # no other process removed it before it was locked
                return os.fspath(folder / name), handle
            os.close(handle)


def _remove_abandoned_files(folder: Folder) -> None:
    """Remove the spooled files of killed processes. Raise OSError."""
    for name in folder.names():
        if name.startswith(_SPOOL) and not folder.is_locked(name):
            with suppress(FileNotFoundError):
                folder.unlink(name)
