"""The modules that a pythoncall service may load, and their places
(docs/reference/protocols.md#pythoncall)."""

from __future__ import annotations

import importlib
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    ModuleSpec,
    PathFinder,
    SourceFileLoader,
)
from types import CodeType, FrameType, ModuleType
from typing import Final

from cogcli.base.errors import ServiceResolutionError
from cogcli.base.named_tuple import NamedTuple

SHIPPED: Final = "cogcli.official."
_FORBIDDEN: Final = sys.stdlib_module_names | {"cogcli", "test", "__main__"}
"""Modules that no service may name. `test` is listed because Python does not list it as standard
library."""
_LEFT_OUT: Final = ("node_modules", "__pycache__")
"""Folders that the trust in a project does not cover, besides hidden ones."""


class Code(NamedTuple):
    """The code of a service: its module, the root of its layer, and whether that layer may run its own code."""

    service_id: str
    module: str
    root: str
    trusted: bool


def load_module(code: Code) -> ModuleType:
    """Return the service's imported module. Raise ServiceResolutionError before any import if it is
    not allowed."""
    require_allowed_import(code)
    if code.module.startswith(SHIPPED):
        return importlib.import_module(code.module)
    _add_source_root(code.root)
    if _BESIDE not in sys.meta_path:
        sys.meta_path.append(_BESIDE)
    finder = _RootFinder(code.root, code.module)
    with _NAMES.loading(code.service_id, code.root, finder.top):
        sys.meta_path.insert(0, finder)
        try:
            loaded = sys.modules.get(finder.top)
            if loaded is not None:
                _require_same_module(code, finder, loaded)
            return importlib.import_module(code.module)
        finally:
            sys.meta_path.remove(finder)


class _RootNames:
    """The top-level names that roots have loaded, or are loading, in this process.

    The result of an import must not depend on the order of the roots."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._names: dict[str, set[str]] = {}
        self._pending: set[tuple[str, str]] = set()
        self._own = threading.local()

    @contextmanager
    def loading(self, service_id: str, root: str, name: str) -> Iterator[None]:
        """Claim the names of a module and of all its imports, which are loaded within the `with` block. Raise the
        errors of `claim`.
        """
        claims: list[tuple[str, str]] = []
        self._own.claims = claims
        try:
            self.claim(service_id, root, name)
            yield
        finally:
            self._own.claims = None
            with self._lock:
                self._pending.difference_update(claims)

    def claim(self, who: str, root: str, name: str) -> None:
        """Register that a root is about to load a top-level name.

        Raise ServiceResolutionError `service.module` if another root has other code under this
        name, or has loaded other code under one of this root's names."""
        claims = getattr(self._own, "claims", None)
        with self._lock:
            for other in self._names:
                if other != root:
                    self._require_same_code(who, root, other, name)
            self._names.setdefault(root, set()).add(name)
            if claims is not None:
                self._pending.add((root, name))
                claims.append((root, name))

    def _require_same_code(self, who: str, root: str, other: str, name: str) -> None:
        """Raise ServiceResolutionError if another root has different code under `name`, or under a name that it has
        loaded. A root without loaded code is not compared.
        """
        live = [each for each in self._names[other] if self._is_live(other, each)]
        for each in {name, *live} if live else ():
            own, theirs = (PathFinder.find_spec(each, [place]) for place in (root, other))
            if own is not None and theirs is not None and not _is_one(own, theirs):
                raise _other_module(who, each, theirs)

    def _is_live(self, root: str, name: str) -> bool:
        spec = getattr(sys.modules.get(name), "__spec__", None)
        places = [spec.origin, *(spec.submodule_search_locations or ())] if spec is not None else []
        return (root, name) in self._pending or any(
            place and _is_below(place, root) for place in places
        )


_NAMES: Final = _RootNames()


def _other_module(who: str, name: str, other: ModuleSpec) -> ServiceResolutionError:
    text = f"service `{who}`: another module `{name}` is loaded in this process: {other.origin}"
    hint = "write isolation: process, or give one of them another name"
    return ServiceResolutionError("service.module", text, hint=hint, left=False)


def _is_one(own: ModuleSpec, other: ModuleSpec) -> bool:
    """Return whether two specs lead to one file, or to plain modules with the same bytes.

    For packages equal beginnings prove nothing about their modules."""
    if own.submodule_search_locations or other.submodule_search_locations:
        places = [
            [*map(os.path.realpath, spec.submodule_search_locations or ())] for spec in (own, other)
        ]
        return places[0] == places[1]
    return _have_same_bytes(own.origin, other.origin)


def _require_same_module(code: Code, finder: _RootFinder, loaded: ModuleType) -> None:
    """Raise ServiceResolutionError `service.module` if another root's module of this name is
    already loaded."""
    own, other = finder.find_spec(finder.top), loaded.__spec__
    if own is not None and other is not None and not _is_one(own, other):
        raise _other_module(code.service_id, finder.top, other)


