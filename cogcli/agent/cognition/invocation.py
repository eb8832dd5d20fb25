"""The input of an agent's run, fixed when it begins: request, pack, limits, and the values of the stores
(docs/reference/agent-run.md#start). The first event holds it, so that resume and replay read no store.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cogcli.agent.compaction import Compaction, compact_messages
from cogcli.agent.context.blocks import session_line
from cogcli.agent.context.buckets import bucket_limit
from cogcli.agent.context.compiled import Omission
from cogcli.agent.context.inputs import (
    AgentRequest,
    CompileInput,
    Edge,
    PromotedMemory,
    RunContext,
    User,
)
from cogcli.agent.context.intent import IntentResult, resolve_intent
from cogcli.agent.context.tokenizer import ESTIMATE
from cogcli.agent.withheld import withheld
from cogcli.base.canonical import digest_of
from cogcli.base.errors import BindingResolutionError
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.redact import Redactor
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.envelope import Event
from cogcli.declarations.options import options_from_log
from cogcli.declarations.pack_spec import Pack
from cogcli.declarations.reading import read_record
from cogcli.declarations.run_start import (
    LATEST_EDITION,
    FetchedRecords,
    RecordedRequest,
    RecordedSession,
    RequestUser,
    start_of,
)
from cogcli.declarations.value_types import Json
from cogcli.policy.guardrails import find_guardrails_for_text
from cogcli.policy.pack_policy import Policy
from cogcli.policy.run_policy import Requester, RunPolicy
from cogcli.run.policy import build_run_policy, ceiling_of, limits_of, pack_of
from cogcli.run.policy_request import PolicyRequest
from cogcli.specs.catalog import Catalog
from cogcli.specs.selection import SelectionOptions, select
from cogcli.specs.skill_tools import skill_tools

_BY_NAME: Final = Redactor()
NO_MODEL: Final = "template"
"""The adapter in the log of a run that templates plan."""


class StoredValues(NamedTuple):
    """The values of the stores for a request, and the snapshot of the graph."""

    edges: tuple[Edge, ...] = ()
    memories: tuple[PromotedMemory, ...] = ()
    snapshot_ref: str = ""
    profile: Json | None = None
    """The profile of the user; None for a run without a model."""
    session: Json | None = None
    """The conversation that the request continues."""

    def to_payload(self) -> Json:
        """Return the values as JSON."""
        later = {"profile": self.profile, "session": self.session}
        return {
            "edges": [edge._asdict() for edge in self.edges],
            "memories": [
                {**memory._asdict(), "evidence_refs": list(memory.evidence_refs)}
                for memory in self.memories
            ],
            "snapshot_ref": self.snapshot_ref,
            **{name: each for name, each in later.items() if each is not None},
        }

    @classmethod
    def from_payload(cls, payload: Json) -> StoredValues:
        """Return the inverse of `to_payload`."""
        memories = (
            PromotedMemory(**{**each, "evidence_refs": tuple(each["evidence_refs"])})
            for each in payload["memories"]
        )
        edges = tuple(Edge(**edge) for edge in payload["edges"])
        found = FetchedRecords.of(payload)
        session = None if found.session is None else found.session.json
        return cls(edges, tuple(memories), found.snapshot_ref, found.profile, session)


class Invocation(NamedTuple):
    """One checked request to an agent, with the input of its turns."""

    pack: Pack
    request: AgentRequest
    asked: PolicyRequest
    capabilities: Mapping[str, Capability]
    """The callable capabilities of the pack, with its skills as `skill:ID`."""
    intent: IntentResult
    limits: Mapping[str, int | float]
    safety_mode: str
    policy: RunPolicy
    fetched: StoredValues = StoredValues()
    summary: str = ""
    """The model's summary of the messages of the conversation that have no room."""
    debug: bool = False
    """Whether the caller wanted details (`-v`, `--debug`), which the state of the agent records."""

    def to_payload(self) -> Json:
        """Return the `agent` of `run.started`."""
        return {
            "request": self.request.to_payload(),
            "tenant_id": self.pack.tenant,
            "role": self.pack.tone.agent.role,
            "subjects": list(self.intent.slots.values()),
            "limits": dict(self.limits),
            "fetched": self.fetched.to_payload(),
            **({"debug": True} if self.debug else {}),
        }

    @property
    def pins(self) -> Json:
        """The further members of `pins` in `run.started`."""
        return {
            "policy_hash": self.pack.hash,
            **({"packs": list(self.pack.parts)} if self.pack.parts else {}),
            "snapshot": self.fetched.snapshot_ref,
            "tokenizer": {"id": ESTIMATE.id, "hash": ESTIMATE.hash},
            "model": {"adapter": NO_MODEL},
        }

    @property
    def logged_request(self) -> AgentRequest:
        """The request in its logged form: without values whose names denote secrets. No context has these values, so a
        replay compiles the same context.
        """
        named = _BY_NAME.mask(
            {"params": self.request.params, "attachments": list(self.request.attachments)}
        )
        return self.request._replace(
            params=named["params"], attachments=tuple(named["attachments"])
        )

    def compile_input(
        self, turn: int, run_id: str, trace_id: str, now: str, learned: tuple[Edge, ...] = ()
    ) -> CompileInput:
        """Return the input of the context of a turn. `learned` are the facts of the run's own calls."""
        pack = self.pack
        run = RunContext(
            run_id,
            trace_id,
            pack.tenant,
            self.safety_mode,
            pack.tone.agent.role,
            pack.tone.agent.voice,
            turn=turn,
            snapshot_ref=self.fetched.snapshot_ref,
            now=now,
        )
        compile_input = CompileInput(
            pack,
            self.policy.rules,
            self.logged_request,
            run,
            self.capabilities,
            (*self.fetched.edges, *learned),
            self.fetched.memories,
            state=self.policy.snapshot,
            limits=self.limits,
            edition=self.policy.edition,
        )
        return self._add_session(compile_input)

    @property
    def conversation(self) -> Compaction:
        """The conversation, shortened to fit into a context."""
        messages = self.fetched.session["messages"] if self.fetched.session else ()
        whole = self.limits["tokens.context"] // 4
        if self.policy.edition < LATEST_EDITION:
            room = bucket_limit(self.limits, "session", whole)
            return compact_messages(messages, room, summary=self.summary)
        of_pack = self.pack.bucket_sizes.get("session", whole)
        room = bucket_limit(self.limits, "session", of_pack)
        return compact_messages(messages, room, summary=self.summary, render=session_line)

    @property
    def session_signals(self) -> Json:
        """The signals of the session for the first turn: whether it starts, how many messages it has, and whether its
        last run failed. Empty without a session.
        """
        id = self.request.session_id
        if not id or self.policy.edition < LATEST_EDITION:
            return {}
        session = read_record(RecordedSession, self.fetched.session)
        count = len(session.messages)
        state = "resumed" if count else "started"
        failed = {"last_run_failed": True} if session.last_run_failed else {}
        return {"session_id": id, "state": state, "messages": count, **failed}

    def _add_session(self, compile_input: CompileInput) -> CompileInput:
        """Return the input of a compilation with the conversation. A summary replaces messages that have no room."""
        found = self.conversation
        texts = tuple(f"{each['role']}: {each['content']}" for each in found.kept)
        if self.policy.edition < LATEST_EDITION:
            if found.summary:
                head = f"summary of {len(found.left)} earlier messages: {found.summary.content}"
                texts = (head, *texts)
            return compile_input._replace(session=texts)
        compile_input = compile_input._replace(session=texts, session_signals=self.session_signals)
        if found.summary is None:
            return compile_input
        cut = Omission(found.summary.block_id, "session", 0, found.left_tokens, "summarized")
        return compile_input._replace(summary=found.summary, summary_cut=cut)


