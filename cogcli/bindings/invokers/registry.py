"""Protocol to invoker [seed]."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cogcli.bindings.invokers.base import Invoker, Surroundings
from cogcli.bindings.invokers.pythoncall import PythonCall


def _mcp(surroundings: Surroundings) -> Invoker:
    from cogcli.bindings.invokers.mcp import Mcp

    return Mcp(surroundings)


INVOKERS: Final[dict[str, Callable[[Surroundings], Invoker]]] = {
    "pythoncall": PythonCall,
    "mcp": _mcp,
}
