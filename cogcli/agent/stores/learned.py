"""Learned statements as proposals, and the profile from the promoted ones, with the origin of each entry
(docs/reference/user-memory.md#profile). Pure."""

from __future__ import annotations

from collections.abc import Iterable

from cogcli.agent.bounds import Note
from cogcli.agent.profile import (
    MAX_PROFILE_ITEMS,
    NAMED,
    STYLE,
    Statement,
    UserProfile,
    bound_statement,
    entity_of,
    fold_profile,
    statement_from,
)
from cogcli.agent.stores.interactions import Interaction, ProfileCounters
from cogcli.agent.stores.memory_rows import StoredProposal
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.pack_spec import DATA_CLASSES
from cogcli.policy.proposals import MemoryProposal

CLASS, TIER = "preference", "durable"
_MAX_REFS = 20
"""The number of newest interactions in the evidence of a proposal."""


class ProfileEntry(NamedTuple):
    """One entry of a profile, by field and name, and its proposal."""

    field: str
    name: str
    value: object
    stored: StoredProposal


def proposals_from(
    statements: Iterable[Statement],
    user_id: str,
    interactions: list[Interaction],
    *,
    confidence: float,
    at: str,
) -> list[MemoryProposal]:
    """Return the proposals for statements from these interactions. The user consents if each of them has the
    consent.
    """
    candidates = [each.to_candidate(user_id) for each in statements]
    refs = tuple(each.evidence_ref for each in interactions[-_MAX_REFS:])
    consent = all(CLASS in each.consent for each in interactions)
    data_class = max((each.data_class for each in interactions), key=DATA_CLASSES.index)
    run_id = interactions[-1].run_id
    return [
        MemoryProposal(
            CLASS, TIER, made["entity"], made["predicate"], made["value"], refs, confidence, run_id, at, consent,
            data_class,
        )
        for made in candidates
    ]  # fmt: skip


def is_of_profile(stored: StoredProposal) -> bool:
    """Return whether a proposal is about the profile of its own user."""
    made = stored.proposal
    return (made.memory_class, made.tier, made.entity) == (CLASS, TIER, entity_of(stored.user_id))


def fold_learned(
    user_id: str, promoted: Iterable[StoredProposal], counters: ProfileCounters
) -> tuple[UserProfile, list[ProfileEntry]]:
    """Return the profile from promoted proposals and counters, and the origin of each entry."""
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
    origins = {_statement_key(found): each for each in rows if (found := _statement_of(each))}
    entries = [
        ProfileEntry(field, name, value, origins[key])
        for field, name, value in _profile_entries(profile)
        if (key := _statement_key(Statement(field, value, name))) in origins
    ]
    return profile, entries


def _statement_of(stored: StoredProposal) -> Statement | None:
    """Return the bounded statement of a proposal, or None if it is not about a profile."""
    notes: list[Note] = []
    found = statement_from(stored.proposal.predicate, stored.proposal.value)
    return bound_statement(found, found.field, notes) if found else None


def _profile_entries(profile: UserProfile) -> Iterable[tuple[str, str, object]]:
    """Yield the field, name and value of each entry of a profile."""
    for field in MAX_PROFILE_ITEMS:
        held = getattr(profile, field)
        if field in NAMED:
            yield from ((field, name, value) for name, value in held.items())
        elif field == STYLE:
            yield from [(field, "", held)] if held else []
        else:
            yield from ((field, "", text) for text in held)


def _statement_key(statement: Statement) -> tuple[str, str]:
    """Return the key by which a statement replaces an earlier one: its name, or its text in a list."""
    by_name = statement.field in NAMED or statement.field == STYLE
    text = statement.name if by_name else str(statement.value)
    return statement.field, text.strip().casefold()
