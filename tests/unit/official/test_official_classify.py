"""Labels by words, kinds of documents by phrases."""

from __future__ import annotations

from pathlib import Path

import pytest

from cogcli.official.classify import classify_by_cues
from cogcli.sdk import Refused


def refusal(text: str, labels: list[object] | None = None) -> str:
    with pytest.raises(Refused) as refused:
        classify_by_cues(text, labels)
    return refused.value.reason


def test_inflected_forms_of_a_label_count() -> None:
    found = classify_by_cues("They complained about three invoices.", ["invoice", "shipping"])
    assert (found["label"], found["confidence"]) == ("invoice", 1.0)


def test_the_order_of_the_labels_says_nothing() -> None:
    labels: list[object] = ["shipping", "billing", "returns"]
    text = "The return was late, and my returned shoes are lost. Shipping is slow."
    assert (
        classify_by_cues(text, labels)["label"]
        == classify_by_cues(text, labels[::-1])["label"]
        == "returns"
    )


def test_keywords_descriptions_and_examples_tell_a_label() -> None:
    labels: list[object] = [
        {"label": "money", "keywords": ["refund"]},
        {
            "name": "transport",
            "description": "parcels that come late",
            "examples": ["Where is my box?"],
        },
    ]
    assert classify_by_cues("I want a refund", labels)["label"] == "money"
    assert classify_by_cues("my parcel is lost", labels)["label"] == "transport"
    assert classify_by_cues("that box", labels)["label"] == "transport"


def test_without_evidence_there_is_no_label() -> None:
    assert refusal("The sky is blue.", ["billing", "shipping"]) == "no-evidence"
    assert classify_by_cues("The sky is blue.", ["billing", "Other"])["label"] == "Other"
    assert refusal("", ["billing"]) == "no-evidence"


def test_a_tie_is_no_evidence() -> None:
    assert refusal("Shipping and billing.", ["billing", "shipping"]) == "no-evidence"


def test_context_counts_as_a_part() -> None:
    assert (
        classify_by_cues("It is late.", ["billing", "shipping"], context="shipping desk")["label"]
        == "shipping"
    )


@pytest.mark.parametrize("labels", [[3], [""], [{}], [{"label": None}]])
def test_a_label_without_a_name_is_bad_data(labels: list[object]) -> None:
    assert refusal("text", labels) == "bad-data"


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("invoice", "Invoice 12\nBill to: Ana\nSubtotal 40\nAmount due 48"),
        ("minutes", "Attendees: Ana, Bob\nAgenda: the quay\nNext meeting in May"),
        ("letter", "Dear Mr. Holm,\nthe quay is closed.\nYours sincerely\nAna"),
    ],
)
def test_without_labels_the_kind_of_document_is_told(kind: str, text: str) -> None:
    assert classify_by_cues(text)["label"] == kind


def test_a_licence_of_the_system_is_known_as_one() -> None:
    path = Path("/usr/share/common-licenses/Apache-2.0")
    if not path.exists():
        pytest.skip("no licences of Debian here")
    assert classify_by_cues(path.read_text(encoding="utf-8"))["label"] == "licence"


def test_a_text_of_no_kind_has_none() -> None:
    assert refusal("The sky is blue.") == "no-evidence"
