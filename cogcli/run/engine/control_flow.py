"""Control flow of one step (docs/reference/execution.md#control-flow): once, per item, per round, or on several targets
at once.

1. foreach: one invocation per item, in item order or `max_parallel` at a time. The first failing item fails the step;
   with `on_error: collect` it is null, and its error is collected.
2. while: the first round always runs. The next round and the condition see a round's writes at once, other steps when
   the step is done. At the round limit the step is done, not failed.
3. scatter: all targets get the same input. The merge is collect, concat_lists or the first success, which ends the step
   at once.
4. Each invocation has its own closing event, `step#n` or `step#name`. The step's closing event sums them up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeGuard

from cogcli.base.calls import Answer
from cogcli.base.errors import (
    PENDING,
    VETOED,
    EffectInDoubtError,
    ExpressionError,
    InternalError,
    RuntimeErrorBase,
    RunTimeoutError,
)
from cogcli.base.jsonvalue import copy_writable, kind_of
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.step_path import StepPath
from cogcli.declarations.skill_spec import Foreach, Scatter, While
from cogcli.run.engine.doubt import SkippedByPerson
from cogcli.run.engine.effects import AwaitedCall, Cancel, Cancelled, Effects, Next, Spawn, Task
from cogcli.run.engine.invocation import call_target, invoke
from cogcli.run.engine.outcome import LEFT_OUT, CallSkipped, status_of
from cogcli.run.engine.plain_part import PlainPart, find_quick_call
from cogcli.run.engine.plan import ERRORS, EXHAUSTED, ITERATIONS, PlannedStep
from cogcli.run.engine.policy import learn_reused_facts
from cogcli.run.engine.step_recorder import StepRecord
from cogcli.run.engine.step_times import ClockReading
from cogcli.state.execution import fork
from cogcli.state.expressions import holds, value_of
from cogcli.state.inputs import Scope, resolve_input
from cogcli.state.outputs import LoopWrites, writes_of
from cogcli.state.reducer import ReusedResult, Write, count_round, write_value

NONE_DONE: Final[Mapping[int, Any]] = MappingProxyType({})


class CompletedOutput(NamedTuple):
    """The output of a completed step. `writes` is None unless the loop has already computed them.

    `producer_id` is the id of the one capability that produced the output. It is empty for a nested skill and None for
    several capabilities. If the output replaces a call, `skipped` is `condition` or `degraded`, and `detail` is the
    reason of the gate or person.
    """

    output: dict[str, Any]
    writes: list[Write] | None = None
    producer_id: str | None = None
    skipped: str = ""
    detail: str = ""


def run_controlled(planned: PlannedStep, record: StepRecord) -> Effects:
    """Return the CompletedOutput of a step whose condition is true. Raise RuntimeErrorBase or CallSkipped."""
    config = planned.step.config
    if config.foreach is not None:
        return CompletedOutput((yield from _run_items(planned, record, config.foreach)))
    if config.while_ is not None:
        return (yield from _run_rounds(planned, record, config.while_))
    if config.scatter is not None:
        return (yield from _run_targets(planned, record, config.scatter))
    output = yield from invoke(planned, record, record.run.scope)
    return CompletedOutput(output, producer_id=record.called_id)


# -- foreach ----------------------------------------------------------------------------------------------------------


def _run_items(planned: PlannedStep, record: StepRecord, foreach: Foreach) -> Effects:
    run = record.run
    scope, inputs = run.scope, run.plan.skill.inputs
    items = value_of(planned.expressions.foreach, scope, inputs, record.expression_reads)
    if not isinstance(items, list):
        raise ExpressionError(
            "foreach.items", f"`foreach.items` gave {kind_of(items)}, expected a list"
        )
    if len(items) > foreach.max_items:
        raise ExpressionError(
            "foreach.limit", f"{len(items)} items, at most {foreach.max_items} are allowed"
        )
    record.begin(items=len(items))

    def scope_of(index: int) -> Scope:
        loop = {foreach.as_name: items[index]}
        if foreach.index_name:
            loop[foreach.index_name] = index
        return Scope(run.state, loop)

    def spawn_job(index: int, started: ClockReading | None = None) -> Spawn:
        inner = record.new_part(planned, index, started)
        taken = run.engine.taken_over.get(inner.path)
        steps = (
            _reuse_result(inner, planned.step.uses, taken)
            if taken
            else invoke(planned, inner, scope_of(index))
        )
        return _spawn_part(planned, record, inner, steps, label=index, item=True)

    done = {
        index: output
        for index in (range(len(items)) if run.engine.dispatcher is not None else ())
        if (output := _folded_output(planned, record, index)) is not None
    }
    if foreach.collects:
        failed: dict[int, RuntimeErrorBase] = {}
        count, most = len(items), foreach.max_parallel
        results = yield from _run_together(count, spawn_job, most, done, failed)
        return {**_join_items(planned, results), ERRORS: _list_errors(failed)}
    if foreach.max_parallel > 1:
        results = yield from _run_together(len(items), spawn_job, foreach.max_parallel, done)
    else:
        results = []
        for index in range(len(items)):
            output = done.get(index)
            if output is None:
                scope = scope_of(index)
                output = yield from _run_alone(planned, record, index, scope, spawn_job)
            results.append(output)
    return _join_items(planned, results)


def _join_items(planned: PlannedStep, results: list[dict[str, Any] | None]) -> dict[str, Any]:
    """Return a list for each declared output, with the value of each item, or null."""
    fields = [name for name in planned.produces if name != ERRORS]
    return {name: [(result or {}).get(name) for result in results] for name in fields}


def _list_errors(failed: Mapping[int, RuntimeErrorBase]) -> list[dict[str, Any]]:
    """Return `$errors`: index, code and message of each failed item, in order."""
    return [
        {"index": index, "code": failed[index].code, "message": failed[index].message}
        for index in sorted(failed)
    ]


def _reuse_result(inner: StepRecord, uses: str | None, taken: ReusedResult) -> Effects:
    """Return the recorded output of the same item or round in the earlier run."""
    inner.reused_from = taken.origin
    learn_reused_facts(inner, uses, taken.output)
    yield from ()
    return taken.output


# -- several invocations ----------------------------------------------------------------------------------------------

_MORE, _NO_MORE, _CANCEL = "more", "no more", "cancel"
"""The action after a job ends: start the next one, start no further one, or also cancel the running ones."""


def _run_jobs(
    count: int, spawn_job: Callable[[int], Spawn], max_parallel: int, on_end: Callable[[Task], str]
) -> Effects:
    """Run jobs in order, at most `max_parallel` at a time, until all started jobs have ended.

    When a job ends, `on_end` decides how to continue: `_MORE`, `_NO_MORE` or `_CANCEL`.
    """
    started, more = 0, True
    running: list[Task] = []
    while True:
        while more and started < count and len(running) < max_parallel:
            running.append((yield spawn_job(started)))
            started += 1
        if not running:
            return
        task: Task = yield Next()
        running.remove(task)
        then = on_end(task)
        more = more and then == _MORE
        if then == _CANCEL:
            for other in running:
                yield Cancel(other)


def _run_together(
    count: int, spawn_job: Callable[[int], Spawn], max_parallel: int, done: Mapping[int, Any] = NONE_DONE,
    collected: dict[int, RuntimeErrorBase] | None = None,
) -> Effects:  # fmt: skip
    """Run jobs, at most `max_parallel` at a time, and return their results in order. Those in `done` are not run.

    The first error cancels the other jobs and is raised. A job that was cancelled, or that waits for a person, does not
    cancel the others, but no new job starts. If one of the others fails, its error is raised instead. With
    `collected` a failure, but no veto, is added there instead, and its result is None.
    """
    results: list[Any] = [done.get(index) for index in range(count)]
    open_jobs = [index for index in range(count) if index not in done]
    cancellations: list[BaseException] = []
    failures: list[BaseException] = []

    def on_end(task: Task) -> str:
        if task.error is None:
            results[task.label] = task.result
            return _MORE
        if isinstance(task.error, Cancelled) or getattr(task.error, "exit_code", None) == PENDING:
            cancellations.append(task.error)
            return _NO_MORE
        if collected is not None and _is_failure(task.error):
            collected[task.label] = task.error
            return _MORE
        failures.append(task.error)
        return _CANCEL if len(failures) == 1 else _NO_MORE

    yield from _run_jobs(
        len(open_jobs), lambda number: spawn_job(open_jobs[number]), max_parallel, on_end
    )
    if failures or cancellations:
        raise (failures or cancellations)[0]
    return results


def _run_alone(
    planned: PlannedStep, record: StepRecord, number: int, scope: Scope,
    spawn_job: Callable[[int, ClockReading | None], Spawn],
) -> Effects:  # fmt: skip
    """Run an item or a round while no other part of the loop runs, and return its output.

    If it is not plain, it runs as the task from `spawn_job`.
    """
    call = find_quick_call(planned, record)
    if call is None:
        return (yield from _await_child(spawn_job(number, None)))
    part = PlainPart(planned, record, call, number, scope)
    if not part.begin():
        return (yield from _await_child(spawn_job(number, part.started)))
    try:
        answer: Answer | AwaitedCall = yield part.live_call()
    except Cancelled as cancelled:
        inner = part.record()
        inner.close_cancelled(cancelled)
        record.add_part(inner)
        raise
    except RuntimeErrorBase as error:
        inner = part.record()
        steps = part.call_again(part.record_failure(error), inner)
    else:
        if not isinstance(answer, AwaitedCall):
            return part.end(answer)
        inner = part.record()
        steps = part.wait_for(answer.effect, inner)
    return (yield from _await_child(_spawn_part(planned, record, inner, steps, at_once=True)))


def _await_child(spawn: Spawn) -> Effects:
    """Run the only child task, and return its result or raise its error."""
    yield spawn
    task: Task = yield Next()
    if task.error is not None:
        raise task.error
    return task.result


def _is_failure(error: BaseException) -> TypeGuard[RuntimeErrorBase]:
    """Return whether an item failed by itself: not by a veto, a bug or the time limit of the run."""
    if isinstance(error, RunTimeoutError | InternalError) or not isinstance(
        error, RuntimeErrorBase
    ):
        return False
    return status_of(error) == "failed"


def _spawn_part(
    planned: PlannedStep, record: StepRecord, inner: StepRecord, steps: Effects, *, label: Any = None,
    item: bool = False, at_once: bool = False,
) -> Spawn:  # fmt: skip
    """Return the effect that starts a child task for one invocation, with the step's time limit."""
    run = record.run
    limit = run.step_limit(planned, inner.path)
    steps = _run_part(record, inner, steps, item=item)
    return run.spawn(steps, label=label, limit=limit, at_once=at_once)


