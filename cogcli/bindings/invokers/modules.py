"""Which module a pythoncall service may load, and from where (protocols.md 3, quality.md rule 12)."""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Final, NamedTuple

from cogcli.core.errors import ServiceResolutionError

SHIPPED: Final = "cogcli.official."
_FORBIDDEN: Final = sys.stdlib_module_names | {"cogcli", "test", "__main__"}
"""Python does not count its own `test` package as standard library."""


class Code(NamedTuple):
    """The code of a service: its module, the root it may lie below, whether its layer may start code of its own."""

    service_id: str
    module: str
    root: str
    trusted: bool


def loaded(code: Code) -> ModuleType:
    """The service's module. Raises ServiceResolutionError before any import where it is not allowed."""
    require_allowed(code)
    if code.module.startswith(SHIPPED):
        return importlib.import_module(code.module)
    finder = _RootFinder(code.root, code.module)
    sys.meta_path.insert(0, finder)
    try:
        return importlib.import_module(code.module)
    finally:
        sys.meta_path.remove(finder)


def require_allowed(code: Code) -> None:
    """Raise ServiceResolutionError where the module may not be imported; nothing is imported to know that."""
    if code.module.startswith(SHIPPED):
        return
    if not code.trusted:
        raise ServiceResolutionError(
            "service.untrusted",
            f"service `{code.service_id}`: this project may not start code of its own",
            hint="cogcli config trust",
            left=False,
        )
    parts = code.module.split(".")
    if parts[0] in _FORBIDDEN or not all(part.isidentifier() for part in parts):
        raise ServiceResolutionError(
            "service.forbidden",
            f"service `{code.service_id}`: module `{code.module}` is not allowed",
            left=False,
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
