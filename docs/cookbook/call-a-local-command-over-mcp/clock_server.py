"""An MCP server with one tool."""

from datetime import date

from mcp.server import MCPServer
from mcp_types import ToolAnnotations

server = MCPServer("clock")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def days_between(first: str, last: str) -> int:
    """The days from one date to another."""
    return (date.fromisoformat(last) - date.fromisoformat(first)).days


if __name__ == "__main__":
    server.run()
