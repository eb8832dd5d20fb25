"""Logs kept as they were once written, and the documents that they give at any later date.

`COGCLI_UPDATE_GOLDENS=1` writes the documents of foreign logs anew; ours are sealed and never change.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from fakes.logged import is_clean
from support.seed_example import COMPLETE

from cogcli.episode.document_bytes import to_bytes
from cogcli.episode.learn import learn_lines
from cogcli.episode.log_fold import fold_log
from cogcli.episode.log_reader import EventLog
from cogcli.episode.projection import project_bytes
from cogcli.episode.schemas import SCHEMAS
from cogcli.episode.summary import summary_of
from cogcli.episode.verify.check import verify

HERE = Path(__file__).parent
CASES = sorted(folder.name for folder in HERE.iterdir() if (folder / "events.jsonl").exists())
OURS = [case for case in CASES if (HERE / case / "learn.jsonl").exists()]
SEALED = [case for case in OURS if (HERE / case / "manifest.json").exists()]


def projected(case: str) -> bytes:
    return project_bytes(event for _, event in EventLog(HERE / case))


@pytest.mark.parametrize("case", [case for case in CASES if case != "interrupted"])
def test_a_log_gives_its_state_document(case: str) -> None:
    golden = HERE / case / "state.json"
    if "COGCLI_UPDATE_GOLDENS" in os.environ and case not in OURS:
        golden.write_bytes(projected(case))
    assert projected(case) == golden.read_bytes()


@pytest.mark.parametrize("case", SEALED)
def test_a_log_gives_its_summary_and_its_reflection(case: str) -> None:
    account = fold_log(EventLog(HERE / case))
    assert to_bytes(summary_of(account)) == (HERE / case / "summary.json").read_bytes()
    assert learn_lines(account) == (HERE / case / "learn.jsonl").read_bytes()


@pytest.mark.parametrize("case", CASES)
def test_a_kept_episode_verifies(case: str) -> None:
    findings = verify(HERE / case)
    assert is_clean(findings), findings


@pytest.mark.sampled(6)
@pytest.mark.parametrize("case", OURS)
@pytest.mark.parametrize("name", SCHEMAS)
def test_every_artifact_fits_its_schema(case: str, name: str) -> None:
    validator = jsonschema.Draft202012Validator(SCHEMAS[name]())
    for path in (HERE / case).glob(f"{name.partition('-')[0]}.json*"):
        text = path.read_text(encoding="utf-8")
        for document in text.splitlines() if path.suffix == ".jsonl" else [text]:
            validator.validate(json.loads(document))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", ["state", "state-written"])
def test_every_state_document_fits_its_schema(case: str, name: str) -> None:
    jsonschema.Draft202012Validator(SCHEMAS[name]()).validate(json.loads(projected(case)))


def test_the_seeds_complete_example_comes_out_of_its_log() -> None:
    """Every member of the published example stands in the document; the document may hold more."""
    assert holds(json.loads(projected("seed-example")), COMPLETE)


def holds(document: Any, example: Any) -> bool:
    """Whether every member of the example is in the document, lists being equally long."""
    if isinstance(example, dict):
        return all(
            key in document and holds(document[key], value) for key, value in example.items()
        )
    if isinstance(example, list):
        return len(document) == len(example) and all(map(holds, document, example))
    return bool(document == example)
