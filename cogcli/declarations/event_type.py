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
    """Who speaks (`agent_id`); empty where that is given with each event."""
    reduced: bool = False
    """Whether it changes the state of its run: `state.reducer` has a reducer for it."""
    plans_step: bool = False
    """Whether it adds its step to the plan of the run."""
    begins: bool = False
    """Whether something begins with it that must not begin in a run or step that is over."""
    starts: bool = False
    """Whether a step starts with it."""
    repeats: bool = False
    """Whether it is an attempt after the first."""
    asks: bool = False
    """Whether it asks a person for an approval."""
    write_ahead: bool = False
    """Whether it is on disk before an attempt leaves, so that without a result the call is in doubt."""
    needs_start: bool = False
    """Whether the step must have a `step.started` before it."""
    closes: bool = False
    """Whether it ends a step and carries its writes."""
    fails: bool = False
    """Whether the step that it ends has an error and wrote nothing."""
    decides: bool = False
    """Whether it holds the decision of a gate, a rule or a person: allow, audit or veto."""
    resolves: bool = False
    """Whether it is a person's answer to a request for approval."""
    reopens: bool = False
    """Whether another process continues the log from here: what ran before was cut off."""
    one_process_only: bool = False
    """Whether it belongs to the process that wrote it: resume and replay do not produce it again."""
    by_timing: bool = False
    """Whether it depends on who was faster, or on when a person answered: replay does not miss it."""
    projected: bool = False
    """Whether it is the evidence of a projection: the folds to the state and its document pass it
    over."""
    cached: bool = False
    """Whether it names a cache, which says nothing that the log does not: all folds pass it over."""
    answers_request: bool = False
    """Whether it records what came of a request to a model."""
    outside_time: bool = False
    """Whether it is written while no process drives the run: its time does not count as active."""
    usual: bool = False
    """Whether a run or step that goes well has it, so that a view of a very long run may leave it out with a round
    that is done."""
    detail: bool = False
    """Whether it is one of many small steps within a turn, which the plain progress of a run leaves
    out."""
    words: tuple[str, ...] = ()
    """What a log line shows of it: payload members, or one of the names of `report.table`."""
    attributes: tuple[str, ...] = ()
    """The payload members that a moment of a trace carries; without any it is none."""


class Payload(Record):
    """The payload of an event. Its class represents the event type, whose properties are in
    `event`.
    """

    event: ClassVar[EventType]
