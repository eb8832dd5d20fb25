"""Proposals of memory: what may be kept, the id of it, and when it is promoted without a person. Pure
(docs/reference/pack.md#proposals)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple

from cogcli.base.canonical import canonical, digest_of
from cogcli.declarations.pack_spec import DATA_CLASSES, PROPOSAL_CLASSES, TIERS, MemoryLayer

MAX_CANDIDATE: Final = 64 * 1024
"""Bytes of a candidate as canonical JSON; a larger one is not kept."""
_REPEAT: Final = 0.1
"""What each further run adds to the confidence of a proposal."""
_CHOICES: Final = {"memory_class": PROPOSAL_CLASSES, "tier": TIERS, "data_class": DATA_CLASSES}


class MemoryProposal(NamedTuple):
    """What may be kept. `memory_class` is one of the proposal classes, `evidence_refs` are never empty."""

    memory_class: str
    tier: str
    entity: str
    predicate: str
    value: Any
    evidence_refs: tuple[str, ...]
    confidence: float
    run_id: str
    at: str
    consent: bool
    data_class: str

    @property
    def candidate(self) -> dict[str, Any]:
        """What it says: the predicate of an entity, and its value."""
        return {"entity": self.entity, "predicate": self.predicate, "value": self.value}

    @property
    def is_too_large(self) -> bool:
        """Whether its candidate is larger than what is kept."""
        return len(canonical(self.candidate)) > MAX_CANDIDATE

    def id_for(self, tenant_id: str, user_id: str) -> str:
        """The id: equal for an equal class, tier, candidate and user, so that a repeat is no second row."""
        named = [self.memory_class, self.tier, self.candidate, tenant_id, user_id]
        return f"mp_{digest_of(named).removeprefix('sha256:')[:16]}"

    def lacks(self, layer: MemoryLayer, verdict: str) -> tuple[str, ...]:
        """Why a pack does not promote it by itself, its contradiction having this verdict; empty where it does."""
        reasons = {
            "auto_promote": self.memory_class not in layer.auto_promote,
            "confidence_floor": self.confidence < layer.confidence_floor,
            "consent": not self.consent,
            "contradiction": verdict != "none",
        }
        return tuple(reason for reason, holds in reasons.items() if holds)

    def repeated_by(self, later: MemoryProposal) -> MemoryProposal:
        """The proposal after another run made it, too: with its evidence, more confidence, and its say on consent."""
        confidence = min(1.0, round(max(self.confidence, later.confidence) + _REPEAT, 2))
        return later._replace(
            evidence_refs=tuple(dict.fromkeys((*self.evidence_refs, *later.evidence_refs))),
            confidence=confidence,
            data_class=max(self.data_class, later.data_class, key=DATA_CLASSES.index),
        )


def proposal_from(
    payload: Mapping[str, Any], *, run_id: str, at: str, consent: Collection[str] = ()
) -> MemoryProposal:
    """The proposal that a payload `{class, tier, candidate, evidence_refs, confidence, data_class?}` makes in a run,
    whose user consents to these classes. Raises ValueError for what no proposal is."""
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
