"""What the engine and those who perform its calls say to one another. Plain data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Member(NamedTuple):
    """One binding of a pinned chain."""

    binding_id: str
    service_id: str
    protocol: str
    timeout_seconds: float
    retry_count: int = 0
    retry_backoff_base: float = 1.0
    retry_backoff_factor: float = 2.0


class Chain(NamedTuple):
    """The bindings a capability may be called through, in order, and why these (execution.md 7)."""

    members: tuple[Member, ...]
    explanation: dict[str, Any]


class Attempt(NamedTuple):
    """One wire attempt, as a worker is asked to make it. `input` is the worker's own copy."""

    capability_id: str
    member: Member
    input: dict[str, Any]
    effect: str
    idempotency_key: str
    run_id: str
    step_id: str
    number: int
    deadline: float


class Answer(NamedTuple):
    """What an attempt gave: the capability's outputs, checked; usage as reported; wire records."""

    output: dict[str, Any]
    usage: Mapping[str, int] | None = None
    record: Mapping[str, Any] | None = None
