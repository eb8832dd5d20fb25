"""What a model replied, of any bytes (docs/reference/agent-state.md#reply). Pure, and total: nothing is raised."""

from __future__ import annotations

from typing import Any, NamedTuple

from cogcli.core.jsonvalue import NOTHING


class Reply(NamedTuple):
    """A reply that can be used. `calls` are `{name, args, id?, depends_on?}`, `notes` `{code, what, detail}`: what was
    dropped. Texts that were not given are empty."""

    thinking: str = ""
    calls: tuple[dict[str, Any], ...] = ()
    goal: str = ""
    strategy: str = ""
    facts: dict[str, Any] = NOTHING
    insights: tuple[str, ...] = ()
    response: str = ""
    switch_mode: str = ""
    switch_why: str = ""
    notes: tuple[dict[str, Any], ...] = ()


class ReplyProblem(NamedTuple):
    """Why a reply cannot be used. `code`: not_json, not_object, empty_reply, too_large, bad_type or too_many_calls;
    `pointer`: a JSON pointer into the reply, empty for all of it."""

    code: str
    pointer: str
    message: str

    def to_payload(self) -> dict[str, Any]:
        """The problem as JSON."""
        return self._asdict()
