"""When bindings are held against documents, and when a kept verdict does."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cogcli.base.api_documents import loader
from cogcli.base.problems import Problem
from cogcli.base.schema.engine_choice import PYTHON, RUST
from cogcli.protocols import PROTOCOLS
from cogcli.specs.cache import CompiledCache
from cogcli.specs.checks import check
from cogcli.specs.layers import Layer
from cogcli.specs.registry import Registry
from cogcli.specs.selection import SelectionOptions

INVALID = Path(__file__).parents[2] / "specs" / "invalid"
SKILL = """
id: t.s
version: "1.0.0"
name: Test
description: For tests.
inputs: {text: {type: string, required: true}}
outputs: {id: {type: string}}
steps:
  - {id: add, uses: note.item.add, input: {text: inputs.text}, output: {id: outputs.id}}
"""
TOKEN = {"NOTES_TOKEN": "long-enough-token"}


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    root = tmp_path / "notes"
    shutil.copytree(INVALID / "wire-openapi", root)
    return root


class JudgedCandidate:
    """Checks a registry with a cache; counts how often a document was opened."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.opened = 0
        self._root = root
        real = loader._parse_cached

        def counted(identity: loader.Identity, parse: Callable[[dict[str, Any]], Any]) -> object:
            self.opened += 1
            return real(identity, parse)

        monkeypatch.setattr(loader, "_parse_cached", counted)

    def everything(self) -> list[Problem]:
        self.opened = 0
        cache = CompiledCache(str(self._root / "specs.db"))
        registry = Registry(
            [Layer("case", str(self._root), True)],
            cache=cache,
            protocols=PROTOCOLS,
            base=str(self._root),
        )
        found = check(registry.everything(), options=SelectionOptions(environ=TOKEN))
        cache.close()
        return found


@pytest.fixture
def judged(notes: Path, monkeypatch: pytest.MonkeyPatch) -> JudgedCandidate:
    return JudgedCandidate(notes, monkeypatch)


def test_a_kept_verdict_says_the_same_and_opens_no_document(judged: JudgedCandidate) -> None:
    first = judged.everything()
    assert judged.opened > 0
    assert judged.everything() == first
    assert judged.opened == 0
    assert {p.code for p in first} >= {"wire.type", "wire.parameter", "wire.security"}


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("docs/notes.yaml", "operationId: getNote", "operationId: getNotes"),
        ("bindings/local/note.item.read/c.yaml", "operation: getNotes", "operation: getNote"),
        (
            "capabilities/note.item.add.yaml",
            "stars: {type: integer}",
            "stars: {type: integer, required: true}",
        ),
        ("services/local/notes.yaml", 'api"}', 'api", auth_ref: NOTES_TOKEN}'),
    ],
)
def test_a_change_of_anything_it_depends_on_is_a_new_verdict(
    judged: JudgedCandidate, notes: Path, file: str, old: str, new: str
) -> None:
    before = judged.everything()
    text = (notes / file).read_text()
    assert old in text
    (notes / file).write_text(text.replace(old, new))
    after = judged.everything()
    assert judged.opened > 0
    assert {(p.file, p.code, p.message) for p in before} != {
        (p.file, p.code, p.message) for p in after
    }


def test_of_one_skill_only_the_chosen_binding_is_judged(notes: Path) -> None:
    skill = notes / "skills/local/t/s/skill.yaml"
    skill.parent.mkdir(parents=True)
    skill.write_text(SKILL.lstrip())
    catalog = Registry(
        [Layer("case", str(notes), True)], protocols=PROTOCOLS, base=str(notes)
    ).reach("t.s")
    options = SelectionOptions({"note.item.add": "add_drop"}, environ=TOKEN)
    files = {p.file for p in check(catalog, options=options) if p.code.startswith("wire.")}
    assert files == {"bindings/local/note.item.add/d.yaml"}


@pytest.mark.parametrize(
    "case", ["wire-openapi", "wire-openrpc", "wire-mcp", "wire-python", "wire-document"]
)
def test_without_the_fast_engine_the_same_errors_are_found(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {}
    for name in (PYTHON, RUST):
        monkeypatch.setenv("COGCLI_SCHEMA_ENGINE", name)
        registry = Registry(
            [Layer("case", str(INVALID / case), True)],
            protocols=PROTOCOLS,
            base=str(INVALID / case),
        )
        problems = check(registry.everything(), options=SelectionOptions(environ=TOKEN))
        found[name] = {(p.file, p.line, p.code) for p in problems if p.severity != "W"}
    # That two objects never fit takes a proof, which only the fast engine gives.
    proved = (
        {("bindings/local/note.item.add/b.yaml", 7, "wire.type")}
        if case == "wire-openapi"
        else set()
    )
    assert found[PYTHON] == found[RUST] - proved
