"""The listening socket of a server."""

from __future__ import annotations

import os
import socket
from ipaddress import ip_address

from cogcli.base.errors import UsageError
from cogcli.base.named_tuple import NamedTuple


class Endpoint(NamedTuple):
    """The host (never empty) and port of a server. Port 0 means any free port."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can connect."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def is_everywhere(self) -> bool:
        """Whether it is the wildcard address, `0.0.0.0` or `::`."""
        try:
            return ip_address(self.host).is_unspecified
        except ValueError:
            return False

    @property
    def url_host(self) -> str:
        """Return the host as in a URL: IPv6 in brackets."""
        return f"[{self.host}]" if ":" in self.host else self.host


def bind_socket(address: Endpoint) -> socket.socket:
    """Return a socket that listens at the address. Raise UsageError `usage.value`."""
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, protocol)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(place)
            listening.listen(128)
        except OSError:
            listening.close()
            raise
    except OSError as error:
        what = f"`--http`: cannot listen on {address.url_host}:{address.port}: {error.strerror or error}"
        raise UsageError(
            "usage.value", what, hint="give another port, or 0 for any free one"
        ) from error
    return listening


def redirect_standard_streams() -> None:
    """Redirect file descriptors 0 and 1 to the null device, so that functions and child processes
    cannot use them."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1):
        os.dup2(nowhere, standard)
    os.close(nowhere)
