"""A service that keeps failing, a fallback in its place, and the same story told again
(docs/reference/execution.md#breaker, docs/reference/execution.md#attempts)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.checkpoints import vouch

MODULE = """
import os

CALLS = {ledger!r}


def fails(n):
    with open(CALLS, "a") as out:
        out.write("x")
    raise ValueError("out of order")


def works(n):
    return {{"n": n}}
"""


@pytest.fixture
def circuit(project: Any) -> Any:
    """A skill over seven items whose first binding always fails; its second one is never eligible."""
    project.write("flaky_services.py", MODULE.format(ledger=str(project.root / "ledger")))
    for name in ("first", "second"):
        project.write(
            f"services/local/{name}.yaml",
            f"id: {name}\nkind: pythoncall\nmodule: flaky_services\nisolation: thread\n",
        )
    project.write(
        "services/local/unset.yaml",
        "id: unset\nkind: openapi\nbase_url: https://unset.example\nauth_ref: FLAKY_KEY_OF_NOBODY\n",
    )
    project.write(
        "capabilities/flaky.number.take.yaml",
        'id: flaky.number.take\nversion: "1.0.0"\ndescription: Takes a number.\n'
        "inputs: {n: {type: integer, required: true}}\noutputs: {n: {type: integer, required: true}}\n"
        "properties: {side_effects: false}\n",
    )
    for name, service, operation, fallback in (
        ("one", "first", "fails", "two"),
        ("two", "unset", "fails", "three"),
        ("three", "second", "works", ""),
    ):
        project.write(
            f"bindings/local/flaky.number.take/{name}.yaml",
            f"id: {name}\ncapability: flaky.number.take\nservice: {service}\n"
            f"protocol: {'openapi' if service == 'unset' else 'pythoncall'}\noperation: {operation}\n"
            "request: {n: input.n}\nresponse: {n: response.n}\n"
            + (f"metadata: {{fallback_binding_id: {fallback}}}\n" if fallback else ""),
        )
    project.write(
        "policies/official_default_selection.yaml", "defaults: {flaky.number.take: one}\n"
    )
    project.skill(
        "flaky.taking",
        "- {id: take, uses: flaky.number.take, input: {n: item}, output: {n: outputs.all},"
        " config: {foreach: {items: inputs.all, as: item}}}",
        inputs="{all: {type: array, required: true}}",
        outputs="{all: {type: array}}",
    )
    return project


def items(project: Any) -> list[dict[str, Any]]:
    lines = (project.episode / "events.jsonl").read_text().splitlines()
    events = [json.loads(line) for line in lines]
    return [e for e in events if e["event_type"] == "step.completed" and "#" in e["step_id"]]


def test_an_open_circuit_is_told_and_told_again(circuit: Any) -> None:
    numbers = [1, 2, 3, 4, 5, 6, 7]
    ran = circuit.run("run", "flaky.taking", "--input", json.dumps({"all": numbers}), "--json")
    ran.assert_exit(0)
    assert ran.json["outputs"] == {"all": numbers}
    assert (circuit.root / "ledger").read_text() == "x" * 5
    told = [
        [(each["binding_id"], each["status"]) for each in item["payload"]["attempts"]]
        for item in items(circuit)
    ]
    rest = [("two", "skipped"), ("three", "success")]
    assert told == [[("one", "failed"), *rest]] * 5 + [[("one", "circuit_open"), *rest]] * 2
    last = items(circuit)[-1]["payload"]
    assert last["fallback"] == {"fallback_used": True, "fallback_chain": ["one", "two", "three"]}
    assert [each.get("code") for each in last["attempts"]] == [
        "call.circuit-open",
        "env.missing",
        None,
    ]

    circuit.run("replay", "--json").assert_exit(0)
    circuit.run("verify", "--json").assert_exit(0)
    assert (circuit.root / "ledger").read_text() == "x" * 5
    tree = circuit.run("trace", "--full").assert_exit(0).out
    assert "! fell back to three" in tree
    summary = json.loads((circuit.episode / "summary.json").read_text())
    assert (summary["counts"]["fallbacks"], summary["metrics"]["fallback_count"]) == (7, 7)


def test_a_resumed_run_keeps_what_was_refused_and_asks_the_service_anew(circuit: Any) -> None:
    circuit.run("run", "flaky.taking", "--input", '{"all": [1, 2, 3, 4, 5, 6, 7]}').assert_exit(0)
    cut_after(circuit, "take#5")
    resumed = circuit.run("resume", "@last", "--json").assert_exit(0)
    assert resumed.json["outputs"] == {"all": [1, 2, 3, 4, 5, 6, 7]}
    statuses = [item["payload"]["attempts"][0]["status"] for item in items(circuit)]
    assert statuses == ["failed"] * 5 + ["circuit_open", "failed"]
    assert (circuit.root / "ledger").read_text() == "x" * 6
    circuit.run("replay", "--json").assert_exit(0)
    circuit.run("verify", "--json").assert_exit(0)


def cut_after(project: Any, step_id: str) -> None:
    """Leave the episode as it was when that part of a step had just ended."""
    log = project.episode / "events.jsonl"
    lines = log.read_text().splitlines(keepends=True)
    events = [json.loads(line) for line in lines]
    (end,) = [
        n
        for n, e in enumerate(events)
        if e["event_type"] == "step.completed" and e["step_id"] == step_id
    ]
    log.write_text("".join(lines[: end + 1]))
    for name in ("state.json", "summary.json", "manifest.json"):
        (project.episode / name).unlink()
    vouch(project.episode, project.home)
    (project.episode / "learn.jsonl").write_text("")
