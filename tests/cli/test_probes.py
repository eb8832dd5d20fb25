"""A service that can say whether a call happened keeps people from being asked."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytestmark = pytest.mark.sampled(12)

SOURCE = """
import json
import os
import pathlib
import time

def pay(text: str) -> dict[str, object]:
    with open("ledger", "a") as ledger:
        ledger.write(text + "\\n")
    if os.path.exists("die"):
        while os.path.exists("slowly") and not any(
            '"step.completed"' in log.read_text() for log in pathlib.Path(".").rglob("events.jsonl")
        ):
            time.sleep(0.01)
        os._exit(9)
    return {"receipt": "r-" + text}

def quick(text: str) -> dict[str, object]:
    return {"receipt": "quick"}

def paid(idempotency_key: str, input: dict[str, object]) -> dict[str, object]:
    with open("asked", "a") as asked:
        asked.write(json.dumps([idempotency_key, input]) + "\\n")
    if os.path.exists("die-probing"):
        os._exit(9)
    if os.path.exists("signal"):
        for number in pathlib.Path("signal").read_text().split():
            os.kill(os.getpid(), int(number))
            time.sleep(0.1)
    return json.loads(pathlib.Path("knows").read_text())
"""
CAPABILITY = """
id: demo.pay
version: "1.0.0"
description: Pays.
inputs: {text: {type: string, required: true}}
outputs: {receipt: {type: string, required: true}}
properties: {side_effects: true, idempotent: false}
probe: {capability: demo.paid}
"""
PROBE = """
id: demo.paid
version: "1.0.0"
description: Says whether a payment happened.
inputs: {idempotency_key: {type: string, required: true}, input: {type: object, required: true}}
outputs: {happened: {type: boolean}, output: {type: object}}
properties: {side_effects: false}
"""


@pytest.fixture
def paying(project: Any) -> Any:
    """A project whose payments can be looked up, and a run that died in one."""
    project.services(SOURCE)
    project.capability("demo.pay", "pay", response="{receipt: response.receipt}")
    project.write("capabilities/demo.pay.yaml", CAPABILITY)
    project.capability(
        "demo.paid", "paid", request="{idempotency_key: input.idempotency_key, input: input.input}",
        response="{happened: response.happened, output: response.output}",
    )  # fmt: skip
    project.write("capabilities/demo.paid.yaml", PROBE)
    project.skill(
        "demo.one", "- {id: pay, uses: demo.pay, input: {text: inputs.text}, output: {receipt: outputs.receipt}}",
        inputs="{text: {type: string, required: true}}", outputs="{receipt: {type: string}}",
    )  # fmt: skip
    die = project.write("die", "")
    project.installed("run", "demo.one", "-p", "text=a", "-q").assert_exit(9)
    die.unlink()
    return project


def events(project: Any, *kinds: str) -> list[dict[str, Any]]:
    lines = (project.episode / "events.jsonl").read_text().splitlines()
    return [event for event in map(json.loads, lines) if event["event_type"] in kinds]


def clean(project: Any) -> None:
    project.run("verify", "@last").assert_ok()
    project.run("replay", "@last").assert_ok()
    project.run("trace", "@last").assert_ok()


def ledger(project: Any) -> list[str]:
    return (project.root / "ledger").read_text().split()


def test_what_happened_is_not_made_again_and_nobody_is_asked(paying: Any) -> None:
    paying.write("knows", '{"happened": true, "output": {"receipt": "r-known"}}')
    assert paying.run("resume", "@last").assert_ok().json == {"receipt": "r-known"}
    assert ledger(paying) == ["a"]
    [started] = [e for e in events(paying, "step.started") if e["step_id"] == "pay"]
    [asked] = (paying.root / "asked").read_text().splitlines()
    assert json.loads(asked) == [started["payload"]["idempotency_key"], {"text": "a"}]
    [decided] = events(paying, "policy.decided")
    assert (decided["payload"]["verdict"], decided["agent_id"]) == ("done", "policy:demo.paid")
    clean(paying)


def test_what_the_service_has_closed_is_made_again_under_another_key(paying: Any) -> None:
    paying.write("knows", '{"happened": false}')
    paying.run("resume", "@last").assert_ok()
    assert ledger(paying) == [
        "a",
        "a",
    ]  # this service promises what it does not keep: it was believed
    [started] = [e for e in events(paying, "step.started") if e["step_id"] == "pay"]
    [again] = events(paying, "call.retried")
    assert again["payload"]["idempotency_key"] == started["payload"]["idempotency_key"] + "+"
    clean(paying)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("knows", [
    '{"happened": null}', "{}", '{"happened": "yes"}', "not JSON", '{"happened": true}',
    '{"happened": true, "output": {"receipt": 7}}', '{"happened": 1}',
])  # fmt: skip
def test_no_clear_answer_asks_a_person_as_if_there_were_no_probe(paying: Any, knows: str) -> None:
    paying.write("knows", knows)
    paying.run("resume", "@last").assert_exit(5)
    assert ledger(paying) == ["a"]
    paying.run(
        "resume", "@last", "--in-doubt", "done", "--output", '{"receipt": "r-told"}'
    ).assert_ok()
    assert ledger(paying) == ["a"]
    assert len((paying.root / "asked").read_text().splitlines()) == 2
    assert [e["step_id"] for e in events(paying, "step.started")] == [
        "pay",
        "pay@probe0",
        "pay@probe1",
    ]
    clean(paying)


def test_what_the_service_knows_counts_before_what_a_person_believes(paying: Any) -> None:
    paying.write("knows", '{"happened": true, "output": {"receipt": "r-known"}}')
    assert paying.run("resume", "@last", "--in-doubt", "rerun").assert_ok().json == {
        "receipt": "r-known"
    }
    assert ledger(paying) == ["a"]


def test_a_probe_that_was_cut_off_is_gone_on_with(paying: Any) -> None:
    paying.write("knows", '{"happened": true, "output": {"receipt": "r-known"}}')
    die = paying.write("die-probing", "")
    paying.installed("resume", "@last", "-q").assert_exit(9)
    die.unlink()
    paying.run("resume", "@last").assert_ok()
    assert [e["step_id"] for e in events(paying, "step.started")] == ["pay", "pay@probe0"]
    assert ledger(paying) == ["a"]
    clean(paying)


def test_a_probe_that_cannot_be_one_is_found_before_anything_runs(paying: Any) -> None:
    paying.write(
        "capabilities/demo.paid.yaml", PROBE.replace("side_effects: false", "side_effects: true")
    )
    before = len(list((paying.root / ".cogcli/episodes").iterdir()))
    assert (
        paying.run("run", "demo.one", "-p", "text=b", "--json").assert_exit(3).json["error"]["code"]
        == "probe.contract"
    )
    assert len(list((paying.root / ".cogcli/episodes").iterdir())) == before


def test_a_rerun_asks_the_service_about_what_nobody_knows_the_end_of(paying: Any) -> None:
    paying.write("knows", '{"happened": true, "output": {"receipt": "r-known"}}')
    source = paying.episode.name
    assert paying.run("rerun", source).assert_ok().json == {"receipt": "r-known"}
    assert ledger(paying) == ["a"]
    [started] = events(paying, "run.started")
    assert started["payload"]["effects"]["pay"]["resolution"] == {
        "choice": "done",
        "by": "policy:demo.paid",
    }
    clean(paying)


def test_a_rerun_calls_again_what_the_service_has_closed(paying: Any) -> None:
    paying.write("knows", '{"happened": false}')
    paying.run("rerun", "@last").assert_ok()
    assert ledger(paying) == ["a", "a"]
    clean(paying)


def test_what_a_rerun_was_told_to_make_again_is_asked_about_in_the_source(paying: Any) -> None:
    """The service has closed the first key for either, and knows nothing of the two runs."""
    paying.write("knows", '{"happened": false}')
    source = paying.episode.name
    paying.run("rerun", source).assert_ok()
    later = paying.episode.name
    assert ledger(paying) == ["a", "a"]
    for _ in range(2):
        told = paying.run("resume", source, "--json").assert_exit(5).json["error"]
        assert (told["code"], later in told["message"]) == ("effect.in-doubt", True)
    told = paying.run("rerun", source, "--json").assert_exit(2).json["error"]
    assert (told["code"], later in told["message"]) == ("rerun.effects", True)
    assert ledger(paying) == ["a", "a"]
    assert paying.run("resume", source, "--in-doubt", "rerun").assert_ok().json == {
        "receipt": "r-a"
    }
    assert ledger(paying) == ["a", "a", "a"]
    for command in ("verify", "replay"):
        paying.run(command, source).assert_ok()
    log = (paying.root / ".cogcli/episodes" / source / "events.jsonl").read_text().splitlines()
    [again] = [e for e in map(json.loads, log) if e["event_type"] == "call.retried"]
    assert again["payload"]["idempotency_key"].endswith(
        "+"
    )  # the service takes nothing under the one that it closed


@pytest.mark.parametrize("knows", ['{"happened": null}', "not JSON"])
def test_a_rerun_begins_nothing_where_the_service_does_not_know(paying: Any, knows: str) -> None:
    paying.write("knows", knows)
    before = paying.episodes
    error = paying.run("rerun", "@last", "--json").assert_exit(2).json["error"]
    assert error["code"] == "rerun.effects"
    assert paying.episodes == before
    assert len((paying.root / "asked").read_text().splitlines()) == 1


def test_the_plan_of_a_rerun_asks_nobody(paying: Any) -> None:
    paying.write("knows", '{"happened": false}')
    paying.run("rerun", "@last", "--plan").assert_ok()
    assert not (paying.root / "asked").exists()


@pytest.mark.parametrize("signals", ["2", "15", "2 2"])
def test_a_signal_while_a_service_is_asked_leaves_the_call_in_doubt(
    paying: Any, signals: str
) -> None:
    """Nobody knows yet: an end of the run would have its rerun make the effect again unasked."""
    paying.write("knows", '{"happened": null}')
    signal = paying.write("signal", signals)
    paying.installed("resume", "@last", "-q").assert_exit(5)
    signal.unlink()
    clean(paying)
    error = paying.run("rerun", "@last", "--json").assert_exit(2).json["error"]
    assert error["code"] == "rerun.effects"
    paying.write("knows", '{"happened": true, "output": {"receipt": "r-known"}}')
    paying.run("resume", "@last").assert_ok()
    assert ledger(paying) == ["a"]
    clean(paying)


def test_what_won_beside_it_does_not_hide_a_call_in_doubt(paying: Any) -> None:
    """Of a scatter with one winner: the log of a killed run holds the answer of one, the intent of another."""
    paying.capability("demo.quick", "quick", response="{receipt: response.receipt}")
    capability = CAPABILITY.replace("demo.pay", "demo.quick").replace("true, idem", "false, idem")
    paying.write(
        "capabilities/demo.quick.yaml", capability.replace("probe: {capability: demo.paid}", "")
    )
    paying.skill(
        "demo.either",
        "- {id: pay, input: {text: inputs.text}, output: {receipt: outputs.receipt}, config: {scatter:"
        " {capabilities: [{name: p, uses: demo.pay}, {name: q, uses: demo.quick}], merge: first_success}}}",
        inputs="{text: {type: string, required: true}}", outputs="{receipt: {type: string}}",
    )  # fmt: skip
    die = paying.write("die", "")
    paying.write("slowly", "")
    paying.installed("run", "demo.either", "-p", "text=b", "-q").assert_exit(9)
    die.unlink()
    closed = [e["step_id"] for e in events(paying, "step.completed")]
    assert closed == ["pay#q"]
    paying.write("knows", '{"happened": true, "output": {"receipt": "r-known"}}')
    assert paying.run("resume", "@last").assert_ok().json == {"receipt": "quick"}
    [decided] = events(paying, "policy.decided")
    assert (decided["step_id"], decided["payload"]["verdict"]) == ("pay#p", "done")
    assert (
        "pay (demo.pay, done)"
        in paying.run("rerun", "@last", "--json").assert_exit(2).json["error"]["message"]
    )
    clean(paying)
