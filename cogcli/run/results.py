"""The end of a run outside the engine: its episode is sealed or left waiting, and a RunResult is built."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from cogcli.base.errors import ABORTED, OK, CogcliError, EffectInDoubtError
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.step_path import StepPath
from cogcli.declarations.envelope import Event, draft_of
from cogcli.declarations.events import RunPaused, StepStarted
from cogcli.declarations.governance_events import ApprovalRequested, InputRequested
from cogcli.declarations.value_types import Json
from cogcli.episode.journal import Journal
from cogcli.episode.seal import persist_pending, seal
from cogcli.run.engine.context import Engine
from cogcli.run.engine.outcome import RunOutcome, name_step
from cogcli.run.engine.run import FinishedRun
from cogcli.specs.catalog import Catalog
from cogcli.state.execution import ExecutionState
from cogcli.state.reducer import rebuild

if TYPE_CHECKING:
    from cogcli.run.log_index import LogIndex
    from cogcli.run.rerun_point import RerunPoint


class RunResult(NamedTuple):
    """The end of a run. `error` is the envelope's object. `counts` maps each status to its number of root steps."""

    status: str
    exit_code: int
    outputs: Json | None
    error: Json | None
    episode_id: str
    run_id: str
    trace_id: str
    directory: str
    metrics: Json
    counts: dict[str, int]
    finished: FinishedRun
    """The engine's own result."""
    leftovers: tuple[str, ...] = ()
    """One sentence per process that a server left running and that was killed."""
    stopped_by: str = ""
    """The name of the first signal, empty without one."""
    in_doubt: tuple[str, ...] = ()
    """The step paths of undecided calls in doubt; empty unless the run waits."""
    requests: tuple[Event, ...] = ()
    """The open requests for approval, the oldest first; empty unless the run waits."""
    approve: str = ""
    """The flags of `resume` that answer the first open request; empty unless the run waits for one."""
    inputs: tuple[InputRequested, ...] = ()
    """The open requests of services for input, the oldest first; empty unless the run waits."""
    answer: tuple[str, ...] = ()
    """The flags of `resume` that answer the first of them, and decline it; empty unless the run waits for one."""
    rerun: RerunPoint | None = None
    """The point where `rerun` continues. None for a run that ended well or waits."""
    not_exported: str = ""
    """The reason why a collector did not get the trace. Empty on success, and without a collector."""
    warnings: tuple[CogcliError, ...] = ()
    """One per hook that failed."""


class Control:
    """Cancels a run from outside the engine. `cancel` may be called from a signal handler."""

    def __init__(self) -> None:
        self._engine: Engine | None = None
        self.signals: list[str] = []

    def attach(self, engine: Engine) -> None:
        """Connect the engine of the run. Signals received earlier are passed to it."""
        self._engine = engine
        for name in self.signals:
            engine.loop.interrupt(name)

    def cancel(self, signal_name: str) -> None:
        """Cancel the run because of this signal. A second call skips the grace period."""
        self.signals.append(signal_name)
        if self._engine is not None:
            self._engine.loop.interrupt(signal_name)


def export_trace(result: RunResult, export: Callable[[str], str] | None) -> RunResult:
    """Send the trace of an ended run to the collector, if there is one, and return the result.

    A failed export is not an error of the run.
    """
    if export is None or result.status == "pending":
        return result
    return result._replace(not_exported=export(result.directory))


def publish(
    result: RunResult,
    export: Callable[[str], str] | None,
    hooks: Callable[[RunResult], tuple[CogcliError, ...]] | None,
) -> RunResult:
    """Pass the end or the pause of a run to the collector and to the hooks. Return the result with the errors of both.
    The log is closed before, so that a hook can answer a request.
    """
    result = export_trace(result, export)
    return result if hooks is None else result._replace(warnings=hooks(result))


def seal_run(journal: Journal, finished: FinishedRun) -> None:
    """Seal the episode of a run that ended. For a run that waits, write only `state.json`."""
    if finished.outcome.status == "pending":
        persist_pending(journal)
    else:
        seal(journal)


def finished_from_log(outcome: RunOutcome, state: ExecutionState) -> FinishedRun:
    """Return the end of a run that no engine ran, with the state that its log yields."""
    results = state.step_results
    steps = {
        name: results[name].status if name in results else "pending" for name in state.plan_order
    }
    return FinishedRun(outcome, state, steps)


def pause_in_doubt(
    journal: Journal, log: LogIndex, error: BaseException, control: Control
) -> RunResult:
    """Return the result `pending` for a run with a call in doubt whose log can no longer be written."""
    intent = log.open_doubts[0]
    call, step_id = StepStarted.of(intent.payload), intent.step_id or ""
    doubt = EffectInDoubtError(
        "effect.in-doubt",
        f"`{call.capability}` may have happened, its answer could not be recorded: {error}",
        hint="free space, check the remote service, then resume with --in-doubt done, rerun, skip or fail",
        left=True,
    )
    doubt.step_id, doubt.capability_id = intent.step_id, call.capability
    doubt.binding_id, doubt.service_id = call.binding, call.service
    state = rebuild([event for _, event in journal.events()]).root
    doubt.message = name_step(doubt, StepPath(step_id).first(), "")
    return finish_run(finished_from_log(RunOutcome("pending", doubt, {}), state), journal, control)


