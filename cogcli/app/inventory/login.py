"""What `services show` and `doctor` say of a login (docs/reference/mcp.md#logins)."""

from __future__ import annotations

from collections.abc import Mapping

from cogcli.app.settings.user_dirs import state_home
from cogcli.base.errors import ServiceResolutionError
from cogcli.declarations.login_record import LoginRecord
from cogcli.declarations.service_spec import Service
from cogcli.declarations.value_types import Json
from cogcli.protocols.mcp.login_store import LoginStore, login_error


def describe_login(service: Service, environ: Mapping[str, str], now: str) -> Json:
    """Return the member `login` of `services show`: who is logged in, where and until when. Nothing is
    started or sent, and no secret is read."""
    store = LoginStore(state_home(environ), service)
    try:
        login = store.describe()
    except ServiceResolutionError as error:
        return {"logged_in": False, "why_not": error.message}
    why_not = _find_fault(login, now)
    if login is None:
        return {"logged_in": False, "why_not": why_not}
    return {
        "logged_in": not why_not,
        "why_not": why_not or None,
        "user": login.user,
        "issuer": login.issuer,
        "scope": login.scope,
        "since": login.since,
        "until": login.until,
        "renewable": login.renewable,
        "kept_in": "keyring" if login.keyring else store.path,
    }


def find_login_error(
    service: Service, environ: Mapping[str, str], now: str
) -> ServiceResolutionError | None:
    """Return the error `service.login` with which a run could not use the login of a service; None if it can.
    Nothing is started or sent."""
    try:
        fault = _find_fault(LoginStore(state_home(environ), service).describe(), now)
    except ServiceResolutionError as error:
        return error
    return login_error(service, fault) if fault else None


def _find_fault(login: LoginRecord | None, now: str) -> str:
    if login is None:
        return "there is no login"
    is_late = not login.renewable and login.until is not None and now >= login.until
    return login.ended or ("the token has expired" if is_late else "")
