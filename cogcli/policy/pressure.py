"""Functional state: numbers from 0 to 1 that measure the pressure on a turn (docs/reference/pack.md#functional-state).

Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.value_types import Json
from cogcli.policy.budgets import BudgetUsage

RISK: Final = {
    "read_only": 0.75,
    "local_write": 0.90,
    "network": 1.0,
    "delegated": 1.10,
    "destructive": 1.25,
}
"""The weight of an intent's risk class."""
WEIGHTS: Final = {"budget": 0.40, "loop": 0.15, "evidence": 0.15, "gate": 0.20, "conflict": 0.10}


class GateWait(NamedTuple):
    """The time for which a gate waited for its answer, and the permitted time."""

    waited_ms: int
    limit_ms: int


class Pressures(NamedTuple):
    """The five signals of a turn, each from 0 to 1."""

    budget: float
    loop: float
    evidence: float
    gate: float
    conflict: float

    def escalation(self, risk: str) -> float:
        """Return how strongly a turn should escalate under an intent of this risk class, from 0 to 1."""
        return clamp(
            RISK[risk] * sum(WEIGHTS[name] * value for name, value in self._asdict().items())
        )

    def to_payload(self, risk: str, captured_at: str) -> Json:
        """Return the functional state, rounded to two decimals."""
        signals = {f"{name}_pressure": round(value, 2) for name, value in self._asdict().items()}
        return {
            "captured_at": captured_at,
            **signals,
            "escalation_propensity": round(self.escalation(risk), 2),
        }


def clamp(value: float) -> float:
    """Return the value, limited to the range from 0 to 1."""
    return min(1.0, max(0.0, value))


def budget_pressure(
    limits: Mapping[str, float], usage: Mapping[str, BudgetUsage], *, soft: float, elapsed_ms: int
) -> float:
    """Return the highest pressure of any budget. It is 0 up to the share `soft` of a limit, and 1 at the limit."""
    spent = {key: used.used for key, used in usage.items()} | {"wall_clock_ms": elapsed_ms}
    return max(
        (
            _measure_pressure(spent[key], limit, soft)
            for key, limit in limits.items()
            if key in spent
        ),
        default=0.0,
    )


def gate_pressure(gates: Iterable[GateWait], *, soft: float) -> float:
    """Return the highest pressure of any gate: 0 while it waited for the share `soft` of its time, and 1 at its end."""
    return max(
        (_measure_pressure(gate.waited_ms, gate.limit_ms, soft) for gate in gates), default=0.0
    )


def loop_pressure(identical: int, replans: int, replan_limit: int, idle_turns: int) -> float:
    """Return how close the turn is to the loop guard, from 0 to 1: by identical calls, replans, and turns without
    news.
    """
    replanned = replans / replan_limit if replan_limit else float(bool(replans))
    return clamp(max((identical - 1) / 2, replanned, idle_turns / 2))


def share(part: int, whole: int) -> float:
    """Return the part divided by the whole, or 0 if the whole is 0."""
    return part / whole if whole else 0.0


def _measure_pressure(used: float, limit: float, soft: float) -> float:
    if not limit or soft >= 1:
        return float(used >= limit and used > 0)
    return clamp((used / limit - soft) / (1 - soft))
