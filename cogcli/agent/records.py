"""The entries of an agent's state and its interactions, as records. They are stored as JSON and read again by
`declarations.reading`: a member of another type counts as absent.
"""

from __future__ import annotations

from typing import Any

from cogcli.declarations.record import Record


class ConversationMessage(Record):
    """A message of a conversation."""

    role: str
    content: str
    message_id: object = None


class PendingCall(Record):
    """A call that waits for its result."""

    name: str


class CompletedCall(Record):
    """The result of a call."""

    name: str
    step: str
    success: bool
    truncated: bool


class ReplyThinking(Record):
    """The thinking of a reply, and its calls."""

    thinking: str
    tool_calls: Any = None


class LearnableInteraction(Record):
    """An interaction, as learning without a model reads it."""

    intent: str
    template: str
    success: bool
    code: str


class SummaryReply(Record):
    """The reply of a model that summarizes a conversation."""

    summary: str
