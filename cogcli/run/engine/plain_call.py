"""The constants that a run's plain steps with the same capability share (`run.engine.plain_invocation`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cogcli.base.calls import BindingChain, Member
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.event_line import EventLine
from cogcli.declarations.value_types import Json
from cogcli.run.engine.effects import CallSpeed
from cogcli.run.engine.plan import StepTarget

if TYPE_CHECKING:
    from cogcli.run.engine.ports import LineSink

FIRST: Final = False
"""Stands for the call of a capability that one step of the run has made."""


class DecisionLine:
    """The line of the policy's decisions about a call. Most calls of a run get the same verdict."""

    __slots__ = ("line", "verdict")

    def __init__(self, line: EventLine) -> None:
        self.line = line
        self.verdict: tuple[object, ...] | None = None
        """The last verdict without its reads, if the journal accepted its line. The payload still contains it."""


class PlainCall(NamedTuple):
    """The constants that a run's plain steps with the same capability share."""

    lines: LineSink
    secrets: object
    """The version of the secrets against which the constants of the lines were checked."""
    target: StepTarget
    capability: Capability
    capability_id: str
    effect: str
    chain: BindingChain
    member: Member
    limit: float
    """Seconds after which the call is given up."""
    intent: EventLine
    end: EventLine
    decided: DecisionLine | None
    """The decision of the policy. None without a policy."""
    attempts: list[Json]
    """The `attempts` of a step whose answer has no members about its attempt."""
    usage: dict[str, int]
    """The assumed usage of a call whose service reports none."""
    tool: str
    speed: CallSpeed
    input_types: dict[str, type] | None
    """The types of inputs that need no further check (`specs.fields.are_plain`). None if all need one."""
    repeats: bool
    """Whether its bindings may be called more than once."""
