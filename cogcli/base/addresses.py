"""Which network addresses a service may use (docs/reference/service.md#addresses). These are pure
rules: nothing here looks up a name.

1. `public` means globally routable addresses. `private` adds loopback, 10/8, 172.16/12, 192.168/16
and fc00::/7.

2. Never allowed, under any setting: link-local, 100.64/10, unspecified, multicast, reserved, and
fd00:ec2::254 (metadata).

3. An address that represents an IPv4 address (mapped, NAT64, 6to4) is judged as that address.

4. `only HOST ...` allows only those public hosts (`base/allowed_hosts`).
"""

from __future__ import annotations

import ipaddress
import socket
from typing import Final
from unicodedata import normalize
from urllib.parse import unquote

from cogcli.base.lazy_pattern import lazy_pattern

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_PRIVATE: Final = tuple(
    ipaddress.ip_network(text)
    for text in (
        "127.0.0.0/8",
        "10.0.0.0/8",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "::1/128",
        "fc00::/7",
    )
)
_METADATA: Final = ipaddress.ip_address("fd00:ec2::254")
_UNICAST: Final = ipaddress.IPv6Network("2000::/3")
"""All of IPv6 that is assigned for global use."""
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
_NUMBERS: Final = lazy_pattern(r"(?:0x)?[0-9a-f]+(?:\.(?:0x)?[0-9a-f]+){0,3}")
"""The forms in which systems take an IPv4 address (`127.1`, `0x7f.1`, `2130706433`, `017700000001`), and words like
`cafe`."""


def refusal(address: str, network: str) -> str:
    """Return why no connection to an address is allowed, as words that follow its text; empty if it
    is.
    """
    found = _reached_address(ipaddress.ip_address(address.partition("%")[0]))
    if _is_private(found):
        return "" if network == "private" else f"is {_forbidden_kind(found)}, not public"
    return "" if _is_public(found) else f"is {_forbidden_kind(found)}"


def _reached_address(address: _Address) -> _Address:
    """Return the IPv4 address that an IPv6 address represents, else the address itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address


def _is_private(address: _Address) -> bool:
    """Return whether the setting `private` adds this address to the public ones."""
    own = (net for net in _PRIVATE if net.version == address.version)
    return address != _METADATA and any(address in net for net in own)


def _is_public(address: _Address) -> bool:
    """Return whether the address is globally routable."""
    if address.version == 6 and address not in _UNICAST:
        return False
    return address.is_global and not (address.is_multicast or address.is_reserved)


def literal_address(host: str) -> str | None:
    """Return the address that a host name denotes literally; None if the name needs a look-up."""
    text = host.strip("[]").removesuffix(".")
    try:
        return str(ipaddress.ip_address(text.partition("%")[0]))
    except ValueError:
        text = _normalize_host(text)
    if not _NUMBERS.fullmatch(text):
        return None
    try:
        return socket.inet_ntoa(socket.inet_aton(text))
    except OSError:
        return None


def literal_refusal(host: str, network: str) -> str:
    """Return the `refusal` that is known without a look-up: for literal addresses and `localhost`."""
    name = _normalize_host(host)
    address = (
        "127.0.0.1" if name == "localhost" or name.endswith(".localhost") else literal_address(host)
    )
    return refusal(address, network) if address is not None else ""


def _normalize_host(host: str) -> str:
    """Return a host name in plain letters, digits and dots. Other notations are converted, such as `%31`, `１` and
    `。`.
    """
    if not host.isascii() or "%" in host:
        host = normalize("NFKC", unquote(host)).replace("\u3002", ".")
    return host.lower().removesuffix(".")


def _forbidden_kind(address: _Address) -> str:
    """Return a word for the property that forbids the use of an address; empty if it has none."""
    if address == _METADATA:
        return "a metadata address"
    for word in ("unspecified", "loopback", "link_local", "multicast"):
        if getattr(address, f"is_{word}"):
            return word.replace("_", "-")
    return "private" if address.is_private and not address.is_reserved else "reserved"
