"""Which parts of a secret are secrets themselves."""

from __future__ import annotations

import base64
import json
import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples
from support.secret_echoes import PEM, SECRETS
from support.sources import PACKAGE

from cogcli.base.redact import MASK, Redactor
from cogcli.base.secret_parts import MIN_PART, find_parts, looks_random


@pytest.mark.parametrize(
    "text",
    [
        "4Jx9QvT2mZ8rWn6LbYc3Hd7K", "9f3c1b7e5a2d8046bb71c3e9d5f20a84", "550e8400-e29b-41d4-a716-446655440000",
        "JBSWY3DPEHPK3PXPJBSWY3DP", "xqzvkwpjtghrmbnd", "4711093847562018", "kP3vX9zL+Qw7/RtY2mN8bJc5",
        "Wq9xZr4TnV8bLm3YcJ6h", "T1m!x#9Qv$7Zr%2Kp",
    ],
)  # fmt: skip
def test_text_that_looks_random(text: str) -> None:
    assert looks_random(text)


@pytest.mark.parametrize(
    "text",
    [
        "service_account", "authorization_code_grant", "application-default-credentials", "internationalization",
        "correct-horse-battery-staple", "my-project-name-12345", "sqlserver-production-eu-west-1",
        "RootManageSharedAccessKey", "accounts.google.com", "db-7f3a9c2e1b4d5f6a.internal.example.com",
        "runner@quay-works.iam.gserviceaccount.com", "2026-11-23T23:07:13.123456Z", "2026-11-23 23:07:13+00:00",
        "----------------------", "0000000000000000000", "4Jx9QvT2mZ8rWn6", "9f3c 1b7e 5a2d 8046 bb71",
        "x509/certificates/v1", "db.example.com:5432",
    ],
)  # fmt: skip
def test_text_that_does_not(text: str) -> None:
    assert not looks_random(text)


@pytest.mark.parametrize(
    ("kind", "parts"),
    [
        ("API key", set()),
        (
            "URL",
            {"bot-7Gk2:Wq9xZr4TnV8bLm3YcJ6h", "Wq9xZr4TnV8bLm3YcJ6h", "Tz5Kp8QwXn2RvJ7mLc4HsD9f"},
        ),
        ("PEM", set(PEM.splitlines()[1:-1])),
        ("JSON", {"9f3c1b7e5a2d8046bb71c3e9d5f20a84", "1xPq7ZtVw3KmRn9LsYb5Hc2JdX8gQf"}),
        ("connection", {"Vz8QmT4xKp2WnR7LbYc9"}),
    ],
)
def test_the_parts_of_a_secret(kind: str, parts: set[str]) -> None:
    assert set(find_parts(SECRETS[kind])) == parts


TOKEN = "4Jx9QvT2mZ8rWn6LbYc3Hd7K"
CLAIMS = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhZGEiLCJuYW1lIjoiQWRhIn0"


@pytest.mark.parametrize(
    "text",
    [
        f"Bearer {TOKEN}", f"ada:{TOKEN}", f"id:ab12:{TOKEN}", f'"{TOKEN}"', f"'{TOKEN}'", f"short {TOKEN}",
        f"token: {TOKEN}\nhost: a.example\n", f"//registry.example/:_authToken={TOKEN}",
        f"machine a.example login ada password {TOKEN}", f"[default]\naws_secret_access_key = {TOKEN}\n",
        f"https://api.example/bot12345:{TOKEN}/send", f"SG.ab12.{TOKEN}", f"{CLAIMS}.{TOKEN}",
        f"a,b,{TOKEN}", "Basic " + base64.b64encode(f"ada:{TOKEN}".encode()).decode(),
        base64.b64encode(f'{{"private": "{TOKEN}"}}'.encode()).decode(),
        base64.urlsafe_b64encode(f"https://u:{TOKEN}@a.example/".encode()).decode().rstrip("="),
    ],
)  # fmt: skip
def test_a_word_of_a_secret_is_a_part(text: str) -> None:
    assert TOKEN in set(find_parts(text))


