"""The command that asks an agent again what a run was asked (docs/reference/agent-run.md#again). An agent plans anew,
so that its runs are not rerun step by step."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from shlex import join
from typing import Any

from cogcli.base.errors import UsageError
from cogcli.base.jsonvalue import list_of, object_of, text_of
from cogcli.specs.pack import BUILT_IN_PACK

_FLAGLESS = ("channel", "locale", "attachments", "request_id", "session_id")
"""Members of a request that only a file can say."""


def is_agents(started: Mapping[str, Any]) -> bool:
    """Whether the payload of `run.started` is of an agent's run."""
    return started.get("using") == "agent"


def invoke_command(started: Mapping[str, Any]) -> str:
    """The `agent invoke` with the request, pack, limits and permissions that the payload of `run.started` holds; what
    flags cannot say is left out. If a guardrail refused the message, the episode does not hold its text: then the
    help of `agent invoke`."""
    if _request(started).get("refused_by"):
        return "cogcli agent invoke --help"
    return join(["cogcli", "agent", "invoke", *_words(started)])


def no_rerun(episode_id: str, started: Mapping[str, Any]) -> UsageError:
    """The error for `rerun` of an agent's run, with the command that asks again."""
    request = _request(started)
    user = object_of(request.get("user"))
    lacking = [name for name in _FLAGLESS if request.get(name)]
    lacking += [f"user.{name}" for name in ("role", "consent") if user.get(name)]
    lacking += ["focus"] if request.get("focus") not in (None, "", "off") else []
    hint = "an agent plans anew: ask it again"
    if request.get("refused_by"):
        hint = "a guardrail refused its message, and the episode holds only the hash: ask with another message"
    if lacking:
        hint += f"; of its request {', '.join(lacking)} can only stand in a file"
    text = f"`{episode_id}` is the run of an agent: `rerun` repeats skills"
    return UsageError("usage.value", text, hint=hint, next=(invoke_command(started),))


def _request(started: Mapping[str, Any]) -> dict[str, Any]:
    return object_of(object_of(started.get("agent")).get("request"))


def _words(started: Mapping[str, Any]) -> Iterator[str]:
    request, policy = _request(started), object_of(started.get("policy"))
    options = object_of(started.get("options"))
    yield from ("--message", text_of(request.get("message")))
    named = {
        "--pack": "" if is_built_in(policy) else policy.get("pack"),
        "--intent": request.get("intent"),
        "--user": policy.get("user"),
        "--safety-mode": policy.get("safety_mode"),
    }
    for flag, value in named.items():
        if value:
            yield from (flag, text_of(value))
    for name, value in object_of(request.get("params")).items():
        yield from (
            "--param",
            f"{name}={value}" if isinstance(value, str) else f"{name}:={json.dumps(value)}",
        )
    for name, value in object_of(policy.get("budget")).items():
        yield from ("--budget", f"{name}={value}")
    yield from _permissions(options)
    for name, value in object_of(started.get("tags")).items():
        yield from ("--tag", f"{name}={value}")


def is_built_in(policy: Mapping[str, Any]) -> bool:
    """Whether the pack is the one of an agent that is given none."""
    return text_of(policy.get("pack")).partition("@")[0] == BUILT_IN_PACK


def _permissions(options: dict[str, Any]) -> Iterator[str]:
    if options.get("trust_level") not in (None, "standard"):
        yield from ("--trust-level", str(options["trust_level"]))
    for capability in list_of(options.get("confirmed_capabilities")):
        yield from ("--confirm", str(capability))
    for capability, binding in object_of(options.get("binds")).items():
        yield from ("--bind", f"{capability}={binding}")
    if options.get("timeout_seconds"):
        yield from ("--timeout", f"{options['timeout_seconds']:g}")
