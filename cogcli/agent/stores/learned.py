"""What is learned of a user, as proposals, and the profile that was promoted of them, with where each entry comes from
(docs/reference/user-memory.md#profile). Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from cogcli.agent.bounds import Note
from cogcli.agent.profile import (
    MOST,
    NAMED,
    STYLE,
    Statement,
    UserProfile,
    clean,
    entity_of,
    fold_profile,
    statement_of,
)
from cogcli.agent.stores.interactions import Interaction, ProfileCounters
from cogcli.agent.stores.memory_rows import StoredProposal
from cogcli.declarations.pack_spec import DATA_CLASSES
from cogcli.policy.proposals import MemoryProposal

CLASS, TIER = "preference", "durable"
_MOST_REFS = 20
"""How many interactions a proposal names as its evidence, the newest."""


class ProfileEntry(NamedTuple):
    """One entry of a profile, by field and name, and the proposal that says so."""

    field: str
    name: str
    value: Any
    stored: StoredProposal


def proposals_from(
    statements: Iterable[Statement],
    user_id: str,
    of: list[Interaction],
    *,
    confidence: float,
    at: str,
) -> list[MemoryProposal]:
    """The proposals that statements make, learned of these interactions. Their user consents who did in each."""
    candidates = [each.to_candidate(user_id) for each in statements]
    refs = tuple(each.evidence_ref for each in of[-_MOST_REFS:])
    consent = all(CLASS in each.consent for each in of)
    data_class = max((each.data_class for each in of), key=DATA_CLASSES.index)
    return [
        MemoryProposal(
            CLASS, TIER, made["entity"], made["predicate"], made["value"], refs, confidence, of[-1].run_id, at, consent,
            data_class,
        )
        for made in candidates
    ]  # fmt: skip


def is_of_profile(stored: StoredProposal) -> bool:
    """Whether a proposal says something for the profile of its own user."""
    made = stored.proposal
    return (made.memory_class, made.tier, made.entity) == (CLASS, TIER, entity_of(stored.user_id))


def fold_learned(
    user_id: str, promoted: Iterable[StoredProposal], counters: ProfileCounters
) -> tuple[UserProfile, list[ProfileEntry]]:
    """The profile that promoted proposals and counters make, and the origin of each of its entries."""
    rows = sorted(
        filter(is_of_profile, promoted), key=lambda each: (each.decided_at, each.proposal_id)
    )
    profile = fold_profile(
        user_id,
        (each.to_memory() for each in rows),
        interaction_count=counters.interaction_count,
        synthesis_version=counters.synthesis_version,
    )
    created = [time for time in (counters.created_at, profile.created_at) if time]
    profile = profile._replace(
        created_at=min(created, default=""),
        last_updated=max(counters.last_updated, profile.last_updated),
    )
    origins = {_key(said): each for each in rows if (said := _statement(each))}
    entries = [
        ProfileEntry(field, name, value, origins[key])
        for field, name, value in _members(profile)
        if (key := _key(Statement(field, value, name))) in origins
    ]
    return profile, entries


def _statement(stored: StoredProposal) -> Statement | None:
    """What a proposal says, as a profile has it."""
    notes: list[Note] = []
    said = statement_of(stored.proposal.predicate, stored.proposal.value)
    return clean(said, said.field, notes) if said else None


def _members(profile: UserProfile) -> Iterable[tuple[str, str, Any]]:
    """Field, name and value of each entry of a profile."""
    for field in MOST:
        held = getattr(profile, field)
        if field in NAMED:
            yield from ((field, name, value) for name, value in held.items())
        elif field == STYLE:
            yield from [(field, "", held)] if held else []
        else:
            yield from ((field, "", text) for text in held)


def _key(said: Statement) -> tuple[str, str]:
    """What makes a statement the successor of another: its name, or in a list its text."""
    by_name = said.field in NAMED or said.field == STYLE
    return said.field, (said.name if by_name else str(said.value)).strip().casefold()