def invocation_of(
    catalog: Catalog,
    selection: SelectionOptions,
    request: AgentRequest,
    policy_request: PolicyRequest,
) -> Invocation:
    """Return a request to the agent of a pack. `policy_request` names pack and intent, user, ceiling and budgets.

    Raises UnusableEnvironment `pack.unknown`, `pack.mismatch`; UsageError for a mode or a budget above the pack's.
    """
    pack = pack_of(catalog, policy_request)
    limits = limits_of(pack, policy_request.budget)
    usable = _with_tools(catalog, pack, _callable_capabilities(catalog, selection))
    intent = intent_of(pack, request, usable)
    user = request.user
    requester = Requester(
        intent.intent,
        user.user_id,
        user.role,
        user.consent,
        pack.tone.agent.role,
        pack.tone.agent.voice,
        request.message,
        request.channel,
        request.locale,
    )
    mode, edition = policy_request.safety_mode, policy_request.edition
    policy = build_run_policy(catalog, pack, requester, limits, mode, intent.slots, edition=edition)
    mode = ceiling_of(pack, policy_request.safety_mode)
    return Invocation(pack, request, policy_request, usable, intent, limits, mode, policy)


def refuse_message(invocation: Invocation) -> AgentRequest | None:
    """Return the request without its text if a guardrail refuses its message, else None. It has the ids of the
    guardrails and the hash of the message, but no parameters and attachments, which could repeat the message.
    """
    request = invocation.request
    must_refuse, edition = invocation.pack.policy.guardrails.must_refuse, invocation.policy.edition
    refused_by = tuple(
        each.id for each in find_guardrails_for_text(must_refuse, request.message, edition)
    )
    if not refused_by:
        return None
    return request._replace(
        message=withheld(f"must_refuse:{refused_by[0]}"),
        intent=invocation.intent.intent,
        params={},
        attachments=(),
        refused_by=refused_by,
        message_hash=digest_of(request.message),
    )


