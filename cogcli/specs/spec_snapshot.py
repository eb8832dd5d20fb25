"""The specs of one run as one JSON document, kept as a blob of the episode, and a catalog from it.

An episode is explained and replayed from this alone, without its project. Keys keep the order of their files: writes
happen in mapping order, so that sorted keys would be another skill.
"""

from __future__ import annotations

from typing import Any, Final

from cogcli.core.redact import names_secret
from cogcli.specs.binding import binding_from
from cogcli.specs.capability import capability_from
from cogcli.specs.catalog import Catalog, Defaults
from cogcli.specs.credentials import find_in_capability, find_in_skill, mask_places
from cogcli.specs.fields import Fields
from cogcli.specs.protocol import Protocols
from cogcli.specs.service import service_from
from cogcli.specs.skill import skill_from

SCHEMA: Final = "specs/1"


def document_of(catalog: Catalog) -> dict[str, Any]:
    """The catalog's specs as declared in their files, bases folded in, each with its places.

    Credentials written out in them are masked: the pins show whether a file has changed.
    """
    specs = {}
    for key, raw in catalog.raw.items():
        kind, _, id = key.partition(":")
        spec: Any = getattr(catalog, _TABLE[kind])[id]
        shown = mask_places(raw, _WRITTEN_OUT[kind](raw)) if kind in _WRITTEN_OUT else raw
        specs[key] = {"spec": shown, **{name: getattr(spec, name) for name in _PLACE[kind]}}
    return {
        "schema": SCHEMA,
        "specs": specs,
        "defaults": catalog.defaults.bindings,
        "aliases": catalog.aliases,
    }


def catalog_of(document: dict[str, Any], protocols: Protocols) -> Catalog:
    """The catalog of such a document. None of its services is trusted."""
    catalog = Catalog(
        skills={}, capabilities={}, bindings={}, bindings_of={}, services={}, raw={}, partial=True, protocols=protocols,
        defaults=Defaults(document["defaults"]), aliases=document["aliases"],
    )  # fmt: skip
    for key, entry in document["specs"].items():
        kind, _, id = key.partition(":")
        place = {name: entry[name] for name in _PLACE[kind]}
        getattr(catalog, _TABLE[kind])[id] = _FROM[kind](entry["spec"], **place)
        catalog.raw[key] = entry["spec"]
    for id in sorted(catalog.bindings):
        capability = catalog.aliases.get(catalog.bindings[id].capability, catalog.bindings[id].capability)
        catalog.bindings_of[capability] = (*catalog.bindings_of.get(capability, ()), id)
    return catalog


def without_secret_requirements(catalog: Catalog) -> Catalog:
    """The catalog for reading a log: secret values are masked in a log, so that their declarations are not enforced."""
    kinds: tuple[dict[str, Any], ...] = (catalog.skills, catalog.capabilities)
    for specs in kinds:
        for id, spec in specs.items():
            specs[id] = spec._replace(inputs=_relax(spec.inputs), outputs=_relax(spec.outputs))
    return catalog


def _relax(fields: Fields) -> Fields:
    """The fields with those of masked values, which are always text, without demands."""
    return {
        name: field._replace(
            type=field.type if field.type == "string" else "any", enum=None, items=None, schema=None
        )
        if names_secret(name)
        else field
        for name, field in fields.items()
    }


_TABLE: Final = {
    "skill": "skills",
    "capability": "capabilities",
    "binding": "bindings",
    "service": "services",
}
_PLACE: Final = {
    "skill": ("file",),
    "capability": ("file",),
    "binding": ("file", "channel", "layer"),
    "service": ("file", "layer", "root"),
}
_WRITTEN_OUT: Final = {"skill": find_in_skill, "capability": find_in_capability}
"""The kinds whose credentials are masked; in the others a credential is an error."""
_FROM: Final[dict[str, Any]] = {
    "skill": skill_from,
    "capability": capability_from,
    "binding": binding_from,
    "service": service_from,
}
