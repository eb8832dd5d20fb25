"""Starts threads, and defines the error if the system has none left."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

_SAID: Final = "can't start new thread"


class NoThread(Exception):
    """The system cannot start another thread. The work has not begun."""


def start(work: Callable[..., None], *arguments: Any, name: str) -> None:
    """Run `work` on a new daemon thread. Raise NoThread if the system refuses one."""
    try:
        threading.Thread(target=work, args=arguments, name=name, daemon=True).start()
    except RuntimeError as error:
        raise NoThread(_SAID) from error


def is_thread_shortage(error: BaseException) -> bool:
    """Return whether an error reports that no thread could be started."""
    return isinstance(error, NoThread) or (isinstance(error, RuntimeError) and _SAID in str(error))
