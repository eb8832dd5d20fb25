"""What the events of a log have to hold for a run to be continued, repeated or replayed from it.

`declarations/events.py` leaves members of the first event open, since older logs and other tools hold others.
"""

from __future__ import annotations

from functools import cache
from types import NoneType
from typing import Annotated, Any, Final, Literal, get_args, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model, model_validator

from cogcli.declarations.checked import problem_of
from cogcli.declarations.option_types import OptionType, PositiveNumber, WholeNumber, WordChoice
from cogcli.declarations.options import OPTIONS, RunOptions

_NO_MODEL: Final = "template"
_Seconds = Annotated[float, Field(gt=0)]


class _Recorded(BaseModel):
    """An object whose further members are left open."""

    model_config = ConfigDict(strict=True, extra="allow")


@cache
def _options_model() -> type[BaseModel]:
    """The model of the options of a run, as their declarations say."""
    hints = get_type_hints(RunOptions)
    fields: dict[str, Any] = {}
    for option in OPTIONS.values():
        above, _, name = option.logged.rpartition(".")
        if above == "options":
            fields[name] = (_limited(option.type, hints[option.name]), option.default)
    return create_model("Options", __base__=_Recorded, **fields)


def _limited(type: OptionType, hint: Any) -> Any:
    """The hint of an option with the limits of its type."""
    if isinstance(type, WordChoice):
        words: Any = Literal[type.words]
        return words | None if NoneType in get_args(hint) else words
    if isinstance(type, WholeNumber):
        return Annotated[hint, Field(ge=type.least, le=type.most)]
    if isinstance(type, PositiveNumber):
        return _Seconds | None
    return hint


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


class _Model(_Recorded):
    """The language model of an agent."""

    adapter: str
    name: str = ""
    context_tokens: int | None = None
    deterministic: bool = False
    features: list[str] = []


class _Pins(_Recorded):
    """The versions that the run began with."""

    specs: dict[str, str] = {}
    specs_blob: str = ""
    variables: dict[str, dict[str, str]] = {}
    model: _Model | None = None


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


class _User(_Recorded):
    """Who asked."""

    user_id: str = ""
    role: str = ""
    consent: list[str] = []


class _Request(_Recorded):
    """What an agent was asked."""

    message: str
    intent: str = ""
    params: dict[str, Any] = {}
    user: _User | None = None
    channel: str = ""
    locale: str = ""
    focus: str = ""
    attachments: list[dict[str, Any]] = []
    request_id: str = ""
    session_id: str = ""
    refused_by: list[str] = []
    message_hash: str = ""


class _Edge(BaseModel):
    """A fact of the graph."""

    model_config = ConfigDict(strict=True, extra="forbid")

    subject: str
    predicate: str
    evidence_ref: str
    observed_at: str
    object: str = ""
    value: Any = None
    valid_from: str = ""
    valid_until: str = ""
    trust: str = ""
    data_class: str = ""
    tenant_id: str = ""
    seq: int = 0


class _Memory(BaseModel):
    """A memory of earlier runs."""

    model_config = ConfigDict(strict=True, extra="forbid")

    memory_id: str
    tier: str
    memory_class: str
    entity: str
    predicate: str
    value: Any
    promoted_at: str
    user_id: str = ""
    tenant_id: str = ""
    data_class: str = ""
    evidence_refs: list[str]
    rank: float = 0.0


class _Message(_Recorded):
    """A message of a conversation."""

    role: str
    content: str


class _Session(_Recorded):
    """The conversation that a request continues."""

    messages: list[_Message]
    reasoning: dict[str, Any] = {}
    last_run_failed: bool = False


class _Fetched(_Recorded):
    """What the stores gave."""

    edges: list[_Edge]
    memories: list[_Memory]
    snapshot_ref: str
    profile: dict[str, Any] | None = None
    session: _Session | None = None


class _Agent(_Recorded):
    """A request to an agent, its limits and what its stores gave."""

    request: _Request
    limits: dict[str, int | float] = {}
    fetched: _Fetched
    mode: str | None = None
    timeout_s: _Seconds | None = None


class _Start(_Recorded):
    """The members of `run.started` that are read again."""

    options: dict[str, Any]
    pins: _Pins
    selection: dict[str, _Chain] = {}
    policy: _Policy | None = None
    contracts: _Contracts | None = None
    agent: _Agent | None = None

    @model_validator(mode="after")
    def _has_model(self) -> _Start:
        """An agent names its model, and the mode and the time of one that is a language model."""
        agent, model = self.agent, self.pins.model
        if agent is None:
            return self
        if model is None:
            raise ValueError("pins.model is missing")
        if model.adapter != _NO_MODEL and (agent.mode is None or agent.timeout_s is None):
            raise ValueError("agent.mode and agent.timeout_s are missing")
        return self


def problem_of_recorded(event_type: str, payload: Any) -> str | None:
    """What is wrong with the payload of a recorded event of a known type, in one line."""
    problem = problem_of(event_type, payload)
    if problem or event_type != "run.started":
        return problem
    return _problem_at("payload", _Start, payload) or _problem_at(
        "payload.options", _options_model(), payload["options"]
    )


def _problem_at(place: str, model: type[BaseModel], value: Any) -> str | None:
    """The first problem of a value by a model, in one line."""
    try:
        model.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        return f"{place}.{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return None
