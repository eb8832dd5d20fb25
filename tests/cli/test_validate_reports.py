"""`validate` for people and CI: formats, reports beside the answer, stdin (docs/reference/command-line.md#reports)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import jsonschema
import pytest

pytestmark = pytest.mark.sampled(8)

SCHEMA = json.loads((Path(__file__).parents[1] / "schemas/sarif-required.schema.json").read_text())
GREET = "skills/local/demo/greet/skill.yaml"


def broken(demo: Any) -> str:
    """The text of a skill with an error at 14:19."""
    file = demo.root / GREET
    text: str = file.read_text().replace("input: {text: vars.text}", "input: {text: vars.txet}")
    file.write_text(text)
    return text


def test_reports_stand_beside_an_unchanged_answer(demo: Any) -> None:
    broken(demo)
    plain = demo.run("validate", "skills").assert_exit(1).out
    flags = ("junit:j.xml", "sarif:s.sarif", "json:e.json", "md:m.md")
    result = demo.run(
        "validate", "skills", *(word for flag in flags for word in ("--report", flag))
    ).assert_exit(1)
    assert result.out.rpartition("Checked")[0] == plain.rpartition("Checked")[0]
    root = ET.parse(demo.root / "j.xml").getroot()
    names = {case.get("name"): case for case in root.iter("testcase")}
    assert {name for name, case in names.items() if case.find("failure") is not None} == {GREET}
    assert len(names) == 2
    assert names[GREET].find("failure").get("type") == "ref.unwritten"  # type: ignore[union-attr]
    document = json.loads((demo.root / "s.sarif").read_text())
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    first = next(r for r in document["runs"][0]["results"] if r["level"] == "error")
    place = first["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == GREET
    assert place["region"] == {"startLine": 14, "startColumn": 19, "endColumn": 28}
    envelope = json.loads((demo.root / "e.json").read_text())
    assert (envelope["command"], envelope["exit_code"], envelope["error"]["line"]) == (
        "validate",
        1,
        14,
    )
    assert f"{GREET}:14:19" in (demo.root / "m.md").read_text()


def test_the_json_report_is_the_envelope_of_json(demo: Any) -> None:
    broken(demo)
    on_stdout = demo.run("validate", "--json", "--report", "json:e.json").assert_exit(1).out
    assert (demo.root / "e.json").read_text() == on_stdout


def test_a_warning_fails_its_case_only_with_strict(demo: Any) -> None:
    def failed(*flags: str) -> list[str | None]:
        demo.run("validate", "services", "--report", "junit:j.xml", *flags)
        root = ET.parse(demo.root / "j.xml").getroot()
        return [failure.get("type") for failure in root.iter("failure")]

    demo.write("services/local/idle.yml", "id: idle\nkind: pythoncall\nmodule: demo_services\n")
    demo.write(
        "services/local/keyed.yaml",
        "id: keyed\nkind: openapi\nbase_url: http://h\nauth_ref: env:NO_KEY\n",
    )
    assert failed() == []
    assert "env.missing" in (demo.root / "j.xml").read_text()
    assert "env.missing" not in failed("--strict")
    assert "env.missing" in failed("--ready")


@pytest.mark.sampled(16)
def test_annotations_go_to_stderr_as_a_report_and_to_stdout_as_a_format(demo: Any) -> None:
    broken(demo)
    as_report = demo.run("validate", "--report", "github").assert_exit(1)
    as_format = demo.run("validate", "--format", "github").assert_exit(1)
    assert "::error title=cogcli (ref.unwritten),file=" in as_report.err
    assert "::" not in as_report.out
    assert as_format.out == as_report.err
    assert f"file={GREET},line=14,col=19,endColumn=28::step `second`" in as_format.out


@pytest.mark.sampled(16)
def test_jsonl_gives_an_object_a_line(demo: Any) -> None:
    broken(demo)
    lines = demo.run("validate", "skills", "--format", "jsonl").assert_exit(1).out.splitlines()
    found = [json.loads(line) for line in lines]
    assert ("ref.unwritten", 14, 19) in [(p["code"], p["line"], p["column"]) for p in found]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("jnuit:x.xml", "did you mean `junit`?"),
        ("junit", "expected junit:PATH"),
        ("junit:", "expected junit:PATH"),
        ("github:x", "expected github, without a path"),
        ("md:nowhere/m.md", "there is no directory `nowhere`"),
        ("md:skills", "is not a regular file"),
    ],
)
def test_a_report_that_cannot_be_written_is_refused_before_any_work(
    demo: Any, value: str, said: str
) -> None:
    result = demo.run("validate", "--report", value).assert_exit(2)
    assert result.out == ""
    assert "error[usage.value]" in result.err
    assert said in result.err


def test_two_reports_to_one_file_are_refused(demo: Any) -> None:
    result = demo.run("validate", "--report", "md:x", "--report", "junit:./x").assert_exit(2)
    assert "two reports" in result.err


def test_a_link_is_not_replaced_by_a_report(demo: Any) -> None:
    (demo.root / "link").symlink_to("target")
    demo.run("validate", "--report", "md:link").assert_exit(2)
    assert (demo.root / "link").is_symlink()


def test_stdin_stands_for_the_file_it_names(demo: Any) -> None:
    text = (demo.root / GREET).read_text()
    wrong = "\n\n" + text.replace("input: {text: vars.text}", "input: {text: vars.txet}")
    result = demo.run("validate", "-", "--stdin-filename", GREET, input=wrong).assert_exit(1)
    assert f"--> {GREET}:16:19" in result.out
    assert "16 |     input: {text: vars.txet}" in result.out
    assert result.out.splitlines()[-2].startswith("Checked 1 skill, 0 capabilities")
    demo.run("validate", "-", "--stdin-filename", GREET, input=text).assert_ok()
    demo.run("validate", GREET).assert_ok()


def test_stdin_without_a_name_is_judged_by_its_keys(demo: Any) -> None:
    text = (
        (demo.root / "capabilities/demo.text.upper.yaml")
        .read_text()
        .replace("type: string", "type: strnig")
    )
    result = demo.run("validate", "-", "--format", "concise", input=text).assert_exit(1)
    assert result.out.startswith("<stdin>:")
    assert "error[value.choice]" in result.out


def test_stdin_of_a_new_file_is_checked_against_the_registry(demo: Any) -> None:
    text = (
        (demo.root / GREET)
        .read_text()
        .replace("demo.greet", "demo.hello")
        .replace("demo.text.upper", "demo.text.uper")
    )
    name = "skills/local/demo/hello/skill.yaml"
    result = demo.run(
        "validate", "-", "--stdin-filename", name, "--format", "concise", input=text
    ).assert_exit(1)
    assert "did you mean `demo.text.upper`" in result.out


def test_too_much_on_stdin_is_a_problem_like_in_a_file(demo: Any) -> None:
    result = demo.run(
        "validate", "-", "--stdin-filename", "a.yaml", input="x: " + "y" * 300_000
    ).assert_exit(1)
    assert "error[yaml.size]" in result.out


def test_a_name_without_stdin_and_stdin_twice_are_usage_errors(demo: Any) -> None:
    demo.run("validate", "--stdin-filename", "a.yaml").assert_exit(2)
    demo.run("validate", "-", "-").assert_exit(2)


def test_the_step_summary_is_appended(demo: Any, tmp_path: Path) -> None:
    broken(demo)
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    demo.run("validate", env={"GITHUB_STEP_SUMMARY": str(summary)}).assert_exit(1)
    text = summary.read_text()
    assert text.startswith("before\n# cogcli validate\n\n")
    assert "| error | `ref.unwritten` |" in text
