"""`validate` and `doctor` through the command."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree as ET


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


def test_doctor_writes_the_reports_of_every_check(demo: Any) -> None:
    flags = [word for kind in ("junit:j.xml", "md:m.md", "json:e.json") for word in ("--report", kind)]
    answer = demo.run(
        "doctor", "--runs-dir", "/dev/null/x", "--json", *flags, "--report", "github"
    ).assert_exit(1)
    cases = list(ET.parse(demo.root / "j.xml").getroot().iter("testcase"))
    by_name = {(case.get("classname"), case.get("name")): case for case in cases}
    assert len(cases) == len(answer.json["checks"])
    failure = by_name["doctor project", "runs directory"].find("failure")
    assert failure is not None
    assert failure.get("type") == "doctor.found"
    assert "| error | project | runs directory |" in (demo.root / "m.md").read_text()
    assert (demo.root / "e.json").read_text() == answer.out
    assert "::error title=cogcli (doctor.found)::runs directory" in answer.err


def test_a_warning_of_doctor_fails_its_case_only_with_strict(demo: Any) -> None:
    for flags, code in (((), 0), (("--strict",), 1)):
        demo.run("doctor", "--report", "junit:j.xml", *flags).assert_exit(code)
        root = ET.parse(demo.root / "j.xml").getroot()
        assert bool(list(root.iter("failure"))) == bool(code)
        assert "runs inside this process" in (demo.root / "j.xml").read_text()
