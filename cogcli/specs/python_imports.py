"""What the modules of a registry root import that is not there: read by syntax, nothing is imported
(docs/reference/protocols.md#python-imports).

Looked at are the module of a service, the packages that it lies in, and what these import below the root. Imports that
a program tries (`try` with ImportError) or that only type checkers see are none.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from importlib.util import find_spec
from typing import Final, NamedTuple

from cogcli.core.errors import EnvironmentRefusal
from cogcli.core.extras import extra_of, install_line
from cogcli.core.files import FileRefused, read_regular
from cogcli.core.links import require_inside
from cogcli.core.problems import suggestion
from cogcli.core.python_syntax import syntax_tree

_MOST_FILES: Final = 500
_MOST_BYTES: Final = 1024 * 1024
_TRIED: Final = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"}
_DYNAMIC: Final = {"globals", "locals", "vars", "exec", "setattr"}
"""What may bind names that no statement shows."""
_SEARCH: Final = {
    "sys.path", "sys.meta_path", "sys.path_hooks", "sys.modules", "site.addsitedir", "__path__",
}  # fmt: skip
_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
LEFT_OUT: Final = ("node_modules", "__pycache__")
INSTALLED: Final = "pyvenv.cfg"
"""Folders of these names, or with this file, hold what was installed: the trust in a project does not look into them,
and nothing is imported from there."""
_BINARIES: Final = (".so", ".pyd")

Import = ast.Import | ast.ImportFrom


class FailedImport(NamedTuple):
    """An import that fails: the file and line of it, what is imported, what was looked for, and what would help.
    `certain`: it fails whenever the module is imported or the function is called that a binding names."""

    file: str
    line: int
    name: str
    looked_for: str
    hint: str
    certain: bool


def failed_imports(
    module: str, root: str, operations: Collection[str] = (), *, links: bool = True
) -> list[FailedImport]:
    """The imports of a service's module below a root that fail, in order of files and lines; none for a module that is
    not below the root. `operations` are the functions of the module that bindings call. Without `links` no
    file is read that a link leads out of the root."""
    return _ImportWalk(module, root, operations, links=links).failures()


class _Found(NamedTuple):
    """A module below the root: its name in parts, its file (empty for a folder without `__init__.py`), and whether it
    is a package."""

    parts: tuple[str, ...]
    file: str
    is_package: bool


class _ImportWalk:
    def __init__(self, module: str, root: str, operations: Collection[str], *, links: bool) -> None:
        self._module = tuple(module.split("."))
        self._root = root
        self._bound = "" if links else root
        self._operations = operations
        self._waiting: list[_Found] = []
        self._seen: dict[tuple[str, ...], bool] = {}
        """By module whether it is imported for certain."""
        self._certain = True
        """Whether what is looked at is done for certain."""
        self._trees: dict[str, ast.Module | str] = {}
        self._installed: dict[str, list[str] | None] = {}
        self._looks_itself = False
        """Whether some code changes where modules are found: then it may find what is missing here."""

    def failures(self) -> list[FailedImport]:
        found: list[FailedImport] = []
        if self._root:
            self._enter(self._module)
        while self._waiting and len(self._seen) <= _MOST_FILES:
            one = self._waiting.pop()
            found += self._of_file(one)
        if self._looks_itself:
            found = [failed._replace(certain=False) for failed in found]
        # What was first reached by chance, and then for certain, was looked at twice.
        certain = {failed[:5] for failed in found if failed.certain}
        return sorted({failed for failed in found if failed.certain or failed[:5] not in certain})

    def _enter(self, parts: tuple[str, ...]) -> int:
        """Look at a module below the root, and at the packages that it lies in; how many of the parts there are."""
        for count in range(1, len(parts) + 1):
            found = self._below(parts[:count])
            if found is None or (count < len(parts) and not found.is_package):
                return count - 1 if found is None else count
            if found.parts not in self._seen or (self._certain and not self._seen[found.parts]):
                self._seen[found.parts] = self._certain
                self._waiting.append(found)
        return len(parts)

    def _below(self, parts: tuple[str, ...]) -> _Found | None:
        place = os.path.join(self._root, *parts)
        if parts[-1] in LEFT_OUT or os.path.isfile(os.path.join(place, INSTALLED)):
            return None
        if os.path.isfile(file := os.path.join(place, "__init__.py")):
            return _Found(parts, file, True)
        if os.path.isfile(file := f"{place}.py"):
            return _Found(parts, file, False)
        beside = _names(os.path.dirname(place))
        if any(name.startswith(f"{parts[-1]}.") and name.endswith(_BINARIES) for name in beside):
            return _Found(parts, "", False)
        return _Found(parts, "", True) if os.path.isdir(place) else None

    def _tree(self, file: str) -> ast.Module | str:
        """The syntax of a file, or why there is none."""
        if file not in self._trees:
            try:
                require_inside(file, self._bound)
                tree: ast.Module | str = syntax_tree(read_regular(file, limit=_MOST_BYTES))
            except EnvironmentRefusal as refused:
                tree = refused.message
            except FileRefused as refused:
                tree = refused.message
            except SyntaxError as error:
                tree = f"line {error.lineno}: {error.msg}"
            except (ValueError, RecursionError, MemoryError):
                tree = "this is not Python"
            self._trees[file] = tree
        return self._trees[file]

    def _of_file(self, found: _Found) -> Iterator[FailedImport]:
        tree, always = self._tree(found.file) if found.file else None, self._seen[found.parts]
        if isinstance(tree, str):
            text = f"it cannot be read: {tree}"
            yield FailedImport(found.file, 1, ".".join(found.parts), text, "correct it", always)
        elif tree is not None:
            self._looks_itself |= _changes_search(tree)
            called = self._operations if found.parts == self._module else ()
            for node, certain in _imports(tree.body, called, certain=True):
                self._certain = certain and always
                for name, looked_for, hint in self._faults(found, node):
                    yield FailedImport(found.file, node.lineno, name, looked_for, hint, self._certain)

    def _faults(self, importer: _Found, node: Import) -> Iterator[tuple[str, str, str]]:
        """What one statement imports that is not there: name, what was looked for, hint."""
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from self._missing(tuple(alias.name.split(".")))
            return
        name = "." * node.level + (node.module or "")
        own = tuple(node.module.split(".")) if node.module else ()
        if node.level:
            package = importer.parts if importer.is_package else importer.parts[:-1]
            keep = len(package) - node.level + 1
            if keep <= 0:
                yield (
                    name,
                    "it leads out of the package of the module",
                    "write the name in full, without the dots",
                )
                return
            own = (*package[:keep], *own)
        faults = [*self._missing(own, name)]
        yield from faults
        if not faults and (node.level or self._is_ours(own)):
            yield from self._missing_names(own, name, [alias.name for alias in node.names])

    def _missing(self, parts: tuple[str, ...], name: str = "") -> Iterator[tuple[str, str, str]]:
        """The fault of a module that is not there; what is there below the root is looked at, too."""
        name, top = name or ".".join(parts), parts[0]
        if not name.startswith(".") and not self._is_ours(parts):
            if top in sys.stdlib_module_names or top == "cogcli":
                return
            places = self._places_of(top)
            if places is None:
                hint = f"put `{top}` there, or install what has it"
                if extra := extra_of(top):
                    hint = install_line(extra)
                elif near := suggestion(top, self._tops()):
                    hint = f"{near}\n{hint}"
                looked_for = f"there is no package `{top}` in {self._root}, and none is installed"
                if self._below((top,)):
                    looked_for = (
                        f"{self._root} serves the modules of services and the packages beside them, no others"
                    )
                    hint = f"move `{top}.py` into a package, a folder beside the module"
                yield name, looked_for, hint
            elif self._below((top,)) and places and not _is_in(places, parts[1:]):
                looked_for = f"the installed `{top}` in {places[0]} comes first and has no such module"
                yield name, looked_for, f"give the package beside the module another name than `{top}`"
            return
        there = self._enter(parts)
        if there < len(parts):
            missing = parts[: there + 1]
            looked_for = f"there is no {self._files(missing)}"
            if there and (above := self._below(parts[:there])) and not above.is_package:
                looked_for = f"`{'.'.join(parts[:there])}` is a module, no package"
            hint = suggestion(missing[-1], self._modules_in(parts[:there]))
            yield name, looked_for, hint or f"put it there, or correct the import of `{name}`"

    def _missing_names(
        self, parts: tuple[str, ...], name: str, names: Iterable[str]
    ) -> Iterator[tuple[str, str, str]]:
        """The names that a module below the root does not have, neither as its own nor as modules of a package."""
        found = self._below(parts)
        if found is None:
            return
        tree = self._tree(found.file) if found.file else None
        bound = (
            _bound(tree)
            if isinstance(tree, ast.Module)
            else set()
            if found.is_package and tree is None
            else None
        )
        for each in names:
            if each == "*":
                continue
            if found.is_package and self._below((*parts, each)) and not (bound and each in bound):
                self._enter((*parts, each))
            elif bound is not None and each not in bound and not each.startswith("__"):
                shown = self._shown(found.file) if found.file else f"the folder `{'/'.join(parts)}`"
                hint = suggestion(each, bound) or f"define it there, or correct the import of `{each}`"
                yield f"{name}.{each}".replace("..", "."), f"{shown} has no `{each}`", hint

    def _is_ours(self, parts: tuple[str, ...]) -> bool:
        """Whether a name is found below the root: the service's own top-level name, and what nothing else has."""
        top = parts[0]
        if top == self._module[0]:
            return True
        known = top in sys.stdlib_module_names or top == "cogcli"
        beside = self._below((top,))
        return not known and self._places_of(top) is None and beside is not None and beside.is_package

    def _places_of(self, top: str) -> list[str] | None:
        """Where an installed top-level module looks for its parts; None where none is installed."""
        if top not in self._installed:
            try:
                spec = find_spec(top)
            except (ImportError, ValueError):
                spec = None
            places = [] if spec is None else [*(spec.submodule_search_locations or ())]
            origin = [] if spec is None or spec.origin is None else [spec.origin]
            below = any(_lies_below(each, self._root) for each in (*places, *origin))
            self._installed[top] = None if spec is None or below else places
        return self._installed[top]

    def _files(self, parts: tuple[str, ...]) -> str:
        path = "/".join(parts)
        return f"`{path}.py` and no `{path}/__init__.py` in {self._root}"

    def _tops(self) -> list[str]:
        return self._modules_in(())

    def _modules_in(self, parts: tuple[str, ...]) -> list[str]:
        names = _names(os.path.join(self._root, *parts))
        return [name.removesuffix(".py") for name in names if name.removesuffix(".py").isidentifier()]

    def _shown(self, file: str) -> str:
        return f"`{os.path.relpath(file, self._root).replace(os.sep, '/')}`"


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _lies_below(path: str, folder: str) -> bool:
    real, home = os.path.realpath(path), os.path.realpath(folder)
    return real == home or real.startswith(home.rstrip(os.sep) + os.sep)


