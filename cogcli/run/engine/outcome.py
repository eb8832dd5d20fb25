"""How steps end, and from that the outcome of their run: one table, the first row that fits
(docs/reference/execution.md#outcome)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from cogcli.base.errors import (
    PENDING,
    VETOED,
    FinalOutputValidationError,
    RuntimeErrorBase,
    StepExecutionError,
)
from cogcli.base.step_path import StepPath
from cogcli.declarations.field_spec import Fields
from cogcli.declarations.value_types import Outcome
from cogcli.specs.fields import fit_values

LEFT_OUT: Final = "left-out"
"""Reason of an item of a foreach that a person left out."""


class Degraded(Exception):
    """Raised instead of a call that a gate or a person leaves out; the message is their reason."""


class Ending(NamedTuple):
    """How a step ended: done, failed, skipped, vetoed or pending; `error` for failed, vetoed and pending."""

    status: str
    reason: str | None = None
    error: RuntimeErrorBase | None = None


def status_of(error: RuntimeErrorBase) -> str:
    """The status of a step that ends with this error."""
    return {PENDING: "pending", VETOED: "vetoed"}.get(error.exit_code, "failed")


RELEASING: Final = frozenset(("condition", "degraded"))
"""Reasons of a skip after which dependents run."""


class RunOutcome(NamedTuple):
    """How a run ended: its status in `state.json`, the error behind it, the checked outputs."""

    status: Outcome
    error: RuntimeErrorBase | None
    outputs: dict[str, Any]
    required_missing: tuple[str, ...] = ()
    contradictions: tuple[str, ...] = ()
    """What of the outputs is not of its declared type, where a lenient root declares it."""


def outcome_of(
    endings: Mapping[int, Ending], outputs: Mapping[str, Any], declared: Fields, *, keep_going: bool,
    lenient: bool = False,
) -> RunOutcome:  # fmt: skip
    """The outcome of a run by the endings of its steps, by position in plan order. `outputs` are checked against
    `declared`, as `final_outputs` does; of a `lenient` skill their types excuse nothing but themselves."""
    by_status: dict[str, Ending] = {}
    for index in sorted(endings):
        by_status.setdefault(endings[index].status, endings[index])
    final, missing, problem = final_outputs(outputs, declared, lenient=lenient)
    pending, vetoed, failed = (by_status.get(word) for word in ("pending", "vetoed", "failed"))
    if pending and (keep_going or not (vetoed or failed)):
        return RunOutcome("pending", pending.error, final, missing)
    late = next((ending for ending in endings.values() if ending.reason == "run.timeout"), None)
    if late:  # resumed after its time: it ends as a run does that its limit cuts off, whatever else is done
        return RunOutcome("error", late.error, final, missing)
    if vetoed:
        return RunOutcome("vetoed", vetoed.error, final, missing)
    if failed:
        status: Outcome = "partial" if keep_going and "done" in by_status else "error"
        return RunOutcome(status, failed.error, final, missing)
    if any(ending.reason == "cancelled" for ending in endings.values()):
        # A resumed run whose log has a step that a signal cancelled.
        return RunOutcome("aborted", None, final)
    if problem is not None and lenient and problem.code == "outputs.type":
        return RunOutcome("ok", None, final, contradictions=(problem.message,))
    if problem is not None:
        return RunOutcome("error", problem, final, missing)
    return RunOutcome("ok", None, final)


def final_outputs(
    outputs: Mapping[str, Any], declared: Fields, *, lenient: bool = False
) -> tuple[dict[str, Any], tuple[str, ...], RuntimeErrorBase | None]:
    """Outputs with declared ones first and defaults applied, the required ones missing, and what is wrong. In a
    `lenient` skill null is not missing where it was written."""
    given = dict(outputs)
    kept, violations = fit_values(declared, given)
    if lenient:
        nulls = [name for name in declared if name in given and name not in kept]
        violations = [v for v in violations if v.place not in nulls]
        written = kept | dict.fromkeys(nulls)
        kept = {name: written[name] for name in declared if name in written}
    final = kept | {name: value for name, value in given.items() if name not in declared}
    missing = tuple(v.place for v in violations if v.kind == "missing")
    if missing:
        names = ", ".join(f"`{name}`" for name in missing)
        return (
            final,
            missing,
            FinalOutputValidationError("outputs.missing", f"no step gave {names}"),
        )
    if violations:
        text = "; ".join(v.message for v in violations)
        return final, (), FinalOutputValidationError("outputs.type", text)
    return final, (), None


def name_step(error: RuntimeErrorBase, step: str, skill_id: str) -> str:
    """An error's message, prefixed with the step of this skill in which, or in whose nested skill, it arose."""
    return f"step `{step}`{': ' if error.skill_id == skill_id else ' > '}{error.message}"


def describe_outcome(outcome: RunOutcome, skill_id: str) -> RunOutcome:
    """The outcome of a root run with the error as users see it.

    A failed step's error becomes a StepExecutionError that names all steps and skills on the way, with the code and
    place of the inner one. A veto or a wait keeps its error; only the path through nested skills is added.
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
