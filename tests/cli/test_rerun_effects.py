"""`rerun` never makes an effect again unasked: what happens to each is said first, else nothing begins."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest
from support.checkpoints import vouch

pytestmark = pytest.mark.sampled(10)

SOURCE = """
import os

def _note(word: str) -> None:
    with open("ledger", "a") as ledger:
        ledger.write(word + "\\n")

def pay(text: str) -> dict[str, object]:
    _note(text)
    if os.path.exists("die"):
        os._exit(9)
    if os.path.exists("fail"):
        raise ValueError("after it happened")
    with open("ledger") as ledger:
        return {"receipt": text + str(len(ledger.readlines()))}

def read(text: str) -> dict[str, object]:
    return {"text": text}
"""
STEPS = """
- {id: a, uses: demo.read, input: {text: inputs.text}, output: {text: vars.a}}
- {id: pay, uses: demo.pay, input: {text: vars.a}, output: {receipt: vars.receipt}}
- {id: c, uses: demo.read, input: {text: vars.receipt}, output: {text: outputs.text}}
"""
TEXT = "{text: {type: string, required: true}}"


def _capability(project: Any, name: str, output: str, properties: str, extra: str = "") -> None:
    project.capability(f"demo.{name}", name, response=f"{{{output}: response.{output}}}")
    project.write(
        f"capabilities/demo.{name}.yaml",
        f'id: demo.{name}\nversion: "1.0.0"\ndescription: Does it.\n'
        f"inputs: {TEXT}\noutputs: {{{output}: {{type: string, required: true}}}}\n"
        f"properties: {{{properties}}}\n{extra}",
    )


@pytest.fixture
def paying(project: Any) -> Any:
    """A project with a skill whose second step is an effect that must not happen twice."""
    project.services(SOURCE)
    _capability(project, "pay", "receipt", "side_effects: true, idempotent: false")
    _capability(project, "read", "text", "side_effects: false")
    project.skill("demo.three", STEPS, inputs=TEXT, outputs="{text: {type: string}}")
    return project


def _ledger(project: Any) -> list[str]:
    file = project.root / "ledger"
    return file.read_text().split() if file.exists() else []


def _episodes(project: Any) -> list[str]:
    return sorted(path.name for path in (project.root / ".cogcli/episodes").glob("ep_*"))


def _clean(project: Any) -> None:
    project.run("verify", "@last").assert_ok()
    project.run("replay", "@last").assert_ok()
    project.run("state", "show", "@last", "--check").assert_ok()


def _refused(project: Any, *words: str) -> dict[str, Any]:
    """The error of a rerun that asks. Nothing has begun, nothing has happened."""
    before = _episodes(project), _ledger(project)
    error: dict[str, Any] = project.run("rerun", *words, "--json").assert_exit(2).json["error"]
    assert error["code"] == "rerun.effects", error
    assert (_episodes(project), _ledger(project)) == before
    return error


def _pasted(project: Any, command: str) -> Any:
    return project.run(*shlex.split(command)[1:])


def test_a_done_effect_is_asked_about_and_every_printed_command_keeps_its_word(paying: Any) -> None:
    paying.run("run", "demo.three", "-p", "text=x", "-q").assert_ok()
    source = _episodes(paying)[0]
    error = _refused(paying, source)
    words = ("reuse", "repeat", "fail")
    assert error["next"] == [f"cogcli rerun {source} --json --effects pay={word}" for word in words]
    assert "pay (demo.pay, done)" in error["message"]
    reused = _pasted(paying, error["next"][0]).assert_ok().json
    assert (reused["outputs"], _ledger(paying)) == ({"text": "x1"}, ["x"])
    _clean(paying)
    repeated = _pasted(paying, error["next"][1]).assert_ok().json
    assert (repeated["outputs"], _ledger(paying)) == ({"text": "x2"}, ["x", "x"])
    _clean(paying)
    failed = _pasted(paying, error["next"][2]).assert_exit(1).json
    assert (failed["error"]["code"], _ledger(paying)) == ("call.rejected", ["x", "x"])
    _clean(paying)


def test_an_effect_in_doubt_has_no_answer_to_take(paying: Any) -> None:
    die = paying.write("die", "")
    paying.installed("run", "demo.three", "-p", "text=x", "-q").assert_exit(9)
    die.unlink()
    error = _refused(paying, "@last", "--from", "pay")
    assert [command.split("=")[-1] for command in error["next"]] == ["fail", "repeat"]
    assert "in doubt" in error["message"]
    wrong = (
        paying.run("rerun", "@last", "--effects", "pay=reuse", "--json")
        .assert_exit(2)
        .json["error"]
    )
    assert wrong["code"] == "usage.value"
    for decided in ("skip", "fail"):
        paying.run("resume", _episodes(paying)[0], "--in-doubt", decided, "-q")
        assert "in doubt" in _refused(paying, _episodes(paying)[0])["message"]
    assert _ledger(paying) == ["x"]


def test_what_a_person_said_it_answered_can_be_taken(paying: Any) -> None:
    die = paying.write("die", "")
    paying.installed("run", "demo.three", "-p", "text=x", "-q").assert_exit(9)
    die.unlink()
    done = ("--in-doubt", "done", "--output", '{"receipt": "said"}')
    paying.run("resume", "@last", *done, "-q").assert_ok()
    assert paying.run("rerun", "@last", "--effects", "pay=reuse", "--json", "-q").json[
        "outputs"
    ] == {"text": "said"}
    _clean(paying)


def test_an_effect_answered_with_an_error_may_have_happened(paying: Any) -> None:
    fail = paying.write("fail", "")
    paying.run("run", "demo.three", "-p", "text=x", "-q").assert_exit(1)
    fail.unlink()
    assert "pay (demo.pay, failed)" in _refused(paying, "@failed", "--from", "pay")["message"]


def test_a_rerun_of_a_rerun_knows_where_it_happened(paying: Any) -> None:
    """It was taken over, failed unasked, or never reached since: it happened in the first run all the same."""
    paying.run("run", "demo.three", "-p", "text=x", "-q").assert_ok()
    first = _episodes(paying)[0]
    paying.run("rerun", first, "--from", "c", "-q").assert_ok()
    _refused(paying, "@last")
    paying.run("rerun", first, "--effects", "pay=fail", "-q").assert_exit(1)
    _refused(paying, "@last")
    paying.run("rerun", "@last", "--effects", "pay=reuse", "-q").assert_ok()
    again = _refused(paying, "@last")
    assert _pasted(paying, again["next"][0]).assert_ok().json["outputs"] == {"text": "x1"}
    events = map(json.loads, (paying.episode / "events.jsonl").read_text().splitlines())
    (origin,) = [
        e["payload"]["reused_from"] for e in events if e["payload"].get("step_id") == "pay"
    ]
    assert origin["episode"] == first
    assert _ledger(paying) == ["x"]
    _clean(paying)


def test_a_killed_rerun_goes_on_with_what_was_said(paying: Any) -> None:
    paying.run("run", "demo.three", "-p", "text=x", "-q").assert_ok()
    paying.run("rerun", "@last", "--effects", "pay=reuse", "-q").assert_ok()
    log = paying.episode / "events.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    for name in ("state.json", "summary.json", "manifest.json"):
        (paying.episode / name).unlink()
    (paying.episode / "learn.jsonl").write_bytes(b"")
    log.write_bytes(b"".join(lines[:2]))
    vouch(paying.episode, paying.home)
    assert paying.run("resume", "@last", "--json", "-q").assert_ok().json["outputs"] == {
        "text": "x1"
    }
    assert _ledger(paying) == ["x"]
    _clean(paying)


def test_items_and_nested_steps_are_named_where_one_word_cannot_be_for_all(paying: Any) -> None:
    paying.skill(
        "demo.inner",
        "- {id: deep, uses: demo.pay, input: {text: inputs.text}, output: {receipt: outputs.text}}",
        inputs=TEXT, outputs="{text: {type: string}}",
    )  # fmt: skip
    paying.skill(
        "demo.loop",
        """
        - {id: each, uses: "skill:demo.inner", input: {text: item}, output: {text: outputs.texts},
           config: {foreach: {items: inputs.texts}}}
        """,
        inputs="{texts: {type: array, required: true}}",
        outputs="{texts: {type: array}}",
    )
    run = ("run", "demo.loop", "-p", 'texts:=["a", "b", "c"]', "-q")
    paying.run(*run).assert_ok()
    error = _refused(paying, "@last")
    assert [command.split("--effects ")[1] for command in error["next"]] == [
        "each=reuse",
        "each=repeat",
        "each=fail",
    ]
    some = ("--effects", "each=reuse", "--effects", "each#1=repeat")
    again = paying.run("rerun", "@last", *some, "--json", "-q").assert_ok().json
    assert again["outputs"] == {"texts": ["a1", "b4", "c3"]}
    assert _ledger(paying) == ["a", "b", "c", "b"]
    _clean(paying)
    (paying.root / "ledger").unlink()
    die = paying.write("die", "")
    paying.installed(*run).assert_exit(9)
    die.unlink()
    paying.run("resume", "@last", "--in-doubt", "rerun", "-q").assert_ok()
    assert _ledger(paying) == ["a", "a", "b", "c"]


def test_a_word_for_all_of_a_loop_leaves_open_what_it_cannot_be_for(paying: Any) -> None:
    paying.skill(
        "demo.loop",
        "- {id: each, uses: demo.pay, input: {text: item}, output: {receipt: outputs.texts},"
        " config: {foreach: {items: inputs.texts}}}",
        inputs="{texts: {type: array, required: true}}",
        outputs="{texts: {type: array}}",
    )
    paying.write("fail", "")
    paying.run("run", "demo.loop", "-p", 'texts:=["a", "b"]', "-q").assert_exit(1)
    (paying.root / "fail").unlink()
    paying.run("rerun", "@last", "--effects", "each=repeat", "-q").assert_ok()
    log = (paying.episode / "events.jsonl").read_text().splitlines()
    cut = next(n for n, line in enumerate(log) if '"step.completed"' in line and '"each#1"' in line)
    (paying.episode / "events.jsonl").write_text("\n".join(log[:cut]) + "\n")
    for name in ("state.json", "summary.json", "manifest.json"):
        (paying.episode / name).unlink()
    error = _refused(paying, "@last")
    assert [command.split(" --effects ")[1:] for command in error["next"]] == [
        ["'each#0=reuse'", "'each#1=fail'"],
        ["'each#0=repeat'", "'each#1=repeat'"],
        ["'each#0=fail'", "'each#1=fail'"],
    ]
    left = _refused(paying, "@last", "--effects", "each=reuse")
    assert [command.split(" --effects ")[-1] for command in left["next"]] == [
        "'each#1=fail'",
        "'each#1=repeat'",
    ]


def test_an_idempotent_effect_keeps_its_key_while_its_input_is_the_same(paying: Any) -> None:
    _capability(paying, "pay", "receipt", "side_effects: true, idempotent: true")
    paying.run("run", "demo.three", "-p", "text=x", "-q").assert_ok()

    def key() -> str:
        events = map(json.loads, (paying.episode / "events.jsonl").read_text().splitlines())
        (intent,) = [
            e for e in events if e["event_type"] == "step.started" and e["step_id"] == "pay"
        ]
        return str(intent["payload"]["idempotency_key"])

    first = key()
    for _ in range(2):
        paying.run("rerun", "@last", "-q").assert_ok()
        assert key() == first
        _clean(paying)
    skill = paying.root / "skills/local/demo/three/skill.yaml"
    skill.write_text(
        skill.read_text().replace("input: {text: vars.a}", 'input: {text: {$literal: "other"}}')
    )
    paying.run("rerun", "@last", "-q").assert_ok()
    assert key() != first


def _looping(paying: Any, config: str, value: str = "item") -> None:
    paying.skill(
        "demo.loop",
        f"- {{id: each, uses: demo.pay, input: {{text: {value}}}, output: {{receipt: outputs.all}},"
        f" config: {config}}}",
        inputs="{items: {type: array}}",
        outputs="{all: {type: any}}",
    )


@pytest.mark.parametrize("parallel", [1, 3])
@pytest.mark.parametrize("word", ["reuse", "repeat"])
def test_an_item_that_was_never_called_takes_no_answer_of_another(
    paying: Any, word: str, parallel: int
) -> None:
    """Items of equal input are as many calls. What only one of them answered stands for one."""
    _looping(paying, f"{{foreach: {{items: inputs.items, max_parallel: {parallel}}}}}")
    paying.run("run", "demo.loop", "-p", 'items:=["x"]', "-q").assert_ok()
    skill = paying.root / "skills/local/demo/loop/skill.yaml"
    skill.write_text(skill.read_text().replace("items: inputs.items", "items: [x, x, y]"))
    paying.run("rerun", "@last", "--effects", f"each={word}", "-q").assert_ok()
    assert sorted(_ledger(paying)) == (["x"] * 2 if word == "reuse" else ["x"] * 3) + ["y"]
    _clean(paying)
    paying.run("rerun", "@last", "--effects", "each=reuse", "-q").assert_ok()
    assert len(_ledger(paying)) == (3 if word == "reuse" else 4)
    _clean(paying)


def test_a_round_that_was_never_begun_takes_no_answer_of_another(paying: Any) -> None:
    _looping(paying, "{while: {condition: true, max_iterations: 1}}", "{$literal: x}")
    paying.run("run", "demo.loop", "-p", 'items:=["x"]', "-q").assert_ok()
    skill = paying.root / "skills/local/demo/loop/skill.yaml"
    skill.write_text(skill.read_text().replace("max_iterations: 1", "max_iterations: 3"))
    paying.run("rerun", "@last", "--effects", "each=reuse", "-q").assert_ok()
    assert _ledger(paying) == ["x"] * 3
    _clean(paying)


def test_items_that_changed_places_are_each_known(paying: Any) -> None:
    _looping(paying, "{foreach: {items: inputs.items}}")
    paying.run("run", "demo.loop", "-p", 'items:=["x", "y", "x"]', "-q").assert_ok()
    skill = paying.root / "skills/local/demo/loop/skill.yaml"
    skill.write_text(skill.read_text().replace("items: inputs.items", "items: [y, x, x, x]"))
    paying.run("rerun", "@last", "--effects", "each=reuse", "-q").assert_ok()
    assert _ledger(paying) == ["x", "y", "x", "x"]
    _clean(paying)


@pytest.mark.parametrize("items", ["[z]", "[x, z]", "[z, x]", "[y, z]"])
def test_an_item_takes_no_answer_that_was_for_another_input(paying: Any, items: str) -> None:
    """Nor is it called: its place was paid for, and nobody said to pay again."""
    _looping(paying, "{foreach: {items: inputs.items}}")
    paying.run("run", "demo.loop", "-p", 'items:=["x", "y"]', "-q").assert_ok()
    skill = paying.root / "skills/local/demo/loop/skill.yaml"
    skill.write_text(skill.read_text().replace("items: inputs.items", f"items: {items}"))
    told = (
        paying.run("rerun", "@last", "--effects", "each=reuse", "--json", "-q").assert_exit(1).json
    )
    assert (told["error"]["code"], _ledger(paying)) == ("call.rejected", ["x", "y"])
    _clean(paying)
    error = _refused(paying, "@last")
    assert "each" in error["message"]
    paying.run("rerun", "@last", "--effects", "each=repeat", "-q").assert_ok()
    _clean(paying)


def test_a_step_takes_no_answer_that_was_for_another_input(paying: Any) -> None:
    paying.run("run", "demo.three", "-p", "text=x", "-q").assert_ok()
    rerun = ("rerun", "@last", "--from", "pay", "--effects", "pay=reuse", "--json", "-q")
    assert paying.run(*rerun).assert_ok().json["outputs"] == {"text": "x1"}
    skill = paying.root / "skills/local/demo/three/skill.yaml"
    skill.write_text(
        skill.read_text().replace("input: {text: vars.a}", 'input: {text: {$literal: "other"}}')
    )
    told = paying.run(*rerun).assert_exit(1).json
    assert (told["error"]["code"], told["error"]["step"], _ledger(paying)) == (
        "call.rejected",
        "pay",
        ["x"],
    )
    _clean(paying)


def test_an_answer_is_taken_for_an_input_that_the_log_holds_masked(paying: Any) -> None:
    paying.write(
        "capabilities/demo.pay.yaml",
        'id: demo.pay\nversion: "1.0.0"\ndescription: Does it.\n'
        "inputs: {text: {type: string, required: true}, password: {type: string}}\n"
        "outputs: {receipt: {type: string, required: true}}\n"
        "properties: {side_effects: true, idempotent: false}\n",
    )
    paying.skill(
        "demo.locked",
        "- {id: pay, uses: demo.pay, input: {text: inputs.text, password: inputs.password},"
        " output: {receipt: outputs.text}}",
        inputs="{text: {type: string, required: true}, password: {type: string}}",
        outputs="{text: {type: string}}",
    )
    paying.run("run", "demo.locked", "-p", "text=x", "-p", "password=open-sesame", "-q").assert_ok()
    rerun = ("rerun", "@last", "--effects", "pay=reuse", "--json", "-q")
    assert paying.run(*rerun).assert_ok().json["outputs"] == {"text": "x1"}
    assert _ledger(paying) == ["x"]
    _clean(paying)


def test_the_plan_shows_what_would_be_reused_called_and_asked(paying: Any) -> None:
    paying.run("run", "demo.three", "-p", "text=x", "-q").assert_ok()
    before = _episodes(paying)
    plan = (
        paying.run("rerun", "@last", "--from", "pay", "--plan", "--json").assert_ok().json["plan"]
    )
    assert [(step["id"], step["what"]) for step in plan["steps"]] == [
        ("a", "reused"),
        ("pay", "asked"),
        ("c", "called"),
    ]
    told = {
        "step": "pay",
        "capabilities": ["demo.pay"],
        "state": "done",
        "words": ["reuse", "repeat", "fail"],
    }
    assert plan["steps"][1]["effects"] == [told]
    shown = paying.run("rerun", "@last", "--plan").assert_ok().out
    assert "pay  asked: needs a" in shown
    assert (
        "demo.pay is done: --effects pay=reuse, --effects pay=repeat, --effects pay=fail" in shown
    )
    said = (
        paying.run("rerun", "@last", "--plan", "--effects", "pay=reuse", "--json")
        .assert_ok()
        .json["plan"]
    )
    assert (said["steps"][1]["what"], said["effects"]) == ("reused", {"pay": "reuse"})
    assert _episodes(paying) == before


def test_nobody_need_allow_what_is_not_called(paying: Any) -> None:
    """An answer that is taken needs no confirmation; a gate after the call judges it all the same."""
    confirmed = "safety: {requires_confirmation: true}\n"
    _capability(paying, "pay", "receipt", "side_effects: true, idempotent: false", confirmed)
    paying.run("run", "demo.three", "-p", "text=x", "--confirm", "demo.pay", "-q").assert_ok()
    paying.run("rerun", "@last", "--effects", "pay=reuse", "-q").assert_ok()
    assert _ledger(paying) == ["x"]
    _clean(paying)


def test_what_says_nothing_about_an_effect_is_refused(paying: Any) -> None:
    paying.run("run", "demo.three", "-p", "text=x", "-q").assert_ok()
    for words, code in (
        (("--effects", "pay"), "usage.value"),
        (("--effects", "reuse"), "usage.value"),
        (("--effects", "pay=redo"), "usage.value"),
        (("--effects", "pya=reuse"), "step.unknown"),
        (("--effects", "pay=reuse", "--effects", "pay=fail"), "usage.flag"),
    ):
        error = paying.run("rerun", "@last", *words, "--json").assert_exit(2).json["error"]
        assert error["code"] == code, words
    assert len(_episodes(paying)) == 1
