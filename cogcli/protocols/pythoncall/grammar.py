"""pythoncall: the keys of its services and the names of its functions (docs/reference/service.md#keys,
docs/reference/protocols.md#pythoncall)."""

from __future__ import annotations

import re
import sys
from typing import Any, Final

from cogcli.specs.problem_report import ProblemReport
from cogcli.specs.protocol import Grammar
from cogcli.specs.service import is_shipped
from cogcli.specs.service_shape import CREDENTIALS
from cogcli.specs.shape import Text

_MODULE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*")
_FUNCTION: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


def _operation(operation: str) -> str:
    return (
        "" if _FUNCTION.fullmatch(operation) else "the name of a function, not beginning with `_`"
    )


def _check_module(raw: dict[str, Any], report: ProblemReport) -> None:
    """Report modules that no service may name: of the standard library, and of this package but the shipped ones."""
    module = raw.get("module")
    if not isinstance(module, str):
        return
    top = module.partition(".")[0]
    if (top == "cogcli" and not is_shipped(module)) or top in sys.stdlib_module_names:
        message = f"module `{module}` may not be called"
        report.error("service.forbidden", ("module",), message, hint="name a module of your own")


GRAMMAR: Final = Grammar(
    keys={
        "module": Text(pattern=_MODULE, expected="a dotted module name"),
        "isolation": Text(choices=("thread", "process", "sandbox")),
        "auth_ref": CREDENTIALS,
    },
    addresses=("module",),
    unused=("method", "response_mode"),
    operation=_operation,
    check_service=_check_module,
)
