"""One live run per conversation: a lock file next to `memory.db` (docs/reference/user-memory.md#sessions)."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from cogcli.base.canonical import digest_of
from cogcli.base.errors import UnusableEnvironment
from cogcli.base.file_lock import lock
from cogcli.episode.folder import Folder

WAIT_SECONDS: Final = 10.0
_PAUSE: Final = 0.05


@contextmanager
def session_lock(store: Path, tenant_id: str, user_id: str, session_id: str) -> Iterator[None]:
    """Hold the exclusive lock of a conversation in the `with` block. The lock file's name is a hash, and the file is
    removed afterwards.

    Raise UnusableEnvironment `session.busy` if another run holds the lock for more than ten seconds, or `env.disk` if
    locking is impossible.
    """
    name = digest_of([tenant_id, user_id, session_id]).removeprefix("sha256:")[:32]
    path = store.with_name(f"{store.name}.session-{name}")
    deadline = time.monotonic() + WAIT_SECONDS
    try:
        Folder.open(store.parent, make=True).close()
        while (handle := _try_lock(path)) < 0:
            if time.monotonic() >= deadline:
                raise _busy_error(session_id)
            time.sleep(_PAUSE)
    except OSError as error:
        text = f"{path}: {error.strerror or error}"
        raise UnusableEnvironment(
            "env.disk", text, hint="sessions need a directory with locks"
        ) from error
    try:
        yield
    finally:
        # Windows cannot remove an open file: there it stays, which is harmless.
        with suppress(PermissionError):
            # While it is held: a process that waits for this file then opens another one.
            path.unlink(missing_ok=True)
        os.close(handle)


def _try_lock(path: Path) -> int:
    """Return a handle that holds the lock, or -1 if another process holds it. Raise OSError."""
    handle = os.open(path, os.O_CREAT | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0), 0o600)
    try:
        lock(handle, wait=False)
        if os.fstat(handle).st_ino == os.stat(path).st_ino:
            return handle
    except (BlockingIOError, FileNotFoundError):
        pass
    except OSError:
        os.close(handle)
        raise
    os.close(handle)
    return -1


def _busy_error(session_id: str) -> UnusableEnvironment:
    return UnusableEnvironment(
        "session.busy",
        f"another run of session `{session_id}` is alive",
        hint="wait for it to end, or begin another session",
        next=("cogcli ls --outcome running",),
    )
