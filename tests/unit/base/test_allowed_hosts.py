"""The values of `--allow-host`: one public host each, by its exact name."""

from __future__ import annotations

import pytest

from cogcli.base.allowed_hosts import allows_host, host_refusal, only_hosts, parse_host


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("api.example.org", "api.example.org"),
        ("API.Example.org.", "api.example.org"),
        ("api.example.org:8443", "api.example.org:8443"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("93.184.216.34", "93.184.216.34"),
    ],
)
def test_a_host_is_taken_in_one_form(text: str, host: str) -> None:
    assert parse_host(text) == host


@pytest.mark.parametrize(
    "text",
    [
        "", "*", "*.example.org", "https://example.org", "example.org/path", "user@example.org", "a b",
        "example.org:0", "example.org:99999", "localhost", "127.0.0.1", "127.1", "2130706433", "10.0.0.1:80",
        "169.254.169.254", "[::1]:80", "a.localhost", "stra\u00dfe.example",
    ],
)  # fmt: skip
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(
        ValueError, match=r"expected a host name|is loopback|is private|is link-local"
    ):
        parse_host(text)


def test_a_network_of_hosts_holds_them_alone() -> None:
    network = only_hosts(["a.example", "b.example:8443"])
    for host, port in (
        ("a.example", None),
        ("A.example", 443),
        ("a.example", 80),
        ("b.example", 8443),
    ):
        assert host_refusal(host, port, network) == ""
    for host, port in (
        ("a.example", 8080),
        ("b.example", None),
        ("c.example", None),
        ("xa.example", None),
    ):
        assert host_refusal(host, port, network)
    assert host_refusal("a.example", None, only_hosts([]))
    assert (
        host_refusal("a.example", None, "public") == host_refusal("a.example", 81, "private") == ""
    )


def test_a_name_that_is_not_ascii_is_no_host_that_is_allowed() -> None:
    """Two versions of IDNA read `ß` as two hosts: one of them would be judged, the other one called."""
    assert not allows_host("stra\u00dfe.example", ["strasse.example", "xn--strae-oqa.example"])
