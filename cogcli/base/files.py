"""Functions that read a regular file within a limit, replace a whole file atomically, and lock a
folder.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import sys

from cogcli.base.links import BY_DESCRIPTOR, open_directory, require_inside

# Every command loads this file: importing `typing` would take longer than everything else in it.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO, Literal

    Reason = Literal["missing", "not-regular", "too-large", "unreadable"]

# Some systems lack these flags; there the checks after opening still hold.
_READ = (
    os.O_RDONLY
    | getattr(os, "O_NONBLOCK", 0)  # opening a FIFO returns at once
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
_CREATE = (
    os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
)
_CHUNK = 1 << 20
_MISSING = (errno.ENOENT, errno.ENOTDIR)
_WRITE_HINTS = {
    errno.ENOENT: "make its folder first",
    **dict.fromkeys(
        (errno.EEXIST, errno.ENOTDIR), "a file stands where a folder has to be: move it away"
    ),
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


class UnreadableFile(Exception):
    """A file that may not be read: `path`, a machine-readable `reason` and a `message` for people."""

    def __init__(self, path: str, reason: Reason, message: str) -> None:
        super().__init__(f"{path}: {message}")
        self.path = path
        self.reason: Reason = reason
        self.message = message


def read_regular(path: str | os.PathLike[str], *, limit: int) -> bytes:
    """Return all bytes of the regular file at `path`, at most `limit`. Symbolic links are followed.

    Raise UnreadableFile for anything else, without waiting: opening never blocks on a writer, no
    device is read, and the size is checked first. A file that grows past the limit during the read
    is refused as well.
    """
    name = os.fspath(path)
    try:
        handle = os.open(name, _READ)
    except (OSError, ValueError) as error:
        raise _reading_error(name, error) from error
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise UnreadableFile(name, "not-regular", _irregularity_of_mode(found.st_mode))
        if found.st_size > limit:
            raise UnreadableFile(
                name, "too-large", f"has {found.st_size:,} bytes, at most {limit:,} are allowed"
            )
        return _read_up_to_limit(name, handle, limit)
    except OSError as error:
        raise _reading_error(name, error) from error
    finally:
        os.close(handle)


def open_regular(path: str, *, limit: int) -> BinaryIO:
    """Open a regular file of at most `limit` bytes for reading. A link at `path` is not followed.
    Raise UnreadableFile."""
    try:
        handle = os.open(path, _READ | getattr(os, "O_NOFOLLOW", 0))
    except (OSError, ValueError) as error:
        raise _reading_error(path, error) from error
    found = os.fstat(handle)
    if stat.S_ISREG(found.st_mode) and found.st_size <= limit:
        return os.fdopen(handle, "rb")
    os.close(handle)
    if stat.S_ISREG(found.st_mode):
        raise UnreadableFile(
            path, "too-large", f"has {found.st_size:,} bytes, at most {limit:,} are allowed"
        )
    raise UnreadableFile(path, "not-regular", _irregularity_of_mode(found.st_mode))


def measure_regular(path: str) -> tuple[int, str]:
    """Return the size of a regular file and its SHA-256 in hex. A link at `path` is not followed.
    Raise UnreadableFile."""
    size, digest = 0, hashlib.sha256()
    with open_regular(path, limit=sys.maxsize) as file:
        while chunk := file.read(1 << 20):
            size += len(chunk)
            digest.update(chunk)
    return size, digest.hexdigest()


def irregularity(path: str) -> str:
    """Return why a path is not a regular file, such as `is a named pipe, not a regular file`; empty for a regular file.

    Links are followed, and nothing is opened. The result is also empty if the kind cannot be determined.
    """
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return ""
    return "" if stat.S_ISREG(mode) else _irregularity_of_mode(mode)


def _irregularity_of_mode(mode: int) -> str:
    return f"is {_KINDS.get(stat.S_IFMT(mode), 'something else')}, not a regular file"


def _reading_error(name: str, error: OSError | ValueError) -> UnreadableFile:
    """Return the UnreadableFile error for an error of the operating system."""
    if isinstance(error, ValueError):
        return UnreadableFile(name, "missing", "no file has such a name")
    if error.errno in _MISSING:
        return UnreadableFile(name, "missing", "does not exist")
    if error.errno in _NOT_REGULAR:
        return UnreadableFile(name, "not-regular", "is not a regular file")
    return UnreadableFile(name, "unreadable", f"cannot be read: {error.strerror or error}")


def _read_up_to_limit(name: str, handle: int, limit: int) -> bytes:
    parts: list[bytes] = []
    left = limit
    while part := os.read(handle, min(_CHUNK, left + 1)):
        parts.append(part)
        left -= len(part)
        if left < 0:
            raise UnreadableFile(name, "too-large", f"has more than {limit:,} bytes")
    return b"".join(parts)


def write_atomic(
    path: str | os.PathLike[str],
    data: bytes,
    *,
    mode: int = 0o600,
    replace: bool = True,
    bound: str = "",
) -> None:
    """Replace the content of `path` with `data` and its mode with `mode`, and sync to disk.

    A reader sees the old file or the new one, never a part. A symbolic link at `path` is replaced,
    not followed. Raise OSError for a device, a pipe or a socket, and for a link to one: they are
    never replaced. After an `OSError` the old file is still in place and no temporary file remains.
    There is one exception: if only the final sync of the directory fails, the new file is in place
    but may not survive a power failure. Without `replace` an existing file is never replaced, even
    if it appears in the meantime: `FileExistsError`.

    No link may lead the folder out of `bound` (`base/links.py`): UnusableEnvironment `project.link`.
    A link that is created in the meantime is not followed: `OSError`.
    """
    from contextlib import suppress

    name = os.fspath(path)
    folder = _WrittenFolder(
        require_inside(os.path.dirname(name) or os.curdir, bound), strict=bool(bound)
    )
    # The dot keeps a file left by a power cut out of every listing of specs.
    temporary, last = f".tmp-{os.urandom(8).hex()}", os.path.basename(name)
    try:
        _refuse_special(folder, last)
        handle = os.open(folder.at(temporary), _CREATE, 0o600, dir_fd=folder.handle)
        placed = False
        try:
            try:
                _write_and_sync(handle, data, mode)
            finally:
                os.close(handle)
            if replace or not _link_new(folder, temporary, last):
                os.replace(
                    folder.at(temporary),
                    folder.at(last),
                    src_dir_fd=folder.handle,
                    dst_dir_fd=folder.handle,
                )
                placed = True
        finally:
            if not placed:
                with suppress(OSError):  # the earlier error is the one to raise
                    os.unlink(folder.at(temporary), dir_fd=folder.handle)
        folder.sync()
    finally:
        folder.close()


class _WrittenFolder:
    """The folder of a file that is written.

    It is open if the system can resolve names relative to an open directory.
    """

    def __init__(self, path: str, *, strict: bool) -> None:
        """Open the folder of `path`. Raise OSError.

        With `strict`, `path` must be a real path, and a link on it is refused.
        """
        self._path = path
        self.handle: int | None = None
        if BY_DESCRIPTOR:
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
            self.handle = open_directory(path) if strict else os.open(path, flags)

    def at(self, name: str) -> str:
        """Return an entry's name to use together with `dir_fd=handle`."""
        return name if self.handle is not None else os.path.join(self._path, name)

    def sync(self) -> None:
        """Flush the entries to disk if the system can open directories. Raise OSError."""
        if self.handle is not None:
            os.fsync(self.handle)

    def close(self) -> None:
        """Close the directory."""
        if self.handle is not None:
            os.close(self.handle)


