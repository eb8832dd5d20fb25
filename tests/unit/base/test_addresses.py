"""Which addresses a service may be reached at (docs/reference/service.md#addresses)."""

from __future__ import annotations

import pytest

from cogcli.base.addresses import literal_address, literal_refusal, refusal

NEVER = (
    "169.254.169.254", "169.254.170.2", "169.254.0.1", "fe80::1", "fe80::1%eth0", "100.64.0.1", "100.127.255.255",
    "0.0.0.0", "0.1.2.3", "::", "224.0.0.1", "ff02::1", "240.0.0.1", "255.255.255.255", "fd00:ec2::254",
    "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1", "fec0::1", "2001:db8::1", "192.0.2.1",
    "198.18.0.1", "::127.0.0.1", "2001::1",
)  # fmt: skip
PRIVATE = (
    "127.0.0.1", "127.255.255.254", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "::1", "fc00::1",
    "fd12:3456::1", "::ffff:127.0.0.1", "::ffff:10.1.2.3", "64:ff9b::7f00:1", "2002:7f00:1::1",
)  # fmt: skip
PUBLIC = (
    "1.1.1.1",
    "172.32.0.1",
    "8.8.8.8",
    "2606:4700::1111",
    "::ffff:1.1.1.1",
    "64:ff9b::101:101",
)


@pytest.mark.parametrize("address", NEVER)
def test_some_addresses_are_never_reached(address: str) -> None:
    assert refusal(address, "public")
    assert refusal(address, "private")


@pytest.mark.parametrize("address", PRIVATE)
def test_private_addresses_are_reached_where_the_service_says_so(address: str) -> None:
    assert refusal(address, "public").endswith("not public")
    assert refusal(address, "private") == ""


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_reached(address: str) -> None:
    assert refusal(address, "public") == refusal(address, "private") == ""


def test_the_words_say_what_an_address_is() -> None:
    words = {
        address: refusal(address, "public")
        for address in ("127.0.0.1", "10.0.0.1", "169.254.1.1", "0.0.0.0")
    }
    assert words == {
        "127.0.0.1": "is loopback, not public",
        "10.0.0.1": "is private, not public",
        "169.254.1.1": "is link-local",
        "0.0.0.0": "is unspecified",
    }


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("127.0.0.1.", "127.0.0.1"),
        ("127.1", "127.0.0.1"),
        ("2130706433", "127.0.0.1"),
        ("0x7f000001", "127.0.0.1"),
        ("0x7F.0.0.1", "127.0.0.1"),
        ("0177.0.0.1", "127.0.0.1"),
        ("017700000001", "127.0.0.1"),
        ("0x000000007f000001", "127.0.0.1"),
        ("127.0.0.00000000000001", "127.0.0.1"),
        ("１２７.0.0.1", "127.0.0.1"),
        ("127。0。0。1", "127.0.0.1"),
        ("%31%32%37.0.0.1", "127.0.0.1"),
        ("cafe", None),
        ("4294967296", None),
        ("[::1]", "::1"),
        ("example.org", None),
        ("1.2.3.4.5", None),
        ("999.1.1.1", None),
        ("1a.example", None),
    ],
)
def test_an_address_is_seen_however_it_is_spelled(host: str, address: str | None) -> None:
    assert literal_address(host) == address


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST.", "a.localhost", "ｌocalhost", "127.0.0.1", "0x7f.1", "[::1]"]
)
def test_what_is_plainly_local_is_refused_without_a_look_up(host: str) -> None:
    assert literal_refusal(host, "public")
    assert literal_refusal(host, "private") == ""


def test_names_are_not_judged_before_they_are_looked_up() -> None:
    assert (
        literal_refusal("example.org", "public")
        == literal_refusal("localhost.example.org", "public")
        == ""
    )
