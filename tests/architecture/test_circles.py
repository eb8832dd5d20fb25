"""No circle among the modules of the package: imports in functions, and for types alone, are counted as well."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from support.sources import PACKAGE, modules, said


def imports() -> dict[str, set[str]]:
    """By module of the package: the modules of the package that it imports anywhere."""
    paths = {
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts): path for path in modules()
    }
    paths = {name.removesuffix(".__init__"): path for name, path in paths.items()}
    return {
        name: {
            other
            for found in (said(path).names, said(path).modules)
            for other in found
            if other in paths and other != name and not name.startswith(f"{other}.")
        }
        for name, path in paths.items()
    }


def circles(graph: dict[str, set[str]]) -> set[frozenset[str]]:
    """The circles of a graph; of two that share a module the first is found, the other once that is gone."""
    found: set[frozenset[str]] = set()
    graph = {name: set(others) for name, others in graph.items()}
    while True:
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            circle = error.args[1]
            found.add(frozenset(circle))
            for before, after in pairwise(circle):
                graph[after].discard(before)
        else:
            return found


def test_no_module_imports_itself_by_way_of_others() -> None:
    assert not [sorted(circle) for circle in circles(imports())]


def test_a_circle_is_seen() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == {frozenset("abc")}
    assert not circles({"a": {"b"}, "b": {"c"}, "c": set()})
