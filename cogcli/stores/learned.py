"""What is learned of a user, as candidates of proposals and back: each member of a profile has a predicate of its own
(docs/reference/user-memory.md#profile). Pure.

A text of a list is named by what it says, so that two goals do not contradict each other; a preference, a project and
the style are named by their keys, so that two values of one do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from cogcli.agent.profile import UserProfile
from cogcli.core.canonical import digest
from cogcli.core.jsonvalue import list_of, object_of
from cogcli.governance.proposals import MemoryProposal
from cogcli.stores.interactions import ProfileCounters
from cogcli.stores.memory_rows import StoredProposal

LISTS: Final = {
    "goals": 10,
    "expertise_areas": 15,
    "interests": 15,
    "constraints": 10,
    "success_patterns": 5,
    "failure_patterns": 5,
}
"""By field of texts how many of them a profile has, the newest."""
_OBJECTS: Final = {"preferences": 30, "projects": 10}
_STYLE: Final = "communication_style"


class ProfileEntry(NamedTuple):
    """One member of a profile with where it comes from. `key` is empty of a text in a list, and of the style."""

    field: str
    key: str
    value: Any
    proposal_id: str
    evidence_refs: tuple[str, ...]
    decided_by: str
    decided_at: str

    def to_payload(self) -> dict[str, Any]:
        """The entry as JSON."""
        return {**self._asdict(), "evidence_refs": list(self.evidence_refs)}


def proposals_from(
    insights: Mapping[str, Any],
    user_id: str,
    *,
    evidence_refs: tuple[str, ...],
    confidence: float,
    run_id: str,
    at: str,
    consent: bool,
) -> list[MemoryProposal]:
    """The proposals that insights make, which are members of a profile by field."""
    return [
        MemoryProposal(
            "preference",
            "durable",
            f"user:{user_id}",
            predicate,
            value,
            evidence_refs,
            confidence,
            run_id,
            at,
            consent,
            "internal",
        )
        for predicate, value in _candidates(insights)
    ]


def _candidates(insights: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in object_of(insights.get("preferences")).items():
        yield (f"preferences.{key}" if _field_of(key) != ("preferences", key) else key), value
    yield from ((f"projects.{key}", value) for key, value in object_of(insights.get("projects")).items())
    if insights.get(_STYLE):
        yield _STYLE, insights[_STYLE]
    for field in LISTS:
        for text in list_of(insights.get(field)):
            yield f"{field}:{digest(text.strip().casefold().encode())[7:15]}", text


def _field_of(predicate: str) -> tuple[str, str]:
    """The field of a predicate, and the key in it: what no other field claims is a preference."""
    field, dot, key = predicate.partition(".")
    if dot and field in _OBJECTS:
        return field, key
    if predicate == _STYLE or predicate.partition(":")[0] in LISTS:
        return predicate.partition(":")[0], ""
    return "preferences", predicate


def entries_of(promoted: Iterable[StoredProposal]) -> list[ProfileEntry]:
    """The members of a profile by the proposals that were promoted, the oldest first: of one that two say something
    of the last one counts, and of a field at most as many as a profile has."""
    found: dict[tuple[str, str], ProfileEntry] = {}
    for stored in promoted:
        made = stored.proposal
        field, key = _field_of(made.predicate)
        named = (field, key or (str(made.value).strip().casefold() if field in LISTS else ""))
        found.pop(named, None)  # said again it is the newest
        found[named] = ProfileEntry(
            field, key, made.value, stored.proposal_id, made.evidence_refs, stored.decided_by, stored.decided_at
        )  # fmt: skip
    entries = []
    for field, most in {**_OBJECTS, _STYLE: 1, **LISTS}.items():
        entries += [entry for entry in found.values() if entry.field == field][-most:]
    return entries


def profile_from(user_id: str, entries: Iterable[ProfileEntry], counters: ProfileCounters) -> UserProfile:
    """The profile of a user: its entries and counters."""
    members: dict[str, Any] = {name: {} for name in _OBJECTS} | dict.fromkeys(LISTS, ())
    last = counters.last_updated
    for entry in entries:
        last = max(last, entry.decided_at)
        if entry.field in LISTS:
            members[entry.field] += (str(entry.value),)
        elif entry.field == _STYLE:
            members[_STYLE] = str(entry.value)
        else:
            members[entry.field][entry.key] = entry.value
    return UserProfile(user_id, **{**members, **counters._asdict(), "last_updated": last})
