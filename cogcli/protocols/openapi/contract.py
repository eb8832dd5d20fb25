"""openapi: checks of a binding against its service's document (docs/reference/protocols.md#openapi,
docs/reference/protocols.md#wire-checks)."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator
from typing import Final

from cogcli.base.api_documents.loader import identity_of, with_position
from cogcli.base.api_documents.openapi import (
    Body,
    OpenApiDocument,
    OpenApiOperation,
    Scheme,
    load_openapi,
)
from cogcli.base.json_pointer import DocumentFault
from cogcli.base.problems import Severity, suggest_path
from cogcli.base.schema.lookup import members
from cogcli.declarations.binding_spec import Binding
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.service_spec import Service
from cogcli.protocols.contract_finding import (
    SERVICE,
    UNDESCRIBED,
    ContractFinding,
    ContractJudges,
    OperationContract,
    OperationInput,
    document_finding,
)
from cogcli.protocols.openapi.checks import CHANGING
from cogcli.protocols.openapi.security import is_met, suggest_auth
from cogcli.specs.request_locations import RequestLocation, place_of
from cogcli.specs.template import is_file_input
from cogcli.specs.unchecked import value_at

_EMPTY: Final = {"type": "object", "additionalProperties": False}
"""The schema of an absent reply body, which reads as `{}`."""
_BODILESS: Final = ("204", "205")
"""The statuses whose replies never have a body."""
_TEXT: Final = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}}
_RAW: Final = {
    "type": "object",
    "required": ["content_type"],
    "properties": {key: {"type": "string"} for key in ("body", "body_base64", "content_type")},
    "additionalProperties": False,
}


def document_findings(service: Service) -> Iterator[ContractFinding]:
    """Yield the finding `wire.document` for a document that cannot be used."""
    try:
        document = load_openapi(service)
    except DocumentFault as fault:
        yield document_finding(fault, ("spec_ref",))
        return
    if document and document.server is None and "base_url" not in service.settings:
        message = "its document names no single absolute server, and it has no `base_url`"
        yield ContractFinding(
            "wire.document", "R", ("spec_ref",), message, "add base_url", about=SERVICE
        )


def openapi_findings(
    binding: Binding, capability: Capability, service: Service, source: bytes
) -> Iterator[ContractFinding | OperationContract]:
    """Yield the findings about operation, locations and credentials, then the operation's contract."""
    try:
        document = load_openapi(service)
    except DocumentFault:
        return
    if document is None:
        return
    operation = yield from _find_operation(document, binding, service)
    if operation is None:
        return
    yield from _effect_findings(binding, capability, operation)
    yield from _security_findings(binding, service, operation)
    taken: dict[str, OperationInput] = {}
    places: dict[str, RequestLocation] = {}
    blamed: set[str] = set()  # a value with a wrong place is not reported as missing as well
    yield from _location_findings(binding, operation, places, blamed)
    yield from _page_findings(binding, operation, blamed)
    yield from _parameter_findings(operation, places, taken, blamed)
    yield from _body_findings(operation, places, taken, blamed)
    yield from _file_findings(binding, capability, operation, places, taken)
    reply = _reply_schemas(binding, operation)
    title = f"operation `{operation.title}`"
    described: list[object] = [parameter.schema for parameter in operation.parameters]
    if operation.body is not None:
        described.append(operation.body.schema)
    yield OperationContract(title, taken, reply, operation.deprecated, (*described, *reply))


def _location_findings(
    binding: Binding,
    operation: OpenApiOperation,
    places: dict[str, RequestLocation],
    blamed: set[str],
) -> Iterator[ContractFinding]:
    """Add the location of each request key to `places`.

    Yield the findings about keys that have no location, and add their names to `blamed`. Yield the
    findings about two keys with the same location."""
    for key in binding.request:
        path = ("request", key)
        try:
            place = place_of(key, operation)
        except DocumentFault as fault:
            blamed.add(key.rpartition(".")[2])
            yield ContractFinding(fault.code, "E", path, fault.message, fault.hint, key=True)
            continue
        same = next((other for other, there in places.items() if there == place), None)
        if same is None:
            places[key] = place
        else:
            message = f"`{same}` and `{key}` are the same value"
            yield ContractFinding(
                "wire.parameter", "E", path, message, "keep one of them", key=True
            )


def _page_findings(
    binding: Binding, operation: OpenApiOperation, blamed: set[str]
) -> Iterator[ContractFinding]:
    """Yield a finding if a key of `page.send` has no location in the request. A key with a location receives its value
    with each page, so it is not missing.
    """
    key = binding.page.send if binding.page is not None else None
    if key is None:
        return
    try:
        blamed.add(place_of(key, operation).name)
    except DocumentFault as fault:
        yield ContractFinding(fault.code, "E", ("page", "send"), fault.message, fault.hint)


