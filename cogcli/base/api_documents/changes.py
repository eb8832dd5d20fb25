"""Finds the differences between two versions of a service's document, and whether they break
existing calls.

1. Compatible: every request that was valid is still valid, and every new reply fits the old schema.

2. Every other change is breaking, even if it may be compatible but this cannot be proved
(docs/reference/spec-files.md#schemas).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final

from cogcli.base.api_documents.openapi import OpenApiDocument, OpenApiOperation
from cogcli.base.api_documents.openrpc import OpenRpcDocument, RpcMethod
from cogcli.base.json_pointer import DocumentFault
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.schema.candidates import types_of
from cogcli.base.schema.containment import covers
from cogcli.base.schema.keywords import Schema
from cogcli.base.schema.normalizer import normalize

_SENT_AS_TEXT: Final = frozenset(("string", "integer", "number", "boolean", "null"))
"""The types of an OpenAPI parameter that is sent as one text, or not at all if it is null."""


class ContractChange(NamedTuple):
    """One operation or method that was `added`, `removed` or `changed`. Only a changed operation
    has `fields`.
    """

    name: str
    change: str
    fields: tuple[str, ...] = ()
    breaking: bool = False


class FieldChange(NamedTuple):
    """One part of an operation that differs, and whether the change is breaking."""

    text: str
    breaking: bool


def find_openapi_changes(
    old_document: OpenApiDocument | None, new_document: OpenApiDocument
) -> tuple[ContractChange, ...]:
    """Return the operations that differ, sorted by name. `(servers)` means a changed server
    address.
    """
    old = {entry.title: entry for entry in old_document.entries} if old_document else {}
    new = {entry.title: entry for entry in new_document.entries}
    moved: list[ContractChange] = []
    if old_document is not None and old_document.server != new_document.server:
        text = f"{old_document.server} -> {new_document.server}"
        moved.append(ContractChange("(servers)", "changed", (text,), breaking=True))

    def find_changes(name: str) -> Iterator[FieldChange]:
        if old_document is not None:
            yield from _operation_fields(
                old_document.operation_of(old[name]), new_document.operation_of(new[name])
            )

    return (*moved, *_compare_items(old, new, find_changes))


def find_openrpc_changes(
    old_document: OpenRpcDocument | None, new_document: OpenRpcDocument
) -> tuple[ContractChange, ...]:
    """Return the methods that differ, sorted by name."""
    old = {name: old_document.method(name) for name in old_document.names} if old_document else {}
    new = {name: new_document.method(name) for name in new_document.names}
    return tuple(_compare_items(old, new, lambda name: _method_fields(old[name], new[name])))


def _compare_items(
    old: Collection[str],
    new: Collection[str],
    find_changes: Callable[[str], Iterator[FieldChange]],
) -> Iterator[ContractChange]:
    for name in sorted({*old, *new}):
        if name not in old:
            yield ContractChange(name, "added")
        elif name not in new:
            yield ContractChange(name, "removed", breaking=True)
        else:
            try:
                fields = list(find_changes(name))
            except DocumentFault as fault:
                fields = [FieldChange(fault.message, breaking=True)]
            if fields:
                texts = tuple(field.text for field in fields)
                yield ContractChange(
                    name, "changed", texts, any(field.breaking for field in fields)
                )


# -- openapi ----------------------------------------------------------------------------------------------------------


def _operation_fields(old: OpenApiOperation, new: OpenApiOperation) -> Iterator[FieldChange]:
    if (old.method, old.path) != (new.method, new.path):
        yield FieldChange(f"{old.method} {old.path} -> {new.method} {new.path}", breaking=True)
    yield from _values_fields(_parameter_values(old), _parameter_values(new), _accepts_as_text)
    yield from _values_fields(_body_values(old), _body_values(new), _is_covered)
    if old.body and new.body and old.body.media_type != new.body.media_type:
        yield FieldChange(f"body: {old.body.media_type} -> {new.body.media_type}", breaking=True)
    yield from _reply_fields(old.responses, new.responses)
    if old.security != new.security:
        # Compatible where every set of credentials that was sufficient still is.
        eased = not new.security or (bool(old.security) and set(old.security) <= set(new.security))
        yield FieldChange("security", breaking=not eased)
    if new.deprecated and not old.deprecated:
        yield FieldChange("deprecated", breaking=False)


def _parameter_values(operation: OpenApiOperation) -> dict[str, _RequestValue]:
    return {
        f"{each.place}.{each.name}": _RequestValue(
            each.required, each.schema, each.refused, each.explode
        )
        for each in operation.parameters
    }


def _body_values(operation: OpenApiOperation) -> dict[str, _RequestValue]:
    body = operation.body
    return {"body": _RequestValue(body.required, body.schema, body.refused)} if body else {}


_Responses = Mapping[str, Schema | None]


def _reply_fields(old: _Responses, new: _Responses) -> Iterator[FieldChange]:
    """Yield the changes of success replies. Failure replies are never mapped to outputs."""
    for status in sorted({*old, *new}):
        if not status.startswith("2") and status != "default":
            continue
        if status not in old:
            yield FieldChange(f"{status}: added", breaking=status != "default")
        elif status not in new:
            yield FieldChange(f"{status}: removed", breaking=status != "default")
        elif old[status] != new[status]:
            yield FieldChange(status, breaking=not _is_covered(old[status], new[status]))


# -- openrpc ----------------------------------------------------------------------------------------------------------


def _method_fields(old: RpcMethod, new: RpcMethod) -> Iterator[FieldChange]:
    before = {each.name: _RequestValue(each.required, each.schema) for each in old.params}
    after = {each.name: _RequestValue(each.required, each.schema) for each in new.params}
    yield from _values_fields(before, after, _is_covered)
    moved = [*after][: len(before)] != [*before]
    if old.by_position != new.by_position or (new.by_position and moved):
        yield FieldChange("the order of parameters", breaking=True)
    if old.is_notification != new.is_notification:
        yield FieldChange("result", breaking=True)
    elif old.result != new.result:
        yield FieldChange("result", breaking=not _is_covered(old.result, new.result))
    if new.deprecated and not old.deprecated:
        yield FieldChange("deprecated", breaking=False)


# -- values -----------------------------------------------------------------------------------------------------------


class _RequestValue(NamedTuple):
    """One value of a request: a parameter or a body.

    `refused`: why it cannot be sent, empty if it can.
    """

    required: bool
    schema: Schema
    refused: str = ""
    explode: bool = False


_Accepts = Callable[[Schema | None, Schema | None], bool]
"""A function that decides whether the first schema accepts every value of the second."""


def _values_fields(
    old: Mapping[str, _RequestValue], new: Mapping[str, _RequestValue], accepts: _Accepts
) -> Iterator[FieldChange]:
    """Yield the changes of request values by name."""
    for name in sorted({*old, *new}):
        if name not in old:
            required = new[name].required
            yield FieldChange(f"{name}: added{', required' if required else ''}", breaking=required)
        elif name not in new:
            yield FieldChange(f"{name}: removed", breaking=True)
        else:
            yield from _value_fields(name, old[name], new[name], accepts)


def _value_fields(
    name: str, old: _RequestValue, new: _RequestValue, accepts: _Accepts
) -> Iterator[FieldChange]:
    if new.required and not old.required:
        yield FieldChange(f"{name}: required", breaking=True)
    elif old.required and not new.required:
        yield FieldChange(f"{name}: optional", breaking=False)
    if old.schema != new.schema:
        yield FieldChange(name, breaking=not accepts(new.schema, old.schema))
    if (old.refused, old.explode) != (new.refused, new.explode):
        is_lost = bool(new.refused) or not old.refused
        yield FieldChange(f"{name}: the way it is sent", breaking=is_lost)


def _accepts_as_text(wide: Schema | None, narrow: Schema | None) -> bool:
    """Return whether `wide` accepts every value of `narrow` outside a body, where numbers are sent as
    text.
    """
    ready = normalize(wide) if types_of(narrow) <= _SENT_AS_TEXT else None
    return (ready is not None and ready.schema == {"type": "string"}) or _is_covered(wide, narrow)


def _is_covered(wide: Schema | None, narrow: Schema | None) -> bool:
    """Return whether every value of `narrow` provably fits `wide`.

    None means a reply without JSON.
    """
    if wide is None or narrow is None:
        return wide is narrow
    return covers(wide, narrow).verdict == "yes"
