"""Which module a pythoncall service may load, and from where (protocols.md 3, quality.md rule 12)."""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Final

from cogcli.core.errors import ServiceResolutionError
from cogcli.specs.service import Service

SHIPPED: Final = "cogcli.official."
_FORBIDDEN: Final = sys.stdlib_module_names | {"cogcli", "test", "__main__"}
"""Python does not count its own `test` package as standard library."""


def loaded(service: Service) -> ModuleType:
    """The service's module. Raises ServiceResolutionError before any import where it is not allowed."""
    name = service.module or ""
    if name.startswith(SHIPPED):
        return importlib.import_module(name)
    _require_allowed(service, name)
    finder = _RootFinder(service.root, name)
    sys.meta_path.insert(0, finder)
    try:
        return importlib.import_module(name)
    finally:
        sys.meta_path.remove(finder)


def _require_allowed(service: Service, name: str) -> None:
    top = name.partition(".")[0]
    if not service.trusted:
        raise ServiceResolutionError(
            "service.untrusted",
            f"service `{service.id}`: this project may not start code of its own",
            hint="cogcli config trust",
            left=False,
        )
    if top in _FORBIDDEN or not all(part.isidentifier() for part in name.split(".")):
        raise ServiceResolutionError(
            "service.forbidden", f"service `{service.id}`: module `{name}` is not allowed", left=False
        )


class _RootFinder:
    """Finds one allowed module and its packages below a layer root, and nothing else there."""

    def __init__(self, root: str, module: str) -> None:
        self._root = root
        self._top = module.partition(".")[0]

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name != self._top or not self._root:
            return None
        return PathFinder.find_spec(name, [self._root])
