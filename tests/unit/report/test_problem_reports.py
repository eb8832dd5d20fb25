"""Problems as annotations, SARIF, JUnit and Markdown: pure renderings, read back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogcli.base.problems import Problem
from cogcli.report import github
from cogcli.report.check_report import (
    CaseFailure,
    CheckReport,
    ReportCase,
    markdown,
    problems_summary,
    problems_table,
)
from cogcli.report.junit import junit
from cogcli.report.sarif import sarif

SCHEMA = json.loads((Path(__file__).parents[2] / "schemas/sarif-required.schema.json").read_text())
BAD = Problem(
    "ref.unwritten",
    "E",
    "skills/a b/ü.yaml",
    23,
    13,
    "/x",
    "step `a`: 50%,\nno: `vars.x`",
    "mend it",
)
MILD = Problem("vars.unused", "W", "skills/s.yaml", 4, 2, "/y", "never read")
NEEDED = Problem("env.missing", "R", "", 0, 0, "", "variable `K` is not set")
ANY_TEXT = st.text(st.characters(codec=None), max_size=40)


def workflow_commands(problems: list[tuple[Problem, int]]) -> list[str]:
    return github.github(CheckReport("check", 0, problems=tuple(problems))).splitlines()


def table_of(problems: list[Problem], *, limit: int | None = None) -> str:
    tables = (problems_table(problems),) if problems else ()
    report = CheckReport("check", 0, summary=problems_summary(problems), tables=tables)
    return markdown(report, limit=limit).removeprefix("# cogcli check\n\n")


def sarif_of(*problems: Problem) -> dict[str, Any]:
    rules = {"ref.unwritten": ("Nothing writes it.", "Write it first.")}
    found = tuple((problem, 23 if problem.line else 0) for problem in problems)
    document: dict[str, Any] = json.loads(
        sarif(CheckReport("check", 0, problems=found), rules, version="1.2.3")
    )
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    return document


def test_annotations_escape_text_and_properties() -> None:
    (line,) = workflow_commands([(BAD, 23)])
    assert line == (
        "::error title=cogcli (ref.unwritten),file=skills/a b/ü.yaml,line=23,col=13,endColumn=23"
        "::step `a`: 50%25,%0Ano: `vars.x`; mend it"
    )


def test_properties_escape_colons_and_commas() -> None:
    odd = Problem("x.y", "E", "a,b:c\r.yaml", 1, 1, "", "m")
    assert "file=a%2Cb%3Ac%0D.yaml,line=1" in workflow_commands([(odd, 0)])[0]


def test_annotations_stop_at_ten_of_a_kind_and_count_the_rest() -> None:
    lines = workflow_commands([(MILD, 0)] * 12 + [(BAD, 0)] * 47)
    assert [line.split(" ")[0] for line in lines[:20]] == ["::error"] * 10 + ["::warning"] * 10
    assert lines[20:] == ["::notice::and 39 more"]


def test_a_problem_without_a_place_is_annotated_without_one() -> None:
    assert workflow_commands([(NEEDED, 0)]) == [
        "::warning title=cogcli (env.missing)::variable `K` is not set"
    ]


def test_sarif_has_what_code_scanning_needs() -> None:
    (run,) = sarif_of(BAD, MILD, BAD, NEEDED)["runs"]
    assert run["columnKind"] == "unicodeCodePoints"
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == [
        "ref.unwritten",
        "vars.unused",
        "env.missing",
    ]
    first, second, _, last = run["results"]
    assert (first["ruleId"], first["ruleIndex"], first["level"]) == ("ref.unwritten", 0, "error")
    assert (second["ruleIndex"], second["level"], last["level"]) == (1, "warning", "warning")
    place = first["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "skills/a%20b/%C3%BC.yaml", "uriBaseId": "SRCROOT"}
    assert place["region"] == {"startLine": 23, "startColumn": 13, "endColumn": 23}
    assert "locations" not in last


@pytest.mark.parametrize(
    ("file", "uri"),
    [
        ("a:b.yaml", "a%3Ab.yaml"),
        ("/srv/specs/x.yaml", "file:///srv/specs/x.yaml"),
        ("C:\\specs\\x.yaml", "file:///C%3A/specs/x.yaml"),
        ("100%.yaml", "100%25.yaml"),
    ],
)
def test_uris_are_relative_or_name_a_file(file: str, uri: str) -> None:
    result = sarif_of(Problem("x.y", "E", file, 1, 1, "", "m"))["runs"][0]["results"][0]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == uri


@given(ANY_TEXT.filter(bool), ANY_TEXT.filter(bool))
def test_any_text_makes_valid_sarif(file: str, message: str) -> None:
    json.dumps(sarif_of(Problem("x.y", "E", file, 1, 1, "", message))).encode()


def test_no_problem_makes_an_empty_run() -> None:
    assert sarif_of()["runs"][0]["results"] == []


def test_junit_groups_cases_and_counts_them() -> None:
    cases = [
        ReportCase(
            "skills",
            "a.yaml",
            (CaseFailure("ref.unwritten", "m", "t"), CaseFailure("x.y", "n", "u")),
            file="a.yaml",
        ),
        ReportCase("bindings", "b.yaml"),
        ReportCase("skills", "c.yaml", notes=("warned",)),
    ]
    root = ET.fromstring(junit(CheckReport("check", 1.25, tuple(cases))))
    assert root.attrib == {
        "name": "cogcli check",
        "tests": "3",
        "failures": "1",
        "errors": "0",
        "time": "1.250",
    }
    skills, bindings = root
    assert (skills.get("name"), skills.get("tests"), skills.get("failures")) == ("skills", "2", "1")
    assert (bindings.get("tests"), bindings.get("failures")) == ("1", "0")
    failing, warned = skills
    assert [(failure.get("type"), failure.get("message"), failure.text) for failure in failing] == [
        ("ref.unwritten", "m", "t"),
        ("x.y", "n", "u"),
    ]
    assert warned.findtext("system-out") == "warned"


@given(ANY_TEXT, ANY_TEXT)
def test_any_text_makes_wellformed_junit(name: str, text: str) -> None:
    case = ReportCase("s", name, (CaseFailure("x.y", text, text),), (text,))
    document = junit(CheckReport("check", 0, (case,))).encode()
    (failure,) = ET.fromstring(document).iter("failure")
    if text.isascii() and text.isprintable():
        assert failure.get("message") == text


def test_the_table_shows_text_as_it_is() -> None:
    odd = Problem("x.y", "E", "a.yaml", 1, 2, "", "a | b <script> [x](y) *z*")
    table = table_of([odd, MILD])
    assert table.startswith("1 error, 1 warning.\n")
    row = table.splitlines()[4]
    assert row.count("|") == 5
    assert "<" not in row
    assert "](" not in row


def test_the_table_is_cut_and_says_so() -> None:
    assert table_of([MILD] * 120, limit=100).endswith("\n\nand 20 more\n")
    assert table_of([]) == "0 errors, 0 warnings.\n"
