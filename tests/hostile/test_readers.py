"""Hostile bytes never get through a reader as anything but a typed refusal, quickly."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import pytest
from readers import BROKEN_JSON, BROKEN_YAML, JSON, YAML, Case

from cogcli.base.strict_json import InvalidJson, loads
from cogcli.base.yaml.reader import parse, read_file


def name(case: Case) -> str:
    return f"{case.name} {case.what}"


def json_codes(data: bytes) -> frozenset[str]:
    try:
        loads(data)
    except InvalidJson as refused:
        return frozenset({refused.code})
    return frozenset()


def the_standard_parser_reads(data: bytes) -> bool:
    try:
        json.loads(data.decode(), parse_constant=int)
    except ValueError:
        return False
    return True


def yaml_codes(data: bytes) -> frozenset[str]:
    found = parse(data, file="f")
    assert (found.value is None) == bool(found.problems)
    return frozenset(problem.code for problem in found.problems)


@pytest.fixture(params=["c parser", "pure parser"])
def _either_parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "pure parser":
        parse(b"a: 1", file="f")
        monkeypatch.setitem(sys.modules, "ruamel.yaml.cyaml", None)


@pytest.mark.sampled(3)
@pytest.mark.usefixtures("_either_parser")
@pytest.mark.parametrize("case", YAML, ids=name)
def test_the_yaml_reader_refuses_with_the_right_code(case: Case) -> None:
    start = time.thread_time()
    assert yaml_codes(case.data) == case.codes
    assert time.thread_time() - start < 2


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", JSON, ids=name)
def test_the_json_reader_refuses_with_the_right_code(case: Case) -> None:
    start = time.thread_time()
    assert json_codes(case.data) == case.codes
    assert time.thread_time() - start < 2


def test_a_version_without_quotes_is_a_number_so_that_its_type_is_refused() -> None:
    assert parse(b"version: 1.10\n", file="f").value == {"version": 1.1}


def test_a_date_without_quotes_is_text_and_never_a_date() -> None:
    assert parse(b"id: 2026-01-01\n", file="f").value == {"id": "2026-01-01"}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("data", BROKEN_JSON)
def test_json_that_breaks_the_grammar_is_refused(data: bytes) -> None:
    assert not the_standard_parser_reads(data)
    assert json_codes(data) <= {"json.syntax", "json.number", "json.empty", "json.encoding"}
    assert json_codes(data)


@pytest.mark.sampled(4)
@pytest.mark.usefixtures("_either_parser")
@pytest.mark.parametrize("data", BROKEN_JSON)
def test_broken_json_never_crashes_the_yaml_reader(data: bytes) -> None:
    yaml_codes(data)
    yaml_codes(b"a: " + data)


@pytest.mark.sampled(3)
@pytest.mark.usefixtures("_either_parser")
@pytest.mark.parametrize("data", BROKEN_YAML)
def test_broken_yaml_has_no_value(data: bytes) -> None:
    assert yaml_codes(data)


def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), tmp_path):
        assert [problem.code for problem in read_file(path, file="f")[1].problems] == ["yaml.io"]
