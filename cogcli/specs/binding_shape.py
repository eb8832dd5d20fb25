"""The shape and the rules of bindings (docs/reference/binding.md#keys)."""

from __future__ import annotations

import re
from typing import Final

from cogcli.base.jsonvalue import Json
from cogcli.base.problems import KeyPath
from cogcli.declarations.binding_spec import Binding
from cogcli.specs.common_rules import check_headers
from cogcli.specs.credentials import address_holds_credential, find_written_out
from cogcli.specs.plausible_syntax import find_plausible
from cogcli.specs.problem_report import ProblemReport
from cogcli.specs.protocol import Grammar, Protocols
from cogcli.specs.response_headers import UNREAD, header_of
from cogcli.specs.shape import RecordShape, is_ignored
from cogcli.specs.shape_of_spec import shape_of_spec, with_protocols
from cogcli.specs.step_values import parts_of
from cogcli.specs.template import (
    AS,
    FILE,
    FILE_FORMS,
    TemplateFault,
    files_in,
    find_mixed_literals,
    slots_of,
    texts,
)
from cogcli.specs.unchecked import object_at, text_at, value_at

RESPONSE_PATH: Final = re.compile(r"response(?:\.[^.\s]+){0,16}")


def binding_shape(protocols: Protocols) -> RecordShape:
    """Return the shape of a binding."""
    return with_protocols(shape_of_spec(Binding), protocols)


def check_binding(raw: Json, report: ProblemReport, protocols: Protocols) -> None:
    """Report faults of a single binding that its shape cannot express."""
    protocol = text_at(raw, "protocol")
    spoken = protocols.get(protocol or "")
    grammar = spoken.grammar() if spoken else None
    if grammar:
        _check_operation(text_at(raw, "operation") or "", grammar, report)
    _check_request(value_at(raw, "request"), report)
    _check_files(raw, grammar, report)
    _check_credentials(raw, report)
    _check_response(object_at(raw, "response"), grammar, report)
    _check_page(raw, grammar, report)
    check_headers(raw, report)
    # Keys that the protocol does not use (docs/reference/binding.md#metadata).
    for key in grammar.unused if grammar else ():
        if value_at(raw, "metadata", key) is not None:
            message = f"`metadata.{key}` has no meaning for {protocol}"
            report.warn("binding.unused", ("metadata", key), message, hint="remove it", key=True)


def _check_operation(operation: str, grammar: Grammar, report: ProblemReport) -> None:
    expected = grammar.operation(operation) if operation.strip() else ""
    if expected:
        message = f"operation `{operation}`, expected {expected}"
        report.error("binding.operation", ("operation",), message)


def _check_response(response: Json, grammar: Grammar | None, report: ProblemReport) -> None:
    """Report outputs whose value is not read from the response, and headers that are not read."""
    for name, value in response.items():
        text = text_at(value) or ""
        if header := header_of(text):
            _check_header(name, header, grammar, report)
            continue
        if is_ignored(name) or RESPONSE_PATH.fullmatch(text) or _OF_SERVICE.search(text):
            continue
        message = f"`response.{name}` is a literal, not read from the reply"
        hint = f"write {_suggest_response_path(text)}, to read it"
        report.warn("response.literal", ("response", name), message, hint=hint)


def _check_header(name: str, header: str, grammar: Grammar | None, report: ProblemReport) -> None:
    """Report a header of a reply that cannot be read."""
    if header in UNREAD:
        message = f"`response.{name}`: header `{header}` is never read"
    elif grammar and not grammar.has_headers:
        message = f"`response.{name}`: replies of this protocol have no headers that are read"
    else:
        return
    report.error("header.name", ("response", name), message, hint="leave it out")


def _check_page(raw: Json, grammar: Grammar | None, report: ProblemReport) -> None:
    """Report keys of `page` that contradict each other or other keys of the binding."""
    page = object_at(raw, "page")
    if not page:
        return
    items = text_at(page, "items") or ""
    fault = _find_fault_of_keys({key for key, value in page.items() if value is not None})
    if grammar and not grammar.has_headers:
        fault = f"{raw['protocol']} has no pages", "remove `page`"
    elif not fault and not RESPONSE_PATH.fullmatch(text_at(raw, "response", items) or ""):
        fault = f"`{items}` is not read from the reply", f"map response.{items} to a list"
    if fault:
        message, hint = fault
        report.error("binding.page", ("page",), f"`page`: {message}", hint=hint, key=True)


