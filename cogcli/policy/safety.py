"""Safety levels: their order, trust ranks and the effect of a gate's answer (docs/reference/execution.md#safety).

Pure.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from cogcli.base.errors import (
    RuntimeErrorBase,
    SafetyConfirmationRequiredError,
    SafetyGateFailedError,
    SafetyTrustLevelError,
)
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.capability_spec import TRUST_RANKS, Gate, Safety
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Json
from cogcli.policy.approvals import RequestedAction


class GateVerdict(NamedTuple):
    """The effect of a gate's answer, with the reason: pass, warn, degrade, block, require_human or error."""

    outcome: str
    reason: str


def refusal_before(
    capability_id: str, safety: Safety, *, trust_level: str, confirmed: Collection[str]
) -> RuntimeErrorBase | None:
    """Return the error if a call lacks trust or confirmation, otherwise None."""
    if TRUST_RANKS[safety.trust_level] > TRUST_RANKS[trust_level]:
        return SafetyTrustLevelError(
            "safety.trust",
            f"`{capability_id}` needs {safety.trust_level}, run has {trust_level}",
            hint=f"run again with --trust-level {safety.trust_level} if you mean to allow it",
        )
    if safety.requires_confirmation and capability_id not in confirmed:
        return SafetyConfirmationRequiredError(
            "safety.confirmation",
            f"`{capability_id}` needs confirmation by a person",
            hint=f"run again with --confirm {capability_id} if you mean to allow it",
        )
    return None


def refusal_of_earlier_request(
    capability_id: str, asked: RequestedAction | None
) -> RuntimeErrorBase | None:
    """Return SafetyConfirmationRequiredError if the step requested approval before its specs changed, otherwise None.

    A request by a gate that still applies to this capability is ignored, since the gate makes a new one.
    """
    if asked is None or (asked.gate and asked.capability == capability_id):
        return None
    return SafetyConfirmationRequiredError(
        "safety.confirmation",
        f"`{capability_id}` needs confirmation by a person, who was asked before",
    )


def judge_gate(gate: Gate, reply: Json) -> GateVerdict:
    """Convert a gate's reply to a verdict.

    Only `allowed: true` passes. `allowed: false` leads to the gate's `on_fail`. Any other reply blocks.
    """
    answer = read_record(_GateReply, reply)
    if answer.allowed is None:
        return GateVerdict("error", "answered without a boolean `allowed`")
    return GateVerdict("pass", "") if answer.allowed else GateVerdict(gate.on_fail, answer.why)


class _GateReply(Record):
    """The members of a gate's reply that determine the verdict."""

    allowed: bool | None = None
    reason: str
    reasons: list[object]

    @property
    def why(self) -> str:
        """The reason, or the first strings among the reasons, joined."""
        several = (each for each in self.reasons[:_MAX_REASONS] if isinstance(each, str))
        return self.reason or "; ".join(several) or "not allowed"


_MAX_REASONS: Final = 5
_STRICTNESS: Final = ("pass", "warn", "degrade", "require_human", "block", "error")


def stricter(a: GateVerdict, b: GateVerdict) -> GateVerdict:
    """Return the stricter of two verdicts. If they are equally strict, return the first."""
    return b if _STRICTNESS.index(b.outcome) > _STRICTNESS.index(a.outcome) else a


def refusal_of(gate_id: str, verdict: GateVerdict) -> RuntimeErrorBase | None:
    """Return the error for a gate's verdict. None for pass, warn and degrade, which let the call proceed."""
    if verdict.outcome == "block":
        return SafetyGateFailedError("safety.gate", f"gate `{gate_id}` refused: {verdict.reason}")
    if verdict.outcome == "error":
        return SafetyGateFailedError(
            "safety.gate-error", f"gate `{gate_id}` gave no answer: {verdict.reason}"
        )
    if verdict.outcome == "require_human":
        return SafetyConfirmationRequiredError(
            "safety.confirmation", f"gate `{gate_id}` asks for a person: {verdict.reason}"
        )
    return None
