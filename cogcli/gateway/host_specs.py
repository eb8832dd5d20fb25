"""The specs of a host's tools: a capability and a binding for each (docs/reference/hosts.md#capabilities).

The host makes these calls itself. So their service is a shipped module that makes none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Final

from cogcli.base.canonical import digest_of
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.binding_spec import Binding
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.service_spec import Service
from cogcli.declarations.value_types import Json
from cogcli.gateway.hosts import AgentHost
from cogcli.gateway.tool_specs import with_tools
from cogcli.protocols import PROTOCOLS
from cogcli.specs.catalog import Catalog

PREFIX: Final = "host."
OTHER: Final = "host.other"
"""The capability of all tools without their own capability."""
CALL_SECONDS: Final = 3600.0
"""The time after which the end of a call that no hook reported is unknown."""
_SERVICE: Final = "host"
_MODULE: Final = "cogcli.official.host_tools"
_SEGMENT: Final = re.compile(r"[a-z0-9]+(?:[_-][a-z0-9]+)*")
_OTHER_CHARACTERS: Final = re.compile(r"[^a-z0-9]+")
_DIGESTED: Final = re.compile(r"-[0-9a-f]{8}$")
_LONGEST: Final = 48
_MCP: Final = re.compile(r"mcp__(.+?)__(.+)|mcp_(.+?)_(.+)|MCP:(?:([^:]+):)?(.+)")


class HostTools(NamedTuple):
    """The tools of a session that have their own capability, by capability id."""

    host: AgentHost
    ids: frozenset[str]

    def capability_for(self, tool: str) -> str:
        """Return the capability that a tool is called as."""
        id = capability_id(self.host, tool)
        return id if id in self.ids else OTHER


def capability_id(host: AgentHost, tool: str) -> str:
    """Return the capability id of a tool. No two tools of a host have the same."""
    own = host.tools.get(tool)
    if own is not None:
        return f"{PREFIX}{own}"
    words = _MCP.fullmatch(tool)
    parts = [part for part in words.groups() if part] if words else [tool]
    head = f"{PREFIX}mcp." if words else f"{PREFIX}tool."
    if all(map(_is_segment, parts)) and tool == _join_parts(tool, parts):
        return head + ".".join(parts)
    digest = sha256(tool.encode("utf-8", "backslashreplace")).hexdigest()[:8]
    return f"{head}{'.'.join(map(_id_segment, parts))}-{digest}"


def _is_segment(part: str) -> bool:
    """Return whether a part of a name can be used unchanged in an id. A part that looks like a digest cannot."""
    return bool(len(part) <= _LONGEST and _SEGMENT.fullmatch(part) and not _DIGESTED.search(part))


def _join_parts(tool: str, parts: list[str]) -> str:
    """Return the name of a tool whose id has no digest: its parts, joined as most hosts join them."""
    if len(parts) == 1:
        return tool if not tool.startswith(("mcp_", "MCP:")) else ""
    return f"mcp__{parts[0]}__{parts[1]}"


def _id_segment(part: str) -> str:
    return _OTHER_CHARACTERS.sub("_", part.lower()).strip("_")[:_LONGEST].strip("_") or "tool"


def with_host_tools(
    catalog: Catalog, host: AgentHost, marked: Iterable[str], *, is_governed: bool
) -> tuple[Catalog, HostTools]:
    """Return a catalog with the specs of a host's tools added, and these tools. `marked` are the tools that a person
    marked read-only. If `is_governed`, a pack decides about all calls, so no capability requires its own confirmation.
    `host.` capabilities that a pack names are added.
    """
    read_only = set(marked) - host.shells
    tools = {capability_id(host, tool): tool for tool in (*host.tools, *read_only)}
    named = {id for pack in catalog.packs.values() for id in pack.tooling.capabilities}
    for id in named:
        if id.startswith(PREFIX) and id != OTHER:
            tools.setdefault(id, "")
    catalog = with_tools(catalog, ())
    service = {"id": _SERVICE, "kind": "pythoncall", "module": _MODULE}
    raws: Json = {f"service:{_SERVICE}": service}
    capabilities, bindings = {}, {}
    for id, tool in [*tools.items(), (OTHER, "")]:
        capability = _build_capability(host, id, tool, tool in read_only, is_governed=is_governed)
        binding = _build_binding(id)
        raws |= {f"capability:{id}": capability, f"binding:{id}": binding}
        capabilities[id] = Capability.of(capability)
        bindings[id] = Binding.of(binding, layer=_SERVICE, trusted=True)
    places: Mapping[str, object] = {"layer": _SERVICE, "trusted": True}
    catalog = catalog._replace(
        capabilities={**catalog.capabilities, **capabilities},
        bindings={**catalog.bindings, **bindings},
        bindings_of={**catalog.bindings_of, **{id: (id,) for id in bindings}},
        services={**catalog.services, _SERVICE: Service.of(service, **places)},
        raw={**catalog.raw, **raws},
        pins={**catalog.pins, **{key: digest_of(raw) for key, raw in raws.items()}},
        protocols=PROTOCOLS,
    )
    return catalog, HostTools(host, frozenset(tools))


def _build_capability(
    host: AgentHost, id: str, tool: str, is_read_only: bool, *, is_governed: bool
) -> Json:
    described = f"tool {tool} of {host.title}" if tool else f"a tool of {host.title}"
    raw: Json = {
        "id": id,
        "version": "1.0.0",
        "description": described,
        "inputs": {
            "arguments": {"type": "object", "required": True},
            "cwd": {"type": "string"},
            "tool": {"type": "string"},
        },
        "outputs": {"response": {"type": "any"}},
        "properties": {"side_effects": not is_read_only},
    }
    if not is_read_only and not is_governed:
        raw["safety"] = {"requires_confirmation": True}
    return raw


def _build_binding(id: str) -> Json:
    return {
        "id": id,
        "capability": id,
        "service": _SERVICE,
        "protocol": "pythoncall",
        "operation": "perform",
        "request": {name: f"input.{name}" for name in ("arguments", "cwd", "tool")},
        "response": {"response": "response.response"},
        "metadata": {"response_mode": "raw", "timeout_seconds": CALL_SECONDS},
    }
