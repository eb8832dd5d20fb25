"""mcp with `server:`: a binding against a tool server that the package contains
(docs/reference/protocols.md#mcp-bundled, docs/reference/protocols.md#wire-checks)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cogcli.core.files import FileRefused, read_regular
from cogcli.core.problems import list_known, suggestion
from cogcli.protocols.contract_finding import ContractFinding, OperationContract
from cogcli.protocols.pythoncall.contract import function_findings
from cogcli.specs.binding import Binding
from cogcli.specs.module_lookup import module_file
from cogcli.specs.shipped_tools import MODULES, TABLES

_LONGEST: Final = 4 * 1024 * 1024


def source_of(server: str) -> bytes:
    """The source bytes of all modules that a bundled server calls."""
    modules = sorted({module for module, _ in TABLES.get(server, {}).values()})
    return b"\0".join(map(_source, modules))


def bundled_findings(binding: Binding, server: str) -> Iterator[ContractFinding | OperationContract]:
    """The findings about tool and arguments, then the tool's contract. An unknown server is reported at the service."""
    tools = TABLES.get(server, {})
    target = tools.get(binding.operation)
    if target is None:
        if tools:
            message = f"shipped server `{server}` has no tool `{binding.operation}`"
            hint = suggestion(binding.operation, tools) or list_known(sorted(tools))
            yield ContractFinding("wire.operation", "E", ("operation",), message, hint)
        return
    module, function = target
    yield from function_findings(binding, _source(module), function, f"tool `{binding.operation}`")


def _source(module: str) -> bytes:
    file = module_file(MODULES + module, "")
    try:
        return read_regular(file, limit=_LONGEST) if file else b""
    except FileRefused:
        return b""
