"""Lanes: templates that run beside each other, as children of the run (docs/reference/agent-run.md#planner)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.project import Project, Result

from cogcli.declarations.envelope import Event
from cogcli.episode.log_reader import EventLog

pytestmark = pytest.mark.sampled(8)

ANY = "{value: {type: any, required: true}}"
PACK = """
contract_meta: {{contract_version: "1.0", issuer: example.org}}
pack_meta:
  pack_id: lanes
  pack_version: 1.0.0
  defaults: {{safety_mode: network, budget: {{{budget}}}}}
policy_layer:
  permissions: [{{role: clerk, allow: [demo.keep, demo.spoil]}}]
  rules:
    - rule_id: no_seven
      mode: enforce
      applies_to: {{capabilities: [demo.keep]}}
      if: {{in: [seven, {{var: call.step}}]}}
      then: {{verdict: deny}}
      tests: [{{data: {{call: {{step: seven}}}}, expect: match}}, {{data: {{call: {{step: six}}}}, expect: no_match}}]
tooling_layer: {{}}
decision_layer:
  intents:
    - {{id: demo.go, phrases: [go], capabilities: [demo.keep, demo.spoil], templates: [main]}}
  task_templates:
{templates}
tone_and_comms: {{agent: {{role: clerk, voice: plain}}}}
"""
ASKED = (
    "agent",
    "invoke",
    "--message",
    "go",
    "--pack",
    "lanes@1.0.0",
    "--user",
    "cust_7",
    "--param",
    "value:={}",
)
KEEP = "{id: keep, uses: demo.keep, input: {value: inputs.value}, output: {value: outputs.value}}"


def template(id: str, *steps: str) -> str:
    lines = [f"    - id: {id}", "      steps:", *(f"        - {step}" for step in steps)]
    return "\n".join(lines) + "\n"


def lane(id: str, to: str, more: str = ", config: {depends_on: []}", *, output: str = "") -> str:
    target = output or f"vars.{id}"
    return f"{{id: {id}, uses: 'lane:{to}', input: {{value: inputs.value}}, output: {{value: {target}}}{more}}}"


def below(id: str, to: str) -> str:
    """A lane that is all of a lane."""
    return lane(id, to, output="outputs.value")


LEAF = template("d", KEEP)


@pytest.fixture
def lanes(project: Project) -> Project:
    project.services(
        """
        import threading, time
        running, most = set(), 0
        lock = threading.Lock()

        def keep(value):
            return {"value": value}

        def spoil(value):
            global most
            with lock:
                running.add(threading.get_ident())
                most = max(most, len(running))
            time.sleep(0.05)
            with lock:
                running.discard(threading.get_ident())
                now = most
            if isinstance(value, dict):
                for inner in value.values():
                    if isinstance(inner, list):
                        inner.append("spoiled")
                value["spoiled"] = True
            return {"value": now}
        """
    )
    for name in ("keep", "spoil"):
        sent, given = "{value: input.value}", "{value: response.value}"
        project.capability(
            f"demo.{name}", name, inputs=ANY, outputs=ANY, request=sent, response=given
        )
    return project


def write(lanes: Project, *templates: str, budget: str = "turns: 2") -> None:
    text = PACK.format(budget=budget, templates="".join(templates))
    lanes.write("packs/lanes/1.0.0.yaml", text.encode())


def problems(lanes: Project) -> list[tuple[str, str]]:
    result = lanes.run("pack", "check", "lanes@1.0.0", "--json")
    return [
        (each["code"], each["path"]) for each in result.json["problems"] if each["severity"] == "E"
    ]


def place(number: int, rest: str) -> str:
    return f"/decision_layer/task_templates/{number}/steps/{rest}"


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("templates", "expected"),
    [
        ([template("main", lane("x", "b")), template("b", KEEP)], []),
        ([template("main", lane("x", "b")), template("b", below("y", "c")), template("c", KEEP)], []),
        ([template("main", lane("x", "nowhere"))], [("step.uses", place(0, "0/uses"))]),
        ([template("main", below("x", "main"))], [("skill.cycle", place(0, "0/uses"))]),
        (
            [template("main", below("x", "b")), template("b", below("y", "main"))],
            [("skill.cycle", place(0, "0/uses")), ("skill.cycle", place(1, "0/uses"))],
        ),
        (
            [template("main", lane("x", "b")), template("b", below("y", "c")), template("c", below("z", "d")), LEAF],
            [("skill.depth", place(0, "0/uses"))],
        ),
        ([template("main", KEEP, lane("keep", "b")), template("b", KEEP)], [("step.duplicate", place(0, "1/id"))]),
        (
            [template("main", lane("x", "b", ", config: {foreach: {in: inputs.value}}")), template("b", KEEP)],
            [("key.missing", place(0, "0/config/foreach")), ("key.unknown", place(0, "0/config/foreach/in"))],
        ),
        ([template("main", "[]")], [("value.type", place(0, "0"))]),
    ],
    ids=["one", "two deep", "unknown", "itself", "cycle", "three deep", "ids", "shape", "no step"],
)  # fmt: skip
def test_what_is_wrong_with_lanes_is_found_before_a_run(
    lanes: Project, templates: list[str], expected: list[tuple[str, str]]
) -> None:
    write(lanes, *templates)
    assert problems(lanes) == expected
    for flags in (("--dry-run",), ()):
        lanes.run(*ASKED, *flags).assert_exit(3 if expected else 0)
    assert (lanes.root / ".cogcli").exists() is not bool(expected)


def test_four_lanes_run_at_once_and_one_for_each_item_no_more(lanes: Project) -> None:
    spoil = KEEP.replace("demo.keep", "demo.spoil")
    items = lane(
        "many", "b", ", config: {foreach: {items: inputs.value, max_parallel: 9}, depends_on: []}"
    )
    write(lanes, template("main", *[lane(f"l{n}", "b") for n in range(9)]), template("b", spoil))
    assert max(answers(lanes, lanes.run(*ASKED, "--json"))) <= 4
    write(lanes, template("main", items), template("b", spoil))
    asked = [text.replace("value:={}", "value:=[1, 2, 3, 4, 5, 6, 7, 8, 9]") for text in ASKED]
    assert max(answers(lanes, lanes.run(*asked, "--json"))) <= 4


def answers(lanes: Project, result: Result) -> list[int]:
    """What the calls of a run gave: how many there were at once so far."""
    found = [
        event.payload["output"]["value"]
        for event in events(lanes, result)
        if event.event_type == "step.completed" and event.payload.get("capability")
    ]
    assert found, result.err
    return found


def events(lanes: Project, result: Result) -> list[Event]:
    return [event for _, event in EventLog(directory(lanes, result))]


def directory(lanes: Project, result: Result) -> Path:
    return next(lanes.root.rglob(result.json["episode_id"]))


def decision(lanes: Project, result: Result) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((directory(lanes, result) / "decision.json").read_text())
    lanes.run("verify", result.json["episode_id"]).assert_ok()
    lanes.run("replay", result.json["episode_id"]).assert_ok()
    return found


def test_a_lane_that_changes_all_it_can_reach_changes_nothing_of_its_parent(lanes: Project) -> None:
    held = "{id: held, uses: demo.keep, input: {value: inputs.value}, output: {value: vars.held}}"
    spoils = "{id: x, uses: 'lane:b', input: {value: vars.held}, output: {value: vars.x}}"
    last = "{id: last, uses: demo.keep, input: {value: [vars.held, inputs.value]}, output: {value: outputs.value}}"
    write(
        lanes,
        template("main", held, spoils, last),
        template("b", KEEP.replace("demo.keep", "demo.spoil")),
    )
    given = {"list": [1, {"deep": [2]}], "text": "t"}
    asked = [text.replace("value:={}", f"value:={json.dumps(given)}") for text in ASKED]
    result = lanes.run(*asked, "--json").assert_ok()
    made = {
        event.step_id: event.payload
        for event in events(lanes, result)
        if event.event_type == "step.completed"
    }
    assert made["t1_last"]["output"] == {"value": [given, given]}
    assert events(lanes, result)[0].payload["inputs"] == {"value": given}
    found = decision(lanes, result)
    assert [child["status"] for child in found["children"]] == ["ok"]


@pytest.mark.parametrize("limit", [6, 7, 11])
def test_lanes_that_race_for_a_budget_spend_no_more_than_it(lanes: Project, limit: int) -> None:
    main = template("main", *[lane(f"l{n}", "b") for n in range(6)])
    budget = f"turns: 2, tool_calls: {{per_turn: {limit}, per_workflow: 32}}"
    write(lanes, main, template("b", KEEP, KEEP.replace("id: keep", "id: again")), budget=budget)
    result = lanes.run(*ASKED, "--json").assert_exit(4)
    found = decision(lanes, result)
    assert 1 <= found["budget"]["used"]["tool_calls.per_workflow"] <= limit
    assert (found["status"], found["status_reason"]) == (
        "denied",
        "budget_exceeded:tool_calls.per_turn",
    )
    started = [
        each
        for each in events(lanes, result)
        if each.event_type == "step.started" and each.payload.get("capability")
    ]
    assert 1 <= len(started) <= limit


@pytest.mark.parametrize("repeated", [False, True])
def test_a_call_that_is_denied_in_a_lane_denies_the_run(lanes: Project, *, repeated: bool) -> None:
    """Before any lane begins; the name of a repeated step is known only when its call comes."""
    seven = KEEP.replace("id: keep", "id: seven")
    if repeated:
        seven = seven.replace("output:", "config: {foreach: {items: [1]}}, output:")
    write(
        lanes,
        template("main", lane("x", "b")),
        template("b", below("y", "c")),
        template("c", seven),
    )
    result = lanes.run(*ASKED, "--json").assert_exit(4)
    found = decision(lanes, result)
    assert (found["status"], found["status_reason"]) == ("denied", "no_seven")
    begun = ["agent.lanes.b", "agent.lanes.c"] if repeated else []
    assert [child["skill"] for child in found["children"]] == begun
    assert all(child["status"] == "vetoed" for child in found["children"])
