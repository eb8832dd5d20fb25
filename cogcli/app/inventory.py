"""`ls`, `search` and `show` of capabilities, bindings and services, from the catalog of all layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cogcli.app.registry import Layers, Usable, fields_of, open_registry, selection_options, text_of
from cogcli.core.errors import CapabilityNotFoundError, CogcliError, UsageError
from cogcli.core.problems import ProblemsFound, sort_problems, suggestion
from cogcli.specs.eligibility import reasons, variables_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogcli.app.settings import Settings
    from cogcli.specs.binding import Binding
    from cogcli.specs.binding_chain import SelectionOptions
    from cogcli.specs.capability import Capability
    from cogcli.specs.catalog import Catalog
    from cogcli.specs.service import Service

SINGULAR: Final = {"capabilities": "capability", "bindings": "binding", "services": "service"}
InventoryRow = dict[str, Any]


class InventoryView(NamedTuple):
    """The catalog of all layers, how bindings are selected, and the layer of each file."""

    catalog: Catalog
    options: SelectionOptions
    layers: Layers


def list_specs(
    settings: Settings,
    kind: str,
    *,
    domain: str | None = None,
    channel: str | None = None,
    usable: bool = False,
) -> list[InventoryRow]:
    """One row for each spec of a kind, by id.

    Capabilities have the channels of their bindings, services the domains of the capabilities bound to them.
    """
    view = _view(settings)
    specs = sorted(getattr(view.catalog, kind).items())
    if domain is not None:
        specs = [(id, spec) for id, spec in specs if domain in _DOMAINS[kind](view.catalog, spec)]
    if channel is not None:
        specs = [(id, spec) for id, spec in specs if channel in _CHANNELS[kind](view.catalog, spec)]
    if usable:
        specs = [(id, spec) for id, spec in specs if _USABLE[kind](view, spec)]
    return [_ROWS[kind](view, spec) for _, spec in specs]


def search_specs(settings: Settings, kind: str, words: list[str], limit: int) -> list[InventoryRow]:
    """The rows that contain every word, those with the words in the id first."""
    parts = [part for word in words for part in word.lower().split()]
    hits = []
    for row in list_specs(settings, kind):
        text = " ".join(str(value) for value in row.values()).lower()
        if all(part in text for part in parts):
            hits.append((sum(part not in row["id"].lower() for part in parts), row))
    return [row for _, row in sorted(hits, key=lambda hit: hit[0])][:limit]


def spec_details(settings: Settings, kind: str, id: str) -> InventoryRow:
    """All of a spec, with its layer and the specs that it hides; values under secret names are masked.

    Raises UsageError, CapabilityNotFoundError, ProblemsFound where its file has errors.
    """
    from cogcli.core.redact import Redactor

    view, spec = find_spec(settings, kind, id)
    shadows = [
        {"layer": s.layer, "file": s.file}
        for s in view.catalog.shadows
        if (s.kind, s.id) == (SINGULAR[kind], spec.id)
    ]
    whole = {**_ROWS[kind](view, spec), **_DETAILS[kind](view, spec), "shadows": shadows}
    masked: InventoryRow = Redactor().mask(whole)
    return masked


def read_source(settings: Settings, kind: str, id: str) -> str:
    """The text of the file that declares a spec."""
    return text_of(settings, find_spec(settings, kind, id)[1].file)


def find_spec(settings: Settings, kind: str, id: str) -> tuple[InventoryView, Any]:
    """A spec by id, a capability by alias, too. Raises as `spec_details`."""
    view = _view(settings)
    catalog, singular = view.catalog, SINGULAR[kind]
    specs: dict[str, Any] = getattr(catalog, kind)
    name = catalog.aliases.get(id, id) if kind == "capabilities" else id
    if name in specs:
        return view, specs[name]
    file = catalog.broken.get(f"{singular}:{name}")
    if file:
        raise ProblemsFound(sort_problems(p for p in catalog.problems if p.file == file))
    hint = suggestion(id, specs)
    if kind == "capabilities":
        raise CapabilityNotFoundError("capability.not-found", f"no capability `{id}`", hint=hint)
    raise UsageError("usage.value", f"there is no {singular} `{id}`", hint=hint, next=(f"cogcli {kind} ls",))


def _view(settings: Settings) -> InventoryView:
    return InventoryView(open_registry(settings).everything(), selection_options(settings), Layers(settings))


# -- rows --------------------------------------------------------------------------------------------------------------


def _capability_row(view: InventoryView, spec: Capability) -> InventoryRow:
    return {
        "id": spec.id,
        "version": spec.version,
        "binding": _selected_binding(view, spec.id),
        "description": " ".join(spec.description.split()),
        "layer": view.layers.of(spec.file),
        "file": spec.file,
    }


def _binding_row(view: InventoryView, spec: Binding) -> InventoryRow:
    return {
        "id": spec.id,
        "capability": spec.capability,
        "service": spec.service,
        "protocol": spec.protocol,
        "conformance": spec.conformance,
        "channel": spec.channel,
        "layer": spec.layer,
        "file": spec.file,
    }


def _service_row(view: InventoryView, spec: Service) -> InventoryRow:
    address = next((str(spec.settings[key]) for key in _ADDRESSES if key in spec.settings), "")
    return {
        "id": spec.id,
        "kind": spec.kind,
        "address": spec.module or address,
        "trusted": spec.trusted,
        "channel": _channel_of(spec),
        "layer": spec.layer,
        "description": " ".join((spec.metadata.get("description") or "").split()),
        "file": spec.file,
    }


_ADDRESSES: Final = ("base_url", "url", "command", "server", "spec_ref")


def _channel_of(service: Service) -> str:
    """The channel of a service: the folder around its file, if that is one."""
    parts = service.file.replace("\\", "/").split("/")
    return parts[-2] if not service.at and len(parts) > 1 and parts[-2] != "services" else "local"


def _selected_binding(view: InventoryView, capability_id: str) -> str | None:
    from cogcli.specs.selection import select

    try:
        return select(view.catalog, capability_id, view.options).usable[0]
    except CogcliError:
        return None


# -- one in full -------------------------------------------------------------------------------------------------------


def _capability_details(view: InventoryView, spec: Capability) -> InventoryRow:
    return {
        "effect": spec.effect,
        "inputs": fields_of(spec.inputs),
        "outputs": fields_of(spec.outputs),
        "safety": spec.safety.declared if spec.safety else None,
        "aliases": list(spec.aliases),
        "deprecated": spec.deprecated,
        "replacement": spec.replacement,
        "bindings": list(view.catalog.bindings_of.get(spec.id, ())),
    }


def _binding_details(view: InventoryView, spec: Binding) -> InventoryRow:
    return {
        "operation": spec.operation,
        "request": spec.request,
        "response": spec.response,
        "metadata": spec.metadata,
        "fallback": spec.fallback,
        "chosen": _selected_binding(view, spec.capability) == spec.id,
        "unusable": [reason.text for reason in reasons(view.catalog, spec, view.options)],
    }


def _service_details(view: InventoryView, spec: Service) -> InventoryRow:
    return {
        "network": spec.network,
        "settings": spec.settings,
        "metadata": spec.metadata,
        "variables": [
            {"name": name, "set": bool(view.options.environ.get(name))} for name in variables_of(None, spec)
        ],
        "bindings": [
            id for id, binding in sorted(view.catalog.bindings.items()) if binding.service == spec.id
        ],
    }


# -- filters -----------------------------------------------------------------------------------------------------------


def _domain(capability_id: str) -> str:
    return capability_id.partition(".")[0]


def _bound_to(catalog: Catalog, service: Service) -> list[Binding]:
    return [binding for binding in catalog.bindings.values() if binding.service == service.id]


def _channels_of(catalog: Catalog, spec: Capability) -> set[str]:
    return {catalog.bindings[id].channel for id in catalog.bindings_of.get(spec.id, ())}


def _has_binding(view: InventoryView, spec: Capability) -> bool:
    return Usable(view.catalog, view.options, frozenset()).capability(spec.id)


def _may_be_called(view: InventoryView, spec: Binding) -> bool:
    return not reasons(view.catalog, spec, view.options)


def _may_be_reached(view: InventoryView, spec: Service) -> bool:
    return any(_may_be_called(view, binding) for binding in _bound_to(view.catalog, spec))


_ROWS: Final[dict[str, Callable[..., InventoryRow]]] = {
    "capabilities": _capability_row,
    "bindings": _binding_row,
    "services": _service_row,
}
_DETAILS: Final[dict[str, Callable[..., InventoryRow]]] = {
    "capabilities": _capability_details,
    "bindings": _binding_details,
    "services": _service_details,
}
_DOMAINS: Final[dict[str, Callable[..., set[str]]]] = {
    "capabilities": lambda catalog, spec: {_domain(spec.id)},
    "bindings": lambda catalog, spec: {_domain(spec.capability)},
    "services": lambda catalog, spec: {_domain(bound.capability) for bound in _bound_to(catalog, spec)},
}
_CHANNELS: Final[dict[str, Callable[..., set[str]]]] = {
    "capabilities": _channels_of,
    "bindings": lambda catalog, spec: {spec.channel},
    "services": lambda catalog, spec: {_channel_of(spec)},
}
_USABLE: Final[dict[str, Callable[..., bool]]] = {
    "capabilities": _has_binding,
    "bindings": _may_be_called,
    "services": _may_be_reached,
}
