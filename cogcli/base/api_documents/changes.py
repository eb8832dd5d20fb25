"""Differences between two versions of a service's document, and whether they break existing calls.

1. Compatible: every request that was valid is still valid, and every new reply fits the old schema.
2. Every other change is breaking, also if its compatibility cannot be proved
   (docs/reference/spec-files.md#schemas)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from cogcli.base.api_documents.openapi import OpenApiDocument, OpenApiOperation
from cogcli.base.api_documents.openrpc import OpenRpcDocument, RpcMethod
from cogcli.base.json_pointer import DocumentFault
from cogcli.base.schema.candidates import types_of
from cogcli.base.schema.containment import covers
from cogcli.base.schema.normalizer import normalize

_SENT_AS_TEXT: Final = frozenset(("string", "integer", "number", "boolean", "null"))
"""The types of an OpenAPI parameter that is sent as one text, or not at all if it is null."""


class ContractChange(NamedTuple):
    """One operation or method that was `added`, `removed` or `changed`. Only a changed one has
    `fields`."""

    name: str
    change: str
    fields: tuple[str, ...] = ()
    breaking: bool = False


class FieldChange(NamedTuple):
    """One part of an operation that differs."""

    text: str
    breaking: bool


def find_openapi_changes(
    before: OpenApiDocument | None, after: OpenApiDocument
) -> tuple[ContractChange, ...]:
    """Return the operations that differ, sorted by name; `(servers)` stands for a changed server
    address."""
    old = {entry.title: entry for entry in before.entries} if before else {}
    new = {entry.title: entry for entry in after.entries}
    moved: list[ContractChange] = []
    if before is not None and before.server != after.server:
        text = f"{before.server} -> {after.server}"
        moved.append(ContractChange("(servers)", "changed", (text,), breaking=True))

    def find_changes(name: str) -> Iterator[FieldChange]:
        if before is not None:
            yield from _operation_fields(
                before.operation_of(old[name]), after.operation_of(new[name])
            )

    return (*moved, *_compare_items(old, new, find_changes))


def find_openrpc_changes(
    before: OpenRpcDocument | None, after: OpenRpcDocument
) -> tuple[ContractChange, ...]:
    """Return the methods that differ, sorted by name."""
    old = {name: before.method(name) for name in before.names} if before else {}
    new = {name: after.method(name) for name in after.names}
    return tuple(_compare_items(old, new, lambda name: _method_fields(old[name], new[name])))


def _compare_items(
    old: Mapping[str, Any],
    new: Mapping[str, Any],
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
    before = {f"{each.place}.{each.name}": each for each in old.parameters}
    after = {f"{each.place}.{each.name}": each for each in new.parameters}
    for name in sorted({*before, *after}):
        yield from _value_fields(name, before.get(name), after.get(name), accepts=_accepts_as_text)
    yield from _value_fields("body", old.body, new.body)
    if old.body and new.body and old.body.media_type != new.body.media_type:
        yield FieldChange(f"body: {old.body.media_type} -> {new.body.media_type}", breaking=True)
    yield from _reply_fields(old.responses, new.responses)
    if old.security != new.security:
        # Compatible where every set of credentials that was sufficient still is.
        eased = not new.security or (bool(old.security) and set(old.security) <= set(new.security))
        yield FieldChange("security", breaking=not eased)
    if new.deprecated and not old.deprecated:
        yield FieldChange("deprecated", breaking=False)


def _reply_fields(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[FieldChange]:
    """Yield the changes of success replies; failure replies are never mapped to outputs."""
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
    before = {each.name: each for each in old.params}
    after = {each.name: each for each in new.params}
    for name in sorted({*before, *after}):
        yield from _value_fields(name, before.get(name), after.get(name))
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


def _value_fields(
    name: str, old: Any, new: Any, *, accepts: Callable[[Any, Any], bool] | None = None
) -> Iterator[FieldChange]:
    """Yield the changes of one request value: a parameter or a body, each with `required` and
    `schema`. `accepts` decides whether the new schema takes every value of the old one; by default
    values are compared as JSON."""
    if old is None and new is None:
        return
    if old is None:
        yield FieldChange(
            f"{name}: added{', required' if new.required else ''}", breaking=new.required
        )
    elif new is None:
        yield FieldChange(f"{name}: removed", breaking=True)
    else:
        if new.required and not old.required:
            yield FieldChange(f"{name}: required", breaking=True)
        elif old.required and not new.required:
            yield FieldChange(f"{name}: optional", breaking=False)
        if old.schema != new.schema:
            yield FieldChange(name, breaking=not (accepts or _is_covered)(new.schema, old.schema))
        # A parameter of OpenRPC has neither member, a body no `explode`.
        before, after = getattr(old, "refused", ""), getattr(new, "refused", "")
        if before != after or getattr(old, "explode", None) != getattr(new, "explode", None):
            yield FieldChange(f"{name}: the way it is sent", breaking=bool(after) or not before)


def _accepts_as_text(wide: Any, narrow: Any) -> bool:
    """Whether `wide` takes every value of `narrow` outside a body, where numbers are sent as text."""
    ready = normalize(wide) if types_of(narrow) <= _SENT_AS_TEXT else None
    return (ready is not None and ready.schema == {"type": "string"}) or _is_covered(wide, narrow)


def _is_covered(wide: Any, narrow: Any) -> bool:
    """Whether every value of `narrow` provably fits `wide`. None is the schema of a reply without
    JSON."""
    if wide is None or narrow is None:
        return wide is narrow
    return covers(wide, narrow).verdict == "yes"