def _link_new(folder: _WrittenFolder, temporary: str, last: str) -> bool:
    """Link a file to a name that does not exist yet.

    Return False if the file system does not support hard links.
    """
    try:
        os.link(
            folder.at(temporary),
            folder.at(last),
            src_dir_fd=folder.handle,
            dst_dir_fd=folder.handle,
        )
    except FileExistsError:
        raise
    except OSError:
        if _stat_or_none(folder, last, follow_symlinks=False) is not None:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), last) from None
        return False
    return True


def hint_for_write(error: OSError | ValueError) -> str:
    """Return advice for an error that prevents writing a file or its folder."""
    return _WRITE_HINTS.get(getattr(error, "errno", None) or 0, "make the directory writable")


def _stat_or_none(
    folder: _WrittenFolder, name: str, *, follow_symlinks: bool = True
) -> os.stat_result | None:
    """Return the status of a name in a folder; None if it does not exist or is a broken link."""
    try:
        return os.stat(folder.at(name), dir_fd=folder.handle, follow_symlinks=follow_symlinks)
    except OSError:
        return None


def _refuse_special(folder: _WrittenFolder, name: str) -> None:
    """Raise OSError if a name is a device, a pipe or a socket, or a link to one."""
    found = _stat_or_none(folder, name)
    kind = stat.S_IFREG if found is None else stat.S_IFMT(found.st_mode)
    if kind not in (stat.S_IFREG, stat.S_IFDIR):
        raise OSError(errno.EINVAL, f"is {_KINDS.get(kind, 'a device')}, not a regular file", name)


def _write_and_sync(handle: int, data: bytes, mode: int) -> None:
    """Write the whole data to an open file, set its mode, and sync it to disk."""
    if hasattr(os, "fchmod"):
        os.fchmod(handle, mode)
    rest = memoryview(data)
    while rest:
        written = os.write(handle, rest)
        if not written:
            raise OSError(errno.EIO, "the disk took no bytes")
        rest = rest[written:]
    os.fsync(handle)


class FolderLock:
    """A lock on a folder that excludes all other threads and processes.

    A writer locks the folder, reads the file, and writes it, so that no concurrent change is lost. The lock is
    advisory. Some systems and file systems do not support it, and it has no effect there. The folder must exist. Raise
    OSError if it cannot be opened.
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
