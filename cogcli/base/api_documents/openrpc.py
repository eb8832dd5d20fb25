"""OpenRPC documents: the methods of a JSON-RPC service (docs/reference/protocols.md#openrpc)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from cogcli.base.api_documents.loader import DescribedService, load_described, resolve
from cogcli.base.json_pointer import DocumentFault, Pointer, pointer_text
from cogcli.base.jsonvalue import preview
from cogcli.base.problems import list_known, suggestion
from cogcli.base.schema.bundle import SchemaBundler
from cogcli.base.schema.validator import errors


def _object(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": [*required], "properties": properties}


_TEXT: Final = {"type": "string"}
_NAME: Final = {"type": "string", "minLength": 1}
_ITEMS: Final = {"$ref": "#/$defs/descriptorOrReference"}
_NAMED: Final = {"type": "object"}
_COMPONENTS: Final = _object(
    schemas={"type": "object", "additionalProperties": {"$ref": "#/$defs/schema"}},
    contentDescriptors={"type": "object", "additionalProperties": _ITEMS},
    **dict.fromkeys(("errors", "examples", "examplePairings", "links", "tags"), _NAMED),
)


def _or_reference(kind: str) -> dict[str, Any]:
    return {
        "if": _object("$ref", **{"$ref": _TEXT}),
        "then": True,
        "else": {"$ref": f"#/$defs/{kind}"},
    }


META_SCHEMA: Final[dict[str, Any]] = {
    **_object(
        "openrpc", "info", "methods",
        openrpc=_TEXT,
        info=_object("title", "version", title=_TEXT, version=_TEXT),
        servers={"type": "array", "items": _object("url", url=_TEXT)},
        methods={"type": "array", "items": _or_reference("method")},
        components=_COMPONENTS,
    ),
    "$defs": {
        "schema": {"type": ["object", "boolean"]},
        "method": _object(
            "name", "params",
            name=_NAME,
            params={"type": "array", "items": _ITEMS},
            result=_ITEMS,
            paramStructure={"enum": ["by-name", "by-position", "either"]},
            deprecated={"type": "boolean"},
            errors={"type": "array"},
        ),
        "descriptorOrReference": _or_reference("descriptor"),
        "descriptor": _object(
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
    schema: Any
    deprecated: bool


class RpcMethod(NamedTuple):
    """One method, with its parameters in document order. `result` is the schema of its result; None
    for a notification, which gets no answer."""

    name: str
    params: tuple[RpcParam, ...]
    by_position: bool
    result: Any
    is_notification: bool
    deprecated: bool


class OpenRpcDocument:
    """One document and the methods that it declares."""

    def __init__(self, value: dict[str, Any]) -> None:
        """Raise DocumentFault `wire.document` for an unsupported version, a wrong structure or a
        repeated method."""
        version = value.get("openrpc")
        if not isinstance(version, str) or not version.startswith(_VERSIONS):
            message = f"`openrpc` is {preview(version)}, expected 1.3 or 1.4"
            raise DocumentFault("wire.document", message, pointer=("openrpc",))
        _require_shape(value, ())
        self._value = value
        self._bundler = SchemaBundler(value)
        found: dict[str, RpcMethod] = {}
        for index, item in enumerate(self._value["methods"]):
            raw, place = self._resolve_item(item, ("methods", str(index)), "method")
            if raw["name"] in found:
                hint = "give each method a name of its own"
                raise DocumentFault(
                    "wire.document",
                    f"method `{raw['name']}` repeated",
                    hint,
                    pointer=(*place, "name"),
                )
            found[raw["name"]] = self._method(raw, place)
        self._methods = found

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of all methods, in document order."""
        return tuple(self._methods)

    def method(self, name: str) -> RpcMethod:
        """Return the method with this name. Raise DocumentFault `wire.operation` if it is unknown."""
        found = self._methods.get(name)
        if found is None:
            hint = suggestion(name, self._methods) or list_known(self._methods)
            raise DocumentFault("wire.operation", f"no method `{name}`", hint)
        return found

    def _method(self, raw: dict[str, Any], place: Pointer) -> RpcMethod:
        result = None
        if "result" in raw:
            descriptor, at = self._resolve_item(raw["result"], (*place, "result"), "descriptor")
            result = self._bundler.bundle(descriptor["schema"], (*at, "schema"))
        return RpcMethod(
            raw["name"],
            tuple(self._params(raw, place)),
            raw.get("paramStructure") == "by-position",
            result,
            "result" not in raw,
            raw.get("deprecated") is True,
        )

    def _params(self, raw: dict[str, Any], place: Pointer) -> Iterator[RpcParam]:
        names: set[str] = set()
        for index, item in enumerate(raw["params"]):
            param, at = self._resolve_item(item, (*place, "params", str(index)), "descriptor")
            name = param["name"]
            if name in names:
                message = f"method `{raw['name']}`: parameter `{name}` repeated"
                raise DocumentFault("wire.document", message, pointer=(*at, "name"))
            names.add(name)
            schema = self._bundler.bundle(param["schema"], (*at, "schema"))
            deprecated = param.get("deprecated") is True
            yield RpcParam(name, param.get("required") is True, schema, deprecated)

    def _resolve_item(self, item: Any, place: Pointer, kind: str) -> tuple[dict[str, Any], Pointer]:
        """Return an item, or the checked target of its `$ref`, which the meta-schema does not
        follow."""
        raw, at = resolve(self._value, item, place)
        if raw is not item:
            _require_shape(raw, at, kind)
        return raw, at


def _require_shape(value: dict[str, Any], place: Pointer, kind: str = "") -> None:
    """Raise DocumentFault `wire.document` at the first breach of the meta-schema."""
    schema = {"$ref": f"#/$defs/{kind}", "$defs": META_SCHEMA["$defs"]} if kind else META_SCHEMA
    for where, message in errors(schema, value)[:1]:
        at = (*place, *(where.split("/") if where else ()))
        raise DocumentFault("wire.document", f"`{pointer_text(at)}`: {message}", pointer=at)


def load_openrpc(service: DescribedService) -> OpenRpcDocument | None:
    """Return the OpenRPC document of a service; None without `spec_ref`. Raise DocumentFault
    `wire.document`."""
    return load_described(service, OpenRpcDocument)
