"""The worker processes of a run: at most so many, each for one service, lent for one call at a time
(docs/reference/protocols.md#worker).

A worker never serves two services: what one module does to its interpreter is not the other's business.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from cogcli.core.errors import CallTimeoutError, TransportError
from cogcli.protocols.invoker import CallLimits
from cogcli.protocols.pythoncall.module_access import Code
from cogcli.protocols.pythoncall.worker_process import ENDING_SECONDS, Worker


class Workers:
    """Starts workers when they are needed and keeps them until the run ends."""

    def __init__(self, environ: Mapping[str, str], limit: int) -> None:
        self._environ = environ
        self._limit = limit
        self._changed = threading.Condition()
        self._idle: list[Worker] = []
        self._busy = 0
        self._all: set[Worker] = set()
        self._closed = False

    @contextmanager
    def lent(self, code: Code, context: CallLimits) -> Iterator[Worker]:
        """A worker of the service, a kept one if there is one. Raises TransportError, CallTimeoutError."""
        with context.cancel.told(self._wake):
            kept, superfluous = self._claimed(code, context)
        for worker in superfluous:
            self._gone(worker)
        try:
            worker = kept or self._started(code)
        except BaseException:
            self._given_back(None)
            raise
        try:
            yield worker
        finally:
            self._given_back(worker)

    def close(self, grace: float) -> None:
        """End every worker, those that are called too, and wait until nothing is left of them.

        Whoever calls one sees its end, and clears away what belongs to it: nobody else may close what is read from.
        """
        with self._changed:
            self._closed = True
            idle, self._idle = self._idle, []
            self._changed.notify_all()
            for worker in self._all:
                worker.kill()
        for worker in idle:
            self._gone(worker)
        with self._changed:
            self._changed.wait_for(lambda: not self._all, grace + ENDING_SECONDS)

    def _claimed(self, code: Code, context: CallLimits) -> tuple[Worker | None, list[Worker]]:
        """A place among the busy ones, with an idle worker of the service if any; and those to be ended for it."""
        with self._changed:
            while not self._closed and not context.cancel.is_set and self._busy >= self._limit:
                rest = context.deadline - time.monotonic()
                if rest <= 0:
                    raise CallTimeoutError("call.timeout", "no worker was free in time", left=False)
                self._changed.wait(rest)
            if self._closed or context.cancel.is_set:
                raise TransportError("call.transport", "nobody waits for this call any more", left=False)
            self._busy += 1
            superfluous = [worker for worker in self._idle if not worker.is_quiet]
            self._idle = [worker for worker in self._idle if worker not in superfluous]
            kept = next((worker for worker in reversed(self._idle) if worker.code == code), None)
            if kept is not None:
                self._idle.remove(kept)
            elif self._busy + len(self._idle) > self._limit:
                superfluous.append(self._idle.pop(0))
            return kept, superfluous

    def _started(self, code: Code) -> Worker:
        worker = Worker(code, self._environ)
        with self._changed:
            self._all.add(worker)
            closed = self._closed
        if closed:
            worker.kill()
        return worker

    def _given_back(self, worker: Worker | None) -> None:
        with self._changed:
            self._busy -= 1
            keep = worker is not None and worker.is_alive and not self._closed
            if worker is not None and keep:
                self._idle.append(worker)
            self._changed.notify()
        if worker is not None and not keep:
            self._gone(worker)

    def _gone(self, worker: Worker) -> None:
        worker.end()
        with self._changed:
            self._all.discard(worker)
            self._changed.notify_all()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()
