"""`services login` and `services logout` (docs/reference/mcp.md#logins)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from cogcli.app.services import build_call_context, find_service
from cogcli.app.settings import Settings
from cogcli.base.errors import ServiceResolutionError, UsageError
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.login_record import LoginRecord
from cogcli.declarations.service_spec import Service
from cogcli.protocols.mcp import login_flow
from cogcli.protocols.mcp.connect import require_sdk
from cogcli.protocols.mcp.login_scopes import MAX_SCOPES, is_scope
from cogcli.protocols.mcp.login_store import LoginStore
from cogcli.protocols.mcp.login_tokens import revoke
from cogcli.specs.eligibility import untrusted_reasons

if TYPE_CHECKING:
    from collections.abc import Callable

_LOCK_SECONDS = 30.0


class Logout(NamedTuple):
    """The result of `services logout`: whether a login existed, and whether its server revoked it."""

    existed: bool
    revoked: bool
    until: str | None = None
    """The expiry of a token that was not revoked; None if unknown."""


def log_in(
    settings: Settings, service_id: str, scopes: list[str], show: Callable[[str, str], None], seconds: float
) -> LoginRecord:  # fmt: skip
    """Log in to a service and keep the login; return it. `show` receives the authorization server and
    the address that a person opens, who has `seconds` to agree. `scopes` are asked for in addition to those of the file
    or the server, and to those of the login that it replaces.

    Raise UsageError for a service without `login`, ServiceResolutionError, CallTimeoutError, and the
    errors of an HTTP call. Then an earlier login is unchanged."""
    service = _find_service(settings, service_id)
    for reason in untrusted_reasons(service):
        hint = "trust the project: cogcli config trust"
        raise ServiceResolutionError(reason.code, reason.text, hint=hint)
    require_sdk()
    context = build_call_context(settings)
    store = LoginStore(context.state_dir, service)
    earlier = store.describe()
    issuer = earlier.issuer if earlier else ""
    added = with_earlier_scopes(scopes, earlier) if scopes else ()
    party = login_flow.LoginParty(service, context, store.layer, issuer, added)
    login = login_flow.log_in(party, show, seconds)
    with store.locked(time.monotonic() + _LOCK_SECONDS):
        return store.write(login)


def with_earlier_scopes(scopes: list[str], earlier: LoginRecord | None) -> tuple[str, ...]:
    """Return scopes after those of an earlier login, so that a person who adds one loses no other. What a server wrote
    into that login counts if it is a scope."""
    known = ((earlier.scope if earlier else None) or "").split()
    return (*[scope for scope in known if is_scope(scope)][:MAX_SCOPES], *scopes)


def log_out(settings: Settings, service_id: str, *, forget: bool) -> Logout:
    """Revoke a login if its server can, then remove it. With `forget` the server is not contacted. Raise UsageError for
    a service without `login`. If the revocation fails, its error is raised and the login is unchanged.
    """
    service = _find_service(settings, service_id)
    context = build_call_context(settings)
    store = LoginStore(context.state_dir, service)
    with store.locked(time.monotonic() + _LOCK_SECONDS):
        if forget:
            store.remove()
            return Logout(existed=True, revoked=False)
        login = store.read(context.secrets)
        if login is None:
            return Logout(existed=False, revoked=False)
        revoked = revoke(service, context, login)
        store.remove()
    return Logout(existed=True, revoked=revoked, until=login.until)


def _find_service(settings: Settings, service_id: str) -> Service:
    """Return a service that has a login. Raise UsageError for any other service."""
    service = find_service(settings, service_id)
    if service.keys.login is None:
        raise UsageError(
            "usage.value",
            f"service `{service.id}` has no login",
            expected="an mcp service with `url` and `login`",
            hint=f"write login: {{}} in {service.file}",
        )
    return service
