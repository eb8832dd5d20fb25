"""`validate` and `doctor` through the command."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from support.project import COGCLI, Project

pytestmark = pytest.mark.sampled(12)


def broken(demo: Any) -> None:
    skill = demo.root / "skills/local/demo/greet/skill.yaml"
    skill.write_text(
        skill.read_text().replace("input: {text: vars.text}", "input: {text: vars.txet}")
    )


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


def test_what_this_machine_lacks_fails_only_with_ready(demo: Any) -> None:
    demo.write(
        "services/local/keyed.yaml",
        "id: keyed\nkind: openapi\nbase_url: https://h.example\nauth_ref: env:NO_KEY\n",
    )
    file = "services/local/keyed.yaml"
    shown = demo.run("validate", file, "--strict").assert_ok().out
    assert "warning[env.missing]" in shown
    assert "env.missing" in demo.run("validate", file, "--ready").assert_exit(1).out
    demo.run("validate", file, "--ready", env={**demo.env, "NO_KEY": "x"}).assert_ok()
    assert "NO_KEY" in demo.run("doctor", "--strict").assert_exit(1).out


def test_annotations_have_paths_from_the_root_of_the_repository(demo: Any) -> None:
    broken(demo)
    inner = demo.root / "deep/project"
    inner.mkdir(parents=True)
    for name in [each.name for each in demo.root.iterdir() if each.name != "deep"]:
        (demo.root / name).rename(inner / name)
    (demo.root / ".git").mkdir()
    place = "deep/project/skills/local/demo/greet/skill.yaml"
    result = demo.run(
        "-C", "deep/project", "validate", "--format", "github", "--report", "sarif:found.sarif"
    )
    assert f",file={place},line=14," in result.assert_exit(1).out
    (sarif,) = demo.root.rglob("found.sarif")
    assert f'"uri": "{place}"' in sarif.read_text()


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
    flags = [
        word for kind in ("junit:j.xml", "md:m.md", "json:e.json") for word in ("--report", kind)
    ]
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


def misspelled(demo: Any) -> Any:
    """A skill of the project with two problems that have one right answer, and one that has none."""
    skill = demo.root / "skills/local/demo/greet/skill.yaml"
    text = skill.read_text()
    broken(demo)
    wrong = (
        skill.read_text()
        .replace("description:", "desciption:")
        .replace("\nid:", "\n# Greets.\nid:")
    )
    skill.write_text(wrong.replace('version: "1.0.0"', "version: 1.0  # soon", 1))
    assert skill.read_text() != text
    return skill


def test_what_has_one_right_answer_is_marked_and_counted(demo: Any) -> None:
    skill = misspelled(demo)
    before = skill.read_bytes()
    result = demo.run("validate", "skills").assert_exit(1)
    assert result.out.count("   (fixable)\n") == 2
    assert "in your files, 2 fixable with --fix; shipped: none.   Why? cogcli explain" in result.out
    told = demo.run("validate", "skills", "--json").json["problems"]
    assert {p["code"] for p in told if p["fixable"]} == {"key.unknown", "value.type"}
    assert skill.read_bytes() == before


def test_fix_answers_these_keeps_comments_and_tells_what_is_left(demo: Any) -> None:
    skill = misspelled(demo)
    wrong = skill.read_text()
    wrong = wrong.replace("vars.txet", "vars.qqqqq")
    skill.write_text(wrong)
    result = demo.run("validate", "skills", "--fix").assert_exit(1)
    right = wrong.replace("desciption:", "description:").replace(
        "version: 1.0  # soon", 'version: "1.0"  # soon'
    )
    assert skill.read_text() == right
    assert '-version: 1.0  # soon\n+version: "1.0"  # soon\n' in result.err
    assert "fixed 2 problems in 1 file" in result.err
    assert "(fixable)" not in result.out
    assert "ref.unwritten" in result.out
    skill.write_text(right.replace("vars.qqqqq", "vars.text"))
    demo.run("validate", "skills", "--fix").assert_ok()
    assert skill.read_text() == right.replace("vars.qqqqq", "vars.text")
    body = demo.run("validate", "skills", "--fix", "--json").json
    assert "fixed" not in body


def test_fix_answers_what_shows_only_once_a_file_can_be_read(demo: Any) -> None:
    skill = misspelled(demo)
    demo.run("validate", "skills", "--fix").assert_ok()
    assert "vars.txet" not in skill.read_text()


def test_fix_touches_nothing_outside_the_project(demo: Any, tmp_path: Any) -> None:
    skill = misspelled(demo)
    outside = tmp_path / "outside.yaml"
    outside.write_bytes(skill.read_bytes())
    skill.unlink()
    skill.symlink_to(outside)
    before = outside.read_bytes()
    assert "fixable" not in demo.run("validate", "skills", "--fix").out
    root = tmp_path / "registry/capabilities"
    root.mkdir(parents=True)
    other = root / "a.b.yaml"
    other.write_text("id: a.b\nversion: 1.0\ndescription: d\ninputs: {}\noutputs: {}\n")
    demo.run("validate", "--registry", str(tmp_path / "registry"), str(other), "--fix").assert_exit(
        1
    )
    assert (outside.read_bytes(), other.read_text().split("\n")[1]) == (before, "version: 1.0")
    assert "usage.flag" in demo.run("validate", "-", "--fix").assert_exit(2).err


def test_problems_of_shipped_files_come_last_and_are_counted_apart(
    demo: Any, tmp_path: Any, monkeypatch: Any
) -> None:
    """The shipped registry is without problems: another one stands for it."""
    from cogcli.app.checks.registry_check import CheckRequirements, check_registry
    from cogcli.app.checks.reports import RENDERERS, registry_report
    from cogcli.app.settings import Settings

    shipped = tmp_path / "shipped/capabilities/a.a.yaml"
    shipped.parent.mkdir(parents=True)
    shipped.write_text('id: a.a\nversion: "1"\ndescription: d\ninputs: {}\noutputs: {}\nx: 1\n')
    misspelled(demo)
    for room in ("cogcli.specs.layers", "cogcli.app.checks.registry_check"):
        monkeypatch.setattr(f"{room}.builtin_root", lambda: str(tmp_path / "shipped"))
    checked = check_registry(Settings({}, demo.env, base=str(demo.root)))
    files = [problem.file for problem in checked.problems]
    assert set(checked.shipped) & set(files) == {str(shipped)}
    assert files.index(str(shipped)) == next(
        n for n, file in enumerate(files) if file in checked.shipped
    )
    assert list(checked.files)[-1] == str(shipped)
    report = registry_report(checked, CheckRequirements(), end_of=lambda *_: 0)
    assert report.summary.endswith("in your files; shipped: 1 error, 0 warnings.")
    suites = [suite.get("name") for suite in ET.fromstring(RENDERERS["junit"](report))]
    assert "shipped capabilities" in suites[-1:]
    assert "| severity | code | shipped file | problem |" in RENDERERS["md"](report)
    results = json.loads(RENDERERS["sarif"](report))["runs"][0]["results"]
    assert [result.get("properties") for result in results[-1:]] == [{"tags": ["shipped"]}]
    assert "properties" not in results[0]


@pytest.mark.slow
def test_watch_checks_again_after_each_change_until_ctrl_c(demo: Any) -> None:
    words = [COGCLI, "validate", "skills", "--watch", "--format", "concise"]
    with subprocess.Popen(
        words,
        cwd=demo.root,
        env=demo.env,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        try:
            lines = iter(process.stdout or ())

            def next_check() -> str:
                return "".join(
                    itertools.takewhile(lambda line: line != "watching; Ctrl-C ends\n", lines)
                )

            def check_that_finds(text: str) -> None:
                # One change may be seen in two checks: the file is empty before it is written.
                checks = (next_check() for _ in range(10))
                assert any(text in check for check in checks)

            assert "error" not in next_check()
            broken(demo)
            check_that_finds("error[ref.unwritten]")
            demo.write("cogcli.toml", "nonsense = 1\n")
            check_that_finds("config.key")
            demo.write("cogcli.toml", "")
            check_that_finds("error[ref.unwritten]")
            process.send_signal(signal.SIGINT)
            assert "\x1b" not in "".join(lines)
            assert process.wait() == 130
        finally:
            process.kill()


def test_watch_is_for_a_person(demo: Any) -> None:
    for words in (("--json",), ("--report", "github"), ("-",)):
        assert "usage.flag" in str(demo.run("validate", "--watch", *words).assert_exit(2).err)


def test_doctor_fix_tells_then_does_what_is_safe_and_checks_again(demo: Any) -> None:
    (demo.root / ".git").mkdir()
    demo.write(".gitignore", b"*.tmp")
    demo.write(".cogcli/schemas/skill.schema.json", "{}")
    names = ("git", "schemas for editors")

    def statuses(*flags: str) -> dict[str, str]:
        checks = demo.run("doctor", "--json", *flags).json["checks"]
        return {check["name"]: check["status"] for check in checks if check["name"] in names}

    assert statuses() == dict.fromkeys(names, "warning")
    assert (demo.root / ".gitignore").read_bytes() == b"*.tmp"
    assert demo.run("doctor").out.count("fix: cogcli doctor --fix") == 2
    done = demo.run("doctor", "--fix")
    assert "fix: add .cogcli/ to .gitignore\nfix: write .cogcli/schemas again\n" in done.err
    assert (demo.root / ".gitignore").read_bytes() == b"*.tmp\n.cogcli/\n"
    assert "demo.greet" in (demo.root / ".cogcli/schemas/skill.schema.json").read_text()
    assert statuses("--fix") == dict.fromkeys(names, "ok")
    assert demo.run("doctor", "--fix", "--json").json["fixed"] == []


def test_doctor_fix_follows_no_link_out_of_the_project(demo: Any, tmp_path: Any) -> None:
    (demo.root / ".git").mkdir()
    outside = tmp_path / "ignored"
    outside.write_text("")
    (demo.root / ".gitignore").symlink_to(outside)
    assert "env.disk" in demo.run("doctor", "--fix").assert_exit(3).err
    assert outside.read_text() == ""


@pytest.mark.sampled(24)
def test_doctor_says_whether_the_episodes_key_can_be_used(project: Project) -> None:
    def row() -> dict[str, Any]:
        checks = project.run("doctor", "--json").json["checks"]
        return next(check for check in checks if check["name"] == "episodes key")

    project.demo()
    assert (row()["status"], row()["message"]) == ("ok", "none yet: the first run makes it")
    project.run("run", "demo.greet", "-p", "text=a").assert_ok()
    path = project.home / ".config/cogcli/episodes.key"
    assert (row()["status"], row()["message"]) == ("ok", str(path))
    path.chmod(0o644)
    assert (row()["status"], row()["fix"]) == ("warning", f"chmod 600 {path}")
    path.chmod(0o600)
    path.write_text("no key")
    assert row()["status"] == "warning"
    assert row()["fix"] == f"rm {path}"
