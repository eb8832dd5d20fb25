"""The scopes of a login, and the refusal of a server that wants more of them (docs/reference/mcp.md#scopes).

A server may name any text as a scope. What a terminal cannot show or a shell would interpret becomes no command.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from cogcli.base.errors import ServiceResolutionError
from cogcli.base.http import HttpReply
from cogcli.declarations.service_spec import Service
from cogcli.protocols.http.failures import quote
from cogcli.protocols.mcp.grammar import SCOPE
from cogcli.protocols.mcp.traffic import McpFault
from cogcli.protocols.secrets import Secrets

MAX_SCOPES: Final = 20
_MAX_CHALLENGE: Final = 8 * 1024
_SCOPE: Final = re.compile(SCOPE)
_PLAIN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/+@=-]*")
"""A scope that every shell takes as one word, and that is no flag."""
_MEMBER: Final = re.compile(r'([A-Za-z_-]{1,40})\s?=\s?(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))')
"""A parameter of a challenge (RFC 9110, 11.2). Text within quotes is a value, never a parameter."""


def is_scope(text: str) -> bool:
    """Return whether a text is one scope."""
    return _SCOPE.fullmatch(text) is not None


def join_scopes(*parts: Iterable[str]) -> str | None:
    """Return scopes without repeats as one text, in the order of their first mention; None without any."""
    return " ".join(dict.fromkeys(scope for part in parts for scope in part)) or None


def find_scope_fault(service: Service, reply: HttpReply, secrets: Secrets) -> McpFault | None:
    """Return the fault `service.login` of a refusal because the login lacks scopes (RFC 6750, 3.1); None for any other
    refusal. It names the scopes, and the command that asks for them if each can be typed as shown.
    """
    found = _challenge_members(reply.header("www-authenticate"))
    if reply.status != 403 or found.get("error") != "insufficient_scope":
        return None
    scopes = list(dict.fromkeys(found.get("scope", "").split()))
    text = f"service `{service.id}`: its login lacks scopes that this call needs"
    text += f": {quote(' '.join(scopes), secrets)}" if scopes else ", and the server names none"
    command = f"cogcli services login {service.id}"
    if _can_be_typed(scopes):
        hint = " ".join([command, *(f"--scope {scope}" for scope in scopes)])
    else:
        place = service.file or "its file"
        hint = f"write the scopes that its documentation names as `login.scopes` in {place}, then {command}"
    return McpFault(ServiceResolutionError, "service.login", text, hint)


def _can_be_typed(scopes: list[str]) -> bool:
    """Return whether scopes can be part of a command that a person copies."""
    is_plain = all(is_scope(each) and _PLAIN.fullmatch(each) for each in scopes)
    return 0 < len(scopes) <= MAX_SCOPES and is_plain


def _challenge_members(challenge: str) -> dict[str, str]:
    """Return the parameters of a `WWW-Authenticate` header; of a repeated one the first."""
    found: dict[str, str] = {}
    for name, quoted, word in _MEMBER.findall(challenge[:_MAX_CHALLENGE]):
        found.setdefault(name.lower(), quoted or word)
    return found
