"""Judgment: the candidate of a turn, with what a model has to be asked for it (docs/reference/agent-run.md#judgment).

Every question is charged to the budget before it leaves. A context that is too long for the model is compiled once more
with fewer tokens; any other failure of the model ends the run. What of a conversation has no room is summed up by the
model, asked once; without an answer that can be used it is shown by its first sentences.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cogcli.agent.cognition.ends import LoopEnding
from cogcli.agent.cognition.model_calls import tokens_of
from cogcli.agent.cognition.planner import Candidate, Judged, JudgmentView, Question
from cogcli.agent.cognition.progress import Progress
from cogcli.agent.context.compiler import CompiledContext
from cogcli.agent.job_prompts import ANSWER_TOKENS, build_summary_prompt, parse_summary
from cogcli.agent.models.port import ModelError, ModelReply, ModelRequest
from cogcli.base.errors import InternalError
from cogcli.episode.decision import TOKENS
from cogcli.policy.budgets import Exceeded
from cogcli.run.engine.tasks import Effects

SHORTER: Final = 0.8
"""The part of its tokens that a context is compiled with after a model found it too long."""


def judge(
    loop: Progress, view: JudgmentView, recompile: Callable[[float], CompiledContext]
) -> Effects:
    """The candidate of a turn; None where the run ends instead."""
    proposed: Candidate | Judged | Question = loop.planner.propose(view)
    shortened = False
    while isinstance(proposed, Question):
        outcome = yield from _ask(loop, proposed.purpose, proposed.request)
        if isinstance(outcome, ModelReply):
            proposed = proposed.take(outcome)
        elif isinstance(outcome, Exceeded):
            loop.exceed(outcome)
            return None
        elif outcome.kind == "context_too_long" and not shortened:
            shortened = True
            room = int(view.room * SHORTER)
            proposed = loop.planner.propose(view._replace(context=recompile(SHORTER), room=room))
        else:
            loop.ending = LoopEnding("failed", outcome.code, outcome.to_error())
            return None
    return _keep_state(loop, proposed)


def sum_up(loop: Progress) -> Effects:
    """Ask the model for the summary of the messages that have no room in the context; whether there is one now."""
    left = loop.given.conversation.left
    if loop.reasoning is None or loop.turn > 1 or not left:
        return False
    most = min(ANSWER_TOKENS, int(loop.given.limits["tokens.output"]))
    request = ModelRequest(
        build_summary_prompt(left).messages, max_tokens=most, seed=loop.root.first.payload["seed"]
    )
    outcome = yield from _ask(loop, "summary", request)
    summary = parse_summary(outcome.text) if isinstance(outcome, ModelReply) else None
    if not isinstance(summary, str):
        return False
    loop.given = loop.given._replace(summary=summary)
    return True


def _keep_state(loop: Progress, proposed: Candidate | Judged) -> Candidate:
    """The candidate; the state that it came of is the agent's from here on."""
    if isinstance(proposed, Candidate):
        return proposed
    if loop.reasoning is not None:
        loop.reasoning.take(proposed, loop.record)
    return proposed.candidate


def _ask(loop: Progress, purpose: str, request: ModelRequest) -> Effects:
    """The model's reply or error; Exceeded where no budget is left for the question."""
    if loop.reasoning is None:
        raise InternalError("internal", "a planner without a model asks one")
    needs = tokens_of(request) + request.max_tokens
    reserved = loop.policy.budgets.reserve({TOKENS: needs})
    if isinstance(reserved, Exceeded):
        return reserved
    asked = yield from loop.reasoning.calls.ask(loop.turn, purpose, request)
    reserved.commit({TOKENS: asked.tokens})
    outcome: ModelReply | ModelError = asked.outcome
    return outcome
