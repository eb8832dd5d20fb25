"""Judgment: the candidate of a turn, with what a model has to be asked for it (docs/reference/agent-run.md#judgment).

Every question is charged to the budget before it leaves. A context that is too long for the model is compiled once more
with fewer tokens; any other failure of the model ends the run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cogcli.cognition.ends import LoopEnding
from cogcli.cognition.model_calls import tokens_of
from cogcli.cognition.planner import Candidate, Judged, JudgmentView, Question
from cogcli.cognition.progress import Progress
from cogcli.context.compiler import CompiledContext
from cogcli.core.errors import InternalError
from cogcli.engine.tasks import Effects
from cogcli.episode.decision import TOKENS
from cogcli.governance.budgets import Exceeded
from cogcli.models.port import ModelError, ModelReply

SHORTER: Final = 0.8
"""The part of its tokens that a context is compiled with after a model found it too long."""


def judge(loop: Progress, view: JudgmentView, recompile: Callable[[float], CompiledContext]) -> Effects:
    """The candidate of a turn; None where the run ends instead."""
    proposed: Candidate | Judged | Question = loop.planner.propose(view)
    shortened = False
    while isinstance(proposed, Question):
        outcome = yield from _ask(loop, proposed)
        if isinstance(outcome, ModelReply):
            proposed = proposed.take(outcome)
        elif outcome is not None and outcome.kind == "context_too_long" and not shortened:
            shortened = True
            room = int(view.room * SHORTER)
            proposed = loop.planner.propose(view._replace(context=recompile(SHORTER), room=room))
        else:
            if outcome is not None:
                loop.ending = LoopEnding("failed", outcome.code, outcome.to_error())
            return None
    return _keep_state(loop, proposed)


def _keep_state(loop: Progress, proposed: Candidate | Judged) -> Candidate:
    """The candidate; the state that it came of is the agent's from here on."""
    if isinstance(proposed, Candidate):
        return proposed
    if loop.reasoning is not None:
        loop.reasoning.take(proposed, loop.record)
    return proposed.candidate


def _ask(loop: Progress, question: Question) -> Effects:
    """The model's reply or error; None where no budget is left for the question."""
    if loop.reasoning is None:
        raise InternalError("internal", "a planner without a model asks one")
    needs = tokens_of(question.request) + question.request.max_tokens
    reserved = loop.policy.budgets.reserve({TOKENS: needs})
    if isinstance(reserved, Exceeded):
        loop.exceed(reserved)
        return None
    asked = yield from loop.reasoning.calls.ask(loop.turn, question.purpose, question.request)
    reserved.commit({TOKENS: asked.tokens})
    outcome: ModelReply | ModelError = asked.outcome
    return outcome
