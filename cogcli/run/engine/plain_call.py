"""The constants that a run's plain steps with the same capability share (`run.engine.plain_step`)."""

from __future__ import annotations

from typing import Final, NamedTuple

from cogcli.base.calls import BindingChain, Member
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.event_line import EventLine
from cogcli.run.engine.plan import StepTarget
from cogcli.run.engine.ports import LineSink
from cogcli.run.engine.tasks import CallSpeed

FIRST: Final = False
"""Stands for the call of a capability that one step of the run has made."""


class PlainCall(NamedTuple):
    """The constants that a run's plain steps with the same capability share."""

    lines: LineSink
    secrets: object
    """The version of the secrets for which the constants of the lines were judged."""
    target: StepTarget
    capability: Capability
    chain: BindingChain
    member: Member
    intent: EventLine
    end: EventLine
    speed: CallSpeed
    usage: dict[str, int]
