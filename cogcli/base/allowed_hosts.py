"""The public hosts that a run may call for an untrusted project (docs/reference/service.md#trust):
the values of `--allow-host`, and the network setting that contains only these hosts. These are pure
rules: nothing here looks up a name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from cogcli.base.jsonvalue import inner_values

ANY: Final = "HOST"
"""The placeholder for a host that is unknown before the run."""
FLAG: Final = "--allow-host"
_MAX_NAMED: Final = 5
ONLY: Final = "only"
"""The first word of such a network; the hosts follow."""
_DEFAULT_PORTS: Final = (80, 443)
_HOST: Final = r"[a-z0-9](?:[a-z0-9_.-]{0,251}[a-z0-9])?"


def only_hosts(hosts: Iterable[str]) -> str:
    """Return the network setting that allows only these public hosts, each `HOST` or `HOST:PORT`."""
    return " ".join((ONLY, *hosts))


def host_refusal(host: str, port: int | None, network: str) -> str:
    """Return why a network setting does not allow a host, as words that follow its name; empty if
    it does.

    If `port` is None, the default port of the scheme applies.
    """
    kind, *hosts = network.split(" ")
    named = f"{host}:{port}" if port else host
    if kind != ONLY or allows_host(named, hosts):
        return ""
    return "is not called by a project that is not trusted"


def allows_host(host_and_port: str, hosts: Sequence[str]) -> bool:
    """Return whether `hosts` allows a `HOST` or `HOST:PORT`. An entry without a port allows the default
    ports of http and https."""
    requested_host, port = _split_port(host_and_port)
    for each in hosts:
        host, allowed = _split_port(each)
        if host == requested_host and (
            port == allowed or (not allowed and port in ("", *map(str, _DEFAULT_PORTS)))
        ):
            return True
    return False


def parse_host(text: str) -> str:
    """Return the `HOST` or `HOST:PORT` in a string, normalized.

    Raise ValueError with the reason for an address with other parts, and for a host that is not
    public."""
    host, port = _split_port(text)
    if not re.fullmatch(_HOST, host) or (port and not 0 < int(port) < 65536):
        raise ValueError(
            "expected a host name, perhaps with a port: api.example.org or api.example.org:8443"
        )
    if refusal := _refuse_literal_address(host):
        raise ValueError(f"{host} {refusal}")
    return f"{host}:{port}" if port else host


def allow_hint(hosts: Iterable[str]) -> str:
    """Return hint lines that explain how to allow these hosts."""
    flags = " ".join(f"{FLAG} {host}" for host in hosts)
    return f"allow it for one run: {flags}\nor trust the project: cogcli config trust"


def name_hosts(hint: str, values: object) -> str:
    """Return a hint with the public hosts of the URLs in a JSON value filled in.

    Only strings that are whole URLs are used. The hint stays unchanged if the value contains no such
    URL, or too many.
    """
    if f"{FLAG} {ANY}\n" not in hint:
        return hint
    hosts = list(dict.fromkeys(_list_hosts(values)))
    flags = " ".join(f"{FLAG} {host}" for host in hosts)
    return hint.replace(f"{FLAG} {ANY}", flags, 1) if 0 < len(hosts) <= _MAX_NAMED else hint


def _list_hosts(value: object) -> Iterator[str]:
    """Yield the hosts of the URLs in a JSON value."""
    for member in inner_values(value):
        yield from _list_hosts(member)
    if isinstance(value, str) and value.lower().startswith(("http://", "https://")):
        from urllib.parse import urlsplit  # imported here because only refused calls need it

        try:
            parts = urlsplit(value)
            yield parse_host(
                f"{parts.hostname}:{parts.port}" if parts.port else parts.hostname or ""
            )
        except ValueError:
            return  # no URL, or no public host


def is_private_host(host_and_port: str) -> bool:
    """Return whether a `HOST` or `HOST:PORT` is known not to be public before any look-up."""
    return bool(_refuse_literal_address(_split_port(host_and_port)[0]))


def _refuse_literal_address(host: str) -> str:
    from cogcli.base.addresses import literal_refusal  # loads what only calls over a network need

    return literal_refusal(host, "public")


def _split_port(text: str) -> tuple[str, str]:
    """Return the host in lower case, and the port, empty if there is none.

    A name that is not ASCII is never allowed, because its host depends on the version of IDNA.
    """
    host, colon, port = text.strip().rpartition(":")
    if not colon or not port.isascii() or not port.isdigit():
        host, port = text.strip(), ""
    return host.lower().removesuffix("."), port
