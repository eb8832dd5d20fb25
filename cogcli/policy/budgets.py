"""The budgets of a run, reserved and committed atomically (docs/reference/pack.md#budgets). Pure except for one lock.

One `Budgets` belongs to a top-level run and all runs below it. A reservation takes all its keys or none, so that
parallel branches cannot spend the same remainder twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from threading import Lock
from typing import Final

from cogcli.base.jsonvalue import NOTHING
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.pack_spec import PackBudget
from cogcli.declarations.spec import Spec
from cogcli.declarations.value_types import Json


def _collect_defaults(budget: Spec) -> Json:
    """Return the default limits of a declared budget. A limit without a default is omitted."""
    return {
        name: _collect_defaults(value) if isinstance(value, Spec) else value
        for name, value in vars(budget).items()
        if value
    }


DEFAULTS: Final = _collect_defaults(PackBudget())
"""The budgets of a run if its pack sets none."""
COUNTED: Final = (
    "tokens.workflow",
    "tool_calls.per_turn",
    "tool_calls.per_workflow",
    "replans",
    "turns",
    "cost_microusd",
)
"""The budgets that are spent. Each other budget limits a single item."""
PER_TURN: Final = "tool_calls.per_turn"


def budget_hint(key: str, *, pack: bool) -> str:
    """Return a hint that explains how to raise a budget. Under a pack, flags and requests can only lower its limits."""
    if not pack:
        return f"give it more with --budget {key}=N"
    return f"raise `{key}` in the budget of the pack, or where --budget or the request lowers it"


class BudgetOverrun(NamedTuple):
    """Explains why a reservation failed: the first key that would exceed its limit, its used amount and its limit."""

    key: str
    used: int
    limit: int


class BudgetUsage(NamedTuple):
    """The spent and the reserved amount of a budget."""

    used: int = 0
    reserved: int = 0


class Reservation:
    """Amounts reserved by key. The first `commit` or `release` ends the reservation; later calls have no effect.

    `overrun` explains why nothing could be reserved. It is None if the amounts are reserved.
    """

    __slots__ = ("_budgets", "_needs", "_open", "overrun")

    def __init__(
        self, budgets: Budgets, needs: Mapping[str, int], overrun: BudgetOverrun | None
    ) -> None:
        self._budgets, self._needs, self._open = budgets, dict(needs), overrun is None
        self.overrun = overrun

    def commit(self, actual: Mapping[str, int] | None = None) -> None:
        """Spend the actual amounts, or the reserved amounts if `actual` is None."""
        self._settle_once(self._needs if actual is None else actual)

    def release(self) -> None:
        """End the reservation without spending anything."""
        self._settle_once(NOTHING)

    def _settle_once(self, spent: Mapping[str, int]) -> None:
        with self._budgets.lock:
            if self._open:
                self._open = False
                self._budgets.settle(self._needs, spent)


class Budgets:
    """The limits of a run by key, and their usage. A key without a limit is tracked but never exceeded."""

    def __init__(self, limits: Mapping[str, int]) -> None:
        self.limits = dict(limits)
        self.lock = Lock()
        self._used: dict[str, int] = {}
        self._reserved: dict[str, int] = {}

    def reserve(self, needs: Mapping[str, int]) -> Reservation:
        """Reserve all amounts in `needs`. Reserve nothing if a key would exceed its limit."""
        with self.lock:
            overrun = self._find_overrun(needs)
            if overrun is None:
                for key, amount in needs.items():
                    self._reserved[key] = self._reserved.get(key, 0) + amount
        return Reservation(self, needs, overrun)

    def charge(self, needs: Mapping[str, int]) -> BudgetOverrun | None:
        """Count all amounts in `needs` as used, or return the first key that would exceed its limit."""
        with self.lock:
            overrun = self._find_overrun(needs)
            if overrun is None:
                self.settle(NOTHING, needs)
        return overrun

    def _find_overrun(self, needs: Mapping[str, int]) -> BudgetOverrun | None:
        """Return the first key that would exceed its limit; None if all needs fit. The caller holds the lock."""
        for key, amount in needs.items():
            taken = self._used.get(key, 0) + self._reserved.get(key, 0)
            limit = self.limits.get(key)
            if limit is not None and taken + amount > limit:
                return BudgetOverrun(key, taken, limit)
        return None

    def settle(self, needs: Mapping[str, int], spent: Mapping[str, int]) -> None:
        """Subtract `needs` from the reserved amounts and add `spent` to the used ones. The caller holds the lock."""
        for key, amount in needs.items():
            self._reserved[key] -= amount
        for key, amount in spent.items():
            self._used[key] = self._used.get(key, 0) + amount

    def begin_turn(self) -> None:
        """Reset the usage of the limits that apply per turn."""
        with self.lock:
            self._used[PER_TURN] = 0

    def usage(self) -> dict[str, BudgetUsage]:
        """Return the used and the reserved amount of each key that has a limit or was used."""
        with self.lock:
            keys = dict.fromkeys((*self.limits, *self._used, *self._reserved))
            return {
                key: BudgetUsage(self._used.get(key, 0), self._reserved.get(key, 0)) for key in keys
            }

    @property
    def allows_replan(self) -> bool:
        """Whether a limit of replans leaves one. Without a limit there is none."""
        return "replans" in self.limits and self.remaining()["replans"] > 0

    def remaining(self) -> dict[str, int]:
        """Return the part of each limit that is neither used nor reserved."""
        with self.lock:
            return {
                key: max(0, limit - self._used.get(key, 0) - self._reserved.get(key, 0))
                for key, limit in self.limits.items()
            }


def flatten(budget: Json, prefix: str = "") -> Iterator[tuple[str, int | float]]:
    """Yield (dotted key, limit) for each limit in a nested budget."""
    for name, value in budget.items():
        if isinstance(value, dict):
            yield from flatten(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def merge_limits(defaults: Json, pack_limits: Json) -> dict[str, int | float]:
    """Return the limits of a run by dotted key: those that the pack declares, otherwise the defaults."""
    return dict(flatten(defaults)) | dict(flatten(pack_limits))


def raised_keys(
    limits: Mapping[str, int | float], flag_limits: Mapping[str, int | float]
) -> list[str]:
    """Return the keys for which a flag would raise a limit, which is not allowed."""
    return [key for key, value in flag_limits.items() if key in limits and value > limits[key]]
