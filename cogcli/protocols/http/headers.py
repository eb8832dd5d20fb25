"""The headers of one HTTP request (docs/reference/protocols.md#headers).

1. Names are compared without regard to case; later sources win: defaults, service, binding, header parameters,
   credentials.
2. A name is a token that the connection does not set itself; a value is visible ASCII.
3. `${NAME}` and `auth_ref` are resolved here, at the call, for trusted layers only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from cogcli import __version__
from cogcli.base.errors import RequestMappingError, ServiceResolutionError
from cogcli.declarations.service_spec import Service
from cogcli.protocols.invoker import InvocationRequest
from cogcli.protocols.secrets import Secrets
from cogcli.specs.id_grammar import PLACEHOLDER, is_sendable, is_settable

Headers = tuple[tuple[str, str], ...]
AUTHORIZATION: Final = "Authorization"
_MAX_BYTES: Final = 64 * 1024


def default_headers(
    request: InvocationRequest, *, accept: str, content_type: str = ""
) -> dict[str, str]:
    """Return the default headers of a request. Service and binding add their own headers."""
    found = {"Accept": accept, "User-Agent": f"cogcli/{__version__}"}
    if content_type:
        found["Content-Type"] = content_type
    if request.traceparent:
        found["traceparent"] = request.traceparent
    if request.effect in ("idempotent", "effect"):
        found["Idempotency-Key"] = request.idempotency_key
    return found


def declared_headers(
    service: Service, secrets: Secrets, written: Mapping[str, str], *, trusted: bool
) -> dict[str, str]:
    """Return the headers of a service or binding file, with variables replaced.

    Raise ServiceResolutionError `env.missing` or `service.untrusted`."""
    if not trusted and any("${" in value for value in written.values()):
        raise _untrusted_error(service)
    return {name: secrets.expand(value) for name, value in written.items()}


def merge_headers(
    request: InvocationRequest,
    secrets: Secrets,
    ours: Mapping[str, str],
    parameters: Mapping[str, str],
    auth: Mapping[str, str] | None = None,
    cookies: Sequence[str] = (),
) -> Headers:
    """Return all headers of a request, each name once. `auth` are those of the credentials; None for
    the token of `auth_ref` in Authorization.

    Raise RequestMappingError `request.value` or `request.size`, and the errors of
    `declared_headers`."""
    service, binding = request.service, request.binding
    layers = {
        "": ours,
        "service": declared_headers(
            service, secrets, service.metadata.headers, trusted=service.trusted
        ),
        "binding": declared_headers(
            service, secrets, binding.metadata.headers, trusted=binding.trusted
        ),
        "parameter": parameters,
        "auth": credentials(service, secrets) if auth is None else auth,
    }
    found: dict[str, tuple[str, str]] = {}
    for source, layer in layers.items():
        for name, value in layer.items():
            sent = value.strip(" \t")
            _require_sendable(request, source, name, sent)
            found[name.lower()] = (name, sent)
    if cookies:
        found["cookie"] = ("Cookie", "; ".join(cookies))
    if sum(len(name) + len(value) + 4 for name, value in found.values()) > _MAX_BYTES:
        text = f"the headers of service `{service.id}` have more than {_MAX_BYTES:,} bytes"
        raise RequestMappingError("request.size", text, left=False)
    return tuple(found.values())


def credentials(
    service: Service, secrets: Secrets, header: str = AUTHORIZATION, word: str = "Bearer"
) -> dict[str, str]:
    """Return the header of `auth_ref`: a word and a token, or the bare value for another header than
    Authorization.

    It is empty without `auth_ref`. Raise ServiceResolutionError `service.untrusted`, `env.missing`
    or `env.extra`."""
    ref = service.auth_ref
    if ref is None:
        return {}
    require_trusted(service)
    value = secrets.resolve(ref)
    return {header: f"{word} {value}" if header.lower() == AUTHORIZATION.lower() else value}


def _require_sendable(request: InvocationRequest, source: str, name: str, value: str) -> None:
    """Raise RequestMappingError `request.value`, with header and source but without the value: it
    may be secret."""
    if not is_settable(name):
        raise RequestMappingError(
            "request.value", f"header `{name[:80]}` cannot be set", left=False
        )
    if not is_sendable(value):
        text = f"header `{name}`: its value holds more than visible ASCII characters"
        raise RequestMappingError(
            "request.value", text, hint=_origin_hint(request, source, name), left=False
        )


def _origin_hint(request: InvocationRequest, source: str, name: str) -> str:
    """Return a hint with the source of a header's value, in the words of the spec files."""
    service, binding = request.service, request.binding
    if source == "auth":
        ref = f"auth_ref `{service.auth_ref}`" if service.auth_ref else "auth"
        return f"look at what {ref} in {service.file} gives"
    if source == "parameter":
        return f"look at the value of request key `{name}` or `header.{name}`"
    if not source:
        return ""
    spec = service if source == "service" else binding
    variables = " and ".join(
        f"`{each}`" for each in PLACEHOLDER.findall(spec.metadata.headers[name])
    )
    return f"look at {f'variable {variables}, named' if variables else 'the header'} in {spec.file}"


def require_trusted(service: Service) -> None:
    """Raise ServiceResolutionError `service.untrusted` for a service that gets no secret."""
    if not service.trusted:
        raise _untrusted_error(service)


def _untrusted_error(service: Service) -> ServiceResolutionError:
    text = f"service `{service.id}`: its layer is not trusted, so it gets no variable and no secret"
    return ServiceResolutionError("service.untrusted", text, hint="cogcli config trust", left=False)
