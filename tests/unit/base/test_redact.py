"""Secrets are masked wherever they stand, and nothing else is."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogcli.base.redact import MASK, Redactor, names_secret

SECRET = 'hunter2 "tok&en"/é+1'
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)


@pytest.mark.parametrize(
    "form",
    [
        SECRET,
        base64.b64encode(SECRET.encode()).decode(),
        base64.urlsafe_b64encode(SECRET.encode()).decode().rstrip("="),
        quote(SECRET, safe=""),
        quote(SECRET, safe="").lower(),
        SECRET.encode().hex(),
        SECRET.encode().hex().upper(),
        json.dumps(SECRET)[1:-1],
        json.dumps(SECRET, ensure_ascii=False)[1:-1],
    ],
)
def test_a_known_value_is_masked_in_every_form(form: str) -> None:
    redactor = Redactor([SECRET])
    assert redactor.mask_text(f"before {form} after") == f"before {MASK} after"
    assert redactor.mask({"a": [f"x{form}x"]}) == {"a": [f"x{MASK}x"]}


@given(
    st.dictionaries(st.sampled_from(["a", "value", "name", "api_key"]), JSON_VALUES), st.booleans()
)
def test_a_value_is_clean_if_nothing_in_it_is_masked(value: dict[str, Any], knows: bool) -> None:
    redactor = Redactor([SECRET] if knows else [])
    assert redactor.is_clean([value], ["inputs.note"]) == (redactor.mask(value) == value)
    assert redactor.is_clean([], [f"inputs.{SECRET}"]) == (not knows)


@pytest.mark.parametrize("user", ["a", "ab", "abc", "abcd"])
def test_a_known_value_inside_basic_credentials_is_not_readable(user: str) -> None:
    header = base64.b64encode(f"{user}:hunter2hunter2".encode()).decode()
    masked = Redactor(["hunter2hunter2"]).mask_text(f"Basic {header}")
    assert MASK in masked
    assert len(masked) < len(header)


def test_a_known_value_is_masked_in_keys_and_numbers_too() -> None:
    redactor = Redactor(["1234567890"])
    assert redactor.mask({"1234567890": 1234567890}) == {MASK: MASK}


def test_short_values_are_not_known() -> None:
    assert Redactor(["abc", "1234567"]).mask("abc 1234567") == "abc 1234567"


def test_values_may_be_added_later() -> None:
    redactor = Redactor()
    assert redactor.mask_known("hunter2hunter2") == "hunter2hunter2"
    redactor.add("hunter2hunter2\n")
    assert redactor.mask_known("hunter2hunter2") == MASK


def test_a_key_that_was_plain_is_looked_at_again_once_its_text_is_known() -> None:
    redactor = Redactor()
    assert redactor.mask({"hunter2hunter2": [{"hunter2hunter2": 1}]}) == {
        "hunter2hunter2": [{"hunter2hunter2": 1}]
    }
    redactor.add("hunter2hunter2")
    assert redactor.mask({"a": [{"hunter2hunter2": 1}]}) == {"a": [{MASK: 1}]}


@pytest.mark.parametrize(
    "key",
    [
        "password", "db_password_prod", "dbPassword", "PASSWORD", "token", "access_token", "accessTokens", "api_key",
        "apiKey", "X-Api-Key", "Authorization", "set-cookie", "private_key", "client_secret", "SECRET_ACCESS_KEY",
        "credentials", "auth.token",
    ],
)  # fmt: skip
def test_keys_that_name_a_secret(key: str) -> None:
    assert names_secret(key)
    assert Redactor().mask({key: "x"}) == {key: MASK}


@pytest.mark.parametrize(
    "key",
    [
        "monkey", "tokens_used", "token_count", "max_tokens", "max_token", "tokens_in", "tokenizer", "author", "key",
        "public_key", "idempotency_key", "keyboard", "secretary", "cookie_policy", "access_key_id", "input_hash",
    ],
)  # fmt: skip
def test_keys_that_do_not(key: str) -> None:
    assert not names_secret(key)
    payload = {key: "x"}
    assert Redactor().mask(payload) is payload


@pytest.mark.parametrize("value", [None, True, False, "", [], {}, MASK])
def test_what_holds_no_secret_is_left_alone_under_a_secret_key(value: Any) -> None:
    payload = {"password": value}
    assert Redactor().mask(payload) is payload


def test_a_secret_key_masks_whatever_it_holds() -> None:
    assert Redactor().mask({"credentials": {"user": "a"}, "token": 5}) == {
        "credentials": MASK,
        "token": MASK,
    }


def test_a_value_is_masked_when_the_object_around_it_names_a_secret() -> None:
    redactor = Redactor()
    write = {"target": "vars.api_key", "strategy": "overwrite", "value": "abc"}
    assert redactor.mask([write]) == [{**write, "value": MASK}]
    assert redactor.mask({"name": "Authorization", "value": "Bearer x"})["value"] == MASK
    plain = {"target": "vars.monkey", "value": "abc"}
    assert redactor.mask(plain) is plain


def test_json_inside_a_string_is_masked_by_its_keys() -> None:
    redactor = Redactor()
    assert redactor.mask('{"password":"a\\"b","n":1}') == f'{{"password":"{MASK}","n":1}}'
    assert redactor.mask('{"n":1,"token":"abc') == f'{{"n":1,"token":"{MASK}"'
    assert (
        redactor.mask('{"max_tokens": 5, "password": null}')
        == '{"max_tokens": 5, "password": null}'
    )


def test_masking_known_values_spares_what_only_its_key_betrays() -> None:
    redactor = Redactor(["hunter2hunter2"])
    payload = {"password": "other", "text": "say hunter2hunter2"}
    assert redactor.mask_known(payload) == {"password": "other", "text": f"say {MASK}"}


@given(JSON_VALUES)
def test_masking_is_idempotent_and_leaves_clean_values_as_they_are(value: Any) -> None:
    redactor = Redactor(["hunter2hunter2"])
    once = redactor.mask(value)
    assert redactor.mask(once) is once
    if once == value:
        assert once is value


def is_secret(text: str) -> bool:
    """Whether a text can be a secret, and no part of a number: numbers are not masked in part."""
    return len(text.strip()) >= 8 and not set(text.strip()) <= set("0123456789.e+-")


@given(JSON_VALUES, st.text(min_size=8, max_size=20).filter(is_secret))
def test_no_known_value_survives_in_the_written_bytes(value: Any, secret: str) -> None:
    redactor = Redactor([secret])
    masked = redactor.mask({"data": value, "leak": f"<{secret}>", "list": [secret]})
    assert secret.strip() not in json.dumps(masked, ensure_ascii=False).replace(MASK, "")


def test_a_text_that_was_clean_is_looked_at_again_once_it_is_known() -> None:
    redactor = Redactor(["another-secret"])
    assert redactor.mask(["hunter2hunter2", "hunter2hunter2"]) == [
        "hunter2hunter2",
        "hunter2hunter2",
    ]
    redactor.add("hunter2hunter2")
    assert redactor.mask(["hunter2hunter2"]) == [MASK]


def test_json_in_a_text_is_masked_by_its_keys_after_it_was_searched_for_values_alone() -> None:
    redactor = Redactor(["another-secret"])
    assert redactor.mask_known(['{"token": "abc"}']) == ['{"token": "abc"}']
    assert redactor.mask(['{"token": "abc"}']) == [f'{{"token": "{MASK}"}}']
