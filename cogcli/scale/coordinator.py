"""The coordinator of a batch: it sends lines to an executor, and writes ledger and output
(docs/reference/batch.md#order).

1. It alone writes the ledger and the output. For each line: the episode is sealed, then the ledger entry is written,
   then the row. After a kill, the later is made from the earlier.
2. A line whose episode another process holds is sent again after 1 s, then after twice as long, up to 60 s.
3. A line whose worker died is sent again, and claims what the worker left. After three deaths it ends as failed.
4. An archived episode has no sync of its own. Its entry follows a sync of the archives, which many lines share.
5. On a signal sending stops. Running lines get a grace period, then they are left as they are, to be resumed.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from typing import Final, Protocol

from cogcli.base.errors import NO, CogcliError
from cogcli.scale.executor import (
    BatchStopped,
    Completion,
    Executor,
    LineBusy,
    LineEnded,
    LineLost,
)
from cogcli.scale.identity import LineTask
from cogcli.scale.ledger import LedgerEntry
from cogcli.scale.line_result import LineResult, unsealed_result
from cogcli.scale.pacing import FailureLimit, ServicePause
from cogcli.scale.rates import ServiceRates
from cogcli.scale.totals import Totals

GRACE: Final = 5.0
_TICK: Final = 0.25
"""Seconds between two looks at signals, pauses and the display."""
_MOST_DEATHS: Final = 3
_SYNC_EVERY: Final = 0.5
"""Seconds between two syncs of the archives."""
_MOST_UNSYNCED: Final = 500
_FIRST_WAIT: Final = 1.0
_LONGEST_WAIT: Final = 60.0


class EntryLog(Protocol):
    """A receiver of ledger entries."""

    def append(self, entry: LedgerEntry) -> None:
        """Write one entry. Raise UnusableEnvironment `env.disk`."""
        ...


class Rows(Protocol):
    """A receiver of the rows of lines."""

    def add(self, line: int, row: bytes) -> None:
        """Write the row of a line. Raise UnusableEnvironment `env.disk`."""
        ...

    def may_send(self, line: int) -> bool:
        """Return whether a line may run now."""
        ...


class EpisodeKeeper(Protocol):
    """Stores the episodes of lines."""

    def sync(self, archives: set[str]) -> None:
        """Make the episodes in these archives survive a power loss. Raise UnusableEnvironment `env.disk`."""
        ...

    def prepare_episode(self, entry: LedgerEntry) -> None:
        """Prepare the episode of the line whose entry is written next. Raise UnusableEnvironment `env.disk`."""
        ...

    def move(self) -> None:
        """Move episodes whose entries are written, if there are enough. Raise UnusableEnvironment `env.disk`."""
        ...


class BatchObserver(Protocol):
    """The display of a batch."""

    def begin(self, lines: int, ended: int) -> None:
        """Receive the number of lines, and the number of lines that had ended before."""
        ...

    def update(self, totals: Totals, *, force: bool = False) -> None:
        """Show the present counts."""
        ...

    def note(self, text: str) -> None:
        """Show one line of text."""
        ...


class StopSignals:
    """The signals that a batch received. A signal handler calls `press`."""

    def __init__(self) -> None:
        self.signals: list[str] = []

    def press(self, signal: str) -> None:
        """Stop sending, or at the second call stop at once."""
        self.signals.append(signal)

    @property
    def is_urgent(self) -> bool:
        """Whether running lines get no more time."""
        return len(self.signals) > 1


class Coordinator:
    """Runs the lines of one shard that have no result yet."""

    def __init__(
        self,
        executor: Executor,
        ledger: EntryLog,
        rows: Rows,
        totals: Totals,
        observer: BatchObserver,
        stop: StopSignals,
        *,
        limit: FailureLimit | None = None,
        pause: ServicePause | None = None,
        rates: ServiceRates | None = None,
        keeper: EpisodeKeeper | None = None,
        clock: Callable[[], float] = time.monotonic,
        flush: Callable[[], None] = lambda: None,
    ) -> None:
        self._executor = executor
        self._ledger = ledger
        self._rows = rows
        self._totals = totals
        self._observer = observer
        self._stop = stop
        self._limit = limit
        self._pause = pause or ServicePause()
        self._rates = rates or ServiceRates({})
        self._keeper = keeper
        self._clock = clock
        self._flush = flush
        self._unsynced: list[LineResult] = []
        """Results whose episodes are in archives that may not be on disk yet."""
        self._synced_at = clock()
        self._waiting: list[tuple[float, int, float, LineTask]] = []
        """Busy lines: when to send again, the line, the last wait, and the task."""
        self._waits: dict[int, float] = {}
        self._to_resend: list[LineTask] = []
        """Lines whose worker died."""
        self._deaths: Counter[int] = Counter()
        self._error: CogcliError | None = None
        self.was_limited = False
        """Whether `--max-failures` stopped sending."""

    def run(self, tasks: Iterator[LineTask]) -> None:
        """Send the lines until all have ended, or until sending stops. Raise CogcliError for an error that concerns
        the whole batch, after the running lines ended.
        """
        upcoming = _Lookahead(tasks)
        while not self._is_stopping():
            self._submit_lines(upcoming)
            if not self._has_work(upcoming):
                break
            self._apply_completions(self._seconds_to_wait())
        if self._is_stopping():
            self._executor.cancel()
            self._await_running()
        self._record_unsynced()
        self._flush()
        self._observer.update(self._totals, force=True)
        if self._error is not None:
            raise self._error

    def _is_stopping(self) -> bool:
        return bool(self._stop.signals) or self.was_limited or self._error is not None

    def _has_work(self, upcoming: _Lookahead) -> bool:
        has_unsent_lines = bool(self._waiting or self._to_resend) or upcoming.peek() is not None
        return has_unsent_lines or self._executor.running > 0

    def _seconds_to_wait(self) -> float:
        due = self._waiting[0][0] - self._clock() if self._waiting else _TICK
        if self._executor.free > 0:
            due = min(due, self._rates.seconds_left() or _TICK)
        return min(max(due, 0.001), _TICK)

    # -- sending -------------------------------------------------------------------------------------------------------

    def _submit_lines(self, upcoming: _Lookahead) -> None:
        """Submit lines while the executor has room."""
        now = self._clock()
        if self._pause.seconds_left(now):
            return
        while self._executor.free > 0 and not self._is_stopping():
            if self._rates.seconds_left():
                return
            task = self._next_task(upcoming, now)
            if task is None:
                self._rates.rest()
                return
            self._rates.reserve(task.line)
            self._executor.submit(task)

    def _next_task(self, upcoming: _Lookahead, now: float) -> LineTask | None:
        if self._to_resend:
            return self._to_resend.pop(0)
        if self._waiting and self._waiting[0][0] <= now:
            return heappop(self._waiting)[3]
        task = upcoming.peek()
        if task is None or not self._rows.may_send(task.line):
            return None
        return upcoming.take()

    # -- results -------------------------------------------------------------------------------------------------------

    def _apply_completions(self, seconds: float) -> None:
        """Wait at most `seconds` for completions of the executor, and apply them."""
        for completion in self._executor.completed(seconds):
            self._apply_completion(completion)
        is_due = self._clock() - self._synced_at >= _SYNC_EVERY
        if is_due or len(self._unsynced) >= _MOST_UNSYNCED:
            self._record_unsynced()
        if self._keeper is not None:
            self._keeper.move()
        self._flush()
        self._observer.update(self._totals)

    def _apply_completion(self, completion: Completion) -> None:
        match completion:
            case LineEnded(task, result):
                self._waits.pop(task.line, None)
                self._rates.settle(task.line, result.calls, result.held)
                self._record_result(result)
            case LineBusy(task):
                self._rates.settle(task.line, {})
                self._retry_later(task)
            case LineLost(task):
                self._rates.settle(task.line, {})
                self._repeat_lost(task)
            case BatchStopped(_, error):
                self._error = self._error or error

    def _record_result(self, result: LineResult) -> None:
        """Write the entry and the row of a line, immediately or after the next sync of the archives."""
        if result.entry.archive:
            self._unsynced.append(result)
        else:
            self._write_result(result)

    def _record_unsynced(self) -> None:
        """Sync the archives, then write the entries and rows of the episodes in them."""
        results, self._unsynced = self._unsynced, []
        if results and self._keeper is not None:
            self._keeper.sync({result.entry.archive for result in results})
        for result in results:
            self._write_result(result)
        self._synced_at = self._clock()

    def _write_result(self, result: LineResult) -> None:
        """Write the entry and the row of a line."""
        entry = result.entry
        is_repeated = self._totals.pending.get(entry.line) == entry
        if not self._totals.apply(entry):
            return
        if self._keeper is not None:
            self._keeper.prepare_episode(entry)
        if not is_repeated:
            self._ledger.append(entry)
        self._rows.add(entry.line, result.row)
        if service := self._pause.apply(result, self._clock()):
            seconds = round(self._pause.seconds_left(self._clock()))
            self._observer.note(f"`{service}` does not answer: nothing is sent for {seconds} s")
        limit = self._limit
        if limit is not None and limit.is_exceeded(self._totals.failed, self._totals.ended):
            self.was_limited = True

    def _retry_later(self, task: LineTask) -> None:
        wait = min(2 * self._waits.get(task.line, _FIRST_WAIT / 2), _LONGEST_WAIT)
        self._waits[task.line] = wait
        heappush(self._waiting, (self._clock() + wait, task.line, wait, task))

    def _repeat_lost(self, task: LineTask) -> None:
        self._deaths[task.line] += 1
        if self._deaths[task.line] < _MOST_DEATHS:
            self._to_resend.append(task)
            return
        error = {
            "code": "batch.worker-died",
            "message": f"line {task.line} ended {_MOST_DEATHS} worker processes",
            "hint": "its episode shows the call that did it; the other lines are not affected",
        }
        self._record_result(unsealed_result(task, None, "error", NO, error))

    def _await_running(self) -> None:
        """Collect the results of running lines for a grace period, or until a second signal."""
        end = self._clock() + GRACE if self._stop.signals else float("inf")
        while self._executor.running and self._clock() < end and not self._stop.is_urgent:
            if self._stop.signals:
                end = min(end, self._clock() + GRACE)
            self._apply_completions(min(_TICK, max(end - self._clock(), 0.01)))


class _Lookahead:
    """An iterator of lines whose next one can be looked at."""

    def __init__(self, tasks: Iterator[LineTask]) -> None:
        self._tasks = tasks
        self._next: LineTask | None = None

    def peek(self) -> LineTask | None:
        """Return the next line; None at the end."""
        if self._next is None:
            self._next = next(self._tasks, None)
        return self._next

    def take(self) -> LineTask | None:
        """Return the next line, and advance to the one after it."""
        task, self._next = self.peek(), None
        return task
