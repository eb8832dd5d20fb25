"""OpenAPI documents: the operations of a service, and the location of each value of a request
(docs/reference/protocols.md#openapi)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Literal, NamedTuple

from cogcli.base.api_documents.loader import (
    DescribedService,
    load_described,
    optional_mapping,
    require_list,
    require_mapping,
    resolve,
)
from cogcli.base.json_pointer import DocumentFault, Pointer, pointer_text
from cogcli.base.jsonvalue import preview
from cogcli.base.problems import list_known, suggestion
from cogcli.base.schema.bundle import SchemaBundler

METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD")
"""The methods that can be called."""
_ALL_METHODS: Final = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
_VERSIONS: Final = ("3.0.", "3.1.", "3.2.")
_STYLES: Final = {"path": "simple", "query": "form", "header": "simple", "cookie": "form"}
_IGNORED_HEADERS: Final = frozenset(("accept", "content-type", "authorization"))
"""Header parameters of these names are ignored (OpenAPI 3.0, parameter object)."""


class Parameter(NamedTuple):
    """One value outside the body. `refused`: why it cannot be sent, empty if it can."""

    name: str
    place: Literal["path", "query", "header", "cookie"]
    required: bool
    schema: Any
    explode: bool
    deprecated: bool
    refused: str = ""


class Body(NamedTuple):
    """The body of a request. `refused`: why it cannot be sent, empty if it can."""

    required: bool
    schema: Any
    media_type: str = "application/json"
    refused: str = ""


class Scheme(NamedTuple):
    """One security scheme. `header` is the header of its credentials, None for an unsupported
    scheme."""

    name: str
    header: str | None


class Entry(NamedTuple):
    """One operation in the index of a document: its id, method and path."""

    id: str
    method: str
    path: str

    @property
    def title(self) -> str:
        """The name of the operation in messages."""
        return self.id or f"{self.method} {self.path}"


class OpenApiOperation(NamedTuple):
    """One operation. `id` may be empty, `method` is upper case, `path` is written as in the document.

    `responses` maps `200`, `2XX` or `default` to the schema of a JSON reply, None for a reply without JSON. `security`
    holds alternatives, each a set of schemes to satisfy together; empty: no credentials are needed.
    """

    id: str
    method: str
    path: str
    parameters: tuple[Parameter, ...]
    body: Body | None
    responses: dict[str, Any]
    deprecated: bool
    security: tuple[tuple[Scheme, ...], ...]
    undescribed: frozenset[str] = frozenset()
    """The keys of `responses` without any content: nothing is known about these replies."""

    @property
    def title(self) -> str:
        """The name of the operation in messages."""
        return self.id or f"{self.method} {self.path}"


class OpenApiDocument:
    """One document. `server` is its only absolute server URL, None if it has none or several."""

    def __init__(self, value: dict[str, Any]) -> None:
        """Raise DocumentFault `wire.document` for an unsupported version, a wrong structure or a
        repeated operation id."""
        self._value = value
        version = value.get("openapi")
        if not isinstance(version, str) or not version.startswith(_VERSIONS):
            found = f"swagger {value['swagger']}" if "swagger" in value else preview(version)
            message = f"`openapi` is {found}, expected 3.0, 3.1 or 3.2"
            hint = "export the document as OpenAPI 3.1"
            pointer = ("swagger",) if "swagger" in value else ("openapi",)
            raise DocumentFault("wire.document", message, hint, pointer=pointer)
        self.version = version
        self._bundler = SchemaBundler(value, is_openapi_30=version.startswith("3.0."))
        self._paths = optional_mapping(value.get("paths"), ("paths",))
        self.server = _single_server(value)
        self.entries: tuple[Entry, ...] = tuple(self._entries())
        self.names = tuple(entry.title for entry in self.entries)
        self._by_id = self._index_ids()
        self._operations: dict[tuple[str, str], OpenApiOperation] = {}

    def operation(self, name: str, method: str | None) -> OpenApiOperation:
        """Return the operation with this operationId, else the one at this path with the binding's
        `method`.

        Raise DocumentFault `wire.operation` for an unknown name, `wire.method` for a method that is
        missing or cannot be called, `wire.document` for a malformed operation."""
        entry = self._by_id.get(name)
        if entry is None:
            entry = self._entry_at_path(name, method)
        elif method is not None and method != entry.method:
            message = f"operation `{name}` is {entry.method}, not {method}"
            raise DocumentFault("wire.method", message, "remove metadata.method")
        if entry.method not in METHODS:
            message = f"operation `{name}` is {entry.method}, which cannot be called"
            raise DocumentFault("wire.method", message, f"choose one of {', '.join(METHODS)}")
        return self.operation_of(entry)

    def operation_of(self, entry: Entry) -> OpenApiOperation:
        """Return the operation of an entry. Raise DocumentFault `wire.document` if it is malformed."""
        key = (entry.path, entry.method)
        found = self._operations.get(key)
        if found is None:
            found = self._operations[key] = self._build_operation(entry)
        return found

    def _entry_at_path(self, name: str, method: str | None) -> Entry:
        path = name if name.startswith("/") else f"/{name}"
        here = {entry.method: entry for entry in self.entries if entry.path == path}
        if not here:
            known = [*self._by_id, *self._paths]
            hint = suggestion(name, known) or list_known(known)
            raise DocumentFault("wire.operation", f"no operation `{name}`", hint)
        if method is None:
            method = next(iter(here)) if len(here) == 1 else "POST"
        if method not in here:
            message = f"`{path}` has no {method}, only {', '.join(here)}"
            raise DocumentFault(
                "wire.method", message, f"write metadata.method: {next(iter(here))}"
            )
        return here[method]

    def _entries(self) -> Iterator[Entry]:
        for path, item in self._paths.items():
            if path.startswith("x-"):
                continue
            found, place = resolve(self._value, item, ("paths", path))
            for method in _ALL_METHODS:
                if method in found:
                    operation = require_mapping(found[method], (*place, method))
                    id = operation.get("operationId")
                    yield Entry(id if isinstance(id, str) else "", method.upper(), path)

    def _index_ids(self) -> dict[str, Entry]:
        found: dict[str, Entry] = {}
        for entry in self.entries:
            if entry.id and found.setdefault(entry.id, entry) is not entry:
                first = found[entry.id]
                message = f"operationId `{entry.id}` repeated: {first.method} {first.path}, {entry.method} {entry.path}"
                hint = "give each operation an id of its own"
                pointer = ("paths", entry.path, entry.method.lower(), "operationId")
                raise DocumentFault("wire.document", message, hint, pointer=pointer)
        return found

    def _build_operation(self, entry: Entry) -> OpenApiOperation:
        item, place = resolve(self._value, self._paths[entry.path], ("paths", entry.path))
        method = entry.method.lower()
        own, at = require_mapping(item[method], (*place, method)), (*place, method)
        parameters = {
            (parameter.place, parameter.name): parameter
            for holder, where in ((item, place), (own, at))
            for parameter in self._parameters(holder.get("parameters"), (*where, "parameters"))
        }
        responses, undescribed = self._responses(own.get("responses"), (*at, "responses"))
        return OpenApiOperation(
            *entry,
            tuple(parameters.values()),
            self._body(own.get("requestBody"), (*at, "requestBody")),
            responses,
            own.get("deprecated") is True,
            self._security(own, at),
            frozenset(undescribed),
        )

    def _parameters(self, value: Any, place: Pointer) -> Iterator[Parameter]:
        for index, item in enumerate(require_list(value, place)):
            raw, at = resolve(self._value, item, (*place, str(index)))
            name, where = raw.get("name"), raw.get("in")
            if not isinstance(name, str) or where not in (*_STYLES, "querystring"):
                message = f"`{pointer_text(at)}`: a parameter needs `name` and `in`"
                raise DocumentFault("wire.document", message, pointer=at)
            if where != "header" or name.lower() not in _IGNORED_HEADERS:
                yield self._parameter(raw, at, name, where)

    def _parameter(self, raw: dict[str, Any], at: Pointer, name: str, where: Any) -> Parameter:
        style = raw.get("style", _STYLES.get(where))
        refused = ""
        if where in ("cookie", "querystring"):
            refused = f"values in the {where} are not sent"
        elif "content" in raw:
            refused = "its value is a document of its own"
        elif style != _STYLES[where]:
            refused = f"style `{style}` is not spoken"
        explode = raw.get("explode", style == "form") is True
        schema = self._bundler.bundle(raw.get("schema", True), (*at, "schema"), is_request=True)
        required = raw.get("required") is True or where == "path"
        return Parameter(
            name, where, required, schema, explode, raw.get("deprecated") is True, refused
        )

    def _body(self, value: Any, place: Pointer) -> Body | None:
        if value is None:
            return None
        raw, at = resolve(self._value, value, place)
        content = optional_mapping(raw.get("content"), (*at, "content"))
        required = raw.get("required") is True
        schema, media_type = self._json_schema(content, (*at, "content"), is_request=True)
        if not media_type:
            return Body(
                required, True, "", f"it is {' or '.join(content) or 'of no type'}, not JSON"
            )
        return Body(required, schema, media_type if "*" not in media_type else "application/json")

    def _responses(self, value: Any, place: Pointer) -> tuple[dict[str, Any], list[str]]:
        """Return the schemas by status, and the statuses without content."""
        found: dict[str, Any] = {}
        undescribed = []
        for status, item in optional_mapping(value, place).items():
            if not status.startswith("x-"):
                raw, at = resolve(self._value, item, (*place, status))
                content = optional_mapping(raw.get("content"), (*at, "content"))
                key = status.upper() if status != "default" else status
                found[key], _ = self._json_schema(content, (*at, "content"), is_request=False)
                if not content:
                    undescribed.append(key)
        return found, undescribed

    def _json_schema(
        self, content: dict[str, Any], place: Pointer, *, is_request: bool
    ) -> tuple[Any, str]:
        """Return the schema of the JSON content and its media type, `application/json` preferred;
        None and "" without JSON."""
        types = {name.partition(";")[0].strip().lower(): name for name in content}
        suffixed = [name for name in types if name.endswith("+json")]
        preferred = ("application/json", *suffixed, "application/*", "*/*")
        media_type = next((types[name] for name in preferred if name in types), "")
        if not media_type:
            return None, ""
        raw, at = resolve(self._value, content[media_type], (*place, media_type))
        schema = self._bundler.bundle(
            raw.get("schema", True), (*at, "schema"), is_request=is_request
        )
        return schema, media_type

    def _security(self, own: dict[str, Any], at: Pointer) -> tuple[tuple[Scheme, ...], ...]:
        holder, place = (own, at) if "security" in own else (self._value, ())
        return tuple(
            tuple(
                self._scheme(name)
                for name in require_mapping(alternative, (*place, "security", str(index)))
                if not name.startswith("x-")
            )
            for index, alternative in enumerate(
                require_list(holder.get("security"), (*place, "security"))
            )
        )

    def _scheme(self, name: str) -> Scheme:
        components = optional_mapping(self._value.get("components"), ("components",))
        schemes = optional_mapping(
            components.get("securitySchemes"), ("components", "securitySchemes")
        )
        at: Pointer = ("components", "securitySchemes", name)
        if name not in schemes:
            message = f"`{pointer_text(at)}` is not there, `security` names it"
            raise DocumentFault("wire.document", message, suggestion(name, schemes), pointer=at)
        raw, _ = resolve(self._value, schemes[name], at)
        kind = raw.get("type")
        is_http = kind == "http" and str(raw.get("scheme")).lower() in ("bearer", "basic")
        if is_http or kind in ("oauth2", "openIdConnect"):
            return Scheme(name, "Authorization")
        if kind == "apiKey" and raw.get("in") == "header" and isinstance(raw.get("name"), str):
            return Scheme(name, raw["name"])
        return Scheme(name, None)


def _single_server(value: dict[str, Any]) -> str | None:
    """Return the only absolute server URL, with variables at their defaults; None if there is none
    or several."""
    absolute = []
    for index, raw in enumerate(require_list(value.get("servers"), ("servers",))):
        server = require_mapping(raw, ("servers", str(index)))
        url = str(server.get("url") or "")
        for name, variable in optional_mapping(server.get("variables"), ("servers",)).items():
            default = require_mapping(variable, ("servers",)).get("default")
            url = url.replace(f"{{{name}}}", str(default or ""))
        if url.lower().startswith(("http://", "https://")) and "{" not in url:
            absolute.append(url)
    return absolute[0] if len(absolute) == 1 else None


def load_openapi(service: DescribedService) -> OpenApiDocument | None:
    """Return the OpenAPI document of a service; None without `spec_ref`. Raise DocumentFault
    `wire.document`."""
    return load_described(service, OpenApiDocument)
