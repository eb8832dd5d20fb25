"""Logs against the declarations of their events, and the schemas that are written of these."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import sample_episode as sample

from cogcli.declarations.checked import problem_of
from cogcli.episode.layout import CHECKPOINT, FILES
from cogcli.episode.log_reader import EventLog
from cogcli.episode.schemas import SCHEMAS

pytestmark = pytest.mark.sampled(6)

TOOLING = Path(__file__).parents[3] / "tooling"


def test_every_event_of_a_run_fits_its_model(tmp_path: Path) -> None:
    for _, event in EventLog(sample.sealed_episode(tmp_path)):
        assert event.event_type is not None
        assert problem_of(event.event_type, event.payload) is None


@pytest.mark.slow
def test_the_generated_schemas_are_up_to_date() -> None:
    done = subprocess.run([sys.executable, TOOLING / "generate_schemas.py", "--check"], check=False)
    assert done.returncode == 0


OTHER_SCHEMAS = {"batch", "batch-command", "batch-summary", "ledger", "hook"}
"""The schemas of the files of a batch, and of the message of a hook."""


@pytest.mark.slow
def test_schemas_are_for_files_and_but_for_reading_state_refuse_other_keys() -> None:
    import jsonschema

    for name, schema in SCHEMAS.items():
        assert name in OTHER_SCHEMAS or any(
            file.startswith(f"{name.removesuffix('-written')}.") for file in (*FILES, CHECKPOINT)
        )
        jsonschema.Draft202012Validator.check_schema(schema())
        for kind in schema().get("oneOf") or [schema()]:
            assert kind["additionalProperties"] is (name == "state")


def test_the_way_of_a_run_imports_no_model_library(tmp_path: Path) -> None:
    code = (
        "import sys, json, pathlib; sys.path.insert(0, sys.argv[2]); import sample_episode as s;"
        "from cogcli.episode.listing.episode_row import read_row;"
        "d = s.sealed_episode(pathlib.Path(sys.argv[1])); read_row(d);"
        "print(json.dumps([m for m in ('pydantic', 'rich', 'httpx', 'jsonschema', 'ruamel') if m in sys.modules]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path), str(Path(__file__).parent)],
        capture_output=True,
        check=True,
    )
    assert json.loads(done.stdout) == []
