"""`validate` and `doctor` through the command."""

from __future__ import annotations

from typing import Any


def broken(demo: Any) -> None:
    skill = demo.root / "skills/local/demo/greet/skill.yaml"
    skill.write_text(skill.read_text().replace("input: {text: vars.text}", "input: {text: vars.txet}"))


def test_a_clean_project_passes(demo: Any) -> None:
    result = demo.run("validate", "skills", "capabilities", "bindings").assert_ok()
    assert result.out.startswith("Checked 2 skills, 2 capabilities, 2 bindings, 0 services in ")
    assert result.out.endswith("0 errors, 0 warnings.\n")


def test_a_defect_is_framed_at_its_place(demo: Any) -> None:
    broken(demo)
    result = demo.run("validate").assert_exit(1)
    assert "error[ref.unwritten]" in result.out
    assert "--> skills/local/demo/greet/skill.yaml:14:19" in result.out
    assert "^^^^^^^^^" in result.out
    assert "Why? cogcli explain" in result.out


def test_formats(demo: Any) -> None:
    broken(demo)
    assert (
        "skills/local/demo/greet/skill.yaml:14:19: error[ref.unwritten] "
        in demo.run("validate", "--format", "concise").out
    )
    first = demo.run("validate", "--format", "github").assert_exit(1).out.splitlines()[0]
    assert first.startswith(
        "::error title=cogcli (ref.unwritten),file=skills/local/demo/greet/skill.yaml,line=14,col=19,endColumn=28::"
    )
    body = demo.run("validate", "--json").json
    assert body["error"]["code"] == "ref.unwritten"
    assert [p["line"] for p in body["problems"] if p["code"] == "ref.unwritten"] == [14]


def test_warnings_fail_only_with_strict(demo: Any) -> None:
    demo.run("validate", "services").assert_ok()
    demo.run("validate", "services", "--strict").assert_exit(1)


def test_a_path_that_does_not_exist_is_a_usage_error(demo: Any) -> None:
    assert "input.file" in demo.run("validate", "nowhere.yaml").assert_exit(2).err


def test_github_gets_a_summary(demo: Any, tmp_path: Any) -> None:
    broken(demo)
    summary = tmp_path / "summary.md"
    demo.run("validate", env={"GITHUB_STEP_SUMMARY": str(summary)}).assert_exit(1)
    assert "| `ref.unwritten` |" in summary.read_text()


def test_the_doctor_expands_only_problems_and_names_a_cure(demo: Any) -> None:
    result = demo.run("doctor").assert_ok()
    assert "can run" in result.out
    broken(demo)
    result = demo.run("doctor").assert_exit(1)
    assert "help: did you mean" in result.out
    assert "skills/local/demo/greet/skill.yaml:14:19" in result.out


def test_the_doctor_sees_an_unwritable_runs_directory(demo: Any) -> None:
    checks = demo.run("doctor", "--runs-dir", "/dev/null/x", "--json").assert_exit(1).json["checks"]
    assert [check["status"] for check in checks if check["name"] == "runs directory"] == ["error"]
