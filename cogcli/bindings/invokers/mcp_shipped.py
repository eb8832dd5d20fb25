"""The tool servers that come with the package: tables of functions, called without any server (protocols.md 6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from cogcli.bindings.invokers.base import CallContext, InvocationRequest, InvocationResponse, Invoker
from cogcli.core.canonical import compact
from cogcli.core.errors import RejectedError, ServiceResolutionError
from cogcli.specs.service import Service

_MODULES: Final = "cogcli.official."

TABLES: Final[Mapping[str, Mapping[str, str]]] = {
    "official_text_tools": {
        "normalize": "text.normalize",
        "split_sections": "text.split_sections",
        "detect_language": "text.detect_language",
        "summarize": "prose.summarize_by_frequency",
        "summarize_by_lead": "prose.summarize_by_lead",
        "extract_keywords": "prose.extract_keywords",
        "score_readability": "prose.score_readability",
        "find_entities": "extract.find_entities",
    },
    "official_data_tools": {
        "parse_json": "data.parse_json",
        "merge_objects": "data.merge_objects",
        "profile_records": "data.profile_records",
        "validate": "schema.validate",
        "summarize_column": "table.summarize_column",
        "total_groups": "table.total_groups",
    },
    "official_web_tools": {
        "extract_content": "web.extract_content",
    },
}
"""By server and tool: module and function of `cogcli.official`. Arguments are the function's own."""


def called(
    functions: Invoker, server: str, request: InvocationRequest, context: CallContext
) -> InvocationResponse:
    """The reply of a shipped tool; `functions` calls Python functions. Raises RuntimeErrorBase."""
    table = TABLES.get(server)
    if table is None:
        text = f"service `{request.service.id}`: there is no shipped server `{server}`"
        raise ServiceResolutionError("service.unknown", text, left=False)
    if request.operation not in table:
        text = f"`{server}` has no tool `{request.operation}`; it has {', '.join(sorted(table))}"
        raise RejectedError("call.rejected", text, left=False)
    module, _, function = table[request.operation].partition(".")
    service = Service(id=request.service.id, kind="pythoncall", module=_MODULES + module, trusted=True)
    body, meta = functions.invoke(request._replace(service=service, operation=function), context)
    return InvocationResponse(_shaped(body, request.binding.metadata.get("response_mode") or "json"), meta)


def _shaped(body: Any, mode: str) -> Any:
    """A function's object by response mode: its text is the object as JSON."""
    if mode == "json":
        return body
    text = compact(body).decode()
    return {"text": text} if mode == "text" else {"structured": body, "text": text, "content": []}
