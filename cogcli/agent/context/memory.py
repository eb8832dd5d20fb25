"""Stage 5, `memory`: promoted memory that user, tenant and consent allow, the nearest first. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from cogcli.agent.context.inputs import PromotedMemory, User
from cogcli.base.jsonvalue import NOTHING
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.pack_spec import DATA_CLASSES, MemoryLayer
from cogcli.declarations.value_types import Json
from cogcli.policy.freshness import seconds_of

_CLASS: Final = {data_class: rank for rank, data_class in enumerate(DATA_CLASSES)}


WORKING: Final = "working"
"""The tier of the topics of a session."""


def session_entity(session_id: str) -> str:
    """Return the entity of the working memory of a session."""
    return f"session:{session_id}"


class Recall(NamedTuple):
    """The memories for the context, and the omitted ones as `{memory_id, reason}`."""

    memories: tuple[PromotedMemory, ...]
    omitted: tuple[Json, ...]


def recall(
    memories: Iterable[PromotedMemory], layer: MemoryLayer, user: User, *, tenant_id: str, now: str,
    session_id: str = "", salience: Mapping[str, float] = NOTHING,
) -> Recall:  # fmt: skip
    """Return the memories that may be recalled, at most `top_k`: the most salient first, then by rank and id."""
    kept, omitted = [], []
    for memory in memories:
        reason = fault_of(memory, layer, user, tenant_id, now, session_id)
        if reason:
            omitted.append({"memory_id": memory.memory_id, "reason": reason})
        else:
            kept.append(memory)
    kept.sort(key=lambda each: (-salience.get(each.memory_id, 0.0), each.rank, each.memory_id))
    omitted += [
        {"memory_id": memory.memory_id, "reason": "top_k"} for memory in kept[layer.top_k :]
    ]
    return Recall(tuple(kept[: layer.top_k]), tuple(omitted))


def fault_of(
    memory: PromotedMemory, layer: MemoryLayer, user: User, tenant_id: str, now: str,
    session_id: str = "",
) -> str:  # fmt: skip
    """Return why a memory is not recalled. Empty if it may be recalled. Working memory belongs to its session."""
    if memory.tenant_id != tenant_id:
        return "tenant"
    if memory.user_id and memory.user_id != user.user_id:
        return "user"
    if memory.tier == WORKING and memory.entity != session_entity(session_id):
        return "session"
    if memory.memory_class not in user.consent:
        return "consent"
    if _CLASS[memory.data_class] > _CLASS[layer.max_class]:
        return "class"
    lifetime = layer.ttl_s.get(memory.tier)
    if lifetime is not None and seconds_of(now) - seconds_of(memory.promoted_at) > lifetime:
        return "expired"
    return ""