def finish_run(
    finished: FinishedRun, journal: Journal, control: Control, catalog: Catalog | None = None
) -> RunResult:
    """Return the RunResult of a finished or waiting run. With `catalog`, add the place in the spec files to its
    error.
    """
    outcome, state = finished.outcome, finished.state
    result = RunResult(
        status=outcome.status,
        exit_code=_choose_exit_code(outcome, control),
        outputs=outcome.outputs if outcome.status in ("ok", "partial") else None,
        error=None,
        episode_id=journal.episode_id,
        run_id=state.run_id,
        trace_id=state.trace_id,
        directory=journal.folder.place,
        metrics=state.trace.metrics.to_payload(),
        counts=dict(Counter(finished.steps.values())),
        stopped_by=control.signals[0] if control.signals else "",
        finished=finished,
    )
    if outcome.status == "ok":
        return result
    log = _index_log(journal)
    return _with_reasons(result, finished, log, catalog)


def _with_reasons(
    result: RunResult, finished: FinishedRun, log: LogIndex, catalog: Catalog | None
) -> RunResult:
    """Return the result of a run that did not succeed, with its error and the options to continue it."""
    # A run that ends well imports none of these.
    from cogcli.run.error_payload import error_payload
    from cogcli.run.failed_call import describe_failed_call
    from cogcli.run.rerun_point import rerun_point

    outcome = finished.outcome
    if outcome.error:
        error = error_payload(outcome.error, catalog)
        found = describe_failed_call(log.closings.values(), outcome.error, catalog)
        result = result._replace(error=error | found)
    if outcome.status == "pending":
        in_doubt = tuple(event.step_id or "" for event in log.open_doubts)
        requests = tuple(log.open_requests)
        inputs = tuple(InputRequested.of(each.payload) for each in log.open_inputs)
        result = result._replace(in_doubt=in_doubt, requests=requests, inputs=inputs)
        return _with_flags(result) if requests or inputs else result
    failed = (outcome.error.step_id if outcome.error else None) or ""
    return result._replace(rerun=rerun_point(finished.steps, failed, log))


def _with_flags(result: RunResult) -> RunResult:
    """Return the result of a run that waits for a person, with the flags of `resume` that answer."""
    from cogcli.episode.history import ask_from, input_flags  # for a run that waits alone

    asks = [ask_from(ApprovalRequested.of(each.payload)) for each in result.requests[:1]]
    approve = asks[0].answer_flags() if asks else ""
    return result._replace(approve=approve, answer=tuple(input_flags(result.inputs)))


def _choose_exit_code(outcome: RunOutcome, control: Control) -> int:
    if outcome.status == "ok":
        return OK
    if outcome.status == "aborted":
        return ABORTED[control.signals[0] if control.signals else "SIGINT"]
    return outcome.error.exit_code if outcome.error and outcome.status != "partial" else 1


def _index_log(journal: Journal) -> LogIndex:
    """Return the index of the log so far. Only a run that does not end well needs one."""
    from cogcli.run.log_index import LogIndex

    return LogIndex(event for _, event in journal.events())


def close_after_error(journal: Journal) -> LogIndex | None:
    """Close the episode of a run that an error stopped, as far as the disk allows. Expected errors are
    suppressed.

    An episode without a committed event is deleted. If an effect may have happened, the run waits for a person,
    and the index of its log is returned. Otherwise, on a full disk, the last event uses the reserved disk space.
    Sealing uses the rest, or `verify --repair` seals later.
    """
    if journal.discard():
        return None
    waiting = find_run_in_doubt(journal)
    if waiting is None and journal.stopped_by_full_disk:
        from cogcli.run.closed_scopes import draft_full_disk_end

        with suppress(CogcliError):
            log = _index_log(journal)
            if log.root not in log.ended.runs:
                journal.append(
                    draft_full_disk_end(log.root or "", _metrics_so_far(log)), durable=True
                )
            seal(journal)
    return waiting


def _metrics_so_far(log: LogIndex) -> Json | None:
    """Return the metrics of a run that ends with the present log. Only active time is included."""
    if log.started is None or log.last is None:
        return None
    times = {"started_at": log.started.timestamp, "completed_at": log.last.timestamp}
    return {**times, "duration_ms": log.active_time.milliseconds}


def find_run_in_doubt(journal: Journal) -> LogIndex | None:
    """Return the log index of a run that an error stopped while an effect may have happened. Return None for any
    other run.

    On a full disk, the run's pause uses the reserved disk space.
    """
    with suppress(CogcliError):
        log = _index_log(journal)
        over = log.started is None or log.root in log.ended.runs
        if over or not any(
            StepStarted.of(intent.payload).side_effects == "effect" for intent in log.open_doubts
        ):
            return None
        if journal.stopped_by_full_disk:
            _append_pause(journal, log)
        return log
    return None


def _append_pause(journal: Journal, log: LogIndex) -> None:
    """Append the pause of the run, if there is space. Without this event the log reads as interrupted, in doubt."""
    with suppress(CogcliError):
        if log.last is not None and log.last.event_type != "run.paused":
            reason = "effect.in-doubt: the disk was full, and an effect may have happened"
            journal.append(draft_of(RunPaused(reason=reason), log.root or ""), durable=True)
        persist_pending(journal)
