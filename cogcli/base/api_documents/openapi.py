"""OpenAPI documents: the operations of a service, and the location of each value of a request
(docs/reference/protocols.md#openapi)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal, cast

from cogcli.base.api_documents.loader import DescribedService, load_described
from cogcli.base.api_documents.parts import DocumentPart, document_fault
from cogcli.base.json_pointer import DocumentFault, pointer_text
from cogcli.base.jsonvalue import NOTHING, Json, preview
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import list_known_words, suggestion
from cogcli.base.schema import keywords
from cogcli.base.schema.bundle import SchemaBundler
from cogcli.base.schema.keywords import Schema
from cogcli.base.schema.lookup import members, same_value_parts, with_definitions

METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD")
"""The methods that can be called."""
_ALL_METHODS: Final = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
_VERSIONS: Final = ("3.0.", "3.1.", "3.2.")
ParameterPlace = Literal["path", "query", "header", "cookie"]
_STYLES: Final = {"path": "simple", "query": "form", "header": "simple", "cookie": "form"}
_FORMS: Final[dict[str, BodyKind]] = {
    "application/x-www-form-urlencoded": "form",
    "multipart/form-data": "multipart",
}
_IGNORED_HEADERS: Final = frozenset(("accept", "content-type", "authorization"))
"""Header parameters of these names are ignored (OpenAPI 3.0, parameter object)."""


class Parameter(NamedTuple):
    """One request value outside the body. `refused`: why it cannot be sent, empty if it can."""

    name: str
    place: ParameterPlace
    required: bool
    schema: Schema
    explode: bool
    deprecated: bool
    refused: str = ""


BodyKind = Literal["json", "form", "multipart", "text", "bytes"]


class PartEncoding(NamedTuple):
    """The declared encoding of one member of a form."""

    content_type: str = ""
    style: str = "form"
    explode: bool = True


class Body(NamedTuple):
    """The body of a request. `refused`: why it cannot be sent, empty if it can.

    `encodings` and `files` are about the members of a form: `files` names those that are files. A body
    of the kind `bytes` is one file.
    """

    required: bool
    schema: Schema
    media_type: str = "application/json"
    refused: str = ""
    kind: BodyKind = "json"
    encodings: Mapping[str, PartEncoding] = NOTHING
    files: frozenset[str] = frozenset()


class Scheme(NamedTuple):
    """One security scheme: where its credentials are sent, and in which form.

    `kind`: `key` for a bare value, `basic` for a user with a password, `token` for a word and a token;
    empty if the scheme is unsupported. `place` and `key` name the header, query parameter or cookie.
    """

    name: str
    kind: Literal["key", "basic", "token", ""] = ""
    place: str = "header"
    key: str = "Authorization"
    word: str = "Bearer"
    """The word before a token."""

    @property
    def header(self) -> str | None:
        """Return the header of the credentials; None if they are sent elsewhere."""
        return self.key if self.kind and self.place == "header" else None


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
    """One operation. `id` may be empty, `method` is upper case, `path` is written as in the
    document.

    `responses` maps `200`, `2XX` or `default` to the schema of a JSON reply, or to None for a reply
    without JSON. `security` lists alternatives. Each is a set of schemes that are all required. If
    it is empty, no credentials are needed.
    """

    id: str
    method: str
    path: str
    parameters: tuple[Parameter, ...]
    body: Body | None
    responses: dict[str, Schema | None]
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

    def __init__(self, value: Json) -> None:
        """Raise DocumentFault `wire.document` for an unsupported version, a wrong structure or a
        repeated operation id."""
        self._root = DocumentPart(value, value, ())
        self.version = self._root.text("openapi")
        if not self.version.startswith(_VERSIONS):
            raise _version_fault(value)
        self._bundler = SchemaBundler(value, is_openapi_30=self.version.startswith("3.0."))
        self._paths = self._root.mapping("paths")
        self.server = _single_server(self._root)
        self.entries: tuple[Entry, ...] = tuple(self._iterate_entries())
        self.names = tuple(entry.title for entry in self.entries)
        self._by_id = self._index_ids()
        self._operations: dict[tuple[str, str], OpenApiOperation] = {}

    def operation(self, name: str, method: str | None) -> OpenApiOperation:
        """Return the operation with this operationId, else the operation at this path with this
        `method`.

        Raise DocumentFault `wire.operation` for an unknown name, `wire.method` for a method that is
        missing or cannot be called, `wire.document` for a malformed operation.
        """
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
            known = [*self._by_id, *self._paths.value]
            hint = suggestion(name, known) or list_known_words(known)
            raise DocumentFault("wire.operation", f"no operation `{name}`", hint)
        if method is None:
            method = next(iter(here)) if len(here) == 1 else "POST"
        if method not in here:
            message = f"`{path}` has no {method}, only {', '.join(here)}"
            raise DocumentFault(
                "wire.method", message, f"write metadata.method: {next(iter(here))}"
            )
        return here[method]

    def _iterate_entries(self) -> Iterator[Entry]:
        for path in self._paths.value:
            if path.startswith("x-"):
                continue
            found = self._paths.resolve_member(path)
            for method in _ALL_METHODS:
                if method in found.value:
                    id = found.require_mapping(method).text("operationId")
                    yield Entry(id, method.upper(), path)

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
        item = self._paths.resolve_member(entry.path)
        own = item.require_mapping(entry.method.lower())
        parameters = {
            (parameter.place, parameter.name): parameter
            for holder in (item, own)
            for parameter in self._iterate_parameters(holder)
        }
        responses, undescribed = self._read_responses(own)
        return OpenApiOperation(
            *entry,
            tuple(parameters.values()),
            self._read_body(own),
            responses,
            own.is_true("deprecated"),
            self._read_security(own),
            frozenset(undescribed),
        )

    def _iterate_parameters(self, holder: DocumentPart) -> Iterator[Parameter]:
        for raw in holder.resolved_items("parameters"):
            name, where = raw.value.get("name"), raw.text("in")
            if not isinstance(name, str) or where not in (*_STYLES, "querystring"):
                raise document_fault(raw.place, "a parameter needs `name` and `in`")
            if where != "header" or name.lower() not in _IGNORED_HEADERS:
                yield self._build_parameter(raw, name, where)

    def _build_parameter(self, raw: DocumentPart, name: str, location: str) -> Parameter:
        style = raw.value.get("style", _STYLES.get(location))
        refused = ""
        if location in ("cookie", "querystring"):
            refused = f"values in the {location} are not sent"
        elif "content" in raw.value:
            refused = "its value is a document of its own"
        elif style != _STYLES[location]:
            refused = f"style `{style}` is not spoken"
        explode = raw.is_true("explode", default=style == "form")
        schema = self._read_schema(raw, is_request=True)
        required = raw.is_true("required") or location == "path"
        # A parameter in `querystring` is refused: no reader of the others meets its place.
        place = cast("ParameterPlace", location)
        return Parameter(name, place, required, schema, explode, raw.is_true("deprecated"), refused)

    def _read_schema(self, holder: DocumentPart, *, is_request: bool) -> Schema:
        schema = holder.value.get("schema", True)
        return self._bundler.bundle(schema, holder.place_of("schema"), is_request=is_request)

    def _read_body(self, operation: DocumentPart) -> Body | None:
        if not operation.has("requestBody"):
            return None
        raw = operation.resolve_member("requestBody")
        required, content = raw.is_true("required"), raw.mapping("content")
        media_type = _find_json_type(content.value)
        if media_type:
            schema = self._read_schema(content.resolve_member(media_type), is_request=True)
            return Body(required, schema, "application/json" if "*" in media_type else media_type)
        # Many documents require members but not the body: a call without it is wrong as well.
        required = required or self._requires_members(content)
        kind, media_type = _find_other_type(content.value)
        if kind is None and (media_type := self._find_bytes_type(content)):
            return Body(required, True, media_type, kind="bytes")
        if kind is None:
            found = " or ".join(content.value) or "of no type"
            return Body(
                required, True, "", f"it is {found}, neither JSON nor a form nor text nor bytes"
            )
        if kind == "text":
            return Body(required, {"type": "string"}, media_type, kind=kind)
        return self._read_form(
            content.resolve_member(media_type), media_type, kind, required=required
        )

    def _read_form(
        self, holder: DocumentPart, media_type: str, kind: BodyKind, *, required: bool
    ) -> Body:
        """Return a body that is a form. Only a multipart form can contain files."""
        schema = self._read_schema(holder, is_request=True)
        inside = members(schema)
        files = frozenset(name for name, each in inside.properties.items() if is_file(each))
        needed = sorted(files & inside.required) if kind == "form" else []
        refused = f"`{needed[0]}` is a file" if needed else ""
        encodings = {
            name: _part_encoding(holder.mapping("encoding").require_mapping(name))
            for name in holder.mapping("encoding").value
        }
        return Body(required, schema, media_type, refused, kind, encodings, files)

    def _find_bytes_type(self, content: DocumentPart) -> str:
        """Return the media type of a body that is a file, `application/octet-stream` preferred; empty
        without one."""
        names = sorted(content.value, key=lambda name: not _is_octets(name))
        for name in names:
            if _is_octets(name) or is_file(
                self._read_schema(content.resolve_member(name), is_request=True)
            ):
                return name
        return ""

    def _requires_members(self, content: DocumentPart) -> bool:
        """Return whether the schema of any media type has required members."""
        schemas = (
            self._read_schema(content.resolve_member(name), is_request=True)
            for name in content.value
        )
        return any(members(schema).required for schema in schemas)

    def _read_responses(
        self, operation: DocumentPart
    ) -> tuple[dict[str, Schema | None], list[str]]:
        """Return the schemas by status, and the statuses without content."""
        found: dict[str, Schema | None] = {}
        undescribed = []
        responses = operation.mapping("responses")
        for status in responses.value:
            if status.startswith("x-"):
                continue
            content = responses.resolve_member(status).mapping("content")
            media_type = _find_json_type(content.value)
            key = status.upper() if status != "default" else status
            found[key] = (
                self._read_schema(content.resolve_member(media_type), is_request=False)
                if media_type
                else None
            )
            if not content.value:
                undescribed.append(key)
        return found, undescribed

    def _read_security(self, operation: DocumentPart) -> tuple[tuple[Scheme, ...], ...]:
        holder = operation if "security" in operation.value else self._root
        return tuple(
            tuple(self.scheme(name) for name in alternative.value if not name.startswith("x-"))
            for alternative in holder.mappings("security")
        )

    def scheme(self, name: str) -> Scheme:
        """Return the security scheme with this name. Raise DocumentFault `wire.document` if it is missing or
        malformed.
        """
        schemes = self._root.mapping("components").mapping("securitySchemes")
        if name not in schemes.value:
            at = schemes.place_of(name)
            message = f"`{pointer_text(at)}` is not there, `security` names it"
            hint = suggestion(name, schemes.value)
            raise DocumentFault("wire.document", message, hint, pointer=at)
        scheme = schemes.resolve_member(name)
        match scheme.text("type"):
            case "http":
                return _parse_http_scheme(name, scheme.text("scheme"))
            case "oauth2" | "openIdConnect":
                return Scheme(name, "token")
            case "apiKey":
                key, place = scheme.text("name"), scheme.text("in")
                is_known = key and place in ("header", "query", "cookie")
                return Scheme(name, "key", place, key) if is_known else Scheme(name)
        return Scheme(name)


def _parse_http_scheme(name: str, word: str) -> Scheme:
    """Return the scheme for the Authorization header: `basic`, or a word such as `Bearer` before a token. The kind is
    empty if the scheme is not supported.
    """
    lower = word.lower()
    if lower in ("", "bearer"):
        return Scheme(name, "token" if word else "")
    if lower == "basic":
        return Scheme(name, "basic", word="Basic")
    is_token = word.isascii() and word.replace("-", "").isalnum() and lower not in _COMPUTED
    return Scheme(name, "token" if is_token else "", word=word)


_COMPUTED: Final = frozenset(
    ("digest", "hoba", "mutual", "negotiate", "oauth", "scram-sha-1", "scram-sha-256", "vapid",
     "dpop", "gnap", "concealed", "privatetoken")
)  # fmt: skip
"""The HTTP schemes whose credentials depend on the request or on a challenge."""


def _version_fault(value: Json) -> DocumentFault:
    """Return the fault of a document whose version is not supported."""
    key = "swagger" if "swagger" in value else "openapi"
    found = f"swagger {value[key]}" if key == "swagger" else preview(value.get(key))
    message = f"`openapi` is {found}, expected 3.0, 3.1 or 3.2"
    hint = "export the document as OpenAPI 3.1"
    if key == "swagger":
        hint = "convert it: npx swagger2openapi swagger.json -o openapi.json"
    return DocumentFault("wire.document", message, hint, pointer=(key,))


def _find_json_type(content: Json) -> str:
    """Return the JSON media type among the keys of `content`, preferring `application/json`; empty if no key is
    JSON.
    """
    types = {name.partition(";")[0].strip().lower(): name for name in content}
    suffixed = [name for name in types if name.endswith("+json")]
    preferred = ("application/json", *suffixed, "application/*", "*/*")
    return next((types[name] for name in preferred if name in types), "")


def _find_other_type(content: Json) -> tuple[BodyKind | None, str]:
    """Return the kind and the media type of a body that is not JSON; None if none can be sent."""
    types = {name.partition(";")[0].strip().lower(): name for name in content}
    for media_type, kind in _FORMS.items():
        if media_type in types:
            return kind, media_type
    plain = next((name for name in types if name.startswith("text/")), "")
    text = "text/plain" if "*" in plain else plain
    return ("text", text) if text else (None, "")


def _part_encoding(holder: DocumentPart) -> PartEncoding:
    style = holder.text("style") or "form"
    content_type = holder.text("contentType")
    # A list of types leaves the choice to the client, as no type does.
    one_type = "" if "," in content_type or "*" in content_type else content_type
    return PartEncoding(one_type, style, holder.is_true("explode", default=style == "form"))


def _is_octets(media_type: str) -> bool:
    return media_type.partition(";")[0].strip().lower() == "application/octet-stream"


def is_file(schema: object) -> bool:
    """Return whether a schema describes the bytes of a file, or a list of files."""
    return _is_bytes(schema) or is_file_list(schema)


def is_file_list(schema: object) -> bool:
    """Return whether a schema describes a list of files."""
    return any(
        _is_bytes(with_definitions(schema, part["items"]))
        for part in _parts_without_null(schema)
        if "items" in part
    )


def _is_bytes(schema: object) -> bool:
    """Return whether a schema describes bytes, or bytes or null."""
    return any(part.get("format") == "binary" for part in _parts_without_null(schema))


def _parts_without_null(schema: object) -> Iterator[Json]:
    """Yield the schemas of a value; of a choice between null and another schema those of that one."""
    for part in same_value_parts(schema):
        yield part
        choices = [*keywords.items(part, "anyOf"), *keywords.items(part, "oneOf")]
        others = [each for each in choices if each != {"type": "null"}]
        if len(others) == 1 < len(choices):
            yield from same_value_parts(with_definitions(schema, others[0]))


def _single_server(root: DocumentPart) -> str | None:
    """Return the only absolute server URL, with variables at their defaults. None if the document has no such URL, or
    several.
    """
    absolute = []
    for server in root.mappings("servers"):
        url, variables = server.text("url"), server.mapping("variables")
        for name in variables.value:
            default = variables.require_mapping(name).value.get("default")
            url = url.replace(f"{{{name}}}", str(default or ""))
        if url.lower().startswith(("http://", "https://")) and "{" not in url:
            absolute.append(url)
    return absolute[0] if len(absolute) == 1 else None


def load_openapi(service: DescribedService) -> OpenApiDocument | None:
    """Return the OpenAPI document of a service; None without `spec_ref`. Raise DocumentFault
    `wire.document`."""
    return load_described(service, OpenApiDocument)
