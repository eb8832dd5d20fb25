"""A request as a shell command, with variables instead of secrets
(docs/reference/command-line.md#errors)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from shlex import quote
from typing import Final

from cogcli.base.redact import Redactor
from cogcli.declarations.binding_spec import Binding
from cogcli.declarations.service_spec import Credential, Service
from cogcli.protocols.exchange import ReceivedRequest
from cogcli.specs.id_grammar import PLACEHOLDER

_OURS: Final = frozenset(
    (
        "host", "content-length", "connection", "accept", "accept-encoding", "user-agent", "traceparent",
        "transfer-encoding", "idempotency-key",
    )
)  # fmt: skip
_MAX_LENGTH: Final = 4000


def curl_line(seen: ReceivedRequest, base_url: str, service: Service, binding: Binding) -> str:
    """Return the curl command of the request `seen` to the origin of `base_url`.

    Headers of the specs keep their written values."""
    parts = ["curl"]
    if seen.method != ("POST" if seen.body else "GET"):
        parts += ["-X", seen.method]
    origin = re.match(r"https?://[^/?#]+", base_url, re.IGNORECASE)
    query = f"?{seen.query}" if seen.query else ""
    parts.append(quote(f"{origin[0] if origin else base_url}{seen.path}{query}"))
    for name, value in _curl_headers(seen, service, binding):
        parts += ["-H", value if value.startswith('"') else quote(f"{name}: {value}")]
    if seen.body:
        masked = Redactor().mask(seen.body.decode("utf-8", "replace"))
        parts += ["-d", quote(str(masked))]
    line = " ".join(parts)
    return line if len(line) <= _MAX_LENGTH else f"{line[: _MAX_LENGTH - 1]}…"


def _configured_header(name: str, written: str) -> str:
    """Return a header as the file declares it: with its variables, otherwise masked."""
    if PLACEHOLDER.search(written):
        return _double_quote(f"{name}: {written}")
    return str(Redactor().mask({name: written})[name])


def _curl_headers(
    seen: ReceivedRequest, service: Service, binding: Binding
) -> Iterator[tuple[str, str]]:
    declared = {**service.metadata.headers, **binding.metadata.headers}
    configured = {name.lower(): value for name, value in declared.items()}
    auth = service.auth_ref
    placed = {each.header.lower(): each for each in service.credentials.values()}
    for name, value in seen.headers.items():
        if name in _OURS or (name == "authorization" and auth):
            continue
        if credential := placed.get(name):
            yield name, f'"{name}: {_written_credential(credential)}"'
        elif name in configured:
            yield name, _configured_header(name, configured[name])
        elif value:
            yield name, str(Redactor().mask({name: value})[name])
    if auth:
        yield "authorization", f'"authorization: Bearer ${variable_of(auth)}"'


def _written_credential(credential: Credential) -> str:
    """Return a header's value with shell variables instead of secrets. A value computed from several secrets is one
    variable.
    """
    if credential.api_key:
        return f"${variable_of(credential.api_key)}"
    if credential.bearer:
        return f"{credential.word} ${variable_of(credential.bearer)}"
    return "Bearer $ACCESS_TOKEN" if credential.client_id else "Basic $USER_AND_PASSWORD"


def _double_quote(text: str) -> str:
    """Return a string in double quotes in which the shell expands only `${NAME}`."""
    parts = PLACEHOLDER.split(text)
    plain = [
        re.sub(r'([\\"$`])', r"\\\1", part) if n % 2 == 0 else f"${part}"
        for n, part in enumerate(parts)
    ]
    return f'"{"".join(plain)}"'


def variable_of(auth_ref: str) -> str:
    """Return the name of a variable for the secret of an `auth_ref`, in capitals."""
    name = auth_ref.removeprefix("env:")
    if name.startswith(("file:", "keyring:")):
        name = name.rpartition("/")[2]
    return re.sub(r"[^A-Z0-9_]", "_", name.upper()) or "TOKEN"
