from __future__ import annotations

import orjson
import pytest
from fakes.states import whole

from cogcli.base.refs import FRAME_FIELDS, OUTPUT_FIELDS, WORKING_SLOTS
from cogcli.state.execution import (
    ExecutionState,
    FrameState,
    OutputState,
    TraceMetrics,
    TraceStep,
    WorkingState,
    frame_from,
    snapshot,
    to_payload,
)


def test_blocks_have_the_fields_of_the_seed() -> None:
    assert FrameState._fields == FRAME_FIELDS
    assert tuple(vars(WorkingState())) == WORKING_SLOTS
    assert tuple(vars(OutputState())) == OUTPUT_FIELDS
    assert tuple(vars(TraceMetrics())) == (
        "step_count", "llm_calls", "tool_calls", "tokens_in", "tokens_out", "elapsed_ms",
    )  # fmt: skip
    assert TraceStep._fields == (
        "step_id", "capability_id", "status", "started_at", "ended_at", "reads", "writes", "latency_ms",
    )  # fmt: skip


def test_a_fresh_state_is_empty_and_shares_nothing_with_another() -> None:
    one, two = ExecutionState("r", "t", "s.k"), ExecutionState("r", "t", "s.k")
    one.vars["x"] = 1
    one.working.risks.append({})
    one.extensions["p"] = {}
    assert whole(two) == whole(ExecutionState("r", "t", "s.k"))
    assert (two.status, two.iteration, two.current_step, two.state_version) == (
        "pending",
        0,
        None,
        "1.0.0",
    )


def test_frame_is_frozen() -> None:
    with pytest.raises(AttributeError):
        FrameState().goal = "x"  # type: ignore[misc]


def test_frame_comes_from_an_object_and_goes_back() -> None:
    raw = {"goal": "g", "context": {"a": 1}, "assumptions": ["x"], "priority": None}
    frame = frame_from(raw)
    assert frame.assumptions == ("x",)
    assert to_payload(frame) == {
        "goal": "g",
        "context": {"a": 1},
        "constraints": {},
        "success_criteria": {},
        "assumptions": ["x"],
        "priority": None,
    }
    assert to_payload(frame_from(to_payload(frame))) == to_payload(frame)


def test_current_step_is_the_first_in_plan_order_whatever_started_first() -> None:
    state = ExecutionState("r", "t", "s.k")
    state.running = {"late": 5, "early": 2}
    assert state.current_step == "early"


def test_snapshot_is_the_seeds_object_as_json() -> None:
    state = ExecutionState(
        "r", "t", "s.k", skill_version="1.2.0", frame=FrameState(assumptions=("a",))
    )
    state.trace.steps.append(TraceStep("s", "c.a", "done", reads=("inputs.x",), writes=("vars.y",)))
    document = orjson.loads(orjson.dumps(snapshot(state)))
    assert list(document) == [
        "inputs", "frame", "working", "output", "vars", "outputs", "extensions", "trace", "state_version",
        "skill_version", "iteration", "current_step", "parent_run_id", "updated_at",
    ]  # fmt: skip
    assert document["trace"]["steps"][0]["reads"] == ["inputs.x"]
    assert document["frame"]["assumptions"] == ["a"]
    assert document["skill_version"] == "1.2.0"
