"""HostChoices overrides: the bindings chosen on this host, and where each choice is declared.

The rules are in docs/reference/binding.md#host-overrides.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from cogcli.base.jsonvalue import NOTHING, Json
from cogcli.base.named_tuple import NamedTuple

if TYPE_CHECKING:
    from cogcli.specs.spec_reader import SpecFile


class ActiveChoice(NamedTuple):
    """An entry of `active_bindings.json`. `key` is the capability as it is written, which may be an alias."""

    binding: str
    file: str
    key: str


class Override(NamedTuple):
    """An entry of `overrides.yaml` for one capability. It selects a binding, or a service whose binding is chosen.

    `entry` is the index of the entry in the file. `position` is the index of the capability in the entry's list.
    """

    binding: str | None
    service: str | None
    mode: str
    file: str
    entry: int
    position: int

    @property
    def prefers(self) -> bool:
        """Whether the next selection rule decides if the binding of this entry is not usable."""
        return self.mode == "prefer"


class HostChoices(NamedTuple):
    """The host's choices by capability. `files` are all files that were read, also those with errors."""

    active: dict[str, ActiveChoice] = NOTHING
    overrides: dict[str, Override] = NOTHING
    repeated: tuple[tuple[str, Override], ...] = ()
    """Overrides that name an already overridden capability by another of its names."""
    files: tuple[str, ...] = ()
    services_files: frozenset[str] = frozenset()
    """The files with several services each."""

    def choices_of(self, capability: str) -> Json:
        """Return the choices for a capability by kind of rule, without places. A run pins them."""
        choices: Json = {}
        if active := self.active.get(capability):
            choices["active"] = active.binding
        if override := self.overrides.get(capability):
            choices["override"] = [override.binding, override.service, override.mode]
        return choices


class HostFiles:
    """Collects the choices of the host. For each capability a later file wins."""

    def __init__(self, canonical: Callable[[str], str]) -> None:
        self._canonical = canonical
        self._active: dict[str, ActiveChoice] = {}
        self._overrides: dict[str, Override] = {}
        self._repeated: list[tuple[str, Override]] = []
        self._files: list[str] = []
        self._services: set[str] = set()

    def add(self, spec_file: SpecFile) -> None:
        """Add the choices in one of the three files."""
        self._files.append(spec_file.file)
        raw = spec_file.raw or {}
        if spec_file.found.kind == "services":
            self._services.add(spec_file.file)
        elif spec_file.found.kind == "active":
            for key, binding in raw.items():
                self._active[self._canonical(key)] = ActiveChoice(binding, spec_file.file, key)
        elif spec_file.found.kind == "overrides" and raw:
            self._add_overrides(spec_file.file, raw)

    def _add_overrides(self, file: str, raw: Json) -> None:
        from cogcli.declarations.host_spec import OverridesFile  # most hosts have no such file

        for index, entry in enumerate(OverridesFile.of(raw).overrides):
            for position, name in enumerate(entry.capabilities):
                capability = self._canonical(name)
                override = Override(entry.binding, entry.service, entry.mode, file, index, position)
                known = self._overrides.get(capability)
                if known and known.file == file:
                    self._repeated.append((capability, override))
                else:
                    self._overrides[capability] = override

    def build(self) -> HostChoices:
        """Return the choices in all files that were added."""
        repeated, files = tuple(self._repeated), tuple(self._files)
        return HostChoices(
            self._active, self._overrides, repeated, files, frozenset(self._services)
        )
