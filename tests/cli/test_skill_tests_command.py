"""`cogcli test` at the command line: screen, envelope, reports, exit codes; its lines that run."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from support.project import Project

pytestmark = pytest.mark.sampled(8)

GOOD = "inputs: {text: hi}\nexpect: {outputs: {text: HI}}\n"
BAD = "inputs: {text: hi}\nexpect:\n  outputs: {text: hi}\n  steps: {second: skipped}\n"


@pytest.fixture
def cases(demo: Project, tmp_path: Path) -> Project:
    """The demo skills with a case that passes and one that fails; runs are kept in the directory of the test."""
    demo.env["TMPDIR"] = str(tmp_path)
    demo.write("skills/local/demo/greet/tests/good.yaml", GOOD)
    demo.write("skills/local/demo/greet/tests/bad.yaml", BAD)
    return demo


def test_a_failure_is_told_with_lines_that_run(cases: Project) -> None:
    done = cases.run("test", "demo.greet").assert_exit(1)
    assert "2 cases · 1 skill · 4 at a time" in done.out
    assert "✗ outputs.text" in done.out or "FAIL outputs.text" in done.out
    assert 'expected "hi", found "HI"' in done.out
    lines = {
        words[0]: words[1:]
        for line in done.out.splitlines()
        if (words := shlex.split(line)) and len(words) > 1
    }
    assert lines["case"] == ["skills/local/demo/greet/tests/bad.yaml:3:19"]
    again = cases.run(*lines["re-run"][1:]).assert_exit(1)
    assert "1 failed" in again.out
    assert "good" not in again.out
    assert (
        cases.run(*lines["look"][1:], "--json").assert_ok().json["trace"]["skill"] == "demo.greet"
    )


def test_envelope_reports_and_exit_codes(cases: Project) -> None:
    done = cases.run(
        "test",
        "--json",
        "--coverage",
        "--report",
        "junit:t.xml",
        "--report",
        "md:t.md",
        "--report",
        "json:t.json",
    )
    envelope = done.assert_exit(1).json
    assert (envelope["exit_code"], envelope["error"]["code"]) == (1, "test.failed")
    assert [(one["id"], one["status"]) for one in envelope["tests"]] == [
        ("demo.greet/bad", "failed"),
        ("demo.greet/good", "passed"),
    ]
    assert envelope["coverage"][0]["steps"] == {"total": 2, "ran": 2, "missing": []}
    suites = ET.parse(cases.root / "t.xml").getroot()
    assert (suites.get("tests"), suites.get("failures")) == ("5", "2")
    assert "| demo.greet | 2/2 | 0/0 | 0/0 |" in (cases.root / "t.md").read_text()
    assert json.loads((cases.root / "t.json").read_text())["tests"] == envelope["tests"]
    assert cases.run("test", "demo.greet/good", "-q").assert_ok()
    cases.write("skills/local/demo/greet/tests/odd.yaml", "inputs: {}\nexpekt: {}\n")
    unread = cases.run("test").assert_exit(3)
    assert "skills/local/demo/greet/tests/odd.yaml:2:1" in unread.out
    assert "did you mean `expect`" in unread.out
    assert "1 passed, 1 failed" in unread.out
    assert cases.run("test", "--json").json["error"]["code"] == "key.unknown"
    assert cases.run("test", "demo.review").assert_exit(2)


def test_a_secret_in_a_case_is_not_shown(cases: Project) -> None:
    secret = "hunter2-hunter2"
    cases.write(
        "skills/local/demo/greet/tests/bad.yaml",
        f"inputs: {{text: hi}}\nexpect: {{outputs: {{token: {secret}}}, exit_code: 1}}\n",
    )
    done = cases.run("test", "demo.greet/bad", "-v").assert_exit(1)
    assert secret not in done.out + done.err
    envelope: Any = cases.run("test", "demo.greet/bad", "--json").out
    assert secret not in envelope


def test_a_project_without_cases_checks_nothing_and_the_help_says_how_to_make_one(
    demo: Project,
) -> None:
    done = demo.run("test").assert_exit(3)
    assert (
        "help  they are in the folder `tests` next to a skill; `cogcli test --record EP` makes one"
        in done.err
    )
    assert "0 passed" in done.out


def test_an_episode_becomes_a_case_and_new_outputs_are_accepted(cases: Project) -> None:
    cases.run("run", "demo.greet", "-p", "text=ho").assert_ok()
    cases.run("schema", "--all", "-o", ".cogcli/schemas").assert_ok()
    made = cases.run("test", "--record", "@last", "--json").assert_ok().json["created"]
    assert made[0].startswith("skills/local/demo/greet/tests/ep_")
    assert cases.run("test", made[0]).assert_ok()
    first = (cases.root / made[0]).read_text().partition("\n")[0]
    assert first == f"# yaml-language-server: $schema={'../' * 5}.cogcli/schemas/case.schema.json"
    assert ((cases.root / made[0]).parent / first.partition("=")[2]).is_file()
    assert (
        cases.run("test", "--record", "@last").assert_exit(2).err.startswith("error[output.exists]")
    )
    assert cases.run("test", "demo.greet", "--record", "@last").assert_exit(2)
    done = cases.run("test", "demo.greet/bad", "--update").assert_exit(1)
    assert "-  outputs: {text: hi}\n+  outputs: {text: HI}\n" in done.out
    assert "✗ step second" in done.out
    assert "text: HI" in (cases.root / "skills/local/demo/greet/tests/bad.yaml").read_text()
