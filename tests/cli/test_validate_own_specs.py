"""`validate` counts what is of the user apart from what is shipped, and needs no trust."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.project import Project

pytestmark = pytest.mark.sampled(12)

UNTRUSTED = "service.untrusted"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_shipped_specs_alone_are_nothing_to_check(project: Project) -> None:
    project.write("cogcli.toml", "")
    result = project.run("validate", "--strict", "--json", "--report", "junit:out.xml").assert_exit(
        3
    )
    envelope = result.json
    assert envelope["error"]["code"] == "check.nothing"
    assert envelope["own_counts"] == {"skills": 0, "capabilities": 0, "bindings": 0, "services": 0}
    assert envelope["counts"]["capabilities"] > 50
    assert (project.root / "out.xml").exists()
    shown = project.run("validate").assert_exit(3)
    assert "Checked 0 skills, 0 capabilities, 0 bindings, 0 services of your own, " in shown.out
    assert "there is nothing of your own to check" in shown.err
    (project.root / "empty").mkdir()
    assert "these paths hold no specs" in project.run("validate", "empty").assert_exit(3).err


def test_own_specs_are_counted_apart(project: Project) -> None:
    project.skill(
        "own.ask", "- {id: ask, uses: text.content.normalize, input: {text: x}, output: {}}"
    )
    envelope = project.run("validate", "--json").assert_ok().json
    assert envelope["own_counts"] == {"skills": 1, "capabilities": 0, "bindings": 0, "services": 0}
    shown = project.run("validate").assert_ok().out
    assert shown.startswith("Checked 1 skill, 0 capabilities, 0 bindings, 0 services of your own, ")
    assert " shipped files in " in shown
    builtin = project.run("validate", "skills").assert_ok().out
    assert builtin.startswith("Checked 1 skill, 0 capabilities, 0 bindings, 0 services in ")


@pytest.mark.sampled(24)
@pytest.mark.parametrize("both", [False, True])
def test_a_strict_check_of_a_strangers_project_goes_by_its_specs(
    project: Project, both: bool
) -> None:
    """One binding that may not be called yet, or two of them."""
    project.demo()
    project.write("services/local/demo.yaml", "id: demo\nkind: pythoncall\nmodule: demo_services\n")
    if both:
        other = project.root / "bindings/local/demo.text.upper/demo_text_upper.yaml"
        text = other.read_text().replace("id: demo_text_upper", "id: another")
        project.write("bindings/local/demo.text.upper/another.yaml", text)
        other.write_text(f"{other.read_text()}metadata: {{fallback_binding_id: another}}\n")
        project.write(
            ".agent-skills/active_bindings.json", '{"demo.text.upper": "demo_text_upper"}'
        )
    trusted = project.run("validate", "--strict", "--json").assert_ok().json
    del project.env["COGCLI_TRUST_PROJECT"]
    checked = project.run("validate", "--strict", "--json").assert_ok().json
    assert {problem["code"] for problem in checked["problems"]} - {UNTRUSTED} == {
        problem["code"] for problem in trusted["problems"]
    }
    assert UNTRUSTED in {problem["code"] for problem in checked["problems"]}, (
        "it is shown as before"
    )
    skill = project.root / "skills/local/demo/greet/skill.yaml"
    skill.write_text(skill.read_text().replace("vars.text}", "vars.other}", 1))
    assert project.run("validate", "--strict", "--json").code == 1
