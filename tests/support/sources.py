"""What the package's modules say, parsed once for all tests of a process."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).resolve().parents[2] / "cogcli"


class Said(NamedTuple):
    """A module's imports, inside functions too: the modules named, without those for types alone, and each name with
    its module (`module.name`); and the names of its classes."""

    modules: tuple[str, ...]
    at_run_time: tuple[str, ...]
    names: frozenset[str]
    classes: tuple[str, ...]


@cache
def modules() -> list[Path]:
    """Every module of the package, but those among the specs that an installed one holds."""
    return sorted(
        path for path in PACKAGE.rglob("*.py") if "registry" not in path.relative_to(PACKAGE).parts
    )


def modules_with(pattern: str) -> list[Path]:
    """The modules with a line in which a pattern is found: to parse all of them takes seconds."""
    found = re.compile(pattern, re.MULTILINE)
    return [path for path in modules() if found.search(path.read_text(encoding="utf-8"))]


@cache
def said(path: Path) -> Said:
    """What a module imports, and its classes. Fails for a relative import."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = list(_statements(tree))
    hidden = {id(node) for node in _typing_only(nodes)}
    froms = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    assert not any(node.level for node in froms), f"{path}: relative import"
    return Said(
        tuple(name for node in nodes for name in _modules(node)),
        tuple(name for node in nodes if id(node) not in hidden for name in _modules(node)),
        frozenset(f"{node.module}.{alias.name}" for node in froms for alias in node.names),
        tuple(node.name for node in nodes if isinstance(node, ast.ClassDef)),
    )


def calls_in(path: Path) -> frozenset[str]:
    """The names of the functions, methods and classes that a module calls."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return frozenset(_name(function) for function in functions) - {""}


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _statements(node: ast.AST) -> Iterator[ast.stmt]:
    """Every statement below a node. Expressions hold none, and to look into them takes most of the time."""
    for block in ("body", "orelse", "finalbody", "handlers", "cases"):
        for inner in getattr(node, block, ()):
            if isinstance(inner, ast.stmt):
                yield inner
            yield from _statements(inner)


def _modules(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (name.name for name in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield node.module or ""
        if node.module == "cogcli":
            yield from (f"cogcli.{name.name}" for name in node.names)


def _typing_only(nodes: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in nodes:
        if (
            isinstance(node, ast.If)
            and isinstance(node.test, ast.Name)
            and node.test.id == "TYPE_CHECKING"
        ):
            for inner in node.body:
                yield inner
                yield from _statements(inner)