def _find_operation(
    document: OpenApiDocument, binding: Binding, service: Service
) -> Generator[ContractFinding, None, OpenApiOperation | None]:
    """Return the operation of a binding. If the document lacks it, yield a finding and return None."""
    method = binding.metadata.method
    try:
        return document.operation(binding.operation, method)
    except DocumentFault as fault:
        if fault.code == "wire.document":
            identity = identity_of(service)
            yield document_finding(
                with_position(fault, identity.path) if identity else fault, ("spec_ref",)
            )
        else:
            path = (
                ("metadata", "method") if fault.code == "wire.method" and method else ("operation",)
            )
            yield ContractFinding(fault.code, "E", path, fault.message, fault.hint)
        return None


def _effect_findings(
    binding: Binding, capability: Capability, operation: OpenApiOperation
) -> Iterator[ContractFinding]:
    """Yield the findings about the effect class. One that follows from `metadata.method` is
    reported with the binding itself."""
    written = binding.metadata.method
    if operation.method in CHANGING and capability.effect == "unknown" and not written:
        message = (
            f"{operation.method} on capability `{capability.id}`, whose effects are not declared"
        )
        hint = f"declare properties.side_effects in {capability.file}"
        yield ContractFinding("effects.undeclared", "E", ("operation",), message, hint)


def _security_findings(
    binding: Binding, service: Service, operation: OpenApiOperation
) -> Iterator[ContractFinding]:
    """Yield `wire.security` if no alternative is satisfied. The token of `auth_ref` supplies a single
    missing header."""
    declared = service.credentials
    if is_met(operation, declared, _header_names(binding, service)):
        return
    missing = _missing_schemes(binding, service, operation)
    tokens = 0 if service.auth_ref is None else 1
    reachable = [schemes for schemes in missing if all(scheme.header for scheme in schemes)]
    if any(len(schemes) <= tokens for schemes in reachable):
        return
    wanted = name_schemes(operation)
    message = f"operation `{operation.title}` asks for {wanted}, which nothing gives"
    hint = suggest_auth(operation, declared) or "credentials of this kind cannot be given"
    if reachable and not declared:
        hint = _missing_credentials_hint(reachable[0])
    yield ContractFinding("wire.security", "E", ("service",), message, hint)


def _missing_credentials_hint(schemes: list[Scheme]) -> str:
    named = [scheme.header for scheme in schemes if scheme.header != "Authorization"]
    return f"add header {named[0]} to the service" if named else "add auth_ref to the service"


def name_schemes(operation: OpenApiOperation) -> str:
    """Return the names of the security schemes of an operation, as alternatives."""
    return " or ".join(
        " and ".join(f"`{scheme.name}`" for scheme in each) for each in operation.security
    )


def _missing_schemes(
    binding: Binding, service: Service, operation: OpenApiOperation
) -> list[list[Scheme]]:
    """Return by alternative the schemes that no header satisfies."""
    given = _header_names(binding, service)
    return [
        [scheme for scheme in schemes if not scheme.header or scheme.header.lower() not in given]
        for schemes in operation.security
    ]


def _header_names(binding: Binding, service: Service) -> set[str]:
    """Return the names of the headers of service, binding and request, in lower case."""
    written = [*service.metadata.headers, *binding.metadata.headers]
    keys = (key.partition(".") for key in binding.request)
    written += [name for place, _, name in keys if place.lower() == "header"]
    return {name.lower() for name in written}


def _parameter_findings(
    operation: OpenApiOperation,
    places: dict[str, RequestLocation],
    taken: dict[str, OperationInput],
    blamed: set[str],
) -> Iterator[ContractFinding]:
    keys = {(place.kind, place.name): key for key, place in places.items()}
    for parameter in operation.parameters:
        label = f"{parameter.place}.{parameter.name}"
        key = keys.get((parameter.place, parameter.name)) if parameter.place != "cookie" else None
        if key is None:
            if parameter.required and parameter.name not in blamed:
                why = f": {parameter.refused}" if parameter.refused else ""
                message = (
                    f"operation `{operation.title}` requires `{label}`, which is not given{why}"
                )
                hint = "" if parameter.refused else f"add {label} to request"
                yield ContractFinding("wire.parameter", "E", ("request",), message, hint, key=True)
        elif parameter.refused:
            message = f"`{key}` cannot be sent: {parameter.refused}"
            yield ContractFinding("wire.parameter", "E", ("request", key), message, key=True)
        else:
            taken[key] = OperationInput(
                label, parameter.required, parameter.schema, parameter.deprecated, as_text=True
            )


def _body_findings(
    operation: OpenApiOperation,
    places: dict[str, RequestLocation],
    taken: dict[str, OperationInput],
    blamed: set[str],
) -> Iterator[ContractFinding]:
    parts = {place.name: key for key, place in places.items() if place.kind == "body"}
    whole = [key for key, place in places.items() if place.kind == "whole"]
    body = operation.body
    if body is None or not (body.required or parts or whole):
        return
    title = f"operation `{operation.title}`"
    if body.refused:
        message = f"the body of {title} cannot be sent: {body.refused}"
        yield _refused_body_finding(message, [*whole, *parts.values()])
    elif whole:
        yield from _part_findings(whole[0], parts)
        taken[whole[0]] = OperationInput("body", body.required, body.schema)
    else:
        yield from check_object_members(
            body.schema,
            parts,
            taken,
            title,
            "wire.body",
            prefix="body.",
            already_reported=blamed,
        )


