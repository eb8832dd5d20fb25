"""The tools that a gateway offers: of the project's MCP services and of a host's file
(docs/reference/gateway.md#tools).

1. Nothing of a project is started before the project is trusted.
2. All servers are asked at once. A server that does not answer is unavailable, and hides no other.
3. A tool is offered as it was accepted: by the lock, else by its pin, which the first offer makes. A tool that is not
   in the lock, or that changed, is withheld until a person accepts it.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Final

from cogcli.app.registry import open_registry
from cogcli.app.run_skill import environment_of
from cogcli.app.settings import Settings
from cogcli.app.settings.trust_needs import HOST_FILES
from cogcli.app.settings.user_dirs import state_home
from cogcli.base import threads
from cogcli.base.calls import Cancellation
from cogcli.base.errors import CogcliError, ServiceResolutionError, UsageError
from cogcli.base.links import is_below
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import suggestion
from cogcli.declarations.reading import read_record
from cogcli.declarations.service_spec import Service
from cogcli.declarations.value_types import Json
from cogcli.gateway.host_file import Upstream, read_host_file
from cogcli.gateway.tool_specs import OfferedTool, offer_tools
from cogcli.protocols import PROTOCOLS
from cogcli.protocols.invoker import CallLimits
from cogcli.protocols.mcp.connect import identity
from cogcli.protocols.mcp.invoker import Mcp
from cogcli.protocols.mcp.methods import ServerListing
from cogcli.protocols.mcp.pins import Pins, find_changed_fields, read_locked
from cogcli.protocols.mcp.tool_definition import ToolDefinition
from cogcli.run.launch import build_invoker_context
from cogcli.specs.eligibility import untrusted_reasons
from cogcli.specs.lock import READ_ONLY
from cogcli.specs.protocol import LOCK

START_SECONDS: Final = 30.0
"""Seconds that a server may take to start and to list its tools."""


class Withheld(NamedTuple):
    """A tool that is not offered, and the reason."""

    server: str
    tool: str
    reason: str


class GatewayOffer(NamedTuple):
    """The offered tools by name, the tools that are withheld, and the servers that cannot be used."""

    tools: dict[str, OfferedTool]
    withheld: list[Withheld]
    unavailable: list[Upstream]
    listings: dict[str, ServerListing]
    """The lists of each server, by its id."""


def find_upstreams(settings: Settings, host_file: str = "") -> list[Upstream]:
    """Return the servers of the project and of a host's file.

    Raise UnusableEnvironment `gateway.file`, and UsageError for a file that trust cannot cover.
    """
    catalog = open_registry(settings).everything()
    found = [
        Upstream(id, service)
        for id, service in sorted(catalog.services.items())
        if PROTOCOLS[service.kind].described_by(service) == LOCK
    ]
    if host_file:
        path = os.path.abspath(os.path.join(settings.base, host_file))
        _require_covered(settings, path, host_file)
        shown = settings.display_path(path)
        is_trusted = settings.project is not None and bool(settings.trust)
        of_host = read_host_file(path, shown=shown, is_trusted=is_trusted)
        found += [_require_new(each, catalog.services) for each in of_host]
    return [_require_trusted(each) for each in found]


def find_service(settings: Settings, id: str, host_file: str = "") -> Service:
    """Return the service of one server.

    Raise UsageError for an unknown server, ServiceResolutionError for an unusable one, and the
    errors of `find_upstreams`.
    """
    upstreams = {each.id: each for each in find_upstreams(settings, host_file)}
    found = upstreams.get(id)
    if found is None:
        hint = suggestion(id, upstreams) or "its file is named by --from"
        raise UsageError("usage.value", f"there is no server `{id[:80]}`", hint=hint)
    if found.service is None:
        text = f"server `{id}` cannot be used: {found.fault}"
        raise ServiceResolutionError("service.unknown", text)
    return found.service


def _require_covered(settings: Settings, path: str, path_argument: str) -> None:
    """Raise UsageError for a file of servers that the trust in the project does not cover."""
    project = settings.project
    names = [os.path.join(project, name) for name in HOST_FILES] if project else []
    real = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    if real in map(os.path.abspath, names):
        return
    is_inside = project is not None and is_below(real, project)
    if is_inside and settings.trust.state in ("folder", "environment"):
        return
    shown = ", ".join(HOST_FILES)
    raise UsageError(
        "usage.value",
        f"`--from {path_argument[:200]}`: the trust in a project does not cover this file",
        expected=f"one of {shown} in the directory of cogcli.toml",
        hint="copy its `mcpServers` there; a new project needs an empty cogcli.toml next to it",
    )


def _require_new(upstream: Upstream, services: Json) -> Upstream:
    if upstream.id not in services:
        return upstream
    return Upstream(upstream.id, None, "the project has a service of this name")


def _require_trusted(upstream: Upstream) -> Upstream:
    """Return the server, without its service if the project is not trusted."""
    service = upstream.service
    if service is None:
        return upstream
    if not service.trusted:
        return Upstream(upstream.id, None, "the project is not trusted: cogcli config trust")
    reasons = [reason.text for reason in untrusted_reasons(service)]
    return Upstream(upstream.id, None, reasons[0]) if reasons else upstream


def offer_upstreams(
    settings: Settings, upstreams: Sequence[Upstream], *, is_governed: bool
) -> GatewayOffer:
    """Start all servers, and return their tools. If `is_governed`, a pack decides about their calls."""
    offer = GatewayOffer({}, [], [each for each in upstreams if each.service is None], {})
    invoker = Mcp(build_invoker_context(environment_of(settings), lambda secret: None))
    try:
        listings = [
            (each, _start_listing(invoker, each.service)) for each in upstreams if each.service
        ]
        for upstream, listing in listings:
            _add_listing(settings, offer, upstream, listing, is_governed=is_governed)
    finally:
        invoker.close(2.0)
    return offer


def _start_listing(invoker: Mcp, service: Service) -> Future[ServerListing]:
    listing: Future[ServerListing] = Future()
    limits = CallLimits(time.monotonic() + START_SECONDS, Cancellation())

    def work() -> None:
        try:
            listing.set_result(invoker.listing(service, limits))
        except Exception as error:
            listing.set_exception(error)

    try:
        threads.start(work, name="listing")
    except threads.NoThread as error:
        listing.set_exception(error)
    return listing


def _add_listing(
    settings: Settings,
    offer: GatewayOffer,
    upstream: Upstream,
    listing: Future[ServerListing],
    *,
    is_governed: bool,
) -> None:
    """Add the tools of one server to the offer."""
    service = upstream.service
    if service is None:
        return
    try:
        found = listing.result()
        tools = sorted(found.tools + found.methods, key=lambda tool: str(tool["name"]))
        accepted, marked = _select_locked_tools(settings, service, tools, offer.withheld)
    except CogcliError as error:
        offer.unavailable.append(Upstream(upstream.id, None, f"{error.code}: {error.message}"))
        return
    except Exception as bug:  # of a library, about bytes of a foreign server
        offer.unavailable.append(Upstream(upstream.id, None, f"internal: {type(bug).__name__}"))
        return
    offer.listings[service.id] = found
    for tool in offer_tools(service, accepted, marked, is_governed=is_governed):
        if tool.name in offer.tools:
            reason = f"its name stands for another tool: {tool.name}"
            offer.withheld.append(Withheld(service.id, tool.definition["name"], reason))
        else:
            offer.tools[tool.name] = tool


def _select_locked_tools(
    settings: Settings, service: Service, tools: list[Json], withheld: list[Withheld]
) -> tuple[list[Json], list[str]]:
    """Return the tools that equal the accepted ones, and the names of those that are marked
    read-only.
    """
    locked = read_locked(service.root, service.id)
    known = {tool["name"]: tool for tool in locked or ()}
    times = Counter(tool["name"] for tool in tools)
    pins = Pins(state_home(settings.environ))

    def find_reason(tool: Json) -> str:
        if times[tool["name"]] > 1:
            return "its server lists it more than once"
        if locked is None:
            return _find_task_fault(tool) or _compare_with_pin(pins, service, tool)
        return _find_task_fault(tool) or _compare_with_lock(known, tool)

    accepted = []
    for tool in tools:
        name = tool["name"]
        if reason := find_reason(tool):
            withheld.append(Withheld(service.id, name, reason))
        else:
            accepted.append(tool)
    marked = [name for name, tool in known.items() if tool.get(READ_ONLY) is True]
    return accepted, marked


def _find_task_fault(tool: Json) -> str:
    """Return why a tool that runs only as a task is not offered; empty for any other."""
    wants_task = read_record(ToolDefinition, tool).wants_task
    return "it runs only as a task, and no task is started here" if wants_task else ""


def _compare_with_lock(locked_tools: Json, tool: Json) -> str:
    """Return why a tool is not offered under a lock, or an empty text if it equals the accepted
    one.
    """
    locked_tool = locked_tools.get(tool["name"])
    if locked_tool is None:
        return "it is not in the lock"
    changed = find_changed_fields(locked_tool, tool)
    return f"it changed since it was accepted ({', '.join(changed)})" if changed else ""


def _compare_with_pin(pins: Pins, service: Service, tool: Json) -> str:
    """Return why a tool is not offered without a lock; empty if it is new, or as its pin."""
    try:
        pins.require_same(service.id, identity(service), tool)
    except CogcliError as error:
        return error.message
    return ""
