"""Actions, decisions, questions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogcli.official.actions import extract_actions


def first(text: str) -> tuple[Any, Any, Any]:
    actions: Any = extract_actions(text)["actions"]
    assert len(actions) == 1, actions
    return actions[0]["who"], actions[0]["what"], actions[0]["due"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Action: Bob will book the quay by 2026-06-09.",
            ("Bob", "book the quay by 2026-06-09.", "2026-06-09"),
        ),
        (
            "- [ ] Maria Berg: send the offer before 5 June 2026",
            ("Maria Berg", "send the offer before 5 June 2026", "5 June 2026"),
        ),
        ("TODO: order rope", (None, "order rope", None)),
        ("## Next steps\n1. Write the notice (Carla)", ("Carla", "Write the notice (Carla)", None)),
        (
            "- Ana writes the release notes by Friday",
            ("Ana", "write the release notes by Friday", "Friday"),
        ),
        (
            "* Maria Berg fixes the crane until 5 June",
            ("Maria Berg", "fix the crane until 5 June", "5 June"),
        ),
        ("- @ben tries the new pump tomorrow", ("@ben", "try the new pump tomorrow", "tomorrow")),
        ("@ana needs to call the port tomorrow", ("@ana", "call the port tomorrow", "tomorrow")),
        (
            "Ana, please send the plan by end of week.",
            ("Ana", "send the plan by end of week.", "end of week"),
        ),
    ],
)
def test_who_does_what_by_when(text: str, expected: tuple[Any, Any, Any]) -> None:
    assert first(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "The ship will arrive at noon.",
        "It will be dark.",
        "Ana sent the plan.",
        "- Ana writes well",
        "- Orca arrives by Friday",
        "- The crane stands by Friday",
        "Ana writes the notes by Friday.",
        "- [x] Bob: paint",
        "# Actions",
        "",
    ],
)
def test_what_leaves_nothing_to_do_is_no_action(text: str) -> None:
    assert extract_actions(text) == {"actions": [], "decisions": [], "questions": []}


def test_decisions_and_questions_have_their_lines() -> None:
    text = "We agreed to close quay 3.\nDecision: the fee stays.\n\nWho pays?\n## Questions\n- when the crane comes"
    found = extract_actions(text)
    assert found["decisions"] == [
        {"text": "We agreed to close quay 3.", "line": 1},
        {"text": "the fee stays.", "line": 2},
    ]
    assert found["questions"] == [
        {"text": "Who pays?", "line": 4},
        {"text": "when the crane comes", "line": 6},
    ]


@given(st.text(max_size=400))
def test_what_is_told_stands_in_its_line(text: str) -> None:
    lines = text.splitlines()
    for found in extract_actions(text).values():
        for one in found:  # type: ignore[attr-defined]
            assert one.get("what", one.get("text")) in lines[one["line"] - 1]
            assert (one.get("who") or "") in text
            assert (one.get("due") or "") in text


@pytest.mark.parametrize(
    ("text", "who", "what", "due"),
    [
        (
            "Please send us the note by 14 April 2026.",
            None,
            "send us the note by 14 April 2026.",
            "14 April 2026",
        ),
        ("Mr. J. Smith will call you by Friday.", "Mr. J. Smith", "call you by Friday.", "Friday"),
        ("Dr. Holm, please bring the charts.", "Dr. Holm", "bring the charts.", None),
    ],
)
def test_what_a_letter_asks_for_is_an_action(
    text: str, who: str | None, what: str, due: str | None
) -> None:
    assert extract_actions(text)["actions"] == [{"what": what, "who": who, "due": due, "line": 1}]


@pytest.mark.parametrize(
    "text", ["Please note that the quay is closed.", "Please find the plan attached."]
)
def test_what_is_only_polite_is_no_action(text: str) -> None:
    assert extract_actions(text)["actions"] == []
