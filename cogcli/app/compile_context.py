"""Compiling a context from a request: what the stores hold is fetched, then the pure compiler runs
(docs/reference/pack.md#compiler)."""

from __future__ import annotations

from typing import Any, NamedTuple

from cogcli.app.knowledge import open_knowledge
from cogcli.app.memory import FETCHED, open_memory
from cogcli.app.packs import FoundPack
from cogcli.app.settings import Settings
from cogcli.context.compiler import CompiledContext, compile_context
from cogcli.context.inputs import AgentRequest, CompileInput, Edge, PromotedMemory, RunContext, User
from cogcli.context.intent import resolve_intent
from cogcli.core.errors import UsageError
from cogcli.core.jsonvalue import kind_of
from cogcli.governance.budgets import DEFAULTS, merge_limits
from cogcli.governance.policy import Policy
from cogcli.runs.state_view import StateOfRun

_KEYS = {
    "message": str, "intent": str, "params": dict, "channel": str, "locale": str, "focus": str, "request_id": str,
    "attachments": list, "user": dict,
}  # fmt: skip


class Fetched(NamedTuple):
    """What the stores gave for a request, and the snapshot of the graph."""

    edges: tuple[Edge, ...]
    memories: tuple[PromotedMemory, ...]
    snapshot_ref: str


def request_from(raw: dict[str, Any]) -> AgentRequest:
    """A request from its JSON. Raises UsageError for an unknown key, a wrong type or a missing message."""
    for name, value in raw.items():
        if name not in _KEYS:
            raise UsageError(
                "usage.value", f"a request has no `{name}`", expected=f"one of {', '.join(_KEYS)}"
            )
        if not isinstance(value, _KEYS[name]):
            raise UsageError("input.type", f"`{name}` of the request: found {kind_of(value)}")
    if not raw.get("message"):
        raise UsageError("usage.value", "the request has no `message`", hint="say what is wanted")
    user = raw.get("user") or {}
    named = User(user.get("user_id", "default"), user.get("role", ""), tuple(user.get("consent") or ()))
    return AgentRequest(**{**raw, "user": named, "attachments": tuple(raw.get("attachments") or ())})


def compile_request(settings: Settings, found: FoundPack, request: AgentRequest) -> CompiledContext:
    """The context of a request under a pack, over what the project's stores hold now."""
    pack, now = found.pack, settings.clock.now()
    run = RunContext(
        "run_0", "trace_0", pack.tenant, pack.defaults.safety_mode, pack.tone.role, pack.tone.voice, now=now
    )
    policy = Policy.of(pack)
    of_new_run = StateOfRun(policy.state_parts).read()
    given = CompileInput(
        pack,
        policy,
        request,
        run,
        found.catalog.by_name,
        state={**of_new_run, "goal": {"task": request.message, "type": "task"}},
        limits=merge_limits(DEFAULTS, pack.defaults.budget),
    )
    fetched = _fetch(settings, given)
    return compile_context(
        given._replace(
            edges=fetched.edges,
            memories=fetched.memories,
            run=run._replace(snapshot_ref=fetched.snapshot_ref),
        )
    )


def _fetch(settings: Settings, given: CompileInput) -> Fetched:
    """The edges around the entities of the request, and the user's memory that shares words with it."""
    pack, request = given.pack, given.request
    entities = resolve_intent(given).slots.values()
    with open_knowledge(settings) as graph:
        snapshot = graph.snapshot()
        edges = graph.around(
            entities,
            tenant_id=pack.tenant,
            seq=snapshot.seq,
            hops=pack.knowledge.max_hops,
            most=pack.knowledge.max_edges,
        )
    with open_memory(settings) as store:
        memories = store.recall(
            pack.tenant,
            request.user,
            request.message,
            pack.memory,
            now=given.run.now,
            most=FETCHED * pack.memory.top_k,
        )
    return Fetched(tuple(edges), tuple(memories), snapshot.ref)