def _file_findings(
    binding: Binding,
    capability: Capability,
    operation: OpenApiOperation,
    places: dict[str, RequestLocation],
    taken: dict[str, OperationInput],
) -> Iterator[ContractFinding]:
    """Yield the findings about files. Only an input of the type `file` is a file, and only some locations accept files.
    The content of a file has no schema.
    """
    for key, place in places.items():
        takes_file = _takes_file(operation.body, place)
        given = is_file_input(binding.request[key], capability.inputs)
        if takes_file and not given:
            message = f"`{key}` of operation `{operation.title}` is a file, and no input of the type file is given"
            hint = f"write {key}: input.NAME, and declare it as {{type: file}} in the capability"
            yield ContractFinding("wire.type", "E", ("request", key), message, hint)
        elif given and not takes_file:
            message = f"`{key}` of operation `{operation.title}` takes no file"
            yield ContractFinding("wire.type", "E", ("request", key), message)
        if (takes_file or given) and key in taken:
            taken[key] = taken[key]._replace(schema=None)


def _takes_file(body: Body | None, place: RequestLocation) -> bool:
    """Return whether the value at this location of the request is the content of a file."""
    if body is None:
        return False
    if place.kind == "whole":
        return body.kind == "bytes"
    return place.kind == "body" and body.kind == "multipart" and place.name in body.files


def _refused_body_finding(message: str, keys: list[str]) -> ContractFinding:
    """Return the finding at the first of the keys that form the body; without keys at the operation."""
    if keys:
        return ContractFinding("wire.body", "E", ("request", keys[0]), message, key=True)
    return ContractFinding("wire.body", "E", ("operation",), message)


def _part_findings(whole: str, parts: dict[str, str]) -> Iterator[ContractFinding]:
    for key in parts.values():
        message = f"`{whole}` is the whole body, `{key}` a part of it"
        hint = "keep one of them"
        yield ContractFinding("wire.parameter", "E", ("request", key), message, hint, key=True)


def check_object_members(
    schema: object,
    parts: dict[str, str],
    inputs: dict[str, OperationInput],
    title: str,
    code: str,
    *,
    prefix: str = "",
    already_reported: Collection[str] = (),
) -> Iterator[ContractFinding]:
    """Yield the findings about an object that is built from several keys of a request, and add each known member to
    `inputs`. `parts` maps a member to its key. Members in `already_reported` are not reported as missing.
    """
    inside = members(schema)
    for name in sorted(inside.required - parts.keys() - {*already_reported}):
        message = f"{title} requires `{prefix}{name}`, which is not given"
        yield ContractFinding(
            code, "E", ("request",), message, f"add {prefix}{name} to request", key=True
        )
    for name, key in parts.items():
        own = inside.properties.get(name)
        if own is not None:
            deprecated = value_at(own, "deprecated") is True
            inputs[key] = OperationInput(
                f"{prefix}{name}", name in inside.required, own, deprecated
            )
        elif inside.plain and (inside.closed or inside.properties):
            severity: Severity = "E" if inside.closed else "W"
            verb = "takes no" if inside.closed else "does not name"
            message = f"{title} {verb} `{prefix}{name}`"
            hint = _members_hint(name, list(inside.properties), prefix)
            yield ContractFinding(code, severity, ("request", key), message, hint, key=True)


def _members_hint(name: str, known: list[str], prefix: str) -> str:
    takes = f"it takes {', '.join(known[:6]) or 'nothing'}"
    return suggest_path(name, known, prefix=prefix) or takes


def _reply_schemas(binding: Binding, operation: OpenApiOperation) -> tuple[object, ...]:
    """Return the schemas of success replies: the schemas of 2xx statuses, or else of `default`."""
    mode = binding.metadata.response_mode
    if mode != "json":
        return (_TEXT if mode == "text" else _RAW,)
    if operation.method == "HEAD":
        return (_EMPTY,)
    schemas = tuple(_reply_schema(operation, status) for status in good_statuses(operation))
    return schemas or (UNDESCRIBED,)


def good_statuses(operation: OpenApiOperation) -> list[str]:
    """Return the declared statuses 2xx; without one the default, if it is declared."""
    good = [status for status in operation.responses if status.startswith("2")]
    return good or [status for status in operation.responses if status == "default"]


def _reply_schema(operation: OpenApiOperation, status: str) -> object:
    """Return the schema of a reply. Without any content in the document nothing is known, unless
    the status has no body."""
    schema = operation.responses[status]
    if schema is not None:
        return schema
    return UNDESCRIBED if status in operation.undescribed and status not in _BODILESS else _EMPTY


JUDGES: Final = ContractJudges(openapi_findings, document_findings)
