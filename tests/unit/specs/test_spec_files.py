"""Every directory in tests/specs/invalid is a small registry with the problems it must give beside it, every file in
tests/specs/valid a spec without any. Both stand on the registry in tests/specs/base."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cogcli.base.problems import Problem
from cogcli.protocols import PROTOCOLS
from cogcli.specs.checks import check
from cogcli.specs.layers import Layer
from cogcli.specs.registry import Registry
from cogcli.specs.selection import SelectionOptions

SPECS = Path(__file__).parents[2] / "specs"
BASE = Layer("base", str(SPECS / "base"), True)
CASES = sorted(path for path in (SPECS / "invalid").iterdir() if path.is_dir())
VALID = sorted((SPECS / "valid").glob("*.yaml"))


def problems_of(case: Path) -> list[Problem]:
    layers = [BASE, Layer("case", str(case), True)]
    if (case / "later").is_dir():
        layers.append(Layer("later", str(case / "later"), True))
    if (case / ".agent-skills").is_dir():
        layers.append(Layer("host", str(case / ".agent-skills"), True, host=True))
    environ = case / "environ.json"
    given = json.loads(environ.read_text()) if environ.exists() else {}
    found = check(
        Registry(layers, protocols=PROTOCOLS, base=str(case)).everything(),
        options=SelectionOptions(environ=given),
    )
    return [problem for problem in found if not problem.file.startswith("/")]


@pytest.mark.sampled(6)
@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_invalid_specs_give_exactly_the_expected_problems(case: Path) -> None:
    lines = [f"{p.file}:{p.line}:{p.column} {p.severity} {p.code}" for p in problems_of(case)]
    assert lines == (case / "expected.txt").read_text().splitlines()


@pytest.mark.sampled(6)
@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_problem_names_its_subject_in_one_line(case: Path) -> None:
    for problem in problems_of(case):
        assert problem.message
        assert "\n" not in problem.message
        assert not problem.hint or all(problem.hint.split("\n"))
        assert "\n" not in problem.summary_line


def test_the_base_registry_has_no_problems() -> None:
    assert check(Registry([BASE], protocols=PROTOCOLS, base=BASE.root).everything()) == []


@pytest.mark.parametrize("file", VALID, ids=lambda file: file.name)
def test_valid_specs_give_no_problems(file: Path) -> None:
    catalog = Registry([BASE], protocols=PROTOCOLS, base=str(SPECS)).files([str(file)])
    assert check(catalog) == []


def checked(kind: str, text: str) -> list[Problem]:
    from cogcli.base.yaml.reader import parse
    from cogcli.specs.shapes import check_file

    parsed = parse(text.encode(), file="x.yaml")
    assert parsed.value is not None
    return check_file(kind, parsed.value, parsed.places, "x.yaml", PROTOCOLS).problems


@pytest.mark.parametrize("key", ["auth_ref", "base_url"])
def test_a_secret_in_the_wrong_place_is_not_repeated(key: str) -> None:
    text = "id: x\nkind: openapi\nspec_ref: a.json\n" + f"{key}: 'me:sentinel-4711@'\n"
    (problem,) = checked("service", text)
    assert problem.code in ("secret.literal", "service.url")
    assert "sentinel" not in problem.summary_line
    assert "auth_ref" in problem.summary_line


def test_a_variable_without_braces_and_a_word_in_another_case_are_told_as_meant() -> None:
    service = "id: x\nkind: openapi\nbase_url: https://a.example\nmetadata: {headers: {X-A: $A_KEY, X-B: ${B}}}\n"
    (bare,) = checked("service", service.replace("${B}", '"${B}"'))
    assert (bare.severity, bare.code, bare.hint) == (
        "W",
        "value.range",
        "write ${A_KEY} for the variable",
    )
    binding = (
        "id: b\ncapability: a.b\nservice: x\nprotocol: openapi\noperation: a\nrequest: {}\nresponse: {}\n"
        "metadata: {method: get}\n"
    )
    (method,) = checked("binding", binding)
    assert (method.code, method.hint) == ("value.choice", "write GET")


def test_a_document_among_services_is_told_as_one() -> None:
    (problem,) = checked("service", "openapi: 3.1.0\npaths: {}\n")
    assert "found a document of `openapi`" in problem.message
    assert "spec_ref: docs/notes.yaml" in problem.hint
