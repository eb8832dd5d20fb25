"""`ls`, `search` and `show` of every kind of spec, over one table: KINDS."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

from cogcli.app.inventory.login import describe_login
from cogcli.app.inventory.skill import (
    find_skill,
    row_texts,
    sample_run,
    skill_details,
    skill_row,
    texts_of_skill,
)
from cogcli.app.needs import MissingRequirement, RequirementSearch, find_needs, needs_of_binding
from cogcli.app.registry import (
    Layers,
    fields_to_payload,
    open_registry,
    read_spec_text,
    selection_options,
)
from cogcli.app.settings import Settings
from cogcli.base.errors import CapabilityNotFoundError, CogcliError, UsageError
from cogcli.base.json_pointer import DocumentFault
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import Problem, ProblemsFound, sort_problems, suggestion
from cogcli.base.redact import Redactor
from cogcli.base.system import SystemClock
from cogcli.declarations.binding_spec import Binding
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.service_spec import Service
from cogcli.declarations.skill_spec import Skill
from cogcli.declarations.value_types import Json
from cogcli.protocols import PROTOCOLS
from cogcli.specs.binding_chain import SelectionOptions
from cogcli.specs.catalog import Catalog
from cogcli.specs.eligibility import reasons, variables_of
from cogcli.specs.layers import BUILT_IN
from cogcli.specs.lock import MEMBERS, read_locked_tools
from cogcli.specs.protocol import LOCK
from cogcli.specs.selection import select
from cogcli.specs.service_variables import address_fault
from cogcli.specs.skill import capabilities_of
from cogcli.specs.skill_search import search_metadata
from cogcli.specs.word_search import SearchField, search

InventoryRow = Json
_ADDRESSES: Final = ("base_url", "url", "command", "server", "spec_ref")


class InventoryView(NamedTuple):
    """A catalog with the selection options, the layers of its files, and the missing needs."""

    catalog: Catalog
    options: SelectionOptions
    layers: Layers
    needs: RequirementSearch


def view_of(settings: Settings, catalog: Catalog) -> InventoryView:
    """Return the view of a catalog for a command that has no flags for the selection of
    bindings."""
    options = selection_options(settings)
    needs = find_needs(open_registry(settings), catalog, options)
    return InventoryView(catalog, options, Layers(settings), needs)


def whole_view(settings: Settings) -> InventoryView:
    """Return the view of all specs in all layers."""
    return view_of(settings, open_registry(settings).everything())


class Kind(NamedTuple):
    """A kind of spec. Its functions take a spec of the kind.

    `texts` returns the searched strings. `why_not` returns short reasons why the spec cannot be used
    here, and is empty if it can. `capabilities` returns the capabilities whose tags the spec has
    too. `secret_keys`: whether the details may contain values under secret names, which must be
    masked."""

    singular: str
    row: Callable[[InventoryView, Any], InventoryRow]
    details: Callable[[InventoryView, Any], InventoryRow]
    domains: Callable[[Catalog, Any], set[str]]
    channels: Callable[[Catalog, Any], set[str]]
    why_not: Callable[[InventoryView, Any], list[str]]
    capabilities: Callable[[Catalog, Any], set[str]] = lambda catalog, spec: set()
    texts: Callable[[InventoryRow, Any], list[SearchField]] = lambda row, spec: row_texts(row, spec)
    secret_keys: bool = True


def find_spec(settings: Settings, kind: str, id: str) -> tuple[InventoryView, Any]:
    """Return a spec by id, or a capability by alias, with a view of its catalog.

    Raise UsageError, SkillNotFoundError or CapabilityNotFoundError, and ProblemsFound if its file
    has errors."""
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
    raise UsageError(
        "usage.value", f"there is no {singular} `{id}`", hint=hint, next=(f"cogcli {kind} ls",)
    )


def find_shadowed_specs(catalog: Catalog, kind: str, id: str) -> list[dict[str, str]]:
    """Return the layers and files of the specs that a spec shadows, weakest layer first. `kind` is singular."""
    return [
        {"layer": s.layer, "file": s.file} for s in catalog.shadows if (s.kind, s.id) == (kind, id)
    ]


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
    aliases = view.catalog.aliases
    callers = [
        skill
        for _, skill in sorted(view.catalog.skills.items())
        if spec.id in (aliases.get(name, name) for name in capabilities_of(skill))
    ]
    ready = [skill for skill in callers if not view.needs.skill(skill.id)]
    return {
        "effect": spec.effect,
        "inputs": fields_to_payload(spec.inputs),
        "outputs": fields_to_payload(spec.outputs),
        "safety": spec.safety.json if spec.safety else None,
        "aliases": list(spec.aliases),
        **_select_members(spec, "deprecated", "replacement"),
        "bindings": list(view.catalog.bindings_of.get(spec.id, ())),
        "tags": search_metadata(spec).tags,
        "skills": [skill.id for skill in callers],
        "run": sample_run(ready[0]) if ready else "",
    }


def _skill_details(view: InventoryView, spec: Skill) -> InventoryRow:
    bindings = [
        {
            "capability": id,
            "usable": not view.needs.capability(id),
            "binding": _selected_binding(view, id),
        }
        for id in sorted(each.id for each in view.catalog.reached(spec.id))
    ]
    shadows = find_shadowed_specs(view.catalog, "skill", spec.id)
    return {**skill_details(spec, view.layers, shadows), "bindings": bindings}


def _binding_row(view: InventoryView, spec: Binding) -> InventoryRow:
    names = ("id", "capability", "service", "protocol", "conformance", "channel", "layer", "file")
    return _select_members(spec, *names)


def _binding_details(view: InventoryView, spec: Binding) -> InventoryRow:
    return {
        **_select_members(spec, "operation", "request", "response"),
        "metadata": spec.metadata.json,
        "fallback": spec.fallback,
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
        "description": " ".join((spec.metadata.description or "").split()),
        "file": spec.file,
    }


def _service_details(view: InventoryView, spec: Service) -> InventoryRow:
    return {
        **_select_members(spec, "network", "settings"),
        "metadata": spec.metadata.json,
        "variables": [
            {"name": name, "set": bool(view.options.environ.get(name))}
            for name in variables_of(None, spec)
        ],
        **({"values": {} if address_fault(spec) else dict(spec.values)} if spec.variables else {}),
        "bindings": sorted(binding.id for binding in _bindings_of_service(view.catalog, spec)),
        **_locked_tools(spec),
        **_login_members(view, spec),
    }


def _login_members(view: InventoryView, spec: Service) -> InventoryRow:
    """Return the user who is logged in to a service; empty for a service without a login."""
    if spec.keys.login is None:
        return {}
    return {"login": describe_login(spec, view.options.environ, SystemClock().now())}


def _locked_tools(spec: Service) -> InventoryRow:
    """Return the accepted tools of an MCP service, as its lock records them; empty without a lock."""
    try:
        is_locked = PROTOCOLS[spec.kind].described_by(spec) == LOCK
        locked = read_locked_tools(spec.root, spec.id) if is_locked else None
    except DocumentFault:  # `validate` reports it
        return {}
    if locked is None:
        return {}
    return {"tools": [{key: tool.get(key) for key in MEMBERS} for tool in locked.values()]}


def _select_members(spec: Any, *names: str) -> InventoryRow:
    return {name: getattr(spec, name) for name in names}


def _channel_of(service: Service) -> str:
    """Return the channel of a service: the folder of its file, if it is a channel."""
    parts = service.file.replace("\\", "/").split("/")
    return parts[-2] if not service.at and len(parts) > 1 and parts[-2] != "services" else "local"


def _selected_binding(view: InventoryView, capability_id: str) -> str | None:
    try:
        return select(view.catalog, capability_id, view.options).usable[0]
    except CogcliError:
        return None


def _domain_of_id(id: str) -> str:
    return id.partition(".")[0]


def _bindings_of_service(catalog: Catalog, service: Service) -> list[Binding]:
    return [binding for binding in catalog.bindings.values() if binding.service == service.id]


def _list_need_names(needs: Iterable[MissingRequirement]) -> list[str]:
    return list(dict.fromkeys(need.brief for need in needs))


def _explain_unusable_binding(view: InventoryView, spec: Binding) -> list[str]:
    """Return why a binding cannot be called; empty if it can."""
    return _list_need_names(needs_of_binding(view.catalog, spec, view.options))


def _explain_unusable_service(view: InventoryView, spec: Service) -> list[str]:
    """Return why the first binding of a service cannot be called; empty if any of its bindings
    can."""
    found = [
        _explain_unusable_binding(view, binding)
        for binding in _bindings_of_service(view.catalog, spec)
    ]
    return [] if [] in found else (found or [["no binding"]])[0]


KINDS: Final[dict[str, Kind]] = {
    "skills": Kind(
        "skill",
        lambda view, spec: skill_row(spec),
        _skill_details,
        domains=lambda catalog, spec: {_domain_of_id(spec.id)},
        channels=lambda catalog, spec: {skill_row(spec)["channel"]},
        why_not=lambda view, spec: _list_need_names(view.needs.skill(spec.id)),
        texts=texts_of_skill,
        secret_keys=False,
    ),
    "capabilities": Kind(
        "capability",
        _capability_row,
        _capability_details,
        domains=lambda catalog, spec: {_domain_of_id(spec.id)},
        channels=lambda catalog, spec: {
            catalog.bindings[id].channel for id in catalog.bindings_of.get(spec.id, ())
        },
        why_not=lambda view, spec: _list_need_names(view.needs.capability(spec.id)),
    ),
    "bindings": Kind(
        "binding",
        _binding_row,
        _binding_details,
        domains=lambda catalog, spec: {_domain_of_id(spec.capability)},
        channels=lambda catalog, spec: {spec.channel},
        why_not=_explain_unusable_binding,
        capabilities=lambda catalog, spec: {spec.capability},
    ),
    "services": Kind(
        "service",
        _service_row,
        _service_details,
        domains=lambda catalog, spec: {
            _domain_of_id(bound.capability) for bound in _bindings_of_service(catalog, spec)
        },
        channels=lambda catalog, spec: {_channel_of(spec)},
        why_not=_explain_unusable_service,
        capabilities=lambda catalog, spec: {
            bound.capability for bound in _bindings_of_service(catalog, spec)
        },
    ),
}
"""All kinds, by name. A capability has the channels of its bindings; a service has the domains of
its capabilities."""


def list_specs(
    view: InventoryView,
    name: str,
    *,
    domain: str | None = None,
    channel: str | None = None,
    tag: str | None = None,
    usable: bool = False,
) -> list[InventoryRow]:
    """Return one row per spec of a kind, sorted by id. The user's specs are first, followed by the shipped ones."""
    kind = KINDS[name]
    catalog = view.catalog
    specs = [spec for _, spec in sorted(getattr(catalog, name).items())]
    filters: list[tuple[str | None, Callable[[Catalog, Any], set[str]]]] = [
        (domain, kind.domains),
        (channel, kind.channels),
        (tag, partial(_collect_tags, kind)),
    ]
    for wanted, words_of in filters:
        if wanted is not None:
            specs = [spec for spec in specs if wanted in words_of(catalog, spec)]
    rows = [_build_row(view, kind, spec) for spec in specs]
    rows.sort(key=lambda row: row["layer"] == BUILT_IN)
    return [row for row in rows if row["usable"] or not usable]


