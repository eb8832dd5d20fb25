"""The properties of event types that folds use, and the base class of all payloads."""

from __future__ import annotations

from typing import ClassVar

from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.record import Record


class EventType(NamedTuple):
    """The properties of a type of event. It is read for each event, so it is a plain tuple."""

    name: str
    phase: str = ""
    """Its member of `envelope.PHASES`; empty where it differs from event to event."""
    speaker: str = ""
    """The speaker (`agent_id`); empty if each event states its own."""
    reduced: bool = False
    """Whether it changes the state of its run, so that `state.reducer` has a reducer for it."""
    plans_step: bool = False
    """Whether it adds its step to the plan of the run."""
    begins: bool = False
    """Whether it begins work that must not begin in a finished run or step."""
    starts: bool = False
    """Whether a step starts with it."""
    repeats: bool = False
    """Whether it is an attempt after the first."""
    asks: bool = False
    """Whether it asks a person for an approval."""
    write_ahead: bool = False
    """Whether it is on disk before an attempt leaves, so that without a result the call is in doubt."""
    needs_start: bool = False
    """Whether its step must have a preceding `step.started`."""
    closes: bool = False
    """Whether it ends a step and contains its writes."""
    fails: bool = False
    """Whether it ends a step with an error and without writes."""
    decides: bool = False
    """Whether it contains the decision of a gate, a rule or a person: allow, audit or veto."""
    resolves: bool = False
    """Whether it is a person's answer to a request for approval."""
    reopens: bool = False
    """Whether another process continues the log here. Work before this point was interrupted."""
    one_process_only: bool = False
    """Whether it belongs to the process that wrote it: resume and replay do not produce it again."""
    by_timing: bool = False
    """Whether it depends on relative speed, or on the time of a person's answer. A replay need not contain it."""
    projected: bool = False
    """Whether it is the evidence of a projection. The folds to the state and its document ignore it."""
    cached: bool = False
    """Whether it refers to a cache without adding facts to the log. All folds ignore it."""
    answers_request: bool = False
    """Whether it records the result of a request to a model."""
    outside_time: bool = False
    """Whether it is written while no process drives the run: its time does not count as active."""
    usual: bool = False
    """Whether a successful run or step has it. A view of a very long run may omit it together with a finished
    round.
    """
    detail: bool = False
    """Whether it is one of many small steps within a turn. The plain progress of a run omits it."""
    words: tuple[str, ...] = ()
    """The content of its log line: payload members, or one of the names of `report.table`."""
    attributes: tuple[str, ...] = ()
    """The payload members that a trace includes for this moment. If empty, the trace omits the event."""


class Payload(Record):
    """The payload of an event. Its class represents the event type, whose properties are in
    `event`.
    """

    event: ClassVar[EventType]
