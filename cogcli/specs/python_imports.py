"""Finds imports that fail in the Python module of a service (docs/reference/protocols.md#python-imports).

Files are parsed; nothing is imported. The walk starts at the module of the service and follows its imports to files
below the registry root. Only imports that always run are checked: not those in a branch, in a loop, in a function that
no binding calls, or that the program guards. Installed packages are not examined.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Collection, Iterable, Iterator
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    SourceFileLoader,
)
from importlib.util import find_spec
from typing import Final

from cogcli.base.errors import UnusableEnvironment
from cogcli.base.extras import extra_of, install_line
from cogcli.base.files import UnreadableFile, read_regular
from cogcli.base.links import require_inside
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import suggestion
from cogcli.base.python_syntax import parse_python

_MAX_FILES: Final = 500
_MAX_BYTES: Final = 1024 * 1024
_CAUGHT: Final = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"}
_BINDS_UNSEEN: Final = {"globals", "locals", "vars", "exec", "setattr"}
"""Names of functions that may bind names without a statement."""
_SEARCH: Final = {"path", "meta_path", "path_hooks", "modules", "addsitedir"}
"""Members of `sys` and `site` that determine where modules are found."""
_SCOPES: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_NOT_SERVED: Final = ("node_modules", "__pycache__")
_ENVIRONMENT: Final = "pyvenv.cfg"
"""Project trust excludes folders with these names or with this file: no module is imported from them."""
_LOADERS: Final = ((ExtensionFileLoader, EXTENSION_SUFFIXES), (SourceFileLoader, SOURCE_SUFFIXES))

Import = ast.Import | ast.ImportFrom


class FailedImport(NamedTuple):
    """An import that fails: its file and line, the imported name, the places searched, and a hint.

    `certain` is false if a file in the walk changes where Python looks for modules.
    """

    file: str
    line: int
    name: str
    looked_for: str
    hint: str
    certain: bool


class _ImportFault(NamedTuple):
    name: str
    looked_for: str
    hint: str


class _Module(NamedTuple):
    """A module below the root. `file` is empty for a folder without `__init__.py` and for a compiled module."""

    name: tuple[str, ...]
    file: str
    is_package: bool


def failed_imports(
    module: str, root: str, operations: Collection[str] = (), *, links: bool = True
) -> list[FailedImport]:
    """Return the imports that fail in a service's module below a root, in order of files and lines.

    The list is empty if the module is not below the root. `operations` are the functions of the module that bindings
    call. Without `links`, files outside the root are not read through links.
    """
    return _ImportWalk(module, root, operations, links=links).failures() if root else []


class _ImportWalk:
    def __init__(self, module: str, root: str, operations: Collection[str], *, links: bool) -> None:
        self._module = tuple(module.split("."))
        self._root = root
        self._bound = "" if links else root
        self._operations = operations
        self._unread: list[_Module] = []
        self._planned: set[tuple[str, ...]] = set()
        """The names of modules that were read or are in `_unread`."""
        self._finders: dict[str, FileFinder] = {}
        self._trees: dict[str, ast.Module | str] = {}
        self._installed: dict[str, bool] = {}
        self._searches_itself = False

    def failures(self) -> list[FailedImport]:
        found: set[tuple[str, int, _ImportFault]] = set()
        self._schedule_module(self._module)
        while self._unread and len(self._planned) <= _MAX_FILES:
            found.update(self._find_file_faults(self._unread.pop()))
        certain = not self._searches_itself
        return [FailedImport(file, line, *fault, certain) for file, line, fault in sorted(found)]

    def _find_file_faults(self, module: _Module) -> Iterator[tuple[str, int, _ImportFault]]:
        if not module.file:
            return
        tree = self._parse_file(module.file)
        if isinstance(tree, str):
            yield (
                module.file,
                1,
                _ImportFault(".".join(module.name), f"it cannot be read: {tree}", "correct it"),
            )
            return
        self._searches_itself |= _changes_search(tree)
        called = self._operations if module.name == self._module else ()
        for node in _find_imports(tree.body, called):
            for fault in self._find_import_faults(module, node):
                yield module.file, node.lineno, fault

    def _find_import_faults(self, importer: _Module, node: Import) -> Iterator[_ImportFault]:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from self._find_module_faults(tuple(alias.name.split(".")), alias.name)
            return
        written = "." * node.level + (node.module or "")
        target = _resolve_module_name(importer, node)
        if not target:
            hint = "write the name in full, without the dots"
            yield _ImportFault(written, "it leads out of the package of the module", hint)
            return
        faults = list(self._find_module_faults(target, written))
        yield from faults
        if not faults and self._is_served(target[0]):
            names = [alias.name for alias in node.names]
            yield from self._find_name_faults(target, written, names)

    def _find_module_faults(
        self, name: tuple[str, ...], import_text: str
    ) -> Iterator[_ImportFault]:
        """Yield the fault of a module that is not found. Follow a module below the root."""
        if not self._is_served(name[0]):
            if not self._is_known(name[0]):
                yield self._explain_missing_package(name[0], import_text)
            return
        count = self._schedule_module(name)
        if count == len(name):
            return
        path = "/".join(name[: count + 1])
        looked_for = f"there is no `{path}.py` and no `{path}/__init__.py` in {self._root}"
        parent = self._find_module(name[:count]) if count else None
        if parent and not parent.is_package:
            looked_for = f"`{'.'.join(parent.name)}` is a module, no package"
        hint = suggestion(name[count], self._list_modules(name[:count]))
        yield _ImportFault(
            import_text,
            looked_for,
            hint or f"put it there, or correct the import of `{import_text}`",
        )

    def _explain_missing_package(self, top: str, import_text: str) -> _ImportFault:
        if self._find_module((top,)):
            looked_for = f"{self._root} serves the modules of services and the packages beside them, no others"
            return _ImportFault(
                import_text,
                looked_for,
                f"move `{top}.py` into a package, a folder beside the module",
            )
        looked_for = f"there is no package `{top}` in {self._root}, and none is installed"
        if extra := extra_of(top):
            return _ImportFault(import_text, looked_for, install_line(extra))
        suggested = suggestion(top, self._list_modules(()))
        put = f"install the package that provides `{top}`, or put `{top}` there"
        return _ImportFault(import_text, looked_for, f"{suggested}\n{put}" if suggested else put)

    def _find_name_faults(
        self, target: tuple[str, ...], import_text: str, names: list[str]
    ) -> Iterator[_ImportFault]:
        """Yield the faults of names that a module below the root neither binds nor has as submodules."""
        module = self._find_module(target)
        if module is None:
            return
        bound = self._find_bound_names(module)
        for name in names:
            if name == "*" or (bound and name in bound):
                continue
            if module.is_package and self._find_module((*target, name)):
                self._schedule_module((*target, name))
            elif bound is not None and not name.startswith("__"):
                where = self._describe_module(module)
                near = suggestion(name, bound)
                hint = near or f"define it there, or correct the import of `{name}`"
                full_name = f"{import_text}.{name}".replace("..", ".")
                yield _ImportFault(full_name, f"{where} has no `{name}`", hint)

    def _find_bound_names(self, module: _Module) -> set[str] | None:
        """Return the names that a module binds, or None if they are unknown."""
        if not module.file:
            return set() if module.is_package else None
        tree = self._parse_file(module.file)
        return _find_bound_names(tree) if isinstance(tree, ast.Module) else None

    def _describe_module(self, module: _Module) -> str:
        if not module.file:
            return f"the folder `{'/'.join(module.name)}`"
        return f"`{os.path.relpath(module.file, self._root).replace(os.sep, '/')}`"

    def _schedule_module(self, name: tuple[str, ...]) -> int:
        """Schedule a module and its parent packages to be read. Return how many segments of its name exist."""
        for count in range(1, len(name) + 1):
            module = self._find_module(name[:count])
            if module is None:
                return count - 1
            if module.name not in self._planned:
                self._planned.add(module.name)
                self._unread.append(module)
            if not module.is_package:
                return count
        return len(name)

    def _find_module(self, name: tuple[str, ...]) -> _Module | None:
        """Return a module below the root, or None. The lookup follows Python's rules for a folder."""
        folder = os.path.join(self._root, *name[:-1])
        place = os.path.join(folder, name[-1])
        if name[-1] in _NOT_SERVED or os.path.isfile(os.path.join(place, _ENVIRONMENT)):
            return None
        if folder not in self._finders:
            self._finders[folder] = FileFinder(folder, *_LOADERS)
        spec = self._finders[folder].find_spec(name[-1])
        if spec is None:
            return None
        file = spec.origin if spec.origin and spec.origin.endswith(".py") else ""
        return _Module(name, file, spec.submodule_search_locations is not None)

    def _is_served(self, top: str) -> bool:
        """Return whether a top-level name is looked up below the root. That is so for the service's own name, and for
        packages whose name is not installed or built-in.
        """
        if top == self._module[0]:
            return True
        package = self._find_module((top,))
        return package is not None and package.is_package and not self._is_known(top)

    def _is_known(self, top: str) -> bool:
        """Return whether a top-level module belongs to Python or cogcli, or is installed outside the root."""
        if top in sys.stdlib_module_names or top == "cogcli":
            return True
        if top not in self._installed:
            self._installed[top] = _is_installed_outside(top, self._root)
        return self._installed[top]

    def _list_modules(self, name: tuple[str, ...]) -> list[str]:
        try:
            names = [
                each.removesuffix(".py") for each in os.listdir(os.path.join(self._root, *name))
            ]
        except OSError:
            return []
        return sorted(each for each in names if each.isidentifier())

    def _parse_file(self, file: str) -> ast.Module | str:
        """Return the syntax tree of a file, or the reason why it cannot be parsed."""
        if file not in self._trees:
            self._trees[file] = _read_tree(file, self._bound)
        return self._trees[file]


