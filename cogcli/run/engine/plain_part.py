"""Plain items and rounds of a loop: an input and one call without effect (docs/adr/0028-plain-steps.md)."""

from __future__ import annotations

from cogcli.base.calls import Answer
from cogcli.base.errors import RuntimeErrorBase
from cogcli.base.step_path import StepPath
from cogcli.declarations.value_types import Json
from cogcli.run.engine.effects import Effects, StartedCall, WorkerCall, WorkerSlot
from cogcli.run.engine.invocation import call_repeatedly
from cogcli.run.engine.plain_call import PlainCall
from cogcli.run.engine.plain_invocation import PlainInvocation, find_plain_call
from cogcli.run.engine.plan import PlannedStep
from cogcli.run.engine.step_recorder import StepRecord
from cogcli.state.inputs import Scope
from cogcli.state.reducer import count_round


def find_quick_call(planned: PlannedStep, record: StepRecord) -> PlainCall | None:
    """Return the shared constants if the next item or round of a loop may be plain and its call is quick. None if it
    needs the general path.
    """
    run = record.run
    call = find_plain_call(run, planned, planned.part_key)
    if call is None or not call.speed.is_quick:
        return None
    loop = run.engine.loop
    return call if loop.signal is None and loop.slot_free else None


class PlainPart(PlainInvocation):
    """The state of one plain item or round while it runs."""

    __slots__ = ("_number", "_outer")

    def __init__(
        self, planned: PlannedStep, outer: StepRecord, call: PlainCall, number: int, scope: Scope
    ) -> None:
        """`outer` is the record of the loop, `number` that of the item or round."""
        path = StepPath(outer.path).item(number)
        super().__init__(outer.run, planned, call, path, scope)
        self._outer = outer
        self._number = number

    @property
    def _is_round(self) -> bool:
        return self._planned.step.config.while_ is not None

    def begin(self) -> bool:
        """Append the intent. Return False, without an event, if the part must take the general path."""
        return self._begin_call((), self._number if self._is_round else None)

    def _note_begun(self) -> None:
        if self._is_round:
            count_round(self._run.state, self._number)

    def new_record(self) -> StepRecord:
        record = self._outer.new_part(self._planned, self._number, self.started)
        record.round = self._number if self._is_round else None
        return record

    def wait_for(self, effect: WorkerCall | StartedCall, record: StepRecord) -> Effects:
        """Wait for the call in its own task, and return the output. `record` is the record of the part."""
        try:
            if type(effect) is WorkerCall and not self._run.engine.loop.take_slot():
                yield WorkerSlot()
            answer: Answer = yield effect
        except RuntimeErrorBase as error:
            failure = self.record_failure(error)
        else:
            self._note_answer(record, answer)
            self.learn(answer)
            return answer.output
        return (yield from self.call_again(failure, record))

    def call_again(self, failure: RuntimeErrorBase, record: StepRecord) -> Effects:
        """Continue on the general path after the call failed, and return the output."""
        target = self.call.target
        return (yield from call_repeatedly(self._planned, record, target, self._input, failure))

    def end(self, answer: Answer) -> Json:
        """Append the closing event of a part whose call was answered, and return its output."""
        self.learn(answer)
        times = self.measure()
        if self._append_end(answer, times, None):
            self._outer.add_call(self._reads, self.call.usage, self.call.tool)
        else:
            record = self.record(answer)
            record.finish("done", output=answer.output, times=times)
            self._outer.add_part(record)
        return answer.output
