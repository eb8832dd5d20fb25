"""Starting threads, and what it means that the system gives none."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

_SAID: Final = "can't start new thread"


class NoThread(Exception):
    """The system gave no thread: what it was for has not begun."""


def start(work: Callable[..., None], *arguments: Any, name: str) -> None:
    """Begin `work` on a daemon thread of its own. Raises NoThread."""
    try:
        threading.Thread(target=work, args=arguments, name=name, daemon=True).start()
    except RuntimeError as error:
        raise NoThread(_SAID) from error


def is_lacking(error: BaseException) -> bool:
    """Whether an error says that there was no thread, whoever asked for one."""
    return isinstance(error, NoThread) or (isinstance(error, RuntimeError) and _SAID in str(error))
