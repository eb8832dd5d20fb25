"""What is in focus is in the prompt, and nothing else, through the installed command
(docs/reference/agent-run.md#attention)."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.agent_desk import LOOKUP, REFUND, answer, episode_of, payloads
from support.project import Project, Result

MESSAGE = "Refund order ord_881, the parcel came without its lamp"


@pytest.fixture
def shelf(desk: Project) -> Project:
    """The desk with thirty statements about the order: the required two, one that the message means, and others."""
    facts: list[dict[str, Any]] = [{"predicate": f"remark_{n:02}", "value": n} for n in range(27)]
    facts.append({"predicate": "parcel", "value": "lamp"})
    facts += [{"predicate": "age_days", "value": 12}, {"predicate": "total", "value": 20.0}]
    common = {
        "subject": "order:ord_881",
        "trust": "verified",
        "observed_at": (datetime.now(UTC) - timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "evidence_ref": "erp/1",
    }
    lines = "".join(json.dumps({**common, **fact}) + "\n" for fact in facts)
    desk.write("facts.jsonl", lines.encode())
    desk.run("knowledge", "import", "facts.jsonl", "--tenant", "acme").assert_ok()
    replies = [{"json": {"tool_calls": [LOOKUP]}}, {"json": {"response": "Noted."}}]
    desk.write("models/looks.yaml", json.dumps({"replies": replies}).encode())
    return desk


def invoke(desk: Project, **members: Any) -> Result:
    request = {"message": MESSAGE, "pack_refs": ["support-desk@4.0.0"], **members}
    desk.write("request.json", json.dumps({"user": {"user_id": "cust_7"}, **request}).encode())
    model = ("--model", "scripted:models/looks.yaml")
    return desk.run("agent", "invoke", "request.json", *model, "--json")


def prompts_of(episode: Path) -> list[str]:
    """The prompts that were sent, as one text each."""
    asked = [each["request"]["messages"] for each in payloads(episode, "model.requested")]
    return ["\n".join(message["content"] for message in messages) for messages in asked]


def layer(episode: Path, name: str, turn: int = 1) -> dict[str, Any]:
    (found,) = (
        each["writes"]
        for each in payloads(episode, "layer.completed")
        if (each["layer"], each["turn"]) == (name, turn)
    )
    writes: dict[str, Any] = found
    return writes


def assert_same_again(desk: Project, episode: Path) -> None:
    desk.run("verify", episode.name).assert_ok()
    desk.run("replay", episode.name).assert_ok()


def test_what_is_not_in_focus_is_not_in_the_prompt_and_is_explained(shelf: Project) -> None:
    episode = episode_of(shelf, invoke(shelf))
    attention = layer(episode, "attention")
    scores, focus = attention["salience_scores"], attention["focus"]
    assert len(scores) == 31, "each reference has a salience, in focus or not"
    assert scores["order:ord_881:parcel"] > scores["order:ord_881:remark_00"]
    assert {"e0", "order:ord_881:age_days", "order:ord_881:total"} <= set(focus)
    assert len(focus) == 12 + 3, "the message and required evidence are always in focus"
    prompt, later = prompts_of(episode)
    named = {f"remark_{n:02}" for n in range(27)}
    assert {each for each in named if each in prompt} == {
        each for each in named if f"order:ord_881:{each}" in focus
    }
    assert "parcel" in prompt
    assert "run_" in later, "a fact of a call of the run is always in focus"
    explained = shelf.run("context", "explain", episode.name, "--turn", "1", "--json")
    context = explained.assert_ok().json["context"]
    placed = {each["name"]: each for each in context["placements"]}
    out = placed["order.remark_26"]
    assert (out["status"], out["stage"], out["reason"]) == ("out", "attention", "not_in_focus")
    assert out["salience"] == scores["order:ord_881:remark_26"]
    assert placed["order.parcel"]["status"] == "in"
    omitted = [each["reason"] for each in context["budget_report"]["omissions"]]
    assert omitted.count("not_in_focus") == 16
    assert context["budget_report"]["truncated"] is True
    assert_same_again(shelf, episode)


def test_salience_decides_what_stays_when_room_is_short(shelf: Project) -> None:
    result = shelf.run(
        "context", "compile", "--message", MESSAGE, "--pack", "support-desk@4.0.0", "--json"
    )
    blocks = result.assert_ok().json["context"]["compiled_prompt"]["context_blocks"]
    ranked = sorted((b for b in blocks if b["bucket"] == "evidence"), key=lambda b: -b["priority"])
    texts = [block["content"] for block in ranked]
    assert all(f'"{name}"' in "".join(texts[:3]) for name in ("age_days", "total", "parcel"))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["holiday.jpg", "ord_881 lamp.jpg"])
def test_deep_focus_holds_what_interrupts_until_the_turn_ends(shelf: Project, name: str) -> None:
    result = invoke(shelf, focus="deep", attachments=[{"name": name}])
    episode = episode_of(shelf, result)
    first, second = prompts_of(episode)
    interrupts = name == "holiday.jpg"
    assert layer(episode, "focus")["focus_state"]["buffered"] == (["e1"] if interrupts else [])
    assert (name in first) is not interrupts
    assert name in second, "it comes when the turn has ended"
    if interrupts:
        events = layer(episode, "perception", 2)["events"]
        assert [each["type"] for each in events] == ["tool_result", "attachment"]
        assert layer(episode, "focus", 2)["focus_state"]["buffered"] == []
        why = ("--turn", "1", "--why", name)
        out = shelf.run("context", "explain", episode.name, *why).assert_ok().out
        assert "attention: held" in out
    assert_same_again(shelf, episode)


def test_without_deep_focus_nothing_waits(shelf: Project) -> None:
    episode = episode_of(shelf, invoke(shelf, attachments=[{"name": "holiday.jpg"}]))
    assert all("holiday.jpg" in prompt for prompt in prompts_of(episode))


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("word", "said"), [("--approve", "granted"), ("--reject", "rejected")])
def test_the_answer_of_a_person_reaches_the_next_prompt(
    desk: Project, word: str, said: str
) -> None:
    replies = [
        {"json": {"tool_calls": [LOOKUP]}},
        {"json": {"tool_calls": [REFUND]}},
        {"json": {"response": "I have seen it."}, "times": 2},
    ]
    desk.write("models/looks.yaml", json.dumps({"replies": replies}).encode())
    waiting = invoke(desk, message="Refund order ord_881").assert_exit(5)
    result = answer(desk, waiting, word)
    episode = episode_of(desk, waiting)
    result.assert_exit(0 if word == "--approve" else 4)
    *_, last = prompts_of(episode)
    assert f"a person {said} payments.refund" in last.partition("NOTICES:")[2]
    turn = len({each["turn"] for each in payloads(episode, "layer.completed")})
    events = layer(episode, "perception", turn)["events"]
    assert f"approval_{said}" in [each["type"] for each in events]
    assert_same_again(desk, episode)
