"""The definition of a tool as its server sends it, or as a lock or pin holds it."""

from __future__ import annotations

from cogcli.declarations.record import Record


class ToolExecution(Record):
    """The execution properties of a tool."""

    taskSupport: str | None = None


class ToolDefinition(Record):
    """The schemas in a definition. They are not checked: a server may send any value."""

    inputSchema: object = None
    outputSchema: object = None
    execution: ToolExecution = ToolExecution()

    @property
    def wants_task(self) -> bool:
        """Whether the tool runs only as a task, whose result is fetched later."""
        return self.execution.taskSupport == "required"


class ToolHints(Record):
    """The annotations of a tool. They are shown to people and decide nothing."""

    title: str
    readOnlyHint: bool
    destructiveHint: bool
