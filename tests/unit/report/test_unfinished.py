"""How a run stands that nothing drives any more."""

from __future__ import annotations

from typing import Any

import pytest
from fakes.logged import NOW, STAMP, event

from cogcli.declarations.envelope import Event
from cogcli.episode.history import History, history_of
from cogcli.report.lineage import Lineage, targets
from cogcli.report.styled_text import UNICODE, plain_text, width
from cogcli.report.table import rows
from cogcli.report.timeline import timeline
from cogcli.report.tree import header, tree
from cogcli.report.unfinished_runs import UnfinishedState, describe, unfinished_state


def begun(effect: str = "effect", **payload: Any) -> list[Event]:
    """A run in which `send` was called and never answered; `tell` stands after it."""
    plan = {
        "step_records": [
            {"id": id, "uses": f"mail.{id}", "depends_on": []} for id in ("send", "tell")
        ]
    }
    intent = {"step_id": "send", "step_status": "running", "uses": "mail.send", "binding": "smtp"}
    return [
        event(0, "run.started", "start", {"skill": {"id": "a.b", "version": "1.0.0"}}),
        event(0, "plan.created", "plan", plan),
        event(1, "step.started", "act", {**intent, "side_effects": effect, **payload}),
    ]


def asked(second: int = 2, id: str = "ap_1", step: str = "tell", **more: Any) -> Event:
    request = {
        "approval_id": id, "step_id": step, "capability": "mail.tell", "gate": "", "reason": "somebody has to look",
        "expires_at": STAMP.format(8), **more,
    }  # fmt: skip
    return event(second, "approval.requested", "governance", request)


def stood(events: list[Event], status: str) -> tuple[History, UnfinishedState]:
    folded = history_of(events)
    return folded, unfinished_state(folded, status)


def words(folded: History) -> dict[str, str]:
    return {row["step_id"]: row["status"] for row in rows(folded)}


@pytest.mark.parametrize(
    ("effect", "word"),
    [
        ("effect", "in doubt"),
        ("unknown", "in doubt"),
        ("none", "cut off"),
        ("idempotent", "cut off"),
        ("", "cut off"),
    ],
)
def test_a_call_that_may_not_be_repeated_unasked_is_in_doubt(effect: str, word: str) -> None:
    folded, standing = stood(begun(effect), "interrupted")
    assert words(folded) == {"send": word, "tell": "pending"}
    assert [
        step.id for step in (standing.doubtful if word == "in doubt" else standing.cut_off)
    ] == ["send"]


def test_an_answer_that_was_kept_leaves_no_doubt() -> None:
    answer = event(2, "step.answered", "act", {"step_id": "send", "output": {}})
    folded, standing = stood([*begun(), answer], "interrupted")
    assert words(folded)["send"] == "cut off"
    assert describe(standing, NOW, str) == [
        ("cut off", "send: it was answered, and the answer is kept")
    ]


def test_a_run_that_is_alive_stands_as_its_log_says() -> None:
    folded, standing = stood([*begun(), asked()], "running")
    assert words(folded) == {"send": "running", "tell": "pending"}
    assert standing == UnfinishedState()


def test_every_view_says_what_became_of_a_step() -> None:
    folded, standing = stood(begun(), "interrupted")
    shown = [
        plain_text(line)
        for line in tree(folded, UNICODE, status="interrupted, not finalised", width=70)
    ]
    assert shown[1] == "├─ ! send  mail.send    in doubt"
    assert plain_text(timeline(folded, UNICODE, width=60)[1]).endswith("0ms  in doubt")
    assert plain_text(
        header(folded, UNICODE, status="interrupted, not finalised", now=NOW, width=80)
    ).startswith("a.b 1.0.0 · ! interrupted, not finalised · ")
    assert describe(standing, NOW, str) == [
        (
            "in doubt",
            "send: mail.send may have happened before the run stopped: check the remote service",
        )
    ]


def test_no_bar_of_a_step_that_was_cut_off_exceeds_the_width() -> None:
    folded, _ = stood(begun(), "interrupted")
    for columns in range(34, 100):
        assert all(width(line) <= columns for line in timeline(folded, UNICODE, width=columns))


def test_what_asks_waits_and_so_does_what_is_around_it() -> None:
    around = event(
        2, "step.started", "act", {"step_id": "tell", "step_status": "running", "uses": "skill:x.y"}
    )
    inner = event(2, "run.started", "start", {"skill": {"id": "x.y"}, "parent_run_id": "run_root"},
                  run_id="run_child", step_id="tell")  # fmt: skip
    plan = {"step_records": [{"id": "tell/ask", "uses": "mail.tell", "depends_on": []}]}
    planned = event(2, "plan.created", "plan", plan, run_id="run_child")
    folded, standing = stood(
        [begun()[0], around, inner, planned, asked(step="tell/ask")], "pending"
    )
    assert words(folded) == {"tell": "waits", "tell/ask": "waits"}
    shown = [plain_text(line) for line in tree(folded, UNICODE, status="pending", width=70)]
    assert "? tell" in shown[1]
    assert shown[2].endswith("needs your approval")
    assert plain_text(header(folded, UNICODE, status="pending", now=NOW, width=70)).startswith(
        "a.b 1.0.0 · ? pending"
    )
    assert describe(standing, NOW, lambda at: at[11:16]) == [
        ("waits", "tell/ask: somebody has to look, expired 22:58")
    ]


def test_a_request_is_open_until_it_is_answered_and_the_latest_counts() -> None:
    answer = event(4, "approval.granted", "governance", {"approval_id": "ap_2"})
    _, standing = stood([*begun(), asked(), asked(3, "ap_2")], "pending")
    assert [ask.approval_id for ask in standing.asks] == ["ap_2"]
    assert stood([*begun(), asked(), asked(3, "ap_2"), answer], "pending")[1].asks == ()


def test_a_run_that_ended_asks_nothing_but_leaves_doubt() -> None:
    error = {"code": "env.disk", "message": "the disk was full"}
    ended = event(5, "run.terminated", "terminate", {"status": "error", "error": error})
    folded, standing = stood([*begun(), asked(), ended], "error")
    assert standing.asks == ()
    assert [step.id for step in standing.doubtful] == ["send"]
    shown = [plain_text(line) for line in tree(folded, UNICODE, status="error", width=70)]
    assert shown[1] == "   env.disk: the disk was full"


def test_what_a_step_shows_is_not_told_again_of_the_run() -> None:
    error = {"code": "call.rejected", "message": "no"}
    failed = event(
        2, "step.failed", "act", {"step_id": "send", "step_status": "failed", "error": error}
    )
    ended = event(3, "run.terminated", "terminate", {"status": "error", "error": error})
    shown = [
        plain_text(line)
        for line in tree(history_of([*begun(), failed, ended]), UNICODE, status="error", width=70)
    ]
    assert sum("call.rejected" in line for line in shown) == 1


def test_lineage_says_what_became_of_the_step_that_would_have_written() -> None:
    events = begun()
    folded, _ = stood(events, "interrupted")
    declared = type("Declared", (), {"writes": {"send": ["vars.id"]}, "required": set()})()
    (target,) = targets(folded, Lineage(events), declared)
    assert target.never == "never written: send is in doubt"


def test_requests_of_another_shape_are_passed_over() -> None:
    odd = [asked(2, id="ap_1", step=7, expires_at=None), asked(3, id=None)]  # type: ignore[arg-type]
    _, standing = stood([*begun(), *odd], "pending")
    assert describe(standing, NOW, str)[0] == ("waits", ": somebody has to look")
