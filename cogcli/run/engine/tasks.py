"""Cooperative tasks: generators on one coordinator thread make all decisions.

1. A task yields an effect and is resumed with its result. Only the work of a `WorkerCall` may run outside the
   coordinator thread.
2. The only outstanding call runs on the coordinator's own thread. So does a call of a kind that recently ended at
   once; a task may make it by a `QuickCall`, without a child, or a series of them by `QuickCalls`. The thread that
   waits for the run watches it. If the call exceeds its deadline, or a quick call becomes slow, the baton passes to a
   new coordinator thread. When the call returns, the old coordinator finds that it lost the baton, puts its result in
   the inbox, and ends.
3. Other calls run in daemon threads. A call that exceeds its deadline is abandoned: its slot is freed, and its later
   result is dropped.
4. A task's deadline also limits its children: they are cancelled first, then its error is raised in it.
5. On resume and replay, the recorded call with the lowest position completes first, on the coordinator, without a
   thread. Live calls start when no recorded call is outstanding.
6. At most `workers` slots are in use at a time in the whole tree, first come, first served.
7. The waiting thread also checks whether a snapshot is due. The coordinator takes it between two completions. During a
   call on the coordinator's own thread, the waiting thread takes it under the baton.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final

from cogcli.base import memory_limit, threads
from cogcli.run.engine.call_threads import CallThreads, no_thread_error, perform
from cogcli.run.engine.effects import (
    AwaitedCall,
    AwaitWake,
    CallNeverAnswered,
    Cancel,
    Cancelled,
    Interrupted,
    Next,
    Posted,
    QuickCall,
    QuickCalls,
    Sleep,
    Spawn,
    StartedCall,
    Task,
    Turn,
    Wake,
    WorkerCall,
    WorkerSlot,
)

if TYPE_CHECKING:
    from cogcli.run.engine.ports import SnapshotWriter

GRACE_SECONDS: Final = 5.0
_WATCH_SECONDS: Final = 0.05
_QUICK_LIMIT: Final = 0.02
"""Seconds after which a call that was expected to be quick no longer delays the others."""


class Loop:
    """Drives one root task until it ends."""

    _root: Task
    _current: Task

    def __init__(
        self, workers: int, *, live: bool = True, snapshots: SnapshotWriter | None = None
    ) -> None:
        """Create a loop with this number of worker slots.

        If not `live`, every call is a recorded one: all work runs on the thread of `run`, which never waits.
        """
        self._live = live
        self._snapshots = snapshots
        self._snapshot_due = False
        self._free = workers
        self._runnable: deque[tuple[Task, Any, BaseException | None]] = deque()
        self._waiting: deque[tuple[Task, WorkerCall]] = deque()
        self._slot_waiters: dict[Task, WorkerSlot | Next] = {}
        """The tasks that wait for a slot, in order. One that is resumed for another reason leaves them."""
        self._claims = 0
        """The number of free slots that waiting tasks will take."""
        self._recorded: list[tuple[float, int, Task, WorkerCall | Turn | Sleep]] = []
        """A heap of waits by log position. The number keeps the order of equal positions."""
        self._recorded_before = 0
        self._in_flight: dict[object, tuple[Task, WorkerCall]] = {}
        self._timed: dict[Task, float] = {}
        self._inbox: SimpleQueue[tuple[object, Any, BaseException | None]] = SimpleQueue()
        self._memory = memory_limit.find_limit() if live else None
        self._pool = CallThreads(self._inbox)
        self._finished = threading.Event()
        self._crash: BaseException | None = None
        self._baton = threading.Lock()
        self._epoch = 0
        self._inline_until: float | None = None
        self._quick: tuple[Task, object, QuickCall] | None = None
        """The task whose `QuickCall` runs on the coordinator's thread, if the call there is one."""
        self._posted: deque[Posted] = deque()
        """Values from outside for which the root did not wait yet, in order."""
        self._expects_posts = False
        """Whether the root waits for external values. Then no call may block the coordinator."""
        self._signals: list[tuple[str, float]] = []
        self.signal: str | None = None
        """The first signal that requested the end of the run."""
        self._interrupted = False

    # -- called by other threads --------------------------------------------------------------------------------------

    def run(self, root: Spawn) -> Any:
        """Return the root task's result, or raise its error. Blocks, and monitors calls on the coordinator's thread."""
        self._root = Task(root.steps, None, root)
        if root.deadline is not None:
            self._timed[self._root] = root.deadline
        self._runnable.append((self._root, None, None))
        if self._memory is not None:
            memory_limit.share_arena()
        if self._live:
            threads.start(self._coordinate_calls, name="coordinator")
            while not self._finished.wait(_WATCH_SECONDS):
                self._watch_coordinator()
                self._watch_snapshots()
        else:
            self._coordinate_calls()
        self._pool.close()
        error = self._crash or self._root.error
        if error is not None:
            raise error
        return self._root.result

    def interrupt(self, signal: str) -> None:
        """Request the end of the run. May be called from a signal handler. A second call ends the grace period."""
        self._signals.append((signal, time.monotonic()))
        self.signal = self._signals[0][0]
        self._inbox.put((_SIGNAL, None, None))

    def post(self, value: object) -> None:
        """Pass a value to the root task, which receives it by `Next(posts=True)`. May be called from any thread."""
        self._inbox.put((_POST, Posted(value), None))

    def begin_shutdown(self) -> None:
        """End the run because of a signal. The root task calls this.

        No `Interrupted` follows, and the deadline of the root no longer applies. Sleeping tasks are woken, since
        they have no call to wait for.
        """
        self._interrupted = True
        self._root.deadline = None
        self._timed.pop(self._root, None)
        for task in [task for task in self._timed if type(task.wait) is Sleep]:
            self._make_runnable(task)

    @property
    def grace_until(self) -> float:
        """The monotonic time at which the grace period for running calls ends. 0 after a second signal."""
        return self._signals[0][1] + GRACE_SECONDS if len(self._signals) == 1 else 0.0

    @property
    def grace_over(self) -> bool:
        """Whether the grace period after a signal is over."""
        return bool(self._signals) and time.monotonic() > self.grace_until

    @property
    def slot_free(self) -> bool:
        """Whether a call could start now."""
        return self._free > self._claims

    def take_slot(self) -> bool:
        """Take a worker slot for the running task if one is free, and return whether it has one.

        If not, the task must wait with `WorkerSlot`: no slot is free, or another task already waits for one.
        """
        task = self._current
        if not task.has_slot and self._free and not self._claims:
            task.has_slot = True
            self._free -= 1
        return task.has_slot

    def shield(self, on: bool) -> None:
        """Set whether the running task's call survives a `Cancel` without `force`."""
        self._current.shielded = on

    # -- the coordinator ----------------------------------------------------------------------------------------------

    def _coordinate_calls(self) -> None:
        try:
            self._take_over_quick_call()
            self._run_ready_tasks()
        except _CoordinatorReplaced:
            return
        except BaseException as error:
            self._crash = error
        self._finished.set()

    def _run_ready_tasks(self) -> None:
        while True:
            self._watch_memory()
            while self._runnable:
                self._resume_task(*self._runnable.popleft())
            if self._root.done:
                return
            if self._snapshot_due:
                self._take_snapshot()
            # Slots are granted last: a task that ended is handled before another one starts in its slot.
            self._grant_slots()
            if self._runnable:
                continue
            if self._recorded or not self._live:
                self._advance_replay()
                continue
            if self._waiting and self._is_inline(*self._waiting[0]):
                # Each completion is handled to its end before the next, as over a log.
                if not self._inbox.empty():
                    self._receive_events()
                else:
                    self._call_inline(*self._waiting.popleft())
                continue
            while self._waiting:
                self._call_in_pool(*self._waiting.popleft())
            if not self._runnable:  # else a call found no thread, and its task is runnable
                self._receive_events()

    def _resume_task(self, task: Task, value: Any, error: BaseException | None) -> None:
        if task.done or (task.cancelling and error is None):
            return
        task.wait = None
        self._current = task
        try:
            effect = task.steps.throw(error) if error is not None else task.steps.send(value)
        except StopIteration as stop:
            self._end_task(task, stop.value, None)
        except BaseException as raised:
            self._end_task(task, None, raised)
        else:
            _HANDLERS[type(effect)](self, task, effect)

    def _end_task(self, task: Task, result: Any, error: BaseException | None) -> None:
        for child in list(task.children):
            self._cancel_tree(child, force=True)
        task.done, task.result, task.error = True, result, error
        self._timed.pop(task, None)
        self._release_slot(task)
        parent = task.parent
        if parent is None:
            return
        parent.children.pop(task, None)
        parent.ended.append(task)
        if parent.cancelling:
            if not parent.children:
                self._throw_into(parent, Cancelled(external=parent.external))
        elif type(parent.wait) is Next:
            self._make_runnable(parent, parent.ended.popleft())

    def _make_runnable(
        self, task: Task, value: Any = None, error: BaseException | None = None
    ) -> None:
        """Make a waiting task runnable. Its wait is cleared immediately, so it is resumed only once."""
        task.wait = None
        self._stop_waiting(task)
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
        if spawn.at_once:
            self._resume_task(child, None, None)
        else:
            self._runnable.append((child, None, None))
        self._runnable.append((task, child, None))

    def _on_next(self, task: Task, effect: Next) -> None:
        self._expects_posts |= effect.posts
        if task.ended:
            self._runnable.append((task, task.ended.popleft(), None))
        elif effect.posts and self._posted:
            self._runnable.append((task, self._posted.popleft(), None))
        elif not task.children and not effect.slot and not effect.posts:
            self._runnable.append((task, None, None))
        else:
            task.wait = effect
            if effect.slot:
                self._slot_waiters[task] = effect
            if effect.until is not None:
                self._wait_until(task, effect.until)

    def _on_slot(self, task: Task, effect: WorkerSlot) -> None:
        if task.has_slot:
            self._runnable.append((task, None, None))
            return
        task.wait = effect
        self._slot_waiters[task] = effect
        self._claims += 1

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

    def _on_park(self, task: Task, effect: AwaitWake) -> None:
        if task.parent is not None and task.parent.cancelling:
            self._make_runnable(task, error=Cancelled(external=task.parent.external))
            return
        task.deadline = None
        self._timed.pop(task, None)
        task.wait = effect

    def _on_wake(self, task: Task, effect: Wake) -> None:
        if type(effect.task.wait) is AwaitWake:
            self._make_runnable(effect.task)
        self._runnable.append((task, None, None))

    def _on_cancel(self, task: Task, effect: Cancel) -> None:
        self._cancel_tree(effect.task, force=effect.force)
        self._runnable.append((task, None, None))

    def _cancel_tree(self, task: Task, *, force: bool) -> None:
        """Raise Cancelled in all tasks below a task, then in the task. A task with a shielded child waits for that
        child.
        """
        if task.done:
            return
        # Below a task that is being cancelled no Wake can come any more.
        parked = type(task.wait) is AwaitWake and task.parent is not None and task.parent.cancelling
        if task.shielded and not force and not parked:
            return
        if task.children:
            task.cancelling, task.external = True, force
            for child in list(task.children):
                self._cancel_tree(child, force=force)
            return
        self._forget_call(task)
        self._throw_into(task, Cancelled(external=force))

    def _throw_into(self, task: Task, error: BaseException) -> None:
        """Raise an error in a task immediately. A task that has not started ends without running. If the task waits
        again, that is a bug.
        """
        self._runnable = deque(entry for entry in self._runnable if entry[0] is not task)
        self._waiting = deque(entry for entry in self._waiting if entry[0] is not task)
        self._stop_waiting(task)
        self._resume_task(task, None, error)

    # -- slots --------------------------------------------------------------------------------------------------------

    def _grant_slots(self) -> None:
        while self._free and self._slot_waiters:
            task, effect = next(iter(self._slot_waiters.items()))
            # `Next` only reports a free slot: it stays free for the next WorkerSlot.
            if type(effect) is WorkerSlot:
                self._free -= 1
                task.has_slot = True
            self._make_runnable(task)

    def _stop_waiting(self, task: Task) -> None:
        effect = self._slot_waiters.pop(task, None)
        if type(effect) is WorkerSlot:
            self._claims -= 1

    def _release_slot(self, task: Task) -> None:
        if task.has_slot:
            task.has_slot = False
            self._free += 1

    # -- calls --------------------------------------------------------------------------------------------------------

    def _is_inline(self, task: Task, call: WorkerCall) -> bool:
        """Return whether the coordinator makes a call itself, because it is quick or the only outstanding one."""
        if call.is_quick:
            return True
        is_alone = len(self._waiting) == 1 and not self._in_flight and not self._expects_posts
        return is_alone and not self._has_other_timers(task)

    def _call_inline(self, task: Task, call: WorkerCall) -> None:
        token = self._register_call(task, call)
        until = min([call.deadline, *self._timed.values()])
        if call.is_quick:
            until = min(until, time.monotonic() + _QUICK_LIMIT)
        result, error = self._memory_shortage() or self._perform_inline(call.work, until, token)
        self._complete_call(token, result, error)

    def _perform_inline(
        self,
        work: Callable[[], Any],
        until: float,
        token: object,
        quick: tuple[Task, object, QuickCall] | None = None,
    ) -> tuple[Any, BaseException | None]:
        """Return the result of a call on this thread. Raise _CoordinatorReplaced if another thread seized the baton
        after `until`. `quick` are the arguments of `_take_over_quick_call` for a `QuickCall`.
        """
        epoch = self._epoch
        self._quick = quick  # before the time from which on the baton may be taken
        self._inline_until = until
        result, error = perform(work)
        with self._baton:
            if self._epoch != epoch:
                self._inbox.put((token, result, error))
                raise _CoordinatorReplaced
            self._inline_until = None
        return result, error

    def _on_quick_call(self, task: Task, effect: QuickCall) -> None:
        result, error = self._make_quick_call(task, effect)
        self._runnable.append((task, result, error))

    def _on_quick_calls(self, task: Task, effect: QuickCalls) -> None:
        result, error = perform(lambda: self._make_quick_calls(task, effect))
        if type(error) is _CoordinatorReplaced:
            raise error
        self._runnable.append((task, result, error))

    def _make_quick_calls(self, task: Task, calls: QuickCalls) -> AwaitedCall | None:
        """Make a series of quick calls. Return the call that the task must not wait for, if there is one."""
        while (call := calls.begin()) is not None:
            answer, error = self._make_quick_call(task, call)
            if error is not None:
                raise error
            if type(answer) is AwaitedCall:
                return answer
            if not calls.end(answer) or self._runnable:
                break
        return None

    def _make_quick_call(self, task: Task, call: QuickCall) -> tuple[Any, BaseException | None]:
        """Return the result or the error of a quick call, or an `AwaitedCall` if the task must not wait for it."""
        until = time.monotonic() + _QUICK_LIMIT
        if call.deadline < until:
            until = call.deadline
        if self._has_other_work(until):
            return AwaitedCall(call.build_effect()), None
        token = object()
        return self._perform_inline(call.perform, until, token, (task, token, call))

    def _has_other_work(self, until: float) -> bool:
        """Return whether the coordinator must do something else before a quick call begins or, at the latest, ends.

        The results of other calls are passed on first: their tasks are then resumed before the one that asks.
        """
        while not self._inbox.empty():
            self._receive_events()
        if self._snapshot_due:
            self._take_snapshot()
        if self._memory is not None or self._signals:
            return True
        if self._waiting or (self._slot_waiters and self._free):
            return True
        return bool(self._timed) and min(self._timed.values()) < until

    def _take_over_quick_call(self) -> None:
        """Resume the task whose quick call became slow. The thread that began the call still runs it."""
        with self._baton:
            quick, self._quick = self._quick, None
        if quick is not None:
            task, token, effect = quick
            task.call = token
            self._in_flight[token] = (task, effect.build_effect())
            self._runnable.append((task, AwaitedCall(StartedCall(token)), None))

    def _on_begun_call(self, task: Task, effect: StartedCall) -> None:
        parent, call = self._in_flight[effect.token]
        parent.call = None
        self._in_flight[effect.token] = (task, call)
        task.call, task.wait = effect.token, call
        task.has_slot = True
        self._free -= 1

    def _call_in_pool(self, task: Task, call: WorkerCall) -> None:
        token = self._register_call(task, call)
        if lacking := self._memory_shortage():
            self._complete_call(token, *lacking)
            return
        try:
            self._pool.submit(token, call.work)
        except threads.NoThread:
            self._complete_call(token, None, no_thread_error())

    def _watch_memory(self) -> None:
        """End the run, once, before too little memory remains to end it."""
        if self._memory is None or type(self._root.wait) is not Next:
            return
        if lacking := self._memory_shortage():
            self._memory = None
            self._throw_into(self._root, lacking[1])

    def _memory_shortage(self) -> tuple[None, MemoryError] | None:
        """Return the outcome of a call that has too little memory to start, or None if there is enough."""
        if self._memory is not None:
            try:
                memory_limit.require_room(self._memory, calls=len(self._in_flight))
            except MemoryError as error:
                return None, error
        return None

    def _register_call(self, task: Task, call: WorkerCall) -> object:
        task.call = token = object()
        self._in_flight[token] = (task, call)
        return token

    def _complete_call(self, token: object, result: Any, error: BaseException | None) -> None:
        """Pass the result of a call to its task. The result of an abandoned call is dropped."""
        entry = self._in_flight.pop(token, None)
        if entry is None:
            return
        task = entry[0]
        task.call = None
        self._make_runnable(task, result, error)
        self._release_slot(task)

    def _forget_call(self, task: Task) -> None:
        if task.call is not None:
            _, call = self._in_flight.pop(task.call)
            task.call = None
            if call.on_abandon is not None:
                call.on_abandon()
        self._release_slot(task)

    # -- the log ------------------------------------------------------------------------------------------------------

    def _advance_replay(self) -> None:
        """Handle a signal, or complete the first outstanding entry of the log. Without either, jump to the next time
        limit, because no other event can occur without threads.
        """
        if not self._inbox.empty():
            self._receive_events()
        elif self._recorded:
            _, _, task, effect = heappop(self._recorded)
            if task.wait is not effect:
                return  # it was cancelled meanwhile
            if type(effect) is WorkerCall:
                token = self._register_call(task, effect)
                result, error = perform(effect.work)
                if type(error) is CallNeverAnswered:
                    self._reach_limit(task)
                else:
                    self._complete_call(token, result, error)
            elif type(effect) is Sleep and not self._live:
                self._reach_limit(task)
            else:
                self._make_runnable(task)
        else:
            self._expire_limits(min(self._time_limits()))

    def _reach_limit(self, task: Task) -> None:
        """Expire the nearest time limit at or above a task that was cancelled at this position of the log.

        The log does not record how long the call or sleep would have lasted, so its own deadline is not compared. After
        a signal no limit is needed, since the signal cancels the task itself.
        """
        above: Task | None = task
        while above is not None and above.deadline is None:
            above = above.parent
        if above is not None and above.deadline is not None and self._inbox.empty():
            self._expire_task(above, above.deadline)

    # -- waiting ------------------------------------------------------------------------------------------------------

    def _has_other_timers(self, task: Task) -> bool:
        """Return whether a task that is neither this one nor its ancestor has a deadline or sleeps."""
        above = {task}
        while task.parent is not None:
            task = task.parent
            above.add(task)
        return any(timed not in above or type(timed.wait) is Sleep for timed in self._timed)

    def _receive_events(self) -> None:
        """Wait for a result, a signal or the next deadline, and resume the affected tasks."""
        try:
            token, result, error = self._inbox.get(timeout=self._find_timeout())
        except Empty:
            self._expire_limits(time.monotonic())
            return
        if token is _SNAPSHOT:
            return  # `_run_ready_tasks` takes it
        if token is _POST:
            self._take_post(result)
            return
        if token is _SIGNAL:
            self._on_signal()
        else:
            self._complete_call(token, result, error)

    def _find_timeout(self) -> float | None:
        """Return the seconds until the next deadline. None for no deadline, 0 if something has arrived."""
        if not self._inbox.empty():  # there is no need to scan the many limits
            return 0.0
        dues = self._time_limits()
        if self._signals and not self.grace_over:
            dues.append(self.grace_until)
        due = min(dues, default=None)
        return None if due is None else max(0.0, due - time.monotonic())

    def _on_signal(self) -> None:
        """Interrupt the root by the first signal, and wake it when the grace period is over."""
        root = self._root
        if type(root.wait) is not Next:
            return
        if not self._interrupted:
            self._interrupted = True
            self._throw_into(root, Interrupted(self._signals[0][0]))
        elif self.grace_over:
            self._make_runnable(root)

    def _take_post(self, posted: Posted) -> None:
        root = self._root
        if type(root.wait) is Next and root.wait.posts:
            self._make_runnable(root, posted)
        else:
            self._posted.append(posted)

    def _time_limits(self) -> list[float]:
        limits = [call.deadline for _, call in self._in_flight.values()]
        limits.extend(self._timed.values())
        return limits

    def _expire_limits(self, now: float) -> None:
        for task, call in [entry for entry in self._in_flight.values() if entry[1].deadline <= now]:
            if task.call is not None:
                self._forget_call(task)
                self._throw_into(task, call.timeout_error())
        for task in [task for task, due in self._timed.items() if due <= now]:
            self._expire_task(task, now)

    def _expire_task(self, task: Task, now: float) -> None:
        if task.done or task not in self._timed:
            return
        if task.deadline is not None and task.deadline <= now and task.timeout_error is not None:
            del self._timed[task]
            error = task.timeout_error()  # before the tasks below are cancelled
            for child in list(task.children):
                self._cancel_tree(child, force=True)
            self._forget_call(task)
            self._throw_into(task, error)
        else:
            self._make_runnable(task)

    def _take_snapshot(self) -> None:
        self._snapshot_due = False
        if self._snapshots is not None:
            self._snapshots.take()

    def _watch_snapshots(self) -> None:
        """Take a snapshot if one is due, or request it from the coordinator."""
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

    def _watch_coordinator(self) -> None:
        """Seize the baton from a coordinator if the call on its own thread has exceeded its deadline."""
        with self._baton:
            until = self._inline_until
            if until is None or not (time.monotonic() > until or self.grace_over):
                return
            try:
                threads.start(self._coordinate_calls, name="coordinator")
            except threads.NoThread:
                return  # the next watch tries again
            self._epoch += 1
            self._inline_until = None


class _CoordinatorReplaced(Exception):
    """Raised in a coordinator thread that another thread has replaced."""


_SIGNAL: Final = object()
_SNAPSHOT: Final = object()
_POST: Final = object()

_Handler = Callable[[Loop, Task, Any], None]


class _EffectHandlers(dict[type, _Handler]):
    """The function that performs each type of effect. A type of quick calls is added when a task first yields one."""

    def __missing__(self, kind: type) -> _Handler:
        for base, handler in _QUICK.items():
            if issubclass(kind, base):
                self[kind] = handler
                return handler
        raise KeyError(kind)


_QUICK: Final[dict[type, _Handler]] = {
    QuickCall: Loop._on_quick_call,
    QuickCalls: Loop._on_quick_calls,
}
_HANDLERS: Final = _EffectHandlers(
    {
        Spawn: Loop._on_spawn,
        Next: Loop._on_next,
        WorkerSlot: Loop._on_slot,
        Sleep: Loop._on_sleep,
        WorkerCall: Loop._on_call,
        Turn: Loop._on_call,
        StartedCall: Loop._on_begun_call,
        AwaitWake: Loop._on_park,
        Wake: Loop._on_wake,
        Cancel: Loop._on_cancel,
    }
)
