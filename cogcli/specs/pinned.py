"""The specs of one run as one document: what stands in an episode's blob, and a catalog out of it again.

A mailed episode is explained and replayed from this alone, with no project around it. Keys keep the order of their
files: writes happen in mapping order, so sorting them would be another skill.
"""

from __future__ import annotations

from typing import Any, Final

from cogcli.specs.binding import binding_from
from cogcli.specs.capability import capability_from
from cogcli.specs.catalog import Catalog
from cogcli.specs.policy import Defaults
from cogcli.specs.service import service_from
from cogcli.specs.skill import skill_from

SCHEMA: Final = "specs/1"


def document_of(catalog: Catalog) -> dict[str, Any]:
    """The catalog's specs as their files declare them, bases folded in; places kept beside each."""
    specs = {}
    for key, raw in catalog.raw.items():
        kind, _, id = key.partition(":")
        spec: Any = getattr(catalog, _TABLE[kind])[id]
        specs[key] = {"spec": raw, **{name: getattr(spec, name) for name in _PLACE[kind]}}
    return {
        "schema": SCHEMA,
        "specs": specs,
        "defaults": catalog.defaults.bindings,
        "aliases": catalog.aliases,
    }


def catalog_of(document: dict[str, Any]) -> Catalog:
    """The catalog of such a document. No service in it is trusted to start anything."""
    catalog = Catalog(
        skills={}, capabilities={}, bindings={}, bindings_of={}, services={}, raw={}, partial=True,
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
_FROM: Final[dict[str, Any]] = {
    "skill": skill_from,
    "capability": capability_from,
    "binding": binding_from,
    "service": service_from,
}
