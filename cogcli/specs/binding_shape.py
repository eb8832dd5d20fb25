"""The shape and the rules of bindings (docs/reference/binding.md#keys)."""

from __future__ import annotations

import re
from typing import Any, Final

from cogcli.core.jsonvalue import object_of
from cogcli.specs.common_shape import (
    CAPABILITY_REF,
    CONFORMANCE,
    FREE,
    HEADERS,
    PLAIN_REF,
    TIMEOUT,
    check_headers,
)
from cogcli.specs.credentials import address_holds_credential, find_written_out
from cogcli.specs.problem_report import ProblemReport
from cogcli.specs.protocol import Protocols
from cogcli.specs.shape import Data, Keys, MapOf, NumberShape, Record, Text, is_ignored, record, required
from cogcli.specs.template import TemplateFault, find_mixed_literals, parse_template, texts

METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD")
RESPONSE_MODES: Final = ("json", "text", "raw")
MAX_BYTES: Final = 64 * 1024 * 1024
RESPONSE_PATH: Final = re.compile(r"response(?:\.[^.\s]+){0,16}")

_METADATA: Final[Keys] = {
    "method": Text(choices=METHODS),
    "timeout_seconds": TIMEOUT,
    "headers": HEADERS,
    "response_mode": Text(choices=RESPONSE_MODES),
    "retry_count": NumberShape(least=0, most=10, whole=True),
    "retry_backoff_base": NumberShape(least=0, most=3600),
    "retry_backoff_factor": NumberShape(least=1, most=10),
    "max_request_bytes": NumberShape(least=1, most=MAX_BYTES, whole=True),
    "max_response_bytes": NumberShape(least=1, most=MAX_BYTES, whole=True),
    "fallback_binding_id": Text(empty=False),
    "conformance_profile": CONFORMANCE,
    "description": Text(),
    "status": Text(),
}


def binding_shape(protocols: Protocols) -> Record:
    """The shape of a binding."""
    return record(
        {
            "id": required(PLAIN_REF),
            "capability": required(CAPABILITY_REF),
            "service": required(PLAIN_REF),
            "protocol": required(Text(choices=tuple(protocols))),
            "operation": required(Text(empty=False)),
            "request": required(FREE, nullable=True),
            "response": required(MapOf(Data()), nullable=True),
            "metadata": _METADATA,
        }
    )


def check_binding(raw: dict[str, Any], report: ProblemReport, protocols: Protocols) -> None:
    """Report the faults of a binding by itself that its shape cannot express."""
    protocol, operation = raw.get("protocol"), raw.get("operation")
    grammar = protocols[protocol].grammar() if isinstance(protocol, str) and protocol in protocols else None
    if grammar and isinstance(operation, str) and operation.strip():
        expected = grammar.operation(operation)
        if expected:
            message = f"operation `{operation}`, expected {expected}"
            report.error("binding.operation", ("operation",), message)
    _check_request(raw.get("request"), report)
    _check_credentials(raw, report)
    for name, value in object_of(raw.get("response")).items():
        if not is_ignored(name) and not (isinstance(value, str) and RESPONSE_PATH.fullmatch(value)):
            message, hint = (
                f"`response.{name}` is a literal, not read from the reply",
                "write response.PATH to read it",
            )
            report.warn("response.literal", ("response", name), message, hint=hint)
    check_headers(raw, report)
    # Keys that the protocol does not use (docs/reference/binding.md#metadata).
    for key in grammar.unused if grammar else ():
        if object_of(raw.get("metadata")).get(key) is not None:
            message = f"`metadata.{key}` has no meaning for {protocol}"
            report.warn("binding.unused", ("metadata", key), message, hint="remove it", key=True)


def _check_request(request: Any, report: ProblemReport) -> None:
    for path in find_mixed_literals(request, ("request",)):
        message = "`$literal` stands beside other keys"
        report.error("request.template", path, message, hint="let it stand alone", key=True)
    for path, text in texts(request, ("request",)):
        try:
            parse_template(text)
        except TemplateFault as fault:
            hint = "write input.NAME, ${input.NAME}, or {$literal: text}"
            report.error("request.template", path, f"`{_join_path(path)}`: {fault}", hint=hint)


def _check_credentials(raw: dict[str, Any], report: ProblemReport) -> None:
    """Report credentials written out in a binding: they belong into the service, or into a header by a variable."""
    hint = "give the service auth_ref, or a header with ${NAME}"
    for path in find_written_out(raw.get("request"), _is_fixed, ("request",)):
        message = f"`{_join_path(path)}` holds a secret as written text"
        report.error("secret.literal", path, message, hint=hint)
    operation = raw.get("operation")
    if isinstance(operation, str) and address_holds_credential(operation):
        report.error("secret.literal", ("operation",), "`operation` holds a secret in its query", hint=hint)


def _is_fixed(text: str) -> bool:
    """Whether a text of a request holds no reference to the input."""
    try:
        return all(isinstance(piece, str) for piece in parse_template(text))
    except TemplateFault:
        return False


def _join_path(path: tuple[Any, ...]) -> str:
    return ".".join(map(str, path))
