"""Tasks, the effects that they yield, and what is raised in them. `run.engine.tasks` drives the tasks."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from typing import Any, Final

from cogcli.base.named_tuple import NamedTuple

Effects = Generator[Any, Any, Any]
"""A generator that yields effects."""

_QUICK_SECONDS: Final = 0.0005
_QUICK_CALLS: Final = 4


class Cancelled(Exception):
    """Raised in a task that has to end. The task may still append events, but must not yield another effect.

    `external` means that the cause is a signal, a time limit or the end of a log, not a sibling in the same run.
    """

    def __init__(self, *, external: bool = False) -> None:
        super().__init__()
        self.external = external


class CallNeverAnswered(Exception):
    """Raised by the work of a recorded call that never got an answer. The task then waits until it is cancelled."""


class Interrupted(Exception):
    """Raised once in the root task when a signal ends the run."""

    def __init__(self, signal: str) -> None:
        super().__init__(signal)
        self.signal = signal


class WorkerSlot(NamedTuple):
    """Wait for a free worker slot. The slot is released when the task's next call ends."""


class WorkerCall(NamedTuple):
    """Run `work` off the coordinator. After `deadline`, the error from `timeout_error` is raised in the task
    instead.

    `on_abandon` is called when the result will be dropped; it must not block. A call with a `position` is a
    recorded one: `work` runs on the coordinator as soon as no outstanding call has a lower position.
    """

    work: Callable[[], Any]
    deadline: float
    timeout_error: Callable[[], Exception]
    on_abandon: Callable[[], None] | None = None
    position: float | None = None
    is_quick: bool = False
    """Whether `work` is known to end at once, so that a thread for it would cost more."""


class QuickCall:
    """Make a quick call at once. The result is that of `perform`, or an `AwaitedCall` if the task must not wait for it.

    The call needs no slot. The task passes an `AwaitedCall` on to a child, which then waits for the call, as built by
    `build_effect`.
    """

    __slots__ = ("deadline",)

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline

    def perform(self) -> Any:
        """Make the call on this thread."""
        raise NotImplementedError

    def build_effect(self) -> WorkerCall:
        """Return the effect that makes the call off the coordinator."""
        raise NotImplementedError


class QuickCalls:
    """Make quick calls one after the other, without resuming the task in between, until another task is runnable.

    The result is None when the series ends, or an `AwaitedCall` for the last call that `begin` returned, as for a
    `QuickCall`. An error of that call, of `begin` or of `end` is raised in the task.
    """

    __slots__ = ()

    def begin(self) -> QuickCall | None:
        """Return the next call. Return None to end the series."""
        raise NotImplementedError

    def end(self, answer: Any) -> bool:
        """Pass the result of the call to the series. Return False to end the series."""
        raise NotImplementedError


class AwaitedCall(NamedTuple):
    """A call for which a child has to wait: the effect is a `WorkerCall` if it has not begun, else a `StartedCall`."""

    effect: WorkerCall | StartedCall


class StartedCall(NamedTuple):
    """Wait for a call that the parent began. The task gets a slot at once, since the call is already running."""

    token: object


class CallSpeed:
    """Tracks whether the calls of one capability end quickly in this run."""

    def __init__(self) -> None:
        self._quick_calls = 0
        self.is_quick = False
        """Whether the most recent calls all ended at once."""

    def note(self, seconds: float) -> None:
        """Record the duration of a call that ended. May be called from any thread."""
        self._quick_calls = self._quick_calls + 1 if seconds < _QUICK_SECONDS else 0
        self.is_quick = self._quick_calls >= _QUICK_CALLS


class Turn(NamedTuple):
    """An effect: wait until no outstanding call has a lower position in the log."""

    position: float


class Sleep(NamedTuple):
    """Wait until a monotonic time. `position` is set if the log records an event that ended this wait early."""

    until: float
    position: float | None = None


class Spawn(NamedTuple):
    """Start a child task. The result is the Task, already run up to its first wait.

    With `at_once` it runs before any other task, so that it cannot be cancelled before its first wait.
    """

    steps: Effects
    label: Any = None
    deadline: float | None = None
    timeout_error: Callable[[], Exception] | None = None
    at_once: bool = False


class Next(NamedTuple):
    """Wait for the next child to end. The result is its Task, or None at the time `until`.

    With `slot` the result is None as soon as a slot is free. Without `slot`, and without a running child, it is None at
    once. With `posts` it may also be a `Posted`, and the wait continues without children; only the root may use
    `posts`.
    """

    slot: bool = False
    until: float | None = None
    posts: bool = False


class Posted(NamedTuple):
    """A value from outside of the run, passed to `Loop.post`."""

    value: object


class AwaitWake(NamedTuple):
    """Wait for a `Wake`. The task's own deadline no longer applies, since it waits for other tasks."""


class Wake(NamedTuple):
    """Resume a parked task. Any other task is unaffected."""

    task: Task


class Cancel(NamedTuple):
    """Cancel a child and all tasks below it. Shielded calls end first, unless `force` is set, as for an external
    cause.
    """

    task: Task
    force: bool = False


class Task:
    """A generator that the loop drives. When it is done, `result` or `error` is set."""

    __slots__ = (
        "call",
        "cancelling",
        "children",
        "deadline",
        "done",
        "ended",
        "error",
        "external",
        "has_slot",
        "label",
        "parent",
        "result",
        "shielded",
        "steps",
        "timeout_error",
        "wait",
    )  # fmt: skip

    def __init__(self, steps: Effects, parent: Task | None, spawn: Spawn | None = None) -> None:
        self.steps = steps
        self.parent = parent
        self.label: Any = spawn.label if spawn else None
        self.deadline = spawn.deadline if spawn else None
        self.timeout_error = spawn.timeout_error if spawn else None
        self.children: dict[Task, None] = {}
        self.ended: deque[Task] = deque()
        self.wait: Any = None
        self.call: object | None = None
        self.has_slot = False
        self.shielded = False
        self.cancelling = False
        self.external = False
        self.done = False
        self.result: Any = None
        self.error: BaseException | None = None
