"""Claims in sources, and citations."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogcli.official.provenance import make_citation, verify_claim
from cogcli.sdk import Refused

SOURCE = {
    "id": "minutes",
    "text": "The board met in Norvik. The new crane costs 1,200 euros. It was not approved by Ana Holm.",
}


@pytest.mark.parametrize(
    ("claim", "verified", "reason"),
    [
        ("The crane costs 1200 euros.", True, ""),
        ("The crane costs 1,300 euros.", False, "does not have: 1,300"),
        ("The crane was approved by Ana Holm.", False, "negation"),
        ("It was not approved by Ana Holm.", True, ""),
        ("It was not approved by Bob Holm.", False, "does not have: Bob"),
        ("Ships wait in the bay.", False, "No passage"),
    ],
)
def test_numbers_names_and_negation_of_one_passage_decide(
    claim: str, verified: bool, reason: str
) -> None:
    answer = verify_claim(claim, [SOURCE])
    assert answer["verified"] is verified
    assert reason in str(answer["rationale"])


def test_numbers_of_two_far_passages_prove_nothing() -> None:
    text = (
        "The crane costs 40 euros. Ships wait. Tugs help. Coffee is hot. The fence costs 50 euros."
    )
    assert verify_claim("The crane costs 50 euros.", [text])["verified"] is False


@given(
    st.lists(
        st.sampled_from(["The crane costs 40 euros.", "Ships wait in the bay.", "\n\n", " "]),
        max_size=8,
    )
)
def test_evidence_stands_in_its_source(parts: list[str]) -> None:
    text = "".join(parts)
    evidence: Any = verify_claim("The crane costs 40 euros.", [text])["evidence"]
    assert all(text[one["start"] : one["end"]] == one["quote"] for one in evidence)


def test_without_sources_nothing_is_verified() -> None:
    assert verify_claim("The crane costs 40 euros.", []) == {
        "verified": False,
        "evidence": [],
        "rationale": "There are no sources.",
        "method": "rules:passages",
    }


def test_a_claim_without_words_is_bad_data() -> None:
    with pytest.raises(Refused) as refused:
        verify_claim(" ?! ", ["text"])
    assert refused.value.reason == "bad-data"


def test_a_citation_says_only_what_the_source_says() -> None:
    source = {
        "title": "Quays",
        "authors": ["Ana Holm", {"name": "Berg, Bob"}],
        "journal": "Ports",
        "year": 2026,
    }
    assert make_citation(source)["citation"] == {
        "id": "Quays",
        "type": "article",
        "title": "Quays",
        "author": [{"literal": "Ana Holm"}, {"family": "Berg", "given": "Bob"}],
        "issued": {"date-parts": [[2026]]},
        "container-title": "Ports",
    }


@pytest.mark.parametrize(
    ("stated", "issued"),
    [
        ("2026-05", {"date-parts": [[2026, 5]]}),
        ("May 2026", {"raw": "May 2026"}),
        ("20260518", {"raw": "20260518"}),
    ],
)
def test_a_date_is_taken_as_it_is_stated(stated: str, issued: object) -> None:
    citation: Any = make_citation({"title": "Quays", "date": stated})["citation"]
    assert citation["issued"] == issued


def test_an_excerpt_stands_in_the_text_or_there_is_no_citation() -> None:
    citation: Any = make_citation(
        {"title": "Quays", "text": "Quay 3 is closed."}, excerpt="closed"
    )["citation"]
    assert citation["custom"] == {"excerpt": "closed", "start": 10, "end": 16}
    with pytest.raises(Refused):
        make_citation({"title": "Quays", "text": "Quay 3 is closed."}, excerpt="open")
    with pytest.raises(Refused) as refused:
        make_citation({"text": "Quay 3 is closed."})
    assert refused.value.reason == "no-evidence"


@pytest.mark.parametrize(
    ("source", "verified"),
    [
        ("Orca costs 40 euros and lifts 12 t. Lynx costs 55 euros.", False),
        ("Offered are Orca and Lynx. Orca costs 40 euros.", False),
        ("Lynx is a crane. It costs 40 euros.", True),
    ],
)
def test_what_is_said_of_one_thing_is_not_said_of_its_neighbour(
    source: str, verified: bool
) -> None:
    assert verify_claim("Lynx costs 40 euros", [source])["verified"] is verified


@pytest.mark.parametrize(
    ("claim", "source", "verified"),
    [
        ("Lynx costs 40", "Orca costs 40 and Lynx 55.", False),
        ("Orca costs 55", "Orca costs 40 and Lynx 55.", False),
        ("Orca costs 40", "Orca costs 40 and Lynx 55.", True),
        ("Lynx costs 55", "Orca costs 40 and Lynx 55.", True),
        ("Lynx costs 40", "Orca costs 40, and Lynx is cheaper.", False),
        ("Lynx lifts 12 t", "Orca costs 40 and lifts 12 t; Lynx lifts less.", False),
        ("Orca lifts 12 t", "Orca costs 40 and lifts 12 t; Lynx lifts less.", True),
        ("The fence costs 40", "The new crane costs 40 and the fence 55.", False),
        ("The crane costs 40", "The new crane costs 40 and the fence 55.", True),
        ("Orca costs 40", "Orca and Lynx cost 40.", True),
        ("Orca costs 40", "Unlike Orca, Lynx costs 40.", False),
        ("Orca costs 40", "Orca, made in Norvik, costs 40.", True),
        ("Lynx costs 40", "Lynx costs 40 and is sold by Orca.", True),
        ("The price of Lynx is 40", "The price is 40 for Orca and 55 for Lynx.", False),
        ("Orca costs between 40 and 55", "Orca costs between 40 and 55.", True),
        ("Option B costs 40", "Option A costs 40 and option B 55.", False),
        ("Option A costs 40", "Option A costs 40 and option B 55.", True),
        ("Orca costs 55 and Lynx 40", "Orca costs 40 and Lynx 55.", False),
        ("Orca costs 40 and Lynx 55", "Orca costs 40 and Lynx 55.", True),
        ("On 20 July 1969, Apollo 11 landed.", "Apollo 11 landed on 20 July 1969.", True),
        (
            "Apollo 11 landed on 20 July 1969.",
            "Apollo 11, a ship, landed on the Moon on 20 July 1969.",
            True,
        ),
        ("Lynx costs 40", "Orca and Lynx cost 40 and 55, respectively.", False),
    ],
)
def test_a_number_counts_for_the_subject_nearest_to_it_in_its_clause(
    claim: str, source: str, verified: bool
) -> None:
    assert verify_claim(claim, [source])["verified"] is verified
