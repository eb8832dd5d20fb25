"""Plain steps: an input, one call without effect, and writes (docs/adr/0028-plain-steps.md)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cogcli.base.calls import Answer
from cogcli.base.errors import RuntimeErrorBase
from cogcli.base.named_tuple import NamedTuple, new_tuple
from cogcli.run.engine.context import Run
from cogcli.run.engine.effects import Cancelled, Effects, StartedCall, WorkerCall, WorkerSlot
from cogcli.run.engine.ending import end_early, ending_from_event
from cogcli.run.engine.outcome import Ending
from cogcli.run.engine.plain_call import PlainCall
from cogcli.run.engine.plain_invocation import PlainInvocation
from cogcli.run.engine.plan import PlannedStep
from cogcli.run.engine.step_recorder import StepRecord
from cogcli.run.engine.step_times import ClockReading
from cogcli.state.execution import TraceStep
from cogcli.state.expressions import holds
from cogcli.state.outputs import writes_of
from cogcli.state.reducer import begin_step, end_tool_step

_DONE: Final = Ending("done")


class FailedCall(NamedTuple):
    """A plain step whose call failed: the error, and the record that the step would have on the general path."""

    record: StepRecord
    error: RuntimeErrorBase


class StartedStep(NamedTuple):
    """A plain step that waits for its call."""

    step: PlainStep
    effect: WorkerCall | StartedCall


StepStart = PlainCall | StartedStep | ClockReading | FailedCall | None
"""The state in which a task starts a step. For a plain step: its constants, or its begun call. For the general
path: the start time, or the failed call.
None for a step that starts now on the general path."""
GeneralPath = Callable[[ClockReading | FailedCall], Effects]
"""Runs a step on the general path from there on."""


def run_plain_step(
    run: Run, planned: PlannedStep, call: PlainCall, run_general_path: GeneralPath
) -> Effects:
    """Run a plain step as a task and return its Ending. If the step proves unusual or its call fails, continue with
    `run_general_path`. Raise only the errors of the sink, and bugs.
    """
    step = PlainStep(run, planned, call, run.path(planned.step.id), run.scope)
    loop = run.engine.loop
    if loop.signal is not None or not loop.take_slot() or not step.begin():
        return (yield from run_general_path(step.started))
    return (yield from step.wait_for(step.live_call().build_effect(), run_general_path))


class PlainStep(PlainInvocation):
    """The state of one plain step while it runs."""

    __slots__ = ()

    def begin(self) -> bool:
        """Append the intent. Return False, without an event, if the step must take the general path."""
        planned = self._planned
        if planned.expressions.condition is None:
            return self._begin_call(planned.written)
        reads: dict[str, None] = {}
        try:
            if not self._meets_condition(reads):
                return False
        except RuntimeErrorBase:
            return False
        is_begun = self._begin_call((*reads, *planned.written))
        if is_begun:
            self.add_reads(reads)  # the closing event lists them after those of the input
        return is_begun

    def _meets_condition(self, reads: dict[str, None]) -> bool:
        """Return whether the condition of the step is true. Raise ExpressionError."""
        condition, inputs = self._planned.expressions.condition, self._run.plan.skill.inputs
        return holds(condition, self._run.scope, inputs, reads)

    def _note_begun(self) -> None:
        begin_step(self._run.state, self._path)

    def wait_for(self, effect: WorkerCall | StartedCall, run_general_path: GeneralPath) -> Effects:
        """Wait for the call in the task of the step, and return the ending."""
        try:
            if type(effect) is WorkerCall and not self._run.engine.loop.take_slot():
                yield WorkerSlot()
            answer: Answer = yield effect
        except Cancelled as error:
            return self.cancel(error)
        except RuntimeErrorBase as error:
            failed = self.fail(error)
        else:
            return self.end(answer)
        return (yield from run_general_path(failed))

    def cancel(self, cause: Cancelled) -> Ending:
        """Append the closing event of a step whose call was cancelled, and return the ending."""
        return end_early(self.record(), cause)

    def fail(self, error: RuntimeErrorBase) -> FailedCall:
        """Return the step for the general path, after its call failed."""
        return FailedCall(self.record(), self.record_failure(error))

    def new_record(self) -> StepRecord:
        return StepRecord.of_step(self._run, self._planned, self.started)

    def end(self, answer: Answer) -> Ending:
        """Append the closing event of a step whose call was answered, apply the writes, and return the ending."""
        self.learn(answer)
        state, planned = self._run.state, self._planned
        try:
            writes = writes_of(planned.rules, answer.output, state)
        except RuntimeErrorBase as error:
            record = self.record(answer)
            record.append_answer(answer.output)
            return end_early(record, error)
        times = self.measure()
        if not self._append_end(answer, times, [write.to_payload() for write in writes]):
            ended = self.record(answer).finish(
                "done", output=answer.output, writes=writes, times=times
            )
            return ending_from_event(ended, _DONE)
        written = planned.written
        if len(writes) < len(planned.rules):  # an optional output is absent
            written = tuple(dict.fromkeys([write.target.text for write in writes]))
        started_at, ended_at, took = times
        reads, capability_id = tuple(self._reads), self.call.capability_id
        members = (self._path, capability_id, "done", started_at, ended_at, reads, written, took)
        end_tool_step(state, new_tuple(TraceStep, members), writes)
        return _DONE
