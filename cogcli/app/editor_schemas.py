"""JSON Schemas that restrict the ids in a project's files to those of its registry, for editors
(docs/how-to/edit-with-an-editor.md)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from cogcli.app.registry import open_registry, writing_to
from cogcli.app.schemas import SPECS, schema_file
from cogcli.app.settings import Settings
from cogcli.base.files import UnreadableFile, read_regular, write_atomic
from cogcli.base.links import find_leaving_link
from cogcli.declarations.spec_types import NESTED
from cogcli.specs.catalog import Catalog
from cogcli.specs.json_schema import KnownIds

FOLDER: Final = ".cogcli/schemas"
WRITTEN: Final = (*SPECS, "config")
_INSTEAD: Final = {"_router": "config.router decides", "_scatter": "config.scatter decides"}
_LARGEST: Final = 64 * 1024 * 1024


def ids_of(settings: Settings) -> KnownIds | None:
    """Return the ids of this project's registry; None without a project."""
    return None if settings.project is None else catalog_ids(open_registry(settings).everything())


def _describe_bindings(catalog: Catalog) -> dict[str, str]:
    return {
        id: f"{each.protocol}:{each.service} for {each.capability}"
        for id, each in catalog.bindings.items()
    }


def catalog_ids(catalog: Catalog) -> KnownIds:
    """Return the ids of a catalog, each with a description. Ids of files with errors are
    included."""
    capabilities = _add_broken_ids(
        catalog, "capability", {id: c.description for id, c in catalog.capabilities.items()}
    )
    skills = _add_broken_ids(
        catalog, "skill", {id: s.description for id, s in catalog.skills.items()}
    )
    nested = {f"{NESTED}{id}": text for id, text in skills.items()}
    bindings = _describe_bindings(catalog)
    services = {id: f"{s.kind} service" for id, s in catalog.services.items()}
    aliases = {alias: f"another name of {id}" for alias, id in sorted(catalog.aliases.items())}
    packs = sorted({name for id in catalog.packs for name in (id, id.partition("@")[0])})
    called = {**capabilities, **aliases}
    return KnownIds(
        capabilities=called,
        targets={**called, **nested, **_INSTEAD},
        tools={**called, **nested},
        bindings=_add_broken_ids(catalog, "binding", bindings),
        services=_add_broken_ids(catalog, "service", services),
        packs={id: f"pack {id}" for id in packs},
        bindings_of={id: _describe_bindings_of(catalog, id, bindings) for id in called},
    )


def _describe_bindings_of(
    catalog: Catalog, id: str, descriptions: Mapping[str, str]
) -> dict[str, str]:
    """Return the bindings of a capability or an alias of one, each with its description."""
    names = catalog.bindings_of.get(catalog.aliases.get(id, id), ())
    return {name: descriptions[name] for name in names}


def _add_broken_ids(catalog: Catalog, kind: str, known_ids: dict[str, str]) -> dict[str, str]:
    """Return the known ids of a kind, and the ids of its files with errors."""
    broken = (name.partition(":")[2] for name in catalog.broken if name.startswith(f"{kind}:"))
    return dict(sorted({**dict.fromkeys(broken, "its file has errors"), **known_ids}.items()))


def stale_schemas(root: str, known_ids: KnownIds | None) -> dict[str, bytes]:
    """Return the new content of each schema that is missing or outdated, by path."""
    content_by_path = {
        os.path.join(root, FOLDER, f"{name}.schema.json"): schema_file(name, known_ids)
        for name in WRITTEN
    }
    return {path: data for path, data in content_by_path.items() if _read_content(path) != data}


def leads_out(root: str) -> bool:
    """Return whether the folder of the schemas is a link, or below a link, to a place outside `root`."""
    return bool(find_leaving_link(os.path.join(root, FOLDER), root))


def write_schemas(settings: Settings) -> list[str]:
    """Write the project's missing and outdated schemas, and return their display paths.

    If the folder is outside the project because of a link, nothing is written. Raise
    UnusableEnvironment `env.disk`."""
    if settings.project is None or leads_out(settings.project):
        return []
    stale = stale_schemas(settings.project, ids_of(settings))
    for path, data in stale.items():
        with writing_to(f"`{settings.display_path(path)}`"):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            write_atomic(path, data, mode=0o644, bound=settings.project)
    return [settings.display_path(path) for path in stale]


def _read_content(path: str) -> bytes | None:
    """Return the content of a schema file; None if it cannot be read."""
    try:
        return read_regular(path, limit=_LARGEST)
    except UnreadableFile:
        return None
