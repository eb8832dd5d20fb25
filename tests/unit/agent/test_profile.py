"""The profile of a user: how a statement changes it, and its limits."""

from __future__ import annotations

from typing import Any

import pytest

from cogcli.agent.bounds import Note
from cogcli.agent.context.inputs import PromotedMemory
from cogcli.agent.profile import (
    MAX_PROFILE_ITEMS,
    Statement,
    UserProfile,
    apply_statement,
    compare,
    fold_profile,
    statement_from,
)
from cogcli.agent.update import CHARACTERS, MAX_ITEMS

ANN = UserProfile("ann")


def test_the_limits_are_these() -> None:
    assert MAX_PROFILE_ITEMS == {
        "preferences": 30, "goals": 10, "expertise_areas": 15, "communication_style": 1, "projects": 10,
        "interests": 15, "constraints": 10, "success_patterns": 5, "failure_patterns": 5,
    }  # fmt: skip
    assert MAX_ITEMS == {
        "messages": 40, "pending_calls": 8, "completed_calls": 20, "notifications": 20, "insights": 10, "facts": 20,
        "thoughts": 5,
    }  # fmt: skip
    assert {name: CHARACTERS[name] for name in ("goal", "strategy", "insight", "thinking")} == {
        "goal": 500, "strategy": 500, "insight": 300, "thinking": 2000,
    }  # fmt: skip


@pytest.mark.parametrize(
    "field", [field for field in MAX_PROFILE_ITEMS if field != "communication_style"]
)
def test_each_field_keeps_its_newest(field: str) -> None:
    profile, notes = ANN, list[Note]()
    for number in range(MAX_PROFILE_ITEMS[field] + 2):
        profile = apply_statement(profile, Statement(field, f"v{number}", f"n{number}"), notes)
    held = getattr(profile, field)
    numbers = range(2, MAX_PROFILE_ITEMS[field] + 2)
    expected = (
        {f"n{n}": f"v{n}" for n in numbers}
        if isinstance(held, dict)
        else tuple(f"v{n}" for n in numbers)
    )
    assert held == expected
    assert {(note["code"], note["what"]) for note in notes} == {("dropped", field)}


def test_a_statement_is_the_newest_of_its_field() -> None:
    profile, notes = ANN, list[Note]()
    for statement in (
        Statement("preferences", "short", "Tone"),
        Statement("preferences", "de", "language"),
        Statement("preferences", "long", " tone "),
        Statement("communication_style", "concise"),
        Statement("communication_style", "detailed"),
        Statement("goals", "Ship it"),
        Statement("goals", "rest"),
        Statement("goals", "ship it "),
    ):
        profile = apply_statement(profile, statement, notes)
    assert list(profile.preferences.items()) == [("language", "de"), ("tone", "long")]
    assert (profile.communication_style, profile.goals) == ("detailed", ("rest", "ship it"))
    assert notes == []


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        (Statement("goals", ""), ""),
        (Statement("projects", "x"), ""),
        (Statement("projects", 1, "a"), "wrong_type"),
        (Statement("goals", 1), "wrong_type"),
        (Statement("communication_style", True), "wrong_type"),
        (Statement("preferences", ["a"], "a"), "wrong_type"),
        (Statement("preferences", None, "a"), "wrong_type"),
    ],
)
def test_what_says_nothing_changes_nothing(statement: Statement, code: str) -> None:
    notes: list[Note] = []
    assert apply_statement(ANN, statement, notes) == ANN
    assert [note["code"] for note in notes] == ([code] if code else [])
    assert all(
        note["what"] == statement.field and "expected text" in note["detail"] for note in notes
    )


def test_a_long_text_is_cut_at_a_word() -> None:
    notes: list[Note] = []
    profile = apply_statement(ANN, Statement("goals", "word " * 99), notes)
    assert len(profile.goals[0]) <= 200
    assert profile.goals[0].endswith(" tokens]")
    assert [(note["code"], note["what"]) for note in notes] == [("cut", "goals")]


@pytest.mark.parametrize(
    ("statement", "candidate"),
    [
        (Statement("goals", "ship"), ("goals.ship", "ship")),
        (Statement("preferences", True, "dark.mode"), ("preferences.dark.mode", True)),
        (Statement("communication_style", "concise"), ("communication_style", "concise")),
    ],
)
def test_a_statement_is_a_candidate_and_back(
    statement: Statement, candidate: tuple[str, Any]
) -> None:
    made = statement.to_candidate("ann")
    assert made == {"entity": "user:ann", "predicate": candidate[0], "value": candidate[1]}
    assert statement_from(*candidate) == statement


@pytest.mark.parametrize(
    ("held", "said", "expected"),
    [
        ("", "concise", Statement("communication_style", "concise")),
        ("Concise", "concise", Statement("communication_style", "Concise")),
        (
            "detailed",
            "concise",
            Statement("communication_style", "concise", contradicts="detailed"),
        ),
    ],
)
def test_a_style_is_compared(held: str, said: str, expected: Statement) -> None:
    profile = ANN._replace(communication_style=held)
    assert compare(profile, Statement("communication_style", said)) == expected


def test_memory_is_folded_in_the_order_of_its_promotion() -> None:
    def memory(id: str, predicate: str, value: Any, at: str) -> PromotedMemory:
        return PromotedMemory(id, "durable", "preference", "user:ann", predicate, value, at)

    rows = [
        memory("mp_3", "communication_style", "detailed", "2026-11-23T04:00:02Z"),
        memory("mp_1", "communication_style", "concise", "2026-11-23T04:00:00Z"),
        memory("mp_4", "goals.b", "b", "2026-11-23T04:00:03Z"),
        memory("mp_2", "goals.a", "a", "2026-11-23T04:00:03Z"),
    ]
    assert fold_profile("ann", rows, interaction_count=7, synthesis_version=2) == ANN._replace(
        communication_style="detailed",
        goals=("a", "b"),
        created_at="2026-11-23T04:00:00Z",
        last_updated="2026-11-23T04:00:03Z",
        interaction_count=7,
        synthesis_version=2,
    )
    assert fold_profile("ann", ()) == UserProfile("ann", interaction_count=0, synthesis_version=1)


def test_a_profile_of_the_version_before_may_have_no_times() -> None:
    assert UserProfile.from_payload({"user_id": "ann", "created_at": ""}) == ANN
