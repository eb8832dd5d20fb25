"""`new binding CAP --from-mcp SERVICE` and `--from-openrpc SERVICE`: capability and binding of the
tools of a service, by its lock or document (docs/reference/command-line.md#new).

The command starts no server and sends no request. It reads only what a person accepted or wrote.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from cogcli.app.registry import open_registry
from cogcli.app.settings import Settings
from cogcli.authoring.new_specs.binding_files import (
    BoundCall,
    binding_file,
    capability_file,
    fit_capability,
    id_word,
)
from cogcli.authoring.new_specs.new_files import NewFile, NewSpecs, project_of, schema_files
from cogcli.authoring.new_specs.operation_spec import (
    NotBindable,
    OperationSpec,
    ToolShape,
    tool_spec,
)
from cogcli.authoring.new_specs.operation_words import (
    OperationDescriptions,
    SchemaDescriptions,
    description_of,
)
from cogcli.authoring.new_specs.written_operations import (
    OperationFiles,
    listed_paths,
    require_bound_operations,
    require_capability_id,
    write_operations,
)
from cogcli.base.api_documents.openrpc import RpcMethod, RpcParam, load_openrpc
from cogcli.base.errors import UsageError
from cogcli.base.json_pointer import DocumentFault
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import list_known_words, suggestion
from cogcli.base.schema.bundle import SchemaBundler
from cogcli.base.schema.lookup import members
from cogcli.base.terminal_text import visible
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.service_spec import Service
from cogcli.declarations.value_types import Json
from cogcli.protocols.mcp.tool_definition import ToolDefinition
from cogcli.specs.catalog import Catalog
from cogcli.specs.id_grammar import is_capability_id
from cogcli.specs.lock import read_locked_tools

MCP: Final = "mcp"
OPENRPC: Final = "openrpc"
_UNKNOWN: Final = "# Nothing says what a call changes: it is taken to have an effect. Check it.\n"
_PROPOSED: Final = (
    "# side_effects and idempotent are proposals of the tool itself: check them before you rely on"
    " them.\n"
)


class ToolRequest(NamedTuple):
    """The arguments of the command. `id` is the capability's id; with `all` it is the prefix of all
    ids."""

    id: str
    kind: str
    service: str
    tool: str | None = None
    all: bool = False
    channel: str = "local"
    force: bool = False
    outputs: tuple[str, ...] = ()
    """The outputs that are declared; empty for all."""


class ToolAnnotations(Record):
    """The effects that a server declares for a tool. They are used for a proposal only."""

    readOnlyHint: bool
    idempotentHint: bool


class ToolDescriptions(Record):
    """The words of a tool."""

    description: str
    annotations: Json | None = None


class _Tool(NamedTuple):
    """A tool of a service. `remark` names the source of its effects."""

    name: str
    words: OperationDescriptions
    shape: ToolShape
    remark: str = _UNKNOWN
    deprecated: bool = False


def new_tool_binding(settings: Settings, request: ToolRequest) -> NewSpecs:
    """Write capability and binding of one tool of a service, or of all that can be bound.

    Raise UsageError or UnusableEnvironment `project.none`, `env.disk`; then nothing was written.
    """
    root = project_of(settings)
    require_capability_id(request.id, is_prefix=request.all)
    catalog = open_registry(settings).everything()
    tools = _read_tools(_find_service(catalog, request))
    chosen = (
        tools if request.all else {name: tools[name] for name in [_chosen_name(request, tools)]}
    )
    skipped: list[tuple[str, str]] = []
    made = list(_make_each(settings, request, catalog, chosen, skipped))
    shared = schema_files(root)
    found = write_operations(settings, shared, made, skipped, force=request.force)
    require_bound_operations(found.bound, skipped, all=request.all)
    notes = [f"{each.capability}: {note}" for each in found.bound for note in each.notes]
    notes += [f"{doubt.message} ({doubt.code})" for doubt in found.doubts]
    notes += [f"skipped {title}: {reason}" for title, reason in skipped]
    next = [f"cogcli capabilities show {found.bound[0].capability}"]
    counts = (len(found.bound), len(skipped)) if request.all else (0, 0)
    return NewSpecs(listed_paths(settings, found.files), notes, next, *counts)


def _find_service(catalog: Catalog, request: ToolRequest) -> Service:
    service = catalog.services.get(request.service)
    kinds = {id: each for id, each in catalog.services.items() if each.kind == request.kind}
    if service is None or service.kind != request.kind:
        message = f"`{visible(request.service[:80])}` is no {request.kind} service"
        hint = suggestion(request.service, kinds) or list_known_words(list(kinds))
        raise UsageError("usage.value", message, hint=hint, next=("cogcli services ls",))
    return service


def _read_tools(service: Service) -> dict[str, _Tool]:
    """Return the tools or methods in a service's lock or document. Raise UsageError if the service has neither."""
    try:
        if service.kind == OPENRPC:
            return _read_methods(service)
        locked = read_locked_tools(service.root, service.id)
    except DocumentFault as fault:
        raise UsageError("usage.value", fault.message, hint=fault.hint) from fault
    if locked is None:
        message = f"the tools of service `{service.id}` are not locked"
        hint = "look at what it offers, and accept it"
        next = (f"cogcli services refresh {service.id} --accept",)
        raise UsageError("usage.value", message, hint=hint, next=next)
    return {name: _read_tool(name, tool) for name, tool in locked.items()}


