"""Safety levels (docs/reference/execution.md#safety): their order, trust ranks and the meaning of a gate's answer.
Pure."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple

from cogcli.base.errors import (
    RuntimeErrorBase,
    SafetyConfirmationRequiredError,
    SafetyGateFailedError,
    SafetyTrustLevelError,
)
from cogcli.declarations.capability_spec import TRUST_RANKS, Gate, Safety
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Json
from cogcli.policy.approvals import RequestedAction


class GateVerdict(NamedTuple):
    """The consequence of a gate's answer: pass, warn, degrade, block, require_human or error, with the reason."""

    outcome: str
    reason: str


def refusal_before(
    capability_id: str, safety: Safety, *, trust_level: str, confirmed: Collection[str]
) -> RuntimeErrorBase | None:
    """Return the error of missing trust or a missing confirmation before a call, or None."""
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


def refusal_of_asked(capability_id: str, asked: RequestedAction | None) -> RuntimeErrorBase | None:
    """Return SafetyConfirmationRequiredError if this step had a request for approval before its specs changed,
    otherwise None.

    A request by a gate of the same capability is ignored, since that gate makes a new one.
    """
    if asked is None or (asked.gate and asked.capability == capability_id):
        return None
    return SafetyConfirmationRequiredError(
        "safety.confirmation",
        f"`{capability_id}` needs confirmation by a person, who was asked before",
    )


def judge_gate(gate: Gate, reply: Json) -> GateVerdict:
    """Return the verdict of a gate's reply. Only `allowed: true` passes; false leads to its `on_fail`; anything else
    blocks."""
    answer = read_record(_GateReply, reply)
    if answer.allowed is None:
        return GateVerdict("error", "answered without a boolean `allowed`")
    return GateVerdict("pass", "") if answer.allowed else GateVerdict(gate.on_fail, answer.why)


class _GateReply(Record):
    """The members of a gate's reply that count."""

    allowed: bool | None = None
    reason: str
    reasons: list[object]

    @property
    def why(self) -> str:
        """The reason, or the texts among the first reasons joined."""
        several = (each for each in self.reasons[:_MOST_REASONS] if isinstance(each, str))
        return self.reason or "; ".join(several) or "not allowed"


_MOST_REASONS: Final = 5
_STRICTNESS: Final = ("pass", "warn", "degrade", "require_human", "block", "error")


def stricter(a: GateVerdict, b: GateVerdict) -> GateVerdict:
    """Return the stricter of two verdicts, the first on a tie."""
    return b if _STRICTNESS.index(b.outcome) > _STRICTNESS.index(a.outcome) else a


def refusal_of(gate_id: str, verdict: GateVerdict) -> RuntimeErrorBase | None:
    """Return the error of a gate's verdict. None for pass, warn and degrade."""
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
