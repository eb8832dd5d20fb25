"""`rerun --from` takes over finished items and rounds of a loop that failed (docs/reference/episode.md#rerun)."""

from __future__ import annotations

import pytest
from support.project import Project

pytestmark = pytest.mark.sampled(8)

SOURCE = """
import os

def send(text: str) -> dict[str, object]:
    if len(text) == 3 and os.path.exists("away"):
        raise ValueError("no luck with " + text)
    with open("sent", "a") as ledger:
        ledger.write(text + "\\n")
    return {"text": text + "x"}
"""
LOOPS = {
    "foreach": (
        "input: {text: line}, output: {text: outputs.text}, config: {foreach: {items: inputs.lines, as: line}}"
    ),
    "while": (
        "input: {text: vars.text}, output: {text: vars.text, $iterations: outputs.text},"
        " config: {while: {condition: 'true', max_iterations: 4}}"
    ),
}
SENT = {"foreach": ["a", "bb", "ccc", "d"], "while": ["x", "xx", "xxx", "xxxx"]}


@pytest.mark.parametrize("kind", LOOPS)
def test_finished_parts_are_taken_over(project: Project, kind: str) -> None:
    project.services(SOURCE)
    project.capability("demo.mail.send", "send")
    file = project.root / "capabilities/demo.mail.send.yaml"
    file.write_text(
        file.read_text().replace("side_effects: false", "side_effects: true, idempotent: false")
    )
    project.skill(
        "demo.mailing",
        "- {id: begin, uses: demo.mail.send, input: {text: {$literal: ''}}, output: {text: vars.text}}\n"
        f"- {{id: send, uses: demo.mail.send, {LOOPS[kind]}}}\n",
        inputs="{lines: {type: array, default: [a, bb, ccc, d]}}", outputs="{text: {type: any}}",
    )  # fmt: skip
    away = project.write("away", "")
    project.run("run", "demo.mailing", "-q").assert_exit(1)
    away.unlink()
    sealed = project.run("resume", "@last", "--json").assert_exit(2).json["error"]
    (again,) = sealed["next"]
    flag = "--failed-items" if kind == "foreach" else "--from send"
    assert again.startswith("cogcli rerun ep_"), again
    assert flag in again, again
    line = ("rerun", "@failed", "--from", "send", "--effects", "send#2=repeat", "--json")
    project.run(*line).assert_ok()
    assert (project.root / "sent").read_text().split("\n") == ["", *SENT[kind], ""]
    project.run("replay", "@last").assert_ok()
    project.run("verify", "@last").assert_ok()
