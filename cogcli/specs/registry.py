"""The registry: it loads the closure of one skill, all specs, or single files.

The rules are in docs/reference/spec-files.md#places and docs/reference/spec-files.md#layers.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy

from cogcli.base.canonical import digest_of
from cogcli.base.errors import CapabilityNotFoundError, CogcliError, SkillNotFoundError
from cogcli.base.jsonvalue import NOTHING
from cogcli.base.links import is_below, require_inside
from cogcli.base.problems import Problem, sort_problems, suggestion
from cogcli.base.walk import FolderWalk
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.skill_spec import Skill
from cogcli.declarations.spec_ceilings import DEFAULT_CEILINGS, SpecCeilings
from cogcli.declarations.value_types import Json
from cogcli.specs.cache import CompiledCache
from cogcli.specs.catalog import Catalog
from cogcli.specs.catalog_builder import CatalogBuilder
from cogcli.specs.host_layout import ACTIVE_FILE, KIND_OF_FILE, is_host_root, is_root, layout_of
from cogcli.specs.layers import HOST_FOLDER, Layer, distinct
from cogcli.specs.layout import CASES, SKILL_FILE, Layout, LayoutFile
from cogcli.specs.protocol import Protocols
from cogcli.specs.skill import capabilities_of, skills_of
from cogcli.specs.spec_reader import SpecReader

_KINDS = ("skill", "case", "capability", "binding", "service", "pack")


class Registry:
    """Layers of specs.

    `environ` has the variables of services. Display paths are relative to the directory `base` for files below it.
    Every load reads the files again, each once: the bytes that are hashed are the bytes that are parsed.
    """

    def __init__(
        self, layers: Sequence[Layer], *, protocols: Protocols, cache: CompiledCache | None = None, base: str,
        environ: Mapping[str, str] = NOTHING, refusal: CogcliError | None = None,
        ceilings: SpecCeilings = DEFAULT_CEILINGS,
    ) -> None:  # fmt: skip
        self.layers = distinct(layer._replace(root=_posix_path(layer.root)) for layer in layers)
        self._protocols = protocols
        self._cache = cache
        self._base = _posix_path(base)
        self._environ = environ
        self._ceilings = ceilings
        self.distrust = ""
        """The reason why no spec of a catalog is trusted, in any layer. Empty if each layer has its own trust."""
        self.refusal = refusal
        """Raised if an untrusted layer would be read. None if all layers can be read."""

    @property
    def is_trusted(self) -> bool:
        """Whether all layers are trusted."""
        return all(layer.trusted for layer in self.layers)

    def for_run(self, kind: str, id: str) -> Registry:
        """Return the registry for a run of a skill or a pack (docs/reference/service.md#trust).

        If a trusted layer has the spec, return only the trusted layers: the run is the same as in an empty directory.
        Otherwise return all layers without trust, since the project determines the calls.
        """
        if self.is_trusted and self.refusal is None:
            return self
        trusted = self.trusted_layers()  # a registry without trust gives no trust here either
        known = any(layout_of(layer).find(kind, id.partition("#")[0]) for layer in trusted.layers)
        return trusted if known else self.without_trust(self.distrust)

    def trusted_layers(self) -> Registry:
        """Return the registry with only its trusted layers."""
        trusted = self.with_layers({layer.name for layer in self.layers if layer.trusted})
        trusted.refusal = None
        return trusted

    def readable(self) -> Registry:
        """Return the registry with only its readable layers: all of them, or the trusted ones."""
        return self if self.refusal is None else self.trusted_layers()

    def _readable_layers(self) -> list[Layer]:
        """Return the layers. Raise the error in the settings if they do not determine all layers."""
        if self.refusal is not None:
            raise self.refusal
        return self.layers

    def with_layers(self, names: Collection[str]) -> Registry:
        """Return the registry with only the layers that have these names."""
        other = copy(self)
        other.layers = [layer for layer in self.layers if layer.name in names]
        return other

    def without_trust(self, reason: str = "") -> Registry:
        """Return the registry with all services and bindings untrusted, or itself if all layers are
        trusted.

        `reason` is the reason for distrust if it is not an untrusted layer.
        """
        if self.is_trusted:
            return self
        other = copy(self)
        reasons = (layer.distrust for layer in self.layers if not layer.trusted)
        other.distrust = reason or next(filter(None, reasons), "the project is not trusted")
        return other

    def reach(
        self, skill_id: str, *, also: Iterable[str] = (), packs: Iterable[str] = ()
    ) -> Catalog:
        """Return the closure of one skill, of `packs`, and of the existing capabilities in `also`.

        It contains nested skills, capabilities, gates, and all their bindings and services. A pack is an `id@version`,
        with its hash if layers contain several. Trust is as in `for_run`. Raise SkillNotFoundError if no layer has a
        file for the id. A file with errors is listed in `broken`.
        """
        registry = self.for_run("skill", skill_id)
        builder = registry.builder()
        if not builder.exists("skill", skill_id):
            hint = suggestion(skill_id, self.ids("skill"))
            raise SkillNotFoundError("skill.not-found", f"no skill `{skill_id}`", hint=hint)
        for pack in packs:
            builder.add_pack(pack)
        return registry.build_closure(builder, [skill_id], also)

    def build_closure(
        self, builder: CatalogBuilder, skills: list[str], also: Iterable[str]
    ) -> Catalog:
        """Return the catalog of these skills and their nested skills, and of the capabilities in `also` that exist."""
        capabilities = [
            name for name in also if builder.exists("capability", builder.canonical(name))
        ]
        seen = set[str]()
        while skills:
            name = skills.pop()
            skill = None if name in seen else builder.add_skill(name)
            seen.add(name)
            if skill:
                skills += skills_of(skill)
                capabilities += capabilities_of(skill)
        return self._load_closure(builder, capabilities)

    def reach_capability(self, name: str) -> Catalog:
        """Return the closure of one capability: gates, all their bindings and services. `name` may be an alias.

        Raise CapabilityNotFoundError if no layer has a file for it. A file with errors is listed in `broken`.
        """
        builder = self.builder()
        if not builder.exists("capability", builder.canonical(name)):
            hint = suggestion(name, self.ids("capability"))
            raise CapabilityNotFoundError(
                "capability.not-found", f"no capability `{name}`", hint=hint
            )
        return self._load_closure(builder, [name])

    def _load_closure(self, builder: CatalogBuilder, pending: list[str]) -> Catalog:
        """Return the catalog of capabilities with all that their calls need.

        It has gates, probes, bindings, services, default selections and the choices of the host.
        """
        seen: set[str] = set()
        while pending:
            capability = builder.add_capability(pending.pop())
            if capability and capability.id not in seen:
                seen.add(capability.id)
                pending += capability.asks
                builder.add_bindings_of(capability)
        for binding in list(builder.specs.bindings.values()):
            builder.add_service(binding.service)
        builder.add_choices()
        return self._build_catalog(builder, partial=True)

    def everything(self) -> Catalog:
        """Return the catalog of all specs in all layers."""
        return self._build_catalog(self.builder().add_everything(), partial=False)

    def skills(self) -> dict[str, Skill]:
        """Return the skills of all layers whose file has no errors, by id. No other file is read."""
        found = self.builder().add_skills()
        self._flush_cache()
        return found

    def capabilities(self) -> dict[str, Capability]:
        """Return the capabilities of all layers whose file has no errors, by id. No other file is read."""
        found = self.builder().add_capabilities()
        self._flush_cache()
        return found

    def _own_layer(self, path: str) -> Layer:
        """Return the additional layer of a directory that a caller names."""
        return Layer(path, path, False, host=is_host_root(path), bound=self._find_bound(path))

    def files(
        self,
        paths: Sequence[str],
        *,
        contents: Mapping[str, bytes] | None = None,
        kind: str = "",
        packs_alone: bool = False,
    ) -> Catalog:
        """Return the catalog of these files and directories, with the registry that they reference. `only` of the
        catalog lists these files.

        With `packs_alone`, only the packs of the registry are loaded, without their references. `contents` replaces the
        bytes of a path. A file outside all layers belongs to an additional last layer, which is untrusted; a directory
        with spec folders is such a layer. `kind` is the kind of a file outside all layers. Without it, the folders and
        keys of the file determine the kind.
        """
        named = [self._absolute_path(path) for path in paths]
        given = {self._absolute_path(path): data for path, data in (contents or {}).items()}
        reader = self._make_reader(given)
        own = [self._own_layer(path) for path in named if is_root(path)]
        layouts = [layout_of(layer) for layer in distinct([*self._readable_layers(), *own])]
        places = {place.path: place for layout in layouts for place in _list_files(layout)}
        for path in named:
            require_inside(path, self._find_bound(path))
        wanted, outside, problems = _sort_paths(named, places, reader, kind, self._find_bound)
        builder = CatalogBuilder(
            layouts, reader, given=outside, named=wanted, environ=self._environ
        )
        builder = builder.add_packs() if packs_alone else builder.add_everything()
        catalog = self._build_catalog(builder, partial=packs_alone)
        only = frozenset(map(reader.display_path, wanted)).union(p.file for p in problems)
        return _keep_problems_of(catalog, only, problems)

    def _find_bound(self, path: str) -> str:
        """Return the bound of the layer that contains a path. Empty if no layer contains it."""
        bounds = (layer.bound for layer in self.layers if layer.bound)
        return next((bound for bound in bounds if is_below(path, bound)), "")

    def ids(self, kind: str) -> list[str]:
        """Return all ids of a kind, sorted. They are derived from paths, except for services of host overrides.

        For bindings, return the names of their files.
        """
        builder = self.builder()
        names = {
            p.id or os.path.basename(p.path).removesuffix(".yaml") for p in builder.files(kind)
        }
        return sorted(names.union(builder.entries() if kind == "service" else ()))

    def paths(self, kind: str, id: str) -> list[str]:
        """Return the paths of all files for a skill, capability, service or pack, in layer order."""
        return [
            place.path
            for layer in self._readable_layers()
            for place in layout_of(layer).find(kind, id)
        ]

    def packs(self, id: str) -> dict[str, str]:
        """Return, by path, the hash of each file of a pack `id@version`, in layer order.

        The hash is empty for a file with errors.
        """
        reader = self._make_reader()
        places = [
            place
            for layer in self._readable_layers()
            for place in layout_of(layer).find("pack", id)
        ]
        raws = {place.path: reader.load(place).raw for place in places}
        return {path: digest_of(raw) if raw else "" for path, raw in raws.items()}

    def bound(self, binding_id: str) -> str | None:
        """Return the capability of a binding in any layer, or None if no readable file has its id."""
        builder = self.builder()
        builder.add_bindings(builder.files("binding"))
        binding = builder.specs.bindings.get(binding_id)
        return binding.capability if binding else None

    def _build_catalog(self, builder: CatalogBuilder, *, partial: bool) -> Catalog:
        self._flush_cache()
        catalog = builder.catalog(partial=partial, known=self.ids, bound=self.bound)
        catalog = catalog._replace(ceilings=self._ceilings)
        return catalog_without_trust(catalog, self.distrust) if self.distrust else catalog

    def _flush_cache(self) -> None:
        if self._cache:
            self._cache.flush()

    def builder(self) -> CatalogBuilder:
        """Return an empty builder for all layers."""
        return CatalogBuilder(
            [layout_of(layer) for layer in self._readable_layers()],
            self._make_reader(),
            environ=self._environ,
        )

    def _make_reader(self, contents: Mapping[str, bytes] | None = None) -> SpecReader:
        return SpecReader(
            protocols=self._protocols, cache=self._cache, base=self._base, contents=contents,
            ceilings=self._ceilings,
        )  # fmt: skip

    def _absolute_path(self, path: str) -> str:
        return _posix_path(os.path.join(self._base, path))


def catalog_without_trust(catalog: Catalog, distrust: str) -> Catalog:
    """Return the catalog with all services and bindings untrusted.

    Those that were trusted get the reason `distrust`.
    """
    services = {
        id: each.replace(trusted=False, distrust=distrust) if each.trusted else each
        for id, each in catalog.services.items()
    }
    bindings = {
        id: each.replace(trusted=False, distrust=distrust) if each.trusted else each
        for id, each in catalog.bindings.items()
    }
    return catalog._replace(services=services, bindings=bindings, distrust=distrust)


def _list_files(layout: Layout) -> Iterator[LayoutFile]:
    for kind in _KINDS:
        yield from layout.all(kind)
    yield from layout.single_files()


def _posix_path(path: str) -> str:
    return os.path.abspath(path).replace(os.sep, "/")


# -- files named for validation that are in no layer -------------------------------------------------------------------

_FOLDERS = {
    "capabilities": "capability",
    "packs": "pack",
    "bindings": "binding",
    "services": "service",
    "policies": "policy",
    "skills": "skill",
}
_KIND_OF_KEY = {
    "steps": "skill",
    "capability": "binding",
    "contract_meta": "pack",
    "kind": "service",
    "services": "services",
    "overrides": "overrides",
    "defaults": "policy",
}
"""The kind of a file by the first of these keys that it has."""


def _sort_paths(
    paths: Iterable[str],
    places: Mapping[str, LayoutFile],
    reader: SpecReader,
    expected_kind: str,
    bound_of: Callable[[str], str],
) -> tuple[set[str], list[LayoutFile], list[Problem]]:
    """Return (paths with directories expanded, files outside all layers, problems of unreadable files)."""
    wanted: set[str] = set()
    outside: list[LayoutFile] = []
    problems: list[Problem] = []
    for path in paths:
        for file in _find_spec_files(path, places):
            wanted.add(file)
            require_inside(file, bound_of(file))
            kind, found = ("", []) if file in places else _find_kind(file, reader, expected_kind)
            problems += found
            if kind:
                outside.append(
                    LayoutFile(kind, "", file, Layer("given", os.path.dirname(file), False))
                )
    return wanted, outside, problems


def _find_spec_files(path: str, known_files: Iterable[str]) -> Iterator[str]:
    """Yield the path itself if it is a file.

    For a directory, yield the known spec files below it, or all YAML files.
    """
    if not os.path.isdir(path):
        yield path
    elif files_below := [file for file in known_files if file.startswith(f"{path.rstrip('/')}/")]:
        yield from files_below
    else:
        for entry in FolderWalk(path).files(enters=_is_read):
            if _is_read(entry) and entry.name.endswith((".yaml", ".yml")):
                yield entry.path.replace(os.sep, "/")


def _is_read(entry: os.DirEntry[str]) -> bool:
    return entry.name[0] not in "_."


def _find_kind(path: str, reader: SpecReader, expected_kind: str) -> tuple[str, list[Problem]]:
    """Return the kind of a spec file: by its folders, otherwise the expected kind, otherwise by its keys.

    The kind is empty, with problems, if the file cannot be parsed.
    """
    folder, _, name = path.rpartition("/")
    if name == ACTIVE_FILE or (name in KIND_OF_FILE and folder.endswith(HOST_FOLDER)):
        return KIND_OF_FILE[name], []
    if folder.endswith(f"/{CASES}") and os.path.isfile(f"{os.path.dirname(folder)}/{SKILL_FILE}"):
        return "case", []
    for part in reversed(path.split("/")[:-1]):
        if part in _FOLDERS:
            return _FOLDERS[part], []
    parsed = reader.parse(path)
    if parsed.value is None:
        return "", parsed.problems
    return expected_kind or _kind_from_keys(parsed.value), []


def _keep_problems_of(
    catalog: Catalog, only: frozenset[str], further_problems: Sequence[Problem]
) -> Catalog:
    """Return the catalog with its problems and the others in these files, sorted."""
    problems = [
        problem for problem in (*catalog.problems, *further_problems) if problem.file in only
    ]
    return catalog._replace(only=only, problems=tuple(sort_problems(problems)))


def _kind_from_keys(value: Json) -> str:
    """Return the kind that the keys of a file show, otherwise `capability`."""
    return next((kind for key, kind in _KIND_OF_KEY.items() if key in value), "capability")
