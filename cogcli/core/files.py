"""Reading a regular file within a limit, replacing a whole file at once, and being alone while that is done."""

from __future__ import annotations

import errno
import os
import stat

# On the way of every command: importing `typing` would take longer than all the rest of this file.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO, Literal

    Reason = Literal["missing", "not-regular", "too-large", "unreadable"]

# Absent flags are those of systems without them; there the checks after opening still hold.
_READ = (
    os.O_RDONLY
    | getattr(os, "O_NONBLOCK", 0)  # opening a FIFO returns at once
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_CHUNK = 1 << 20
_MISSING = (errno.ENOENT, errno.ENOTDIR)
_WRITE_HINTS = {
    errno.ENOENT: "make its folder first",
    **dict.fromkeys((errno.EEXIST, errno.ENOTDIR), "a file stands where a folder has to be: move it away"),
    errno.EISDIR: "a folder stands where the file has to be: move it away",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.EROFS: "nothing can be written on this file system: choose another place",
    errno.ENOSPC: "free some space",
    getattr(errno, "EDQUOT", errno.ENOSPC): "free some space",
}
_NOT_REGULAR = (errno.ENXIO, errno.ENODEV, errno.EISDIR)  # sockets, devices without a driver
_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class FileRefused(Exception):
    """A file that was not read: `path`, a `reason` for programs and a `message` for people."""

    def __init__(self, path: str, reason: Reason, message: str) -> None:
        super().__init__(f"{path}: {message}")
        self.path = path
        self.reason: Reason = reason
        self.message = message


def read_regular(path: str | os.PathLike[str], *, limit: int) -> bytes:
    """All bytes of the regular file at `path` (symbolic links are followed), at most `limit` of them.

    Anything else is a `FileRefused`, at once: no open waits for a writer, no device is read, and the size
    is judged before the first byte. A file that grows past the limit while it is read is refused as well.
    """
    name = os.fspath(path)
    try:
        handle = os.open(name, _READ)
    except (OSError, ValueError) as error:
        raise _refused(name, error) from error
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise FileRefused(name, "not-regular", _irregular(found.st_mode))
        if found.st_size > limit:
            raise FileRefused(
                name, "too-large", f"has {found.st_size:,} bytes, at most {limit:,} are allowed"
            )
        return _read_bounded(name, handle, limit)
    except OSError as error:
        raise _refused(name, error) from error
    finally:
        os.close(handle)


def open_regular(path: str, *, limit: int) -> BinaryIO:
    """A regular file of at most `limit` bytes, open for reading; a link at `path` is not followed. Raises
    FileRefused."""
    try:
        handle = os.open(path, _READ | getattr(os, "O_NOFOLLOW", 0))
    except (OSError, ValueError) as error:
        raise _refused(path, error) from error
    found = os.fstat(handle)
    if stat.S_ISREG(found.st_mode) and found.st_size <= limit:
        return os.fdopen(handle, "rb")
    os.close(handle)
    if stat.S_ISREG(found.st_mode):
        raise FileRefused(path, "too-large", f"has {found.st_size:,} bytes, at most {limit:,} are allowed")
    raise FileRefused(path, "not-regular", _irregular(found.st_mode))


def irregular(path: str) -> str:
    """`is a named pipe, not a regular file` of what is at `path`, links followed and nothing opened; empty for a
    regular file, and where nothing can be known."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return ""
    return "" if stat.S_ISREG(mode) else _irregular(mode)


def _irregular(mode: int) -> str:
    return f"is {_KINDS.get(stat.S_IFMT(mode), 'something else')}, not a regular file"


def _refused(name: str, error: OSError | ValueError) -> FileRefused:
    if isinstance(error, ValueError):
        return FileRefused(name, "missing", "no file has such a name")
    if error.errno in _MISSING:
        return FileRefused(name, "missing", "does not exist")
    if error.errno in _NOT_REGULAR:
        return FileRefused(name, "not-regular", "is not a regular file")
    return FileRefused(name, "unreadable", f"cannot be read: {error.strerror or error}")


def _read_bounded(name: str, handle: int, limit: int) -> bytes:
    parts: list[bytes] = []
    left = limit
    while part := os.read(handle, min(_CHUNK, left + 1)):
        parts.append(part)
        left -= len(part)
        if left < 0:
            raise FileRefused(name, "too-large", f"has more than {limit:,} bytes")
    return b"".join(parts)


def write_atomic(
    path: str | os.PathLike[str], data: bytes, *, mode: int = 0o600, replace: bool = True
) -> None:
    """Make `data` the whole content of `path`, with exactly `mode`, on disk when this returns.

    A reader sees the old file or the new one, never a part; a symbolic link at `path` is replaced, not
    followed. A device, a pipe and a socket are never replaced, nor is a link to one: `OSError`. On an `OSError`
    the old file is in place and no temporary file is left, unless the very last sync, of the directory,
    failed: then the new file is in place but may not survive a power cut. Without `replace` nothing that is
    there gives way, whoever made it in the meantime: `FileExistsError`.
    """
    from contextlib import suppress

    name = os.fspath(path)
    folder = os.path.dirname(name) or os.curdir
    _refuse_special(name)
    # The dot keeps a file left by a power cut out of every listing of specs.
    temporary = os.path.join(folder, f".tmp-{os.urandom(8).hex()}")
    handle = os.open(temporary, _CREATE, 0o600)
    placed = False
    try:
        try:
            _fill(handle, data, mode)
        finally:
            os.close(handle)
        if replace or not _placed_new(temporary, name):
            os.replace(temporary, name)
            placed = True
    finally:
        if not placed:
            with suppress(OSError):  # the error that came before is the one to raise
                os.unlink(temporary)
    _sync_folder(folder)


def _placed_new(temporary: str, name: str) -> bool:
    """Give a file a second name that nothing has; False on file systems where files have one name."""
    try:
        os.link(temporary, name)
    except FileExistsError:
        raise
    except OSError:
        if os.path.lexists(name):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name) from None
        return False
    return True


def hint_for_write(error: OSError | ValueError) -> str:
    """What helps where a file, or its folder, could not be written."""
    return _WRITE_HINTS.get(getattr(error, "errno", None) or 0, "make the directory writable")


def _refuse_special(path: str) -> None:
    try:
        kind = stat.S_IFMT(os.stat(path).st_mode)
    except OSError:
        return  # nothing is there, or a link to nothing
    if kind not in (stat.S_IFREG, stat.S_IFDIR):
        raise OSError(errno.EINVAL, f"is {_KINDS.get(kind, 'a device')}, not a regular file", path)


def _fill(handle: int, data: bytes, mode: int) -> None:
    if hasattr(os, "fchmod"):
        os.fchmod(handle, mode)
    rest = memoryview(data)
    while rest:
        written = os.write(handle, rest)
        if not written:
            raise OSError(errno.EIO, "the disk took no bytes")
        rest = rest[written:]
    os.fsync(handle)


def _sync_folder(folder: str) -> None:
    if not hasattr(os, "O_DIRECTORY"):  # a directory cannot be opened there, nor needs to be
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class Alone:
    """While this is entered nobody else enters it for the same folder, in this process or another: who changes a file
    there reads it first, writes it, and loses nobody's change.

    Advisory, and no more than that where the system or the file system has no such locks. The folder must be there.
    Raises OSError where it cannot be opened.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._handle = -1

    def __enter__(self) -> None:
        if not hasattr(os, "O_DIRECTORY"):
            return
        import fcntl

        self._handle = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX)
        except OSError:
            return  # the file is still replaced as a whole

    def __exit__(self, *what: object) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1
