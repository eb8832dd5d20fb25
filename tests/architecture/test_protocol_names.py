"""A protocol's name is spelled in its row and its room; everything else asks the row
(docs/adr/0013-protocols-as-rooms.md)."""

from __future__ import annotations

import ast
from pathlib import Path

from support.sources import PACKAGE, modules_with

from cogcli.protocols import PROTOCOLS

SPELLED = {
    "authoring/new_specs/api_service.py": "what the files say that are made of an OpenAPI document",
    "authoring/new_specs/tool_binding.py": "what the flags `--from-mcp` and `--from-openrpc` name",
    "cli/app.py": "the commands of that name",
    "cli/commands/openapi.py": "the command of that name, and the default of `--protocol`",
    "gateway/host_file.py": "the kind of the servers in `mcpServers`",
    "gateway/host_specs.py": "the kind of the service whose calls the host makes itself",
    "gateway/tool_names.py": "the first word of the capabilities of tools",
    "gateway/own_functions.py": "the kind under which functions of a caller are recorded",
    "cli/commands/serve.py": "the module of the MCP SDK",
    "cli/options.py": "the choices of `--protocol`",
    "base/extras.py": "the extra of the package that installs the MCP SDK",
    "base/api_documents/openapi.py": "the version member of an OpenAPI document",
    "base/api_documents/openrpc.py": "the version member of an OpenRPC document",
    "authoring/verification/failure_rules.py": "what the server of a provoked failure speaks",
    "authoring/verification/rule_catalog.py": "what the services of a provoked call speak",
}
"""Files that spell one of these words, and what it means there. None of them asks what a service speaks."""


def spelled(path: Path) -> set[str]:
    """The names of protocols that stand in a module as whole texts."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    texts = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return {text for text in texts if isinstance(text, str) and text in PROTOCOLS}


def test_a_protocol_is_asked_by_its_row_and_not_by_its_name() -> None:
    names = [path.relative_to(PACKAGE).as_posix() for path in modules_with("|".join(PROTOCOLS))]
    others = [
        name
        for name in names
        if not name.startswith(("protocols/", "official/")) and name not in SPELLED
    ]
    assert [name for name in others if spelled(PACKAGE / name)] == [], (
        "ask `PROTOCOLS[...]` instead"
    )


def test_every_listed_file_still_spells_one() -> None:
    assert [
        name for name in SPELLED if not (PACKAGE / name).exists() or not spelled(PACKAGE / name)
    ] == []