def test_claims_of_a_token_are_not_parts() -> None:
    parts = set(find_parts(f"{CLAIMS}.{TOKEN}"))
    assert not any(part.startswith("eyJ") for part in parts)


def test_a_key_with_line_ends_written_out_has_the_same_parts() -> None:
    assert set(find_parts(PEM.replace("\n", "\\n"))) == set(find_parts(PEM))


def test_a_key_inside_a_json_secret_has_its_lines_as_parts() -> None:
    parts = set(find_parts(json.dumps({"a": [{"private_key": PEM}]})))
    assert parts >= set(PEM.splitlines()[1:-1])


def test_an_address_inside_a_json_secret_has_its_segments_as_parts() -> None:
    secret = json.dumps(
        {
            "ops": "https://chat.example.com/Tz5Kp8QwXn2RvJ7mLc4HsD9f?k=v",
            "home": "https://example.com/",
        }
    )
    assert set(find_parts(secret)) == {"Tz5Kp8QwXn2RvJ7mLc4HsD9f"}


def test_an_encoded_password_of_an_address_is_a_part_also_when_decoded() -> None:
    parts = set(find_parts("postgres://app:Wq9xZr%2FTnV8bLm3YcJ6h@db.example.com/main"))
    assert {"Wq9xZr%2FTnV8bLm3YcJ6h", "Wq9xZr/TnV8bLm3YcJ6h"} <= parts


@pytest.mark.parametrize("kind", SECRETS)
def test_what_is_no_secret_of_a_secret_is_not_masked(kind: str) -> None:
    text = (
        "-----BEGIN PRIVATE KEY----- -----END PRIVATE KEY----- hooks.example.com services service_account"
        " private_key_id oauth2.googleapis.com https://oauth2.googleapis.com/token db.example.com Password"
        " Encrypt=True quay-works runner@quay-works.iam.gserviceaccount.com refresh_token Server=tcp"
    )
    assert Redactor([SECRETS[kind]]).mask_text(text) == text


def test_a_part_alone_is_masked() -> None:
    redactor = Redactor(SECRETS.values())
    assert redactor.mask_text(f"line 2: {PEM.splitlines()[2]}") == f"line 2: {MASK}"
    assert (
        redactor.mask_text("GET /services/Tz5Kp8QwXn2RvJ7mLc4HsD9f/in")
        == f"GET /services/{MASK}/in"
    )


@examples(300)
@given(st.binary(min_size=18, max_size=60))
def test_random_bytes_look_random_in_hex(data: bytes) -> None:
    assert looks_random(data.hex()) == (len(set(data.hex())) >= 6)


def test_nearly_all_random_text_looks_random() -> None:
    from random import Random

    drawn = Random(20)
    alphabets = {
        string.ascii_lowercase: 0.9, string.ascii_letters + string.digits: 0.99,
        string.ascii_uppercase + "234567": 0.98,
    }  # fmt: skip
    for alphabet, share in alphabets.items():
        texts = ["".join(drawn.choices(alphabet, k=MIN_PART)) for _ in range(2000)]
        assert sum(map(looks_random, texts)) >= share * len(texts)
    lines = [base64.b64encode(drawn.randbytes(48)).decode() for _ in range(2000)]
    assert all(map(looks_random, lines))


def test_words_of_our_documents_and_code_do_not_look_random() -> None:
    folders = (PACKAGE.parent / "docs", PACKAGE / "run/engine", PACKAGE / "specs")
    texts = [path.read_text("utf-8") for folder in folders for path in folder.rglob("*.[mp][dy]")]
    word = re.compile(r"(?<![\w/+=.%-])[A-Za-z][A-Za-z_-]{15,60}(?![\w/+=.%-])")
    words = {each for text in texts for each in word.findall(text)}
    assert len(words) > 200
    assert not list(filter(looks_random, words))


@examples(200)
@given(st.text(max_size=300))
def test_taking_a_secret_apart_never_fails(text: str) -> None:
    assert all(len(part) >= MIN_PART for part in find_parts(text))
    assert all(len(part) >= MIN_PART for part in find_parts(f"https://{text}"))
    assert all(len(part) >= MIN_PART for part in find_parts(json.dumps([text])))
