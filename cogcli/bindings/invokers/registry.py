"""Protocol to invoker [seed]."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cogcli.bindings.invokers.base import Invoker, Surroundings
from cogcli.bindings.invokers.pythoncall import PythonCall

INVOKERS: Final[dict[str, Callable[[Surroundings], Invoker]]] = {
    "pythoncall": PythonCall,
}