def unreadable_files(view: InventoryView) -> list[Problem]:
    """Return the first error of each file that cannot be read as a spec. Lists omit such files."""
    errors = [
        problem for problem in sort_problems(view.catalog.problems) if problem.severity == "E"
    ]
    first = {problem.file: problem for problem in reversed(errors)}
    return [first[file] for file in sorted(set(view.catalog.broken.values())) if file in first]


def count_specs(settings: Settings, name: str) -> int:
    """Return the number of specs of a kind."""
    return len(getattr(open_registry(settings).everything(), name))


def _build_row(view: InventoryView, kind: Kind, spec: Any) -> InventoryRow:
    """Return the row of a spec, with its layer and whether it is usable."""
    why_not = kind.why_not(view, spec)
    row = kind.row(view, spec)
    layer = row.get("layer") or view.layers.of(spec.file)
    return {**row, "layer": layer, "usable": not why_not, "why_not": ", ".join(why_not) or None}


def _collect_tags(kind: Kind, catalog: Catalog, spec: Any) -> set[str]:
    """Return the tags of a spec and of its capabilities."""
    found = [catalog.capability(id) for id in kind.capabilities(catalog, spec)]
    tagged = [one for one in (spec, *found) if isinstance(one, Skill | Capability)]
    return {tag for one in tagged for tag in search_metadata(one).tag_texts}


