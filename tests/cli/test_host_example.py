"""`.agent-skills.example/` is complete, valid where it stands, and decides where it is copied to."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from cogcli.specs.host_layout import KIND_OF_FILE

EXAMPLE = Path(__file__).resolve().parents[2] / ".agent-skills.example"
TEXT = "text=The harbour opens at six. Ships wait in the bay. Tugs bring them in."


@pytest.fixture
def copied(project: Any) -> Any:
    """A project without anything but the example."""
    project.write("cogcli.toml", "")
    shutil.copytree(EXAMPLE, project.root / ".agent-skills")
    return project


def test_the_example_has_every_file_there_is() -> None:
    files = {path.relative_to(EXAMPLE).parts[0] for path in EXAMPLE.rglob("*")}
    assert files == {*KIND_OF_FILE, "README.md", "bindings", "capabilities"}
    assert {path.name for path in (EXAMPLE / "bindings").iterdir()} == {"local", "candidate"}


def test_the_example_is_valid_where_it_stands(project: Any) -> None:
    result = project.run("validate", "--strict", str(EXAMPLE)).assert_ok()
    assert "1 capability, 3 bindings" in result.out


def test_the_example_decides_where_it_is_copied_to(copied: Any) -> None:
    copied.run("validate", "--strict").assert_ok()
    words = ("run", "text.summarize", "-p", TEXT)
    assert copied.run(*words).assert_ok().json["summary"] == "The harbour opens at six."
    started = json.loads((copied.episode / "events.jsonl").read_text().splitlines()[0])["payload"]
    sources = {id: choice["selection_source"] for id, choice in started["selection"].items()}
    assert sources["text.content.summarize"] == "active"
    assert sources["text.content.check"] == "override"
    copied.run("replay", "@last").assert_ok()


def test_every_choice_of_the_example_is_explained(copied: Any) -> None:
    def explained(capability: str) -> tuple[str, str]:
        body = (
            copied.run("bindings", "explain", capability, "--json").assert_ok().json["explanation"]
        )
        return body["selection_source"], body["primary_binding_id"]

    assert explained("text.content.summarize") == ("active", "host_summarize_brief")
    assert explained("text.readability.score") == ("override", "python_text_readability_score")
    assert explained("text.keyword.extract") == ("override", "python_text_keyword_extract_stems")
    assert explained("house.note.shorten") == ("only", "host_note_shorten")
    copied.run("bindings", "activate", "text.content.summarize", "host_summarize_model").assert_ok()
    assert explained("text.content.summarize") == ("active", "host_summarize_model")
    assert "x-about" in (copied.root / ".agent-skills/active_bindings.json").read_text()
