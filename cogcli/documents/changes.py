"""What two documents of one service say differently, and whether that breaks a call that fitted before.

1. Compatible: whatever was asked rightly before is still right, and what comes back is of what came back before.
2. Everything else is breaking, what cannot be proved compatible too (docs/reference/spec-files.md#schemas).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from cogcli.core.document_fault import DocumentFault
from cogcli.schema.containment import covers

if TYPE_CHECKING:
    from cogcli.documents.openapi import Entry, OpenApiDocument, OpenApiOperation, Parameter
    from cogcli.documents.openrpc import OpenRpcDocument, RpcMethod


class ContractChange(NamedTuple):
    """One operation or method that is not as it was: `added`, `removed` or `changed`, and then in what."""

    name: str
    change: str
    fields: tuple[str, ...] = ()
    breaking: bool = False


class Field(NamedTuple):
    """One part of an operation that is not as it was."""

    text: str
    breaking: bool


def openapi_changes(before: OpenApiDocument | None, now: OpenApiDocument) -> tuple[ContractChange, ...]:
    """The operations that differ, by name; `(servers)` where calls would go elsewhere."""
    old = {_title(entry): entry for entry in before.entries} if before else {}
    new = {_title(entry): entry for entry in now.entries}
    moved: list[ContractChange] = []
    if before is not None and before.server != now.server:
        moved.append(
            ContractChange("(servers)", "changed", (f"{before.server} -> {now.server}",), breaking=True)
        )

    def differ(name: str) -> Iterator[Field]:
        if before is not None:
            yield from _operation_fields(before.described(old[name]), now.described(new[name]))

    return (*moved, *_changes(old, new, differ))


def openrpc_changes(before: OpenRpcDocument | None, now: OpenRpcDocument) -> tuple[ContractChange, ...]:
    """The methods that differ, by name."""
    old = {name: before.method(name) for name in before.names} if before else {}
    new = {name: now.method(name) for name in now.names}
    return tuple(_changes(old, new, lambda name: _method_fields(old[name], new[name])))


def _title(entry: Entry) -> str:
    return entry.id or f"{entry.method} {entry.path}"


def _changes(
    old: Mapping[str, Any], new: Mapping[str, Any], differ: Callable[[str], Iterator[Field]]
) -> Iterator[ContractChange]:
    for name in sorted({*old, *new}):
        if name not in old:
            yield ContractChange(name, "added")
        elif name not in new:
            yield ContractChange(name, "removed", breaking=True)
        else:
            try:
                fields = list(differ(name))
            except DocumentFault as fault:
                fields = [Field(fault.message, breaking=True)]
            if fields:
                texts = tuple(field.text for field in fields)
                yield ContractChange(name, "changed", texts, any(field.breaking for field in fields))


# -- openapi ----------------------------------------------------------------------------------------------------------


def _operation_fields(old: OpenApiOperation, new: OpenApiOperation) -> Iterator[Field]:
    if (old.method, old.path) != (new.method, new.path):
        yield Field(f"{old.method} {old.path} -> {new.method} {new.path}", breaking=True)
    before = {f"{each.place}.{each.name}": each for each in old.parameters}
    now = {f"{each.place}.{each.name}": each for each in new.parameters}
    for name in sorted({*before, *now}):
        yield from _value_fields(name, before.get(name), now.get(name))
    yield from _value_fields("body", old.body, new.body)
    if old.body and new.body and old.body.media_type != new.body.media_type:
        yield Field(f"body: {old.body.media_type} -> {new.body.media_type}", breaking=True)
    yield from _reply_fields(old.responses, new.responses)
    if old.security != new.security:
        yield Field("security", breaking=not _is_eased(old, new))
    if new.deprecated and not old.deprecated:
        yield Field("deprecated", breaking=False)


def _is_eased(old: OpenApiOperation, new: OpenApiOperation) -> bool:
    """Whether whoever was let in before still is."""
    return not new.security or (bool(old.security) and set(old.security) <= set(new.security))


def _reply_fields(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Field]:
    """Success alone counts: what failures say is mapped by nobody."""
    for status in sorted({*old, *new}):
        if not status.startswith("2") and status != "default":
            continue
        if status not in old:
            yield Field(f"{status}: added", breaking=status != "default")
        elif status not in new:
            yield Field(f"{status}: removed", breaking=status != "default")
        elif old[status] != new[status]:
            yield Field(status, breaking=not _covered(old[status], new[status]))


# -- openrpc ----------------------------------------------------------------------------------------------------------


def _method_fields(old: RpcMethod, new: RpcMethod) -> Iterator[Field]:
    before = {each.name: each for each in old.params}
    now = {each.name: each for each in new.params}
    for name in sorted({*before, *now}):
        yield from _value_fields(name, before.get(name), now.get(name))
    if old.by_position != new.by_position or (new.by_position and not _same_order(list(before), list(now))):
        yield Field("the order of parameters", breaking=True)
    if old.is_notification != new.is_notification:
        yield Field("result", breaking=True)
    elif old.result != new.result:
        yield Field("result", breaking=not _covered(old.result, new.result))
    if new.deprecated and not old.deprecated:
        yield Field("deprecated", breaking=False)


def _same_order(old: list[str], new: list[str]) -> bool:
    return new[: len(old)] == old


# -- values -----------------------------------------------------------------------------------------------------------


def _value_fields(name: str, old: Any, new: Any) -> Iterator[Field]:
    """How one value of a request changed: parameters and bodies have `required` and `schema`."""
    if old is None and new is None:
        return
    if old is None:
        yield Field(f"{name}: added{', required' if new.required else ''}", breaking=new.required)
    elif new is None:
        yield Field(f"{name}: removed", breaking=True)
    else:
        if new.required and not old.required:
            yield Field(f"{name}: required", breaking=True)
        elif old.required and not new.required:
            yield Field(f"{name}: optional", breaking=False)
        if old.schema != new.schema:
            yield Field(name, breaking=not _covered(new.schema, old.schema))
        if _refused(new) != _refused(old) or _exploded(old) != _exploded(new):
            yield Field(f"{name}: the way it is sent", breaking=bool(_refused(new)) or not _refused(old))


def _refused(value: Any) -> str:
    return getattr(value, "refused", "")


def _exploded(value: Parameter) -> bool | None:
    return getattr(value, "explode", None)


def _covered(wide: Any, narrow: Any) -> bool:
    """Whether it is proved that the one schema takes all that the other gives; no schema stands for no JSON."""
    if wide is None or narrow is None:
        return wide is narrow
    return covers(wide, narrow).verdict == "yes"
