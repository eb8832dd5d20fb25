"""The definitions of the tools that a server lists, on all pages, within limits
(docs/reference/protocols.md#caps, docs/reference/protocols.md#mcp-pins)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cogcli.core.errors import ResponseMappingError, ServerFaultError
from cogcli.specs.lock import MEMBERS

if TYPE_CHECKING:
    from mcp import ClientSession

MAX_PAGES: Final = 50
MAX_TOOLS: Final = 2000


async def list_tools(session: ClientSession) -> list[dict[str, Any]]:
    """The pinned members of every tool's definition, unchanged.

    Raises ResponseMappingError beyond the limits, ServerFaultError where a page repeats.
    """
    from mcp_types import PaginatedRequestParams

    tools: list[dict[str, Any]] = []
    cursors: set[str] = set()
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        page = await session.list_tools(params=PaginatedRequestParams(cursor=cursor) if cursor else None)
        tools += [
            _definition(tool.model_dump(by_alias=True, mode="json", exclude_unset=True))
            for tool in page.tools
        ]
        if len(tools) > MAX_TOOLS:
            raise _too_many(f"more than {MAX_TOOLS:,} tools")
        cursor = page.next_cursor
        if not cursor:
            return tools
        if cursor in cursors:
            raise ServerFaultError("call.server-error", "tools/list gives the same page again", left=False)
        cursors.add(cursor)
    raise _too_many(f"more than {MAX_PAGES} pages")


def _definition(tool: dict[str, Any]) -> dict[str, Any]:
    return {name: tool[name] for name in MEMBERS if tool.get(name) is not None}


def _too_many(what: str) -> ResponseMappingError:
    return ResponseMappingError("response.size", f"tools/list has {what}", left=False)
