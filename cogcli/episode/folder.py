"""One open directory: every file of an episode is reached through it, by a plain name, never through a link.

1. The directory is opened once; whatever happens to its path later, names are resolved inside what was opened.
2. Symbolic links are refused, FIFOs and devices never waited for: opened without blocking, judged by what was opened.
3. Files are 0600 and directories 0700 whatever the umask. Whole files appear at once: temporary name, sync, rename,
   sync of the directory.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Final

from cogcli.core.errors import EnvironmentRefusal
from cogcli.core.files import FileRefused

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_APPEND: Final = _READ | os.O_RDWR | os.O_APPEND
_CREATE: Final = os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_CHUNK: Final = 1 << 20
TEMPORARY: Final = ".tmp-"
"""How the names of files that are not in place yet begin."""

fdatasync = getattr(os, "fdatasync", os.fsync)


def disk_refusal(path: Path | str, error: OSError) -> EnvironmentRefusal:
    """A failed write as the error that users see."""
    return EnvironmentRefusal(
        "env.disk",
        f"`{path}` cannot be written: {error.strerror or error}",
        hint="free space or make it writable; what is there stays readable",
    )


@contextlib.contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Raise EnvironmentRefusal `env.disk` about `path` for an OSError in the body."""
    try:
        yield
    except OSError as error:
        raise disk_refusal(path, error) from error


class Folder:
    """An open directory. Close it, or use it in a `with`."""

    def __init__(self, path: Path, fd: int) -> None:
        self.path = path
        self.fd = fd

    @classmethod
    def open(cls, path: Path) -> Folder:
        """The directory at `path`; its last component may be no link. Raises OSError."""
        return cls(path, os.open(path, _DIRECTORY))

    def sub(self, name: str) -> Folder:
        """A directory inside this one. Raises OSError."""
        return Folder(self.path / name, os.open(name, _DIRECTORY, dir_fd=self.fd))

    def make(self, name: str) -> Folder:
        """A new directory inside this one, 0700. Raises OSError, FileExistsError among them."""
        os.mkdir(name, 0o700, dir_fd=self.fd)
        made = self.sub(name)
        os.fchmod(made.fd, 0o700)
        return made

    def close(self) -> None:
        """Give the directory back; may be called twice."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def entries(self) -> dict[str, os.stat_result]:
        """Every name in the directory and what it is, links not followed, sorted by name."""
        found = {}
        for name in sorted(os.listdir(self.fd)):
            with contextlib.suppress(FileNotFoundError):
                found[name] = os.stat(name, dir_fd=self.fd, follow_symlinks=False)
        return found

    def holds(self, name: str) -> bool:
        """Whether a regular file of this name is there."""
        return stat.S_ISREG(self._mode(name))

    def _mode(self, name: str) -> int:
        """What a name is, links not followed; 0 where that cannot be seen."""
        try:
            return os.stat(name, dir_fd=self.fd, follow_symlinks=False).st_mode
        except OSError:
            return 0

    def create(self, name: str, flags: int) -> int:
        """The descriptor of a new file, 0600. Raises OSError."""
        fd = os.open(name, _CREATE | flags, 0o600, dir_fd=self.fd)
        os.fchmod(fd, 0o600)
        return fd

    def open_file(self, name: str, *, appending: bool = False) -> int:
        """The descriptor of a regular file, for reading, or for appending too. Raises FileRefused."""
        place = str(self.path / name)
        try:
            fd = os.open(name, _APPEND if appending else _READ, dir_fd=self.fd)
        except FileNotFoundError as error:
            raise FileRefused(place, "missing", "does not exist") from error
        except OSError as error:
            if stat.S_ISLNK(self._mode(name)):
                raise FileRefused(place, "not-regular", "is a symbolic link") from error
            doing = "written" if appending else "read"
            raise FileRefused(place, "unreadable", f"cannot be {doing}: {error.strerror}") from error
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise FileRefused(place, "not-regular", "is not a regular file")
        return fd

    def is_locked(self, name: str) -> bool:
        """Whether a process holds the lock of a file: of a log the process of its run, which is alive."""
        try:
            fd = self.open_file(name)
        except FileRefused:
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(fd)
        return False

    def size(self, name: str) -> int:
        """How many bytes a regular file has. Raises FileRefused."""
        fd = self.open_file(name)
        try:
            return os.fstat(fd).st_size
        finally:
            os.close(fd)

    def chunks(self, name: str, wait: Callable[[], None] | None = None) -> Generator[bytes, None, None]:
        """The bytes of a regular file, piece by piece. With `wait`, also what is written while a process holds its
        lock; `wait` is called while there is nothing new. Raises FileRefused."""
        fd = self.open_file(name)
        try:
            while True:
                alive = wait and self.is_locked(
                    name
                )  # before reading: what the run wrote last is then still read
                while chunk := os.read(fd, _CHUNK):
                    yield chunk
                if not (wait and alive):
                    return
                wait()
        except OSError as error:
            why = f"cannot be read: {error.strerror}"
            raise FileRefused(str(self.path / name), "unreadable", why) from error
        finally:
            os.close(fd)

    def read(self, name: str, *, limit: int) -> bytes:
        """All bytes of a regular file of at most `limit` bytes, whose size is asked first. Raises FileRefused."""
        place, parts, size = str(self.path / name), [], 0
        if (there := self.size(name)) > limit:
            raise FileRefused(place, "too-large", f"has {there:,} bytes, at most {limit:,} are read")
        for chunk in self.chunks(name):
            size += len(chunk)
            if size > limit:
                raise FileRefused(place, "too-large", f"has more than {limit:,} bytes")
            parts.append(chunk)
        return b"".join(parts)

    def replace(self, name: str, data: bytes, *, sync: bool = True) -> None:
        """Make `data` the whole content of a file, at once. Raises EnvironmentRefusal `env.disk`."""
        temporary = f"{TEMPORARY}{os.urandom(8).hex()}"
        try:
            fd = self.create(temporary, os.O_WRONLY)
            try:
                write_all(fd, data)
                if sync:
                    os.fsync(fd)
            finally:
                os.close(fd)
            os.rename(temporary, name, src_dir_fd=self.fd, dst_dir_fd=self.fd)
            if sync:
                os.fsync(self.fd)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=self.fd)
            raise disk_refusal(self.path / name, error) from error

    def remove_files(self, beginning: str = "") -> None:
        """Remove the regular files whose names begin so. Raises OSError."""
        for name, found in self.entries().items():
            if name.startswith(beginning) and stat.S_ISREG(found.st_mode):
                os.unlink(name, dir_fd=self.fd)

    def sync_with_parent(self) -> None:
        """Put the directory, and its own entry in the directory above, on disk. Raises OSError."""
        os.fsync(self.fd)
        above = os.open("..", _DIRECTORY, dir_fd=self.fd)
        try:
            os.fsync(above)
        finally:
            os.close(above)


def write_all(fd: int, data: bytes) -> None:
    """Write every byte, however many writes that takes. Raises OSError."""
    written = os.write(fd, data)
    if written == len(data):
        return
    rest = memoryview(data)[written:]
    while rest:
        written = os.write(fd, rest)
        if not written:
            raise OSError("the disk took no bytes")
        rest = rest[written:]
