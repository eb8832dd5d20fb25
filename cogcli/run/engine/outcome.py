"""The endings of steps, and the outcome of a run that follows from them.

The first matching row of one table decides (docs/reference/execution.md#outcome).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from cogcli.base.errors import (
    PENDING,
    VETOED,
    FinalOutputValidationError,
    RuntimeErrorBase,
    StepExecutionError,
)
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.step_path import StepPath
from cogcli.declarations.field_spec import Fields
from cogcli.declarations.value_types import Outcome
from cogcli.specs.fields import Violation, fit_values

LEFT_OUT: Final = "left-out"
"""Skip reason of a foreach item that a person skipped."""


class CallSkipped(Exception):
    """Raised instead of making a call that a gate or a person skips. The message is the reason."""


class Ending(NamedTuple):
    """The end of a step: done, failed, skipped, vetoed or pending. `error` is set for failed, vetoed and pending, and
    for a loop that is done with collected errors."""

    status: str
    reason: str | None = None
    error: RuntimeErrorBase | None = None


def status_of(error: RuntimeErrorBase) -> str:
    """Return the status of a step that ends with this error."""
    return {PENDING: "pending", VETOED: "vetoed"}.get(error.exit_code, "failed")


RELEASING: Final = frozenset(("condition", "degraded"))
"""Skip reasons after which dependents still run."""


class RunOutcome(NamedTuple):
    """The end of a run: its status in `state.json`, its error, and the checked outputs."""

    status: Outcome
    error: RuntimeErrorBase | None
    outputs: dict[str, Any]
    required_missing: tuple[str, ...] = ()
    contradictions: tuple[str, ...] = ()
    """Messages about outputs of a wrong type that a lenient root tolerates."""


def decide_outcome(
    endings: Mapping[int, Ending], outputs: Mapping[str, Any], declared: Fields, *, keep_going: bool,
    lenient: bool = False,
) -> RunOutcome:  # fmt: skip
    """Return the outcome of a run, given the endings of its steps by position in plan order.

    `final_outputs` checks `outputs` against `declared`. In a `lenient` skill a wrong output type alone does not fail
    the run.
    """
    final, missing, problem = final_outputs(outputs, declared, lenient=lenient)
    decided = _decide_by_endings(endings, keep_going)
    if decided is not None:
        status, error = decided
        return RunOutcome(status, error, final, () if status == "aborted" else missing)
    if problem is None:
        return RunOutcome("ok", None, final)
    if lenient and problem.code == "outputs.type":
        return RunOutcome("ok", None, final, contradictions=(problem.message,))
    return RunOutcome("error", problem, final, missing)


def _decide_by_endings(
    endings: Mapping[int, Ending], keep_going: bool
) -> tuple[Outcome, RuntimeErrorBase | None] | None:
    """Return the status and the error that the endings of the steps decide, by the first row that matches.

    Return None if no ending decides: then the outputs do.
    """
    in_order = [endings[index] for index in sorted(endings)]
    pending, vetoed, failed, done = (
        next((each for each in in_order if each.status == status), None)
        for status in ("pending", "vetoed", "failed", "done")
    )
    if pending and (keep_going or not (vetoed or failed)):
        return "pending", pending.error
    late = _find_by_reason(endings, "run.timeout")
    if late is not None:  # resumed after its time: it ends like a run that its limit cuts off
        return "error", late.error
    if vetoed:
        return "vetoed", vetoed.error
    if failed:
        return "partial" if keep_going and done else "error", failed.error
    if _find_by_reason(endings, "cancelled"):
        # The log of this resumed run has a step that a signal cancelled.
        return "aborted", None
    return _find_collected(endings)


def _find_by_reason(endings: Mapping[int, Ending], reason: str) -> Ending | None:
    return next((ending for ending in endings.values() if ending.reason == reason), None)


def _find_collected(
    endings: Mapping[int, Ending],
) -> tuple[Outcome, RuntimeErrorBase | None] | None:
    """Return `partial` and the error of the first completed step that collected errors, otherwise None."""
    collected = next(filter(_has_collected, endings.values()), None)
    return None if collected is None else ("partial", collected.error)


def _has_collected(ending: Ending) -> bool:
    """Return whether a completed step collected errors of its items."""
    return ending.status == "done" and ending.error is not None


def _accept_nulls(
    given: dict[str, Any], declared: Fields, kept: dict[str, Any], violations: list[Violation]
) -> tuple[dict[str, Any], list[Violation]]:
    """Return the declared outputs with their explicit nulls, and the violations of the others."""
    nulls = [name for name in declared if name in given and name not in kept]
    values = kept | dict.fromkeys(nulls)
    in_order = {name: values[name] for name in declared if name in values}
    return in_order, [each for each in violations if each.place not in nulls]


def final_outputs(
    outputs: Mapping[str, Any], declared: Fields, *, lenient: bool = False
) -> tuple[dict[str, Any], tuple[str, ...], RuntimeErrorBase | None]:
    """Return the outputs with defaults applied, the missing required names, and the error or None. Declared outputs
    come first.

    In a `lenient` skill an explicit null does not make an output missing.
    """
    given = dict(outputs)
    kept, violations = fit_values(declared, given)
    if lenient:
        kept, violations = _accept_nulls(given, declared, kept, violations)
    final = kept | {name: value for name, value in given.items() if name not in declared}
    missing = tuple(v.place for v in violations if v.kind == "missing")
    if missing:
        names = ", ".join(f"`{name}`" for name in missing)
        error = FinalOutputValidationError("outputs.missing", f"no step gave {names}")
        return final, missing, error
    if violations:
        text = "; ".join(v.message for v in violations)
        return final, (), FinalOutputValidationError("outputs.type", text)
    return final, (), None


def name_step(error: RuntimeErrorBase, step: str, skill_id: str) -> str:
    """Return the error's message, prefixed with the step of this skill in which it arose. A step may contain a nested
    skill.
    """
    return f"step `{step}`{': ' if error.skill_id == skill_id else ' > '}{error.message}"


def describe_outcome(outcome: RunOutcome, skill_id: str) -> RunOutcome:
    """Return the outcome of a root run with the error that users see.

    The error of a failed step becomes a StepExecutionError that names all steps and skills on the path. It keeps the
    code and the place of the inner error. A veto or a wait keeps its error, and only the path through nested skills is
    added.
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
    outer = StepExecutionError(error.code, message, hint=error.hint)
    outer.__cause__ = error
    for (
        name
    ) in "skill_id run_id step_id capability_id binding_id service_id effect attempts".split():
        setattr(outer, name, getattr(error, name))
    return outer
