"""The answer of a proof about two packs, from its differences and its open parts (docs/reference/pack.md#prove)."""

from __future__ import annotations

from typing import Any

import pytest

from cogcli.policy.policy_proof import PolicyDifference, PolicyProof, UnprovenPart

_UNUSED: Any = None


def proof(relations: tuple[str, ...], *open_parts: UnprovenPart) -> PolicyProof:
    found = [PolicyDifference(each, _UNUSED, _UNUSED, _UNUSED) for each in relations]
    return PolicyProof(tuple(found), open_parts, calls=7)


@pytest.mark.parametrize(
    ("relations", "answer"),
    [
        ((), "equal"),
        (("wider",), "wider"),
        (("wider", "wider"), "wider"),
        (("narrower",), "narrower"),
        (("wider", "narrower"), "incomparable"),
        (("different",), "incomparable"),
        (("different", "wider"), "incomparable"),
    ],
)
def test_the_answer_holds_for_all_differences(relations: tuple[str, ...], answer: str) -> None:
    assert proof(relations).answer == answer
    assert proof(relations, UnprovenPart("a rule", "it is text")).answer == "unknown"


def test_the_payload_counts_the_calls_and_names_what_is_open() -> None:
    assert proof((), UnprovenPart("a rule", "it is text")).to_payload() == {
        "answer": "unknown",
        "calls": 7,
        "differences": [],
        "unknown": [{"what": "a rule", "why": "it is text"}],
    }
