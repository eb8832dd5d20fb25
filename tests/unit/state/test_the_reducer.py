from __future__ import annotations

import copy
from typing import Any

from fakes.sink import event_of
from fakes.states import whole

from cogcli.declarations.envelope import Draft, Event, draft_of
from cogcli.declarations.events import ENDINGS, PlanCreated, RunStarted, RunTerminated, StepStarted
from cogcli.state.execution import ExecutionState
from cogcli.state.reducer import apply, initial_state

RUN = "run_1"


class Log:
    """Builds events one after the other."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, draft: Draft) -> Event:
        self.count += 1
        return event_of(
            draft, self.count, f"{self.count:026}", f"2026-01-01T00:00:{self.count:02}.000000Z"
        )


def started(**given: Any) -> Draft:
    asked: dict[str, Any] = {
        "task": "t", "skill": {"id": "s.k", "version": "1.0.0"}, "inputs": {}, "frame": {}, "options": {}, "seed": 0,
        "tags": {}, "pins": {}, "using": "runner", "parent_run_id": None,
    }  # fmt: skip
    return draft_of(RunStarted(**{**asked, **given}), RUN)


def begun(step: str) -> Draft:
    return draft_of(StepStarted(step_id=step, uses="g.a"), RUN, step_id=step, speaker="b")


def finished(step: str, ending: str = "done", **payload: Any) -> Draft:
    return draft_of(ENDINGS[ending](step_id=step, **payload), RUN, step_id=step, speaker="b")


def folded(*drafts: Draft) -> ExecutionState:
    log = Log()
    state = initial_state(log(drafts[0]))
    for draft in drafts[1:]:
        apply(state, log(draft))
    return state


def write(target: str, value: Any, strategy: str = "overwrite") -> dict[str, Any]:
    return {"target": target, "strategy": strategy, "value": value}


def test_a_run_begins_with_its_first_event_and_shares_nothing_with_it() -> None:
    draft = started(
        inputs={"l": [1]}, frame={"goal": "g", "context": {"k": []}}, parent_run_id="run_0"
    )
    event = Log()(draft)
    state = initial_state(event)
    state.inputs["l"].append(2)
    state.frame.context["k"].append(2)
    assert event.payload["inputs"] == {"l": [1]}
    assert event.payload["frame"]["context"] == {"k": []}
    assert (state.run_id, state.skill_id, state.skill_version, state.parent_run_id) == (
        RUN,
        "s.k",
        "1.0.0",
        "run_0",
    )
    assert state.updated_at == event.timestamp


def test_writes_are_applied_in_order_and_share_nothing_with_the_event() -> None:
    first = finished("a", writes=[write("vars.l", [1]), write("vars.l", [2], "append")])
    second = finished(
        "b",
        writes=[
            write("vars.l", [3], "append"),
            write("working.artifacts.x.y", {"k": 1}, "deep_merge"),
        ],
    )
    kept = copy.deepcopy(first.payload)
    state = folded(started(), first, second)
    assert state.vars == {"l": [1, 2, 3]}
    assert state.working.artifacts == {"x": {"y": {"k": 1}}}
    assert first.payload == kept
    assert state.trace.steps[0].writes == ("vars.l",)


def test_only_done_failed_and_vetoed_steps_count_but_usage_always_does() -> None:
    usage = {"llm_calls": 1, "tool_calls": 2, "tokens_in": 3, "tokens_out": 4}
    endings = ("done", "failed", "vetoed", "skipped", "degraded")
    state = folded(started(), *[finished(e, e, latency_ms=10, usage=usage) for e in endings])
    sums = state.trace.metrics.to_payload()
    assert sums == {
        "step_count": 3,
        "llm_calls": 5,
        "tool_calls": 10,
        "tokens_in": 15,
        "tokens_out": 20,
        "elapsed_ms": 30,
    }
    assert [s.status for s in state.trace.steps] == [
        "done",
        "failed",
        "vetoed",
        "skipped",
        "skipped",
    ]
    assert [r.status for r in state.step_results.values()] == [s.status for s in state.trace.steps]


def test_calls_inside_a_step_are_no_steps() -> None:
    gate = finished(
        "a@pre0", usage={"llm_calls": 1, "tool_calls": 0, "tokens_in": 9, "tokens_out": 9}
    )
    intent = begun("a@pre0")
    state = folded(started(), intent, gate, finished("a#0", writes=[write("vars.x", 1)]))
    assert (state.trace.steps, state.running, state.vars, state.trace.metrics.llm_calls) == (
        [],
        {},
        {},
        0,
    )


def test_running_steps_and_the_current_one_follow_the_events() -> None:
    plan = draft_of(
        PlanCreated(source="", rationale="", step_records=[{"id": "a"}, {"id": "b"}], steps=[]), RUN
    )
    intents = [begun(step) for step in ("b", "a")]
    assert folded(started(), plan, *intents).current_step == "a"
    assert folded(started(), plan, *intents, finished("a")).current_step == "b"
    end = draft_of(
        RunTerminated(
            status="aborted", status_reason=None, outputs={}, error=None, required_missing=[]
        ),
        RUN,
    )
    ended = folded(started(), plan, *intents, end)
    assert (ended.current_step, ended.status) == (None, "aborted")


def test_every_event_moves_updated_at_and_unknown_ones_nothing_else() -> None:
    odd = Draft("x.ignore_message", "insight", RUN, {"anything": 1})
    state, before = folded(started(), odd), folded(started())
    assert state.updated_at == "2026-01-01T00:00:02.000000Z"
    state.updated_at = before.updated_at
    assert whole(state) == whole(before)
