"""How a run ends outside the engine: its episode is sealed or left waiting, and it has a RunResult."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from cogcli.base.errors import ABORTED, OK, CogcliError, EffectInDoubtError
from cogcli.base.step_path import StepPath
from cogcli.declarations.envelope import Event, draft_of
from cogcli.declarations.events import RunPaused
from cogcli.declarations.governance_events import ApprovalRequested
from cogcli.episode.journal import Journal
from cogcli.episode.seal import persist_pending, seal
from cogcli.run.closed_scopes import find_full_disk
from cogcli.run.engine.context import Engine
from cogcli.run.engine.outcome import RunOutcome, name_step
from cogcli.run.engine.run import Finished
from cogcli.run.error_payload import error_payload
from cogcli.run.failed_call import failed_call
from cogcli.run.log_index import LogIndex
from cogcli.run.rerun_point import RerunPoint, rerun_point
from cogcli.specs.catalog import Catalog
from cogcli.state.execution import ExecutionState
from cogcli.state.reducer import rebuild


class RunResult(NamedTuple):
    """The end of a run. `error` is the object of the envelope; `counts` has the number of root steps by status."""

    status: str
    exit_code: int
    outputs: dict[str, Any] | None
    error: dict[str, Any] | None
    episode_id: str
    run_id: str
    trace_id: str
    directory: str
    metrics: dict[str, Any]
    counts: dict[str, int]
    finished: Finished
    """What the engine gave."""
    leftovers: tuple[str, ...] = ()
    """A sentence per process that a server left running and that was killed."""
    stopped_by: str = ""
    """The name of the first signal, empty without one."""
    in_doubt: tuple[str, ...] = ()
    """The step paths of undecided calls in doubt; empty unless the run waits."""
    approve: str = ""
    """The flags of `resume` that answer the first open request; empty unless the run waits for one."""
    rerun: RerunPoint | None = None
    """Where `rerun` goes on; None for a run that ended well or waits."""
    not_exported: str = ""
    """Why a collector did not get its trace; empty where it did, and without one."""


class Control:
    """Cancels a run from outside. `cancel` may be called from a signal handler."""

    def __init__(self) -> None:
        self._engine: Engine | None = None
        self.signals: list[str] = []

    def attach(self, engine: Engine) -> None:
        """Connect the engine of the run; signals that came before are passed on."""
        self._engine = engine
        for name in self.signals:
            engine.loop.interrupt(name)

    def cancel(self, signal_name: str) -> None:
        """Cancel the run because of this signal. A second call skips the grace period."""
        self.signals.append(signal_name)
        if self._engine is not None:
            self._engine.loop.interrupt(signal_name)


def exported(result: RunResult, export: Callable[[Path], str] | None) -> RunResult:
    """The result of a run that ended, its trace sent where there is a collector; never an error of the run."""
    if export is None or result.status == "pending":
        return result
    return result._replace(not_exported=export(Path(result.directory)))


def seal_run(journal: Journal, finished: Finished) -> None:
    """Seal the episode of a run that ended; of one that waits, write `state.json` alone."""
    if finished.outcome.status == "pending":
        persist_pending(journal)
    else:
        seal(journal)


def finished_of(outcome: RunOutcome, state: ExecutionState) -> Finished:
    """The end of a run that no engine gives: its state is that of the log."""
    results = state.step_results
    steps = {
        name: results[name].status if name in results else "pending" for name in state.plan_order
    }
    return Finished(outcome, state, steps)


def pause_in_doubt(
    journal: Journal, log: LogIndex, error: BaseException, control: Control
) -> RunResult:
    """The result of a run whose log cannot be written any more, with a call in doubt: it waits (`pending`)."""
    intent = log.open_doubts[0]
    payload, step_id = intent.payload, intent.step_id or ""
    doubt = EffectInDoubtError(
        "effect.in-doubt",
        f"`{payload['capability']}` may have happened, its answer could not be recorded: {error}",
        hint="free space, look at the other side, then resume with --in-doubt done, rerun, skip or fail",
        left=True,
    )
    doubt.step_id, doubt.capability_id = intent.step_id, payload["capability"]
    doubt.binding_id, doubt.service_id = payload.get("binding"), payload.get("service")
    state = rebuild([event for _, event in journal.events()]).root
    doubt.message = name_step(doubt, StepPath(step_id).first(), "")
    return finish_run(finished_of(RunOutcome("pending", doubt, {}), state), journal, control)


def finish_run(
    finished: Finished, journal: Journal, control: Control, catalog: Catalog | None = None
) -> RunResult:
    """The RunResult of a finished or waiting run. With `catalog`, an error gets its place in the spec files."""
    outcome, state = finished.outcome, finished.state
    in_doubt: tuple[str, ...] = ()
    approve = ""
    log = LogIndex(event for _, event in journal.events()) if outcome.status != "ok" else None
    error = error_payload(outcome.error, catalog) if outcome.error else None
    if log and error:
        error |= failed_call(log.closings.values(), error, catalog)
    rerun = None
    if log and outcome.status != "pending":
        failed = getattr(outcome.error, "step_id", None) or ""
        rerun = rerun_point(finished.steps, failed, log)
    elif log:
        in_doubt = tuple(event.step_id or "" for event in log.open_doubts)
        approve = _approve_flags(log.open_requests[0]) if log.open_requests else ""
    return RunResult(
        status=outcome.status,
        exit_code=_exit_code(outcome, control),
        outputs=outcome.outputs if outcome.status in ("ok", "partial") else None,
        error=error,
        episode_id=journal.episode_id,
        run_id=state.run_id,
        trace_id=state.trace_id,
        directory=str(journal.directory),
        metrics=state.trace.metrics.to_payload(),
        counts=dict(Counter(finished.steps.values())),
        stopped_by=control.signals[0] if control.signals else "",
        in_doubt=in_doubt,
        approve=approve,
        rerun=rerun,
        finished=finished,
    )


def _approve_flags(request: Event) -> str:
    """What a person types to say yes to a request."""
    from cogcli.episode.history import ask_from  # for a run that waits alone

    return ask_from(ApprovalRequested.of(request.payload)).answer_flags()


def _exit_code(outcome: RunOutcome, control: Control) -> int:
    if outcome.status == "ok":
        return OK
    if outcome.status == "aborted":
        return ABORTED[control.signals[0] if control.signals else "SIGINT"]
    return outcome.error.exit_code if outcome.error and outcome.status != "partial" else 1


def give_up(journal: Journal) -> LogIndex | None:
    """Leave what an error stopped in the best shape that the disk allows; raises nothing that was expected.

    An episode in which nothing was committed is taken back. Where an effect may have happened the run has not ended: it
    waits for a person, and what its log holds is handed back. Else, on a full disk, the terminal event goes where the
    ballast was, and what room is left to sealing, which `verify --repair` does later if it has to.
    """
    if journal.discard():
        return None
    waiting = in_doubt(journal)
    if waiting is None and journal.stopped_by_full_disk:
        with suppress(CogcliError):
            log = LogIndex(event for _, event in journal.events())
            if log.root not in log.ended.runs:
                journal.append(find_full_disk(log.root or "", _metrics_so_far(log)), durable=True)
            seal(journal)
    return waiting


def _metrics_so_far(log: LogIndex) -> dict[str, Any] | None:
    """The metrics of a run that ends with what its log holds: its sittings count, not the time between them."""
    if log.started is None or log.last is None:
        return None
    times = {"started_at": log.started.timestamp, "completed_at": log.last.timestamp}
    return {**times, "duration_ms": log.sittings.milliseconds}


def in_doubt(journal: Journal) -> LogIndex | None:
    """What the log of a run holds that an error stopped while an effect may have happened; None for any other.

    On a full disk the run's pause goes where the ballast was.
    """
    with suppress(CogcliError):
        log = LogIndex(event for _, event in journal.events())
        over = log.started is None or log.root in log.ended.runs
        if over or not any(
            intent.payload["side_effects"] == "effect" for intent in log.open_doubts
        ):
            return None
        if journal.stopped_by_full_disk:
            _pause(journal, log)
        return log
    return None


def _pause(journal: Journal, log: LogIndex) -> None:
    """Append that the run waits, as far as there is room: without it the log reads as interrupted, in doubt."""
    with suppress(CogcliError):
        if log.last is not None and log.last.event_type != "run.paused":
            reason = "effect.in-doubt: the disk was full, and an effect may have happened"
            journal.append(draft_of(RunPaused(reason=reason), log.root or ""), durable=True)
        persist_pending(journal)
