"""Credentials: what is found, what stands for one, and that none is shown. All values are made when the test runs."""

from __future__ import annotations

import base64
import json
import random
import string
from collections.abc import Callable

import pytest
from support.growth import assert_linear

from cogcli.official.secret_values import detect_secrets, entropy, find_secrets
from cogcli.sdk import Refused

pytestmark = pytest.mark.sampled(2)

CHARS = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
CAPITALS = string.ascii_uppercase + string.digits


def drawn(count: int, chars: str = CHARS) -> str:
    return "".join(random.choice(chars) for _ in range(count))


def web_token() -> str:
    head, body = (
        base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")
        for part in ({"alg": "HS256"}, {"sub": "1"})
    )
    return f"{head}.{body}.{drawn(43)}"


def private_key(end: str = "\n") -> str:
    return end.join(
        [
            "-----BEGIN RSA PRIVATE KEY-----",
            *(drawn(64) for _ in range(4)),
            "-----END RSA PRIVATE KEY-----",
        ]
    )


SECRETS: dict[str, tuple[str, Callable[[], str]]] = {
    "aws": ("id {}", lambda: "AKIA" + drawn(16, CAPITALS)),
    "github": ("token {}", lambda: "ghp_" + drawn(36)),
    "gitlab": ("{}", lambda: "glpat-" + drawn(20)),
    "slack": ("{}", lambda: "xoxb-" + drawn(12, string.digits) + "-" + drawn(24)),
    "stripe": ("key={}", lambda: "sk_live_" + drawn(24)),
    "google": ("key={}", lambda: "AIza" + drawn(35)),
    "openai": ("{}", lambda: "sk-proj-" + drawn(48)),
    "npm": ("//registry/:_authToken={}", lambda: "npm_" + drawn(36)),
    "sendgrid": ("{}", lambda: f"SG.{drawn(22)}.{drawn(43)}"),
    "jwt": ("Authorization: Bearer {}", web_token),
    "key": ("{}", private_key),
    "key in a text": ('"key": "{}"', lambda: private_key("\\n")),
    "address": ("postgres://app:{}@db.internal:5432/app", lambda: drawn(14)),
    "variable": ("DB_PASSWORD={}", lambda: "a1" + drawn(12)),
    "joined name": ("PGPASSWORD={}", lambda: "a1" + drawn(12)),
    "camel": ('githubToken: "{}"', lambda: "a1" + drawn(30)),
    "quoted": ('api_key = "{}"', lambda: "a1" + drawn(30)),
    "json": ('{{"client_secret": "{}"}}', lambda: "a1" + drawn(38)),
    "hex": ("export SECRET_TOKEN={}", lambda: "a1" + drawn(30, HEX)),
    "header": ("X-Api-Key: {}", lambda: "a1" + drawn(30)),
    "element": ("<db.password>{}</db.password>", lambda: "a1B" + drawn(9)),
    "property": ('<property name="connection.password">{}</property>', lambda: "a1B" + drawn(9)),
    "attribute": ('<add key="ApiKey" value="{}"/>', lambda: "a1" + drawn(30)),
    "flag": ("tool --password {}", lambda: "a1B" + drawn(9)),
    "sentence": ("the password is {}", lambda: "Zx9!" + drawn(6)),
}


@pytest.mark.parametrize("name", SECRETS)
def test_a_credential_is_found_and_never_shown(name: str) -> None:
    around, make = SECRETS[name]
    value = make()
    text = f"first line\n{around.format(value)}\nlast line"
    answer = detect_secrets(text)
    assert answer["contains_secret"] is True, text
    assert answer["allowed"] is False
    shown = json.dumps(answer)
    assert not any(value[i : i + 6] in shown for i in range(8, len(value) - 6))
    start, end = text.index(value), text.index(value) + len(value)
    assert any(one.start <= start + 8 and end - 2 <= one.end for one in find_secrets(text))


@pytest.mark.parametrize(
    "text",
    [
        "AKIAIOSFODNN7EXAMPLE",
        "ghp_" + "x" * 36,
        "api_key = os.environ['API_KEY']",
        "password = getpass()",
        "password: ${DB_PASSWORD}",
        "password = '<your password>'",
        "token: {{ token }}",
        "api_key=YOUR_API_KEY_HERE",
        "postgres://user:password@localhost/db",
        "password must be 8 characters",
        "max_tokens = 4096, token_type: bearer, primary_key=True",
        "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA\n-----END PUBLIC KEY-----",
        "if '-----BEGIN PRIVATE KEY-----' in text:",
        "https://example.com:8080/x@y",
        "def f(password: str, token: Optional[str] = None)",
        "passphrase = _ffi.NULL",
        "next_page_token=a8Kd93ksLqa8Kd93kxLz0, compass: n0rth-West!",
        "Bearer authentication is used",
        "session id 550e8400-e29b-41d4-a716-446655440000",
        "secret: vault:secret/data/app#key",
        "",
    ],
)
def test_what_stands_for_a_credential_is_passed_over(text: str) -> None:
    assert find_secrets(text) == []


@pytest.mark.parametrize(
    "around",
    [
        "sha256: {}",
        "commit {}",
        'etag: "{}"',
        "public_key = {}",
        "password_hash = {}",
        "X-Request-Id: {}",
        "integrity sha512-{}",
    ],
)
def test_digests_and_identifiers_are_no_credentials(around: str) -> None:
    assert find_secrets(around.format(drawn(40, HEX))) == []


def test_an_encoded_image_is_no_credential() -> None:
    assert find_secrets(f"token: data:image/png;base64,{drawn(900)}==") == []


def test_entropy_is_in_bits_per_character() -> None:
    assert (entropy("aaaa"), entropy("abab"), entropy("abcd")) == (0, 1, 2)


PARTS = (
    *(
        "password=",
        "password = Zx9!kLm2 ",
        "token: ",
        "ghp_",
        "eyJhbGciOi.",
        "-----BEGIN PRIVATE KEY-----\n",
        "a://b:c",
    ),
    *(
        "http://u:",
        "bearer ",
        "data:image/png;base64,",
        '"a":"',
        "'",
        "secret_",
        "--token ",
        "-u a:",
        "\u202e\u05d0 ",
    ),
)


@pytest.mark.slow
@pytest.mark.sampled(40)
@pytest.mark.parametrize("part", PARTS)
def test_a_megabyte_is_searched_in_linear_time_or_refused(part: str) -> None:
    def search(size: int) -> None:
        try:
            find_secrets(part * (size // len(part)))
        except Refused as refused:
            assert refused.reason == "too-large"  # noqa: PT017

    assert_linear(search, 1_000_000)


def test_more_than_can_be_searched_is_refused() -> None:
    with pytest.raises(Refused) as refused:
        detect_secrets("a" * (8 * 1024 * 1024))
    assert refused.value.reason == "too-large"
