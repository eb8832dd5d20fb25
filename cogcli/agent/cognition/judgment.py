"""Judgment: the candidate of a turn, with the model calls for it (docs/reference/agent-run.md#judgment).

Each call is charged to the budget before it leaves. A context that is too long for the model is compiled once more
with fewer tokens; any other failure of the model ends the run. The model summarizes messages of the conversation that
have no room, in one call; without a usable answer their first sentences are shown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cogcli.agent.cognition.ends import LoopEnding, overpacked_ending
from cogcli.agent.cognition.model_calls import tokens_of
from cogcli.agent.cognition.planner import Candidate, JudgedCandidate, JudgmentView, Question
from cogcli.agent.cognition.progress import Progress
from cogcli.agent.context.compiler import CompiledContext
from cogcli.agent.job_prompts import ANSWER_TOKENS, build_summary_prompt, parse_summary
from cogcli.agent.models.port import ModelError, ModelReply, ModelRequest
from cogcli.base.errors import InternalError
from cogcli.base.named_tuple import NamedTuple
from cogcli.episode.decision import TOKENS
from cogcli.policy.budgets import BudgetOverrun
from cogcli.policy.prices import COST
from cogcli.run.engine.effects import Effects

SHORTER: Final = 0.8
"""The part of its tokens for a context after a model refused it as too long."""


class RequestOutcome(NamedTuple):
    """The outcome of a request to the model: the reply, its error, or the budget that forbids it."""

    reply: ModelReply | None = None
    error: ModelError | None = None
    overrun: BudgetOverrun | None = None


def judge(
    loop: Progress, view: JudgmentView, recompile: Callable[[float], CompiledContext]
) -> Effects:
    """Return the candidate of a turn, or None if the run ends instead."""
    proposed: Candidate | JudgedCandidate | Question = loop.planner.propose(view)
    shortened = False
    while isinstance(proposed, Question):
        outcome = yield from _request_model(loop, proposed.purpose, proposed.request)
        if outcome.overrun is not None:
            loop.end_by_budget(outcome.overrun)
            return None
        if outcome.error is None:
            proposed = proposed.take(outcome.reply)
            continue
        if shortened or outcome.error.kind != "context_too_long":
            loop.ending = LoopEnding("failed", outcome.error.code, outcome.error.to_error())
            return None
        shortened = True
        shorter = view._replace(context=recompile(SHORTER), room=int(view.room * SHORTER))
        if shorter.context.is_overpacked:
            loop.ending = overpacked_ending()
            return None
        proposed = loop.planner.propose(shorter)
    return _apply_judgment(loop, proposed)


def summarize_conversation(loop: Progress) -> Effects:
    """Let the model summarize the messages that do not fit into the context. Return whether a new summary exists."""
    left = loop.invocation.conversation.left
    if loop.reasoning is None or loop.turn > 1 or not left:
        return False
    maximum = min(ANSWER_TOKENS, int(loop.invocation.limits["tokens.output"]))
    request = ModelRequest(
        build_summary_prompt(left).messages,
        max_tokens=maximum,
        seed=loop.root.first.payload["seed"],
    )
    outcome = yield from _request_model(loop, "summary", request)
    summary = None if outcome.reply is None else parse_summary(outcome.reply.text)
    if summary is None:
        return False
    loop.invocation = loop.invocation._replace(summary=summary)
    return True


def _apply_judgment(loop: Progress, candidate: Candidate | JudgedCandidate) -> Candidate:
    """Apply a judgment to the state of the agent, and return the candidate."""
    if isinstance(candidate, Candidate):
        return candidate
    if loop.reasoning is not None:
        loop.reasoning.take(candidate, loop.record)
    return candidate.candidate


def _request_model(loop: Progress, purpose: str, request: ModelRequest) -> Effects:
    """Send a request and return its `RequestOutcome`."""
    if loop.reasoning is None:
        raise InternalError("internal", "a planner without a model asks one")
    prompt, prices = tokens_of(request), loop.reasoning.prices
    needs = {TOKENS: prompt + request.max_tokens}
    if prices is not None:
        needs[COST] = prices.cost(prompt, request.max_tokens)
    reserved = loop.policy.budgets.reserve(needs)
    if reserved.overrun is not None:
        return RequestOutcome(overrun=reserved.overrun)
    answered = yield from loop.reasoning.calls.ask(loop.turn, purpose, request)
    spent = {TOKENS: answered.tokens}
    if prices is not None:
        spent[COST] = prices.cost(answered.usage.tokens_in, answered.usage.tokens_out)
    reserved.commit(spent)
    return RequestOutcome(answered.outcome.reply, answered.outcome.error)