def require_allowed_import(code: Code) -> None:
    """Raise ServiceResolutionError `service.untrusted` or `service.forbidden` before a module is
    imported."""
    if code.module.startswith(SHIPPED):
        return
    if not code.trusted:
        text = f"service `{code.service_id}`: this project may not start code of its own"
        raise ServiceResolutionError(
            "service.untrusted", text, hint="cogcli config trust", left=False
        )
    parts = code.module.split(".")
    if parts[0] in _FORBIDDEN or not all(part.isidentifier() for part in parts):
        text = f"service `{code.service_id}`: module `{code.module}` is not allowed"
        raise ServiceResolutionError("service.forbidden", text, left=False)


def _have_same_bytes(own: str | None, other: str | None) -> bool:
    """Return whether two files have the same bytes, so that loading either gives the same code."""
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


class _SiblingPackageFinder:
    """Finds the packages next to the modules of a layer root, only for code below that root. It is the last finder, so
    it never replaces a package of Python, of cogcli or an installed one.
    """

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if path is not None or "." in name or name in _FORBIDDEN:
            return None
        root = root_of(_importing_file())
        spec = PathFinder.find_spec(name, [root]) if root else None
        if spec is None or spec.submodule_search_locations is None:
            return None
        _NAMES.claim(name, root, name)
        return spec


_BESIDE: Final = _SiblingPackageFinder()


def _importing_file() -> str:
    """Return the file of the code that runs the current import."""
    frame: FrameType | None = sys._getframe(2)  # there is no public way without reading sources
    while frame is not None:
        file = frame.f_code.co_filename
        if (
            not file.startswith("<frozen importlib")
            and frame.f_globals.get("__name__") != "importlib"
        ):
            return file
        frame = frame.f_back
    return ""


class _SourceOnlyLoader(SourceFileLoader):
    """Compiles the source file. Bytecode next to it may be of other code, which no person has
    accepted."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


_Roots = dict[str, tuple[str, ...]]


class _SourceRoots:
    """The used layer roots, as given and with links followed, each with the import paths below it
    that do not belong to it.

    `roots` is replaced, never changed, because other threads import meanwhile."""

    def __init__(self) -> None:
        self.roots: _Roots = {}
        self.lock = threading.Lock()


_SOURCE_ROOTS: Final = _SourceRoots()


def _add_source_root(root: str) -> None:
    """Make imports below a root use only source files and extension modules, no bytecode and no
    archives."""
    with _SOURCE_ROOTS.lock:
        if not root or os.path.abspath(root) in _SOURCE_ROOTS.roots:
            return
        added = _find_import_paths_below(root)
        _SOURCE_ROOTS.roots = _SOURCE_ROOTS.roots | added
        if _make_finder not in sys.path_hooks:
            sys.path_hooks.insert(0, _make_finder)
        for path in tuple(sys.path_importer_cache):
            if path and _is_source_only(path, added):
                sys.path_importer_cache.pop(path, None)


def _find_import_paths_below(root: str) -> _Roots:
    """Return each notation of a root, with the import paths below it."""
    places = [place for entry in tuple(sys.path) if entry for place in _path_notations(entry)]
    return {
        one: tuple(place for place in places if place != one and _is_below(place, one))
        for one in _path_notations(root)
    }


def root_of(file: str) -> str:
    """Return the innermost used layer root that contains a file; empty if no root does."""
    roots = _SOURCE_ROOTS.roots
    for folder in _path_and_parents(os.path.dirname(file)) if os.path.isabs(file) else ():
        if folder in roots and not any(_is_below(file, place) for place in roots[folder]):
            return folder
    return ""


def _make_finder(path: str) -> FileFinder:
    if not _is_source_only(path, _SOURCE_ROOTS.roots):
        raise ImportError
    if _is_outside_trust(path):
        return FileFinder(path)
    return FileFinder(
        path, (ExtensionFileLoader, EXTENSION_SUFFIXES), (_SourceOnlyLoader, SOURCE_SUFFIXES)
    )


def _is_outside_trust(path: str) -> bool:
    """Return whether a folder below a root is outside the trust in a project, such as installed packages."""
    root = root_of(os.path.join(path, "any"))
    for folder in _path_and_parents(path) if root else ():
        if folder == root:
            return False
        name = os.path.basename(folder)
        if (
            name in _LEFT_OUT
            or name[0] == "."
            or os.path.isfile(os.path.join(folder, "pyvenv.cfg"))
        ):
            return True
    return False


def _is_source_only(path: str, roots: _Roots) -> bool:
    return any(
        not any(_is_below(one, place) for place in roots[folder])
        for one in _path_notations(path)
        for folder in _path_and_parents(one)
        if folder in roots
    )


def _path_and_parents(path: str) -> Iterator[str]:
    parent = os.path.dirname(path)
    while parent != path:
        yield path
        path, parent = parent, os.path.dirname(parent)
    yield path


def _path_notations(path: str) -> tuple[str, str]:
    return os.path.abspath(path), os.path.realpath(path)


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)
