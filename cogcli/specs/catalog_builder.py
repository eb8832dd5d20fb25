"""Builds a catalog from spec files: it chooses the effective file of each id, merges bases and resolves aliases.

1. The file of the last layer that has an id is effective as a whole. The files that it replaces are kept as shadows.
2. If a layer has two files with the same id, neither is loaded. The file of an earlier layer is not used instead.
3. A file with errors is not loaded, and the file of an earlier layer is not used instead. It is recorded as broken.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from cogcli.base.canonical import digest_of
from cogcli.base.jsonvalue import NOTHING, Json, only_texts
from cogcli.base.links import require_inside
from cogcli.base.problems import Problem, Severity, sort_problems
from cogcli.declarations.binding_spec import Binding
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.service_spec import Service
from cogcli.declarations.skill_spec import Skill
from cogcli.specs.catalog import Catalog, Defaults, Shadow, binding_ids_of
from cogcli.specs.extends import check_chain, fold_chain, follow_bases
from cogcli.specs.host_layout import KIND_OF_FILE
from cogcli.specs.host_overrides import HostFiles
from cogcli.specs.layout import NO_CHANNEL, Layout, LayoutFile
from cogcli.specs.problem_report import ProblemReport
from cogcli.specs.protocol import LOCK
from cogcli.specs.service_variables import with_variables
from cogcli.specs.spec_reader import SpecFile, SpecReader
from cogcli.specs.unchecked import list_at

if TYPE_CHECKING:
    from cogcli.declarations.pack_spec import Pack


class CatalogBuilder:
    """Builds a catalog.

    `given` are files outside all layers, which form the last layer. `named` are the paths of packs that are effective
    in any layer. `environ` has the variables of services.
    """

    def __init__(
        self,
        layouts: Sequence[Layout],
        reader: SpecReader,
        *,
        given: Sequence[LayoutFile] = (),
        named: Collection[str] = (),
        environ: Mapping[str, str] = NOTHING,
    ) -> None:
        # Its mappings grow; `catalog` adds the derived members at the end.
        self.specs = Catalog(
            skills={}, capabilities={}, bindings={}, services={}, packs={}, aliases={}, broken={}, raw={}, pins={},
            replaced={}, defaults=Defaults({}, {}), layers=tuple(layout.layer.name for layout in layouts),
            places=reader.places, protocols=reader.protocols,
        )  # fmt: skip
        self.problems: list[Problem] = []
        self._layouts = layouts
        self._reader = reader
        self._given = given
        self._named = named
        self._environ = environ
        self._shadows: list[Shadow] = []
        self._lenient: set[str] = set()
        self._host = HostFiles(self.canonical)
        self._own: dict[str, SpecFile | None] = {}
        self._scanned: dict[str, str] | None = None

    def catalog(
        self,
        *,
        partial: bool,
        known: Callable[[str], list[str]] | None,
        bound: Callable[[str], str | None] | None,
    ) -> Catalog:
        """Return a catalog of all specs that were added."""
        host = self._host.build()
        choices = {
            f"{rule}:{id}": digest_of(choice)
            for id in self.specs.capabilities
            for rule, choice in host.choices_of(id).items()
        }
        by_capability: dict[str, list[str]] = {}
        for id, binding in sorted(self.specs.bindings.items()):
            by_capability.setdefault(binding.capability, []).append(id)
        return self.specs._replace(
            bindings_of={capability: tuple(ids) for capability, ids in by_capability.items()},
            host=host,
            shadows=tuple(self._shadows),
            lenient=frozenset(self._lenient),
            pins=self.specs.pins | choices,
            problems=tuple(sort_problems(self.problems)),
            partial=partial,
            known=known,
            bound=bound,
        )

    def add_everything(self) -> CatalogBuilder:
        """Add all specs of all layers and the given files, and report stray files. Return the builder."""
        for kind in ("skill", "case", "capability", "service", "pack"):
            for place in self.files(kind):
                # Files that another layer replaces are also checked.
                self.problems += self._reader.load(place).problems
        self.add_capabilities()
        self.add_skills()
        for id in sorted({*self._ids_of_kind("service"), *self.entries()}):
            self.add_service(id)
        self.add_packs()
        self.add_bindings(self.files("binding"))
        self.add_choices()
        for layout in self._layouts:
            for stray in layout.strays():
                severity: Severity = "E" if stray.code == "id.format" else "W"
                file = self._reader.display_path(stray.path)
                problem = Problem(stray.code, severity, file, 0, 0, "", stray.message, stray.hint)
                self.problems.append(problem)
        return self

    def add_packs(self) -> CatalogBuilder:
        """Add all packs, without the specs that they refer to. Return the builder."""
        for id in self._ids_of_kind("pack"):
            self.add_pack(id)
        return self

    def add_capabilities(self) -> dict[str, Capability]:
        """Add all capabilities, without the specs that they call. Return those whose file has no errors, by id."""
        for id in self._ids_of_kind("capability"):
            self.add_capability(id)
        return self.specs.capabilities

    def add_skills(self) -> dict[str, Skill]:
        """Add all skills, without the specs that they use. Return those whose file has no errors, by id."""
        for id in self._ids_of_kind("skill"):
            self.add_skill(id)
        return self.specs.skills

    def _ids_of_kind(self, kind: str) -> list[str]:
        return sorted({place.id or self._reader.load(place).id for place in self.files(kind)})

    def exists(self, kind: str, id: str) -> bool:
        """Return whether a layer has a file for this id, with or without errors.

        The id of a pack may include a hash.
        """
        return bool(self._find_files(kind, id.partition("#")[0]))

    def add_skill(self, id: str) -> Skill | None:
        """Add and return the skill with this id, or return None if it has no usable file. Each file is read once."""
        if id not in self.specs.skills:
            loaded = self._find_effective_file("skill", id, self._find_files("skill", id))
            if loaded and loaded.raw:
                self.specs.raw[f"skill:{id}"] = loaded.raw
                self.specs.skills[id] = Skill.of(loaded.raw, file=loaded.file)
        return self.specs.skills.get(id)

    def add_pack(self, reference: str) -> Pack | None:
        """Add and return the pack `id@version`; None if it has no usable file. With `#` and a hash, add the pack with
        this hash from any layer.
        """
        id, _, wanted = reference.partition("#")
        if id not in self.specs.packs:
            loaded = self._find_effective_file("pack", id, self._select_packs(id, wanted))
            if loaded and loaded.raw:
                from cogcli.declarations.pack_spec import Pack

                self.specs.raw[f"pack:{id}"] = loaded.raw
                self.specs.packs[id] = Pack.of(loaded.raw, file=loaded.file)
        return self.specs.packs.get(id)

    def give_pack(self, pack: Pack, raw: Json) -> None:
        """Add a pack that has no file, together with its mapping."""
        id = f"{pack.pack_id}@{pack.version}"
        self.specs.raw[f"pack:{id}"], self.specs.packs[id] = raw, pack
        self.specs.pins[f"pack:{id}"] = pack.hash

    def _select_packs(self, id: str, wanted_hash: str) -> list[LayoutFile]:
        """Return the files of a pack. If some of them are in `named` or have the wanted hash, return only those."""
        found = self._find_files("pack", id)
        if named := [place for place in found if place.path in self._named]:
            return named
        if not wanted_hash or len(found) == 1:
            return found
        return [
            place for place in found if digest_of(self._reader.load(place).raw) == wanted_hash
        ] or found

    def add_service(self, id: str) -> Service | None:
        """Add and return the service with this id, or return None if it has no usable file."""
        if id not in self.specs.services:
            loaded = self._find_effective_file("service", id, self._find_files("service", id))
            if loaded is None or loaded.raw is None:
                return None
            layer = loaded.found.layer
            self.specs.raw[f"service:{id}"] = loaded.raw
            at = ("services", id) if loaded.found.entry else ()
            place = {**layer.marks(), "root": layer.home, "at": at}
            service = Service.of(loaded.raw, file=loaded.file, **place)
            if service.variables:
                service = with_variables(service, self._environ)
            self.specs.services[id] = service
            self._pin_document_or_lock(self.specs.services[id], layer.bound)
        return self.specs.services[id]

    def _pin_document_or_lock(self, service: Service, bound: str) -> None:
        """Pin the document or lock that determines the requests and tools of a service.

        A missing lock is pinned too. The service checks report an unreadable document and a damaged lock.
        """
        name, digest = "", None
        if service.keys.spec_ref:
            from cogcli.base.api_documents.loader import document_digest

            name, digest = "document:", document_digest(service)
        elif self._reader.protocols[service.kind].described_by(service) == LOCK:
            from cogcli.specs.lock import NAME, PIN, lock_digest

            require_inside(os.path.join(service.root, NAME), bound)
            name, digest = PIN, lock_digest(service.root, service.id)
        if digest is not None:
            self.specs.pins[f"{name}{service.id}"] = digest

    def add_capability(self, name: str) -> Capability | None:
        """Add and return the capability with this id or alias, with its bases merged in.

        Return None if it has no usable file.
        """
        id = self.canonical(name)
        if id in self.specs.capabilities:
            return self.specs.capabilities[id]
        if f"capability:{id}" in self.specs.broken:
            return None
        own = self._load_capability_file(id)
        if own is None:
            return None
        chain = follow_bases(own, self._load_capability_file, self.canonical)
        report = self._problem_report(own, f"capability `{own.id}`")
        check_chain(chain, report, lambda: [place.id for place in self.files("capability")])
        self.problems += report.problems
        if chain.fault:
            self.specs.broken[f"capability:{id}"] = own.file
            return None
        raw = self.specs.raw[f"capability:{id}"] = fold_chain(chain.files)
        capability = self.specs.capabilities[id] = Capability.of(raw, file=own.file)
        for alias in capability.aliases:
            if not self.exists("capability", alias):
                self.specs.aliases.setdefault(alias, id)
        return capability

    def canonical(self, name: str) -> str:
        """Return the id for a name: the name itself if it has a file, otherwise the capability with this alias."""
        if name in self.specs.aliases:
            return self.specs.aliases[name]
        if name in self.specs.capabilities or self.exists("capability", name):
            return name
        if (id := self._find_unique_aliases().get(name)) is None:
            return name
        self.specs.aliases[name] = id
        return id

    def add_bindings_of(self, capability: Capability) -> None:
        """Add the bindings of a capability.

        These are the bindings for its id, and those for aliases that belong to no other capability.
        """
        aliases = (
            alias for alias in capability.aliases if self.specs.aliases.get(alias) == capability.id
        )
        names = (capability.id, *aliases)
        self.add_bindings(
            place for name in names for layout in self._layouts for place in layout.bindings(name)
        )

    def add_bindings(self, files: Iterable[LayoutFile]) -> None:
        """Add the bindings in these files. Each id has one effective file."""
        groups: dict[str, list[SpecFile]] = {}
        for loaded in map(self._reader.load, files):
            groups.setdefault(loaded.id, []).append(loaded)
        for id, group in groups.items():
            self._add_binding(id, group)

    def _add_binding(self, id: str, group: list[SpecFile]) -> None:
        for each in group:
            self.problems += each.problems
        capabilities = {self.canonical(each.raw["capability"]) for each in group if each.raw}
        if len(capabilities) > 1:
            self._refuse_duplicates("binding", id, group)
            return
        loaded = self._find_effective_file("binding", id, [each.found for each in group])
        if loaded is None or loaded.raw is None:
            return
        place = {**loaded.found.layer.marks(), "channel": loaded.found.channel or "local"}
        binding = Binding.of(loaded.raw, file=loaded.file, **place)
        self.specs.raw[f"binding:{id}"] = loaded.raw
        self.specs.bindings[id] = binding.replace(capability=self.canonical(binding.capability))

    def add_choices(self) -> None:
        """Add the default selections and host overrides of all layers. For each capability the latest layer wins."""
        for place in self._single_files():
            loaded = self._reader.load(place)
            self.problems += loaded.problems
            key = f"{place.kind}:{place.layer.name}"
            if loaded.raw is None:
                self.specs.broken[key] = loaded.file
            if place.kind != "policy":
                self._host.add(loaded)
            elif loaded.raw is not None:
                self.specs.pins[key] = loaded.digest
                for name, named in (loaded.raw["defaults"] or {}).items():
                    capability = self.canonical(name)
                    self.specs.defaults.bindings[capability] = binding_ids_of(named)
                    self.specs.defaults.files[capability] = loaded.file

    def entries(self) -> list[str]:
        """Return the ids of all services that are declared in files with several services."""
        return [
            id
            for place in self._single_files()
            if place.kind == "services"
            for id in self._reader.service_entries(place)
        ]

    def _single_files(self) -> list[LayoutFile]:
        found = [place for layout in self._layouts for place in layout.single_files()]
        return found + [
            place for place in self._given if place.kind in ("policy", *KIND_OF_FILE.values())
        ]

    def _find_files(self, kind: str, id: str) -> list[LayoutFile]:
        """Return all files of an id, in layer order."""
        found = [place for layout in self._layouts for place in layout.find(kind, id)]
        found += filter(None, (self._locate_in_file(place, kind, id) for place in self._given))
        return [
            place for place in found if not place.entry or id in self._reader.service_entries(place)
        ]

    def _locate_in_file(self, place: LayoutFile, kind: str, id: str) -> LayoutFile | None:
        """Return the location of an id in a file outside all layers, or None if the file cannot contain it."""
        if place.kind == kind and self._reader.load(place).id == id:
            return place
        if place.kind == "services" and kind == "service":
            return place._replace(kind="service", id=id, channel=NO_CHANNEL, entry=True)
        return None

    def _find_effective_file(
        self, kind: str, id: str, locations: Sequence[LayoutFile]
    ) -> SpecFile | None:
        """Return the effective file for an id, or None. Record shadows, duplicates and problems."""
        if not locations:
            return None
        last = locations[-1].layer
        winners = [place for place in locations if place.layer == last]
        for place in locations[: len(locations) - len(winners)]:
            self._shadows.append(
                Shadow(kind, id, place.layer.name, self._reader.display_path(place.path))
            )
        if len(winners) > 1:
            self._refuse_duplicates(kind, id, [self._reader.load(place) for place in winners])
            return None
        loaded = self._reader.load(winners[0])
        self.problems += loaded.problems
        if last.lenient and kind in ("skill", "capability"):
            self._lenient.add(loaded.file)
        self.specs.pins[f"{kind}:{id}"] = loaded.digest
        if loaded.raw is None:
            self.specs.broken[f"{kind}:{id}"] = loaded.file
            return None
        return loaded

    def _refuse_duplicates(self, kind: str, id: str, group: Sequence[SpecFile]) -> None:
        self.specs.broken[f"{kind}:{id}"] = group[0].file
        for loaded in group:
            others = ", ".join(other.file for other in group if other is not loaded)
            report = self._problem_report(loaded, f"{kind} `{id}`")
            hint = "rename or remove one; neither is loaded"
            report.error("id.duplicate", ("id",), f"this id is also in {others}", hint=hint)
            self.problems += report.problems

    def _problem_report(self, spec_file: SpecFile, subject: str) -> ProblemReport:
        places = self._reader.places.of(spec_file.file)
        return ProblemReport(spec_file.file, places, subject=subject)

    def _load_capability_file(self, id: str) -> SpecFile | None:
        """Return the effective file for a capability id, or None. Record the files that it replaces."""
        if id not in self._own:
            found = self._find_files("capability", id)
            loaded = self._own[id] = self._find_effective_file("capability", id, found)
            earlier = [place for place in found if loaded and place.layer != loaded.found.layer]
            for before in map(self._reader.load, earlier):
                if before.raw:
                    # Bases that do not load are left out.
                    bases = follow_bases(before, self._load_capability_file, self.canonical)
                    raw = {"inputs": None, "outputs": None, **fold_chain(bases.files)}
                    replaced = Capability.of(raw, file=before.file)
                    self.specs.replaced[id] = (*self.specs.replaced.get(id, ()), replaced)
        return self._own[id]

    def files(self, kind: str) -> list[LayoutFile]:
        """Return every file of a kind, in layer order. Files outside all layers are last."""
        found = [place for layout in self._layouts for place in layout.all(kind)]
        return found + [place for place in self._given if place.kind == kind]

    def _find_unique_aliases(self) -> dict[str, str]:
        """Return the capability for each alias that exactly one capability has. All capability files are read."""
        if self._scanned is None:
            last = {
                place.id: place for layout in self._layouts for place in layout.all("capability")
            }
            claims: dict[str, list[str]] = {}
            for id, place in last.items():
                raw = self._reader.load(place).raw
                for alias in only_texts(list_at(raw, "aliases")):
                    claims.setdefault(alias, []).append(id)
            self._scanned = {alias: ids[0] for alias, ids in claims.items() if len(set(ids)) == 1}
        return self._scanned
