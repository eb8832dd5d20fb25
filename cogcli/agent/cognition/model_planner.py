"""The planner with a model: a prompt from state and context, and the candidate from its reply
(docs/reference/agent-run.md#model). Pure: the loop makes the calls.

1. A reply is a candidate. The critic judges names and arguments, as for any planner.
2. For an unusable reply the prompt is repeated with its problems, at most twice.
3. If a reply has calls and a response, the calls run. The response is a draft until their results are known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from cogcli.agent.bounds import note
from cogcli.agent.cognition.context_for_model import fit_context
from cogcli.agent.cognition.ends import UNUSABLE
from cogcli.agent.cognition.planner import (
    Candidate,
    JudgedCandidate,
    JudgmentView,
    ProposedCall,
    Question,
)
from cogcli.agent.context.compiler import CompiledContext
from cogcli.agent.context.tokenizer import ESTIMATE
from cogcli.agent.models.port import ModelInfo, ModelReply, ModelRequest
from cogcli.agent.modes import CALLS
from cogcli.agent.prompts import ToolSpec, build_reasoning_prompt, render_tool, repair_prompt
from cogcli.agent.reply import (
    REPLY_SCHEMA,
    Reply,
    ReplyCall,
    ReplyProblem,
    parse_reply,
    reply_of_tool_calls,
)
from cogcli.agent.sections import Prompt
from cogcli.agent.state import AgentState
from cogcli.agent.update import update_from_reasoning
from cogcli.base.canonical import compact
from cogcli.base.errors import InternalError
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.value_types import Json
from cogcli.specs.field_schema import schema_of

REPAIRS: Final = 2
"""The maximal number of repairs in one judgment."""
REPAIR_TOKENS: Final = 128
"""The maximal tokens of the problems in a repair."""
_ID: Final = re.compile(r"[a-z][a-z0-9_]{0,31}")


class ModelPlanner:
    """Proposes the candidate in a model's reply."""

    name = "model"
    replans = True

    def __init__(self, info: ModelInfo) -> None:
        self._info = info

    def propose(self, view: JudgmentView) -> Question:
        if view.state is None:
            raise InternalError("internal", "a planner that asks a model has no state to ask from")
        prompt = _build_prompt(view, view.state, self._prompt_tokens(view))
        request = ModelRequest(
            prompt.messages,
            self._request_tools(view),
            REPLY_SCHEMA,
            int(view.invocation.limits["tokens.output"]),
            seed=view.seed,
        )
        answering = _ModelQuestion(view.state, view.now, prompt, request, _repair_tokens(view.room))
        return Question("judgment", request, answering.take)

    def fit(self, view: JudgmentView) -> CompiledContext:
        """Return the context of the view. It is compiled again if its prompt, including the text of a repair, exceeds
        `view.room` tokens. The prompt of an overpacked context may not be sent.
        """
        if view.state is None:
            raise InternalError("internal", "a planner that asks a model has no state to ask from")
        state = view.state
        return fit_context(
            view.context,
            lambda context, tokens: _build_prompt(view._replace(context=context), state, tokens),
            self._prompt_tokens(view),
        )

    def _prompt_tokens(self, view: JudgmentView) -> int:
        """Return the tokens for the messages of a prompt; tools of the request and a repair need the rest."""
        tools = sum(ESTIMATE.count(compact(tool).decode()) for tool in self._request_tools(view))
        return max(0, view.room - tools - _repair_tokens(view.room))

    def _request_tools(self, view: JudgmentView) -> tuple[Json, ...]:
        """Return the tools for the request, or none for a model that does not take tools in a
        request.
        """
        if "tools" not in self._info.features:
            return ()
        return tuple(tool.to_payload() for tool in list_tools(view))


def _build_prompt(view: JudgmentView, state: AgentState, max_tokens: int) -> Prompt:
    return build_reasoning_prompt(
        state,
        view.context.payload,
        tuple(list_tools(view)),
        state.execution.mode,
        view.notices,
        max_tokens=max_tokens,
    )


