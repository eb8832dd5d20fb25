"""Claims, gaps and the rating of risks."""

from __future__ import annotations

from typing import Any

import pytest

from cogcli.official.wording import check_claims, find_gaps, rate_risks
from cogcli.sdk import Refused


def kinds(found: dict[str, Any]) -> list[str]:
    return [risk["kind"] for risk in found["risks"]]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("It is completely safe.", "absolute"),
        ("It NEVER breaks.", "sweeping"),
        ("A world-class harbour.", "superlative"),
        ("Studies show that it helps.", "unsourced"),
        ("It is significantly faster.", "vague-amount"),
        ("Obviously it works.", "assumed"),
    ],
)
def test_a_claim_is_told_by_its_kind(text: str, kind: str) -> None:
    assert kinds(check_claims(text)) == [kind]


@pytest.mark.parametrize(
    "text", ["Nevertheless it works.", "A clear day.", "the unalways-on plan", ""]
)
def test_parts_of_words_are_no_claims(text: str) -> None:
    assert kinds(check_claims(text)) == []


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Budget: TBD", "placeholder"),
        ("[insert name here]", "placeholder"),
        ("Date: ???", "placeholder"),
        ("Someone should look at it.", "no-owner"),
        ("It follows in the coming weeks.", "vague-date"),
    ],
)
def test_a_gap_is_told_by_its_kind(text: str, kind: str) -> None:
    assert kinds(find_gaps(text)) == [kind]


def test_markers_count_only_in_capitals() -> None:
    assert kinds(find_gaps("my todo list, as xxx")) == []


def test_a_risk_names_line_context_and_reason() -> None:
    found: Any = find_gaps("First line.\n" + "word " * 40 + "soon" + " word" * 40)["risks"]
    assert found[0]["line"] == 2
    assert found[0]["context"].startswith("… word")
    assert found[0]["context"].endswith("word …")
    assert found[0]["why"]


def test_the_count_goes_on_where_the_list_stops() -> None:
    found = find_gaps("TBD " * 500, max_risks=10)
    assert (len(kinds(found)), found["count"]) == (10, 500)


@pytest.mark.parametrize(
    ("severities", "level"),
    [
        ([], "none"),
        (["low"], "low"),
        (["low", "medium"], "medium"),
        (["medium"] * 4, "high"),
        (["high"], "high"),
    ],
)
def test_the_level_follows_points_and_the_worst(severities: list[str], level: str) -> None:
    assert rate_risks([{"severity": severity} for severity in severities])["level"] == level


def test_the_worst_comes_first_and_equals_keep_their_order() -> None:
    risks: list[dict[str, object]] = [
        {"severity": "low", "n": 1},
        {"severity": "high", "n": 2},
        {"severity": "low", "n": 3},
    ]
    ranked: Any = rate_risks(risks)["ranked"]
    assert [risk["n"] for risk in ranked] == [2, 1, 3]


@pytest.mark.parametrize("severity", [None, "huge", 3, ["high"]])
def test_an_unknown_severity_is_refused(severity: object) -> None:
    with pytest.raises(Refused, match="risk 1: severity must be"):
        rate_risks([{"severity": severity}])
