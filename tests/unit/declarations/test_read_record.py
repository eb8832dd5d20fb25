"""Records of JSON that nothing has checked."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogcli.declarations.call_records import AttemptMade, StepError
from cogcli.declarations.event_table import PAYLOADS
from cogcli.declarations.events import RunStarted, StepFinished, StepStarted
from cogcli.declarations.field import fields_of
from cogcli.declarations.reading import read_record, read_record_at_once
from cogcli.declarations.shared_events import SharedActivity
from cogcli.declarations.typed_payload import OtherPayload, read_payload
from cogcli.episode.log_reader import event_of

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=4,
)


def test_members_of_other_types_count_as_absent() -> None:
    found = read_record(
        StepFinished,
        {
            "step_id": 7,
            "step_status": "done",
            "reads": ["vars.a", 3, None],
            "writes": [{"target": "vars.b", "value": 1}, "x"],
            "attempts": [{"binding_id": "b", "status_code": "200", "duration_ms": -1}],
            "latency_ms": True,
            "error": {"code": "call.timeout"},
        },
    )
    assert (found.step_id, found.step_status, found.reads, found.latency_ms) == (
        "",
        "done",
        ["vars.a"],
        None,
    )
    assert [(write.target, write.value) for write in found.writes] == [("vars.b", 1)]
    (attempt,) = found.attempts
    assert (attempt.binding_id, attempt.status, attempt.status_code, attempt.duration_ms) == (
        "b",
        "",
        None,
        None,
    )
    assert found.error is not None
    assert (found.error.code, found.error.message, found.error.hint) == ("call.timeout", "", None)


def test_what_was_given_stays_at_hand() -> None:
    given = {"code": "x", "message": 3, "other": True}
    assert read_record(StepError, given).json is given
    assert read_record(StepError, None).json == {}


def test_a_whole_record_has_its_required_members() -> None:
    assert read_record(StepError, {"code": "x", "message": "y", "hint": 3}, whole=True).hint is None
    for member in ({"code": "x"}, {"code": "x", "message": None}, None):
        with pytest.raises(ValueError, match=" is absent, or of another type"):
            read_record(StepError, member, whole=True)


def test_a_record_within_a_record_that_lacks_it_is_empty() -> None:
    assert read_record(RunStarted, {}).skill.id == ""


def test_it_is_frozen_and_of_the_class_that_was_asked_for() -> None:
    found = read_record(AttemptMade, {"status": "failed"})
    assert isinstance(found, AttemptMade)
    with pytest.raises(AttributeError, match="frozen"):
        found.status = "success"  # type: ignore[misc]


@given(cls=st.sampled_from(PAYLOADS), data=st.data())
def test_no_attribute_fails_whatever_is_given(cls: Any, data: st.DataObject) -> None:
    names = [field.name for field in fields_of(cls)]
    given = data.draw(st.dictionaries(st.sampled_from(names), JSON, max_size=6)) if names else {}
    found = read_record(cls, given)
    empty = read_record(cls, {})
    for name in names:
        default = getattr(empty, name)
        if default not in (None, False):  # a union of types, or of any type
            assert type(getattr(found, name)) is type(default), name


@given(cls=st.sampled_from((*PAYLOADS, SharedActivity)), data=st.data())
def test_both_ways_of_reading_give_the_same_attributes(cls: Any, data: st.DataObject) -> None:
    names = [field.name for field in fields_of(cls)]
    keys = st.sampled_from((*names, "x-own", "json", "of", "replace", "__class__"))
    given = data.draw(st.dictionaries(keys, JSON, max_size=6))
    for _ in range(2):  # the second time the shape is known
        lazily, at_once = read_record(cls, given), read_record_at_once(cls, given)
        assert at_once.json is given
        assert type(at_once) is type(lazily)
        for name in names:
            assert getattr(at_once, name) == getattr(lazily, name), name
        assert at_once.replace.__name__ == "replace"


def payload_of(**line: Any) -> Any:
    return read_payload(event_of({"phase": "act", "payload": {}, **line}))


def test_a_type_that_is_not_ours_is_read_by_its_phase_and_status() -> None:
    assert isinstance(payload_of(phase="start"), RunStarted)
    assert isinstance(payload_of(payload={"step_status": "running"}), StepStarted)
    assert isinstance(payload_of(payload={"step_status": "done"}), StepFinished)
    assert isinstance(payload_of(payload={"step_status": 3}), OtherPayload)
    assert isinstance(payload_of(event_type="thought", phase="reason"), OtherPayload)


def test_the_status_of_a_closing_event_is_the_recorded_one() -> None:
    found = payload_of(
        event_type="step.completed", payload={"step_id": "a", "step_status": "failed"}
    )
    assert (type(found).__name__, found.step_status) == ("StepFinished", "failed")