def _read_tree(file: str, bound: str) -> ast.Module | str:
    try:
        require_inside(file, bound)
        tree: ast.Module = parse_python(read_regular(file, limit=_MAX_BYTES))
        return tree
    except (UnusableEnvironment, UnreadableFile) as refused:
        return refused.message
    except SyntaxError as error:
        return f"line {error.lineno}: {error.msg}"
    except (ValueError, RecursionError, MemoryError):
        return "this is not Python"


def _is_installed_outside(top: str, root: str) -> bool:
    """Return whether a top-level module is installed outside the root.

    Submodules are not looked up: to find one would import its parents.
    """
    try:
        spec = find_spec(top)
    except (ImportError, ValueError):
        return False
    if spec is None:
        return False
    home = os.path.join(os.path.realpath(root), "")
    places = [*(spec.submodule_search_locations or ()), *([spec.origin] if spec.origin else ())]
    return not any(os.path.join(os.path.realpath(place), "").startswith(home) for place in places)


# -- syntax -----------------------------------------------------------------------------------------------------------


def _resolve_module_name(importer: _Module, node: ast.ImportFrom) -> tuple[str, ...]:
    """Return the full name of the module in a `from` import. Empty if it is outside the importer's package."""
    name = tuple(node.module.split(".")) if node.module else ()
    if not node.level:
        return name
    package = importer.name if importer.is_package else importer.name[:-1]
    keep = len(package) - node.level + 1
    return (*package[:keep], *name) if keep > 0 else ()


