"""The document that a hook reads on its standard input (docs/reference/execution.md#hooks)."""

from __future__ import annotations

from typing import Literal

from cogcli.declarations.field import always
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Count, Json


class HookArgument(Record):
    """One argument of the call that waits. Secrets are masked, and a long text that decides nothing is cut."""

    name: str
    text: str
    decides: bool


class HookRequest(Record):
    """A request for approval that no earlier message contained."""

    approval_id: str
    action: str
    step: str
    gate: str
    rule: str
    reason: str
    roles: list[str]
    requested_at: str
    expires_at: str
    arguments: list[HookArgument]
    approve: str
    """The command that approves."""
    reject: str
    """The command that rejects."""


class HookInput(Record):
    """A call that waits for input, and that no earlier message contained. `resume --answer` answers."""

    step: str
    service: str
    message: str
    """A short text of the service's request."""


class HookError(Record):
    """The error of the run, as the log records it."""

    code: str
    message: str
    step: str


class HookMessage(Record):
    """The input of a hook: the run, and its open requests or its error."""

    schema_version: Literal["hook/1"]
    hook: Literal["on_pause", "on_failure", "on_end"]
    at: str
    """The time of the last event."""
    episode_id: str
    run_id: str
    trace_id: str
    skill: str
    directory: str
    """The path of the episode."""
    project: str
    """The path of the project; empty without one."""
    tags: Json
    status: str
    exit_code: Count
    requests: list[HookRequest]
    in_doubt: list[str]
    """The steps whose call may have happened, and that no earlier message contained."""
    input_requests: list[HookInput] = always(default=[])
    error: HookError | None = always(default=None)