def _run_part(
    record: StepRecord, inner: StepRecord, steps: Effects, *, item: bool = False
) -> Effects:
    """Run one invocation, append its closing event, add its usage and reads to the step's, and return its output.

    If a person skipped an `item` of a foreach, its output is empty and the other items continue.
    """
    try:
        output = yield from steps
    except CallSkipped as degraded:
        if item and isinstance(degraded, SkippedByPerson):
            inner.finish("skipped", reason=LEFT_OUT, detail=str(degraded))
            return {}
        inner.finish("degraded", reason="degraded", detail=str(degraded))
        raise
    except Cancelled as cancelled:
        inner.close_cancelled(cancelled)
        raise
    except RuntimeErrorBase as error:
        inner.fail(error)
        if isinstance(error, EffectInDoubtError):
            record.in_doubt = record.in_doubt or error
        raise
    else:
        inner.finish("done", output=output)
        return output
    finally:
        record.add_part(inner)


def _folded_output(
    planned: PlannedStep, record: StepRecord, number: int, *, is_round: bool = False
) -> dict[str, Any] | None:
    """Return the recorded output of an item or a round whose other events a waypoint left out. None for any other
    one.
    """
    run = record.run
    dispatcher = run.engine.dispatcher
    if dispatcher is None:
        return None
    closing = dispatcher.take_folded(record.run_id, StepPath(record.path).item(number))
    if closing is None:
        return None
    inner = record.new_part(planned, number)
    inner.restore(closing)
    record.add_part(inner)
    if is_round:
        count_round(run.state, number)
    output: dict[str, Any] = closing.payload["output"]
    return output