def _repair_tokens(max_tokens: int) -> int:
    """Return the tokens that a prompt leaves for the problems of an unusable reply."""
    return min(REPAIR_TOKENS, max_tokens // 8)


_FINISHED: Final = {
    "length": "; it was cut off at its limit, `tokens.output` of the budget",
    "filtered": "; the provider withheld it or a part of it",
}
"""The explanation of a fault by the end of the answer."""


class _ModelQuestion(NamedTuple):
    """One question to a model: the request, and the problems of the replies so far."""

    state: AgentState
    now: str
    prompt: Prompt
    request: ModelRequest
    repair_room: int
    problems: tuple[ReplyProblem, ...] = ()

    def take(self, answer: ModelReply) -> JudgedCandidate | Question:
        """Return the candidate of a reply, or the request for a repair."""
        reply = _read_reply(answer, CALLS[self.state.execution.mode])
        if isinstance(reply, Reply):
            updated = update_from_reasoning(self.state, reply, self.now)
            return JudgedCandidate(candidate_from_reply(reply), updated.state, updated.notes)
        after = self._replace(problems=(*self.problems, reply))
        if len(after.problems) > REPAIRS:
            notes = tuple(note(each.code, each.pointer, each.message) for each in after.problems)
            why = _describe_problem(reply, answer.finish)
            return JudgedCandidate(
                Candidate("model", fault=UNUSABLE, fault_detail=why), self.state, notes
            )
        messages = repair_prompt(self.prompt, after.problems, max_tokens=self.repair_room).messages
        return Question("repair", self.request._replace(messages=messages), after.take)


def _read_reply(answer: ModelReply, limit: int) -> Reply | ReplyProblem:
    if answer.tool_calls:
        return reply_of_tool_calls(answer.text, answer.tool_calls, limit)
    return parse_reply(answer.text, limit)


def _describe_problem(problem: ReplyProblem, finish: str) -> str:
    """Return a message about an unusable reply, with an explanation of how the reply ended."""
    place = f" at {problem.pointer}" if problem.pointer else ""
    return f"{problem.message}{place}{_FINISHED.get(finish, '')}"


def list_tools(view: JudgmentView) -> Iterator[ToolSpec]:
    """Yield the surfaced tools for a model."""
    for tool in view.context.compilation.surface.tools:
        capability = view.invocation.capabilities[tool.capability]
        yield _tool_spec(capability)._replace(name=tool.capability, awaits=tool.deferred)


def _tool_spec(capability: Capability) -> ToolSpec:
    schema = {**schema_of(capability.inputs), "additionalProperties": False}
    return ToolSpec(capability.id, capability.description, schema)


def count_tool(capability: Capability) -> int:
    """Return the most tokens of a tool in a request: as a line of the instructions, and as a tool of the request."""
    spec = _tool_spec(capability)
    line = ESTIMATE.count(render_tool(spec)) + 1
    return line + ESTIMATE.count(compact(spec.to_payload()).decode())


def candidate_from_reply(reply: Reply) -> Candidate:
    """Return the candidate of a reply: its calls, else its response. A call keeps its id if that is valid for a
    step.
    """
    if not reply.calls:
        return Candidate("model", response=reply.response)
    wanted = [ReplyCall.of(call) for call in reply.calls]
    ids = _usable_ids([call.id or "" for call in wanted])
    by_name = {call.id or id: id for call, id in zip(wanted, ids, strict=True)}
    calls = (
        ProposedCall(id, call.name, call.args, _find_dependencies(call, by_name))
        for call, id in zip(wanted, ids, strict=True)
    )
    return Candidate("model", calls=tuple(calls))


def _usable_ids(proposed_ids: Sequence[str]) -> list[str]:
    """Return an id for each call, unique in its turn."""
    ids: list[str] = []
    for number, id in enumerate(proposed_ids, 1):
        usable = _ID.fullmatch(id) and id not in ids
        ids.append(id if usable else f"call{number}")
    return (
        ids if len(set(ids)) == len(ids) else [f"call{number}" for number in range(1, len(ids) + 1)]
    )


def _find_dependencies(call: ReplyCall, by_name: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return the ids of the calls that a call waits for. An unknown name is kept, and refused later."""
    if call.depends_on is None:
        return None
    return tuple(by_name.get(name, name) for name in call.depends_on)
