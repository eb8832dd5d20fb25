"""From the endings of steps to the outcome of a run: one table, first that fits
(docs/reference/execution.md#outcome)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from cogcli.core.errors import FinalOutputValidationError, RuntimeErrorBase, StepExecutionError
from cogcli.core.step_path import StepPath
from cogcli.engine.step_ending import Ending
from cogcli.specs.fields import Fields, fit_values


class RunOutcome(NamedTuple):
    """How a run ended: a word of `state.json`, the error that explains it, the checked outputs."""

    status: str
    error: RuntimeErrorBase | None
    outputs: dict[str, Any]
    required_missing: tuple[str, ...] = ()


def outcome_of(
    endings: Mapping[int, Ending], outputs: Mapping[str, Any], declared: Fields, *, keep_going: bool
) -> RunOutcome:
    """The outcome of a run whose steps ended like this, in plan order; nobody aborted it."""
    by_status: dict[str, Ending] = {}
    for index in sorted(endings):
        by_status.setdefault(endings[index].status, endings[index])
    final, missing, problem = final_outputs(outputs, declared)
    pending, vetoed, failed = (by_status.get(word) for word in ("pending", "vetoed", "failed"))
    if pending and (keep_going or not (vetoed or failed)):
        return RunOutcome("pending", pending.error, final, missing)
    if vetoed:
        return RunOutcome("vetoed", vetoed.error, final, missing)
    if failed:
        status = "partial" if keep_going and "done" in by_status else "error"
        return RunOutcome(status, failed.error, final, missing)
    if any(ending.reason == "cancelled" for ending in endings.values()):
        # Gone on with, and the log says that something outside had cut it off.
        return RunOutcome("aborted", None, final)
    if problem is not None:
        return RunOutcome("error", problem, final, missing)
    return RunOutcome("ok", None, final)


def final_outputs(
    outputs: Mapping[str, Any], declared: Fields
) -> tuple[dict[str, Any], tuple[str, ...], RuntimeErrorBase | None]:
    """Outputs with declared ones first and defaults applied, the required ones missing, and what is wrong."""
    given = dict(outputs)
    kept, violations = fit_values(declared, given)
    final = kept | {name: value for name, value in given.items() if name not in declared}
    missing = tuple(v.place for v in violations if v.kind == "missing")
    if missing:
        names = ", ".join(f"`{name}`" for name in missing)
        return final, missing, FinalOutputValidationError("outputs.missing", f"no step gave {names}")
    if violations:
        text = "; ".join(v.message for v in violations)
        return final, (), FinalOutputValidationError("outputs.type", text)
    return final, (), None


def name_step(error: RuntimeErrorBase, step: str, skill_id: str) -> str:
    """An error's message with the step of this skill in front, where it arose or in whose nested skill it did."""
    return f"step `{step}`{': ' if error.skill_id == skill_id else ' > '}{error.message}"


def describe_outcome(outcome: RunOutcome, skill_id: str) -> RunOutcome:
    """The outcome of a root run as its user is told it.

    A failed step's error names all steps and skills on the way; code and place are those of the inner one. What safety
    says stands for itself, but for the way through nested skills.
    """
    error = outcome.error
    if error is None or error.step_id is None:
        return outcome
    message = name_step(error, StepPath(error.step_id).first(), skill_id)
    if outcome.status in ("error", "partial"):
        return outcome._replace(error=_as_step_error(error, message))
    if error.skill_id != skill_id:
        error.message = message
    return outcome


def _as_step_error(error: RuntimeErrorBase, message: str) -> StepExecutionError:
    told = StepExecutionError(error.code, message, hint=error.hint)
    told.__cause__ = error
    for name in (
        "skill_id",
        "run_id",
        "step_id",
        "capability_id",
        "binding_id",
        "service_id",
        "effect",
        "attempts",
    ):
        setattr(told, name, getattr(error, name))
    return told
