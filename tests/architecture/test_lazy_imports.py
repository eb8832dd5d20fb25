"""Imports inside functions, of our own modules, are doors with a reason (`lazy_imports.py`)."""

from __future__ import annotations

import ast
from collections import Counter

from lazy_imports import DOORS, MOST
from support.sources import PACKAGE, modules_with


def doors() -> Counter[str]:
    """By file: how many statements inside functions import a module of ours."""
    found: Counter[str] = Counter()
    for path in modules_with(r"^ +(from|import) cogcli\b"):
        if "official" in path.parts:
            continue
        for node in _in_functions(ast.parse(path.read_text(encoding="utf-8"))):
            name = node.module or "" if isinstance(node, ast.ImportFrom) else node.names[0].name
            found[str(path.relative_to(PACKAGE))] += name.partition(".")[0] == "cogcli"
    return +found


def _in_functions(tree: ast.Module) -> set[ast.Import | ast.ImportFrom]:
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    return {
        node
        for f in functions
        for node in ast.walk(f)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }


def test_every_import_in_a_function_is_a_door_of_the_table() -> None:
    allowed: Counter[str] = Counter()
    for files in DOORS.values():
        allowed.update(files)
    assert not doors() - allowed, "import it at the top, or give the door its reason"


def test_the_doors_do_not_become_more() -> None:
    assert sum(sum(files.values()) for files in DOORS.values()) <= MOST
