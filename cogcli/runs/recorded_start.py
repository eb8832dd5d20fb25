"""What the events of a log have to hold for a run to be continued, repeated or replayed from it.

`events/payloads.py` leaves members of the first event open, since older logs and other tools hold others.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cogcli.events.payloads import problem_of

_Seconds = Annotated[float, Field(gt=0)]


class _Recorded(BaseModel):
    """An object whose further members are left open."""

    model_config = ConfigDict(strict=True, extra="allow")


class _Options(_Recorded):
    """The options of the run."""

    trust_level: str = ""
    confirmed_capabilities: list[str] = []
    fail_fast: bool = True
    max_workers: Annotated[int, Field(ge=1, le=256)] = 1
    timeout_seconds: _Seconds | None = None
    step_timeout_seconds: _Seconds | None = None
    binds: dict[str, str] = {}
    required_conformance_profile: Literal["experimental", "standard", "strict"] | None = None
    prefer: list[str] = []
    no_fallback: bool = False


class _Member(_Recorded):
    """A binding of a chain."""

    binding_id: str
    service_id: str
    protocol: str
    timeout_seconds: float
    start_seconds: float = 0
    retry_count: Annotated[int, Field(ge=0)] = 0
    retry_backoff_base: float = 0
    retry_backoff_factor: float = 0
    fallback_on: str = ""


class _Chain(_Recorded):
    """The chain of a capability."""

    members: list[_Member]


class _Pins(_Recorded):
    """The versions that the run began with."""

    specs: dict[str, str] = {}
    specs_blob: str = ""
    variables: dict[str, dict[str, str]] = {}
    model: dict[str, Any] = {}


class _Policy(BaseModel):
    """What governs the run, as `PolicyRequest` has it."""

    model_config = ConfigDict(strict=True, extra="forbid")

    pack: str = ""
    intent: str = ""
    user: str = ""
    safety_mode: str = ""
    budget: dict[str, int] = {}


class _Contracts(_Recorded):
    """What the specs of lenient roots contradict themselves in."""

    lenient: list[str] = []
    found: list[dict[str, Any]] = []


class _Agent(_Recorded):
    """What an agent was asked."""

    request: dict[str, Any] = {}


class _Start(_Recorded):
    """The members of `run.started` that are read again."""

    options: _Options
    pins: _Pins
    selection: dict[str, _Chain] = {}
    policy: _Policy | None = None
    contracts: _Contracts | None = None
    agent: _Agent | None = None


def problem_of_recorded(event_type: str, payload: Any) -> str | None:
    """What is wrong with the payload of a recorded event of a known type, in one line."""
    problem = problem_of(event_type, payload)
    if problem or event_type != "run.started":
        return problem
    try:
        _Start.model_validate(payload)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        return f"payload.{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return None
