"""Outputs of models: cleaned, and checked."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogcli.official.model_output import sanitize_output, validate_response
from cogcli.sdk import Refused

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
)


@pytest.mark.parametrize(
    ("value", "cleaned", "kind"),
    [
        ("Hi <script>steal()</script>there", "Hi there", "script"),
        ("<scr<script></script>ipt>x", "", "script"),
        ('<a href="javascript:x()">go</a>', '<a href="x()">go</a>', "script"),
        ('<img src=x onerror="x()">', "<img src=x >", "script"),
        ("a\u202eb\u200bc", "abc", "control"),
        ("mail ana@ruiz.es", "mail [EMAIL_1]", "email"),
        ("redis://c:tide-9-plan-4@h:1", "redis://c:[SECRET_1]@h:1", "secret"),
    ],
)
def test_what_must_not_pass_on_is_taken_out_and_told(value: str, cleaned: str, kind: str) -> None:
    answer: Any = sanitize_output({"a": [{"b": value}]})
    assert answer["sanitized_output"]["a"][0]["b"] == cleaned
    assert answer["removals"][0]["kind"] == kind
    assert answer["removals"][0]["path"] == "a.0.b"
    assert answer["clean"] is False


def test_a_value_that_is_a_password_by_its_name_goes() -> None:
    answer: Any = sanitize_output({"password": "tide-9-Plan!", "note": "tide-9-Plan!"})
    assert answer["sanitized_output"] == {"password": "[SECRET_1]", "note": "tide-9-Plan!"}
    assert "tide" not in json.dumps(answer["removals"])


def test_equal_values_get_equal_placeholders_everywhere() -> None:
    answer: Any = sanitize_output({"a": "ana@ruiz.es", "b": ["bob@ruiz.es", "ana@ruiz.es"]})
    assert answer["sanitized_output"] == {"a": "[EMAIL_1]", "b": ["[EMAIL_2]", "[EMAIL_1]"]}


@given(st.dictionaries(st.text(max_size=5), JSON, max_size=4))
def test_what_is_clean_stays_as_it_is_and_cleaning_again_changes_nothing(
    output: dict[str, object],
) -> None:
    answer: Any = sanitize_output(output)
    again = sanitize_output(answer["sanitized_output"])
    assert again["sanitized_output"] == answer["sanitized_output"]
    if answer["clean"]:
        assert answer["sanitized_output"] == output


def test_a_part_that_is_switched_off_stays() -> None:
    answer = sanitize_output({"a": "ana@ruiz.es"}, {"remove_pii": False})
    assert answer == {"sanitized_output": {"a": "ana@ruiz.es"}, "removals": [], "clean": True}


@pytest.mark.parametrize("policy", [{"remove_pi": True}, {"remove_pii": "no"}])
def test_a_policy_that_nobody_understands_is_refused(policy: dict[str, object]) -> None:
    with pytest.raises(Refused):
        sanitize_output({}, policy)


def test_a_response_may_say_what_the_evidence_says() -> None:
    evidence = [{"text": "Ana Holm paid 1,200 euros in Norvik."}, 40]
    output = {"summary": "In Norvik the payment of Ana Holm was 1,200 euros.", "fee": 40}
    assert validate_response(output, {}, evidence)["valid"] is True


def test_what_the_evidence_does_not_have_is_an_issue() -> None:
    answer: Any = validate_response(
        {"a": "It was Bob who paid 30, not 40.", "n": 7}, {}, ["Ana paid 40."]
    )
    assert [issue["claim"] for issue in answer["issues"]] == ["30", "Bob", "7"]
    assert answer["confidence_adjustment"] == -0.75


def test_a_wrong_form_costs_all_confidence() -> None:
    answer: Any = validate_response(
        {"a": 1}, {"schema": {"properties": {"a": {"type": "string"}}}, "required_keys": ["b"]}
    )
    assert [issue["kind"] for issue in answer["issues"]] == ["schema", "required"]
    assert answer["confidence_adjustment"] == -1


def test_without_evidence_nothing_is_grounded() -> None:
    with pytest.raises(Refused) as refused:
        validate_response({"a": "x"}, {"grounded": True})
    assert refused.value.reason == "no-evidence"
    with pytest.raises(Refused):
        validate_response({}, {"shema": {}})
