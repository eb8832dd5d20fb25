"""pythoncall: the keys of its services and the names of its functions (docs/reference/service.md#keys,
docs/reference/protocols.md#pythoncall)."""

from __future__ import annotations

import re
import sys
from typing import Annotated, Final, Literal

from cogcli.declarations.service_spec import SecretLocation
from cogcli.declarations.spec import Spec, SpecLimits
from cogcli.declarations.value_types import Json
from cogcli.specs.problem_report import ProblemReport
from cogcli.specs.protocol import Grammar
from cogcli.specs.service import is_shipped
from cogcli.specs.unchecked import text_at

_FUNCTION: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


def _check_operation(operation: str) -> str:
    return (
        "" if _FUNCTION.fullmatch(operation) else "the name of a function, not beginning with `_`"
    )


def _check_module(raw: Json, report: ProblemReport) -> None:
    """Report a module that services must not use: one of the standard library, or one of this package that is not
    shipped for services.
    """
    module = text_at(raw, "module")
    if module is None:
        return
    top = module.partition(".")[0]
    if (top == "cogcli" and not is_shipped(module)) or top in sys.stdlib_module_names:
        message = f"module `{module}` may not be called"
        report.error("service.forbidden", ("module",), message, hint="name a module of your own")


ModuleName = Annotated[
    str,
    SpecLimits(
        pattern=r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*",
        expected="a dotted module name",
    ),
]


class PythonModule(Spec):
    """A Python module."""

    module: ModuleName | None = None
    """A module of your own, from the directory that holds `services/`; of the standard library, or of
    cogcli itself other than a shipped service module: `service.forbidden`.
    Default: required for the kind"""
    isolation: Literal["thread", "process", "sandbox"] | None = None
    """The place where it runs. `thread` for your own modules is W `service.isolation`; `sandbox` is a process
    [behind the wall](#isolation).
    Default: `process`; shipped modules `thread`"""
    auth_ref: SecretLocation | None = None
    """The reference to a [secret](#secrets) that the function may [read](sdk.md#network); in a thread only."""


GRAMMAR: Final = Grammar(
    settings=PythonModule,
    addresses=("module",),
    unused=("method", "response_mode"),
    operation=_check_operation,
    check_service=_check_module,
)
