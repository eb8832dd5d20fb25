"""The shape and the rules of bindings (docs/reference/binding.md#keys)."""

from __future__ import annotations

import re
from typing import Any, Final

from cogcli.base.jsonvalue import object_of
from cogcli.declarations.binding_spec import Binding
from cogcli.specs.common_rules import check_headers
from cogcli.specs.credentials import address_holds_credential, find_written_out
from cogcli.specs.plausible_syntax import find_plausible
from cogcli.specs.problem_report import ProblemReport
from cogcli.specs.protocol import Grammar, Protocols
from cogcli.specs.shape import RecordShape, is_ignored
from cogcli.specs.shape_of_spec import shape_of_spec, with_protocols
from cogcli.specs.step_values import parts_of
from cogcli.specs.template import (
    AS,
    FILE,
    FILE_FORMS,
    TemplateFault,
    TemplateSlot,
    files_in,
    find_mixed_literals,
    parse_template,
    texts,
)

RESPONSE_PATH: Final = re.compile(r"response(?:\.[^.\s]+){0,16}")


def binding_shape(protocols: Protocols) -> RecordShape:
    """Return the shape of a binding."""
    return with_protocols(shape_of_spec(Binding), protocols)


def check_binding(raw: dict[str, Any], report: ProblemReport, protocols: Protocols) -> None:
    """Report faults of a single binding that its shape cannot express."""
    protocol, operation = raw.get("protocol"), raw.get("operation")
    grammar = (
        protocols[protocol].grammar()
        if isinstance(protocol, str) and protocol in protocols
        else None
    )
    if grammar and isinstance(operation, str) and operation.strip():
        expected = grammar.operation(operation)
        if expected:
            message = f"operation `{operation}`, expected {expected}"
            report.error("binding.operation", ("operation",), message)
    _check_request(raw.get("request"), report)
    _check_files(raw, grammar, report)
    _check_credentials(raw, report)
    for name, value in object_of(raw.get("response")).items():
        read = isinstance(value, str) and (
            RESPONSE_PATH.fullmatch(value) or _OF_SERVICE.search(value)
        )
        if not is_ignored(name) and not read:
            message, hint = (
                f"`response.{name}` is a literal, not read from the reply",
                f"write {_suggest_response_path(value)}, to read it",
            )
            report.warn("response.literal", ("response", name), message, hint=hint)
    check_headers(raw, report)
    # Keys that the protocol does not use (docs/reference/binding.md#metadata).
    for key in grammar.unused if grammar else ():
        if object_of(raw.get("metadata")).get(key) is not None:
            message = f"`metadata.{key}` has no meaning for {protocol}"
            report.warn("binding.unused", ("metadata", key), message, hint="remove it", key=True)


_OF_SERVICE: Final = re.compile(r"\$\{service\.[A-Za-z_][A-Za-z0-9_]*\}")
_HEADS: Final = frozenset(("input",))
_OF_REQUESTS: Final = "write the text by itself, with ${input.NAME} in it"
_OWN_FORM: Final = re.compile(r"\$\{[^}]*\}")


def _suggest_response_path(value: Any) -> str:
    """Return the response path in a value that resembles one: `${response.a}`, `{{ response.a }}`, `$.a`, `a.b`."""
    found = _READS.search(value) if isinstance(value, str) else None
    return f"response.{found[1] or found[2] or found[3]}" if found else "response.PATH"


_READS: Final = re.compile(
    r"\bresponse\.([\w.-]*\w)|^\$\.([\w.-]*\w)$|^([A-Za-z_][\w-]*(?:\.[\w-]+)*)$"
)


def _check_request(request: Any, report: ProblemReport) -> None:
    for path in find_mixed_literals(request, ("request",)):
        message = "`$literal` has other keys next to it"
        report.error("request.template", path, message, hint="remove the other keys", key=True)
    for part in parts_of(request, ("request",)):
        if part.kind == "text":
            message = f"`{_join_path(part.path)}`: a request has no `$text`"
            report.error("request.template", part.path, message, hint=_OF_REQUESTS)
    for path, text in texts(request, ("request",)):
        try:
            whole = any(
                isinstance(piece, TemplateSlot) and piece.whole for piece in parse_template(text)
            )
        except TemplateFault as fault:
            hint = "write input.NAME, ${input.NAME}, or {$literal: text}"
            report.error("request.template", path, f"`{_join_path(path)}`: {fault}", hint=hint)
            continue
        found = None if whole else find_plausible(_OWN_FORM.sub("", text), _HEADS, named=True)
        if found:
            right = re.sub(r"^inputs\.", "input.", found.path)
            hint = f"write {f'${{{right}}}' if found.fills else right}, or {{$literal: ...}} for this very text"
            message = f"`{_join_path(path)}`: `{found.found[:60]}` is not filled in"
            report.error("request.template", path, message, hint=hint)


def _check_files(raw: dict[str, Any], grammar: Grammar | None, report: ProblemReport) -> None:
    """Report each invalid `$file`, and each one for a protocol that sends no files."""
    for path, value in files_in(raw.get("request"), ("request",)):
        label = f"`{_join_path(path)}`"
        source = value[FILE]
        whole = isinstance(source, str) and _is_whole(source)
        if not whole or value.keys() - {FILE, AS} or value.get(AS) not in FILE_FORMS:
            message = f"{label}: expected {{$file: input.NAME, as: {' or '.join(FILE_FORMS)}}}"
            report.error(
                "request.template", path, message, hint="name the input that holds the path"
            )
        elif grammar and not grammar.sends_files:
            message = f"{label}: {raw['protocol']} sends no files"
            report.error(
                "request.template", path, message, hint="let the function read the path itself"
            )


def _is_whole(text: str) -> bool:
    """Return whether a template consists of a single input."""
    try:
        parts = parse_template(text)
    except TemplateFault:
        return False
    return any(
        isinstance(part, TemplateSlot) and part.whole and not part.of_service for part in parts
    )


def _check_credentials(raw: dict[str, Any], report: ProblemReport) -> None:
    """Report credentials written out in a binding. They belong in the service, or in a header as a variable."""
    hint = "give the service auth_ref, or a header with ${NAME}"
    for path in find_written_out(raw.get("request"), _is_fixed, ("request",)):
        message = f"`{_join_path(path)}` holds a secret as written text"
        report.error("secret.literal", path, message, hint=hint)
    operation = raw.get("operation")
    if isinstance(operation, str) and address_holds_credential(operation):
        report.error(
            "secret.literal", ("operation",), "`operation` holds a secret in its query", hint=hint
        )


def _is_fixed(text: str) -> bool:
    """Return whether a text of a request has no reference to the input."""
    try:
        return all(isinstance(piece, str) for piece in parse_template(text))
    except TemplateFault:
        return False


def _join_path(path: tuple[Any, ...]) -> str:
    return ".".join(map(str, path))
