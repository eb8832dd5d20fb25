"""Memory proposals: their content, their ids, and automatic promotion (docs/reference/pack.md#proposals). Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from cogcli.base.canonical import canonical, digest_of
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.pack_spec import DATA_CLASSES, PROPOSAL_CLASSES, TIERS, MemoryLayer
from cogcli.declarations.value_types import Json

MAX_CANDIDATE: Final = 64 * 1024
"""The largest candidate in bytes of canonical JSON. A larger one is rejected."""
_REPEAT: Final = 0.1
"""The confidence that each further run adds to a proposal."""
_CHOICES: Final = {"memory_class": PROPOSAL_CLASSES, "tier": TIERS, "data_class": DATA_CLASSES}


class MemoryProposal(NamedTuple):
    """A proposed memory entry. `memory_class` is one of the proposal classes; `evidence_refs` is never empty."""

    memory_class: str
    tier: str
    entity: str
    predicate: str
    value: object
    evidence_refs: tuple[str, ...]
    confidence: float
    run_id: str
    at: str
    consent: bool
    data_class: str

    @property
    def candidate(self) -> Json:
        """The proposed statement: entity, predicate and value."""
        return {"entity": self.entity, "predicate": self.predicate, "value": self.value}

    @property
    def is_too_large(self) -> bool:
        """Whether the candidate exceeds MAX_CANDIDATE."""
        return len(canonical(self.candidate)) > MAX_CANDIDATE

    def id_for(self, tenant_id: str, user_id: str) -> str:
        """Return the id of the proposal for a user.

        The id depends only on class, tier, candidate and user, so that the same proposal has one row.
        """
        named = [self.memory_class, self.tier, self.candidate, tenant_id, user_id]
        return f"mp_{digest_of(named).removeprefix('sha256:')[:16]}"

    @property
    def replaces(self) -> bool:
        """Whether the proposal may replace an older value without a person. That is so for preferences and session
        topics, which change.
        """
        return self.memory_class == "preference" or self.tier == "working"

    def relation_to(self, others: Iterable[MemoryProposal], decided_at: str = "") -> str:
        """Return how the proposal relates to promoted memory with another value: `none`, `conflicts` or `supersedes`.
        `decided_at` is the time of a person's decision; the default is the proposal's own time.
        """
        times = [other.at for other in others]
        if not times:
            return "none"
        is_newer = all(other <= (decided_at or self.at) for other in times)
        is_correction = self.memory_class == "correction"
        return "supersedes" if is_correction or (self.replaces and is_newer) else "conflicts"

    def promotion_obstacles(self, layer: MemoryLayer, verdict: str) -> tuple[str, ...]:
        """Return the reasons why a pack does not promote the proposal automatically, or an empty tuple.

        `verdict` is the result of the contradiction check.
        """
        reasons = {
            "auto_promote": self.memory_class not in layer.auto_promote,
            "confidence_floor": self.confidence < layer.confidence_floor,
            "consent": not self.consent,
            "contradiction": verdict == "conflicts"
            or (verdict == "supersedes" and not self.replaces),
        }
        return tuple(reason for reason, holds in reasons.items() if holds)

    def repeated_by(self, later: MemoryProposal) -> MemoryProposal:
        """Merge the same proposal of a later run into this one.

        The result has the evidence of both, a higher confidence, and the consent of the later run.
        """
        confidence = min(1.0, round(max(self.confidence, later.confidence) + _REPEAT, 2))
        return later._replace(
            evidence_refs=tuple(dict.fromkeys((*self.evidence_refs, *later.evidence_refs))),
            confidence=confidence,
            data_class=max(self.data_class, later.data_class, key=DATA_CLASSES.index),
        )


def proposal_from(
    payload: Json, *, run_id: str, at: str, consent: Collection[str] = ()
) -> MemoryProposal:
    """Parse the proposal in a run's payload `{class, tier, candidate, evidence_refs, confidence, data_class?}`.
    `consent` contains the classes that the run's user consents to. Raise ValueError for an invalid payload.
    """
    candidate = payload["candidate"]
    made = MemoryProposal(
        payload["class"],
        payload["tier"],
        candidate["entity"],
        candidate["predicate"],
        candidate["value"],
        tuple(payload["evidence_refs"]),
        float(payload["confidence"]),
        run_id,
        at,
        payload["class"] in consent,
        payload.get("data_class") or "internal",
    )
    for name, choices in _CHOICES.items():
        if getattr(made, name) not in choices:
            raise ValueError(f"{name} `{getattr(made, name)}` is none of {', '.join(choices)}")
    if not (made.entity and made.predicate and made.evidence_refs and 0 <= made.confidence <= 1):
        raise ValueError(
            "a proposal has an entity, a predicate, evidence, and a confidence from 0 to 1"
        )
    return made
