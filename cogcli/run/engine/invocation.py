"""One invocation of a step's target: choose the target, resolve the input, call, and apply the step's `retry`."""

from __future__ import annotations

from typing import Any, Final

from cogcli.base.errors import ExpressionError, InputMappingError, InternalError, RuntimeErrorBase
from cogcli.base.jsonvalue import copy_writable
from cogcli.declarations.skill_spec import Retry
from cogcli.run.engine.call import continue_call, governed_call
from cogcli.run.engine.context import Run
from cogcli.run.engine.effects import Cancelled, Effects
from cogcli.run.engine.nested import run_nested
from cogcli.run.engine.plan import PlannedStep, StepTarget
from cogcli.run.engine.policy import may_repeat
from cogcli.run.engine.step_recorder import StepRecord
from cogcli.specs.fields import Violation, fit_values
from cogcli.state.expressions import case_text, value_of
from cogcli.state.inputs import Scope, is_missing_reference, resolve_input

_MAX_WAIT: Final = 60.0
_ONCE: Final = Retry(max_attempts=1)


def invoke(planned: PlannedStep, record: StepRecord, scope: Scope) -> Effects:
    """Call the step's target with the input resolved in `scope`, and return its output.

    Raise RuntimeErrorBase, CallSkipped or Cancelled.
    """
    target = _choose_target(planned, record, scope)
    values = resolve_input(planned.input, scope, record.reads)
    return (yield from call_target(planned, record, target, values))


def call_target(
    planned: PlannedStep, record: StepRecord, target: StepTarget, values: dict[str, Any]
) -> Effects:
    """Call a target with the values that it declares as inputs, and return its output. Raise the same errors as
    `invoke`.
    """
    kept, violations = fit_values(target.inputs, drop_absent(record.run, planned, target, values))
    if record.run.is_lenient:
        violations = [each for each in violations if not _is_excused(planned, record, target, each)]
    if violations:
        raise InputMappingError("input.contract", "; ".join(v.message for v in violations))
    record.set_target(target.uses, target.capability, kept)
    return (yield from call_repeatedly(planned, record, target, kept))


def call_repeatedly(
    planned: PlannedStep, record: StepRecord, target: StepTarget, values: dict[str, Any],
    failure: RuntimeErrorBase | None = None,
) -> Effects:  # fmt: skip
    """Call a target with its checked input, again while the step's `retry` allows it, and return its output. With
    `failure` the first attempt was made already. Raises the same errors as `invoke`.
    """
    retry = planned.step.config.retry or _ONCE
    attempt = 1
    while True:
        try:
            return (yield from _call_once(record, target, copy_writable(values), failure))
        except RuntimeErrorBase as error:
            if attempt >= retry.max_attempts or not _may_retry_step(record, error):
                if attempt > 1:
                    error.message = f"failed after {attempt} attempts: {error.message}"
                raise
            failed, failure = error, None
        wait = min(retry.backoff_seconds * retry.backoff_multiplier ** (attempt - 1), _MAX_WAIT)
        record.schedule_repeat(wait, failed)
        yield from record.wait(wait)
        attempt += 1


def _call_once(
    record: StepRecord, target: StepTarget, values: dict[str, Any], failure: RuntimeErrorBase | None
) -> Effects:
    """Return the effects of one governed call or nested run, or of the rest of a call whose first attempt failed."""
    if failure is not None and target.capability is not None:
        return continue_call(record, target.capability, values, failure)
    if target.capability is not None:
        return governed_call(record, target.capability, values)
    if record.run.engine.stopping:
        raise Cancelled(external=True)
    return run_nested(record, target.skill_id, values)


def _is_excused(
    planned: PlannedStep, record: StepRecord, target: StepTarget, found: Violation
) -> bool:
    """Return whether a value may differ in type from the target's declaration, because the run started with that
    contradiction.
    """
    capability = target.capability
    called = f"capability:{capability.id}" if capability else f"skill:{target.skill_id}"
    contradictions, skill = record.run.engine.contradictions, record.run.plan.skill.id
    return found.kind == "type" and contradictions.excuses(
        skill, planned.step.id, found.place, called
    )


def drop_absent(
    run: Run, planned: PlannedStep, target: StepTarget, values: dict[str, Any]
) -> dict[str, Any]:
    """Return the values without optional `any` inputs whose reference is absent. For `any`, null would be a value."""
    if run.engine.passes_null or None not in values.values():
        return values
    left_out = [
        name
        for name, field in target.inputs.items()
        if field.type == "any" and not field.required and values.get(name, name) is None
        if is_missing_reference(planned.step.input.get(name), run.state)
    ]
    return (
        {name: value for name, value in values.items() if name not in left_out}
        if left_out
        else values
    )


def _choose_target(planned: PlannedStep, record: StepRecord, scope: Scope) -> StepTarget:
    """Return the target that the step calls in this scope. Raise ExpressionError `router.no-case`."""
    router = planned.step.config.router
    if router is not None:
        on = value_of(
            planned.expressions.router,
            scope,
            record.run.plan.skill.inputs,
            record.expression_reads,
            missing_is_null=router.default is not None,
        )
        case = case_text(on)
        if case in router.cases:
            return planned.targets[case]
        if router.default is None:
            known = ", ".join(f"`{name}`" for name in router.cases)
            raise ExpressionError("router.no-case", f"no case for `{case}`, cases are {known}")
    if planned.target is None:
        raise InternalError("internal", "a step without a target was called")
    return planned.target


def _may_retry_step(record: StepRecord, error: RuntimeErrorBase) -> bool:
    """Return whether the step may retry after this error.

    It may not if a call that must not be repeated may have been sent. It may not after its own time limit, since that
    limit covers all attempts. An error with a `step_id` comes from the limit of an inner step.
    """
    own_limit = error.code == "step.timeout" and error.step_id is None
    return error.retryable and not own_limit and not record.effect_left and may_repeat(record)
