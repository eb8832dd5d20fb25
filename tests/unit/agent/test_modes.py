"""Modes: how the first is chosen, and which switches are made."""

from __future__ import annotations

import pytest
from agent_strategies import NOW, begun

from cogcli.agent.modes import CALLS, judge_switch, resolve_mode
from cogcli.agent.reply import Reply
from cogcli.agent.update import update_from_reasoning


@pytest.mark.parametrize(
    ("asked", "risk", "steps", "failed", "mode"),
    [
        ("adapt", "read_only", 3, False, "fast"),
        ("adapt", "", 0, False, "fast"),
        ("adapt", "network", 3, False, "fast"),
        ("adapt", "delegated", 0, False, "deep"),
        ("adapt", "destructive", 0, False, "deep"),
        ("adapt", "read_only", 4, False, "deep"),
        ("adapt", "read_only", 0, True, "deep"),
        ("fast", "destructive", 9, True, "fast"),
        ("deep", "read_only", 0, False, "deep"),
    ],
)
def test_the_first_mode(asked: str, risk: str, steps: int, failed: bool, mode: str) -> None:
    assert resolve_mode(asked, risk, steps, failed) == mode


def test_each_mode_has_its_calls() -> None:
    assert CALLS == {"fast": 3, "deep": 8}


@pytest.mark.parametrize(
    ("changes", "target", "why", "refused"),
    [
        ({}, "deep", "two systems disagree", ""),
        ({}, "deep", "it is hard", ""),
        ({}, "deep", "too hard", "no_reason"),
        ({}, "fast", "two systems disagree", "same_mode"),
        ({}, "adapt", "two systems disagree", "unknown_mode"),
        ({"mode_locked": True}, "deep", "two systems disagree", "mode_locked"),
        ({"switches": 2}, "deep", "two systems disagree", "no_switch_left"),
        ({"switches": 1}, "deep", "two systems disagree", ""),
        ({"iteration": 9}, "deep", "two systems disagree", "last_iteration"),
        ({"iteration": 8}, "deep", "two systems disagree", ""),
    ],
)
def test_switches_are_judged(changes: dict[str, int], target: str, why: str, refused: str) -> None:
    state = begun()
    state = state._replace(execution=state.execution._replace(**changes))  # type: ignore[arg-type]
    reply = Reply(response="yes", switch_mode=target, switch_why=why)
    switch = judge_switch(state.execution, reply)
    assert switch
    assert switch.refused == refused
    updated = update_from_reasoning(state, reply, NOW)
    assert updated.state.execution.mode == ("fast" if refused else target)
    assert updated.state.execution.switches == state.execution.switches + (not refused)
    [note] = updated.notes
    assert (note["code"], note["what"], note["detail"]) == (
        ("switch_refused", target, refused) if refused else ("mode_switched", target, why)
    )


def test_no_switch_is_asked_for() -> None:
    assert (
        judge_switch(begun().execution, Reply(response="yes", switch_why="two systems disagree"))
        is None
    )
