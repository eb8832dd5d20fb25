"""The threads in which calls run that the coordinator does not make itself."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from cogcli.base import threads
from cogcli.base.errors import TransportError


def no_thread_error() -> TransportError:
    """Return the error of a call for which the system had no thread. The call was never sent."""
    return TransportError(
        "call.transport",
        "the system gave no thread for the call",
        hint="fewer at once with --max-workers, or a higher limit of processes (ulimit -u) or memory (ulimit -v)",
        left=False,
    )


def perform(work: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    """Return the result of `work` and None, or None and the error that it raised."""
    try:
        return work(), None
    except BaseException as error:
        return None, no_thread_error() if threads.is_thread_shortage(error) else error


class CallThreads:
    """Daemon threads, started when none is idle. An abandoned thread never delays the exit of the process."""

    def __init__(self, inbox: SimpleQueue[tuple[object, Any, BaseException | None]]) -> None:
        self._inbox = inbox
        self._idle: deque[SimpleQueue[Any]] = deque()
        self._closed = False

    def submit(self, token: object, work: Callable[[], Any]) -> None:
        """Run `work` in a thread, which puts the token and the result into the inbox. Raise threads.NoThread."""
        try:
            jobs = self._idle.pop()
        except IndexError:
            jobs = SimpleQueue()
            threads.start(self._run_jobs, jobs, name="call")
        jobs.put((token, work))

    def _run_jobs(self, jobs: SimpleQueue[Any]) -> None:
        while (job := jobs.get()) is not None:
            token, work = job
            result, error = perform(work)
            self._idle.append(jobs)
            self._inbox.put((token, result, error))
            del job, work, result, error
            if self._closed:
                return

    def close(self) -> None:
        """End the idle threads. A busy thread ends when its call returns, or with the process."""
        self._closed = True
        while self._idle:
            self._idle.pop().put(None)
