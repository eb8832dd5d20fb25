"""`resume --reject` and `--abort` need no secrets, no services and no unchanged specs: nothing is called
(docs/reference/execution.md#approvals)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable

import pytest
from support.project import Project

pytestmark = pytest.mark.sampled(8)

CHANGES: dict[str, Callable[[Project], object]] = {
    "secret": lambda project: project.env.pop("DEMO_KEY"),
    "service": lambda project: (project.root / "services/pay.yaml").unlink(),
    "changed": lambda project: project.skill("demo.pay", STEPS.replace("pay, uses", "pay2, uses")),
    "skill": lambda project: shutil.rmtree(project.root / "skills"),
}
STEPS = """
- {id: look, uses: demo.look, input: {text: {$literal: x}}, output: {text: vars.text}}
- {id: pay, uses: demo.pay.out, input: {text: vars.text}, output: {text: outputs.text}}
"""


@pytest.fixture
def waiting(project: Project) -> Project:
    """A run whose second step needs a confirmation, and calls a service with a secret."""
    project.services("def look(text: str) -> dict[str, object]:\n    return {'text': text}\n")
    project.capability("demo.look", "look")
    project.capability("demo.pay.out", "POST /pay", extra="safety: {requires_confirmation: true}\n")
    project.write(
        "services/pay.yaml",
        "id: pay\nkind: openapi\nbase_url: http://127.0.0.1:9\nnetwork: private\nauth_ref: env:DEMO_KEY\n",
    )
    binding = project.root / "bindings/local/demo.pay.out/demo_pay_out.yaml"
    text = binding.read_text().replace("service: demo", "service: pay")
    text = text.replace("protocol: pythoncall", "protocol: openapi")
    binding.write_text(
        text.replace("operation: POST /pay", "operation: pay") + "metadata: {method: POST}\n"
    )
    project.skill("demo.pay", STEPS, outputs="{text: {type: string}}")
    project.env["DEMO_KEY"] = "secret-of-the-service"
    return project


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("flag", ["--reject", "--abort"])
def test_a_waiting_run_is_closed_whatever_became_of_its_specs(
    waiting: Project, flag: str, change: str
) -> None:
    waiting.run("run", "demo.pay", "-q").assert_exit(5)
    CHANGES[change](waiting)
    words = ("--reject", "demo.pay.out") if flag == "--reject" else ("--abort",)
    closed = waiting.run("resume", "@last", *words, "--json")
    closed.assert_exit(4 if flag == "--reject" else 0)
    assert closed.json["status"] == ("vetoed" if flag == "--reject" else "aborted")
    waiting.run("verify", "@last").assert_ok()
    if change not in ("skill", "changed", "service"):
        waiting.run("replay", "@last").assert_ok()


def test_an_approval_needs_them(waiting: Project) -> None:
    waiting.run("run", "demo.pay", "-q").assert_exit(5)
    del waiting.env["DEMO_KEY"]
    refused = waiting.run("resume", "@last", "--approve", "demo.pay.out", "--json").assert_exit(3)
    assert refused.json["error"]["code"] == "env.missing"


def test_what_is_due_after_a_rejection_waits_for_the_specs(waiting: Project) -> None:
    """With --keep-going another step is due. The rejection stands, and the run waits."""
    steps = (
        STEPS + "- {id: last, uses: demo.look, input: {text: inputs.text}, depends_on: [hold]}\n"
    )
    steps += "- {id: hold, uses: demo.pay.out, input: {text: inputs.text}, depends_on: []}\n"
    waiting.skill(
        "demo.pay",
        steps,
        inputs="{text: {type: string, default: b}}",
        outputs="{text: {type: string}}",
    )
    waiting.run("run", "demo.pay", "-q", "--keep-going").assert_exit(5)
    first, second = (
        each["approval_id"] for each in waiting.run("approvals", "ls", "--json").json["approvals"]
    )
    held = waiting.run("approvals", "show", first, "--json").json["approvals"][0]
    hold = first if held["step"] == "hold" else second
    other = second if hold == first else first
    waiting.run("approvals", "approve", hold).assert_ok()
    waiting.env.pop("DEMO_KEY")
    refused = waiting.run("resume", "@last", "--reject", other, "--json").assert_exit(3)
    assert refused.json["error"]["code"] == "env.missing"
    assert waiting.run("approvals", "ls", "--json").json["approvals"] == []
    (row,) = waiting.run("ls", "--json").json["episodes"]
    assert row["status"] == "pending"
    log = next(waiting.root.rglob("events.jsonl")).read_text().splitlines()
    assert [json.loads(line)["event_type"] for line in log].count("approval.rejected") == 1
    waiting.run("verify", "@last").assert_ok()