# -- while ------------------------------------------------------------------------------------------------------------


def _run_rounds(planned: PlannedStep, record: StepRecord, loop: While) -> Effects:
    run = record.run
    last = tuple(rule for rule in planned.rules if rule.left in (ITERATIONS, EXHAUSTED))
    scratch = fork(run.state)
    record.begin()
    writes = LoopWrites()
    inner = record

    def spawn_round(number: int, started: ClockReading | None) -> Spawn:
        nonlocal inner
        inner = record.new_part(planned, number, started)
        inner.round = number
        # A router's target decides what is written, and the earlier result does not name it.
        is_routed = planned.step.config.router is not None
        taken = None if is_routed else run.engine.taken_over.get(inner.path)
        steps = (
            _reuse_result(inner, planned.step.uses, taken)
            if taken
            else invoke(planned, inner, Scope(scratch))
        )
        return _spawn_part(planned, record, inner, steps)

    again, rounds = True, 0
    while again and rounds < loop.max_iterations:
        folded = _folded_output(planned, record, rounds, is_round=True)
        if folded is None:
            output = yield from _run_alone(planned, record, rounds, Scope(scratch), spawn_round)
        else:
            output = folded
        for write in writes_of(planned.rules_for(inner.called_id), output, scratch):
            write_value(scratch, write.target, write.strategy, copy_writable(write.value))
            writes.add(write)
        rounds += 1
        condition, inputs = planned.expressions.while_, run.plan.skill.inputs
        again = holds(condition, Scope(scratch), inputs, record.expression_reads)
    output = {**output, ITERATIONS: rounds, EXHAUSTED: again}
    return CompletedOutput(output, writes.to_list() + writes_of(last, output, scratch))


