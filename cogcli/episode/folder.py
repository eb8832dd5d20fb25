"""An open directory. Every file of an episode is reached through it by a plain name, never through a link.

1. The directory is opened once, by its real path, and no link is followed on the way. If the path changes later, names
   are still resolved in the opened directory.
2. Symbolic links are refused. FIFOs and devices are opened without blocking, and refused by the type of the open file.
3. Files are 0600 and directories 0700 under any umask; in a folder that is shared with a group 0660 and 2770. Whole
   files appear at once: temporary name, sync, rename, sync of the directory.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import TYPE_CHECKING, BinaryIO, Final

from cogcli.base.errors import UnusableEnvironment
from cogcli.base.file_lock import is_free
from cogcli.base.files import UnreadableFile
from cogcli.base.links import BY_DESCRIPTOR, open_directory

if TYPE_CHECKING:
    from pathlib import Path

_OPENED: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_DIRECTORY: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _OPENED
_READ: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_APPEND: Final = _READ | os.O_RDWR | os.O_APPEND
_CREATE: Final = os.O_CREAT | os.O_EXCL
SYNCED: Final = os.O_RDONLY if BY_DESCRIPTOR else os.O_RDWR
"""The flags to open a file only for a sync: Windows requires the right to write."""
_CHUNK: Final = 1 << 20
_FILE_MODES: Final = (0o600, 0o660)
_FOLDER_MODES: Final = (0o700, 0o2770)
"""The modes of new folders: private, and shared with a group."""
TEMPORARY: Final = ".tmp-"
"""The prefix of the names of temporary files."""

fdatasync = getattr(os, "fdatasync", os.fsync)


def disk_refusal(path: Path | str, error: OSError) -> UnusableEnvironment:
    """Return the error for a failed write."""
    return UnusableEnvironment(
        "env.disk",
        f"`{path}` cannot be written: {error.strerror or error}",
        hint="free space or make it writable; existing files stay readable",
    )


@contextlib.contextmanager
def disk_errors(path: Path | str) -> Iterator[None]:
    """Raise UnusableEnvironment `env.disk` about `path` for an OSError in the body."""
    try:
        yield
    except OSError as error:
        raise disk_refusal(path, error) from error


class Folder:
    """An open directory. Close it, or use it in a `with`."""

    def __init__(self, path: Path | str, fd: int | None, *, shared: bool = False) -> None:
        """`fd` is None on systems that do not open directories (`BY_DESCRIPTOR`)."""
        self.place = os.fspath(path)
        """Its path as text."""
        self.shared = shared
        """Whether the group may use new entries of the folder."""
        self.archive: Path | None = None
        """The archive that has its files. None for a directory on disk."""
        self._fd = fd

    @classmethod
    def open(cls, path: Path | str, *, make: bool = False, shared: bool = False) -> Folder:
        """Open the directory at `path`, no component of which may be a link. Raise OSError.

        `make` creates missing components. New files are readable by this user only, or `shared` with the group.
        """
        if BY_DESCRIPTOR:
            mode = _FOLDER_MODES[shared]
            return cls(path, open_directory(os.fspath(path), make=make, mode=mode), shared=shared)
        if make:
            os.makedirs(path, exist_ok=True)
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            raise NotADirectoryError(errno.ENOTDIR, "is not a directory", str(path))
        return cls(path, None, shared=shared)

    @property
    def path(self) -> Path:
        """Its path."""
        from pathlib import Path  # a run that ends well never asks for it

        return Path(self.place)

    def place_of(self, name: str) -> str:
        """Return the path of an entry as text."""
        return os.path.join(self.place, name)

    def sub(self, name: str) -> Folder:
        """Return a directory inside this one. Raise OSError."""
        if not BY_DESCRIPTOR:
            return Folder.open(self.place_of(name), shared=self.shared)
        fd = os.open(name, _DIRECTORY, dir_fd=self._fd)
        return Folder(self.place_of(name), fd, shared=self.shared)

    def _path_argument(self, name: str) -> str:
        """Return the path argument for an entry, relative to `dir_fd=self._fd`."""
        return name if BY_DESCRIPTOR else self.place_of(name)

    def descriptor(self, name: str, flags: int) -> int:
        """Open a file without following links, and return its descriptor. A created file is 0600. Raise OSError."""
        if not BY_DESCRIPTOR and stat.S_ISLNK(self._entry_mode(name)):
            raise OSError(errno.ELOOP, "is a symbolic link")
        return os.open(self._path_argument(name), flags | _OPENED, 0o600, dir_fd=self._fd)

    def names(self) -> list[str]:
        """Return every name in the directory. Raise OSError."""
        return os.listdir(self.place if self._fd is None else self._fd)

    def unlink(self, name: str) -> None:
        """Remove a file. Raise OSError."""
        os.unlink(self._path_argument(name), dir_fd=self._fd)

    def remove_directory(self, name: str) -> None:
        """Remove an empty directory. Raise OSError."""
        os.rmdir(self._path_argument(name), dir_fd=self._fd)

    def rename(self, name: str, new: str) -> None:
        """Rename a file or directory within this one. A file with the new name is replaced. Raise OSError."""
        os.replace(
            self._path_argument(name),
            self._path_argument(new),
            src_dir_fd=self._fd,
            dst_dir_fd=self._fd,
        )

    def sync(self) -> None:
        """Sync the directory, if the system can. Raise OSError."""
        if self._fd is not None:
            os.fsync(self._fd)

    def make(self, name: str) -> Folder:
        """Return a new directory inside this one. Raise OSError, including FileExistsError."""
        os.mkdir(self._path_argument(name), 0o700, dir_fd=self._fd)
        made = self.sub(name)
        if made._fd is not None:
            os.fchmod(made._fd, _FOLDER_MODES[self.shared])
        return made

    def close(self) -> None:
        """Close the directory; may be called twice."""
        if self._fd is not None and self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def entries(self) -> dict[str, os.stat_result]:
        """Return every name in the directory with its stat result, links not followed, sorted by name."""
        found = {}
        for name in sorted(self.names()):
            with contextlib.suppress(FileNotFoundError):
                found[name] = os.stat(
                    self._path_argument(name), dir_fd=self._fd, follow_symlinks=False
                )
        return found

    def holds(self, name: str) -> bool:
        """Return whether a regular file has this name."""
        return stat.S_ISREG(self._entry_mode(name))

    def holds_directory(self, name: str) -> bool:
        """Return whether a directory has this name. A link to one is not a directory."""
        return stat.S_ISDIR(self._entry_mode(name))

    def _entry_mode(self, name: str) -> int:
        """Return the mode of an entry without following links; 0 if it is unknown."""
        try:
            return os.stat(
                self._path_argument(name), dir_fd=self._fd, follow_symlinks=False
            ).st_mode
        except OSError:
            return 0

    def create(self, name: str, flags: int) -> int:
        """Return the descriptor of a new file. Raise OSError."""
        fd = self.descriptor(name, _CREATE | flags)
        if BY_DESCRIPTOR:
            os.fchmod(fd, _FILE_MODES[self.shared])
        return fd

    def open_file(self, name: str, *, appending: bool = False) -> int:
        """Return the descriptor of a regular file, for reading, or for appending too. Raise UnreadableFile."""
        place = self.place_of(name)
        try:
            fd = self.descriptor(name, _APPEND if appending else _READ)
        except FileNotFoundError as error:
            raise UnreadableFile(place, "missing", "does not exist") from error
        except OSError as error:
            if stat.S_ISLNK(self._entry_mode(name)):
                raise UnreadableFile(place, "not-regular", "is a symbolic link") from error
            doing = "written" if appending else "read"
            raise UnreadableFile(
                place, "unreadable", f"cannot be {doing}: {error.strerror}"
            ) from error
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise UnreadableFile(place, "not-regular", "is not a regular file")
        return fd

    def open_reader(self, name: str) -> BinaryIO:
        """Return a regular file, open for reading at any place. Raise UnreadableFile."""
        return open(self.open_file(name), "rb", buffering=0)

    def is_locked(self, name: str) -> bool:
        """Return whether a process holds the lock of a file. For a log that is the process of its live run."""
        try:
            fd = self.open_file(name)
        except UnreadableFile:
            return False
        try:
            return not is_free(fd)
        finally:
            os.close(fd)

    def size(self, name: str) -> int:
        """Return the size of a regular file in bytes. Raise UnreadableFile."""
        fd = self.open_file(name)
        try:
            return os.fstat(fd).st_size
        finally:
            os.close(fd)

    def chunks(
        self, name: str, wait: Callable[[], None] | None = None
    ) -> Generator[bytes, None, None]:
        """Yield the bytes of a regular file in chunks. Raise UnreadableFile.

        With `wait`, follow the file while a process holds its lock, and call `wait` whenever the file has no new bytes.
        """
        fd = self.open_file(name)
        try:
            while True:
                # Before the reading, so that the last bytes of the run are still read.
                alive = wait and self.is_locked(name)
                while chunk := os.read(fd, _CHUNK):
                    yield chunk
                if not (wait and alive):
                    return
                wait()
        except OSError as error:
            why = f"cannot be read: {error.strerror}"
            raise UnreadableFile(self.place_of(name), "unreadable", why) from error
        finally:
            os.close(fd)

    def read_range(self, name: str, start: int, end: int) -> Iterator[bytes]:
        """Yield the bytes of a regular file from `start` to `end`, in chunks. Raise UnreadableFile, OSError."""
        fd = self.open_file(name)
        try:
            while start < end:
                chunk = read_at(fd, min(_CHUNK, end - start), start)
                if not chunk:
                    raise OSError(f"{name} is shorter than it was")
                start += len(chunk)
                yield chunk
        finally:
            os.close(fd)

    def read(self, name: str, *, limit: int) -> bytes:
        """Return all bytes of a regular file of at most `limit` bytes.

        The size is checked before the file is read. Raise UnreadableFile.
        """
        place, parts, size = self.place_of(name), [], 0
        if (there := self.size(name)) > limit:
            raise UnreadableFile(
                place, "too-large", f"has {there:,} bytes, at most {limit:,} are read"
            )
        for chunk in self.chunks(name):
            size += len(chunk)
            if size > limit:
                raise UnreadableFile(place, "too-large", f"has more than {limit:,} bytes")
            parts.append(chunk)
        return b"".join(parts)

    def replace(self, name: str, data: bytes | Iterable[bytes], *, sync: bool = True) -> None:
        """Atomically replace the content of a file with `data`, or with its chunks. Raise UnusableEnvironment
        `env.disk`.
        """
        temporary = f"{TEMPORARY}{os.urandom(8).hex()}"
        try:
            fd = self.create(temporary, os.O_WRONLY)
            try:
                for chunk in (data,) if isinstance(data, bytes) else data:
                    write_all(fd, chunk)
                if sync:
                    os.fsync(fd)
            finally:
                os.close(fd)
            self.rename(temporary, name)
            if sync:
                self.sync()
        except OSError as error:
            with contextlib.suppress(OSError):
                self.unlink(temporary)
            raise disk_refusal(self.place_of(name), error) from error

    def remove_files(self, beginning: str = "") -> None:
        """Remove the regular files whose names have this prefix. Raise OSError."""
        for name, found in self.entries().items():
            if name.startswith(beginning) and stat.S_ISREG(found.st_mode):
                self.unlink(name)

    def sync_with_parent(self) -> None:
        """Sync the directory and its entry in the parent directory. Raise OSError."""
        self.sync()
        if not BY_DESCRIPTOR:
            return
        above = os.open("..", _DIRECTORY, dir_fd=self._fd)
        try:
            os.fsync(above)
        finally:
            os.close(above)


def read_at(fd: int, size: int, offset: int) -> bytes:
    """Return at most `size` bytes from an offset on. Raise OSError."""
    os.lseek(fd, offset, os.SEEK_SET)
    return os.read(fd, size)


def write_all(fd: int, data: bytes) -> None:
    """Write every byte, with several writes if necessary. Raise OSError."""
    written = os.write(fd, data)
    if written == len(data):
        return
    rest = memoryview(data)[written:]
    while rest:
        written = os.write(fd, rest)
        if not written:
            raise OSError("the disk took no bytes")
        rest = rest[written:]
