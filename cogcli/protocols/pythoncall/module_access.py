"""The modules that a pythoncall service may load, and from where (docs/reference/protocols.md#pythoncall)."""

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
"""`test` is named here because Python does not list it as standard library."""


class Code(NamedTuple):
    """The code of a service: its module, the root of its layer, and whether that layer may start code of its own."""

    service_id: str
    module: str
    root: str
    trusted: bool


def load_module(code: Code) -> ModuleType:
    """The service's imported module. Raises ServiceResolutionError before any import where it is not allowed."""
    require_allowed(code)
    if code.module.startswith(SHIPPED):
        return importlib.import_module(code.module)
    _add_source_root(code.root)
    finder = _RootFinder(code.root, code.module)
    sys.meta_path.insert(0, finder)
    try:
        loaded = sys.modules.get(finder.top)
        if loaded is not None:
            _require_same(code, finder, loaded)
        return importlib.import_module(code.module)
    finally:
        sys.meta_path.remove(finder)


def _require_same(code: Code, finder: _RootFinder, loaded: ModuleType) -> None:
    """Raise ServiceResolutionError `service.module` where another root's module of this name is loaded already."""
    own, other = finder.find_spec(finder.top), loaded.__spec__
    if own is not None and other is not None and not _same_code(own.origin, other.origin):
        text = f"service `{code.service_id}`: another module `{finder.top}` is loaded in this process: {other.origin}"
        hint = "write isolation: process, or give one of them another name"
        raise ServiceResolutionError("service.module", text, hint=hint, left=False)


def require_allowed(code: Code) -> None:
    """Raise ServiceResolutionError `service.untrusted`, `service.forbidden` before a module is imported."""
    if code.module.startswith(SHIPPED):
        return
    if not code.trusted:
        text = f"service `{code.service_id}`: this project may not start code of its own"
        raise ServiceResolutionError("service.untrusted", text, hint="cogcli config trust", left=False)
    parts = code.module.split(".")
    if parts[0] in _FORBIDDEN or not all(part.isidentifier() for part in parts):
        text = f"service `{code.service_id}`: module `{code.module}` is not allowed"
        raise ServiceResolutionError("service.forbidden", text, left=False)


def _same_code(own: str | None, other: str | None) -> bool:
    """Whether two places hold the same bytes: which of them was loaded makes no difference then."""
    if own is None or other is None or own == other:
        return own == other
    try:
        with open(own, "rb") as one, open(other, "rb") as two:
            return one.read() == two.read()
    except OSError:
        return False


class _RootFinder:
    """Finds one allowed top-level module below a layer root, and no other module there."""

    def __init__(self, root: str, module: str) -> None:
        self._root = root
        self.top = module.partition(".")[0]

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name != self.top or not self._root:
            return None
        return PathFinder.find_spec(name, [self._root])


class _SourceOnly(SourceFileLoader):
    """Compiles the source file. Bytecode beside it may be of other code, which no person has accepted."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


_Roots = dict[str, tuple[str, ...]]


class _SourceRoots:
    """The layer roots used so far, as given and with links followed, each with the import paths below it, which do not
    belong to it. `roots` is replaced, never changed: other threads import meanwhile."""

    def __init__(self) -> None:
        self.roots: _Roots = {}
        self.lock = threading.Lock()


_SOURCE_ROOTS: Final = _SourceRoots()


def _add_source_root(root: str) -> None:
    """From now on import what is below a root from source files and extension modules only: no bytecode, no archive."""
    with _SOURCE_ROOTS.lock:
        if not root or os.path.abspath(root) in _SOURCE_ROOTS.roots:
            return
        places = [place for entry in tuple(sys.path) if entry for place in _spellings(entry)]
        added = {
            one: tuple(place for place in places if place != one and _is_below(place, one))
            for one in _spellings(root)
        }
        _SOURCE_ROOTS.roots = _SOURCE_ROOTS.roots | added
        if _finder not in sys.path_hooks:
            sys.path_hooks.insert(0, _finder)
        for path in tuple(sys.path_importer_cache):
            if path and _is_source_only(path, added):
                sys.path_importer_cache.pop(path, None)


def _finder(path: str) -> FileFinder:
    if not _is_source_only(path, _SOURCE_ROOTS.roots):
        raise ImportError
    return FileFinder(path, (ExtensionFileLoader, EXTENSION_SUFFIXES), (_SourceOnly, SOURCE_SUFFIXES))


def _is_source_only(path: str, roots: _Roots) -> bool:
    return any(
        not any(_is_below(one, place) for place in roots[folder])
        for one in _spellings(path)
        for folder in _path_and_parents(one)
        if folder in roots
    )


def _path_and_parents(path: str) -> Iterator[str]:
    parent = os.path.dirname(path)
    while parent != path:
        yield path
        path, parent = parent, os.path.dirname(parent)
    yield path


def _spellings(path: str) -> tuple[str, str]:
    return os.path.abspath(path), os.path.realpath(path)


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)