def intent_of(
    pack: Pack, request: AgentRequest, capabilities: Mapping[str, Capability]
) -> IntentResult:
    """Return the intent of a request, by its pack alone."""
    run = RunContext("", "", pack.tenant)
    return resolve_intent(CompileInput(pack, Policy.of(pack), request, run, capabilities))


def recorded_invocation(started: Event, catalog: Catalog) -> Invocation:
    """Return the invocation in the first event of a run, over the catalog to continue with."""
    start = start_of(started)
    if start.agent is None:
        raise ValueError("no agent ran this")
    asked = PolicyRequest.recorded(start) or PolicyRequest()
    selection = SelectionOptions(options_from_log(started.payload).bind, None, {})
    found = invocation_of(catalog, selection, request_from_log(start.agent.request), asked)
    chosen = {id for id, chain in start.selection.items() if chain.members}
    usable = {id: each for id, each in catalog.by_name.items() if each.id in chosen}
    usable = _with_tools(catalog, found.pack, usable)
    fetched = StoredValues.from_payload(start.agent.fetched.json)
    return found._replace(capabilities=usable, fetched=fetched, debug=start.agent.debug)


def request_from_log(recorded_request: RecordedRequest) -> AgentRequest:
    """Return the request in a log, which was checked before."""
    logged = recorded_request.user or RequestUser()
    user = User(logged.user_id or User().user_id, logged.role, tuple(logged.consent))
    members = {
        name: each for name, each in recorded_request.json.items() if name in AgentRequest._fields
    }
    lists = {
        "attachments": tuple(recorded_request.attachments),
        "refused_by": tuple(recorded_request.refused_by),
    }
    return AgentRequest(**{**members, "user": user, **lists})


def _callable_capabilities(catalog: Catalog, selection: SelectionOptions) -> dict[str, Capability]:
    """Return the capabilities with an eligible binding, by id and by alias."""
    found = {}
    for name, capability in catalog.by_name.items():
        try:
            select(catalog, capability.id, selection)
        except BindingResolutionError:
            continue
        found[name] = capability
    return found


def _with_tools(
    catalog: Catalog, pack: Pack, usable: dict[str, Capability]
) -> dict[str, Capability]:
    """Add the skills of the pack that reach only these capabilities."""
    return {**usable, **skill_tools(catalog, pack, usable)}
