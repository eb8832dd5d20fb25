"""Schemas of a project for editors: the ids that its registry has are the values that fit
(docs/how-to/edit-with-an-editor.md)."""

from __future__ import annotations

import os
from typing import Final

from cogcli.app.registry import open_registry, writing
from cogcli.app.schemas import SPECS, schema_file
from cogcli.app.settings import Settings
from cogcli.base.files import FileRefused, read_regular, write_atomic
from cogcli.base.links import find_leaving_link
from cogcli.declarations.spec_types import NESTED
from cogcli.specs.catalog import Catalog
from cogcli.specs.json_schema import KnownIds

FOLDER: Final = ".cogcli/schemas"
WRITTEN: Final = (*SPECS, "config")
_INSTEAD: Final = {"_router": "config.router decides", "_scatter": "config.scatter decides"}
_LARGEST: Final = 64 * 1024 * 1024


def ids_of(settings: Settings) -> KnownIds | None:
    """The ids of this project's registry; None where there is no project."""
    return None if settings.project is None else known_ids(open_registry(settings).everything())


def known_ids(catalog: Catalog) -> KnownIds:
    """The ids of a catalog with what each is; those whose file has errors are among them."""
    capabilities = _with_broken(
        catalog, "capability", {id: c.description for id, c in catalog.capabilities.items()}
    )
    skills = _with_broken(catalog, "skill", {id: s.description for id, s in catalog.skills.items()})
    nested = {f"{NESTED}{id}": said for id, said in skills.items()}
    bindings = {
        id: f"{b.protocol}:{b.service} for {b.capability}" for id, b in catalog.bindings.items()
    }
    services = {id: f"{s.kind} service" for id, s in catalog.services.items()}
    aliases = {alias: f"another name of {id}" for alias, id in sorted(catalog.aliases.items())}
    packs = sorted({name for id in catalog.packs for name in (id, id.partition("@")[0])})
    called = {**capabilities, **aliases}
    return KnownIds(
        capabilities=called,
        targets={**called, **nested, **_INSTEAD},
        tools={**called, **nested},
        bindings=_with_broken(catalog, "binding", bindings),
        services=_with_broken(catalog, "service", services),
        packs={id: f"pack {id}" for id in packs},
        bindings_of={
            id: {
                binding: bindings[binding]
                for binding in catalog.bindings_of.get(catalog.aliases.get(id, id), ())
            }
            for id in called
        },
    )


def _with_broken(catalog: Catalog, kind: str, known: dict[str, str]) -> dict[str, str]:
    broken = (name.partition(":")[2] for name in catalog.broken if name.startswith(f"{kind}:"))
    return dict(sorted({**dict.fromkeys(broken, "its file has errors"), **known}.items()))


def stale_schemas(root: str, known: KnownIds | None) -> dict[str, bytes]:
    """The content of each schema of the project at `root` that is missing, or has other ids, by path."""
    made = {
        os.path.join(root, FOLDER, f"{name}.schema.json"): schema_file(name, known)
        for name in WRITTEN
    }
    return {path: data for path, data in made.items() if _content(path) != data}


def leads_out(root: str) -> bool:
    """Whether a link leads the schemas of the project at `root` to a place outside of it."""
    return bool(find_leaving_link(os.path.join(root, FOLDER), root))


def write_schemas(settings: Settings) -> list[str]:
    """Write the schemas of the project that are stale; their displayed paths. None where a link leads them out of the
    project. Raises EnvironmentRefusal `env.disk`."""
    if settings.project is None or leads_out(settings.project):
        return []
    stale = stale_schemas(settings.project, ids_of(settings))
    for path, data in stale.items():
        with writing(f"`{settings.display_path(path)}`"):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            write_atomic(path, data, mode=0o644, bound=settings.project)
    return [settings.display_path(path) for path in stale]


def _content(path: str) -> bytes | None:
    try:
        return read_regular(path, limit=_LARGEST)
    except FileRefused:
        return None
