"""`ls`, `search` and `show` of every kind of spec, over one table: KINDS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from cogcli.app.inventory.skill import find_skill, skill_details, skill_row, skill_text
from cogcli.app.registry import Layers, Usable, fields_of, open_registry, selection_options, text_of
from cogcli.app.settings import Settings
from cogcli.core.errors import CapabilityNotFoundError, CogcliError, UsageError
from cogcli.core.problems import ProblemsFound, sort_problems, suggestion
from cogcli.core.redact import Redactor
from cogcli.specs.binding import Binding
from cogcli.specs.binding_chain import SelectionOptions
from cogcli.specs.capability import Capability
from cogcli.specs.catalog import Catalog
from cogcli.specs.eligibility import reasons, variables_of
from cogcli.specs.selection import select
from cogcli.specs.service import Service
from cogcli.specs.skill_search import words_found

InventoryRow = dict[str, Any]
_ADDRESSES: Final = ("base_url", "url", "command", "server", "spec_ref")


class InventoryView(NamedTuple):
    """A catalog, how bindings are selected, the layer of each file, and what can be called and run."""

    catalog: Catalog
    options: SelectionOptions
    layers: Layers
    usable: Usable


def view_of(settings: Settings, catalog: Catalog) -> InventoryView:
    """A catalog as a command without flags of selection sees it."""
    options = selection_options(settings)
    return InventoryView(catalog, options, Layers(settings), Usable(catalog, options))


def whole_view(settings: Settings) -> InventoryView:
    """The view of all specs of all layers."""
    return view_of(settings, open_registry(settings).everything())


class Kind(NamedTuple):
    """A kind of spec. `text` is what a search looks through, `near` names the members of a row whose hits come first.

    `secret_keys`: whether its details may hold values under secret names, which are masked.
    """

    singular: str
    row: Callable[[InventoryView, Any], InventoryRow]
    details: Callable[[InventoryView, Any], InventoryRow]
    domains: Callable[[Catalog, Any], set[str]]
    channels: Callable[[Catalog, Any], set[str]]
    usable: Callable[[InventoryView, Any], bool]
    text: Callable[[InventoryRow, Any], str] = lambda row, spec: " ".join(map(str, row.values()))
    near: tuple[str, ...] = ("id",)
    secret_keys: bool = True


def find_spec(settings: Settings, kind: str, id: str) -> tuple[InventoryView, Any]:
    """A spec by id, a capability by alias, too, with a view of the catalog that holds it.

    Raises UsageError, SkillNotFoundError, CapabilityNotFoundError; ProblemsFound where its file has errors.
    """
    if kind == "skills":
        skill, catalog = find_skill(settings, id)
        return view_of(settings, catalog), skill
    view, singular = whole_view(settings), KINDS[kind].singular
    catalog, specs = view.catalog, getattr(view.catalog, kind)
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


def shadows_of(catalog: Catalog, kind: str, id: str) -> list[dict[str, str]]:
    """The specs that a spec hides, the weakest layer first; `kind` in the singular."""
    return [{"layer": s.layer, "file": s.file} for s in catalog.shadows if (s.kind, s.id) == (kind, id)]


def _capability_row(view: InventoryView, spec: Capability) -> InventoryRow:
    return {
        "id": spec.id,
        "version": spec.version,
        "binding": _selected_binding(view, spec.id),
        "description": " ".join(spec.description.split()),
        "layer": view.layers.of(spec.file),
        "file": spec.file,
    }


def _capability_details(view: InventoryView, spec: Capability) -> InventoryRow:
    return {
        "effect": spec.effect,
        "inputs": fields_of(spec.inputs),
        "outputs": fields_of(spec.outputs),
        "safety": spec.safety.declared if spec.safety else None,
        "aliases": list(spec.aliases),
        **_members(spec, "deprecated", "replacement"),
        "bindings": list(view.catalog.bindings_of.get(spec.id, ())),
    }


def _binding_row(view: InventoryView, spec: Binding) -> InventoryRow:
    names = ("id", "capability", "service", "protocol", "conformance", "channel", "layer", "file")
    return _members(spec, *names)


def _binding_details(view: InventoryView, spec: Binding) -> InventoryRow:
    return {
        **_members(spec, "operation", "request", "response", "metadata", "fallback"),
        "chosen": _selected_binding(view, spec.capability) == spec.id,
        "unusable": [reason.text for reason in reasons(view.catalog, spec, view.options)],
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


def _service_details(view: InventoryView, spec: Service) -> InventoryRow:
    return {
        **_members(spec, "network", "settings", "metadata"),
        "variables": [
            {"name": name, "set": bool(view.options.environ.get(name))} for name in variables_of(None, spec)
        ],
        "bindings": sorted(binding.id for binding in _bound_to(view.catalog, spec)),
    }


def _members(spec: Any, *names: str) -> InventoryRow:
    return {name: getattr(spec, name) for name in names}


def _channel_of(service: Service) -> str:
    """The channel of a service: the folder around its file, if that is one."""
    parts = service.file.replace("\\", "/").split("/")
    return parts[-2] if not service.at and len(parts) > 1 and parts[-2] != "services" else "local"


def _selected_binding(view: InventoryView, capability_id: str) -> str | None:
    try:
        return select(view.catalog, capability_id, view.options).usable[0]
    except CogcliError:
        return None


def _domain(id: str) -> str:
    return id.partition(".")[0]


def _bound_to(catalog: Catalog, service: Service) -> list[Binding]:
    return [binding for binding in catalog.bindings.values() if binding.service == service.id]


def _is_eligible(view: InventoryView, spec: Binding) -> bool:
    return not reasons(view.catalog, spec, view.options)


KINDS: Final[dict[str, Kind]] = {
    "skills": Kind(
        "skill",
        lambda view, spec: skill_row(spec),
        lambda view, spec: skill_details(spec, view.layers, shadows_of(view.catalog, "skill", spec.id)),
        domains=lambda catalog, spec: {_domain(spec.id)},
        channels=lambda catalog, spec: {skill_row(spec)["channel"]},
        usable=lambda view, spec: view.usable.skill(spec.id),
        text=skill_text,
        near=("id", "name", "description"),
        secret_keys=False,
    ),
    "capabilities": Kind(
        "capability",
        _capability_row,
        _capability_details,
        domains=lambda catalog, spec: {_domain(spec.id)},
        channels=lambda catalog, spec: {
            catalog.bindings[id].channel for id in catalog.bindings_of.get(spec.id, ())
        },
        usable=lambda view, spec: view.usable.capability(spec.id),
    ),
    "bindings": Kind(
        "binding",
        _binding_row,
        _binding_details,
        domains=lambda catalog, spec: {_domain(spec.capability)},
        channels=lambda catalog, spec: {spec.channel},
        usable=_is_eligible,
    ),
    "services": Kind(
        "service",
        _service_row,
        _service_details,
        domains=lambda catalog, spec: {_domain(bound.capability) for bound in _bound_to(catalog, spec)},
        channels=lambda catalog, spec: {_channel_of(spec)},
        usable=lambda view, spec: any(
            _is_eligible(view, binding) for binding in _bound_to(view.catalog, spec)
        ),
    ),
}
"""Capabilities have the channels of their bindings, services the domains of the capabilities bound to them."""


def list_specs(
    settings: Settings,
    name: str,
    *,
    domain: str | None = None,
    channel: str | None = None,
    usable: bool = False,
) -> list[InventoryRow]:
    """One row for each spec of the kind of this name, by id."""
    view, kind = whole_view(settings), KINDS[name]
    return [
        kind.row(view, spec)
        for _, spec in sorted(getattr(view.catalog, name).items())
        if (domain is None or domain in kind.domains(view.catalog, spec))
        and (channel is None or channel in kind.channels(view.catalog, spec))
        and (not usable or kind.usable(view, spec))
    ]


def search_specs(settings: Settings, name: str, words: list[str], limit: int) -> list[InventoryRow]:
    """The rows that contain every word; hits in the nearer members come first, then the spec of that very id."""
    view, kind = whole_view(settings), KINDS[name]
    parts = [part for word in words for part in word.lower().split()]
    hits = []
    for id, spec in sorted(getattr(view.catalog, name).items()):
        row = kind.row(view, spec)
        if len(words_found(parts, kind.text(row, spec))) == len(parts):
            near = words_found(parts, " ".join(row[member] for member in kind.near))
            hits.append((len(parts) - len(near), id not in parts, row))
    return [row for *_, row in sorted(hits, key=lambda hit: hit[:2])][:limit]


def spec_details(settings: Settings, name: str, id: str) -> InventoryRow:
    """All of a spec, with its layer and the specs that it hides; values under secret names are masked.

    Raises as `find_spec`.
    """
    view, spec = find_spec(settings, name, id)
    kind = KINDS[name]
    whole = {**kind.row(view, spec), **kind.details(view, spec)}
    if not kind.secret_keys:
        return whole
    masked: InventoryRow = Redactor().mask(
        {**whole, "shadows": shadows_of(view.catalog, kind.singular, spec.id)}
    )
    return masked


def read_source(settings: Settings, name: str, id: str) -> str:
    """The text of the file that declares a spec. Raises as `find_spec`, and EnvironmentRefusal `specs.invalid`."""
    return text_of(settings, find_spec(settings, name, id)[1].file)
