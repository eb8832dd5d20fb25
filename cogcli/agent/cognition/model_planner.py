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
from cogcli.agent.cognition.ends import UNUSABLE
from cogcli.agent.cognition.planner import Candidate, Judged, JudgmentView, ProposedCall, Question
from cogcli.agent.models.port import ModelInfo, ModelReply, ModelRequest
from cogcli.agent.modes import CALLS
from cogcli.agent.prompts import ToolSpec, build_reasoning_prompt, repair_prompt
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
from cogcli.base.errors import InternalError
from cogcli.base.named_tuple import NamedTuple
from cogcli.specs.field_schema import schema_of

REPAIRS: Final = 2
"""The maximal number of repairs in one judgment."""
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
        tools, mode = tuple(list_tools(view)), view.state.execution.mode
        prompt = build_reasoning_prompt(
            view.state, view.context.payload, tools, mode, view.notices, max_tokens=view.room
        )
        request = ModelRequest(
            prompt.messages,
            tuple(tool.to_payload() for tool in tools) if "tools" in self._info.features else (),
            REPLY_SCHEMA,
            int(view.invocation.limits["tokens.output"]),
            seed=view.seed,
        )
        return Question("judgment", request, _Answering(view.state, view.now, prompt, request).take)


_FINISHED: Final = {
    "length": "; it was cut off at its limit, `tokens.output` of the budget",
    "filtered": "; the provider withheld it or a part of it",
}
"""The explanation of a fault by the end of the answer."""


class _Answering(NamedTuple):
    """One judgment: its request, and the problems of the replies so far."""

    state: AgentState
    now: str
    prompt: Prompt
    request: ModelRequest
    problems: tuple[ReplyProblem, ...] = ()

    def take(self, answer: ModelReply) -> Judged | Question:
        """Return the candidate of a reply, or the request for a repair."""
        reply = _read(answer, CALLS[self.state.execution.mode])
        if isinstance(reply, Reply):
            updated = update_from_reasoning(self.state, reply, self.now)
            return Judged(candidate_from_reply(reply), updated.state, updated.notes)
        after = self._replace(problems=(*self.problems, reply))
        if len(after.problems) > REPAIRS:
            notes = tuple(note(each.code, each.pointer, each.message) for each in after.problems)
            why = _describe(reply, answer.finish)
            return Judged(Candidate("model", fault=UNUSABLE, fault_detail=why), self.state, notes)
        messages = repair_prompt(self.prompt, after.problems).messages
        return Question("repair", self.request._replace(messages=messages), after.take)


def _read(answer: ModelReply, limit: int) -> Reply | ReplyProblem:
    if answer.tool_calls:
        return reply_of_tool_calls(answer.text, answer.tool_calls, limit)
    return parse_reply(answer.text, limit)


def _describe(problem: ReplyProblem, finish: str) -> str:
    """Return the problem of a reply, explained by its end."""
    place = f" at {problem.pointer}" if problem.pointer else ""
    return f"{problem.message}{place}{_FINISHED.get(finish, '')}"


def list_tools(view: JudgmentView) -> Iterator[ToolSpec]:
    """Yield the surfaced tools for a model."""
    for tool in view.context.compilation.surface.tools:
        capability = view.invocation.capabilities[tool.capability]
        schema = {**schema_of(capability.inputs), "additionalProperties": False}
        yield ToolSpec(tool.capability, capability.description, schema, tool.deferred)


def candidate_from_reply(reply: Reply) -> Candidate:
    """Return the candidate of a reply: its calls, else its response. A call keeps its id if that is valid for a
    step.
    """
    if not reply.calls:
        return Candidate("model", response=reply.response)
    wanted = [ReplyCall.of(call) for call in reply.calls]
    ids = _ids([call.id or "" for call in wanted])
    by_name = {call.id or id: id for call, id in zip(wanted, ids, strict=True)}
    calls = (
        ProposedCall(id, call.name, call.args, _depends_on(call, by_name))
        for call, id in zip(wanted, ids, strict=True)
    )
    return Candidate("model", calls=tuple(calls))


def _ids(given: Sequence[str]) -> list[str]:
    """Return an id for each call, unique in its turn."""
    ids: list[str] = []
    for number, id in enumerate(given, 1):
        usable = _ID.fullmatch(id) and id not in ids
        ids.append(id if usable else f"call{number}")
    return (
        ids if len(set(ids)) == len(ids) else [f"call{number}" for number in range(1, len(ids) + 1)]
    )


def _depends_on(call: ReplyCall, by_name: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return the ids of the calls that a call waits for. An unknown name stays, and is refused."""
    if call.depends_on is None:
        return None
    return tuple(by_name.get(name, name) for name in call.depends_on)
