"""Cooperative tasks: everything that decides runs as a generator on one coordinator thread.

1. A task yields an effect and is resumed with its result; only `Call` leaves the coordinator thread.
2. A call that is alone runs on the coordinator's own thread, without a hop. The thread that waits for the run watches
   it: past its deadline the baton passes to a new coordinator thread and the old one, when it returns, finds that it
   lost the baton and ends.
3. Other calls go to daemon threads. A call whose time is up is abandoned: its late result is dropped, its slot is free.
4. A task's deadline bounds everything below it: its children are cancelled first, then its error is thrown into it.
5. Over a log the recorded call with the lowest position is completed first, on the coordinator, without a thread. Live
   calls start where no recorded one is outstanding.
6. At most `workers` slots are held at a time, in the whole tree, first come first served.
7. The thread that waits for the run also says when a snapshot is due. The coordinator takes it between two completions;
   while the coordinator is in a call that it makes itself, the waiting thread takes it under the baton.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Generator
from heapq import heappop, heappush
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cogcli.base import memory_limit, threads
from cogcli.base.errors import TransportError

if TYPE_CHECKING:
    from cogcli.run.engine.ports import SnapshotWriter

Effects = Generator[Any, Any, Any]
"""A generator that yields effects."""

GRACE_SECONDS: Final = 5.0
_WATCH_SECONDS: Final = 0.05


class Cancelled(Exception):
    """Thrown into a task that has to end; it may still append events, but yields no further effect. `outside`: by a
    signal, a limit of time, or a log that is at its end, not by what ended beside it in its run."""

    def __init__(self, *, outside: bool = False) -> None:
        super().__init__()
        self.outside = outside


class Unanswered(Exception):
    """Raised by the work of a recorded call that never got an answer: it waits for what cancels it."""


class Interrupted(Exception):
    """Thrown into the root task once, when a signal asks the run to end."""

    def __init__(self, signal: str) -> None:
        super().__init__(signal)
        self.signal = signal


class WorkerSlot(NamedTuple):
    """Wait for one of the worker slots. It is given back when the task's next call ends."""


class WorkerCall(NamedTuple):
    """Do `work` off the coordinator; past `deadline` `late()` is raised in the task instead.

    `on_abandon` is called when the result will be dropped; it must not block. With a `position` it is a recorded call:
    `work` runs on the coordinator once nothing outstanding has a lower one.
    """

    work: Callable[[], Any]
    deadline: float
    late: Callable[[], Exception]
    on_abandon: Callable[[], None] | None = None
    position: float | None = None


class Turn(NamedTuple):
    """Wait until nothing outstanding has a lower position in the log."""

    position: float


class Sleep(NamedTuple):
    """Wait until a monotonic time. With a `position` it is one that the log has the end of: what cut it off there."""

    until: float
    position: float | None = None


class Spawn(NamedTuple):
    """Start a child task; gives the Task, already run up to its first wait."""

    steps: Effects
    label: Any = None
    deadline: float | None = None
    late: Callable[[], Exception] | None = None


class Next(NamedTuple):
    """Wait for the next child to end and give its Task. Gives None where `slot` is set as soon as a slot is free, at
    once where it is not and no child is left; gives None at `until`."""

    slot: bool = False
    until: float | None = None


class Park(NamedTuple):
    """Wait for a `Wake`. The task's own deadline no longer counts: it waits for other tasks."""


class Wake(NamedTuple):
    """Resume a parked task; no effect on any other."""

    task: Task


class Cancel(NamedTuple):
    """Cancel a child and all below it. Without `force` shielded calls end first. `force` is for what ends the run from
    outside."""

    task: Task
    force: bool = False


class Task:
    """One generator being driven. `result` or `error` is set once it is done."""

    __slots__ = (
        "call", "cancelling", "children", "deadline", "done", "ended", "error", "has_slot", "label", "late", "outside",
        "parent", "result", "shielded", "steps", "wait",
    )  # fmt: skip

    def __init__(self, steps: Effects, parent: Task | None, spawn: Spawn | None = None) -> None:
        self.steps = steps
        self.parent = parent
        self.label: Any = spawn.label if spawn else None
        self.deadline = spawn.deadline if spawn else None
        self.late = spawn.late if spawn else None
        self.children: dict[Task, None] = {}
        self.ended: deque[Task] = deque()
        self.wait: Any = None
        self.call: object | None = None
        self.has_slot = False
        self.shielded = False
        self.cancelling = False
        self.outside = False
        self.done = False
        self.result: Any = None
        self.error: BaseException | None = None


