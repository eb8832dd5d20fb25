"""The right skill comes first for questions in users' words (docs/reference/command-line.md#search)."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

from cogcli.app.inventory.kinds import KINDS, InventoryView, whole_view
from cogcli.app.inventory.skill import skill_row, texts_of_skill
from cogcli.app.settings import Settings
from cogcli.specs.word_search import search

pytestmark = pytest.mark.sampled(4)

ROOT = Path(__file__).parents[2]
QUESTIONS = [
    json.loads(line)
    for line in (Path(__file__).parent / "search_questions.jsonl").read_text().splitlines()
]


@cache
def registry() -> InventoryView:
    return whole_view(
        Settings({}, {"HOME": "/nonexistent", "COGCLI_TRUST_PROJECT": "1"}, base=str(ROOT))
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize("asked", QUESTIONS, ids=lambda asked: asked["skill"])
def test_the_right_skill_comes_first(asked: dict[str, str]) -> None:
    skills = registry().catalog.skills
    if asked["skill"] not in skills:
        pytest.skip("there is no such skill yet")
    texts = {id: texts_of_skill(skill_row(skill), skill) for id, skill in skills.items()}
    assert search([asked["question"]], texts).keys[0] == asked["skill"]


def test_there_are_forty_questions() -> None:
    assert len({asked["skill"] for asked in QUESTIONS}) >= 40


@pytest.mark.parametrize("name", KINDS)
def test_each_spec_is_found_by_its_id(name: str) -> None:
    view, kind = registry(), KINDS[name]
    specs = getattr(view.catalog, name)
    texts = {id: kind.texts(kind.row(view, spec), spec) for id, spec in specs.items()}
    ids = sorted(specs)[:: max(1, len(specs) // 20)]
    assert [search([id], texts).keys[0] for id in ids] == ids
