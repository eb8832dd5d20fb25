"""What is known of a user: a fold of promoted proposals (docs/reference/agent-state.md#profile). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from cogcli.agent.stored import Kinds, Migration, UnreadableState, members_of, migrate, to_payload, zoned
from cogcli.core.jsonvalue import NOTHING

VERSION: Final = 1
ALLOWED: Final = (
    "preferences", "goals", "expertise_areas", "communication_style", "projects", "interests", "constraints",
    "success_patterns", "failure_patterns",
)  # fmt: skip
"""The fields that learning may change; code alone sets the others."""
_KINDS: Final[Kinds] = {
    "user_id": "text",
    "preferences": "object",
    "goals": "texts",
    "expertise_areas": "texts",
    "communication_style": "text",
    "projects": "object",
    "interests": "texts",
    "constraints": "texts",
    "success_patterns": "texts",
    "failure_patterns": "texts",
    "created_at": "text",
    "last_updated": "text",
    "interaction_count": "number",
    "synthesis_version": "number",
}


def _with_zones(profile: dict[str, Any]) -> dict[str, Any]:
    """Version 0 had times without a zone."""
    times = ((name, profile[name]) for name in ("created_at", "last_updated") if name in profile)
    return {**profile, **{name: zoned(time) for name, time in times if isinstance(time, str) and time}}


_MIGRATIONS: Final[dict[int, Migration]] = {0: _with_zones}


class UserProfile(NamedTuple):
    """The user as far as is known. Times are ISO 8601 with a zone, empty where there was none."""

    user_id: str
    preferences: dict[str, Any] = NOTHING
    goals: tuple[str, ...] = ()
    expertise_areas: tuple[str, ...] = ()
    communication_style: str = ""
    projects: dict[str, str] = NOTHING
    interests: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    success_patterns: tuple[str, ...] = ()
    failure_patterns: tuple[str, ...] = ()
    created_at: str = ""
    last_updated: str = ""
    interaction_count: int = 0
    synthesis_version: int = 1

    def to_payload(self) -> dict[str, Any]:
        """The profile as JSON, with its `schema_version`."""
        return {"schema_version": VERSION, **to_payload(self)}

    @classmethod
    def from_payload(cls, payload: Mapping[str, Any]) -> UserProfile:
        """What `to_payload` gave, of this version or an older one. Raises UnreadableState, NewerState."""
        members = members_of(migrate(payload, VERSION, _MIGRATIONS, "profile"), _KINDS, "profile")
        if "user_id" not in members:
            raise UnreadableState("a profile names its user")
        return cls(**members)
