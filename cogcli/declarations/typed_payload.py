"""Reads the payload of an event of any log as a record. Folds use the record instead of the JSON."""

from __future__ import annotations

from typing import Final

from cogcli.declarations.envelope import Event
from cogcli.declarations.event_table import PAYLOAD_OF
from cogcli.declarations.event_type import Payload
from cogcli.declarations.events import (
    UNKNOWN,
    PlanCreated,
    RunStarted,
    RunTerminated,
    StepFinished,
    StepStarted,
)
from cogcli.declarations.reading import read_record


class OtherPayload(Payload):
    """The payload of an event type that is not in the table.

    Another tool or a later version wrote it.
    """

    event = UNKNOWN


_BY_PHASE: Final[dict[str, type[Payload]]] = {
    "start": RunStarted,
    "plan": PlanCreated,
    "terminate": RunTerminated,
}
"""The payload class by phase for events of other tools, which have no type of ours."""


def read_payload(event: Event, *, whole: bool = False) -> Payload:
    """Return the payload as the record of its type, without members of other types
    (`declarations.reading`).

    Each event that ends a step becomes a `StepFinished`, so that its status is the recorded one. If
    `whole` is true, raise ValueError for a payload of a known type that lacks a required member.
    """
    return read_record(
        _record_of(event), event.payload, whole=whole and event.event_type in PAYLOAD_OF
    )


def recorded_payload(event: Event) -> Payload:
    """Return the payload of an event in a checked log as the record of its type.

    Nothing is checked again.
    """
    return PAYLOAD_OF.get(event.event_type or "", OtherPayload).of(event.payload)


def _record_of(event: Event) -> type[Payload]:
    record = PAYLOAD_OF.get(event.event_type or "")
    if record is not None:
        return StepFinished if record.event.closes else record
    if event.phase != "act":
        return _BY_PHASE.get(event.phase, OtherPayload)
    status = event.payload.get("step_status") if type(event.payload) is dict else None
    if type(status) is not str:
        return OtherPayload
    return StepStarted if status == "running" else StepFinished