class Loop:
    """Drives one root task to its end."""

    _root: Task
    _current: Task

    def __init__(
        self, workers: int, *, live: bool = True, snapshots: SnapshotWriter | None = None
    ) -> None:
        """Without `live` every call is a recorded one: all runs on the thread of `run`, which never waits."""
        self._live = live
        self._snapshots = snapshots
        self._snapshot_due = False
        self._free = workers
        self._runnable: deque[tuple[Task, Any, BaseException | None]] = deque()
        self._waiting: deque[tuple[Task, WorkerCall]] = deque()
        self._slot_waiters: deque[tuple[Task, WorkerSlot | Next]] = deque()
        self._recorded: list[tuple[float, int, Task, WorkerCall | Turn | Sleep]] = []
        """A heap of what waits for its position in the log; the number keeps the order of equal ones."""
        self._recorded_before = 0
        self._in_flight: dict[object, tuple[Task, WorkerCall]] = {}
        self._timed: dict[Task, float] = {}
        self._inbox: SimpleQueue[tuple[object, Any, BaseException | None]] = SimpleQueue()
        self._memory = memory_limit.find_limit() if live else None
        self._pool = _Pool(self._inbox)
        self._finished = threading.Event()
        self._crash: BaseException | None = None
        self._baton = threading.Lock()
        self._epoch = 0
        self._inline_until: float | None = None
        self._signals: list[tuple[str, float]] = []
        self._interrupted = False

    # -- from outside -------------------------------------------------------------------------------------------------

    def run(self, root: Spawn) -> Any:
        """The root task's result. Its error is raised; blocks, and serves as the watchdog of calls made inline."""
        self._root = Task(root.steps, None, root)
        if root.deadline is not None:
            self._timed[self._root] = root.deadline
        self._runnable.append((self._root, None, None))
        if self._memory is not None:
            memory_limit.share_arena()
        if self._live:
            threads.start(self._coordinate, self._epoch, name="coordinator")
            while not self._finished.wait(_WATCH_SECONDS):
                self._watch()
                self._watch_snapshots()
        else:
            self._coordinate(self._epoch)
        self._pool.close()
        error = self._crash or self._root.error
        if error is not None:
            raise error
        return self._root.result

    def interrupt(self, signal: str) -> None:
        """Ask the run to end. May be called from a signal handler; a second call ends the grace period."""
        self._signals.append((signal, time.monotonic()))
        self._inbox.put((_SIGNAL, None, None))

    @property
    def signal(self) -> str | None:
        """The signal that asked the run to end, if one did."""
        return self._signals[0][0] if self._signals else None

    def honour(self) -> None:
        """Called when the root task ends the run for a signal: no `Interrupted` follows, its deadline no longer
        counts. Sleeping tasks are woken: they have no call to wait for."""
        self._interrupted = True
        self._root.deadline = None
        self._timed.pop(self._root, None)
        for task in [task for task in self._timed if type(task.wait) is Sleep]:
            self._wake(task)

    @property
    def grace_until(self) -> float:
        """The monotonic time up to which running calls may end after a signal."""
        return self._signals[0][1] + GRACE_SECONDS if len(self._signals) == 1 else 0.0

    @property
    def grace_over(self) -> bool:
        """Whether the time that a signal leaves to running calls is over."""
        return bool(self._signals) and time.monotonic() > self.grace_until

    @property
    def slot_free(self) -> bool:
        """Whether a call could start now."""
        claims = sum(
            type(effect) is WorkerSlot and task.wait is effect
            for task, effect in self._slot_waiters
        )
        return self._free > claims

    def shield(self, on: bool) -> None:
        """While on, the running task's call survives `Cancel`."""
        self._current.shielded = on

    # -- the coordinator ----------------------------------------------------------------------------------------------

    def _coordinate(self, epoch: int) -> None:
        try:
            self._drive(epoch)
        except _BatonLost:
            return
        except BaseException as error:
            self._crash = error
        self._finished.set()

    def _drive(self, epoch: int) -> None:
        while True:
            self._watch_memory()
            while self._runnable:
                self._resume(*self._runnable.popleft())
            if self._root.done:
                return
            if self._snapshot_due:
                self._take_snapshot()
            # Only now: a task that ended meanwhile is handled before another starts in its slot.
            self._grant()
            if self._runnable:
                continue
            if self._recorded or not self._live:
                self._advance()
                continue
            if (
                len(self._waiting) == 1
                and not self._in_flight
                and not self._timed_beside(self._waiting[0][0])
            ):
                self._call_inline(*self._waiting.popleft(), epoch)
                continue
            while self._waiting:
                self._call_in_pool(*self._waiting.popleft())
            if not self._runnable:  # else a call got no thread, and its task is runnable
                self._receive()

    def _resume(self, task: Task, value: Any, error: BaseException | None) -> None:
        if task.done or (task.cancelling and error is None):
            return
        task.wait = None
        self._current = task
        try:
            effect = task.steps.throw(error) if error is not None else task.steps.send(value)
        except StopIteration as stop:
            self._end(task, stop.value, None)
        except BaseException as raised:
            self._end(task, None, raised)
        else:
            _HANDLERS[type(effect)](self, task, effect)

    def _end(self, task: Task, result: Any, error: BaseException | None) -> None:
        for child in list(task.children):
            self._cancel(child, force=True)
        task.done, task.result, task.error = True, result, error
        self._timed.pop(task, None)
        self._release(task)
        parent = task.parent
        if parent is None:
            return
        parent.children.pop(task, None)
        parent.ended.append(task)
        if parent.cancelling:
            if not parent.children:
                self._throw(parent, Cancelled(outside=parent.outside))
        elif type(parent.wait) is Next:
            self._wake(parent, parent.ended.popleft())

    def _wake(self, task: Task, value: Any = None, error: BaseException | None = None) -> None:
        """Resume a waiting task later in the loop. Its wait is cleared at once, so that it is resumed only once."""
        task.wait = None
        if task.deadline is None:
            self._timed.pop(task, None)
        else:
            self._timed[task] = task.deadline
        self._runnable.append((task, value, error))

    # -- effects ------------------------------------------------------------------------------------------------------

    def _on_spawn(self, task: Task, spawn: Spawn) -> None:
        child = Task(spawn.steps, task, spawn)
        task.children[child] = None
        if child.deadline is not None:
            self._timed[child] = child.deadline
        self._runnable.append((child, None, None))
        self._runnable.append((task, child, None))

    def _on_next(self, task: Task, effect: Next) -> None:
        if task.ended:
            self._runnable.append((task, task.ended.popleft(), None))
        elif not task.children and not effect.slot:
            self._runnable.append((task, None, None))
        else:
            task.wait = effect
            if effect.slot:
                self._slot_waiters.append((task, effect))
            if effect.until is not None:
                self._wait_until(task, effect.until)

    def _on_slot(self, task: Task, effect: WorkerSlot) -> None:
        if task.has_slot:
            self._runnable.append((task, None, None))
            return
        task.wait = effect
        self._slot_waiters.append((task, effect))

    def _on_sleep(self, task: Task, effect: Sleep) -> None:
        self._on_call(task, effect)
        self._wait_until(task, effect.until)

    def _wait_until(self, task: Task, until: float) -> None:
        self._timed[task] = until if task.deadline is None else min(until, task.deadline)

    def _on_call(self, task: Task, effect: WorkerCall | Turn | Sleep) -> None:
        task.wait = effect
        if effect.position is not None:
            self._recorded_before += 1
            heappush(self._recorded, (effect.position, self._recorded_before, task, effect))
        elif type(effect) is WorkerCall:
            self._waiting.append((task, effect))

    def _on_park(self, task: Task, effect: Park) -> None:
        if task.parent is not None and task.parent.cancelling:
            self._wake(task, error=Cancelled(outside=task.parent.outside))
            return
        task.deadline = None
        self._timed.pop(task, None)
        task.wait = effect

    def _on_wake(self, task: Task, effect: Wake) -> None:
        if type(effect.task.wait) is Park:
            self._wake(effect.task)
        self._runnable.append((task, None, None))

    def _on_cancel(self, task: Task, effect: Cancel) -> None:
        self._cancel(effect.task, force=effect.force)
        self._runnable.append((task, None, None))

    def _cancel(self, task: Task, *, force: bool) -> None:
        """Throw Cancelled into a task and, before it, everything below it; one with a shielded child waits for it."""
        if task.done:
            return
        # Below one that is being cancelled no Wake would come any more.
        parked = type(task.wait) is Park and task.parent is not None and task.parent.cancelling
        if task.shielded and not force and not parked:
            return
        if task.children:
            task.cancelling, task.outside = True, force
            for child in list(task.children):
                self._cancel(child, force=force)
            return
        self._forget_call(task)
        self._throw(task, Cancelled(outside=force))

    def _throw(self, task: Task, error: BaseException) -> None:
        """Raise an error in a task now. One that never ran ends without running; one that waits on is a bug."""
        self._runnable = deque(entry for entry in self._runnable if entry[0] is not task)
        self._waiting = deque(entry for entry in self._waiting if entry[0] is not task)
        self._resume(task, None, error)

    # -- slots --------------------------------------------------------------------------------------------------------

    def _grant(self) -> None:
        while self._free and self._slot_waiters:
            task, effect = self._slot_waiters.popleft()
            if task.done or task.wait is not effect:
                continue
            # `Next` only reports a free slot: it stays free for the next WorkerSlot.
            if type(effect) is WorkerSlot:
                self._free -= 1
                task.has_slot = True
            self._wake(task)

    def _release(self, task: Task) -> None:
        if task.has_slot:
            task.has_slot = False
            self._free += 1

    # -- calls --------------------------------------------------------------------------------------------------------

    def _call_inline(self, task: Task, call: WorkerCall, epoch: int) -> None:
        token = self._register(task, call)
        with self._baton:
            self._inline_until = min([call.deadline, *self._timed.values()])
        result, error = self._lack_memory() or _perform(call.work)
        with self._baton:
            if self._epoch != epoch:
                raise _BatonLost
            self._inline_until = None
        self._complete(token, result, error)

    def _call_in_pool(self, task: Task, call: WorkerCall) -> None:
        token = self._register(task, call)
        if lacking := self._lack_memory():
            self._complete(token, *lacking)
            return
        try:
            self._pool.submit(token, call.work)
        except threads.NoThread:
            self._complete(token, None, no_thread())

    def _watch_memory(self) -> None:
        """End the run, once, while there is memory left to end it with."""
        if self._memory is None or type(self._root.wait) is not Next:
            return
        if lacking := self._lack_memory():
            self._memory = None
            self._throw(self._root, lacking[1])

    def _lack_memory(self) -> tuple[None, MemoryError] | None:
        """The outcome of a call that has too little memory left to begin; None if it has enough."""
        if self._memory is not None:
            try:
                memory_limit.require_room(self._memory, calls=len(self._in_flight))
            except MemoryError as error:
                return None, error
        return None

    def _register(self, task: Task, call: WorkerCall) -> object:
        task.call = token = object()
        self._in_flight[token] = (task, call)
        return token

    def _complete(self, token: object, result: Any, error: BaseException | None) -> None:
        """Pass the result of a call to its task; that of an abandoned call is dropped."""
        entry = self._in_flight.pop(token, None)
        if entry is None:
            return
        task = entry[0]
        task.call = None
        self._wake(task, result, error)
        self._release(task)

    def _forget_call(self, task: Task) -> None:
        if task.call is not None:
            _, call = self._in_flight.pop(task.call)
            task.call = None
            if call.on_abandon is not None:
                call.on_abandon()
        self._release(task)

    # -- the log ------------------------------------------------------------------------------------------------------

    def _advance(self) -> None:
        """Handle a signal, else complete what is first in the log; where nothing of it is outstanding, the next limit
        of time is reached at once, for without threads nothing else can come."""
        if not self._inbox.empty():
            self._receive()
        elif self._recorded:
            _, _, task, effect = heappop(self._recorded)
            if task.wait is not effect:
                return  # it was cancelled meanwhile
            if type(effect) is WorkerCall:
                token = self._register(task, effect)
                result, error = _perform(effect.work)
                if type(error) is Unanswered:
                    self._reach_limit(task)
                else:
                    self._complete(token, result, error)
            elif type(effect) is Sleep and not self._live:
                self._reach_limit(task)
            else:
                self._wake(task)
        else:
            self._expire(min(self._limits()))

    def _reach_limit(self, task: Task) -> None:
        """Reach the nearest limit of time over a task that was cut off at this place of the log. How long its call or
        sleep would have taken the log does not say, so its own end is not compared. A signal cuts off by itself."""
        above: Task | None = task
        while above is not None and above.deadline is None:
            above = above.parent
        if above is not None and above.deadline is not None and self._inbox.empty():
            self._expire_task(above, above.deadline)

    # -- waiting ------------------------------------------------------------------------------------------------------

    def _timed_beside(self, task: Task) -> bool:
        """Whether something other than this task and those above it waits for a time."""
        above = {task}
        while task.parent is not None:
            task = task.parent
            above.add(task)
        return any(timed not in above or type(timed.wait) is Sleep for timed in self._timed)

    def _receive(self) -> None:
        """Wait for a result, a signal or the next deadline, and resume the tasks that it concerns."""
        timeout: float | None = 0.0
        if self._inbox.empty():  # else the limits, of which there are many, need not be looked at
            dues = self._limits()
            if self._signals and not self.grace_over:
                dues.append(self.grace_until)
            due = min(dues, default=None)
            timeout = None if due is None else max(0.0, due - time.monotonic())
        try:
            token, result, error = self._inbox.get(timeout=timeout)
        except Empty:
            self._expire(time.monotonic())
            return
        if token is _SNAPSHOT:
            return  # `_drive` takes it
        if token is _SIGNAL:
            root = self._root
            if not self._interrupted and type(root.wait) is Next:
                self._interrupted = True
                self._throw(root, Interrupted(self._signals[0][0]))
            elif self._interrupted and self.grace_over and type(root.wait) is Next:
                self._wake(root)
        else:
            self._complete(token, result, error)

    def _limits(self) -> list[float]:
        limits = [call.deadline for _, call in self._in_flight.values()]
        limits.extend(self._timed.values())
        return limits

    def _expire(self, now: float) -> None:
        for task, call in [entry for entry in self._in_flight.values() if entry[1].deadline <= now]:
            if task.call is not None:
                self._forget_call(task)
                self._throw(task, call.late())
        for task in [task for task, due in self._timed.items() if due <= now]:
            self._expire_task(task, now)

    def _expire_task(self, task: Task, now: float) -> None:
        if task.done or task not in self._timed:
            return
        if task.deadline is not None and task.deadline <= now and task.late is not None:
            del self._timed[task]
            error = task.late()  # before anything below is cancelled
            for child in list(task.children):
                self._cancel(child, force=True)
            self._forget_call(task)
            self._throw(task, error)
        else:
            self._wake(task)

    def _take_snapshot(self) -> None:
        self._snapshot_due = False
        if self._snapshots is not None:
            self._snapshots.take()

    def _watch_snapshots(self) -> None:
        """Take a snapshot that is due, or let the coordinator take it."""
        if (
            self._snapshots is None
            or self._snapshot_due
            or not self._snapshots.is_due(time.monotonic())
        ):
            return
        with self._baton:
            if self._inline_until is not None:
                self._snapshots.take()
                return
        self._snapshot_due = True
        self._inbox.put((_SNAPSHOT, None, None))

    def _watch(self) -> None:
        """Take the baton from a coordinator whose inline call is late."""
        with self._baton:
            until = self._inline_until
            if until is None or not (time.monotonic() > until or self.grace_over):
                return
            try:
                threads.start(self._coordinate, self._epoch + 1, name="coordinator")
            except threads.NoThread:
                return  # tried again at the next watch
            self._epoch += 1
            self._inline_until = None


