"""What is detected in lines that were labelled by somebody who had not seen the code (tests/registry/labelled)."""

from __future__ import annotations

import pytest

from cogcli.app.registry import open_registry
from cogcli.app.settings import Settings
from tooling.labelled import (
    ROOT,
    Score,
    language_scores,
    personal_data_scores,
    questions,
    secret_scores,
    total,
)


def _named(score: Score) -> str:
    return f"{score.split}-{score.kind}"


@pytest.mark.parametrize("score", [*personal_data_scores()], ids=_named)
def test_personal_data_is_found_and_nothing_else(score: Score) -> None:
    assert score.right >= 9, "enough lines to say anything"
    assert (score.precision >= 0.95, score.recall >= 0.90) == (True, True), score


def test_secrets_are_found_and_nothing_else() -> None:
    scores = [*secret_scores()]
    for score in scores:
        assert score.kind == "none" or score.recall >= 0.90, score
    for split in ("tune", "held"):
        assert total(score for score in scores if score.split == split).precision >= 0.95
    assert len({score.kind for score in scores}) == 13


@pytest.mark.sampled(6)
def test_languages_are_told() -> None:
    for score in language_scores():
        assert score.right + score.missed == 100
        assert score.recall >= 0.97, score


def test_questions_of_users_name_skills_that_there_are() -> None:
    skills = open_registry(Settings({}, {}, base=str(ROOT))).everything().skills
    asked = [*questions("tune"), *questions("held")]
    assert not {id for each in asked for id in (each["expected"], *each["accept"])} - set(skills)
