"""typer's classes of commands and parameters, without the rest of typer
(docs/adr/0014-the-command-line-on-typer.md).

`typer` itself imports what its decorators need: half of its import, and nothing that parsing
needs. So only `typer.core` is loaded here. The body of `typer` runs at the first use of a name
that it defines.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

    from typer._click.exceptions import UsageError
    from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption


def _import_core() -> ModuleType:
    """Return the module `typer.core`."""
    name = "typer"
    spec = None if name in sys.modules else PathFinder.find_spec(name)
    if spec is None or spec.loader is None:  # it is loaded, or an import hook provides it
        return import_module("typer.core")
    package, loader = type(sys)(name), spec.loader
    package.__spec__, package.__loader__ = spec, loader
    package.__package__, package.__file__ = name, spec.origin
    package.__path__ = spec.submodule_search_locations or []
    sys.modules[name] = package
    core = None
    try:
        core = import_module("typer.core")
    finally:
        if core is None:
            del sys.modules[name]

    def run_body(attribute: str) -> object:
        """Run the body of the package, and return its attribute. Raise AttributeError."""
        if vars(package).pop("__getattr__", None) is not None:
            loader.exec_module(package)
        return getattr(package, attribute)

    package.__getattr__ = run_body  # type: ignore[method-assign]
    return core


if not TYPE_CHECKING:
    _core = _import_core()
    TyperArgument, TyperOption = _core.TyperArgument, _core.TyperOption
    TyperCommand, TyperGroup = _core.TyperCommand, _core.TyperGroup
    UsageError = import_module("typer._click.exceptions").UsageError

__all__ = ["TyperArgument", "TyperCommand", "TyperGroup", "TyperOption", "UsageError"]
