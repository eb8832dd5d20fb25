"""The `agent invoke` command that repeats the request of a recorded run
(docs/reference/agent-run.md#again).

An agent plans again, so `rerun` cannot repeat its runs step by step."""

from __future__ import annotations

import json
from collections.abc import Iterator
from shlex import join

from cogcli.base.errors import UsageError
from cogcli.declarations.envelope import Event
from cogcli.declarations.pack_spec import BUILT_IN_PACK
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.run_start import (
    AgentStart,
    RecordedPolicy,
    RecordedRequest,
    RecordedStart,
    RequestUser,
)
from cogcli.declarations.value_types import Json

_FLAGLESS = (
    "channel", "locale", "attachments", "request_id", "session_id", "tenant_id", "agent"
)  # fmt: skip
"""Members of a request that no flag sets, so that only a file can contain them."""


def read_start(first: Event) -> RecordedStart:
    """Return the first event of a log as a record. Members of a wrong type are ignored."""
    return read_record(RecordedStart, first.payload)


def is_agent_run(start: RecordedStart) -> bool:
    """Return whether the run belongs to an agent."""
    return start.using == "agent"


def invoke_command(start: RecordedStart) -> str:
    """Return the `agent invoke` command that repeats a recorded run with its request, pack, limits
    and permissions.

    Members without a flag are omitted. If a guardrail refused the message, the episode does not
    contain its text; then the command shows the help of `agent invoke`."""
    request = _request_of(start.agent)
    if request.refused_by:
        return "cogcli agent invoke --help"
    return join(["cogcli", "agent", "invoke", *_invoke_arguments(start, request)])


def agent_rerun_error(episode_id: str, start: RecordedStart) -> UsageError:
    """Return the error for a `rerun` of an agent's run. It names the command that sends the request
    again."""
    request = _request_of(start.agent)
    user = request.user or RequestUser()
    lacking = [name for name in _FLAGLESS if getattr(request, name)]
    lacking += [f"user.{name}" for name in ("role", "consent") if getattr(user, name)]
    lacking += ["focus"] if request.focus not in ("", "off") else []
    hint = "an agent plans anew: ask it again"
    if request.refused_by:
        hint = "a guardrail refused its message, and the episode holds only the hash: ask with another message"
    if lacking:
        hint += f"; of its request {', '.join(lacking)} can only stand in a file"
    text = f"`{episode_id}` is the run of an agent: `rerun` repeats skills"
    return UsageError("usage.value", text, hint=hint, next=(invoke_command(start),))


def _request_of(agent: AgentStart | None) -> RecordedRequest:
    """Return the recorded request, or an empty one if the log has no request."""
    return agent.request if agent else RecordedRequest(message="")


def _format_param(name: str, value: object) -> str:
    """Return a parameter in the syntax of `--param`: text unchanged, any other value as JSON."""
    return f"{name}={value}" if isinstance(value, str) else f"{name}:={json.dumps(value)}"


def _invoke_arguments(start: RecordedStart, request: RecordedRequest) -> Iterator[str]:
    """Yield the arguments of `agent invoke`."""
    policy = start.policy or RecordedPolicy()
    yield from ("--message", request.message)
    named = {
        "--pack": "" if is_built_in(policy) else policy.pack,
        "--intent": request.intent,
        "--user": policy.user,
        "--safety-mode": policy.safety_mode,
    }
    for flag, value in named.items():
        if value:
            yield from (flag, value)
    for reference in policy.with_packs:
        yield from ("--with-pack", reference)
    for name, value in request.params.items():
        yield from ("--param", _format_param(name, value))
    for name, amount in policy.budget.items():
        yield from ("--budget", f"{name}={amount}")
    yield from _permission_flags(start.options)
    for name, value in start.tags.items():
        if (name, value) != ("session_id", request.session_id):
            yield from ("--tag", f"{name}={value}")


def is_built_in(policy: RecordedPolicy | None) -> bool:
    """Return whether a run used the built-in pack, which is used by agents without a pack."""
    return policy is not None and policy.pack.partition("@")[0] == BUILT_IN_PACK


class PermissionOptions(Record):
    """The recorded options that permit calls."""

    trust_level: object = None
    confirmed_capabilities: list[object]
    binds: Json
    timeout_seconds: object = None


def _permission_flags(options: Json) -> Iterator[str]:
    """Yield the flags for the trust level, confirmations, bindings and timeout."""
    given = read_record(PermissionOptions, options)
    if given.trust_level not in (None, "standard"):
        yield from ("--trust-level", str(given.trust_level))
    for capability in given.confirmed_capabilities:
        yield from ("--confirm", str(capability))
    for capability, binding in given.binds.items():
        yield from ("--bind", f"{capability}={binding}")
    if given.timeout_seconds:
        yield from ("--timeout", f"{given.timeout_seconds:g}")
