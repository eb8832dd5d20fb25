"""The sessions of the clients of one gateway, and which one a request belongs to (docs/reference/gateway.md#http).

What a request says chooses its session among those of the token's user, and nothing else: it permits nothing.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from typing import Final, Literal

from cogcli.base.errors import OverloadedError, RejectedError
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.session_events import SessionEnding
from cogcli.declarations.value_types import Json
from cogcli.gateway.session import GatewaySession
from cogcli.specs.unchecked import text_at

MOST_SESSIONS: Final = 64
"""The most sessions of a gateway that are alive at a time."""
SESSION_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
"""The grammar of the names of sessions."""
_SOURCE: Final = re.compile(r"token|header:[A-Za-z0-9-]{1,64}|meta:[A-Za-z0-9._/-]{1,128}")
_CONNECTION: Final = "mcp-session-id"
OnUnresolved = Literal["deny", "new"]


class ClientIdentity(NamedTuple):
    """The identity that a request claims for its client. No member is verified."""

    name: str
    """The name and the version that the client reports about itself."""
    headers: Mapping[str, str]
    """The headers of an HTTP request, by their names in lower case."""
    meta: Json


class SessionRule(NamedTuple):
    """The rule that assigns a request to a session."""

    source: str = "token"
    """`token`: all requests are of one session. `header:NAME` or `meta:NAME`: the value is the session's name."""
    on_unresolved: OnUnresolved = "deny"
    """Whether a request without a usable name is refused, or gets a session of its own."""

    def find_name(self, client: ClientIdentity) -> str:
        """Return the session name in a request; empty if the name is missing or invalid."""
        kind, _, name = self.source.partition(":")
        given = client.headers.get(name.lower()) if kind == "header" else text_at(client.meta, name)
        return given if given is not None and SESSION_NAME.fullmatch(given) else ""


ONE_SESSION: Final = SessionRule()


def is_session_source(text: str) -> bool:
    """Return whether a text names where the name of a session is."""
    return _SOURCE.fullmatch(text) is not None


class SessionPool:
    """The sessions of a gateway by name."""

    def __init__(
        self, begin: Callable[[str, str], GatewaySession], rule: SessionRule, name: str = ""
    ) -> None:
        """`begin` returns a new session with a name, of a client that calls itself something. `name` is that of the
        only session, if the rule has one.
        """
        self._begin = begin
        self._rule = rule
        self._name = name
        self._lock = threading.Lock()
        self._sessions: dict[str, GatewaySession] = {}
        self._count = 0
        self._closed = False

    def find(self, client: ClientIdentity) -> GatewaySession:
        """Return the session of a request, which may be new. Raise RejectedError for a request without a usable name,
        OverloadedError if too many sessions are alive.
        """
        if self._rule.source == "token":
            return self._find_or_open(f"token:{self._name}", self._name, client)
        name = self._rule.find_name(client)
        if name:
            return self._find_or_open(f"name:{name}", name, client)
        if self._rule.on_unresolved == "deny":
            text = f"the request names no session by `{self._rule.source}`"
            raise RejectedError("call.rejected", text, left=False)
        connection = client.headers.get(_CONNECTION, "")
        self._count += 1
        return self._find_or_open(f"mcp:{connection or self._count}", "", client)

    def peek(self, client: ClientIdentity) -> GatewaySession | None:
        """Return the session of a request; None if it has none yet. None is begun."""
        name = self._rule.find_name(client)
        if self._rule.source == "token":
            key = f"token:{self._name}"
        else:
            key = f"name:{name}" if name else f"mcp:{client.headers.get(_CONNECTION, '')}"
        return self._sessions.get(key)

    def _find_or_open(self, key: str, name: str, client: ClientIdentity) -> GatewaySession:
        with self._lock:
            found = self._sessions.get(key)
            if found is not None:
                return found
            if self._closed:
                raise OverloadedError("call.overloaded", "the gateway is ending", left=False)
            if len(self._sessions) >= MOST_SESSIONS:
                self._drop_sealed()
            if len(self._sessions) >= MOST_SESSIONS:
                text = f"{len(self._sessions)} sessions of this gateway are alive"
                raise OverloadedError("call.overloaded", text, left=False)
            session = self._sessions[key] = self._begin(name, client.name)
            return session

    def _drop_sealed(self) -> None:
        """Forget the sessions whose run is sealed. The next call of such a session begins a new run, which refers to
        the old one.
        """
        self._sessions = {key: each for key, each in self._sessions.items() if not each.is_sealed}

    @property
    def live_count(self) -> int:
        """The number of sessions whose run has not ended."""
        return sum(each.has_run for each in list(self._sessions.values()))

    def stop_all(self, reason: SessionEnding) -> None:
        """Begin to end all sessions, without waiting."""
        with self._lock:
            self._closed = True
        for session in list(self._sessions.values()):
            session.stop(reason)

    def close(self, reason: SessionEnding) -> None:
        """End all sessions, and wait until their episodes are sealed."""
        self.stop_all(reason)
        for session in list(self._sessions.values()):
            session.close(reason)
