"""Where a server listens, and what it leaves behind for that."""

from __future__ import annotations

import os
import socket
from ipaddress import ip_address
from typing import NamedTuple

from cogcli.core.errors import UsageError


class Endpoint(NamedTuple):
    """Where to listen. An empty host never occurs."""

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
        """Whether it stands for every address of this machine."""
        try:
            return ip_address(self.host).is_unspecified
        except ValueError:
            return False

    @property
    def written(self) -> str:
        """The host as URLs have it."""
        return f"[{self.host}]" if ":" in self.host else self.host


def bind_socket(address: Endpoint) -> socket.socket:
    """A socket that listens there. Raises UsageError."""
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
        what = f"`--http`: cannot listen on {address.written}:{address.port}: {error.strerror or error}"
        raise UsageError("usage.value", what, hint="give another port, or 0 for any free one") from error
    return listening


def leave_standard_streams() -> None:
    """Descriptors 0 and 1 lead nowhere from now on: functions and their children read and print past everybody."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1):
        os.dup2(nowhere, standard)
    os.close(nowhere)