def _is_in(places: Iterable[str], parts: tuple[str, ...]) -> bool:
    """Whether one of the folders of an installed package has a module, as far as its files tell."""
    paths = [os.path.join(place, *parts) for place in places]
    return not parts or any(os.path.isdir(path) or os.path.isfile(f"{path}.py") for path in paths)


# -- what a tree says ------------------------------------------------------------------------------------------------


def _imports(
    body: Iterable[ast.stmt], called: Collection[str], *, certain: bool
) -> Iterator[tuple[Import, bool]]:
    """The imports of statements, each with whether it is done whenever these are."""
    for node in body:
        if isinstance(node, Import):
            yield node, certain
        elif isinstance(node, _FUNCTIONS):
            yield from _imports(node.body, (), certain=certain and node.name in called)
        elif isinstance(node, ast.Try):
            if not any(map(_catches, node.handlers)):
                yield from _imports(node.body, (), certain=certain)
            for handler in node.handlers:
                yield from _imports(handler.body, (), certain=False)
            yield from _imports([*node.finalbody], (), certain=certain)
            yield from _imports(node.orelse, (), certain=False)
        elif isinstance(node, ast.If):
            if not _is_for_types(node.test):
                yield from _imports(node.body, (), certain=False)
            yield from _imports(node.orelse, (), certain=False)
        elif isinstance(node, ast.With | ast.AsyncWith):
            if not any(_names_in(item.context_expr) & _TRIED for item in node.items):
                yield from _imports(node.body, (), certain=certain)
        elif isinstance(node, ast.ClassDef):
            yield from _imports(node.body, (), certain=certain)
        elif isinstance(node, ast.For | ast.AsyncFor | ast.While):
            yield from _imports([*node.body, *node.orelse], (), certain=False)


