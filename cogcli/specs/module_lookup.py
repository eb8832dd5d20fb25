"""Finds the source of a pythoncall service without importing it (docs/reference/protocols.md#pythoncall)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

from cogcli.base.python_syntax import parse_python
from cogcli.specs.layers import PACKAGE
from cogcli.specs.service import is_shipped

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec


def module_file(module: str, root: str) -> str | None:
    """Return the source file of a module, or None. The module may be shipped, below a layer's root, or installed."""
    parts = module.split(".")
    if is_shipped(module):
        return _find_module_file(PACKAGE, parts[1:])
    if root and (file := _find_module_file(root, parts)):
        return file
    if len(parts) > 1:
        found = (_find_module_file(folder, parts[1:]) for folder in _package_folders(parts[0]))
        return next(filter(None, found), None)
    spec = _find_installed_module(module)
    return spec.origin if spec and spec.origin and spec.origin.endswith(".py") else None


def _package_folders(name: str) -> Iterable[str]:
    spec = _find_installed_module(name)
    return (spec.submodule_search_locations if spec else None) or ()


def _find_installed_module(name: str) -> ModuleSpec | None:
    """Return the import spec of an installed top-level module. To find a submodule would import its parents."""
    from importlib.util import find_spec

    try:
        return find_spec(name)
    except (ImportError, ValueError):
        return None


def _find_module_file(folder: str, parts: list[str]) -> str | None:
    place = os.path.join(folder, *parts)
    return next(
        (p for p in (f"{place}.py", os.path.join(place, "__init__.py")) if os.path.isfile(p)), None
    )


def has_function(file: str, name: str, *, search_first: bool = False) -> bool:
    """Return whether a source file has a top-level `def` with this name.

    With `search_first`, the text is searched for it, and parsed only if it is not found.
    """
    try:
        with open(file, "rb") as source:
            text = source.read()
    except OSError:
        return False
    if search_first and re.search(
        rb"^(?:async +)?def +" + re.escape(name.encode()) + rb"\b", text, re.MULTILINE
    ):
        return True
    return name in (top_level_functions(text) or ())


@lru_cache(maxsize=64)
def top_level_functions(source: bytes) -> frozenset[str] | None:
    """Return the names of the top-level functions in a module's source, or None if it is not valid Python."""
    import ast

    try:
        tree = parse_python(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return frozenset(
        node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
