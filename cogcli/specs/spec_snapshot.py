"""The specs of one run as a JSON document, stored as a blob of the episode, and the catalog made from it.

An episode is explained and replayed from this document alone, without its project. Keys keep the order of their files:
writes happen in mapping order, so sorted keys would change the skill.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from cogcli.base.jsonvalue import Json
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import KeyPath
from cogcli.base.redact import names_secret
from cogcli.declarations.binding_spec import Binding
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.field_spec import Fields
from cogcli.declarations.service_spec import Service
from cogcli.declarations.skill_spec import Skill
from cogcli.declarations.spec import require_whole
from cogcli.specs.catalog import Catalog, Defaults, binding_ids_of
from cogcli.specs.credentials import find_in_capability, find_in_skill, mask_places
from cogcli.specs.protocol import Protocols

SCHEMA: Final = "specs/1"


def document_of(catalog: Catalog) -> Json:
    """Return the specs of a catalog as their files declare them, with bases merged in and positions added.

    Credentials written in the specs are masked. The pins show whether a file has changed.
    """
    specs = {}
    for key, raw in catalog.raw.items():
        name, _, id = key.partition(":")
        kind = _KINDS[name]
        spec: Any = getattr(catalog, kind.table)[id]
        shown = mask_places(raw, kind.find_credentials(raw))
        specs[key] = {"spec": shown, **{member: getattr(spec, member) for member in kind.place}}
    named = catalog.defaults.bindings.items()
    defaults = {id: [*bindings] if len(bindings) > 1 else bindings[0] for id, bindings in named}
    return {"schema": SCHEMA, "specs": specs, "defaults": defaults, "aliases": catalog.aliases}


def catalog_of(document: Json, protocols: Protocols) -> Catalog:
    """Return the catalog in a snapshot document, with all services untrusted. Raise ValueError, KeyError, TypeError or
    AttributeError for an invalid document.
    """
    catalog = Catalog(
        skills={}, capabilities={}, bindings={}, bindings_of={}, services={}, packs={}, raw={}, partial=True,
        protocols=protocols,
        defaults=Defaults({id: binding_ids_of(named) for id, named in document["defaults"].items()}),
        aliases=document["aliases"],
    )  # fmt: skip
    for key, entry in document["specs"].items():
        name, _, id = key.partition(":")
        kind = _KINDS[name]
        place = {member: entry[member] for member in kind.place}
        spec = getattr(catalog, kind.table)[id] = kind.build(entry["spec"], **place)
        require_whole(spec)
        catalog.raw[key] = entry["spec"]
    for id in sorted(catalog.bindings):
        capability = catalog.aliases.get(
            catalog.bindings[id].capability, catalog.bindings[id].capability
        )
        catalog.bindings_of[capability] = (*catalog.bindings_of.get(capability, ()), id)
    return catalog


def without_secret_requirements(catalog: Catalog) -> Catalog:
    """Return the catalog for reading a log. It does not enforce types of secret values, since the log masks them."""
    kinds: tuple[Json, ...] = (catalog.skills, catalog.capabilities)
    for specs in kinds:
        for id, spec in specs.items():
            specs[id] = spec.replace(
                inputs=_relax_masked(spec.inputs), outputs=_relax_masked(spec.outputs)
            )
    return catalog


def _relax_masked(fields: Fields) -> Fields:
    """Return the fields without requirements on masked values, which are always text."""
    relaxed = dict(fields)
    for name, field in fields.items():
        if names_secret(name):
            type = field.type if field.type == "string" else "any"
            relaxed[name] = field.replace(type=type, enum=None, items=None, schema=None)
    return relaxed


class _PinnedKind(NamedTuple):
    """The storage of specs of one kind.

    It has their table in a catalog, the members with their positions, the function that builds them, and the function
    that finds credentials in them. A kind without the last one cannot contain credentials.
    """

    table: str
    place: tuple[str, ...]
    build: Callable[..., Any]
    find_credentials: Callable[[Json], Iterator[KeyPath]] = lambda raw: iter(())


def _pack_from(raw: Json, file: str) -> Any:
    from cogcli.declarations.pack_spec import Pack

    return Pack.of(raw, file=file)


_KINDS: Final = {
    "skill": _PinnedKind("skills", ("file",), Skill.of, find_in_skill),
    "capability": _PinnedKind("capabilities", ("file",), Capability.of, find_in_capability),
    "binding": _PinnedKind("bindings", ("file", "channel", "layer"), Binding.of),
    "pack": _PinnedKind("packs", ("file",), _pack_from),
    "service": _PinnedKind("services", ("file", "layer", "root"), Service.of),
}