def _catches(handler: ast.ExceptHandler) -> bool:
    return handler.type is None or bool(_names_in(handler.type) & _TRIED)


def _is_for_types(test: ast.expr) -> bool:
    return "TYPE_CHECKING" in _names_in(test)


def _changes_search(tree: ast.Module) -> bool:
    """Whether a module names what decides where modules are found."""
    return any(
        (isinstance(node, ast.Attribute) and f"{getattr(node.value, 'id', '')}.{node.attr}" in _SEARCH)
        or (isinstance(node, ast.Name) and node.id in _SEARCH)
        or (isinstance(node, ast.ImportFrom) and node.module == "sys")
        for node in ast.walk(tree)
    )


def _names_in(node: ast.AST) -> set[str]:
    found = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    return found | {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}


def _bound(tree: ast.Module) -> set[str] | None:
    """The names that a module binds; None where they cannot be told from its statements."""
    names: set[str] = set()
    add: Callable[[str], None] = names.add
    waiting: list[ast.AST] = [*tree.body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            add(node.name)
            if any(isinstance(each, ast.Global) for each in ast.walk(node)):
                return None
            continue
        if isinstance(node, Import):
            for alias in node.names:
                add(alias.asname or alias.name.partition(".")[0])
        elif isinstance(node, ast.Name):
            if node.id in _DYNAMIC:
                return None
            if isinstance(node.ctx, ast.Store):
                add(node.id)
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            add(node.name)
        waiting += ast.iter_child_nodes(node)
    return None if names & {"*", "__getattr__"} else names
