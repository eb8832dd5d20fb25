"""Prompts: pure functions of state and compiled context (docs/reference/agent-state.md#prompt)."""

from __future__ import annotations

from typing import Any, NamedTuple

from cogcli.core.jsonvalue import NOTHING


class ToolSpec(NamedTuple):
    """A tool as a model is shown it. `parameters` is a JSON Schema; `awaits`: facts that other calls supply first."""

    name: str
    description: str
    parameters: dict[str, Any] = NOTHING
    awaits: tuple[str, ...] = ()

    def to_payload(self) -> dict[str, Any]:
        """The tool as a request to a model has it."""
        return {"name": self.name, "description": self.description, "parameters": self.parameters}


class PromptSection(NamedTuple):
    """A section of a prompt, its size, and whether something is missing."""

    name: str
    tokens: int
    truncated: bool = False


class Prompt(NamedTuple):
    """What a model is sent: messages `{role, content}`, with the sizes of their sections."""

    messages: tuple[dict[str, str], ...]
    sections: tuple[PromptSection, ...] = ()
    tokens: int = 0

    @property
    def truncated(self) -> bool:
        """Whether something is missing in a section."""
        return any(section.truncated for section in self.sections)

    def to_payload(self) -> dict[str, Any]:
        """The prompt as JSON."""
        sections = [section._asdict() for section in self.sections]
        return {"messages": list(self.messages), "sections": sections, "tokens": self.tokens}
