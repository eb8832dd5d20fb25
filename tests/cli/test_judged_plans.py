"""The candidate of a turn is judged as a whole before its first effect (docs/reference/agent-run.md#gate)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.agent_desk import events_of
from support.project import Project, Result

pytestmark = pytest.mark.sampled(8)

PACK = "packs/support-desk/4.0.0.yaml"
NOTES = "notes.txt"
MESSAGE = "Where is order ord_881?"
CARD = "4111111111111111"
RULE = """
    - rule_id: no_insult
      mode: enforce
      applies_to: {capabilities: [desk.note]}
      if: {"==": [{var: args.text}, insult]}
      then: {verdict: deny}
      tests: [{data: {args: {text: insult}}, expect: match}, {data: {args: {text: thanks}}, expect: no_match}]
    - rule_id: no_old_order
      mode: enforce
      applies_to: {capabilities: [desk.note]}
      if: {">": [{var: order.age_days}, 30]}
      then: {verdict: deny}
      tests: [{data: {order: {age_days: 31}}, expect: match}, {data: {order: {age_days: 30}}, expect: no_match}]
"""
TEMPLATE = """
    - id: order_status
      decision: support.order_status
      steps:
        - {id: order, uses: orders.lookup, input: {order_id: inputs.order_id}, output: {age_days: outputs.age_days}}
        - {id: first, uses: desk.note, input: {text: {$literal: thanks}}, output: {}}
        - {id: second, uses: desk.note, input: {text: {$text: "${inputs.start}${inputs.end}"}}, output: {}}
