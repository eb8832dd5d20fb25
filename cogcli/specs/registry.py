"""The registry: loading what one skill can reach, everything, or single files
(docs/reference/spec-files.md#places, docs/reference/spec-files.md#layers)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from cogcli.core.errors import CapabilityNotFoundError, SkillNotFoundError
from cogcli.core.problems import Problem, sort_problems, suggestion
from cogcli.specs.catalog_builder import Assembly
from cogcli.specs.host_layout import is_host_root, layout_of
from cogcli.specs.layers import Layer, distinct
from cogcli.specs.layout import FoundFile, Layout
from cogcli.specs.spec_reader import Reader
from cogcli.specs.uses import capabilities_of, skills_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from cogcli.specs.cache import CompiledCache
    from cogcli.specs.capability import Capability
    from cogcli.specs.catalog import Catalog

_KINDS = ("skill", "capability", "binding", "service")


class Registry:
    """Layers of specs. Shown file names are relative to the directory `base` where the file is below it.

    Every load reads the files anew, each once: the bytes hashed are the bytes parsed.
    """

    def __init__(self, layers: Sequence[Layer], *, cache: CompiledCache | None = None, base: str) -> None:
        self.layers = distinct(layer._replace(root=_slashed(layer.root)) for layer in layers)
        self._cache = cache
        self._base = _slashed(base)

    def reach(self, skill_id: str, *, also: Iterable[str] = ()) -> Catalog:
        """What one skill can reach: nested skills, capabilities, gates, all their bindings and services; `also` these
        capabilities, as far as they are there.

        Raises SkillNotFoundError if no layer has a file for the id. A file with errors is in `broken`.
        """
        layouts = self._layouts()
        assembly = Assembly(layouts, self._reader())
        if not assembly.exists("skill", skill_id):
            raise self._not_found(skill_id)
        more = [name for name in also if assembly.exists("capability", assembly.canonical(name))]
        return self._reached(assembly, layouts, _closure(assembly, skill_id, more))

    def about(self, name: str) -> Catalog:
        """What one capability needs, given by id or alias: gates, all their bindings and services.

        Raises CapabilityNotFoundError if no layer has a file for it. A file with errors is in `broken`.
        """
        layouts = self._layouts()
        assembly = Assembly(layouts, self._reader())
        if not assembly.exists("capability", assembly.canonical(name)):
            hint = suggestion(name, self.ids("capability"))
            raise CapabilityNotFoundError("capability.not-found", f"no capability `{name}`", hint=hint)
        return self._reached(assembly, layouts, _with_asked(assembly, [name]))

    def _reached(
        self, assembly: Assembly, layouts: list[Layout], capabilities: Iterable[Capability]
    ) -> Catalog:
        """The capabilities with their bindings and services, and what chooses among them."""
        for capability in capabilities:
            names = (
                capability.id,
                *(a for a in capability.aliases if assembly.aliases.get(a) == capability.id),
            )
            assembly.add_bindings(
                place for name in names for layout in layouts for place in layout.bindings(name)
            )
        for binding in list(assembly.bindings.values()):
            assembly.add_service(binding.service)
        assembly.add_policies()
        assembly.add_host()
        return self._frozen(assembly, partial=True)

    def everything(self) -> Catalog:
        """All specs of all layers."""
        layouts = self._layouts()
        return self._frozen(self._all(layouts, self._reader(), []), partial=False)

    def files(self, paths: Sequence[str], *, contents: Mapping[str, bytes] | None = None) -> Catalog:
        """These files and directories against the registry: its `only` names the files asked for.

        `contents` gives bytes that stand for those of a path. A file that is no part of a layer counts as one
        of a last, untrusted layer; a directory that holds spec folders is such a layer.
        """
        given = {self._absolute(path): data for path, data in (contents or {}).items()}
        asked = [self._absolute(path) for path in paths]
        roots = [path for path in asked if _is_root(path)]
        own = [Layer(path, path, False, host=is_host_root(path)) for path in roots]
        layouts = [layout_of(layer) for layer in distinct([*self.layers, *own])]
        reader = self._reader(given)
        places = {
            place.path: place
            for layout in layouts
            for kind in (*_KINDS, "policy")
            for place in layout.all(kind)
        }
        places |= {place.path: place for layout in layouts for place in layout.single_files()}
        wanted, outside, problems = _sorted_out(asked, places, reader)
        catalog = self._frozen(self._all(layouts, reader, outside), partial=False)
        only = frozenset(map(reader.shown, wanted)) | {p.file for p in problems}
        kept = [p for p in (*catalog.problems, *problems) if p.file in only]
        return catalog._replace(only=only, problems=tuple(sort_problems(kept)))

    def ids(self, kind: str) -> list[str]:
        """All ids of a kind, sorted; told by paths alone but for the services of host overrides, of bindings the
        names of their files."""
        layouts = self._layouts()
        found = [place for layout in layouts for place in layout.all(kind)]
        ids = {place.id or os.path.basename(place.path).removesuffix(".yaml") for place in found}
        if kind == "service":
            ids.update(Assembly(layouts, self._reader()).entries())
        return sorted(ids)

    def bound(self, binding_id: str) -> str | None:
        """The capability that a binding of any layer binds, None if no file that can be read has its id."""
        layouts = self._layouts()
        assembly = Assembly(layouts, self._reader())
        assembly.add_bindings(place for layout in layouts for place in layout.all("binding"))
        binding = assembly.bindings.get(binding_id)
        return binding.capability if binding else None

    def _all(self, layouts: list[Layout], reader: Reader, given: list[FoundFile]) -> Assembly:
        assembly = Assembly(layouts, reader, given=given)
        found = {
            kind: [place for layout in layouts for place in layout.all(kind)]
            + [g for g in given if g.kind == kind]
            for kind in _KINDS
        }
        for kind in ("skill", "capability", "service"):
            for place in found[kind]:
                # Files that another layer replaces are checked by themselves as well.
                assembly.problems += reader.load(place).problems
        for id in _ids(found["capability"], reader):
            assembly.add_capability(id)
        for id in _ids(found["skill"], reader):
            assembly.add_skill(id)
        for id in sorted({*_ids(found["service"], reader), *assembly.entries()}):
            assembly.add_service(id)
        assembly.add_bindings(found["binding"])
        assembly.add_policies()
        assembly.add_host()
        for layout in layouts:
            assembly.problems += _stray_problems(layout, reader)
        return assembly

    def _frozen(self, assembly: Assembly, *, partial: bool) -> Catalog:
        if self._cache:
            self._cache.flush()
        return assembly.catalog(partial=partial, known=self.ids, bound=self.bound)

    def _layouts(self) -> list[Layout]:
        return [layout_of(layer) for layer in self.layers]

    def _reader(self, contents: Mapping[str, bytes] | None = None) -> Reader:
        return Reader(cache=self._cache, base=self._base, contents=contents)

    def _absolute(self, path: str) -> str:
        return _slashed(os.path.join(self._base, path))

    def _not_found(self, skill_id: str) -> SkillNotFoundError:
        hint = suggestion(skill_id, self.ids("skill"))
        return SkillNotFoundError("skill.not-found", f"no skill `{skill_id}`", hint=hint)


def _slashed(path: str) -> str:
    return os.path.abspath(path).replace(os.sep, "/")


def _closure(assembly: Assembly, skill_id: str, also: list[str]) -> Iterator[Capability]:
    """Every capability that a skill, its nested skills, gates and probes need, each once."""
    skills, capabilities = [skill_id], also
    seen: set[str] = set()
    while skills:
        name = skills.pop()
        if f"skill:{name}" not in seen:
            seen.add(f"skill:{name}")
            skill = assembly.add_skill(name)
            if skill:
                skills += skills_of(skill)
                capabilities += capabilities_of(skill)
    yield from _with_asked(assembly, capabilities)


def _with_asked(assembly: Assembly, capabilities: list[str]) -> Iterator[Capability]:
    """These capabilities and those that are called because of them, each once."""
    seen: set[str] = set()
    while capabilities:
        capability = assembly.add_capability(capabilities.pop())
        if capability and capability.id not in seen:
            seen.add(capability.id)
            capabilities += capability.asks
            yield capability


def _ids(found: Iterable[FoundFile], reader: Reader) -> list[str]:
    return sorted({place.id or reader.load(place).id for place in found})


def _stray_problems(layout: Layout, reader: Reader) -> Iterator[Problem]:
    for code, path, hint, why in layout.strays():
        severity: Any = "E" if code == "id.format" else "W"
        yield Problem(
            code, severity, reader.shown(path), 0, 0, "", f"{why or _STRAY[code]}, so not loaded", hint
        )


_STRAY = {
    "layout.depth": "this file is not where specs are",
    "layout.extension": "this file does not end in .yaml",
    "id.format": "this file is in a channel whose name is none",
}


def _is_root(path: str) -> bool:
    folders = ("skills", "capabilities", "bindings", "services", "policies")
    return any(os.path.isdir(f"{path}/{folder}") for folder in folders) or is_host_root(path)


def _sorted_out(
    asked: Iterable[str], places: Mapping[str, FoundFile], reader: Reader
) -> tuple[set[str], list[FoundFile], list[Problem]]:
    """The paths asked for, directories as the files in them; the files outside all layers; what cannot be read."""
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
