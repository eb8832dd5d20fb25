"""The specs of upstream tools: a capability and a binding for each, and the catalog of a session.

They are made from the accepted definitions of the tools, and pinned in the episode like any specs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from cogcli.app.live_answers import SESSION_SKILL
from cogcli.base.canonical import digest_of
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.binding_spec import Binding
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.service_spec import Service
from cogcli.declarations.skill_spec import Skill
from cogcli.declarations.value_types import Json
from cogcli.gateway.tool_names import capability_ids, client_name
from cogcli.protocols import PROTOCOLS
from cogcli.protocols.mcp.methods import METHODS
from cogcli.protocols.mcp.tool_definition import ToolDefinition, ToolHints
from cogcli.specs.catalog import Catalog

SKILL: Final = SESSION_SKILL
"""The skill of a session's run. It has no steps: each call of the client is one."""
CALL_SECONDS: Final = 120.0
"""The time limit of a call to an upstream tool, unless its service declares one."""
_FIELD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_OTHER: Final = re.compile(r"[^A-Za-z0-9_-]")
OUTPUTS: Final[Json] = {
    "structured": {"type": "any"},
    "text": {"type": "string"},
    "content": {"type": "array"},
}
"""The outputs of every tool: the same value in up to three forms."""


class ObjectSchema(Record):
    """The members of an input schema that name its arguments."""

    properties: Json
    required: list[str]


class OfferedTool(NamedTuple):
    """A tool that the gateway offers again."""

    name: str
    """Its name in the list of a client."""
    capability: str
    service: Service
    definition: Json
    """As its server defines it, and as it was accepted."""
    is_read_only: bool = False
    """Whether a person marked it read-only in the lock."""
    is_governed: bool = False
    """Whether a pack decides about it, so that it asks for no confirmation of its own."""
    listed_schema: Json | None = None
    """The input schema that a client reads, if rules of a pack narrow the one of the definition."""

    @property
    def input_fields(self) -> dict[str, str]:
        """The names of its arguments, and the inputs of the capability that they become."""
        schema = read_record(ObjectSchema, read_record(ToolDefinition, self.definition).inputSchema)
        fields: dict[str, str] = {}
        for name in schema.properties:
            if name.startswith("$"):
                continue  # a request would read it as an instruction
            field = name if _FIELD.fullmatch(name) else _OTHER.sub("_", f"a_{name}")[:64]
            while field in fields.values():
                field = f"{field[:60]}_{len(fields)}"
            fields[name] = field
        return fields

    @property
    def is_method(self) -> bool:
        """Whether it reads resources or prompts of its server, so that no list of tools has it."""
        return self.definition["name"] in METHODS

    @property
    def title(self) -> str:
        """The title of its annotations, which were accepted with it. Empty if it has none."""
        return read_record(ToolHints, self.definition.get("annotations")).title

    @property
    def proposes_read_only(self) -> bool:
        """Whether the server's annotations claim that the tool changes nothing. No decision follows
        from it.
        """
        return read_record(ToolHints, self.definition.get("annotations")).readOnlyHint

    def inputs_from(self, arguments: Json) -> Json:
        """Return the inputs of the capability for the arguments of a client. Unknown arguments are left out."""
        fields = self.input_fields
        return {fields[name]: value for name, value in arguments.items() if name in fields}


def offer_tools(
    service: Service, tools: Iterable[Json], marked: Iterable[str], *, is_governed: bool
) -> list[OfferedTool]:
    """Return the tools of a service under the names of the gateway. `marked` are read-only ones."""
    definitions = {tool["name"]: tool for tool in tools}
    ids, read_only = capability_ids(service.id, definitions), set(marked)
    return [
        OfferedTool(
            client_name(service.id, name),
            ids[name],
            service,
            tool,
            name in read_only,
            is_governed,
        )
        for name, tool in definitions.items()
    ]


def with_tools(catalog: Catalog, tools: Iterable[OfferedTool]) -> Catalog:
    """Return a catalog with the specs of these tools and the skill of a session added."""
    skill = _session_skill()
    raws: Json = {f"skill:{SKILL}": skill}
    capabilities, bindings, services = {}, {}, {}
    for tool in tools:
        capability, binding = _build_capability(tool), _build_binding(tool)
        raws[f"capability:{tool.capability}"] = capability
        raws[f"binding:{tool.capability}"] = binding
        raws[f"service:{tool.service.id}"] = _build_service(tool.service)
        capabilities[tool.capability] = Capability.of(capability)
        bindings[tool.capability] = Binding.of(
            binding, layer=tool.service.layer, trusted=tool.service.trusted
        )
        services[tool.service.id] = tool.service
    pins = {key: digest_of(raw) for key, raw in raws.items()}
    return catalog._replace(
        skills={**catalog.skills, SKILL: Skill.of(skill)},
        capabilities={**catalog.capabilities, **capabilities},
        bindings={**catalog.bindings, **bindings},
        bindings_of={**catalog.bindings_of, **{id: (id,) for id in bindings}},
        services={**catalog.services, **services},
        raw={**catalog.raw, **raws},
        pins={**catalog.pins, **pins},
        protocols=PROTOCOLS,
    )


def _session_skill() -> Json:
    return {
        "id": SKILL,
        "version": "1.0.0",
        "name": "Session of a gateway",
        "description": "The calls that a client makes through the gateway.",
        "inputs": {},
        "outputs": {},
        "steps": [],
    }


def _build_service(service: Service) -> Json:
    """Return a service in the form of its file, without values of variables."""
    raw: Json = {"id": service.id, "kind": service.kind, **service.settings}
    if service.declares_network:
        raw["network"] = service.network
    if service.metadata.headers:
        raw["metadata"] = {"headers": dict(service.metadata.headers)}
    return raw


def _build_capability(tool: OfferedTool) -> Json:
    definition = read_record(ToolDefinition, tool.definition)
    required = set(read_record(ObjectSchema, definition.inputSchema).required)
    raw: Json = {
        "id": tool.capability,
        "version": "1.0.0",
        "description": f"tool {tool.definition['name']} of MCP server {tool.service.id}",
        "inputs": {
            field: {"type": "any", **({"required": True} if name in required else {})}
            for name, field in tool.input_fields.items()
        },
        "outputs": OUTPUTS,
        "properties": {"side_effects": not tool.is_read_only},
    }
    if not tool.is_read_only and not tool.is_governed:
        raw["safety"] = {"requires_confirmation": True}
    return raw


def _build_binding(tool: OfferedTool) -> Json:
    seconds = tool.service.metadata.timeout_seconds or CALL_SECONDS
    return {
        "id": tool.capability,
        "capability": tool.capability,
        "service": tool.service.id,
        "protocol": tool.service.kind,
        "operation": tool.definition["name"],
        "request": {name: f"input.{field}" for name, field in tool.input_fields.items()},
        "response": {name: f"response.{name}" for name in OUTPUTS},
        "metadata": {"response_mode": "raw", "timeout_seconds": seconds},
    }
