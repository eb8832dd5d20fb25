"""The registry of a command, and what is derived from its whole catalog."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cogcli.app.settings import Settings
from cogcli.core.errors import CogcliError, EnvironmentRefusal
from cogcli.core.files import FileRefused, read_regular
from cogcli.core.redact import Redactor
from cogcli.protocols import PROTOCOLS
from cogcli.specs.cache import CompiledCache
from cogcli.specs.catalog import Catalog
from cogcli.specs.checks import check
from cogcli.specs.fields import Fields
from cogcli.specs.registry import Registry
from cogcli.specs.selection import SelectionOptions, select
from cogcli.specs.skill import NESTED, Skill, list_targets


def open_registry(settings: Settings) -> Registry:
    """The registry of all layers, with the user's cache of compiled specs."""
    return Registry(
        settings.layers, protocols=PROTOCOLS, cache=CompiledCache(settings.cache_file), base=settings.base
    )


def selection_options(settings: Settings) -> SelectionOptions:
    """How bindings are selected where nothing is run: without flags, with this environment."""
    return SelectionOptions({}, settings.value("conformance"), settings.environ)


class Layers:
    """Finds the registry layer of a displayed file."""

    def __init__(self, settings: Settings) -> None:
        self._base = settings.base
        self._roots = [(layer.name, os.path.realpath(layer.root) + os.sep) for layer in settings.layers]

    def of(self, file: str) -> str:
        """The name of the strongest layer that holds the file; empty if none does."""
        path = os.path.realpath(os.path.join(self._base, file))
        return next((name for name, root in reversed(self._roots) if path.startswith(root)), "")


@contextmanager
def writing(shown: str) -> Iterator[None]:
    """Raises EnvironmentRefusal `env.disk`, with the displayed path, for an OSError of writing within it."""
    try:
        yield
    except OSError as error:
        raise EnvironmentRefusal(
            "env.disk", f"{shown} cannot be written: {error.strerror}", hint="make the directory writable"
        ) from error


def text_of(settings: Settings, file: str) -> str:
    """The text of a spec's file. Raises EnvironmentRefusal `specs.invalid`."""
    try:
        return read_regular(os.path.join(settings.base, file), limit=256 * 1024).decode("utf-8", "replace")
    except FileRefused as error:
        raise EnvironmentRefusal("specs.invalid", f"`{file}` {error.message}") from error


def fields_of(fields: Fields) -> dict[str, Any]:
    """Fields as plain data; defaults and enums under secret names are masked."""
    redactor = Redactor()

    def mask(name: str, value: Any) -> Any:
        return redactor.mask({name: value})[name]

    return {
        name: {
            "type": field.type,
            "required": field.required,
            "default": mask(name, field.default),
            "enum": field.enum and [mask(name, value) for value in field.enum],
            "description": field.description,
        }
        for name, field in fields.items()
    }


class Usable:
    """Which capabilities have a binding that can be called here, and which skills can run.

    `broken_files`: the files with errors; without them the catalog is checked at the first skill.
    """

    def __init__(
        self, catalog: Catalog, options: SelectionOptions, broken_files: frozenset[str] | None = None
    ) -> None:
        self._catalog = catalog
        self._options = options
        self._broken = broken_files
        self._skills: dict[str, bool] = {}

    def capability(self, id: str) -> bool:
        """Whether a capability is known, and some binding of it can be called."""
        try:
            return self._catalog.capability(id) is not None and bool(
                select(self._catalog, id, self._options).usable
            )
        except CogcliError:
            return False

    def skill(self, id: str) -> bool:
        """Whether a skill with its closure can run; a skill in a cycle cannot."""
        if id not in self._skills:
            self._skills[id] = False
            skill = self._catalog.skills.get(id)
            self._skills[id] = skill is not None and self._can_run(skill)
        return self._skills[id]

    def _can_run(self, skill: Skill) -> bool:
        if self._broken is None:
            found = check(self._catalog, options=self._options)
            self._broken = frozenset(problem.file for problem in found if problem.severity == "E")
        return skill.file not in self._broken and all(
            self.skill(target.removeprefix(NESTED)) if target.startswith(NESTED) else self.capability(target)
            for target in list_targets(skill)
        )
