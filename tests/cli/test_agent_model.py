"""Runs that a scripted model plans, through the installed command (docs/reference/agent-run.md#model)."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.agent_desk import PAID, episode_of, with_ledger
from support.project import Project, Result

from cogcli.agent.models.transcript import read_transcript
from cogcli.declarations.checked import problem_of
from cogcli.declarations.envelope import Event
from cogcli.episode.log_reader import EventLog

pytestmark = pytest.mark.sampled(10)

LOOKUP = {"name": "orders.lookup", "args": {"order_id": "ord_881"}}
REFUND = {"name": "payments.refund", "args": {"order_id": "ord_881", "amount": 240.0}}


def ask(desk: Project, name: str, script: str = "", *more: str) -> Result:
    """What comes of a request, planned by the script of the same name."""
    model = f"scripted:models/{script or name}.yaml"
    return desk.run("agent", "invoke", f"requests/{name}.json", "--model", model, *more, "--json")


def script(desk: Project, name: str, *replies: dict[str, Any]) -> str:
    """A script of these replies."""
    desk.write(f"models/{name}.yaml", json.dumps({"replies": [*replies]}))
    return name


def events(desk: Project, result: Result) -> list[Event]:
    directory = next(desk.root.rglob(result.json["episode_id"]))
    return [event for _, event in EventLog(directory)]


def document(desk: Project, result: Result, name: str) -> Any:
    return json.loads(
        (next(desk.root.rglob(result.json["episode_id"])) / f"{name}.json").read_text()
    )


def require_sound(desk: Project, result: Result) -> None:
    """The episode verifies, replays without any model, and each payload is one of its type."""
    desk.run("verify", result.json["episode_id"]).assert_ok()
    (desk.root / "models").rename(desk.root / "gone")
    desk.run("replay", result.json["episode_id"]).assert_ok()
    (desk.root / "gone").rename(desk.root / "models")
    for event in events(desk, result):
        assert problem_of(event.event_type or "", event.payload) is None


def test_the_same_call_in_each_reply_trips_the_guard_twice(desk: Project) -> None:
    result = ask(desk, "loops").assert_exit(4)
    trips = [e.payload for e in events(desk, result) if e.event_type == "loop.detected"]
    of_call = [trip for trip in trips if trip["kind"] == "identical_results"]
    assert len({trip["key"] for trip in of_call}) == 1
    assert len(of_call) == 2
    asked = [
        e.payload["request"] for e in events(desk, result) if e.event_type == "model.requested"
    ]
    assert "loop_detected" in asked[-1]["messages"][-1]["content"]
    assert "loop_detected" not in asked[-2]["messages"][-1]["content"]
    assert document(desk, result, "decision")["status_reason"] == "loop_guard:identical_results"
    require_sound(desk, result)


def test_a_model_that_asks_back_while_evidence_is_open_is_partial(desk: Project) -> None:
    result = ask(desk, "unsure").assert_exit(1)
    assert result.json["status"] == "partial"
    assert result.json["outputs"]["response"].startswith("Which order")
    state = document(desk, result, "state")
    assert state["x-agent"]["execution"]["response"] == result.json["outputs"]["response"]
    assert state["x-agent"]["execution"]["pending_calls"] == []
    require_sound(desk, result)


def test_a_refund_that_a_model_plans_waits_for_finance_and_is_finished_elsewhere(
    desk: Project,
) -> None:
    name = script(
        desk, "refunds", {"json": {"tool_calls": [LOOKUP]}}, {"json": {"tool_calls": [REFUND]}},
        {"json": {"response": "Refunded."}},
    )  # fmt: skip
    result = ask(desk, "needs-finance", name).assert_exit(5)
    episode = result.json["episode_id"]
    approve = ("resume", episode, "--approve", "GATE_FINANCE_APPROVAL", "--json", "--by")
    desk.run(*approve, "cust_7:finance").assert_exit(5)
    finished = desk.run(*approve, "ann:finance").assert_ok()
    assert finished.json["outputs"]["response"] == "Refunded."
    assert [call["capability"] for call in document(desk, result, "decision")["calls"]] == [
        "orders.lookup",
        "payments.refund",
    ]
    asked = [e for e in events(desk, result) if e.event_type == "model.requested"]
    assert len(asked) == 3
    require_sound(desk, result)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("broken", [None, "replies: [", "replies: {}", "replies:\n  - {}\n"])
def test_a_model_that_cannot_be_opened_any_more_lets_nothing_of_a_run_go_on(
    desk: Project, broken: str | None
) -> None:
    paid = with_ledger(desk).root / PAID
    replies = ({"json": {"tool_calls": [LOOKUP]}}, {"json": {"tool_calls": [REFUND]}})
    end = {"json": {"response": "Refunded."}}
    name = script(desk, "breaks", *replies, end)
    result = ask(desk, "needs-finance", name).assert_exit(5)
    file, episode = desk.root / f"models/{name}.yaml", episode_of(desk, result)
    before = (episode / "events.jsonl").read_bytes()
    if broken is None:
        file.unlink()
    else:
        file.write_text(broken)
    approve = (
        "resume",
        episode.name,
        "--approve",
        "GATE_FINANCE_APPROVAL",
        "--by",
        "ann:finance",
        "--json",
    )
    refused = desk.run(*approve).assert_exit(3)
    assert refused.json["error"]["file"] == f"models/{name}.yaml"
    assert (episode / "events.jsonl").read_bytes() == before
    assert not paid.exists()
    if broken == "replies: {}":
        desk.run("resume", episode.name, "--abort").assert_ok()
        return
    script(desk, name, *replies, end)
    finished = desk.run(*approve).assert_ok()
    assert finished.json["outputs"]["response"] == "Refunded."
    assert paid.read_text() == "'ord_881'\n"
    require_sound(desk, finished)


def test_a_script_that_runs_out_ends_the_run(desk: Project) -> None:
    name = script(desk, "short", {"json": {"tool_calls": [LOOKUP]}})
    result = ask(desk, "allowed", name).assert_exit(1)
    assert result.json["error"]["code"] == "call.rejected"
    require_sound(desk, result)


@pytest.mark.parametrize(
    "flags", [["--model", "scripted:no/such.yaml"], ["--model", "nobody:x"], ["--mode", "slow"]]
)
def test_a_model_that_cannot_be_used_starts_nothing(desk: Project, flags: list[str]) -> None:
    result = desk.run("agent", "invoke", "requests/allowed.json", *flags, "--json")
    assert result.code in (2, 3)
    assert "episode_id" not in result.json
    assert not list(desk.root.rglob("events.jsonl"))


def test_a_dry_run_shows_the_prompt_and_asks_nothing(desk: Project) -> None:
    result = ask(desk, "loops", "", "--dry-run").assert_ok()
    assert [message["role"] for message in result.json["prompt"]] == ["system", "developer", "user"]
    assert not list(desk.root.rglob("events.jsonl"))


def test_a_prompt_names_what_is_attached(desk: Project) -> None:
    attached = [
        {"name": "invoice.pdf", "media_type": "application/pdf", "uri": "file:x", "body": "secret"}
    ]
    request = json.loads((desk.root / "requests/loops.json").read_text())
    desk.write("requests/loops.json", json.dumps({**request, "attachments": attached}))
    prompt = ask(desk, "loops", "", "--dry-run").assert_ok().json["prompt"][-1]["content"]
    (line,) = (line for line in prompt.splitlines() if line.startswith("@data attachment "))
    assert "invoice.pdf" in line
    assert "secret" not in prompt


def transcript(desk: Project) -> Path:
    """The answers of the last run, by the line of the reference that makes a file of them."""
    if not shutil.which("jq"):
        pytest.skip("the reference uses jq, which is not installed here")
    page = (Path(__file__).parents[2] / "docs/reference/models.md").read_text()
    line = page.partition("```sh\ncogcli trace @last --format jsonl |")[2].partition("\n```")[0]
    traced = desk.run("trace", "@last", "--format", "jsonl").assert_ok().out
    subprocess.run(["bash", "-euc", line], cwd=desk.root, input=traced, text=True, check=True)
    return desk.root / "talk.jsonl"


def test_what_is_recorded_is_answered_again_without_the_model(desk: Project) -> None:
    first = ask(desk, "unsure", "", "--no-memory").assert_exit(1)
    transcript(desk)
    given = ("--model", "replay:talk.jsonl", "--no-memory", "--json")
    again = desk.run("agent", "invoke", "requests/unsure.json", *given).assert_exit(1)
    assert (again.json["status"], again.json["outputs"]) == ("partial", first.json["outputs"])
    other = desk.run("agent", "invoke", "requests/allowed.json", *given).assert_exit(1)
    assert other.json["error"]["code"] == "call.rejected"


def test_a_transcript_has_native_calls_as_they_were(desk: Project) -> None:
    name = script(
        desk, "natively", {"tool_calls": [LOOKUP]}, {"json": {"response": "It is 12 days old."}}
    )
    ask(desk, "allowed", name).assert_ok()
    called, answered = (
        each.outcome.reply for each in read_transcript(str(transcript(desk)), "talk.jsonl")
    )
    assert called is not None
    assert answered is not None
    assert called.tool_calls[0]["args"] == LOOKUP["args"]
    assert answered.text == '{"response":"It is 12 days old."}'


def test_tokens_of_summary_and_decision_are_those_of_the_replies(desk: Project) -> None:
    usage = {"usage": {"tokens_in": 100, "tokens_out": 10}}
    name = script(
        desk,
        "counted",
        {"json": {"tool_calls": [LOOKUP]}, **usage},
        {"json": {"response": "On its way."}, **usage},
    )
    result = ask(desk, "allowed", name).assert_ok()
    summary, state = document(desk, result, "summary"), document(desk, result, "state")
    assert summary["budgets"]["tokens.workflow"]["used"] == 220
    assert document(desk, result, "decision")["budget"]["used"]["tokens.workflow"] == 220
    metrics = state["x-cognitive"]["trace"]["metrics"]
    assert (metrics["llm_calls"], metrics["tokens_in"], metrics["tokens_out"]) == (2, 200, 20)
    require_sound(desk, result)


def test_a_conversation_goes_on_where_it_was(desk: Project) -> None:
    first = script(
        desk,
        "first",
        {"json": {"response": "Hello.", "context_updates": {"facts": {"mood": "calm"}}}},
    )
    ask(desk, "allowed", first, "--session", "s1").assert_exit(0)
    second = script(desk, "second", {"json": {"response": "Again."}})
    result = ask(desk, "allowed", second, "--session", "s1")
    (asked,) = [
        e.payload["request"] for e in events(desk, result) if e.event_type == "model.requested"
    ]
    prompt = asked["messages"][-1]["content"]
    assert "assistant: Hello." in prompt
    assert "mood: calm" in prompt
    require_sound(desk, result)
    other = ask(
        desk, "allowed", script(desk, "third", {"json": {"response": "Who?"}}), "--session", "s2"
    )
    (asked,) = [
        e.payload["request"] for e in events(desk, other) if e.event_type == "model.requested"
    ]
    assert "Hello." not in asked["messages"][-1]["content"]


def test_what_was_reasoned_is_in_the_memory_and_the_lesson_of_the_run(desk: Project) -> None:
    name = script(
        desk, "reasons", {"json": {"tool_calls": [LOOKUP], "context_updates": {"facts": {"asked_for": "status"}}}},
        {"json": {"response": "On its way."}},
    )  # fmt: skip
    result = ask(desk, "allowed", name).assert_ok()
    facts = {
        fact["key"]: fact["value"] for fact in document(desk, result, "state")["memory"]["facts"]
    }
    assert facts["asked_for"] == "status"
    lesson = json.loads(next(desk.root.rglob("learn.jsonl")).read_text())["x-agent"]
    assert (lesson["mode"], lesson["turns"], lesson["replans"], lesson["loop_trips"]) == (
        "fast",
        2,
        0,
        0,
    )
    assert 0 <= lesson["functional_state"]["budget_pressure"] <= 1
    require_sound(desk, result)


def test_a_message_that_means_nothing_is_told_what_could_be_meant(desk: Project) -> None:
    result = desk.run(
        "agent", "invoke", "--message", "hello", "--pack", "support-desk@4.0.0", "--json"
    ).assert_exit(4)
    assert "support.refund" in result.json["error"]["hint"]