def _find_fault_of_keys(present_keys: set[str]) -> tuple[str, str] | None:
    """Return why these keys of `page` contradict each other, with a hint. Return None if they do not."""
    ways = [key for key in ("link", "cursor", "by") if key in present_keys]
    if len(ways) != 1:
        found = " and ".join(ways) or "no way to the next page"
        return found, "write one of link, cursor and by"
    way = ways[0]
    if way != "link" and "send" not in present_keys:
        return f"`{way}` without `send`", "name the key of the request that takes it"
    unused = sorted(present_keys & _UNUSED_IN_PAGES[way])
    if unused:
        return f"`{unused[0]}` has no meaning beside `{way}`", "remove it"
    return None


_UNUSED_IN_PAGES: Final = {
    "link": {"send", "first", "more", "size"},
    "cursor": {"first", "more", "size"},
    "by": set(),
}
"""The keys without effect, by the key that leads to the next page."""


_OF_SERVICE: Final = re.compile(r"\$\{service\.[A-Za-z_][A-Za-z0-9_]*\}")
_HEADS: Final = frozenset(("input",))
_OF_REQUESTS: Final = "write the text by itself, with ${input.NAME} in it"
_OWN_FORM: Final = re.compile(r"\$\{[^}]*\}")


def _suggest_response_path(text: str) -> str:
    """Return the response path that a string resembles: `${response.a}`, `{{ response.a }}`, `$.a`, `a.b`."""
    found = _READS.search(text)
    return f"response.{found[1] or found[2] or found[3]}" if found else "response.PATH"


_READS: Final = re.compile(
    r"\bresponse\.([\w.-]*\w)|^\$\.([\w.-]*\w)$|^([A-Za-z_][\w-]*(?:\.[\w-]+)*)$"
)


def _check_request(request: object, report: ProblemReport) -> None:
    for path in find_mixed_literals(request, ("request",)):
        message = "`$literal` has other keys next to it"
        report.error("request.template", path, message, hint="remove the other keys", key=True)
    for part in parts_of(request, ("request",)):
        if part.kind == "text":
            message = f"`{_join_path(part.path)}`: a request has no `$text`"
            report.error("request.template", part.path, message, hint=_OF_REQUESTS)
    for path, text in texts(request, ("request",)):
        _check_template(text, path, report)


def _check_template(text: str, path: KeyPath, report: ProblemReport) -> None:
    """Report a string that is not a template, and a string with a part that looks like a reference."""
    try:
        slots = slots_of(text)
    except TemplateFault as fault:
        hint = "write input.NAME, ${input.NAME}, or {$literal: text}"
        report.error("request.template", path, f"`{_join_path(path)}`: {fault}", hint=hint)
        return
    if any(slot.is_whole_value for slot in slots):
        return
    found = find_plausible(_OWN_FORM.sub("", text), _HEADS, known_only=True)
    if found:
        meant = re.sub(r"^inputs\.", "input.", found.path)
        right = f"${{{meant}}}" if found.fills else meant
        message = f"`{_join_path(path)}`: `{found.found[:60]}` is not filled in"
        hint = f"write {right}, or {{$literal: ...}} for this very text"
        report.error("request.template", path, message, hint=hint)


def _check_files(raw: Json, grammar: Grammar | None, report: ProblemReport) -> None:
    """Report each invalid `$file`, and every `$file` if the protocol sends no files."""
    for path, value in files_in(value_at(raw, "request"), ("request",)):
        label = f"`{_join_path(path)}`"
        whole = _is_whole(text_at(value, FILE) or "")
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
    """Return whether a template is a single reference to an input, without other text."""
    try:
        slots = slots_of(text)
    except TemplateFault:
        return False
    return any(slot.is_whole_value and not slot.of_service for slot in slots)


def _check_credentials(raw: Json, report: ProblemReport) -> None:
    """Report credentials written in a binding.

    They belong in the service. A header may also read them from an environment variable.
    """
    hint = "give the service auth_ref, or a header with ${NAME}"
    for path in find_written_out(value_at(raw, "request"), _is_fixed, ("request",)):
        message = f"`{_join_path(path)}` holds a secret as written text"
        report.error("secret.literal", path, message, hint=hint)
    if address_holds_credential(text_at(raw, "operation") or ""):
        report.error(
            "secret.literal", ("operation",), "`operation` holds a secret in its query", hint=hint
        )


def _is_fixed(text: str) -> bool:
    """Return whether a string of a request contains no reference to the input."""
    try:
        return not slots_of(text)
    except TemplateFault:
        return False


def _join_path(path: KeyPath) -> str:
    return ".".join(map(str, path))
