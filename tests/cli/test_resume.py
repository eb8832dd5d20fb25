"""`resume`: a run that stopped goes on in its own log; what was answered is not called again."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from support.checkpoints import vouch
from support.waiting import wait_until

pytestmark = pytest.mark.sampled(10)

COGCLI = str(Path(sys.executable).parent / "cogcli")
SOURCE = """
import os
import time

def _wait(name: str) -> None:
    with open("ledger", "a") as ledger:
        ledger.write(name + "\\n")
    while os.path.exists("hold-" + name):
        time.sleep(0.05)

def first(text: str) -> dict[str, object]:
    _wait("first")
    return {"text": text + "1"}

def second(text: str) -> dict[str, object]:
    _wait("second")
    return {"text": text + "2"}

def refuse(text: str) -> dict[str, object]:
    return {"allowed": False, "reason": "somebody has to look"}
"""
STEPS = """
- {id: a, uses: demo.text.first, input: {text: inputs.text}, output: {text: vars.a}}
- {id: b, uses: demo.text.second, input: {text: vars.a}, output: {text: vars.b}}
- {id: c, uses: demo.text.first, input: {text: vars.b}, output: {text: outputs.text}}
"""


@pytest.fixture
def stopped(project: Any) -> Any:
    """A skill of three steps whose second is an effect; `stop` kills a run while it is in a step."""
    project.services(SOURCE)
    project.capability("demo.text.first", "first")
    project.capability("demo.text.second", "second")
    _declare(project, "side_effects: true, idempotent: false")
    project.skill(
        "demo.three", STEPS, inputs="{text: {type: string, required: true}}",
        outputs="{text: {type: string, required: true}}",
    )  # fmt: skip
    return project


def _declare(project: Any, properties: str, extra: str = "") -> None:
    project.write(
        "capabilities/demo.text.second.yaml",
        'id: demo.text.second\nversion: "1.0.0"\ndescription: The second.\n'
        "inputs: {text: {type: string, required: true}}\noutputs: {text: {type: string, required: true}}\n"
        f"properties: {{{properties}}}\n{extra}",
    )


def _kill_in(project: Any, name: str, *flags: str) -> None:
    """Kill a run of `demo.three` while it is in a step."""
    hold = project.write(f"hold-{name}", "")
    command = [COGCLI, "run", "demo.three", "-p", "text=x", "-q", *flags]
    process = subprocess.Popen(command, cwd=project.root, env=project.env)
    wait_until(lambda: f"{name}\n" in _ledger(project))
    process.kill()
    process.wait()
    hold.unlink()


def _ledger(project: Any) -> list[str]:
    file = project.root / "ledger"
    return file.read_text().splitlines(keepends=True) if file.exists() else []


def _events(project: Any) -> list[dict[str, Any]]:
    return [
        json.loads(line) for line in (project.episode / "events.jsonl").read_text().splitlines()
    ]


def _clean(project: Any) -> None:
    project.run("verify", "@last").assert_ok()
    project.run("replay", "@last").assert_ok()


def test_a_killed_run_goes_on_without_calling_again_what_answered(stopped: Any) -> None:
    _declare(stopped, "side_effects: true, idempotent: true")
    _kill_in(stopped, "second")
    gone_on = stopped.run("resume", "@last", env={"COGCLI_FORCE_TTY": "80"}).assert_ok()
    assert gone_on.json == {"text": "x121"}
    assert gone_on.err.startswith("kept from before: a\ndemo.three 1.0.0 · 3 steps · trace ")
    assert [line.split()[1] for line in gone_on.err.splitlines()[2:4]] == ["b", "c"]
    assert _ledger(stopped) == ["first\n", "second\n", "second\n", "first\n"]
    _clean(stopped)


def test_resume_keeps_ids_and_the_start(stopped: Any) -> None:
    _declare(stopped, "side_effects: false")
    _kill_in(stopped, "second")
    before = _events(stopped)[0]
    stopped.run("resume", "@last", "-q").assert_ok()
    state = json.loads((stopped.episode / "state.json").read_text())
    assert state["episode"]["run_id"] == before["run_id"]
    assert state["episode"]["started_at"] == before["timestamp"]
    assert sum(event["event_type"] == "run.started" for event in _events(stopped)) == 1
    end = next(event for event in _events(stopped) if event["event_type"] == "run.terminated")
    assert end["metrics"]["started_at"] == before["timestamp"]


def test_an_effect_in_doubt_is_asked_about(stopped: Any) -> None:
    _kill_in(stopped, "second")
    shown = stopped.run("trace").assert_ok()
    ways = [
        f"cogcli resume {stopped.episode.name[:15]} --in-doubt {way}"
        for way in ("rerun", "skip", "fail")
    ]
    assert "! b demo.text.second in doubt" in " ".join(shown.out.split())
    assert "in doubt  b: demo.text.second may have happened" in shown.out
    assert shown.err.split("next: ")[1].split("\n      ") == [*ways[:2], f"{ways[2]}\n"]
    result = stopped.run("resume", "@last", "--json", "-q").assert_exit(5).json
    assert result["error"]["code"] == "effect.in-doubt"
    assert result["error"]["next"] == ways
    told = stopped.run("trace", "--json").json["trace"]
    assert (told["status"], told["steps"][1]["status"], told["next"]) == (
        "pending",
        "in doubt",
        ways,
    )
    assert _ledger(stopped) == ["first\n", "second\n"]


@pytest.mark.parametrize(
    ("choice", "code", "calls"),
    [("rerun", 0, 2), ("skip", 1, 1), ("fail", 1, 1)],
    ids=["rerun", "skip", "fail"],
)
def test_a_person_decides_about_an_effect_in_doubt(
    stopped: Any, choice: str, code: int, calls: int
) -> None:
    _kill_in(stopped, "second")
    stopped.run("resume", "@last", "-q").assert_exit(5)
    why = ("--by", "ana", "--reason", "looked at the other side")
    stopped.run("resume", "@last", "--in-doubt", choice, *why, "-q").assert_exit(code)
    assert _ledger(stopped).count("second\n") == calls
    (decided,) = [event for event in _events(stopped) if event["event_type"] == "policy.decided"]
    told = {name: decided["payload"][name] for name in ("rule", "verdict", "reason", "capability")}
    assert (decided["agent_id"], decided["step_id"], told) == (
        "human:ana",
        "b",
        {
            "rule": "effect.in-doubt",
            "verdict": choice,
            "reason": "looked at the other side",
            "capability": "demo.text.second",
        },
    )
    _clean(stopped)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("choice", "after"),
    [
        ("skip", "policy.decided"),
        ("skip", "step.degraded"),
        ("fail", "policy.decided"),
        ("fail", "step.failed"),
        ("rerun", "policy.decided"),
    ],
)
def test_what_a_person_decided_stands_after_another_crash(
    stopped: Any, choice: str, after: str
) -> None:
    _kill_in(stopped, "second")
    code = 0 if choice == "rerun" else 1
    stopped.run("resume", "@last", "--in-doubt", choice, "-q").assert_exit(code)
    calls = _ledger(stopped).count("second\n")
    stopped.cut_after(after)
    other = "skip" if choice == "rerun" else "rerun"
    stopped.run("resume", "@last", "--in-doubt", other, "-q").assert_exit(code)
    again = 1 if choice == "rerun" else 0
    assert _ledger(stopped).count("second\n") == calls + again
    assert sum(event["event_type"] == "policy.decided" for event in _events(stopped)) == 1
    _clean(stopped)


def test_a_rerun_that_is_in_doubt_itself_is_asked_about_again(stopped: Any) -> None:
    _kill_in(stopped, "second")
    stopped.run("resume", "@last", "--in-doubt", "rerun", "-q").assert_ok()
    stopped.cut_after("call.retried")
    stopped.run("resume", "@last", "-q").assert_exit(5)
    assert _ledger(stopped).count("second\n") == 2
    stopped.run("resume", "@last", "--in-doubt", "skip", "-q").assert_exit(1)
    assert _ledger(stopped).count("second\n") == 2
    _clean(stopped)


def test_an_effect_left_out_in_doubt_is_not_repeated_by_a_retry_around_it(stopped: Any) -> None:
    """The nested skill fails later on, which its step would retry: a new child run would make the call anew."""
    stopped.services(
        SOURCE
        + """
