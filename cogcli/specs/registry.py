"""The registry: loading what one skill can reach, everything, or single files
(docs/reference/spec-files.md#places, docs/reference/spec-files.md#layers)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence

from cogcli.core.errors import CapabilityNotFoundError, SkillNotFoundError
from cogcli.core.problems import Problem, Severity, sort_problems, suggestion
from cogcli.specs.cache import CompiledCache
from cogcli.specs.capability import Capability
from cogcli.specs.catalog import Catalog
from cogcli.specs.catalog_builder import CatalogBuilder
from cogcli.specs.host_layout import is_host_root, layout_of
from cogcli.specs.layers import Layer, distinct
from cogcli.specs.layout import FoundFile, Layout
from cogcli.specs.protocol import Protocols
from cogcli.specs.skill import capabilities_of, skills_of
from cogcli.specs.spec_reader import SpecReader

_KINDS = ("skill", "capability", "binding", "service")


class Registry:
    """Layers of specs. Shown file names are relative to the directory `base` where the file is below it.

    Every load reads the files anew, each once: the bytes hashed are the bytes parsed.
    """

    def __init__(
        self, layers: Sequence[Layer], *, protocols: Protocols, cache: CompiledCache | None = None, base: str
    ) -> None:
        self.layers = distinct(layer._replace(root=_posix_path(layer.root)) for layer in layers)
        self._protocols = protocols
        self._cache = cache
        self._base = _posix_path(base)

    def reach(self, skill_id: str, *, also: Iterable[str] = ()) -> Catalog:
        """The closure of one skill, and of the capabilities `also` that exist: nested skills, capabilities, gates, all
        their bindings and services.

        Raises SkillNotFoundError if no layer has a file for the id. A file with errors is in `broken`.
        """
        layouts = self._layouts()
        builder = CatalogBuilder(layouts, self._reader())
        if not builder.exists("skill", skill_id):
            raise self._not_found(skill_id)
        more = [name for name in also if builder.exists("capability", builder.canonical(name))]
        return self._load_closure(builder, layouts, _closure(builder, skill_id, more))

    def about(self, name: str) -> Catalog:
        """The closure of one capability, given by id or alias: gates, all their bindings and services.

        Raises CapabilityNotFoundError if no layer has a file for it. A file with errors is in `broken`.
        """
        layouts = self._layouts()
        builder = CatalogBuilder(layouts, self._reader())
        if not builder.exists("capability", builder.canonical(name)):
            hint = suggestion(name, self.ids("capability"))
            raise CapabilityNotFoundError("capability.not-found", f"no capability `{name}`", hint=hint)
        return self._load_closure(builder, layouts, _add_called(builder, [name]))

    def _load_closure(
        self, builder: CatalogBuilder, layouts: list[Layout], capabilities: Iterable[Capability]
    ) -> Catalog:
        """A catalog of capabilities with their bindings, services, default selections and host choices."""
        for capability in capabilities:
            names = (
                capability.id,
                *(a for a in capability.aliases if builder.aliases.get(a) == capability.id),
            )
            builder.add_bindings(
                place for name in names for layout in layouts for place in layout.bindings(name)
            )
        for binding in list(builder.bindings.values()):
            builder.add_service(binding.service)
        builder.add_choices()
        return self._build_catalog(builder, partial=True)

    def everything(self) -> Catalog:
        """All specs of all layers."""
        layouts = self._layouts()
        return self._build_catalog(self._all(layouts, self._reader(), []), partial=False)

    def files(self, paths: Sequence[str], *, contents: Mapping[str, bytes] | None = None) -> Catalog:
        """These files and directories with the registry that they refer to; `only` of the catalog names these files.

        `contents` replaces the bytes of a path. A file outside all layers is part of a last, untrusted layer; a
        directory with spec folders is such a layer.
        """
        given = {self._absolute(path): data for path, data in (contents or {}).items()}
        asked = [self._absolute(path) for path in paths]
        roots = [path for path in asked if _is_root(path)]
        own = [Layer(path, path, False, host=is_host_root(path)) for path in roots]
        layouts = [layout_of(layer) for layer in distinct([*self.layers, *own])]
        reader = self._reader(given)
        found = [place for layout in layouts for kind in _KINDS for place in layout.all(kind)]
        found += [place for layout in layouts for place in layout.single_files()]
        places = {place.path: place for place in found}
        wanted, outside, problems = _classify_paths(asked, places, reader)
        catalog = self._build_catalog(self._all(layouts, reader, outside), partial=False)
        only = frozenset(map(reader.display_path, wanted)) | {p.file for p in problems}
        kept = [p for p in (*catalog.problems, *problems) if p.file in only]
        return catalog._replace(only=only, problems=tuple(sort_problems(kept)))

    def ids(self, kind: str) -> list[str]:
        """All ids of a kind, sorted, from paths alone except for services of host overrides; of bindings the names of
        their files."""
        builder = CatalogBuilder(self._layouts(), self._reader())
        names = (
            place.id or os.path.basename(place.path).removesuffix(".yaml") for place in builder.files(kind)
        )
        return sorted({*names, *(builder.entries() if kind == "service" else ())})

    def bound(self, binding_id: str) -> str | None:
        """The capability of a binding in any layer, None if no readable file has its id."""
        builder = CatalogBuilder(self._layouts(), self._reader())
        builder.add_bindings(builder.files("binding"))
        binding = builder.bindings.get(binding_id)
        return binding.capability if binding else None

    def _all(self, layouts: list[Layout], reader: SpecReader, given: list[FoundFile]) -> CatalogBuilder:
        builder = CatalogBuilder(layouts, reader, given=given)
        for kind in ("skill", "capability", "service"):
            for place in builder.files(kind):
                # Files that another layer replaces are checked by themselves as well.
                builder.problems += reader.load(place).problems
        for id in _ids(builder.files("capability"), reader):
            builder.add_capability(id)
        for id in _ids(builder.files("skill"), reader):
            builder.add_skill(id)
        for id in sorted({*_ids(builder.files("service"), reader), *builder.entries()}):
            builder.add_service(id)
        builder.add_bindings(builder.files("binding"))
        builder.add_choices()
        for layout in layouts:
            builder.problems += _stray_problems(layout, reader)
        return builder

    def _build_catalog(self, builder: CatalogBuilder, *, partial: bool) -> Catalog:
        if self._cache:
            self._cache.flush()
        return builder.catalog(partial=partial, known=self.ids, bound=self.bound)

    def _layouts(self) -> list[Layout]:
        return [layout_of(layer) for layer in self.layers]

    def _reader(self, contents: Mapping[str, bytes] | None = None) -> SpecReader:
        return SpecReader(protocols=self._protocols, cache=self._cache, base=self._base, contents=contents)

    def _absolute(self, path: str) -> str:
        return _posix_path(os.path.join(self._base, path))

    def _not_found(self, skill_id: str) -> SkillNotFoundError:
        hint = suggestion(skill_id, self.ids("skill"))
        return SkillNotFoundError("skill.not-found", f"no skill `{skill_id}`", hint=hint)


def _posix_path(path: str) -> str:
    return os.path.abspath(path).replace(os.sep, "/")


def _closure(builder: CatalogBuilder, skill_id: str, also: list[str]) -> Iterator[Capability]:
    """Every capability that a skill, its nested skills, gates and probes need, each once."""
    skills, capabilities = [skill_id], also
    seen: set[str] = set()
    while skills:
        name = skills.pop()
        if f"skill:{name}" not in seen:
            seen.add(f"skill:{name}")
            skill = builder.add_skill(name)
            if skill:
                skills += skills_of(skill)
                capabilities += capabilities_of(skill)
    yield from _add_called(builder, capabilities)


def _add_called(builder: CatalogBuilder, capabilities: list[str]) -> Iterator[Capability]:
    """These capabilities and those called for them, gates and probes, each once."""
    seen: set[str] = set()
    while capabilities:
        capability = builder.add_capability(capabilities.pop())
        if capability and capability.id not in seen:
            seen.add(capability.id)
            capabilities += capability.asks
            yield capability


def _ids(found: Iterable[FoundFile], reader: SpecReader) -> list[str]:
    return sorted({place.id or reader.load(place).id for place in found})


_STRAY = {
    "layout.depth": "this file is not where specs are",
    "layout.extension": "this file does not end in .yaml",
    "id.format": "this file is in a channel whose name is none",
}


def _stray_problems(layout: Layout, reader: SpecReader) -> Iterator[Problem]:
    for code, path, hint, why in layout.strays():
        severity: Severity = "E" if code == "id.format" else "W"
        message = f"{why or _STRAY[code]}, so not loaded"
        yield Problem(code, severity, reader.display_path(path), 0, 0, "", message, hint)


def _is_root(path: str) -> bool:
    folders = ("skills", "capabilities", "bindings", "services", "policies")
    return any(os.path.isdir(f"{path}/{folder}") for folder in folders) or is_host_root(path)


def _classify_paths(
    asked: Iterable[str], places: Mapping[str, FoundFile], reader: SpecReader
) -> tuple[set[str], list[FoundFile], list[Problem]]:
    """(paths with directories expanded, files outside all layers, problems of files that cannot be read)."""
    from cogcli.specs.unlayered_files import kind_of_file, spec_files

    wanted: set[str] = set()
    outside: list[FoundFile] = []
    problems: list[Problem] = []
    for path in asked:
        for file in spec_files(path, places):
            wanted.add(file)
            if file not in places:
                kind, found = kind_of_file(file, reader)
                problems += found
                if kind:
                    outside.append(FoundFile(kind, "", file, Layer("given", os.path.dirname(file), False)))
    return wanted, outside, problems
