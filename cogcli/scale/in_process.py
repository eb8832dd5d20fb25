"""The executor that runs lines in this process, one at a time, on a thread of its own.

The thread of the batch stays free for signals and for the display.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Final

from cogcli.base import threads
from cogcli.base.errors import UnusableEnvironment
from cogcli.scale.executor import Completion
from cogcli.scale.identity import LineTask

_WINDOW: Final = 2
"""Lines that are submitted at a time, so that the thread never waits for the next one."""
_ENDING_SECONDS: Final = 60.0
RunLine = Callable[[LineTask], Completion]


class InProcessExecutor:
    """Runs lines through `run_line`, on one thread."""

    name = "local"
    workers = 1

    def __init__(self, run_line: RunLine, finish: Callable[[], None] = lambda: None) -> None:
        """Start the thread, which calls `finish` at its end. Raise UnusableEnvironment `env.threads`."""
        self._run_line = run_line
        self._finish = finish
        self._finished = threading.Event()
        self._tasks: SimpleQueue[LineTask | None] = SimpleQueue()
        self._ends: SimpleQueue[Completion | BaseException] = SimpleQueue()
        self._closed = False
        self.running = 0
        try:
            threads.start(self._run_thread, name="batch")
        except threads.NoThread as error:
            text = "the system gave no thread for the lines of the batch"
            raise UnusableEnvironment("env.threads", text) from error

    @property
    def free(self) -> int:
        """The number of lines that can be submitted now."""
        return 0 if self._closed else _WINDOW - self.running

    def submit(self, task: LineTask) -> None:
        """Queue a line for execution."""
        self.running += 1
        self._tasks.put(task)

    def completed(self, seconds: float) -> list[Completion]:
        """Return the completions since the last call, or wait for the first. Raise an error of the thread."""
        found: list[Completion] = []
        with suppress(Empty):
            found.append(self._require_completion(self._ends.get(timeout=seconds)))
            while True:
                found.append(self._require_completion(self._ends.get_nowait()))
        return found

    def _require_completion(self, end: Completion | BaseException) -> Completion:
        """Return a completion; raise it if it is an exception."""
        if isinstance(end, BaseException):
            raise end
        self.running -= 1
        return end

    def cancel(self) -> list[LineTask]:
        """Remove and return the submitted lines that the thread has not begun."""
        found: list[LineTask] = []
        with suppress(Empty):
            while True:
                task = self._tasks.get_nowait()
                if task is not None:
                    found.append(task)
        self.running -= len(found)
        return found

    def close(self) -> None:
        """End the thread after its current line. If the process ends first, that line is interrupted. Raise an error of
        `finish`.
        """
        if self._closed:
            return
        self._closed = True
        self.cancel()
        self._tasks.put(None)
        if not self.running and self._finished.wait(_ENDING_SECONDS):
            self.completed(0)

    def _run_thread(self) -> None:
        """Run the submitted lines until the executor is closed."""
        try:
            while (task := self._tasks.get()) is not None:
                self._ends.put(self._run_line(task))
            self._finish()
        except BaseException as error:
            self._ends.put(error)
        finally:
            self._finished.set()
