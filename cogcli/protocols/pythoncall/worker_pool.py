"""The worker processes of a run: a limited number, each for one service and one call at a time
(docs/reference/protocols.md#worker).

A worker never serves two services: the changes that one module makes to its interpreter must not reach another.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from cogcli.base.errors import CallTimeoutError, TransportError
from cogcli.protocols.invoker import CallLimits
from cogcli.protocols.pythoncall.module_access import Code
from cogcli.protocols.pythoncall.sandbox_files import SandboxFiles
from cogcli.protocols.pythoncall.worker_process import ENDING_SECONDS, Worker


class WorkerPool:
    """Starts workers on demand and keeps them until the run ends."""

    def __init__(
        self, environ: Mapping[str, str], limit: int, mask_text: Callable[[str], str] = str
    ) -> None:
        self._environ = environ
        self._mask_text = mask_text
        self._limit = limit
        self._changed = threading.Condition()
        self._idle: list[Worker] = []
        self._busy = 0
        self._all: set[Worker] = set()
        self._closed = False

    @contextmanager
    def borrow(
        self, code: Code, limits: CallLimits, sandbox: SandboxFiles | None = None
    ) -> Iterator[Worker]:
        """Lend a worker of the service, an idle one if possible.

        With `sandbox` it is a new one that can read these files and serves only this call. Raise
        TransportError or CallTimeoutError."""
        with limits.cancel.on_cancel(self._wake_waiting):
            idle, superfluous = self._claim_slot(code, limits)
        for worker in superfluous:
            self._end_worker(worker)
        try:
            worker = idle or self._start_worker(code, sandbox)
        except BaseException:
            self._give_back(None)
            raise
        try:
            yield worker
        finally:
            self._give_back(worker, is_reusable=sandbox is None)

    def close(self, grace: float) -> None:
        """Kill every worker, busy ones too, and wait until all have ended.

        The thread of a busy worker's call notices the end and closes its descriptors, as only the
        reading thread may."""
        with self._changed:
            self._closed = True
            idle, self._idle = self._idle, []
            self._changed.notify_all()
            for worker in self._all:
                worker.kill()
        for worker in idle:
            self._end_worker(worker)
        with self._changed:
            self._changed.wait_for(lambda: not self._all, grace + ENDING_SECONDS)

    def _claim_slot(self, code: Code, limits: CallLimits) -> tuple[Worker | None, list[Worker]]:
        """Count one more worker as busy; return an idle worker of the service, if any, and the idle
        workers to end for it."""
        with self._changed:
            self._wait_until_free(limits)
            self._busy += 1
            superfluous = [worker for worker in self._idle if not worker.is_quiet]
            self._idle = [worker for worker in self._idle if worker not in superfluous]
            idle = next((worker for worker in reversed(self._idle) if worker.code == code), None)
            if idle is not None:
                self._idle.remove(idle)
            elif self._busy + len(self._idle) > self._limit:
                superfluous.append(self._idle.pop(0))
            return idle, superfluous

    def _wait_until_free(self, limits: CallLimits) -> None:
        """Wait for a place below the limit, holding the lock."""
        while not self._closed and not limits.cancel.is_set and self._busy >= self._limit:
            rest = limits.deadline - time.monotonic()
            if rest <= 0:
                raise CallTimeoutError("call.timeout", "no worker was free in time", left=False)
            self._changed.wait(rest)
        if self._closed or limits.cancel.is_set:
            raise TransportError(
                "call.transport", "no caller waits for this call any more", left=False
            )

    def _start_worker(self, code: Code, sandbox: SandboxFiles | None) -> Worker:
        worker = Worker(code, self._environ, self._mask_text, sandbox)
        with self._changed:
            self._all.add(worker)
            closed = self._closed
        if closed:
            worker.kill()
        return worker

    def _give_back(self, worker: Worker | None, *, is_reusable: bool = True) -> None:
        with self._changed:
            self._busy -= 1
            keep = is_reusable and worker is not None and worker.is_alive and not self._closed
            if worker is not None and keep:
                self._idle.append(worker)
            self._changed.notify()
        if worker is not None and not keep:
            self._end_worker(worker)

    def _end_worker(self, worker: Worker) -> None:
        worker.end()
        with self._changed:
            self._all.discard(worker)
            self._changed.notify_all()

    def _wake_waiting(self) -> None:
        with self._changed:
            self._changed.notify_all()
