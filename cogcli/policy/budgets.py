"""What a run may spend, reserved and committed atomically (docs/reference/pack.md#budgets). Pure but for one lock.

One `Budgets` belongs to a top-level run and all below it. A reservation takes all its keys or none, so that parallel
lanes cannot spend the same rest twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from threading import Lock
from typing import Any, Final, NamedTuple

from cogcli.base.jsonvalue import NOTHING
from cogcli.declarations.pack_spec import PackBudget
from cogcli.declarations.spec import Spec


def _defaults_of(budget: Spec) -> dict[str, Any]:
    """The limits that a declared budget has by default; one without a default is left out."""
    return {
        name: _defaults_of(value) if isinstance(value, Spec) else value
        for name, value in vars(budget).items()
        if value
    }


DEFAULTS: Final = _defaults_of(PackBudget())
"""The budgets of a run under a pack that sets none."""
COUNTED: Final = (
    "tokens.workflow",
    "tool_calls.per_turn",
    "tool_calls.per_workflow",
    "replans",
    "turns",
    "cost_microusd",
)
"""The budgets that are spent; the others bound one thing each."""
PER_TURN: Final = "tool_calls.per_turn"


def budget_hint(key: str, *, pack: bool) -> str:
    """How a run gets more of a budget: under a pack flags and request only lower what the pack gives."""
    if not pack:
        return f"give it more with --budget {key}=N"
    return f"raise `{key}` in the budget of the pack, or where --budget or the request lowers it"


class Exceeded(NamedTuple):
    """Why nothing was reserved: the first key whose limit would be passed, what of it is taken, the limit."""

    key: str
    used: int
    limit: int


class BudgetUsage(NamedTuple):
    """What is spent of a budget, and what is reserved beside that."""

    used: int = 0
    reserved: int = 0


class Reservation:
    """An amount by key that nobody else can have. It ends by `commit` or `release`; the second end does nothing."""

    __slots__ = ("_budgets", "_needs", "_open")

    def __init__(self, budgets: Budgets, needs: Mapping[str, int]) -> None:
        self._budgets, self._needs, self._open = budgets, dict(needs), True

    def commit(self, actual: Mapping[str, int] | None = None) -> None:
        """Spend what was really used; without it what was reserved."""
        self._end(self._needs if actual is None else actual)

    def release(self) -> None:
        """Give back what was reserved."""
        self._end(NOTHING)

    def _end(self, spent: Mapping[str, int]) -> None:
        with self._budgets.lock:
            if self._open:
                self._open = False
                self._budgets.settle(self._needs, spent)


class Budgets:
    """The limits of a run by key, and their use. A key without a limit is counted and never exceeded."""

    def __init__(self, limits: Mapping[str, int]) -> None:
        self.limits = dict(limits)
        self.lock = Lock()
        self._used: dict[str, int] = {}
        self._reserved: dict[str, int] = {}

    def reserve(self, needs: Mapping[str, int]) -> Reservation | Exceeded:
        """A reservation of all keys, or the first key that has not so much left."""
        with self.lock:
            for key, amount in needs.items():
                taken = self._used.get(key, 0) + self._reserved.get(key, 0)
                limit = self.limits.get(key)
                if limit is not None and taken + amount > limit:
                    return Exceeded(key, taken, limit)
            for key, amount in needs.items():
                self._reserved[key] = self._reserved.get(key, 0) + amount
        return Reservation(self, needs)

    def settle(self, needs: Mapping[str, int], spent: Mapping[str, int]) -> None:
        """End a reservation; the caller holds the lock."""
        for key, amount in needs.items():
            self._reserved[key] -= amount
        for key, amount in spent.items():
            self._used[key] = self._used.get(key, 0) + amount

    def begin_turn(self) -> None:
        """Begin to count what is limited per turn anew."""
        with self.lock:
            self._used[PER_TURN] = 0

    def usage(self) -> dict[str, BudgetUsage]:
        """What is used and reserved, by each key that has a limit or a use."""
        with self.lock:
            keys = dict.fromkeys((*self.limits, *self._used, *self._reserved))
            return {
                key: BudgetUsage(self._used.get(key, 0), self._reserved.get(key, 0)) for key in keys
            }

    def remaining(self) -> dict[str, int]:
        """What each limit has left beside what is reserved."""
        with self.lock:
            return {
                key: max(0, limit - self._used.get(key, 0) - self._reserved.get(key, 0))
                for key, limit in self.limits.items()
            }


def flatten(budget: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, int | float]]:
    """The limits of a budget by dotted key."""
    for name, value in budget.items():
        if isinstance(value, Mapping):
            yield from flatten(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def merge_limits(
    defaults: Mapping[str, Any], declared: Mapping[str, Any]
) -> dict[str, int | float]:
    """The limits of a run by dotted key: what a pack declares, else the default."""
    return dict(flatten(defaults)) | dict(flatten(declared))


def raised_keys(limits: Mapping[str, int | float], given: Mapping[str, int | float]) -> list[str]:
    """The keys of a flag that would raise a limit, which none may."""
    return [key for key, value in given.items() if key in limits and value > limits[key]]
