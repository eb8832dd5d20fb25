"""The catalog: immutable maps from id to spec, for the loaded part of the registry."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from cogcli.base.jsonvalue import NOTHING, Json
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.spec_ceilings import DEFAULT_CEILINGS, SpecCeilings
from cogcli.declarations.spec_types import NESTED
from cogcli.specs.cached_positions import NO_PLACES, FilePositions
from cogcli.specs.host_overrides import HostChoices
from cogcli.specs.skill import list_targets

if TYPE_CHECKING:
    from cogcli.base.problems import Problem
    from cogcli.declarations.binding_spec import Binding
    from cogcli.declarations.capability_spec import Capability
    from cogcli.declarations.pack_spec import Pack
    from cogcli.declarations.service_spec import Service
    from cogcli.declarations.skill_spec import Skill
    from cogcli.specs.protocol import Protocols


class Defaults(NamedTuple):
    """The merged `official_default_selection.yaml` files.

    They list binding ids by capability id, the most preferred first, and the file that names each.
    """

    bindings: dict[str, tuple[str, ...]] = NOTHING
    files: dict[str, str] = NOTHING


def binding_ids_of(entry: str | list[str]) -> tuple[str, ...]:
    """Return the binding ids in an entry of `defaults`, which is one id or a list."""
    return (entry,) if isinstance(entry, str) else tuple(entry)


class Shadow(NamedTuple):
    """A spec that a spec of a later layer replaces."""

    kind: str
    id: str
    layer: str
    file: str


class Catalog(NamedTuple):
    """Specs by id.

    `bindings` contains all bindings, `bindings_of` their ids by capability. `aliases` maps an alias to the id of its
    capability. `places` contains the positions of keys and values in files; a file from the compiled cache is read
    again to compute them. `pins` maps `kind:id` to the digest of the file's bytes. `broken` maps `kind:id` to the file
    with errors.
    """

    skills: dict[str, Skill] = NOTHING
    capabilities: dict[str, Capability] = NOTHING
    bindings: dict[str, Binding] = NOTHING
    bindings_of: dict[str, tuple[str, ...]] = NOTHING
    services: dict[str, Service] = NOTHING
    packs: dict[str, Pack] = NOTHING
    """Packs by `id@version`."""
    defaults: Defaults = Defaults()
    host: HostChoices = HostChoices()
    layers: tuple[str, ...] = ()
    """The names of the layers, the earliest first."""
    aliases: dict[str, str] = NOTHING
    shadows: tuple[Shadow, ...] = ()
    places: FilePositions = NO_PLACES
    pins: dict[str, str] = NOTHING
    raw: dict[str, Json] = NOTHING
    """The checked mapping of each spec by `kind:id`. A capability's bases are merged in."""
    broken: dict[str, str] = NOTHING
    problems: tuple[Problem, ...] = ()
    """The problems of reading and of shapes, before any check across files."""
    lenient: frozenset[str] = frozenset()
    """The files of skills and capabilities in lenient layers."""
    replaced: dict[str, tuple[Capability, ...]] = NOTHING
    """Capabilities that a later layer replaces, by id, the earliest first."""
    partial: bool = False
    """Whether only the closure of one skill was loaded. Then a spec may exist that is not in the catalog."""
    only: frozenset[str] | None = None
    """The display paths of the files whose problems are reported. None means all files."""
    known: Callable[[str], list[str]] | None = None
    """Returns all ids of a kind in the registry, from paths alone, for did-you-mean hints."""
    protocols: Protocols = NOTHING
    """The protocols of services and bindings, by name."""
    stubbed: frozenset[str] = frozenset()
    """Capabilities that a test answers. Their services are neither needed nor called."""
    distrust: str = ""
    """The reason why no layer is trusted: the run belongs to an untrusted project. Empty if each layer has its own
    trust."""
    ceilings: SpecCeilings = DEFAULT_CEILINGS
    bound: Callable[[str], str | None] | None = None
    """Returns the capability of a binding anywhere in the registry, by reading files. Used for bindings absent here."""

    def in_process(self, service: Service) -> bool:
        """Return whether a service runs functions on this machine, and does not declare network access."""
        return self.runs_functions(service) and not service.declares_network

    def runs_functions(self, service: Service) -> bool:
        """Return whether a service runs functions on this machine."""
        protocol = self.protocols.get(service.kind)
        return protocol is not None and protocol.in_process

    def capability(self, id: str) -> Capability | None:
        """Return the capability with this id or alias, or None."""
        return self.capabilities.get(self.aliases.get(id, id))

    def reached(self, skill_id: str) -> list[Capability]:
        """Return the capabilities that a run of a skill may call, in order.

        Those of nested skills and of gates are included.
        """
        found: dict[str, Capability] = {}
        seen, waiting = set[str](), [f"{NESTED}{skill_id}"]
        while waiting:
            name = waiting.pop(0)
            if name in seen:
                continue
            seen.add(name)
            skill = self.skills.get(name.removeprefix(NESTED)) if name.startswith(NESTED) else None
            if skill is not None:
                waiting += list_targets(skill)
            elif capability := self.capability(name):
                found[capability.id] = capability
                waiting += [gate.capability for gate in capability.gates]
        return list(found.values())

    @property
    def by_name(self) -> dict[str, Capability]:
        """The capabilities by id and by alias."""
        known = self.capabilities
        return {alias: known[id] for alias, id in self.aliases.items() if id in known} | dict(known)
