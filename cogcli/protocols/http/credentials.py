"""The credentials of a call: values of `auth`, resolved and placed (docs/reference/protocols.md#credentials)."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Final
from urllib.parse import quote

from cogcli.base.errors import RequestMappingError
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.service_spec import Credential, Service
from cogcli.protocols.http.client_tokens import ClientTokens
from cogcli.protocols.http.headers import AUTHORIZATION, require_trusted
from cogcli.protocols.invoker import CallLimits
from cogcli.protocols.secrets import Secrets
from cogcli.specs.id_grammar import is_sendable

_NOT_IN_COOKIES: Final = frozenset(' ",;\\\t')


class PlacedCredentials(NamedTuple):
    """Credentials by the place where they are sent. No record has their values."""

    headers: dict[str, str]
    query: tuple[tuple[str, str], ...] = ()
    """Names and encoded values."""
    cookies: tuple[str, ...] = ()
    clients: tuple[Credential, ...] = ()
    """The clients of OAuth 2 whose tokens are in `headers`."""


NO_CREDENTIALS: Final = PlacedCredentials({})


def place_credentials(
    service: Service,
    chosen: Iterable[Credential],
    secrets: Secrets,
    tokens: ClientTokens,
    limits: CallLimits,
) -> PlacedCredentials:
    """Return the chosen credentials with their values.

    Raise ServiceResolutionError `service.untrusted`, `env.missing` or `env.extra`, RequestMappingError
    `request.value`, and the errors of `ClientTokens.token`. Nothing of the call has left then."""
    headers: dict[str, str] = {}
    query, cookies, clients = [], [], []
    for credential in chosen:
        require_trusted(service)
        if credential.api_key is not None:
            name, value = credential.name or "", secrets.resolve(credential.api_key)
            if credential.place == "query":
                query.append((quote(name, safe=""), quote(value, safe="")))
            elif credential.place == "cookie":
                cookies.append(_cookie_header(service, name, value))
            else:
                headers[name] = value
            continue
        if credential.client_id is not None:
            clients.append(credential)
            value = f"Bearer {tokens.token(service, credential, limits)}"
        elif credential.user is not None:
            value = basic_value(secrets, credential.user, credential.password or "")
        else:
            value = f"{credential.word} {secrets.resolve(credential.bearer or '')}"
        headers[AUTHORIZATION] = value
    return PlacedCredentials(headers, tuple(query), tuple(cookies), tuple(clients))


def basic_value(secrets: Secrets, user: str, password: str) -> str:
    """Return the value of `Authorization: Basic` for two places. Raise RequestMappingError
    `request.value` for a name with a colon, which ends it."""
    name = secrets.read(user)
    if ":" in name:
        text = f"the name of a user that `{user}` gives holds a colon"
        raise RequestMappingError("request.value", text, left=False)
    pair = f"{name}:{secrets.resolve(password)}".encode()
    encoded = base64.b64encode(pair).decode()
    secrets.add_secret(encoded)
    return f"Basic {encoded}"


def _cookie_header(service: Service, name: str, value: str) -> str:
    if not is_sendable(value) or _NOT_IN_COOKIES.intersection(value):
        text = f"service `{service.id}`: the value of cookie `{name}` holds characters that no cookie may hold"
        raise RequestMappingError("request.value", text, left=False)
    return f"{name}={value}"