def third(text: str) -> dict[str, object]:
    _wait("third")
    raise RuntimeError("no")
"""
    )
    stopped.capability("demo.text.third", "third")
    stopped.skill(
        "demo.inner",
        """
- {id: b, uses: demo.text.second, input: {text: inputs.text}, output: {text: vars.b}}
- {id: c, uses: demo.text.third, input: {text: inputs.text}, config: {depends_on: [b]}, output: {text: outputs.text}}
""",
        inputs="{text: {type: string, required: true}}",
        outputs="{text: {type: string}}",
    )
    stopped.skill(
        "demo.three",
        '- {id: a, uses: "skill:demo.inner", input: {text: inputs.text}, output: {text: outputs.text},'
        " config: {retry: {max_attempts: 2, backoff_seconds: 0}}}",
        inputs="{text: {type: string, required: true}}",
    )
    _kill_in(stopped, "second")
    stopped.run("resume", "@last", "--in-doubt", "skip", "-q").assert_exit(1)
    assert _ledger(stopped) == ["second\n", "third\n"]
    _clean(stopped)


def test_a_run_that_ended_is_sealed_to_the_same_bytes_and_told_the_same(stopped: Any) -> None:
    _declare(stopped, "side_effects: false")
    whole = stopped.run("run", "demo.three", "-p", "text=x", "--json", "-q").assert_ok().json
    before = {path.name: path.read_bytes() for path in stopped.episode.iterdir() if path.is_file()}
    stopped.cut_after("run.terminated")
    binding = stopped.root / "bindings/local/demo.text.second/demo_text_second.yaml"
    binding.write_text(binding.read_text() + "# edited: it does not matter any more\n")
    again = stopped.run("resume", "@last", "--json", "-q").assert_ok().json
    assert again["outputs"] == whole["outputs"]
    after = {path.name: path.read_bytes() for path in stopped.episode.iterdir() if path.is_file()}
    assert set(after) == set(before)
    assert after["summary.json"] == before["summary.json"]
    assert after["learn.jsonl"] == before["learn.jsonl"]
    assert len(after["events.jsonl"].splitlines()) == len(before["events.jsonl"].splitlines())


@pytest.mark.parametrize("cut", ["run.terminated", None])
def test_a_resumed_run_is_signed_like_any_other(stopped: Any, cut: str | None) -> None:
    private = Ed25519PrivateKey.generate()
    key = stopped.write(
        "key.pem", private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    )
    key.chmod(0o600)
    _declare(stopped, "side_effects: false")
    if cut is None:
        _kill_in(stopped, "second")
    else:
        stopped.run("run", "demo.three", "-p", "text=x", "-q").assert_ok()
        stopped.cut_after(cut)
    stopped.run("resume", "@last", "-q", env={"COGCLI_SIGNING_KEY": str(key)}).assert_ok()
    assert (
        json.loads((stopped.episode / "manifest.json").read_bytes())["signature"]["alg"]
        == "ed25519"
    )


def test_a_changed_spec_is_named_and_refused_unless_allowed(stopped: Any) -> None:
    _declare(stopped, "side_effects: false")
    _kill_in(stopped, "second")
    binding = stopped.root / "bindings/local/demo.text.second/demo_text_second.yaml"
    binding.write_text(binding.read_text() + "# edited\n")
    result = stopped.run("resume", "@last", "--json", "-q").assert_exit(3).json
    assert result["error"]["code"] == "resume.changed-specs"
    assert "demo_text_second" in result["error"]["message"]
    stopped.run("resume", "@last", "--allow-changed-specs", "-q").assert_ok()
    (resumed,) = (e["payload"] for e in _events(stopped) if e["event_type"] == "run.resumed")
    assert resumed["changed_specs"] == ["binding:demo_text_second"]
    _clean(stopped)  # the change changed nothing: the specs that it began with tell the same


def test_a_replay_says_where_a_run_went_on_with_changed_specs(stopped: Any) -> None:
    """Its log holds the specs that it began with, and can tell again what those did."""
    _declare(stopped, "side_effects: false")
    _kill_in(stopped, "second")
    skill = stopped.root / "skills/local/demo/three/skill.yaml"
    began_with = skill.read_text()
    skill.write_text(began_with.replace("{text: vars.b}, output", "{text: vars.a}, output"))
    assert skill.read_text() != began_with
    stopped.run("resume", "@last", *CHANGED).assert_ok()
    stopped.run("verify", "@last").assert_ok()
    for present in (skill.read_text(), began_with):
        skill.write_text(present)
        told = stopped.run("replay", "@last", "--json").assert_exit(1).json["replay"]["difference"]
        assert told["step_id"] == "c"
        assert "continued with changed specs (`skill:demo.three`)" in told["what"]


def test_a_change_allowed_where_there_is_none_is_none(stopped: Any) -> None:
    _declare(stopped, "side_effects: false")
    _kill_in(stopped, "second")
    stopped.run("resume", "@last", *CHANGED).assert_ok()
    assert not [e for e in _events(stopped) if "changed_specs" in e["payload"]]
    _clean(stopped)


def test_a_spec_that_cannot_be_used_any_more_is_refused_before_anything_goes_on(
    stopped: Any,
) -> None:
    _declare(stopped, "side_effects: false")
    _kill_in(stopped, "second")
    service = stopped.root / "services/local/demo.yaml"
    service.write_text("no: [")
    before = (stopped.episode / "events.jsonl").read_bytes()
    result = stopped.run("resume", "@last", "--json", "-q").assert_exit(3).json
    assert result["error"]["code"] == "resume.changed-specs"
    assert "service:demo" in result["error"]["message"]
    stopped.run("resume", "@last", "--allow-changed-specs", "-q").assert_exit(3)
    assert (stopped.episode / "events.jsonl").read_bytes() == before


def test_a_run_waits_for_approval_and_goes_on_in_another_process(stopped: Any) -> None:
    _declare(
        stopped, "side_effects: true, idempotent: false", "safety: {requires_confirmation: true}\n"
    )
    stopped.run("run", "demo.three", "-p", "text=x", "-q").assert_exit(5)
    assert _ledger(stopped) == ["first\n"]
    stopped.run("resume", "@last", "-q").assert_exit(5)
    shown = stopped.run("trace").assert_ok()
    assert "? b demo.text.second needs your approval" in " ".join(shown.out.split())
    assert "waits  b: `demo.text.second` needs confirmation by a person, until 2" in shown.out
    for way in ("--approve", "--reject"):
        assert f"cogcli resume {stopped.episode.name[:15]} {way} demo.text.second\n" in shown.err
    stopped.run(
        "resume",
        "@last",
        "--approve",
        "demo.text.second",
        "--by",
        "ana",
        "--reason",
        "looked at it",
        "-q",
    ).assert_ok()
    assert _ledger(stopped) == ["first\n", "second\n", "first\n"]
    granted = [event for event in _events(stopped) if event["event_type"] == "approval.granted"]
    assert [(event["agent_id"], event["payload"]["reason"]) for event in granted] == [
        ("human:ana", "looked at it")
    ]
    assert sum(event["event_type"] == "approval.requested" for event in _events(stopped)) == 1
    _clean(stopped)


def test_a_rejection_vetoes_the_step(stopped: Any) -> None:
    _declare(
        stopped, "side_effects: true, idempotent: false", "safety: {requires_confirmation: true}\n"
    )
    stopped.run("run", "demo.three", "-p", "text=x", "-q").assert_exit(5)
    result = (
        stopped.run("resume", "@last", "--reject", "demo.text.second", "--json", "-q")
        .assert_exit(4)
        .json
    )
    assert result["error"]["code"] == "safety.rejected"
    assert _ledger(stopped) == ["first\n"]
    _clean(stopped)


def test_an_approval_of_something_nobody_asked_for_is_refused(stopped: Any) -> None:
    _declare(
        stopped, "side_effects: true, idempotent: false", "safety: {requires_confirmation: true}\n"
    )
    stopped.run("run", "demo.three", "-p", "text=x", "-q").assert_exit(5)
    result = (
        stopped.run("resume", "@last", "--approve", "demo.text.third", "--json", "-q")
        .assert_exit(2)
        .json
    )
    assert result["error"]["code"] == "episode.unknown-approval"


def test_who_approves_and_rejects_the_same_request_has_said_nothing(stopped: Any) -> None:
    _declare(
        stopped, "side_effects: true, idempotent: false", "safety: {requires_confirmation: true}\n"
    )
    stopped.run("run", "demo.three", "-p", "text=x", "-q").assert_exit(5)
    asked = next(e for e in _events(stopped) if e["event_type"] == "approval.requested")["payload"]
    names = asked["capability"], asked["approval_id"]
    both = stopped.run("resume", "@last", "--approve", names[0], "--reject", names[1]).assert_exit(
        2
    )
    assert "both approved and rejected" in both.err
    assert _ledger(stopped) == ["first\n"]
    stopped.run("resume", "@last", "--approve", names[0], "--approve", names[1], "-q").assert_ok()
    assert sum(e["event_type"] == "approval.granted" for e in _events(stopped)) == 1
    _clean(stopped)


def test_an_approval_does_not_hold_for_another_input(stopped: Any) -> None:
    _declare(
        stopped, "side_effects: true, idempotent: false", "safety: {requires_confirmation: true}\n"
    )
    stopped.run("run", "demo.three", "-p", "text=x", "-q").assert_exit(5)
    skill = stopped.root / "skills/local/demo/three/skill.yaml"
    skill.write_text(
        skill.read_text().replace(
            "{text: vars.a}, output: {text: vars.b}", "{text: inputs.text}, output: {text: vars.b}"
        )
    )
    result = (
        stopped.run(
            "resume",
            "@last",
            "--approve",
            "demo.text.second",
            "--allow-changed-specs",
            "--json",
            "-q",
        )
        .assert_exit(5)
        .json
    )
    assert result["error"]["code"] == "policy.approval"
    assert "--approve demo.text.second" in result["error"]["next"][0]
    assert "second\n" not in _ledger(stopped)
    # It was asked anew, about what is to be done now: an answer to that holds.
    again = ("resume", "@last", "--approve", "demo.text.second", "--allow-changed-specs", "-q")
    stopped.run(*again).assert_ok()
    assert _ledger(stopped).count("second\n") == 1
    stopped.run("verify", "@last").assert_ok()


EFFECT = "side_effects: true, idempotent: false"
CHANGED = ("--allow-changed-specs", "-q")


@pytest.mark.parametrize(
    "change", ["no confirmation", "no safety", "no effect", "another capability"]
)
def test_what_a_person_was_asked_stays_asked_whatever_the_specs_say_now(
    stopped: Any, change: str
) -> None:
    _declare(stopped, EFFECT, "safety: {requires_confirmation: true, trust_level: standard}\n")
    stopped.run("run", "demo.three", "-p", "text=x", "-q").assert_exit(5)
    if change == "another capability":
        stopped.capability("demo.text.other", "second")
        skill = stopped.root / "skills/local/demo/three/skill.yaml"
        skill.write_text(skill.read_text().replace("demo.text.second", "demo.text.other"))
    else:
        safety = {"no confirmation": "safety: {trust_level: standard}\n"}.get(change, "")
        _declare(stopped, "side_effects: false" if change == "no effect" else EFFECT, safety)
    stopped.run("resume", "@last", *CHANGED).assert_exit(5)
    stopped.run("resume", "@last", *CHANGED).assert_exit(5)
    assert _ledger(stopped) == ["first\n"]
    asked = "demo.text.other" if change == "another capability" else "demo.text.second"
    stopped.run("resume", "@last", "--approve", asked, *CHANGED).assert_ok()
    assert _ledger(stopped) == ["first\n", "second\n", "first\n"]
    stopped.run("verify", "@last").assert_ok()


def test_what_a_person_rejected_stays_rejected_whatever_the_specs_say_now(stopped: Any) -> None:
    _declare(stopped, EFFECT, "safety: {requires_confirmation: true}\n")
    stopped.run("run", "demo.three", "-p", "text=x", "-q").assert_exit(5)
    _declare(stopped, EFFECT)
    stopped.run("resume", "@last", "--reject", "demo.text.second", *CHANGED).assert_exit(4)
    assert _ledger(stopped) == ["first\n"]


@pytest.mark.parametrize("on_fail", ["block", "require_human", None])
def test_a_gate_that_the_specs_name_no_more_is_asked_still(
    stopped: Any, on_fail: str | None
) -> None:
    """Its answer counts as it did, also where it was weakened; it is loaded though nothing present names it."""
    stopped.capability(
        "demo.gate.person", "refuse", outputs="{allowed: {type: boolean, required: true}, reason: {type: string}}",
        response="{allowed: response.allowed, reason: response.reason}",
    )  # fmt: skip
    _declare(stopped, "side_effects: false", _gate(on_fail or "block"))
    _kill_in(stopped, "first")
    _declare(stopped, "side_effects: false", _gate("warn") if on_fail is None else "")
    stopped.run("resume", "@last", *CHANGED).assert_exit(5 if on_fail == "require_human" else 4)
    assert "second\n" not in _ledger(stopped)


def _gate(on_fail: str) -> str:
    return (
        f"safety: {{mandatory_pre_gates: [{{capability: demo.gate.person, on_fail: {on_fail}}}]}}\n"
    )


def test_an_output_withheld_by_a_post_gate_is_used_without_a_second_call(stopped: Any) -> None:
    stopped.write(
        "capabilities/demo.gate.person.yaml",
        'id: demo.gate.person\nversion: "1.0.0"\ndescription: Asks for a person.\n'
        "inputs: {text: {type: string}}\noutputs: {allowed: {type: boolean, required: true}, reason: {type: string}}\n"
        "properties: {side_effects: false}\n",
    )
    stopped.write(
        "bindings/local/demo.gate.person/gate.yaml",
        "id: gate_person\ncapability: demo.gate.person\nservice: demo\nprotocol: pythoncall\noperation: refuse\n"
        "request: {text: input.text}\nresponse: {allowed: response.allowed, reason: response.reason}\n",
    )
    gate = (
        "safety: {mandatory_post_gates: [{capability: demo.gate.person, on_fail: require_human}]}\n"
    )
    _declare(stopped, "side_effects: true, idempotent: false", gate)
    stopped.run("run", "demo.three", "-p", "text=x", "-q").assert_exit(5)
    assert _ledger(stopped) == ["first\n", "second\n"]
    stopped.run("resume", "@last", "--approve", "demo.gate.person", "-q").assert_ok()
    assert _ledger(stopped) == ["first\n", "second\n", "first\n"]
    _clean(stopped)


def test_a_sealed_episode_is_not_resumed(stopped: Any) -> None:
    _declare(stopped, "side_effects: false")
    stopped.run("run", "demo.three", "-p", "text=x", "-q").assert_ok()
    before = (stopped.episode / "events.jsonl").read_bytes()
    assert (
        stopped.run("resume", "@last", "--json", "-q").assert_exit(2).json["error"]["code"]
        == "episode.sealed"
    )
    assert (stopped.episode / "events.jsonl").read_bytes() == before


# -- closing ----------------------------------------------------------------------------------------------------------


def _closed(project: Any, *skipped: str) -> dict[str, Any]:
    result = project.run(
        "resume", "@last", "--abort", "--by", "ana", "--reason", "superseded", "--json"
    ).assert_ok()
    assert (result.json["status"], result.json["exit_code"]) == ("aborted", 0)
    project.run("verify", "@last").assert_ok()
    project.run("replay", "@last").assert_ok()
    state: dict[str, Any] = json.loads((project.episode / "state.json").read_text())
    assert state["outcomes"]["status"] == "aborted"
    assert [step["id"] for step in state["plan"]["steps"] if step["status"] == "skipped"] == list(
        skipped
    )
    assert "closed by ana: superseded" in (project.episode / "events.jsonl").read_text()
    project.run("resume", "@last").assert_exit(2)
    return state


def test_an_interrupted_run_is_closed_and_nothing_more_is_called(stopped: Any) -> None:
    _declare(stopped, "side_effects: false")
    _kill_in(stopped, "second")
    called = _ledger(stopped)
    _closed(stopped, "b")
    assert _ledger(stopped) == called


def test_a_closed_run_leaves_an_effect_that_may_have_happened_in_doubt(stopped: Any) -> None:
    _kill_in(stopped, "second")
    state = _closed(stopped)
    assert [step["status"] for step in state["plan"]["steps"]] == ["done", "running", "pending"]


def test_a_paused_run_is_closed_without_an_answer(stopped: Any) -> None:
    _declare(stopped, "side_effects: true", "safety: {requires_confirmation: true}\n")
    stopped.run("run", "demo.three", "-p", "text=x").assert_exit(5)
    _closed(stopped, "b")
    assert _ledger(stopped) == ["first\n"]


def test_closing_excludes_answers(stopped: Any) -> None:
    _kill_in(stopped, "second")
    for flags in (("--approve", "x"), ("--in-doubt", "skip")):
        assert "keep one" in stopped.run("resume", "@last", "--abort", *flags).assert_exit(2).err


def test_a_resume_says_what_is_kept(project: Any) -> None:
    project.services("def say(text: str) -> dict[str, object]:\n    return {'text': text}\n")
    for name, more in (("one", ""), ("two", "safety: {requires_confirmation: true}\n")):
        project.capability(f"demo.text.{name}", "say")
        file = project.root / f"capabilities/demo.text.{name}.yaml"
        file.write_text(file.read_text() + more)
    steps = (
        "- {id: first, uses: demo.text.one, input: {text: {$literal: x}}, output: {text: vars.x}}\n"
    )
    project.skill("demo.both", steps + "- {id: then, uses: demo.text.two, input: {text: vars.x}}")
    project.run("run", "demo.both").assert_exit(5)
    resume = ("resume", "@last", "--approve", "demo.text.two")
    assert "kept from before: first\n" in project.run(*resume).assert_ok().err
    project.run("run", "demo.both").assert_exit(5)
    assert "kept from before" not in project.run(*resume, "-q").assert_ok().err
    assert "kept from before" not in project.run("resume", "@last").assert_exit(2).err, (
        "nothing goes on"
    )


def test_without_an_episode_it_says_what_can_be_resumed(demo: Any) -> None:
    def asked() -> dict[str, Any]:
        error: dict[str, Any] = demo.run("resume", "--json").assert_exit(2).json["error"]
        assert (error["code"], error["message"]) == ("usage.value", "`resume` needs EP")
        return error

    assert asked()["hint"] == "no run waits, and none was interrupted"
    demo.run("run", "demo.greet", "-p", "text=x").assert_ok()
    cut = demo.episode
    demo.run("run", "demo.greet", "-p", "text=x").assert_ok()
    for name in ("manifest.json", "summary.json", "state.json"):
        (cut / name).unlink()
    (cut / "learn.jsonl").write_bytes(b"")
    log = cut / "events.jsonl"
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:3]))
    vouch(cut, demo.home)
    error = asked()
    first, (row,) = error["hint"].partition("\n")[0], error["hint"].splitlines()[1:]
    assert first == "these can be resumed:"
    assert row.startswith(f"{cut.name}  demo.greet  interrupted  ")
    assert error["next"] == [f"cogcli resume {cut.name}"]
    demo.run("resume", cut.name).assert_ok()
