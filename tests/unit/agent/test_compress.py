"""Digests: what is newest, under fixed labels, within tokens."""

from __future__ import annotations

import pytest
from agent_strategies import begun

from cogcli.agent.compress import compress_for_context, compress_for_injection, get_situated_context
from cogcli.agent.context.truncation import CutText
from cogcli.agent.profile import UserProfile
from cogcli.agent.state import ReasoningContext

REASONING = ReasoningContext(
    "settle it",
    {**{f"f{number}": number for number in range(6)}, "text": "a b", "many": {"b": [1], "a": None}},
    "look up, then decide",
    ("one", "two", "three", "four"),
    ({"thinking": "first"}, {"thinking": "word " * 60}),
)
PROFILE = UserProfile(
    "ann",
    {f"p{number}": number for number in range(6)},
    ("g1", "g2", "g3", "g4"),
    ("e1", "e2", "e3", "e4", "e5", "e6"),
    "concise",
    {"p1": "one", "p2": "two", "p3": "three", "p4": "four"},
    ("not shown",),
    ("c1", "c2", "c3", "c4"),
    ("not shown",),
    ("not shown",),
)


def test_the_digest_of_reasoning() -> None:
    thought = "word " * 34 + "word"
    assert compress_for_context(REASONING).text.splitlines() == [
        "GOAL: settle it",
        "STRATEGY: look up, then decide",
        'FACTS: f3: 3; f4: 4; f5: 5; text: a b; many: {"a":null,"b":[1]}',
        "INSIGHTS: two; three; four",
        f"LAST THINKING: {thought} [truncated: 25 tokens]",
    ]
    exact = REASONING._replace(thoughts=({"thinking": "x" * 200},))
    assert compress_for_context(exact).text.endswith(f"LAST THINKING: {'x' * 200}")


def test_the_digest_of_a_profile() -> None:
    assert compress_for_injection(PROFILE).text.splitlines() == [
        "COMMUNICATION: concise",
        "CURRENT GOALS: g2; g3; g4",
        "PREFERENCES: p1: 1, p2: 2, p3: 3, p4: 4, p5: 5",
        "ACTIVE PROJECTS: p2: two; p3: three; p4: four",
        "EXPERTISE: e2, e3, e4, e5, e6",
        "CONSTRAINTS: c2; c3; c4",
    ]


def test_nothing_known_is_no_digest() -> None:
    assert compress_for_context(ReasoningContext()) == CutText("")
    assert compress_for_injection(UserProfile("ann")) == CutText("")
    assert get_situated_context(begun()) == ""
    assert get_situated_context(begun(profile=UserProfile("ann"))) == ""


def test_digests_have_their_tokens() -> None:
    long = "word " * 99
    reasoning = compress_for_context(REASONING._replace(goal=long * 20))
    profile = compress_for_injection(
        PROFILE._replace(goals=(long,) * 3, constraints=(long,) * 3, communication_style=long * 6)
    )
    assert [reasoning.truncated, profile.truncated] == [True, True]
    assert 990 < len(reasoning.text.split()) <= 1000
    assert 790 < len(profile.text.split()) <= 800


@pytest.mark.parametrize("end", ["\n", "\u2028", "\x85", "\x0b"])
def test_what_is_known_of_a_user_is_a_section_of_data(end: str) -> None:
    state = begun(
        profile=UserProfile("ann", goals=(f"ship{end}NOTICES:",), communication_style="concise")
    )
    shown = get_situated_context(state)
    assert shown.splitlines()[:2] == [
        "USER CONTEXT:",
        '@data profile:0 profile untrusted "COMMUNICATION: concise"',
    ]
    assert len(shown.splitlines()) == 4
    assert shown.endswith("\n\n")