class SearchResults(NamedTuple):
    """The rows of the matching specs, the best first. If no spec matches, `near` contains words of
    similar specs."""

    rows: list[InventoryRow]
    near: tuple[str, ...]


def search_specs(
    view: InventoryView, kind_name: str, words: list[str], limit: int
) -> SearchResults:
    """Return the specs of one kind that match the words, best match first, at most `limit`
    (docs/reference/command-line.md#search)."""
    kind = KINDS[kind_name]
    specs = dict(sorted(getattr(view.catalog, kind_name).items()))
    texts = {id: kind.texts(kind.row(view, spec), spec) for id, spec in specs.items()}
    hits = search(words, texts)
    return SearchResults([_build_row(view, kind, specs[id]) for id in hits.keys[:limit]], hits.near)


def spec_details(settings: Settings, name: str, id: str) -> InventoryRow:
    """Return all details of a spec, with its layer and the specs that it shadows. Values under
    secret names are masked.

    Raise the errors of `find_spec`."""
    return details_of(*find_spec(settings, name, id), name)


def details_of(view: InventoryView, spec: Any, name: str) -> InventoryRow:
    """Return the same details as `spec_details`, for a spec that is already loaded."""
    kind = KINDS[name]
    whole = {**_build_row(view, kind, spec), **kind.details(view, spec)}
    if not kind.secret_keys:
        return whole
    masked: InventoryRow = Redactor().mask(
        {**whole, "shadows": find_shadowed_specs(view.catalog, kind.singular, spec.id)}
    )
    return masked


def read_source(settings: Settings, name: str, id: str) -> str:
    """Return the text of the file that declares a spec. Raise the errors of `find_spec`, and
    UnusableEnvironment `specs.invalid`."""
    return read_spec_text(settings, find_spec(settings, name, id)[1].file)
