"""Addresses as sources."""

from __future__ import annotations

from typing import Any

import pytest

from cogcli.official.web_sources import normalize_results, verify_source
from cogcli.sdk import Refused


def items(*results: Any, mode: str = "quick") -> list[dict[str, Any]]:
    found = normalize_results(list(results), mode)["items"]
    assert isinstance(found, list)
    return found


@pytest.mark.parametrize(
    "other",
    [
        "HTTPS://Example.org:443/a?b=1#part",
        "https://example.org/a?b=1&utm_source=mail&fbclid=x",
        "https://example.org./a?b=1",
        " https://example.org/a?b=1 ",
    ],
)
def test_spellings_of_one_address_are_one_item(other: str) -> None:
    found = items(
        {"url": "https://example.org/a?b=1", "title": "First"}, {"link": other, "title": "Second"}
    )
    assert [(item["url"], item["title"]) for item in found] == [
        ("https://example.org/a?b=1", "First")
    ]


@pytest.mark.parametrize(
    "other",
    [
        "https://example.org/A?b=1",
        "http://example.org/a?b=1",
        "https://example.org/a?b=2",
        "https://example.org/a%2Fb?b=1",
    ],
)
def test_other_addresses_are_other_items(other: str) -> None:
    assert len(items({"url": "https://example.org/a?b=1"}, {"url": other})) == 2


def test_quick_has_the_snippet_and_deep_what_to_retrieve() -> None:
    result = {"url": "https://example.org/", "title": " A  title ", "content": "Two\nlines"}
    (quick,), (deep,) = items(result), items(result, mode="deep")
    assert quick["snippet"] == "Two lines"
    assert "source_ref" not in quick
    assert deep["source_ref"] == {"type": "url", "value": "https://example.org/"}
    assert (quick["id"], quick["title"]) == (deep["id"], "A title")


@pytest.mark.parametrize(
    "result",
    [
        None,
        3,
        "https://example.org",
        {},
        {"url": "javascript:x()"},
        {"url": "https://u@example.org"},
        {"url": 7},
    ],
)
def test_what_is_no_result_gives_no_item(result: Any) -> None:
    assert items(result) == []
    assert items(result, mode="deep") == []


def test_a_snippet_without_an_address_is_kept_where_nothing_is_retrieved() -> None:
    assert [item["snippet"] for item in items({"text": "said"}, {"text": "said"})] == ["said"]
    assert items({"text": "said"}, mode="deep") == []


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(Refused, match="quick and deep"):
        normalize_results([], "fast")


def verdict(url: str, *hosts: str) -> tuple[bool, str]:
    found = verify_source(url, list(hosts))
    assert isinstance(found["trusted"], bool)
    return found["trusted"], str(found["reason"])


@pytest.mark.parametrize(
    "url", ["https://example.org", "https://a.example.org:8443/x?y", "https://EXAMPLE.ORG./"]
)
def test_a_public_page_of_a_listed_host_is_trusted(url: str) -> None:
    assert verdict(url, "other.example", "*.example.org") == (
        True,
        "https, public, listed as *.example.org",
    )


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://example.org", "not https"),
        ("https://example.com", "on no list"),
        ("https://notexample.org", "on no list"),
        ("https://example.org.evil.net", "on no list"),
        ("https://127.0.0.1/", "not public"),
        ("https://2130706433/", "not public"),
        ("https://0x7f.1/", "not public"),
        ("https://[::1]/", "not public"),
        ("https://[::ffff:10.0.0.1]/", "not public"),
        ("https://169.254.169.254/latest", "not public"),
        ("https://printer.local/", "not public"),
        ("https://localhost/", "not public"),
        ("https://intranet/", "not public"),
        ("https://ex\u0430mple.org/", "mixes scripts"),
        ("https://xn--exmple-4nf.org/", "mixes scripts"),
        ("https://example.org@evil.net/", "not an http or https address"),
        ("https://example.org\\@evil.net/", "not an http or https address"),
        ("ftp://example.org/", "not an http or https address"),
        ("example.org", "not an http or https address"),
        ("https://", "not an http or https address"),
        ("https://exa mple.org", "not an http or https address"),
        ("https://example.org:0/", "not an http or https address"),
        ("https://example.org:99999/", "not an http or https address"),
        ("https://" + "a" * 3000 + ".org", "not an http or https address"),
        ("", "not an http or https address"),
    ],
)
def test_why_a_page_is_not_trusted(url: str, why: str) -> None:
    trusted, reason = verdict(url, "example.org")
    assert not trusted
    assert why in reason


@pytest.mark.parametrize(
    "url", ["https://münchen.example.org/", "https://日本語テスト.example.org/"]
)
def test_one_script_in_each_part_of_a_host_is_enough(url: str) -> None:
    assert verdict(url, "example.org")[0]


def test_without_a_list_no_page_is_trusted() -> None:
    assert (
        verify_source("https://example.org")["reason"] == "its host is on no list of trusted hosts"
    )
