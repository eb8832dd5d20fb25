"""The ends of a loop: status of the decision, reason, error of the run (docs/reference/agent-run.md#next). Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from cogcli.agent.cognition.critic import REJECTED, Verification
from cogcli.agent.context.compiler import CompiledContext
from cogcli.base.errors import (
    AgentError,
    BudgetExceededError,
    PolicyDeniedError,
    RuntimeErrorBase,
)
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.call_records import error_from_payload
from cogcli.declarations.value_types import Json, Outcome
from cogcli.policy.budgets import budget_hint
from cogcli.policy.loop_guard import LoopTrip
from cogcli.policy.verdict import Verdict
from cogcli.run.engine.outcome import RunOutcome

_STATUS: Final[dict[str, Outcome]] = {"refused": "vetoed", "denied": "vetoed", "failed": "error"}
SKIPPED: Final = "action_skipped:read_only"
"""The reason of a read-only run whose calls were skipped."""
UNUSABLE: Final = "reply_unusable"
"""The fault of a candidate without a usable reply of a model, also after repairs."""

_REPEATED: Final = (
    "the model proposed the same call again, although it had the result; add details to the message"
)
_HINTS: Final = {
    "loop_guard": _REPEATED,
    "conflict": "retract the wrong value (cogcli knowledge import), then start a new run",
}
"""The hint for a denial, by the first word of its reason."""


class LoopEnding(NamedTuple):
    """The status of the decision, its reason, and the error of a run without success."""

    status: str
    reason: str
    error: RuntimeErrorBase | None = None

    def run_status(self, *, goal_met: bool) -> Outcome:
        """Return the status of the run."""
        return _STATUS.get(self.status) or ("ok" if goal_met else "partial")


def refusal_ending(
    reason: str, intents: Iterable[str] = (), why: str = "", say: str = ""
) -> LoopEnding:
    """Return the ending after a guardrail refused the request, or for an unknown intent. `intents`
    are the intents of the pack, `why` is the reason that the guardrail declares, `say` its text for the customer."""
    known = (
        f"its intents are: {', '.join(intents)}; name one with --intent"
        if reason == "unknown_intent"
        else ""
    )
    text = f"refused: {reason}: {why}" if why else f"refused: {reason}"
    error = PolicyDeniedError("policy.refused", text, hint=known)
    error.say = say
    return LoopEnding("refused", reason, error)


def denial_ending(reason: str, say: str = "") -> LoopEnding:
    """Return the ending after a rule, a permission, a budget or the loop guard denied a call. `say` is the text for the
    customer.
    """
    hint = _HINTS.get(reason.partition(":")[0], "")
    error: RuntimeErrorBase = PolicyDeniedError("policy.denied", f"denied: {reason}", hint=hint)
    if reason.startswith("budget_exceeded:"):
        key = reason.partition(":")[2]
        text = f"the budget `{key}` is used up"
        error = BudgetExceededError("budget.exceeded", text, hint=budget_hint(key, pack=True))
    error.say = say
    return LoopEnding("denied", reason, error)


def denied_call(uses: str, verdict: Verdict, hint: str, say: str) -> LoopEnding:
    """Return the ending after the policy denied a plan for this call. `say` is the text for the customer."""
    rule = f" by rule `{verdict.rule}`" if verdict.rule else ""
    code = "policy.refused" if verdict.outcome == "refuse" else "policy.denied"
    text = f"`{uses}`: {verdict.reason} ({verdict.stage}{rule}); no call of its plan was made"
    error = PolicyDeniedError(code, text, hint=hint)
    error.say = say
    return LoopEnding("denied", verdict.rule or verdict.reason, error)


class Denial(NamedTuple):
    """The reason why a call was denied: a rule, or the reason of the check. `say` is the text for the customer."""

    reason: str
    say: str = ""


def denied_goal(capability: str, denial: Denial) -> LoopEnding:
    """Return the ending of a run that answered after this call was denied, so that its goal is not met."""
    reason = denial.reason
    text = (
        f"`{capability}` was denied and not done: {reason}; the answer does not count as its goal"
    )
    hint = "cogcli policy explain names the rule; a pack may say what its goal is (`decisions[].success`)"
    error = PolicyDeniedError("policy.denied", text, hint=hint)
    error.say = denial.say
    return LoopEnding("denied", reason, error)


def overpacked_ending() -> LoopEnding:
    """Return the ending for a context that cannot contain the mandatory parts of every prompt."""
    text = "policy, tools and request do not fit into the context"
    hint = f"{budget_hint('tokens.context', pack=True)}; or shorten the texts of the pack"
    return LoopEnding(
        "failed", "context.overpacked", AgentError("context.overpacked", text, hint=hint)
    )


def unplanned_ending(reason: str, replans: int, detail: str = "") -> LoopEnding:
    """Return the ending after the last allowed replan. `detail` is the fault of the model's last reply."""
    if reason == UNUSABLE:
        last = f"; the last one: {detail}" if detail else ""
        text = f"no reply of the model could be used, nor after {replans} replans{last}"
        return LoopEnding("failed", reason, AgentError("agent.reply", text))
    text = f"no plan after {replans} replans: {reason}"
    return LoopEnding("failed", reason, AgentError("agent.replans", text))


def failing(last: Json) -> LoopEnding:
    """Return the ending after too many consecutive failed calls. `last` is the error of the last one."""
    return LoopEnding("failed", "agent.failing-calls", error_from_payload(last))


def external_ending(outcome: RunOutcome, signal: str | None) -> LoopEnding:
    """Return the ending of a run that a signal, `--abort`, a time limit or a bug ended."""
    error = outcome.error
    if outcome.status == "aborted":
        return LoopEnding("aborted", "signal" if (signal or "").startswith("SIG") else "closed")
    if isinstance(error, BudgetExceededError):
        return LoopEnding("denied", "budget_exceeded:wall_clock_ms", error)
    return LoopEnding("failed", error.code if error else "", error)


def denial_of(
    verification: Verification, redacted: Mapping[str, Denial], trip: LoopTrip | None
) -> Denial:
    """Return the reason why a plan is denied. For a redacted capability it is the reason of the redaction."""
    if trip is not None:
        return Denial(f"loop_guard:{trip.kind}")
    rejects = [fail for fail in verification.fails if fail.code in REJECTED]
    fail = (rejects or verification.fails)[0]
    if fail.code == "unknown_capability" and fail.detail in redacted:
        return redacted[fail.detail]
    return Denial(fail.reason)


def redactions_of(
    context: CompiledContext, verification: Verification, find_say: Callable[[str], str]
) -> dict[str, Denial]:
    """Return the capabilities of a plan that were kept from the model, each with the rule or the reason. `find_say`
    returns the text for the customer for the reason of a check.
    """
    named = {fail.detail for fail in verification.fails if fail.code == "unknown_capability"}
    return {
        each.capability: Denial(each.rule_id or each.reason, find_say(each.reason))
        for each in context.compilation.surface.redactions
        if each.capability in named
    }
