"""Personal data: what is found, what only looks like it, and what is told of it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.growth import assert_linear

from cogcli.official.national_ids import find_national_ids
from cogcli.official.personal_data import (
    detect_personal_data,
    find_personal_data,
    mask,
    redact_personal_data,
)
from cogcli.sdk import Refused

pytestmark = pytest.mark.sampled(2)


def found(text: str) -> list[tuple[str, str]]:
    return [(one.kind, text[one.start : one.end]) for one in find_personal_data(text)]


@pytest.mark.parametrize(
    ("kind", "value", "around"),
    [
        ("email", "ana.ruiz+ship@mail.hafen.de", "Write to <{}>."),
        ("email", "bob@quay.io", "mailto:{}"),
        ("phone", "+49 30 901820", "Call {}, please"),
        ("phone", "+1 (415) 555-2671", "{}"),
        ("phone", "+15551234567", "whatsapp {}"),
        ("phone", "(212) 555-0143", "Office: {}"),
        ("phone", "030 12345678", "Tel.: {}"),
        ("phone", "07700 900123", "mobile {}"),
        ("phone", "06 12 34 56 78", "{}"),
        ("phone", "01632 960 118", "{}"),
        ("phone", "0161 496 0123", "{}"),
        ("phone", "(030) 2345 6789", "Büro {}"),
        ("phone", "0221 / 123 45 67", "{}"),
        ("phone", "044 268 12 12", "Praxis {}"),
        ("phone", "020-6241111", "{}"),
        ("card", "4539 1488 0343 6467", "paid with {}"),
        ("card", "378282246310005", "amex {}"),
        ("card", "4111111111111111", "card={}"),
        ("iban", "DE89 3704 0044 0532 0130 00", "to {} from"),
        ("iban", "GB82WEST12345698765432", "IBAN: {}."),
        ("ip", "84.22.101.9", "login from {}"),
        ("ip", "84.22.101.9", "ssh deploy@{}"),
        ("ip", "2a02:8108:1b40:3a00::1", "login from {}."),
        ("national_id", "529-48-1234", "SSN {}"),
        ("national_id", "529481234", "Social Security: {}"),
        ("national_id", "529 48 1234", "W-2 box a: {}"),
        ("national_id", "12345678Z", "DNI {}"),
        ("national_id", "RSSMRA85T10A562S", "codice fiscale {}"),
        ("national_id", "756.9217.0769.85", "AHV {}"),
        ("national_id", "44051401359", "PESEL: {}"),
    ],
)
def test_personal_data_is_found_where_it_stands(kind: str, value: str, around: str) -> None:
    assert found(around.format(value)) == [(kind, value)]


@pytest.mark.parametrize(
    "text",
    [
        "user@example.com and ana@port.example and bob@localhost",
        "logo@2x.png, @types/node@18.0.0, git@github.com:quay/plan.git",
        "https://ana:pw@host.com/",
        "order 4111111111111111, invoice no. 415-555-2671, SKU 529-48-1234",
        "4539 1488 0343 6468 and DE88 3704 0044 0532 0130 00",
        "v10.0.0.1, version 84.22.101.9, Chrome/120.0.6099.109, foo==1.2.3.4, section 4.22.1.9",
        "127.0.0.1 192.168.1.10 10.0.0.7 0.0.0.0 255.255.255.0 fe80::1 ::1 12:34:56",
        "550e8400-e29b-41d4-a716-446655440000",
        "sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "data:image/png;base64,iVBORw0KGgo4111111111111111AAA+49/30901820=",
        "2026-11-23 10:11:12, 10.12.2026, 1700000000, 52.5200066, +35236450.6, +20260101",
        "ISBN 978-3-16-148410-0, IMEI 490154203237518, 1Z999AA10123456784",
        "12345678A, 44051401359, 123456782, BSN 529481234",
        "BUILD_VERSION=2.0.1.99",
        "call 12 times, contact us 24/7",
        "",
    ],
)
def test_what_only_looks_like_personal_data_is_passed_over(text: str) -> None:
    assert found(text) == []


IDS = {
    "ES": "X1234567L",
    "FR": "2 55 08 14 168 025 38",
    "BR": "529.982.247-25",
    "FI": "131052-308T",
    "SE": "811228-9874",
    "BE": "85.07.30-033.28",
    "NO": "29029600013",
    "IN": "2341 2341 2346",
    "CN": "11010519491231002X",
    "CZ": "736028/5163",
    "DE": "Steuer-ID 86095742719",
    "TR": "TC kimlik 10000000146",
    "NL": "BSN 111222333",
    "PT": "NIF 123456789",
    "RO": "CNP 1800101221144",
    "CA": "SIN 046 454 286",
}


@pytest.mark.parametrize("country", IDS)
def test_a_national_number_counts_only_with_its_check_digit(country: str) -> None:
    text = IDS[country]
    assert [one.detail for one in find_national_ids(text)] == [country]
    last = text[-1]
    other = "B" if last.isalpha() else str((int(last) + 1) % 10)
    assert list(find_national_ids(text[:-1] + other)) == []


def test_equal_values_get_equal_placeholders_and_those_in_the_text_are_not_given_again() -> None:
    text = "[EMAIL_1] ana@ruiz.es, Ana@Ruiz.es, bob@ruiz.es, +49 30 901820 and +49-30-901820"
    assert redact_personal_data(text)["redacted_text"] == (
        "[EMAIL_1] [EMAIL_2], [EMAIL_2], [EMAIL_3], [PHONE_1] and [PHONE_1]"
    )


@given(
    st.lists(
        st.sampled_from(
            ["ana@ruiz.es", "84.22.101.9", "DE89370400440532013000", " x ", "\n", ", "]
        ),
        max_size=9,
    )
)
def test_what_is_redacted_holds_nothing_any_more(parts: list[str]) -> None:
    redacted = str(redact_personal_data(" ".join(parts))["redacted_text"])
    assert find_personal_data(redacted) == []
    assert redact_personal_data(redacted)["redacted_text"] == redacted


def test_a_finding_shows_place_and_line_but_no_whole_value() -> None:
    text = "first\nana.ruiz@hafen.de, 4539 1488 0343 6467"
    answer: Any = detect_personal_data(text)
    assert answer["contains_pii"] is True
    assert answer["allowed"] is False
    for finding in answer["findings"]:
        value = text[finding["start"] : finding["end"]]
        assert finding["line"] == 2
        assert value not in str(answer)
        assert len(re.sub(r"[\W_]", "", finding["masked"])) <= 3


@given(st.text(min_size=1, max_size=60))
def test_a_mask_shows_three_characters_at_most(value: str) -> None:
    assert sum(char.isalnum() for char in mask(value)) <= 3 + value[1:-2].count("_")


PARTS = (
    *(
        "1 ",
        "1.",
        "a@",
        "a@b.",
        "12.34.56.78 ",
        "ssn 123456789 ",
        "call 030 123456 ",
        "+49 30 901820 ",
        "1234 5678 ",
    ),
    *(
        "DE8 ",
        "2001:",
        "data:image/png;base64,",
        "550e8400-e29b-",
        "(212) 555-0143 ",
        "00 1",
        "123456789-",
        "\u202e\u05d0 ",
    ),
)


@pytest.mark.slow
@pytest.mark.sampled(24)
@pytest.mark.parametrize("part", PARTS)
def test_a_megabyte_is_searched_in_linear_time_or_refused(part: str) -> None:
    def search(size: int) -> None:
        try:
            find_personal_data(part * (size // len(part)))
        except Refused as refused:
            assert refused.reason == "too-large"  # noqa: PT017

    assert_linear(search, 1_000_000)


def test_more_than_can_be_searched_is_refused() -> None:
    with pytest.raises(Refused) as refused:
        detect_personal_data("a" * (8 * 1024 * 1024))
    assert refused.value.reason == "too-large"
