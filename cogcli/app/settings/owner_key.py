"""The user's key: a secret file next to the configuration that identifies the user's own episodes
(docs/reference/episode.md#checkpoint).

1. The first run creates it exclusively, with mode 0600, and syncs it. Commands that only read
   episodes do not create it.
2. A key file that cannot be used (damaged, or readable by others) is left unchanged. Then no
   episode is known to be the user's until the user removes or repairs the file.
3. A process without a usable key file uses a temporary key, so that it recognizes the episodes that
   it wrote itself."""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Final

from cogcli.app.settings.user_dirs import config_home
from cogcli.base.files import FolderLock, UnreadableFile, read_regular, write_atomic
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.system_text import shell_word
from cogcli.episode.checkpoint import KEY_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping

NAME: Final = "episodes.key"
_TEXT: Final = re.compile(rf"[0-9a-f]{{{2 * KEY_BYTES}}}\n")


class OwnerKey(NamedTuple):
    """The key of a user, or the reason why it cannot be used.

    `missing`: whether no file exists. `cure`: how to make the key usable."""

    key: bytes | None
    problem: str = ""
    missing: bool = False
    cure: str = ""


def key_path(environ: Mapping[str, str]) -> str:
    """Return the path of the key file."""
    return os.path.join(config_home(environ), NAME)


def read_key(environ: Mapping[str, str]) -> OwnerKey:
    """Return the key in the user's file. The file is not created or changed."""
    path = key_path(environ)
    try:
        text = read_regular(path, limit=1024).decode("ascii", "replace")
        found = os.stat(path)
    except UnreadableFile as error:
        return OwnerKey(None, f"{path} {error.message}", error.reason == "missing")
    except OSError as error:
        return OwnerKey(None, f"{path} cannot be read: {error.strerror}")
    if not _TEXT.fullmatch(text):
        cure = f"rm {shell_word(path)}"
        return OwnerKey(
            None,
            f"{path} holds no key: it was damaged; without the file the next run makes a new one",
            cure=cure,
        )
    if hasattr(os, "geteuid"):  # Windows does not express permissions as a mode
        if found.st_uid != os.geteuid():
            return OwnerKey(None, f"{path} belongs to another user")
        if mode := stat.S_IMODE(found.st_mode) & (stat.S_IRWXG | stat.S_IRWXO):
            problem = f"{path} may be used by others (mode {mode:04o})"
            return OwnerKey(None, problem, cure=f"chmod 600 {shell_word(path)}")
    return OwnerKey(bytes.fromhex(text))


def find_key(environ: Mapping[str, str]) -> bytes:
    """Return the key with which this process recognizes episodes of the user."""
    return read_key(environ).key or _process_key()


def ensure_key(environ: Mapping[str, str]) -> bytes:
    """Return the key with which this process marks its episodes. Create the user's file if it does
    not exist."""
    found = read_key(environ)
    if found.missing:
        with suppress(OSError):  # a home that cannot be written to
            _create_key_file(key_path(environ))
        found = read_key(environ)
    return found.key or _process_key()


@cache
def _process_key() -> bytes:
    """Return a random key that only this process has."""
    return os.urandom(KEY_BYTES)


def _create_key_file(path: str) -> None:
    """Create the key file unless it exists. Raise OSError."""
    folder = os.path.dirname(path)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    with FolderLock(folder):
        if not os.path.lexists(path):
            write_atomic(path, os.urandom(KEY_BYTES).hex().encode() + b"\n", replace=False)
