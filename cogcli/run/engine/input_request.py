"""A call that its service left unfinished, and a person's answer with which it continues
(docs/reference/execution.md#input).

1. The attempt is settled: it is not in doubt. What it reserved of limits is released; the next one reserves it again.
2. The run waits for the answer, which the next attempt of the same call sends, under the same idempotency key.
3. A service that asks inside an open call is answered there. The log has both, once the call has an end.
4. A gate, a probe and the call of a client of a gateway wait for no one: there the call is rejected.
"""

from __future__ import annotations

from cogcli.base.calls import Continuation
from cogcli.base.errors import InputRequiredError, RejectedError
from cogcli.base.step_path import StepPath
from cogcli.declarations.call_records import AttemptMade
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.envelope import draft_of
from cogcli.declarations.governance_events import InputForm, InputRequested
from cogcli.run.engine.step_recorder import StepRecord


def find_continuation(
    record: StepRecord, capability: Capability, number: int, demand: InputRequiredError
) -> Continuation:
    """Return a person's answer to the input request of this attempt. Without an answer, append `input.requested` and
    raise `demand`, so that the run waits.
    """
    engine = record.run.engine
    given = engine.form_answers.get((record.run_id, record.path, number))
    if given is not None:
        return given
    made = {name: value for name, value in record.last_made.json.items() if name != "reply"}
    payload = InputRequested(
        input_id=f"in_{engine.ids.ulid()}",
        step_id=record.path,
        capability=capability.id,
        binding=demand.binding_id or "",
        service=demand.service_id or "",
        attempt=number,
        forms=[InputForm.of(form) for form in demand.forms],
        request_state=demand.request_state,
        made=AttemptMade.of(made),
    )
    record.run.emit(draft_of(payload, record.run_id, step_id=record.path), durable=True)
    raise demand


def may_wait(record: StepRecord) -> bool:
    """Return whether the run may wait for an answer: not for that of a gate or a probe."""
    return not StepPath(record.path).in_call


def rejection_of(demand: InputRequiredError) -> RejectedError:
    """Return the error for a gate or a probe that requests input, because no person can answer there."""
    text = f"{demand.message}; a gate or a probe gets no answer"
    error = RejectedError("call.rejected", text, left=True)
    error.record = demand.record
    return error
