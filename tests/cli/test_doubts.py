"""A person answers for calls that may have happened: which of them, that they did, and what they answered."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.waiting import wait_until

pytestmark = pytest.mark.sampled(12)

COGCLI = str(Path(sys.executable).parent / "cogcli")

SOURCE = """
import glob
import os
import threading
import time

LOCK = threading.Lock()

def pay(text: str) -> dict[str, object]:
    with LOCK, open("ledger", "a") as ledger:
        ledger.write(text + "\\n")
    with open("ledger") as ledger:
        begun = len(ledger.readlines())
    if os.path.exists("fill"):
        fill()
    if os.path.exists("hold"):
        time.sleep(60)
    if os.path.exists("die-after"):
        if begun >= int(open("die-after").read()):
            os._exit(9)
        time.sleep(60)
    return {"receipt": "r-" + text}

def fill() -> None:
    real = os.write

    def write(handle, data):
        if handle > 2 and glob.glob(".cogcli/episodes/*/.ballast"):
            raise OSError(28, "No space left on device")
        return real(handle, data)

    os.write = write

def read(text: str) -> dict[str, object]:
    return {"text": text}

def slow(text: str) -> dict[str, object]:
    open("began-" + text, "w").close()
    while not os.path.exists("go"):
        time.sleep(0.01)
    return {"text": text}

def broken(text: str) -> dict[str, object]:
    while not os.path.exists("ledger"):
        time.sleep(0.01)
    raise ValueError(text)
"""
CAPABILITY = """
id: demo.{name}
version: "1.0.0"
description: Pays.
inputs: {{text: {{type: string, required: true}}}}
outputs: {{{output}: {{type: string, required: true}}}}
properties: {{{properties}}}
"""
ONE = """
- {id: pay, uses: demo.pay, input: {text: inputs.text}, output: {receipt: outputs.receipt}}
"""
ITEMS = """
- {id: pay, uses: demo.pay, input: {text: item}, output: {receipt: outputs.receipts},
   config: {foreach: {items: inputs.texts, max_parallel: 3}}}
