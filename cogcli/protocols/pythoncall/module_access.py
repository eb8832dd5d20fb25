"""Which module a pythoncall service may load, and from where (docs/reference/protocols.md#pythoncall)."""

from __future__ import annotations

import importlib
import os
import sys
import threading
from collections.abc import Iterator
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    ModuleSpec,
    PathFinder,
    SourceFileLoader,
)
from types import CodeType, ModuleType
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


def load_module(code: Code) -> ModuleType:
    """The service's module. Raises ServiceResolutionError before any import where it is not allowed."""
    require_allowed(code)
    if code.module.startswith(SHIPPED):
        return importlib.import_module(code.module)
    _read_source_below(code.root)
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


class _SourceOnly(SourceFileLoader):
    """Compiles what stands in the source file. Bytecode beside it could be of anything, and nobody has accepted it."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


_Roots = dict[str, tuple[str, ...]]


class _Below:
    """The roots known so far, as written and with links followed, each with the places below it where packages are
    installed, which are no part of it. Other threads import meanwhile: `roots` is replaced, never changed."""

    def __init__(self) -> None:
        self.roots: _Roots = {}
        self.lock = threading.Lock()


_BELOW: Final = _Below()


def _read_source_below(root: str) -> None:
    """From now on everything that is imported from below a root comes from its source files and extension modules:
    no bytecode, no archive."""
    with _BELOW.lock:
        if not root or os.path.abspath(root) in _BELOW.roots:
            return
        places = [place for entry in tuple(sys.path) if entry for place in _both(entry)]
        added = {
            one: tuple(place for place in places if place != one and _is_below(place, one))
            for one in _both(root)
        }
        _BELOW.roots = _BELOW.roots | added
        if _finder not in sys.path_hooks:
            sys.path_hooks.insert(0, _finder)
        for path in tuple(sys.path_importer_cache):
            if path and _is_source_only(path, added):
                sys.path_importer_cache.pop(path, None)


def _finder(path: str) -> FileFinder:
    if not _is_source_only(path, _BELOW.roots):
        raise ImportError
    return FileFinder(path, (ExtensionFileLoader, EXTENSION_SUFFIXES), (_SourceOnly, SOURCE_SUFFIXES))


def _is_source_only(path: str, roots: _Roots) -> bool:
    return any(
        not any(_is_below(one, place) for place in roots[folder])
        for one in _both(path)
        for folder in _and_its_parents(one)
        if folder in roots
    )


def _and_its_parents(path: str) -> Iterator[str]:
    parent = os.path.dirname(path)
    while parent != path:
        yield path
        path, parent = parent, os.path.dirname(parent)
    yield path


def _both(path: str) -> tuple[str, str]:
    return os.path.abspath(path), os.path.realpath(path)


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)