def _read_methods(service: Service) -> dict[str, _Tool]:
    document = load_openrpc(service)
    if document is None:
        message = f"service `{service.id}` has no document"
        raise UsageError("usage.value", message, hint="add spec_ref to its file")
    return {name: _tool_of_method(document.method(name)) for name in document.names}


def _tool_of_method(method: RpcMethod) -> _Tool:
    shape = ToolShape(method.params, method.result)
    words = OperationDescriptions(description_of(method.name), {}, {}, {}, False)
    return _Tool(method.name, words, shape, deprecated=method.deprecated)


def _read_tool(name: str, tool: Mapping[str, object]) -> _Tool:
    definition, words = read_record(ToolDefinition, tool), read_record(ToolDescriptions, tool)
    taken, given = _bundle_schema(definition.inputSchema), _bundle_schema(definition.outputSchema)
    inside = members(taken)
    params = tuple(
        RpcParam(key, key in inside.required, schema, False)
        for key, schema in inside.properties.items()
    )
    texts = {
        **_texts_of(definition.inputSchema, ""),
        **_texts_of(definition.outputSchema, "response."),
    }
    hints = read_record(ToolAnnotations, words.annotations)
    is_declared = bool({"readOnlyHint", "idempotentHint"} & hints.json.keys())
    has_effect = not hints.readOnlyHint
    repeatable = hints.idempotentHint or hints.readOnlyHint
    mode = "" if isinstance(given, dict) and given else "text"
    shape = ToolShape(params, given, mode, side_effects=has_effect, idempotent=repeatable)
    whole = description_of(words.description) or description_of(name)
    remark = _PROPOSED if is_declared else _UNKNOWN
    return _Tool(name, OperationDescriptions(whole, texts, {}, {}, False), shape, remark)


def _bundle_schema(schema: object) -> object:
    """Return a schema of a tool as the document format reads it; empty for anything else."""
    if not isinstance(schema, dict):
        return {}
    try:
        return SchemaBundler(schema).bundle(schema, ())
    except DocumentFault:
        return {}


def _texts_of(schema: object, prefix: str) -> dict[str, str]:
    """Return the descriptions of the properties of a schema."""
    properties = read_record(SchemaDescriptions, schema).properties
    found = {
        key: read_record(SchemaDescriptions, each).description for key, each in properties.items()
    }
    return {f"{prefix}{key}": description_of(text) for key, text in found.items()}


def _chosen_name(request: ToolRequest, tools: Mapping[str, object]) -> str:
    """Return the requested tool, else the only one. Raise UsageError."""
    if request.tool is None and len(tools) == 1:
        return next(iter(tools))
    if request.tool is None:
        message = f"service `{request.service}` has {len(tools)} tools"
        raise UsageError(
            "usage.flag", message, hint=f"name one with --tool: {list_known_words(sorted(tools))}"
        )
    if request.tool not in tools:
        message = f"service `{request.service}` has no tool `{visible(request.tool[:80])}`"
        hint = suggestion(request.tool, tools) or list_known_words(sorted(tools))
        raise UsageError("usage.value", message, hint=hint)
    return request.tool


def _make_each(
    settings: Settings,
    request: ToolRequest,
    catalog: Catalog,
    tools: Mapping[str, _Tool],
    skipped: list[tuple[str, str]],
) -> Iterator[OperationFiles]:
    """Yield the files of each tool. Add the tools that cannot be bound to `skipped`."""
    taken: set[str] = set()
    for name, tool in tools.items():
        id = f"{request.id}.{id_word(name)}" if request.all else request.id
        title = visible(name[:120])
        try:
            if id in taken or not is_capability_id(id):
                raise NotBindable(f"`{id[:40]}` is no id of its own")
            if request.all and tool.deprecated:
                raise NotBindable("it is deprecated")
            yield _make_files(settings, request, catalog, tool, id)
        except NotBindable as reason:
            skipped.append((title, str(reason)))
        taken.add(id)


def _make_files(
    settings: Settings, request: ToolRequest, catalog: Catalog, tool: _Tool, id: str
) -> OperationFiles:
    """Return the files of a tool. Raise NotBindable."""
    spec: OperationSpec = tool_spec(tool.shape, tool.words)
    if request.outputs:
        spec = spec.with_outputs(request.outputs)
    files: list[NewFile] = []
    path = f"capabilities/{id}.yaml"
    known = catalog.capability(id)
    own = settings.display_path(f"{settings.project}/{path}")
    if known is None or (request.force and known.file == own):
        files.append(capability_file(path, id, spec, tool.words, remark=tool.remark))
    else:
        spec = fit_capability(spec, known)
    binding = f"{request.kind}_{id.replace('.', '_')}"
    call = BoundCall(request.kind, tool.name)
    place = f"bindings/{request.channel}/{id}/{binding}.yaml"
    files.append(binding_file(place, binding, id, request.service, call, spec))
    return OperationFiles(visible(tool.name[:120]), id, binding, files, spec.notes)