"""


def _capability(project: Any, name: str, output: str, properties: str, function: str) -> None:
    project.capability(f"demo.{name}", function, response=f"{{{output}: response.{output}}}")
    project.write(
        f"capabilities/demo.{name}.yaml",
        CAPABILITY.format(name=name, output=output, properties=properties),
    )


@pytest.fixture
def paying(project: Any) -> Any:
    """A project whose payments are effects that must not happen twice."""
    project.services(SOURCE)
    _capability(project, "pay", "receipt", "side_effects: true, idempotent: false", "pay")
    project.skill(
        "demo.one", ONE, inputs="{text: {type: string, required: true}}",
        outputs="{receipt: {type: string}}",
    )  # fmt: skip
    project.skill(
        "demo.items", ITEMS, inputs="{texts: {type: array, required: true}}",
        outputs="{receipts: {type: array}}",
    )  # fmt: skip
    return project


def _die(project: Any, *words: str, after: int) -> None:
    """Run until so many payments are under way; then the process dies."""
    flag = project.write("die-after", str(after))
    project.installed("run", *words, "-q").assert_exit(9)
    flag.unlink()


def _ledger(project: Any) -> list[str]:
    return sorted((project.root / "ledger").read_text().split())


def _events(project: Any, *kinds: str) -> list[dict[str, Any]]:
    lines = (project.episode / "events.jsonl").read_text().splitlines()
    return [event for event in map(json.loads, lines) if event["event_type"] in kinds]


def _clean(project: Any) -> None:
    project.run("verify", "@last").assert_ok()
    project.run("replay", "@last").assert_ok()


def _resume(project: Any, *words: str) -> Any:
    return project.run("resume", "@last", *words, "--json", "-q")


WHO = ("--by", "ana", "--reason", "in the bank's list")


def test_that_it_did_happen_is_taken_as_the_answer_with_who_said_so(paying: Any) -> None:
    _die(paying, "demo.one", "-p", "text=x", after=1)
    given = ("--in-doubt", "done", "--output", '{"receipt": "r-77", "more": 1}')
    assert _resume(paying, *given, *WHO).assert_ok().json["outputs"] == {"receipt": "r-77"}
    assert _ledger(paying) == ["x"]
    (decided,) = _events(paying, "policy.decided")
    assert (decided["agent_id"], decided["payload"]["verdict"]) == ("human:ana", "done")
    assert (decided["payload"]["output"], decided["payload"]["reason"]) == (
        {"receipt": "r-77"},
        WHO[3],
    )
    (closing,) = _events(paying, "step.completed")
    assert closing["payload"]["attempts"][0]["stated_by"] == "human:ana"
    _clean(paying)


def test_a_file_may_hold_the_answer(paying: Any) -> None:
    _die(paying, "demo.one", "-p", "text=x", after=1)
    paying.write("answer.json", '{"receipt": "r-1"}')
    done = _resume(paying, "--in-doubt", "pay=done", "--output", "pay=@answer.json").assert_ok()
    assert done.json["outputs"] == {"receipt": "r-1"}


@pytest.mark.parametrize("after", ["policy.decided", "step.completed"])
def test_an_answer_on_disk_is_not_asked_for_again(paying: Any, after: str) -> None:
    _die(paying, "demo.one", "-p", "text=x", after=1)
    _resume(paying, "--in-doubt", "done", "--output", '{"receipt": "r-77"}', *WHO).assert_ok()
    paying.cut_after(after)
    assert _resume(paying).assert_ok().json["outputs"] == {"receipt": "r-77"}
    assert _ledger(paying) == ["x"]
    assert len(_events(paying, "policy.decided")) == 1
    _clean(paying)


SAYS_NOTHING = {
    "an answer that the contract has not": (
        ("--in-doubt", "done", "--output", '{"receipt": 7}'),
        "usage.value",
    ),
    "an answer that lacks what is required": (("--in-doubt", "done"), "usage.value"),
    "an answer that is not an object": (("--in-doubt", "done", "--output", "[1]"), "input.type"),
    "an answer that is not JSON": (("--in-doubt", "done", "--output", "r-1"), "input.json"),
    "an answer without a word": (("--output", '{"receipt": "r"}'), "usage.flag"),
    "an answer with another word": (
        ("--in-doubt", "skip", "--output", '{"receipt": "r"}'),
        "usage.flag",
    ),
    "two answers": (("--in-doubt", "done", "--output", "{}", "--output", "{}"), "usage.flag"),
    "two words for one call": (("--in-doubt", "skip", "--in-doubt", "pay=fail"), "usage.flag"),
    "a step that is not in doubt": (("--in-doubt", "other=skip"), "step.unknown"),
    "no such word": (("--in-doubt", "pay=redo"), "usage.value"),
    "no step": (("--in-doubt", "=skip"), "usage.value"),
}


def test_what_answers_nothing_is_refused_and_changes_nothing(paying: Any) -> None:
    _die(paying, "demo.one", "-p", "text=x", after=1)
    before = (paying.episode / "events.jsonl").read_bytes()
    for name, (words, code) in SAYS_NOTHING.items():
        assert _resume(paying, *words).assert_exit(2).json["error"]["code"] == code, name
    assert (paying.episode / "events.jsonl").read_bytes() == before


def test_one_word_is_not_for_several_calls(paying: Any) -> None:
    _die(paying, "demo.items", "-p", 'texts:=["a", "b", "c"]', after=3)
    before = (paying.episode / "events.jsonl").read_bytes()
    ways = [
        f"cogcli resume {paying.episode.name} "
        + " ".join(f"--in-doubt 'pay#{n}={word}'" for n in range(3))
        for word in ("rerun", "skip", "fail")
    ]
    error = _resume(paying, "--in-doubt", "skip").assert_exit(2).json["error"]
    assert (error["code"], error["next"]) == ("usage.value", ways)
    assert (paying.episode / "events.jsonl").read_bytes() == before
    shown = paying.run("trace", "--json").assert_ok().json["trace"]
    short = paying.episode.name[:15]
    assert shown["next"] == [way.replace(paying.episode.name, short) for way in ways]
    assert _resume(paying).assert_exit(5).json["error"]["next"] == shown["next"]


def test_each_item_is_answered_for_itself(paying: Any) -> None:
    """One is answered, one left out: its place is empty, the loop goes on; the third is asked about still."""
    _die(paying, "demo.items", "-p", 'texts:=["a", "b", "c"]', after=3)
    words = (
        "--in-doubt",
        "pay#0=done",
        "--output",
        'pay#0={"receipt": "r-0"}',
        "--in-doubt",
        "pay#1=skip",
    )
    waits = _resume(paying, *words, *WHO).assert_exit(5).json
    assert waits["error"]["next"][1] == f"cogcli resume {paying.episode.name[:15]} --in-doubt skip"
    assert paying.run("replay", "@last").assert_ok()
    done = _resume(paying, "--in-doubt", "pay#2=rerun").assert_ok().json
    assert done["outputs"] == {"receipts": ["r-0", None, "r-c"]}
    assert _ledger(paying) == ["a", "b", "c", "c"]
    (left_out,) = _events(paying, "step.skipped")
    assert (left_out["step_id"], left_out["payload"]["reason"]) == ("pay#1", "left-out")
    _clean(paying)


def test_an_item_left_out_stays_so_after_another_crash(paying: Any) -> None:
    _die(paying, "demo.items", "-p", 'texts:=["a"]', after=1)
    _resume(paying, "--in-doubt", "pay#0=skip").assert_ok()
    for after in ("policy.decided", "step.skipped"):
        paying.cut_after(after)
        assert _resume(paying).assert_ok().json["outputs"] == {"receipts": [None]}
    assert _ledger(paying) == ["a"]
    _clean(paying)


def test_an_item_that_waits_for_a_person_cuts_off_none_beside_it(paying: Any) -> None:
    """What was cut off would have ended for good: nobody could finish the loop any more."""
    _capability(paying, "read", "text", "side_effects: false", "read")
    paying.skill(
        "demo.mixed",
        """
        - {id: all, uses: demo.read, input: {text: item}, output: {text: outputs.texts},
           config: {foreach: {items: inputs.texts, max_parallel: 2},
                    router: {"on": item, cases: {pay: "skill:demo.inner"}, default: demo.read}}}
        """,
        inputs="{texts: {type: array, required: true}}",
        outputs="{texts: {type: array}}",
    )
    paying.skill(
        "demo.inner",
        "- {id: pay, uses: demo.pay, input: {text: inputs.text}, output: {receipt: outputs.text}}",
        inputs="{text: {type: string, required: true}}",
        outputs="{text: {type: string}}",
    )
    _die(paying, "demo.mixed", "-p", 'texts:=["pay", "b", "c"]', after=1)
    _resume(paying).assert_exit(5)
    given = ("--in-doubt", "all#0/pay=done", "--output", '{"receipt": "r"}')
    assert _resume(paying, *given).assert_ok().json["outputs"] == {"texts": ["r", "b", "c"]}
    _clean(paying)


# -- what stopped the run does not matter ------------------------------------------------------------------------------


def _waits(project: Any, told: Any) -> None:
    """The run is saved and waits; the commands after it ask, and none runs the skill anew."""
    ways = [
        f"cogcli resume {project.episode.name[:15]} --in-doubt {w}"
        for w in ("rerun", "skip", "fail")
    ]
    error = told["error"]
    assert (told["status"], told["exit_code"], error["code"]) == ("pending", 5, "effect.in-doubt")
    assert (error["step"], error["next"]) == ("pay", ways)
    assert not (project.episode / "manifest.json").exists()
    shown = project.run("trace", "--json").assert_ok().json["trace"]
    assert (shown["status"], shown["next"]) == ("pending", ways)
    _clean(project)


def test_a_full_disk_after_an_effect_leaves_the_run_waiting(paying: Any) -> None:
    fill = paying.write("fill", "")
    _waits(
        paying, paying.installed("run", "demo.one", "-p", "text=x", "--json").assert_exit(5).json
    )
    again = ("resume", "@last", "--in-doubt", "rerun", "--json")
    _waits(paying, paying.installed(*again).assert_exit(5).json)
    fill.unlink()
    given = ("--in-doubt", "done", "--output", '{"receipt": "r"}')
    assert _resume(paying, *given).assert_ok().json["outputs"] == {"receipt": "r"}
    assert _ledger(paying) == ["x", "x"]
    _clean(paying)


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_signals_in_an_effect_leave_the_run_waiting(paying: Any, name: str) -> None:
    hold = paying.write("hold", "")
    command = [COGCLI, "run", "demo.one", "-p", "text=x", "--json"]
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command, cwd=paying.root, env=paying.env, **pipes)
    wait_until(lambda: (paying.root / "ledger").exists())
    process.send_signal(getattr(signal, name))
    assert any(b"stopping" in line for line in process.stderr)
    process.send_signal(getattr(signal, name))
    out, _ = process.communicate(timeout=60)
    _waits(paying, json.loads(out))
    hold.unlink()
    assert _resume(paying, "--in-doubt", "skip").assert_ok().json["outputs"] == {}
    assert _ledger(paying) == ["x"]
    _clean(paying)


def test_what_a_signal_cut_off_beside_an_effect_in_doubt_goes_on(paying: Any) -> None:
    """Within the grace a loop beside the effect is cut off; only then it is clear that the run waits."""
    _capability(paying, "slow", "text", "side_effects: false", "slow")
    paying.skill(
        "demo.beside",
        """
        - {id: pay, uses: demo.pay, input: {text: inputs.text}, output: {receipt: outputs.receipt},
           config: {depends_on: []}}
        - {id: loop, uses: demo.slow, input: {text: item}, output: {text: outputs.texts},
           config: {depends_on: [], foreach: {items: inputs.texts}}}
        - {id: nest, uses: "skill:demo.slowly", input: {text: inputs.text}, output: {text: outputs.text},
           config: {depends_on: []}}
        """,
        inputs="{text: {type: string, required: true}, texts: {type: array, required: true}}",
        outputs="{receipt: {type: string}, texts: {type: array}, text: {type: string}}",
    )
    slow = "uses: demo.slow, input: {text: inputs.text}"
    paying.skill(
        "demo.slowly",
        f"""
        - {{id: one, {slow}, output: {{text: vars.one}}}}
        - {{id: two, {slow}, output: {{text: outputs.text}}}}
        """,
        inputs="{text: {type: string, required: true}}",
        outputs="{text: {type: string}}",
    )
    hold = paying.write("hold", "")
    command = [COGCLI, "run", "demo.beside", "-p", "text=x", "-p", 'texts:=["a", "b"]', "--json"]
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command, cwd=paying.root, env=paying.env, **pipes)
    wait_until(
        lambda: all((paying.root / name).exists() for name in ("ledger", "began-a", "began-x"))
    )
    process.send_signal(signal.SIGINT)
    assert any(b"stopping" in line for line in process.stderr)
    (paying.root / "go").touch()
    wait_until(lambda: len(_events(paying, "step.completed")) == 2)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    _waits(paying, json.loads(out))
    hold.unlink()
    given = ("--in-doubt", "done", "--output", '{"receipt": "r"}')
    done = _resume(paying, *given).assert_ok().json
    assert done["outputs"] == {"receipt": "r", "texts": ["a", "b"], "text": "x"}
    assert _ledger(paying) == ["x"]
    _clean(paying)


def test_a_nested_skill_past_its_limit_waits_with_the_effect_in_it(paying: Any) -> None:
    hold = paying.write("hold", "")
    paying.skill(
        "demo.outer",
        """
        - {id: nest, uses: "skill:demo.one", input: {text: inputs.text}, output: {receipt: outputs.receipt},
           config: {timeout_seconds: 0.5}}
        """,
        inputs="{text: {type: string, required: true}}",
        outputs="{receipt: {type: string}}",
    )
    told = paying.installed("run", "demo.outer", "-p", "text=x", "--json").assert_exit(5).json
    assert (told["status"], told["error"]["code"], told["error"]["step"]) == (
        "pending",
        "effect.in-doubt",
        "nest/pay",
    )
    _clean(paying)
    hold.unlink()
    given = ("--in-doubt", "nest/pay=done", "--output", '{"receipt": "r"}')
    assert _resume(paying, *given).assert_ok().json["outputs"] == {"receipt": "r"}
    assert _ledger(paying) == ["x"]
    _clean(paying)


def test_a_run_that_failed_beside_an_effect_in_doubt_in_a_nested_skill_replays_the_same(
    paying: Any,
) -> None:
    """The run has ended by the failure, and what waits in it with it. An older log has no end of the nested run."""
    paying.write("hold", "")
    _capability(paying, "slow", "text", "side_effects: false", "slow")
    _capability(paying, "broken", "text", "side_effects: false", "broken")
    paying.skill(
        "demo.inner",
        """
        - {id: pay, uses: demo.pay, input: {text: inputs.text}, config: {depends_on: []}}
        - {id: slow, uses: demo.slow, input: {text: inputs.text}, config: {depends_on: []}}
        """,
        inputs="{text: {type: string, required: true}}",
    )
    paying.skill(
        "demo.outer",
        """
        - {id: nest, uses: "skill:demo.inner", input: {text: inputs.text},
           config: {depends_on: [], timeout_seconds: 0.5}}
        - {id: fails, uses: demo.broken, input: {text: inputs.text}, config: {depends_on: []}}
        """,
        inputs="{text: {type: string, required: true}}",
    )
    paying.installed("run", "demo.outer", "-p", "text=x", "--json").assert_exit(1)
    assert [event["payload"]["status"] for event in _events(paying, "run.terminated")] == [
        "aborted",
        "error",
    ]
    _clean(paying)
    log = paying.episode / "events.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(line for line in lines if b'"status":"aborted"' not in line))
    paying.run("replay", "@last").assert_ok()
    log.write_bytes(b"".join(lines))
    error = paying.run("rerun", "@last", "--json", "-q").assert_exit(2).json["error"]
    assert error["code"] == "rerun.effects"
