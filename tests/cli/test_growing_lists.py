"""Loops whose list grows: what the episode holds, and that a call which changes its input changes nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest

SOURCE = """
    def page(number):
        rows = [{"id": n, "note": "n" * 60} for n in range(number, number + 50)]
        return {"rows": rows, "next": number + 50}

    def grow(rows):
        rows.extend(page(len(rows))["rows"])
        rows[0]["note"] = "changed by the call"
        return {"rows": rows, "next": len(rows)}
"""
ROWS = "{type: array, required: true}"
OUTPUTS = f"{{rows: {ROWS}, next: {{type: integer}}}}"
LOOP = '{condition: "vars.next < inputs.last", max_iterations: 100}'
FIRST = """
- {id: first, uses: t.page, input: {number: 0}, output: {rows: vars.rows, next: vars.next}}
- {id: copied, uses: t.grow, input: {rows: vars.rows}, output: {next: vars.grown}}
"""
LAST = "\n- {id: last, uses: t.page, input: {number: 0}, output: {vars.rows: outputs.rows}}"
WAYS = {
    "append": "uses: t.page, input: {number: vars.next}, config: {while: %s,"
    " merge_strategy: {vars.rows: append, vars.next: replace}}",
    "carry": "uses: t.grow, input: {rows: vars.rows}, config: {while: %s}",
}
COUNT = 1000


@pytest.fixture
def growing(project: Any) -> Any:
    project.services(SOURCE)
    for function, name, field in (
        ("page", "number", "{type: integer}"),
        ("grow", "rows", ROWS),
    ):
        project.capability(
            f"t.{function}",
            function,
            inputs=f"{{{name}: {field}}}",
            outputs=OUTPUTS,
            request=f"{{{name}: input.{name}}}",
            response="{rows: response.rows, next: response.next}",
        )
    for name, step in WAYS.items():
        rest = f"- {{id: rest, {step % LOOP}, output: {{rows: vars.rows, next: vars.next}}}}"
        project.skill(
            f"t.{name}",
            FIRST + rest + LAST,
            inputs="{last: {type: integer, required: true}}",
            outputs=f"{{rows: {ROWS}}}",
        )
    return project


@pytest.mark.sampled(3)
@pytest.mark.parametrize("way", WAYS)
def test_the_episode_grows_with_the_rows(growing: Any, way: str) -> None:
    told = growing.run("run", f"t.{way}", "-p", f"last={COUNT}", "-q").assert_ok().json
    notes = {row["note"] for row in told["rows"]}
    assert [row["id"] for row in told["rows"]] == list(range(COUNT))
    # In the first way only `copied` changed the rows, which were its own.
    assert notes == ({"n" * 60} if way == "append" else {"n" * 60, "changed by the call"})
    distinct = len(json.dumps(told["rows"]))
    taken = sum(path.stat().st_size for path in growing.episode.rglob("*") if path.is_file())
    assert taken <= 4 * distinct + 20 * 16 * 1024 + 10 * 1024 * COUNT // 50
    state = json.loads((growing.episode / "state.json").read_bytes())
    assert state["outcomes"]["outputs"]["rows"] == told["rows"]
    path = ("--path", "x-cognitive.vars.rows", "--json")
    shown = growing.run("state", "show", "@last", *path).assert_ok().json
    assert shown["value"] == told["rows"]
    growing.run("verify", "@last").assert_ok()
    growing.run("replay", "@last").assert_ok()
