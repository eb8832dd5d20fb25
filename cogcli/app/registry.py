"""Opening the registry of a command, and the questions that need its whole catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogcli.core.errors import BindingResolutionError, CogcliError
from cogcli.specs.cache import CompiledCache
from cogcli.specs.loading import Registry
from cogcli.specs.selection import SelectionOptions, select

if TYPE_CHECKING:
    from cogcli.app.settings import Settings
    from cogcli.specs.catalog import Catalog
    from cogcli.specs.skill import Skill


def opened(settings: Settings) -> Registry:
    """The registry of all layers, with the user's cache of compiled specs."""
    return Registry(settings.layers, cache=CompiledCache(settings.cache_file), base=settings.base)


def options(settings: Settings) -> SelectionOptions:
    """How bindings are chosen when nothing is run: no flag, this environment."""
    return SelectionOptions({}, settings.value("conformance"), settings.environ)


class Usable:
    """Which capabilities have a binding that can be called here, and which skills can run."""

    def __init__(self, catalog: Catalog, options: SelectionOptions, broken_files: frozenset[str]) -> None:
        self._catalog = catalog
        self._options = options
        self._broken = broken_files
        self._skills: dict[str, bool] = {}

    def capability(self, id: str) -> bool:
        """Whether some binding of a capability may be called."""
        try:
            return bool(select(self._catalog, id, self._options).usable)
        except (BindingResolutionError, CogcliError):
            return False

    def skill(self, id: str) -> bool:
        """Whether a skill, with all it reaches, can run; a cycle cannot."""
        if id not in self._skills:
            self._skills[id] = False
            skill = self._catalog.skills.get(id)
            self._skills[id] = skill is not None and self._runs(skill)
        return self._skills[id]

    def _runs(self, skill: Skill) -> bool:
        if skill.file in self._broken:
            return False
        return all(self._target(target) for target in targets(skill))

    def _target(self, target: str) -> bool:
        if target.startswith("skill:"):
            return self.skill(target[6:])
        capability = self._catalog.capability(target)
        return capability is not None and self.capability(capability.id)


def targets(skill: Skill) -> list[str]:
    """Everything the steps of a skill may call, in order, each once."""
    found: list[str] = []
    for step in skill.steps:
        router, scatter = step.config.router, step.config.scatter
        if router:
            found += [*router.cases.values(), *([router.default] if router.default else [])]
        elif scatter:
            found += scatter.targets.values()
        else:
            found.append(step.uses)
    return list(dict.fromkeys(found))
