"""Copies of accepted files in the user's state directory, by digest. They are compared with changed
files (docs/reference/service.md#trust).

The directory has mode 0700, and each copy 0600. A copy is used only if its content has its
digest."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from contextlib import suppress

from cogcli.app.settings.trust_digests import MAX_BYTES, digest_of_bytes, folder_name
from cogcli.app.settings.user_dirs import state_home
from cogcli.base.errors import UnusableEnvironment
from cogcli.base.files import UnreadableFile, hint_for_write, read_regular

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


class AcceptedCopies:
    """The copies of the accepted files of one project."""

    def __init__(self, project: str, environ: Mapping[str, str]) -> None:
        self._folder = os.path.join(state_home(environ), "trust", folder_name(project))

    def store(self, contents: Mapping[str, bytes]) -> None:
        """Store contents under their digests. Raise UnusableEnvironment `env.disk`."""
        try:
            os.makedirs(os.path.dirname(self._folder), mode=0o700, exist_ok=True)
            with suppress(FileExistsError):
                os.mkdir(self._folder, 0o700)
            for digest, data in contents.items():
                if self.read(digest) is None:
                    self._write_copy(self.path_of(digest), data)
        except OSError as error:
            raise UnusableEnvironment(
                "env.disk",
                f"{self._folder} cannot be written: {error.strerror}",
                hint=hint_for_write(error),
            ) from error

    def _write_copy(self, path: str, data: bytes) -> None:
        # Neither atomic nor synced: a copy that was cut short does not have its digest.
        with suppress(FileNotFoundError):
            os.unlink(path)
        with os.fdopen(os.open(path, _CREATE, 0o600), "wb") as file:
            file.write(data)

    def read(self, digest: str) -> bytes | None:
        """Return the content with a digest; None if no valid copy exists."""
        try:
            data = read_regular(self.path_of(digest), limit=MAX_BYTES)
        except UnreadableFile:
            return None
        return data if digest_of_bytes(data) == digest else None

    def has_copy(self, digest: str) -> bool:
        """Return whether a copy with a digest exists."""
        return os.path.isfile(self.path_of(digest))

    def remove_unaccepted_copies(self, accepted: Mapping[str, str]) -> None:
        """Remove all copies except the copies of accepted files."""
        names = {
            os.path.basename(self.path_of(digest.partition(" ")[0])) for digest in accepted.values()
        }
        with suppress(OSError):
            for name in os.listdir(self._folder):
                if name not in names:
                    os.unlink(os.path.join(self._folder, name))

    def remove(self) -> None:
        """Remove all copies."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def path_of(self, digest: str) -> str:
        """Return the path of the copy with a digest."""
        return os.path.join(self._folder, os.path.basename(digest.partition(":")[2]) or "none")