def no_thread() -> TransportError:
    """The error of a call for which there was no thread: it never left."""
    return TransportError(
        "call.transport",
        "the system gave no thread for the call",
        hint="fewer at once with --max-workers, or a higher limit of processes (ulimit -u)",
        left=False,
    )


class _BatonLost(Exception):
    """Another coordinator thread has taken over."""


_SIGNAL: Final = object()
_SNAPSHOT: Final = object()

_HANDLERS: Final[dict[type, Callable[[Loop, Task, Any], None]]] = {
    Spawn: Loop._on_spawn,
    Next: Loop._on_next,
    WorkerSlot: Loop._on_slot,
    Sleep: Loop._on_sleep,
    WorkerCall: Loop._on_call,
    Turn: Loop._on_call,
    Park: Loop._on_park,
    Wake: Loop._on_wake,
    Cancel: Loop._on_cancel,
}


def _perform(work: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    try:
        return work(), None
    except BaseException as error:
        return None, no_thread() if threads.is_lacking(error) else error


class _Pool:
    """Daemon threads, started when none is idle; an abandoned one never holds up the process."""

    def __init__(self, inbox: SimpleQueue[tuple[object, Any, BaseException | None]]) -> None:
        self._inbox = inbox
        self._idle: deque[SimpleQueue[Any]] = deque()
        self._closed = False

    def submit(self, token: object, work: Callable[[], Any]) -> None:
        try:
            jobs = self._idle.pop()
        except IndexError:
            jobs = SimpleQueue()
            threads.start(self._serve, jobs, name="call")
        jobs.put((token, work))

    def _serve(self, jobs: SimpleQueue[Any]) -> None:
        while (job := jobs.get()) is not None:
            token, work = job
            result, error = _perform(work)
            self._idle.append(jobs)
            self._inbox.put((token, result, error))
            del job, work, result, error
            if self._closed:
                return

    def close(self) -> None:
        """End the idle threads; a busy one ends when its call returns, or with the process: it is a daemon."""
        self._closed = True
        while self._idle:
            self._idle.pop().put(None)
