"""The verdict of policy on one call (docs/reference/pack.md#verdicts). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from cogcli.base.jsonvalue import NOTHING
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.options import SAFETY_MODES
from cogcli.declarations.spec_types import VERDICTS
from cogcli.declarations.value_types import Json

if TYPE_CHECKING:
    from cogcli.declarations.pack_spec import PackTool

_STRICTNESS: Final = {verdict: rank for rank, verdict in enumerate(reversed(VERDICTS))}
_RANK: Final = {mode: rank for rank, mode in enumerate(SAFETY_MODES)}
_OF_EFFECT: Final = {
    "none": "read_only",
    "idempotent": "local_write",
    "effect": "network",
    "unknown": "network",
}
_OF_TRUST: Final = {"elevated": "delegated", "privileged": "destructive"}


APPROVED: Final = "approved"
"""The reason of a verdict that a person's approval made."""
MASK: Final = "mask:"
"""The prefix of an obligation that masks a path of the output."""


class Verdict(NamedTuple):
    """The strictest verdict of the checks on a call, and its causes.

    `stage` is the check that decided: permission, rule or situation. `reason` is a keyword from the reference or the id
    of a rule.
    """

    outcome: str
    stage: str
    reason: str
    rule: str = ""
    gate: str = ""
    approval_mode: str = "read_only"
    matched: tuple[str, ...] = ()
    """The enforced rules that matched."""
    would: tuple[dict[str, str], ...] = ()
    """The verdicts of shadow rules, as `{rule, verdict}`."""
    rule_errors: tuple[dict[str, str], ...] = ()
    """Rules without a result, as `{rule, code, pointer}`."""
    obligations: tuple[str, ...] = ()
    reads: Json = NOTHING
    waiting: tuple[str, ...] = ()
    """The rules that were left out because a value that they may read is not known yet."""
    pack: str = ""
    """The pack whose rule decided, if the run has several packs; the primary one if no rule did."""
    limit: str = ""
    """The cumulative limit that decided."""
    without_gate: tuple[str, ...] = ()
    """The limits within which the built-in gate does not ask."""
    is_built_in: bool = False
    """Whether the built-in gate for destructive calls asks, and no rule does."""
    is_shadow: bool = False
    """Whether no rule of the pack was enforced."""

    @property
    def allows(self) -> bool:
        """Whether the call may be made, possibly after a person's approval."""
        return self.outcome in ("allow", "allow_with_gate")

    @property
    def without_reads(self) -> tuple[object, ...]:
        """The members but `reads`, to compare with those of another verdict."""
        return (*self[:_READS], *self[_READS + 1 :])

    def lifted(self) -> Verdict:
        """Return the verdict after a person has approved the call at its gate."""
        return self._replace(outcome="allow", reason=APPROVED)

    @property
    def masks(self) -> tuple[str, ...]:
        """The paths of the output that the obligations mask."""
        if not self.obligations:  # as for nearly all calls
            return ()
        return tuple(each.removeprefix(MASK) for each in self.obligations if each.startswith(MASK))

    @property
    def asks(self) -> bool:
        """Whether a person must approve the call or decide about it."""
        return self.outcome in ("allow_with_gate", "escalate")

    @property
    def decision(self) -> str:
        """`veto` if the call is not allowed, `audit` if a shadow rule would be stricter, otherwise `allow`."""
        if not self.allows:
            return "veto"
        if not self.would:
            return "allow"
        is_audit = any(is_stricter(each["verdict"], self.outcome) for each in self.would)
        return "audit" if is_audit else "allow"

    def to_payload(self) -> Json:
        """Return the members of `policy.decided` that the checks determine."""
        optional = {
            "rule": self.rule,
            "pack": self.pack,
            "limit": self.limit,
            "gate": self.gate,
        }
        return {
            "decision": self.decision,
            "verdict": self.outcome,
            "stage": self.stage,
            "reason": self.reason,
            **{name: value for name, value in optional.items() if value},
            "enforced": not self.is_shadow,
            "approval_mode": self.approval_mode,
            "matched": list(self.matched),
            "would": list(self.would),
            "rule_errors": list(self.rule_errors),
            "obligations": list(self.obligations),
            "reads": self.reads,
        }


_READS: Final = Verdict._fields.index("reads")


class LiftedGates(set[tuple[str, str]]):
    """The verdicts and gates that a person has approved for one call."""

    def lift(self, verdict: Verdict) -> Verdict:
        """Return the verdict after the approvals."""
        return verdict.lifted() if (verdict.outcome, verdict.gate) in self else verdict


def is_stricter(verdict: str, other: str) -> bool:
    """Return whether the first verdict permits less than the second."""
    return _STRICTNESS[verdict] > _STRICTNESS[other]


def is_above(mode: str, ceiling: str) -> bool:
    """Return whether an approval mode exceeds a safety mode."""
    return _RANK[mode] > _RANK[ceiling]


def highest_mode(modes: list[str]) -> str:
    """Return the highest approval mode in a list, or `read_only` if the list is empty."""
    return max(modes, key=_RANK.__getitem__, default=SAFETY_MODES[0])


def approval_mode(capability: Capability, declared: str = "") -> str:
    """Return the approval mode of a capability.

    It is the highest mode that its effect class, its trust level, an irreversible effect, or the pack's declaration
    requires.
    """
    modes = [_OF_EFFECT[capability.effect], *([declared] if declared else [])]
    if capability.safety:
        modes.append(_OF_TRUST.get(capability.safety.trust_level, SAFETY_MODES[0]))
        if capability.effect != "none" and capability.safety.reversible is False:
            modes.append("destructive")
    return highest_mode(modes)


def mode_under(tools: Mapping[str, PackTool], capability: Capability) -> str:
    """Return the approval mode of a capability under a pack's declarations. The mode of a skill is the highest of all
    capabilities that it reaches.
    """
    modes = []
    for each in (capability, *capability.reaches):
        declared = tools.get(each.id)
        modes.append(approval_mode(each, declared.approval_mode if declared else ""))
    return highest_mode(modes)