"""


@pytest.fixture
def notes(desk: Project) -> Project:
    """The desk with a tool whose calls are counted in a file of the project, whatever the log says."""
    desk.write(
        "capabilities/desk.note.yaml",
        'id: desk.note\nversion: "1.0.0"\ndescription: Write a note.\n'
        "inputs: {text: {type: string, required: true, description: The note.}}\n"
        "outputs: {length: {type: integer, required: true, description: Its length.}}\n"
        "properties: {side_effects: true, idempotent: false}\n",
    )
    desk.write(
        "bindings/local/desk.note/desk_note.yaml",
        "id: desk_note\ncapability: desk.note\nservice: desk\nprotocol: pythoncall\noperation: note\n"
        "request: {text: input.text}\nresponse: {length: response.length}\n",
    )
    code = (desk.root / "support_desk.py").read_text()
    body = (
        f'    with open(r"{desk.root / NOTES}", "a") as file:\n        file.write(text + chr(10))\n'
    )
    note = f"\n\ndef note(text: str) -> dict[str, Any]:\n{body}    return {{'length': len(text)}}\n"
    desk.write("support_desk.py", (code + note).encode())
    change_pack(
        desk,
        ("policy.eval, payments.refund]}\n", "policy.eval, payments.refund, desk.note]}\n"),
        ("capabilities: [orders.lookup]\n", "capabilities: [orders.lookup, desk.note]\n"),
        ("  rules:\n", f"  rules:{RULE}"),
    )
    return desk


def change_pack(desk: Project, *changes: tuple[str, str]) -> None:
    text = (desk.root / PACK).read_text()
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    desk.write(PACK, text.encode())


def propose(desk: Project, *texts: str, **arguments: Any) -> Result:
    """Let a scripted model propose in one turn to look the order up and a note for each text, then answer."""
    calls = [{"name": "desk.note", "args": {"text": text, **arguments}} for text in texts]
    calls.insert(0, {"name": "orders.lookup", "args": {"order_id": "ord_881"}})
    replies = [
        {"json": {"thinking": "I note it.", "tool_calls": calls}},
        {"json": {"thinking": "I give up.", "response": "I could not."}, "times": 3},
    ]
    desk.write("models/notes.yaml", json.dumps({"replies": replies}).encode())
    return invoke(desk, "--model", "scripted:models/notes.yaml")


def invoke(desk: Project, *more: str) -> Result:
    asked = ("--message", MESSAGE, "--pack", "support-desk@4.0.0", "--user", "cust_7")
    return desk.run("agent", "invoke", *asked, *more, "--json")


def noted(desk: Project) -> list[str]:
    """The notes that the tool wrote: each effect outside of the episode."""
    path = desk.root / NOTES
    return path.read_text().split() if path.exists() else []


def payloads(desk: Project, event_type: str) -> list[dict[str, Any]]:
    return [each.payload for each in events_of(desk.episode) if each.event_type == event_type]


def judged_calls(desk: Project) -> list[dict[str, Any]]:
    """What the policy gate recorded of each call of the first turn."""
    gates = [each for each in payloads(desk, "layer.completed") if each["layer"] == "policy_gate"]
    calls: list[dict[str, Any]] = gates[0]["writes"].get("calls", [])
    return calls


def assert_same_again(desk: Project) -> None:
    desk.run("verify", "@last").assert_ok()
    desk.run("replay", "@last").assert_ok()


def test_a_denied_second_call_denies_the_plan_of_a_model(notes: Project) -> None:
    result = propose(notes, "thanks", "insult")
    assert noted(notes) == []
    look, first, second = judged_calls(notes)
    assert (look["verdict"], look["obligations"]) == ("allow", [])
    assert (first["verdict"], first["obligations"]) == ("allow", ["idempotency_key"])
    assert first["waiting"] == ["no_old_order"], "the lookup supplies the fact that it reads"
    assert (second["verdict"], second["rule"]) == ("deny", "no_insult")
    (denial,) = payloads(notes, "policy.decided")
    assert (denial["decision"], denial["step_id"], denial["rule"]) == (
        "veto",
        "t1_call3",
        "no_insult",
    )
    assert payloads(notes, "step.started") == []
    assert len(payloads(notes, "candidate.proposed")) == 2, "the model was told, and answered"
    assert result.assert_exit(4).json["decision"]["status_reason"] == "no_insult"
    assert_same_again(notes)
    (explained,) = notes.run("policy", "explain", "@last", "--json").assert_ok().json["calls"]
    assert [each["text"] for each in explained["compared"]] == ['`args.text` "insult" == "insult"']


def test_policy_diff_decides_a_denied_plan_alike(notes: Project) -> None:
    propose(notes, "thanks", "insult")
    text = (notes.root / PACK).read_text().replace("pack_version: 4.0.0", "pack_version: 4.0.1")
    notes.write("packs/support-desk/4.0.1.yaml", text.encode())
    diff = ("policy", "diff", "support-desk@4.0.0", "support-desk@4.0.1", "--over", "@last")
    notes.run(*diff).assert_ok()
    allowing = text.replace("[{var: args.text}, insult]", "[{var: args.text}, injury]")
    notes.write("packs/support-desk/4.0.1.yaml", allowing.encode())
    result = notes.run(*diff, "--json").assert_exit(1)
    assert "no_insult" in result.out


def test_a_plan_that_the_pack_allows_runs(notes: Project) -> None:
    propose(notes, "thanks", "bye").assert_ok()
    assert noted(notes) == ["thanks", "bye"]
    assert [each["verdict"] for each in judged_calls(notes)] == ["allow"] * 3
    assert_same_again(notes)


@pytest.mark.parametrize("text", [f"pay {CARD}", CARD], ids=["in a text", "alone"])
def test_a_guardrail_refuses_an_argument_of_a_model(notes: Project, text: str) -> None:
    result = propose(notes, "thanks", text).assert_exit(4)
    assert noted(notes) == []
    assert result.json["decision"]["status_reason"] == "must_refuse:card"
    assert_same_again(notes)


def test_a_person_approves_the_plan_that_a_guardrail_escalates(notes: Project) -> None:
    propose(notes, "thanks", "lawyer").assert_exit(5)
    assert noted(notes) == []
    (asked,) = payloads(notes, "approval.requested")
    assert asked["input"]["plan_hash"].startswith("sha256:")
    notes.run("resume", "@last", "--approve", "GATE_OPERATOR", "--by", "ann", "--json").assert_ok()
    assert noted(notes) == ["thanks", "lawyer"]
    assert_same_again(notes)


def test_a_rejected_plan_has_no_effect(notes: Project) -> None:
    propose(notes, "thanks", "lawyer").assert_exit(5)
    notes.run("resume", "@last", "--reject", "GATE_OPERATOR", "--by", "ann").assert_exit(4)
    assert noted(notes) == []
    notes.run("replay", "@last").assert_ok()


@pytest.mark.parametrize(
    ("start", "end", "code", "reason"),
    [
        ("41111111", "11111111", 4, "must_refuse:card"),
        ("ins", "ult", 4, "no_insult"),
        ("by", "e", 0, ""),
    ],
    ids=["guardrail", "rule", "allowed"],
)
def test_a_template_is_judged_by_what_its_parameters_make(
    notes: Project, start: str, end: str, code: int, reason: str
) -> None:
    text = (notes.root / PACK).read_text()
    head, _, tail = text.partition("    - id: order_status\n      decision")
    notes.write(
        PACK, (head + TEMPLATE.lstrip("\n") + tail[tail.index("      outcome:") :]).encode()
    )
    result = invoke(notes, "--param", f"start={start}", "--param", f"end={end}").assert_exit(code)
    assert result.json["decision"]["status_reason"] == reason
    assert noted(notes) == ([] if code else ["thanks", "bye"])
    assert_same_again(notes)


def write_second(notes: Project, second: str, *templates: str) -> None:
    """Let the template of the pack write thanks, then do this; `templates` are for its lanes."""
    text = (notes.root / PACK).read_text()
    head, _, tail = text.partition("    - id: order_status\n      decision")
    kept = [line for line in TEMPLATE.splitlines()[1:] if "id: second" not in line]
    made = "\n".join((*kept, f"        - {second}"))
    rest = tail[tail.index("      outcome:") :]
    body, memory, end = rest.partition("memory_layer:")
    notes.write(PACK, "".join((head, made, "\n", body, *templates, memory, end)).encode())


INSULT = "uses: desk.note, input: {text: {$literal: insult}}, output: {}"


@pytest.mark.parametrize(
    ("config", "parameter", "begins"),
    [
        ("condition: inputs.mood == 'bad'", "bad", False),
        ("condition: inputs.mood == 'bad'", "good", True),
        ("condition: outputs.age_days > 30", "", True),
        ("foreach: {items: [1, 2]}", "", False),
        ("foreach: {items: []}", "", True),
        ("while: {condition: false, max_iterations: 2}", "", False),
    ],
)
def test_a_step_that_surely_runs_is_judged_before_the_plan(
    notes: Project, config: str, parameter: str, begins: bool
) -> None:
    write_second(notes, f"{{id: second, {INSULT}, config: {{{config}}}}}")
    parameters = ("--param", f"mood={parameter}") if parameter else ()
    invoke(notes, *parameters)
    assert noted(notes) == (["thanks"] if begins else [])
    assert "insult" not in noted(notes)
    assert_same_again(notes)


@pytest.mark.parametrize(("text", "code"), [("insult", 4), ("bye", 0)])
def test_a_lane_is_judged_before_the_plan(notes: Project, text: str, code: int) -> None:
    lane = "    - {id: notes, steps: [{id: note, uses: desk.note, input: {text: inputs.text}, output: {}}]}\n"
    write_second(
        notes, f"{{id: second, uses: lane:notes, input: {{text: {{$literal: {text}}}}}}}", lane
    )
    result = invoke(notes).assert_exit(code)
    assert result.json["decision"]["status_reason"] == ("no_insult" if code else "")
    assert noted(notes) == ([] if code else ["thanks", "bye"])
    assert judged_calls(notes)[-1]["step_id"] == "t1_second/note"
    assert_same_again(notes)


def test_a_run_of_an_earlier_version_is_replayed_by_its_own_checks(notes: Project) -> None:
    from cogcli.declarations.run_start import LATEST_EDITION, start_of
    from cogcli.run.policy_request import PolicyRequest

    propose(notes, "thanks").assert_ok()
    started = events_of(notes.episode)[0]
    start = start_of(started)
    asked = PolicyRequest.recorded(start)
    assert asked is not None
    assert asked.edition == start.policy.edition == LATEST_EDITION
    earlier = {
        name: value for name, value in started.payload["policy"].items() if name != "edition"
    }
    older = start_of(started._replace(payload={**started.payload, "policy": earlier}))
    before = PolicyRequest.recorded(older)
    assert before is not None
    assert before.edition == 1
