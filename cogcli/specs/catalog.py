"""The catalog: frozen maps from id to spec, of the part of the registry that was loaded."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from cogcli.base.jsonvalue import NOTHING
from cogcli.declarations.spec_types import NESTED
from cogcli.specs.host_overrides import Host
from cogcli.specs.skill import list_targets

if TYPE_CHECKING:
    from cogcli.base.problems import Problem
    from cogcli.base.yaml.positions import Places
    from cogcli.declarations.binding_spec import Binding
    from cogcli.declarations.capability_spec import Capability
    from cogcli.declarations.pack_spec import Pack
    from cogcli.declarations.service_spec import Service
    from cogcli.declarations.skill_spec import Skill
    from cogcli.specs.protocol import Protocols


class Defaults(NamedTuple):
    """The folded `official_default_selection.yaml` files: capability id to binding ids, the first of them wanted most,
    and the file of each."""

    bindings: dict[str, tuple[str, ...]] = NOTHING
    files: dict[str, str] = NOTHING


def names_of(named: str | list[str]) -> tuple[str, ...]:
    """The bindings of one entry of `defaults`, which is one or a list."""
    return (named,) if isinstance(named, str) else tuple(named)


class Shadow(NamedTuple):
    """A spec replaced by one of a later layer."""

    kind: str
    id: str
    layer: str
    file: str


class Catalog(NamedTuple):
    """Specs by id. `bindings` holds all bindings, `bindings_of` their ids by capability.

    `aliases` maps an alias to the id of its capability. `places` maps a shown file to the positions of its keys and
    values, which are read again for a file that came from the compiled cache.
    `pins` maps `kind:id` to the digest of the file's bytes. `broken` maps `kind:id` to the file with errors.
    """

    skills: dict[str, Skill] = NOTHING
    capabilities: dict[str, Capability] = NOTHING
    bindings: dict[str, Binding] = NOTHING
    bindings_of: dict[str, tuple[str, ...]] = NOTHING
    services: dict[str, Service] = NOTHING
    packs: dict[str, Pack] = NOTHING
    """By `id@version`."""
    defaults: Defaults = Defaults()
    host: Host = Host()
    layers: tuple[str, ...] = ()
    """The names of the layers, the earliest first."""
    aliases: dict[str, str] = NOTHING
    shadows: tuple[Shadow, ...] = ()
    places: dict[str, Places] = NOTHING
    pins: dict[str, str] = NOTHING
    raw: dict[str, dict[str, Any]] = NOTHING
    """The checked mapping of each spec by `kind:id`, a capability's bases folded in."""
    broken: dict[str, str] = NOTHING
    problems: tuple[Problem, ...] = ()
    """The problems of reading and of shapes, before any check across files."""
    lenient: frozenset[str] = frozenset()
    """The files of skills and capabilities in lenient layers."""
    replaced: dict[str, tuple[Capability, ...]] = NOTHING
    """Capabilities replaced by one of the same id in a later layer, earliest first."""
    partial: bool = False
    """Whether only one skill's closure was loaded: then a spec absent here may still exist."""
    only: frozenset[str] | None = None
    """The shown files to report problems of; None means all."""
    known: Callable[[str], list[str]] | None = None
    """All ids of a kind in the registry, from paths alone, for did-you-mean hints."""
    protocols: Protocols = NOTHING
    """What the specs ask of the protocols of services and bindings, by name."""
    stubbed: frozenset[str] = frozenset()
    """Capabilities that a test answers: nothing of their services is needed, none of them is called."""
    distrust: str = ""
    """Why nothing in it is trusted: what is run is of a project that is not; empty where each layer counts."""
    bound: Callable[[str], str | None] | None = None
    """The capability of a binding anywhere in the registry, found by reading files: for bindings absent here."""

    def in_process(self, service: Service) -> bool:
        """Whether a service is functions on this machine, and does not say that they reach the network: nothing leaves
        it."""
        return self.runs_functions(service) and not service.declares_network

    def runs_functions(self, service: Service) -> bool:
        """Whether a service is functions that this machine runs."""
        protocol = self.protocols.get(service.kind)
        return protocol is not None and protocol.in_process

    def capability(self, id: str) -> Capability | None:
        """The capability of an id or alias."""
        return self.capabilities.get(self.aliases.get(id, id))

    def reached(self, skill_id: str) -> list[Capability]:
        """What a run of a skill may call, in order: in nested skills, too, and gates."""
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
