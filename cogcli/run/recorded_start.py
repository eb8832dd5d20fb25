"""Checks that the events of a log have the members that a resume, rerun or replay needs.

`declarations/events.py` allows other members in the first event, since older logs and other tools write them.
"""

from __future__ import annotations

from functools import cache
from types import NoneType
from typing import Annotated, Any, Final, Literal, get_args, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from cogcli.declarations.checked import problem_in, problem_of
from cogcli.declarations.option_types import EnumOption, IntegerOption, OptionType, PositiveNumber
from cogcli.declarations.options import OPTIONS, RunOptions
from cogcli.declarations.run_start import RecordedStart
from cogcli.declarations.value_types import Json

_NO_MODEL: Final = "template"
_Seconds = Annotated[float, Field(gt=0)]


class _RecordedModel(BaseModel):
    """The model of a recorded object, which allows unknown members."""

    model_config = ConfigDict(strict=True, extra="allow")


@cache
def _build_options_model() -> type[BaseModel]:
    """Return the model of a run's options, generated from the options' declarations."""
    hints = get_type_hints(RunOptions)
    fields: Json = {}
    for option in OPTIONS.values():
        above, _, name = option.logged.rpartition(".")
        if above == "options":
            fields[name] = (_restrict_hint(option.type, hints[option.name]), option.default)
    return create_model("Options", __base__=_RecordedModel, **fields)


def _restrict_hint(type: OptionType, hint: Any) -> Any:
    """Return an option's type hint, restricted by the limits of its type."""
    if isinstance(type, EnumOption):
        words: Any = Literal[type.words]
        return words | None if NoneType in get_args(hint) else words
    if isinstance(type, IntegerOption):
        return Annotated[hint, Field(ge=type.minimum, le=type.maximum)]
    if isinstance(type, PositiveNumber):
        return _Seconds | None
    return hint


def find_recorded_problem(event_type: str, payload: Any) -> str | None:
    """Return a one-line message about an invalid payload of a known event type. Return None for a valid payload."""
    problem = problem_of(event_type, payload)
    if problem or event_type != "run.started":
        return problem
    return (
        problem_in(RecordedStart, payload)
        or _find_agent_problem(RecordedStart.of(payload))
        or _find_option_problem(payload["options"])
    )


def _find_agent_problem(start: RecordedStart) -> str | None:
    """Return a problem if an agent's start lacks a member, or None. A language model also needs a mode and a time."""
    agent, model = start.agent, start.pins.model
    if agent is None:
        return None
    if model is None:
        return "payload: pins.model is missing"
    if model.adapter != _NO_MODEL and (agent.mode is None or agent.timeout_s is None):
        return "payload: agent.mode and agent.timeout_s are missing"
    return None


def _find_option_problem(options: Any) -> str | None:
    try:
        _build_options_model().model_validate(options)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        return f"payload.options.{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return None