# -- scatter ----------------------------------------------------------------------------------------------------------


def _run_targets(planned: PlannedStep, record: StepRecord, scatter: Scatter) -> Effects:
    values = resolve_input(planned.input, record.run.scope, record.reads)
    record.input = values
    names = list(planned.targets)
    record.begin(targets=[target.uses for target in planned.targets.values()])

    def spawn_job(index: int) -> Spawn:
        target = planned.targets[names[index]]
        inner = record.new_part(planned, names[index])
        inner.uses, inner.capability = target.uses, target.capability
        return _spawn_part(
            planned, record, inner, call_target(planned, inner, target, values), label=index
        )

    max_parallel = scatter.max_parallel or len(names)
    if scatter.merge == "first_success":
        return (yield from _run_until_success(planned, names, spawn_job, max_parallel))
    results = yield from _run_together(len(names), spawn_job, max_parallel)
    if scatter.merge == "collect":
        return CompletedOutput(dict(zip(names, results, strict=True)))
    return CompletedOutput(_join_lists(results))


def _join_lists(results: list[dict[str, Any]]) -> dict[str, Any]:
    """Concatenate each list field over all targets in declared order. Take any other field from the first target that
    has it.
    """
    joined: dict[str, Any] = {}
    for result in results:
        for name, value in result.items():
            if isinstance(value, list) and isinstance(joined.get(name, []), list):
                joined[name] = [*joined.get(name, []), *value]
            else:
                joined.setdefault(name, value)
    return joined


def _run_until_success(
    planned: PlannedStep, names: list[str], spawn_job: Callable[[int], Spawn], max_parallel: int
) -> Effects:
    """Return the product of the first target that succeeds. Cancel the others, but let effects in flight end first."""
    won: list[Task] = []
    lost: dict[int, BaseException] = {}

    def on_end(task: Task) -> str:
        if task.error is not None:
            lost[task.label] = task.error
            return _MORE
        won.append(task)
        return _CANCEL if len(won) == 1 else _NO_MORE

    yield from _run_jobs(len(names), spawn_job, max_parallel, on_end)
    if not won:
        raise _no_success_error(names, [lost[index] for index in sorted(lost)])
    capability = planned.targets[names[won[0].label]].capability
    return CompletedOutput(won[0].result, producer_id=capability.id if capability else "")


def _no_success_error(names: list[str], errors: list[BaseException]) -> BaseException:
    """Return the error of a scatter in which no target succeeded.

    In order of precedence: a cancellation, a wait for a person, a veto, or one error that lists all reasons.
    """
    for error in errors:
        if not isinstance(error, RuntimeErrorBase | CallSkipped):
            return error
    for exit_code in (PENDING, VETOED):
        for error in errors:
            if isinstance(error, RuntimeErrorBase) and error.exit_code == exit_code:
                return error
    reasons = [getattr(error, "message", error) for error in errors]
    text = "; ".join(f"`{name}`: {reason}" for name, reason in zip(names, reasons, strict=True))
    return ExpressionError("scatter.failed", f"no target succeeded: {text}")