def _find_imports(body: Iterable[ast.stmt], called_functions: Collection[str]) -> Iterator[Import]:
    """Yield the imports in statements that always run, and in the functions of `called_functions`."""
    for node in body:
        match node:
            case ast.Import() | ast.ImportFrom():
                yield node
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield from _find_imports(node.body if name in called_functions else (), ())
            case ast.ClassDef():
                yield from _find_imports(node.body, ())
            case ast.With(items=items) | ast.AsyncWith(items=items):
                guarded = any(_find_names(item.context_expr) & _CAUGHT for item in items)
                yield from _find_imports(() if guarded else node.body, ())
            case ast.Try():
                guarded = any(map(_catches_import, node.handlers))
                yield from _find_imports([*(() if guarded else node.body), *node.finalbody], ())


def _catches_import(handler: ast.ExceptHandler) -> bool:
    return handler.type is None or bool(_find_names(handler.type) & _CAUGHT)


def _changes_search(tree: ast.Module) -> bool:
    """Return whether a module mentions an object that determines where modules are found."""
    return any(map(_names_search, ast.walk(tree)))


def _names_search(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(value=value, attr=attr) if attr in _SEARCH:
            return not _find_names(value).isdisjoint(("sys", "site"))
        case ast.ImportFrom(module="sys") | ast.Name(id="__path__"):
            return True
        case _:
            return False


def _find_names(node: ast.AST) -> set[str]:
    """Return the names and attributes in an expression."""
    found: set[str] = set()
    for each in ast.walk(node):
        match each:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                found.add(name)
    return found


def _find_bound_names(tree: ast.Module) -> set[str] | None:
    """Return the names that a module binds, or None if its statements do not determine all of them."""
    names: set[str] = set()
    waiting: list[ast.AST] = [*tree.body]
    while waiting:
        node = waiting.pop()
        names |= _find_names_bound_by(node)
        if not isinstance(node, _SCOPES):
            waiting += ast.iter_child_nodes(node)
        elif any(isinstance(each, ast.Global) for each in ast.walk(node)):
            return None
    return None if names & (_BINDS_UNSEEN | {"*", "__getattr__"}) else names


def _find_names_bound_by(node: ast.AST) -> set[str]:
    """Return the names that a syntax node itself binds, and the names of called functions that may bind more."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            return {alias.asname or alias.name.partition(".")[0] for alias in aliases}
        case ast.Name(id=name, ctx=context):
            is_bound = isinstance(context, ast.Store) or name in _BINDS_UNSEEN
            return {name} if is_bound else set()
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
            return {name}
        case ast.MatchStar(name=str(name)):
            return {name}
        case _:
            return set()
