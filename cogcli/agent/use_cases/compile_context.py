"""The context of a request: the values of the stores are fetched, then the pure compiler runs
(docs/reference/pack.md#compiler)."""

from __future__ import annotations

from typing import Final

from cogcli.agent.cognition.first_turn import with_first_attention
from cogcli.agent.cognition.invocation import StoredValues
from cogcli.agent.context.blocks import ATTACHMENT
from cogcli.agent.context.compiler import CompiledContext, compile_context
from cogcli.agent.context.inputs import (
    AgentRequest,
    CompileInput,
    Edge,
    PromotedMemory,
    RunContext,
    User,
)
from cogcli.agent.context.intent import resolve_intent
from cogcli.agent.stores.knowledge_store import PREFIX, Snapshot
from cogcli.agent.use_cases.knowledge import open_knowledge
from cogcli.agent.use_cases.memory import FETCHED, open_memory
from cogcli.app.packs import PackInRegistry
from cogcli.app.settings import Settings
from cogcli.app.stores import has_store, is_of_project
from cogcli.base.errors import UsageError
from cogcli.base.jsonvalue import NOTHING, kind_of
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import suggestion
from cogcli.declarations.pack_spec import PROPOSAL_CLASSES, Pack
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.run_start import ExpectedAgent, RequestUser
from cogcli.declarations.value_types import Json
from cogcli.episode.layout import is_trace_id
from cogcli.policy.budgets import DEFAULTS, merge_limits
from cogcli.policy.pack_policy import Policy
from cogcli.run.state_view import RunStateReader
from cogcli.specs.id_grammar import USER_ID_WORDS, is_user_id
from cogcli.specs.skill_tools import skill_tools
from cogcli.stores import KNOWLEDGE, MEMORY

_KEYS = {
    "message": str, "intent": str, "params": dict, "channel": str, "locale": str, "focus": str, "request_id": str,
    "attachments": list, "user": dict, "session_id": str, "tenant_id": str, "agent": dict,
}  # fmt: skip
_OF_AGENT: Final = ("agent_id", "role", "voice")
_OF_RUN = {
    "pack_refs": list, "safety_mode": str, "budget": dict, "trace_id": str, "tags": dict
}  # fmt: skip
"""The members of a request about its run."""
_KINDS: Final = {str: "text", dict: "an object", list: "a list"}


NOTHING_STORED: Final = StoredValues((), (), Snapshot(PREFIX, 0).ref)
"""The values of empty stores."""


class RequestWithOptions(NamedTuple):
    """A request with its members about the run. A command line may only tighten mode and budget."""

    request: AgentRequest
    pack_refs: tuple[str, ...] = ()
    safety_mode: str = ""
    budget: Json = NOTHING
    trace_id: str = ""
    tags: dict[str, str] = NOTHING


def parse_request(raw: Json) -> RequestWithOptions:
    """Parse the JSON of a request, with its members about the run. Raise the errors of `request_from`."""
    _require_types(raw)
    found = read_record(_RequestFile, raw)
    _require_values(found)
    members = {name: value for name, value in raw.items() if name in _KEYS}
    members |= {"user": _parse_user(found.user), "attachments": tuple(found.attachments)}
    run = {name: raw[name] for name in _OF_RUN if name in raw}
    return RequestWithOptions(
        AgentRequest(**members), **{**run, "pack_refs": tuple(found.pack_refs)}
    )


class _RequestFile(Record):
    """The members of a request that are checked further, and the members of its run."""

    message: str
    focus: str = "off"
    attachments: list[object]
    agent: Json
    user: Json
    pack_refs: list[object]
    trace_id: str
    tags: Json


def _require_types(raw: Json) -> None:
    """Raise UsageError for an unknown key and a value of a wrong type."""
    known = {**_KEYS, **_OF_RUN}
    for name, value in raw.items():
        if name not in known:
            hint = suggestion(name, known) or f"it has {', '.join(known)}"
            raise UsageError("usage.value", f"a request has no `{name}`", hint=hint)
        if not isinstance(value, known[name]):
            text = (
                f"`{name}` of the request: expected {_KINDS[known[name]]}, found {kind_of(value)}"
            )
            raise UsageError("input.type", text)
    found = read_record(_RequestFile, raw)
    for name, texts in (("pack_refs", found.pack_refs), ("tags", found.tags.values())):
        if not all(isinstance(each, str) for each in texts):
            raise UsageError("input.type", f"`{name}` of the request: expected texts")


def _require_values(request: _RequestFile) -> None:
    """Raise UsageError for a value that no request may have."""
    _require_attachments(request.attachments)
    _require_agent(request.agent)
    if not request.message.strip():
        raise UsageError("usage.value", "the request has no `message`", hint="say what you want")
    if request.trace_id and not is_trace_id(request.trace_id):
        expected = "1 to 128 letters, digits, `.`, `_`, `:` or `-`"
        raise UsageError("usage.value", "`trace_id` of the request", expected=expected)
    if request.focus not in ("off", "deep"):
        raise UsageError("usage.value", "`focus` of the request: expected off or deep")


def _require_attachments(attachments: list[object]) -> None:
    """Raise UsageError unless each attachment is an object with a name, all of its known members texts."""
    for number, each in enumerate(attachments):
        place = f"`attachments.{number}` of the request"
        if not isinstance(each, dict):
            raise UsageError("input.type", f"{place}: expected an object, found {kind_of(each)}")
        for name in ATTACHMENT:
            if name in each and not isinstance(each[name], str):
                text = f"{place}: expected `{name}` as a text, found {kind_of(each[name])}"
                raise UsageError("input.type", text)
        if not each.get("name"):
            raise UsageError("usage.value", f"{place}: it has no `name`", hint="name the file")


