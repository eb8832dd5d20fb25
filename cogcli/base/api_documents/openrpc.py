"""OpenRPC documents: the methods of a JSON-RPC service (docs/reference/protocols.md#openrpc)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cogcli.base.api_documents.loader import DescribedService, load_described
from cogcli.base.api_documents.parts import DocumentPart, document_fault, resolve
from cogcli.base.json_pointer import DocumentFault, Pointer
from cogcli.base.jsonvalue import Json, preview
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import list_known_words, suggestion
from cogcli.base.schema.bundle import SchemaBundler
from cogcli.base.schema.keywords import Schema
from cogcli.base.schema.validator import errors


def _object_shape(*required: str, **properties: object) -> Json:
    """Return the shape of an object in the meta-schema, with its required keys and its properties."""
    return {"type": "object", "required": [*required], "properties": properties}


_TEXT: Final = {"type": "string"}
_NAME: Final = {"type": "string", "minLength": 1}
_ITEMS: Final = {"$ref": "#/$defs/descriptorOrReference"}
_NAMED: Final = {"type": "object"}
_COMPONENTS: Final = _object_shape(
    schemas={"type": "object", "additionalProperties": {"$ref": "#/$defs/schema"}},
    contentDescriptors={"type": "object", "additionalProperties": _ITEMS},
    **dict.fromkeys(("errors", "examples", "examplePairings", "links", "tags"), _NAMED),
)


def _or_reference(kind: str) -> Json:
    """Return the shape of a value that may be replaced by a reference to a component."""
    return {
        "if": _object_shape("$ref", **{"$ref": _TEXT}),
        "then": True,
        "else": {"$ref": f"#/$defs/{kind}"},
    }


META_SCHEMA: Final[Json] = {
    **_object_shape(
        "openrpc", "info", "methods",
        openrpc=_TEXT,
        info=_object_shape("title", "version", title=_TEXT, version=_TEXT),
        servers={"type": "array", "items": _object_shape("url", url=_TEXT)},
        methods={"type": "array", "items": _or_reference("method")},
        components=_COMPONENTS,
    ),
    "$defs": {
        "schema": {"type": ["object", "boolean"]},
        "method": _object_shape(
            "name", "params",
            name=_NAME,
            params={"type": "array", "items": _ITEMS},
            result=_ITEMS,
            paramStructure={"enum": ["by-name", "by-position", "either"]},
            deprecated={"type": "boolean"},
            errors={"type": "array"},
        ),
        "descriptorOrReference": _or_reference("descriptor"),
        "descriptor": _object_shape(
            "name", "schema",
            name=_NAME,
            required={"type": "boolean"},
            deprecated={"type": "boolean"},
            schema={"$ref": "#/$defs/schema"},
        ),
    },
}  # fmt: skip
"""The meta-schema of OpenRPC 1.3 and 1.4, reduced to the parts that a call depends on."""

_VERSIONS: Final = ("1.3.", "1.4.")


class RpcParam(NamedTuple):
    """One parameter of a method."""

    name: str
    required: bool
    schema: Schema
    deprecated: bool


class RpcMethod(NamedTuple):
    """One method, with its parameters in document order.

    `result` is the schema of its result. It is None for a notification, which gets no response.
    """

    name: str
    params: tuple[RpcParam, ...]
    by_position: bool
    result: Schema | None
    is_notification: bool
    deprecated: bool


class OpenRpcDocument:
    """One document and the methods that it declares."""

    def __init__(self, value: Json) -> None:
        """Raise DocumentFault `wire.document` for an unsupported version, a wrong structure or a
        repeated method."""
        root = DocumentPart(value, value, ())
        if not root.text("openrpc").startswith(_VERSIONS):
            message = f"`openrpc` is {preview(value.get('openrpc'))}, expected 1.3 or 1.4"
            raise DocumentFault("wire.document", message, pointer=("openrpc",))
        _require_shape(value, ())
        self._bundler = SchemaBundler(value)
        self._methods: dict[str, RpcMethod] = {}
        for raw in _resolve_items(root, "methods", "method"):
            method = self._read_method(raw)
            if method.name in self._methods:
                hint = "give each method a name of its own"
                text, pointer = f"method `{method.name}` repeated", raw.place_of("name")
                raise DocumentFault("wire.document", text, hint, pointer=pointer)
            self._methods[method.name] = method

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of all methods, in document order."""
        return tuple(self._methods)

    def method(self, name: str) -> RpcMethod:
        """Return the method with this name. Raise DocumentFault `wire.operation` if it is unknown."""
        found = self._methods.get(name)
        if found is None:
            hint = suggestion(name, self._methods) or list_known_words(self._methods)
            raise DocumentFault("wire.operation", f"no method `{name}`", hint)
        return found

    def _read_method(self, raw: DocumentPart) -> RpcMethod:
        has_result = "result" in raw.value
        return RpcMethod(
            raw.text("name"),
            tuple(self._read_params(raw)),
            raw.text("paramStructure") == "by-position",
            self._read_schema(_resolve_member(raw, "result", "descriptor")) if has_result else None,
            not has_result,
            raw.is_true("deprecated"),
        )

    def _read_params(self, method: DocumentPart) -> Iterator[RpcParam]:
        names: set[str] = set()
        for param in _resolve_items(method, "params", "descriptor"):
            name = param.text("name")
            if name in names:
                message = f"method `{method.text('name')}`: parameter `{name}` repeated"
                raise DocumentFault("wire.document", message, pointer=param.place_of("name"))
            names.add(name)
            schema, deprecated = self._read_schema(param), param.is_true("deprecated")
            yield RpcParam(name, param.is_true("required"), schema, deprecated)

    def _read_schema(self, descriptor: DocumentPart) -> Schema:
        return self._bundler.bundle(descriptor.value["schema"], descriptor.place_of("schema"))


def _resolve_items(holder: DocumentPart, key: str, kind: str) -> Iterator[DocumentPart]:
    """Yield the items of a list, or the targets of their references after a check.

    The meta-schema does not follow references.
    """
    for item, place in holder.items(key):
        yield _resolve_target(holder.document, item, place, kind)


def _resolve_member(holder: DocumentPart, key: str, kind: str) -> DocumentPart:
    """Return a member, or the target of its reference after a check."""
    return _resolve_target(holder.document, holder.value[key], holder.place_of(key), kind)


def _resolve_target(document: Json, item: object, place: Pointer, kind: str) -> DocumentPart:
    """Return the target of a reference after a check; the item itself if it is not a reference."""
    raw, at = resolve(document, item, place)
    if raw is not item:
        _require_shape(raw, at, kind)
    return DocumentPart(document, raw, at)


def _require_shape(value: Json, place: Pointer, kind: str = "") -> None:
    """Raise DocumentFault `wire.document` for the first breach of the meta-schema."""
    schema = {"$ref": f"#/$defs/{kind}", "$defs": META_SCHEMA["$defs"]} if kind else META_SCHEMA
    for where, message in errors(schema, value)[:1]:
        at = (*place, *(where.split("/") if where else ()))
        raise document_fault(at, message)


def load_openrpc(service: DescribedService) -> OpenRpcDocument | None:
    """Return the OpenRPC document of a service; None without `spec_ref`. Raise DocumentFault
    `wire.document`."""
    return load_described(service, OpenRpcDocument)
