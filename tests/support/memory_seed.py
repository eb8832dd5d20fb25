"""Proposals in the store of a test's project, as runs would have made them."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from cogcli.agent.stores.memory_store import MemoryStore, ProposalOutcome
from cogcli.declarations.pack_spec import PROPOSAL_CLASSES, MemoryLayer

AT = "2026-11-01T09:30:00.000000Z"


def payload(value: Any, **members: Any) -> dict[str, Any]:
    """A proposal as a run makes it: how a customer is to be told."""
    candidate = {"entity": "user:cust_7", "predicate": "contact_by", "value": value}
    made = {"class": "preference", "tier": "durable", "candidate": candidate, "confidence": 0.5}
    return {**made, "evidence_refs": ["run_1/order"], **members}


def propose(
    root: Path,
    *payloads: dict[str, Any],
    tenant: str = "local",
    user: str = "cust_7",
    consent: Collection[str] = PROPOSAL_CLASSES,
    run_id: str = "run_1",
    at: str = AT,
    layer: MemoryLayer | None = None,
) -> list[ProposalOutcome]:
    """What became of proposals in the project's `memory.db`."""
    store = MemoryStore(root / ".cogcli/memory.db")
    try:
        return store.propose_all(
            tenant, user, payloads, layer or MemoryLayer(), consent=consent, run_id=run_id, at=at
        )
    finally:
        store.close()