def _require_agent(agent: Json) -> None:
    """Raise UsageError for an unknown member of `agent`, and for one of a wrong type."""
    for name, value in agent.items():
        if name not in _OF_AGENT:
            hint = suggestion(name, _OF_AGENT) or f"it has {', '.join(_OF_AGENT)}"
            raise UsageError("usage.value", f"`agent` of the request has no `{name}`", hint=hint)
        if not isinstance(value, str):
            text = f"`agent.{name}` of the request: expected a text, found {kind_of(value)}"
            raise UsageError("input.type", text)
    agent_id = ExpectedAgent.of(agent).agent_id
    if "agent_id" in agent and not is_user_id(agent_id):
        text = f"`agent.agent_id` of the request: found `{agent_id[:60]}`"
        raise UsageError("usage.value", text, expected=USER_ID_WORDS)


def require_expected_pack(request: AgentRequest, pack: Pack) -> None:
    """Raise UsageError if a request expects another tenant, or an agent of another role or voice, than its pack has."""
    speaker = pack.tone.agent
    found = {"tenant_id": pack.tenant, "agent.role": speaker.role, "agent.voice": speaker.voice}
    expected = {f"agent.{name}": value for name, value in request.agent.items()}
    if request.tenant_id:
        expected["tenant_id"] = request.tenant_id
    for name, value in found.items():
        if expected.get(name, value) != value:
            text = f"`{name}` of the request is `{expected[name]}`, of pack `{pack.ref}` it is `{value}`"
            raise UsageError(
                "usage.value", text, hint="leave it out, or name the pack that you mean"
            )


def request_from(raw: Json) -> AgentRequest:
    """Parse the JSON of a request. Raise UsageError for an unknown key, a wrong type or a missing message."""
    return parse_request(raw).request


def _parse_user(raw: Json) -> User:
    """Return the user of a request. Raise UsageError."""
    known = {"user_id": str, "role": str, "consent": list}
    for name, value in raw.items():
        if name not in known or not isinstance(value, known[name]):
            raise UsageError(
                "input.type", f"`user.{name}` of the request: expected {', '.join(known)}"
            )
    if "user_id" in raw and not is_user_id(raw["user_id"]):
        text = f"`user.user_id` of the request: found `{raw['user_id'][:60]}`"
        raise UsageError("usage.value", text, expected=USER_ID_WORDS)
    user = User(**{**raw, "consent": tuple(RequestUser.of(raw).consent)})
    if any(each not in PROPOSAL_CLASSES for each in user.consent):
        raise UsageError("usage.value", f"`user.consent`: expected {', '.join(PROPOSAL_CLASSES)}")
    return user


def compile_request(
    settings: Settings, found: PackInRegistry, request: AgentRequest
) -> CompiledContext:
    """Return the context of a request under a pack, with the current values of the stores. The stores are not read for
    the pack of an untrusted project.
    """
    pack, now = found.pack, settings.clock.now()
    require_expected_pack(request, pack)
    run = RunContext(
        "run_0",
        "trace_0",
        pack.tenant,
        pack.meta.defaults.safety_mode,
        pack.tone.agent.role,
        pack.tone.agent.voice,
        now=now,
    )
    policy, known = Policy.of(pack), found.catalog.by_name
    of_new_run = RunStateReader(policy.state_parts).read()
    compile_input = CompileInput(
        pack,
        policy,
        request,
        run,
        {**known, **skill_tools(found.catalog, pack, known)},
        state={**of_new_run, "goal": {"task": request.message, "type": "task"}},
        limits=merge_limits(DEFAULTS, pack.meta.defaults.budget),
    )
    fetched = NOTHING_STORED
    if not is_of_project(settings, found.file):
        entities = tuple(resolve_intent(compile_input).slots.values())
        fetched = fetch(settings, pack, request, entities)
    compile_input = compile_input._replace(
        edges=fetched.edges,
        memories=fetched.memories,
        run=run._replace(snapshot_ref=fetched.snapshot_ref),
    )
    return compile_context(with_first_attention(compile_input))


def fetch(
    settings: Settings,
    pack: Pack,
    request: AgentRequest,
    entities: tuple[str, ...],
    *,
    memory: bool = True,
) -> StoredValues:
    """Fetch the edges around the request's entities and, with `memory`, the user's memory that shares words with
    the request.

    A missing store is not created, and is read as empty.
    """
    edges: list[Edge] = []
    snapshot = Snapshot(PREFIX, 0)
    if has_store(settings, KNOWLEDGE):
        with open_knowledge(settings) as graph:
            limits, snapshot = pack.knowledge, graph.snapshot()
            limit, hops = limits.max_edges, limits.max_hops
            edges = graph.find_edges_near(
                entities, tenant_id=pack.tenant, seq=snapshot.seq, hops=hops, limit=limit
            )
    memories: list[PromotedMemory] = []
    if memory and has_store(settings, MEMORY):
        user, now, limit = request.user, settings.clock.now(), FETCHED * pack.memory.top_k
        with open_memory(settings) as store:
            memories = store.recall(
                pack.tenant,
                user,
                request.message,
                pack.memory,
                now=now,
                limit=limit,
                session_id=request.session_id,
            )
    return StoredValues(tuple(edges), tuple(memories), snapshot.ref)
