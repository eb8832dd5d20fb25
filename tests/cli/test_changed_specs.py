"""`validate --against`: what changed specs and packs mean for runs that wait, and for recorded decisions
(docs/reference/command-line.md#against)."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from support.project import Project

pytestmark = pytest.mark.sampled(8)

SOURCE = """
    def count(n):
        return {"n": n + 1}
"""
NUMBER = "{n: {type: integer, required: true}}"
FIELDS = {"inputs": NUMBER, "outputs": NUMBER}
MAPS = {"request": "{n: input.n}", "response": "{n: response.n}"}
EPISODES = ".cogcli/episodes"
DESK = Path(__file__).parents[2] / "docs/examples/support-desk"
PACK = "packs/support-desk/4.0.0.yaml"
STEPS = """
- {id: one, uses: r.one, input: {n: inputs.n}, output: {n: vars.one}}
- {id: two, uses: r.two, input: {n: inputs.n}, output: {n: vars.two}, config: {depends_on: []}}
- {id: ask, uses: r.ask, input: {n: vars.two}, output: {n: vars.ask}, config: {depends_on: [one, two]}}
- {id: last, uses: r.last, input: {n: vars.ask}, output: {n: outputs.n}}
"""


def _add_capability(project: Any, id: str, **more: str) -> None:
    project.capability(id, "count", **FIELDS, **MAPS, **more)


@pytest.fixture
def waiting(project: Project) -> Project:
    """A project with a run that waits before its third step."""
    project.services(SOURCE)
    for id in ("r.one", "r.two", "r.last", "r.other"):
        _add_capability(project, id)
    _add_capability(project, "r.ask", extra="safety: {requires_confirmation: true}")
    project.skill("r.chain", STEPS, **FIELDS)
    project.run("run", "r.chain", "-p", "n=1", "--json").assert_exit(5)
    return project


def _judge(project: Project, code: int) -> dict[str, Any]:
    (found,) = (
        project.run("validate", "--against", EPISODES, "--json").assert_exit(code).json["runs"]
    )
    return dict(found)


def _change(project: Project, id: str) -> None:
    (file,) = (project.root / "bindings").rglob(f"{id.replace('.', '_')}.yaml")
    file.write_text(file.read_text() + "metadata: {description: changed}\n")


def test_what_the_run_does_not_use_may_change(waiting: Project) -> None:
    _change(waiting, "r.other")
    found = _judge(waiting, 0)
    assert (found["fate"], found["affected"], found["changed"]) == ("continues", False, [])


def test_what_is_still_to_be_done_may_change_if_a_person_says_so(waiting: Project) -> None:
    _change(waiting, "r.last")
    found = _judge(waiting, 1)
    assert (found["fate"], found["changed"]) == ("may_continue", ["binding:r_last"])
    shown = waiting.run("validate", "--against", "@last").assert_exit(1)
    assert "may continue: `binding:r_last` changed" in shown.out
    assert found["next"] in shown.out
    assert "1 of 1 run affected" in shown.err
    _, *resume = found["next"].split()
    waiting.run(*resume, "--approve", "r.ask").assert_ok()


@pytest.mark.parametrize(("changed", "first"), [("r.one", "one"), ("r.two", "two")])
def test_what_was_done_must_be_done_again(waiting: Project, changed: str, first: str) -> None:
    _change(waiting, changed)
    found = _judge(waiting, 1)
    assert (found["fate"], found["from"]) == ("restarts", first)
    _, *rerun = found["next"].split()
    waiting.run(*rerun, "--confirm", "r.ask").assert_ok()


def test_two_independent_steps_need_the_whole_run(waiting: Project) -> None:
    _change(waiting, "r.one")
    _change(waiting, "r.two")
    found = _judge(waiting, 1)
    assert (found["fate"], found.get("from"), found.get("next")) == ("restarts", None, None)
    assert "must restart from its beginning" in waiting.run("validate", "--against", EPISODES).out


def test_a_changed_step_of_the_skill_is_found(waiting: Project) -> None:
    waiting.skill(
        "r.chain",
        STEPS.replace("{n: inputs.n}, output: {n: vars.two}", "{n: 5}, output: {n: vars.two}"),
        **FIELDS,
    )
    assert _judge(waiting, 1)["from"] == "two"
    waiting.skill(
        "r.chain",
        STEPS,
        inputs="{n: {type: integer, required: true}, m: {type: integer}}",
        outputs=NUMBER,
    )
    assert (_judge(waiting, 1)["fate"], _judge(waiting, 1).get("from")) == ("restarts", None)


def test_a_skill_that_is_gone_lets_no_run_continue(waiting: Project) -> None:
    shutil.rmtree(waiting.root / "skills")
    found = _judge(waiting, 1)
    assert (found["fate"], found["why"]) == ("refused", "no skill `r.chain`")


def test_runs_that_are_over_are_not_affected_and_nothing_checked_is_no_pass(
    waiting: Project,
) -> None:
    waiting.run("resume", "@last", "--approve", "r.ask").assert_ok()
    _change(waiting, "r.one")
    result = waiting.run("validate", "--against", EPISODES, "--json").assert_exit(3)
    assert result.json["error"]["code"] == "check.nothing"


def test_an_episode_that_cannot_be_read_is_not_known(waiting: Project) -> None:
    log = waiting.episode / "events.jsonl"
    log.write_bytes(b"{}\n")
    assert _judge(waiting, 1)["fate"] == "unknown"


def test_problems_of_specs_are_reported_too(waiting: Project) -> None:
    waiting.write("skills/local/r/broken/skill.yaml", "id: r.broken\n")
    result = waiting.run("validate", "--against", EPISODES, "--json").assert_exit(1)
    assert result.json["problems"]
    assert result.json["runs"][0]["fate"] == "continues"


@pytest.fixture
def desk(project: Project) -> Project:
    ignored = shutil.ignore_patterns("__pycache__", ".cogcli")
    shutil.copytree(DESK, project.root, dirs_exist_ok=True, ignore=ignored)
    return project


def test_a_changed_pack_shows_the_decisions_that_change(desk: Project) -> None:
    run = ("run", "support.refund", "--pack", "support-desk@4.0.0", "--intent", "support.refund")
    desk.run(*run, "--user", "cust_7", "-p", "order_id=ord_881", "--json").assert_exit(5)
    assert _judge(desk, 0)["decisions"] == 3
    pack = (desk.root / PACK).read_text()
    (desk.root / PACK).write_text(
        pack.replace("{var: args.amount}, 200]", "{var: args.amount}, 300]")
    )
    found = _judge(desk, 1)
    (change,) = found["changed_decisions"]
    assert (change["before"]["gate"], change["after"]["gate"]) == (
        "GATE_FINANCE_APPROVAL",
        "GATE_OPERATOR",
    )
    assert (found["fate"], found["changed"]) == ("may_continue", ["pack:support-desk@4.0.0"])
    shown = desk.run("validate", "--against", EPISODES).assert_exit(1).out
    assert (
        "refund  payments.refund  allow_with_gate GATE_FINANCE_APPROVAL (refund_limit) -> allow_with"
        in shown
    )


def test_a_finished_run_that_would_be_decided_otherwise_is_affected(desk: Project) -> None:
    run = ("run", "support.refund", "--pack", "support-desk@4.0.0", "--intent", "support.refund")
    desk.run(*run, "--user", "cust_7", "-p", "order_id=ord_881", "--json").assert_exit(5)
    desk.run(
        "resume", "@last", "--approve", "GATE_FINANCE_APPROVAL", "--by", "ann:finance"
    ).assert_ok()
    pack = (desk.root / PACK).read_text()
    (desk.root / PACK).write_text(
        pack.replace("[{var: order.age_days}, 30]", "[{var: order.age_days}, 5]")
    )
    found = _judge(desk, 1)
    assert (found["fate"], found["affected"]) == ("finished", True)
    assert {each["after"]["verdict"] for each in found["changed_decisions"]} == {"deny"}


def test_an_agent_is_asked_again(desk: Project) -> None:
    asked = ("agent", "invoke", "--message", "Refund order ord_881", "--pack", "support-desk@4.0.0")
    desk.run(*asked, "--user", "cust_7", "--json").assert_exit(5)
    assert _judge(desk, 0)["fate"] == "continues"
    pack = (desk.root / PACK).read_text()
    (desk.root / PACK).write_text(pack.replace("voice: neutral_concise", "voice: warm"))
    assert _judge(desk, 1)["fate"] == "may_continue"
    (desk.root / PACK).write_text(
        pack.replace("[{var: order.age_days}, 30]", "[{var: order.age_days}, 5]")
    )
    found = _judge(desk, 1)
    assert found["fate"] == "restarts"
    assert found["next"].startswith("cogcli agent invoke --message 'Refund order ord_881'")
