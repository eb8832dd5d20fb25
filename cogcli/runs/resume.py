"""Resume: the engine runs again over the same log with the recorded answers, and continues live where they end
(docs/reference/episode.md#doubts)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from cogcli.core.calls import BindingChain, recorded_chain
from cogcli.core.errors import EnvironmentRefusal, UsageError
from cogcli.core.problems import ProblemsFound
from cogcli.core.redact import Redactor
from cogcli.engine.doubt import DoubtResolution
from cogcli.engine.outcome import RunOutcome
from cogcli.engine.ports import CapabilityRunner
from cogcli.engine.run import Finished
from cogcli.episode.journal import Journal
from cogcli.episode.store import Store
from cogcli.events import build
from cogcli.events.envelope import Event
from cogcli.governance.approvals import Approvals
from cogcli.mapping.apply import rebuild
from cogcli.runs.doubt_decisions import DoubtAnswer, OpenDoubts, resolutions_from
from cogcli.runs.environment import RunEnvironment
from cogcli.runs.launch import engine_over_log, live_runner, run_engine
from cogcli.runs.log_index import LogIndex, answered_request, locate_error
from cogcli.runs.replay import find_differing_specs, read_pinned_catalog, request_from
from cogcli.runs.rerun_effects import find_repeats
from cogcli.runs.results import Control, RunResult, finish_run, seal_run
from cogcli.runs.resume_adapters import ResumeSink, UnmaskedRunner
from cogcli.specs.catalog import Catalog
from cogcli.specs.checks import check
from cogcli.specs.selection import SelectionOptions
from cogcli.specs.stricter import stricter_of


class ResumeRequest(NamedTuple):
    """The flags of `resume`. `approve` and `reject` hold ids of requests, capabilities or gates."""

    approve: tuple[str, ...] = ()
    reject: tuple[str, ...] = ()
    by: str = ""
    reason: str = ""
    in_doubt: tuple[DoubtAnswer, ...] = ()
    allow_changed_specs: bool = False
    abort: bool = False
    """Close the run: nothing new starts, it ends with the status `aborted`."""
    durability: str = "process"


def resume(
    environment: RunEnvironment,
    directory: Path,
    request: ResumeRequest,
    require_consent: Callable[[LogIndex], None],
    *,
    listener: Callable[[Event], None] | None = None,
    control: Control | None = None,
) -> RunResult:
    """Continue an interrupted or paused run in its own log, with its own ids and options, and seal it if it ends.

    Raises UsageError `episode.sealed` or `episode.unknown-approval`; EnvironmentRefusal `episode.busy`,
    `episode.unreadable`, `resume.changed-specs`, `resume.untrusted`, `resume.masked`.
    """
    from cogcli.runs.results import in_doubt, pause_in_doubt

    redactor = Redactor()
    reopened = Store(environment.runs_dir, sign=environment.signer()).reopen(
        directory,
        clock=environment.clock,
        ids=environment.ids,
        redactor=redactor,
        durability=request.durability,
    )
    journal = reopened.journal
    try:
        log = LogIndex(reopened.events)
        end = log.ended.runs.get(_beginning(log).run_id)
        if end is not None:
            return _seal_ended_run(journal, reopened.events, end, log.signal)
        if not request.abort:
            require_consent(log)
        catalog, selection, selected, changed = _specs(environment, log, request, directory)
        answers = _match_answers(log, request)
        resolutions = resolutions_from(
            log,
            request.in_doubt,
            catalog.capability,
            by=request.by or "somebody",
            reason=request.reason,
            episode=directory.name,
        )
        _append_resumption(journal, log, answers, request, changed)
        workers = _beginning(log).payload["options"].get("max_workers", 8)
        live = live_runner(environment, catalog, selection, redactor, max_workers=workers, selected=selected)
        try:
            return _continue_run(
                environment, journal, log, catalog, live, answers, resolutions, request, listener, control
            )
        except EnvironmentRefusal as error:
            waiting = in_doubt(journal) if error.code == "env.disk" and not request.abort else None
            if waiting is None:
                raise
            return pause_in_doubt(journal, waiting, error, control)
    finally:
        journal.close()


def _seal_ended_run(journal: Journal, events: list[Event], end: Event, signal: str | None) -> RunResult:
    """Seal a run that has ended in its log, and return its result. No event is appended but those of sealing."""
    payload, state = end.payload, rebuild(events).root
    error = locate_error(payload["error"]) if payload["error"] else None
    steps = {
        name: state.step_results[name].status if name in state.step_results else "pending"
        for name in state.plan_order
    }
    outcome = RunOutcome(payload["status"], error, payload["outputs"], tuple(payload["required_missing"]))
    finished = Finished(outcome, state, steps)
    seal_run(journal, finished)
    control = Control()
    if signal is not None:
        control.cancel(signal)
    return finish_run(finished, journal, control)


def _continue_run(
    environment: RunEnvironment,
    journal: Journal,
    log: LogIndex,
    catalog: Catalog,
    live: CapabilityRunner,
    answers: list[tuple[Event, bool]],
    resolutions: dict[str | None, DoubtResolution],
    request: ResumeRequest,
    listener: Callable[[Event], None] | None,
    control: Control | None,
) -> RunResult:
    started = _beginning(log)
    new = [_append_answer(journal, asked, granted, request) for asked, granted in answers]
    control = control or Control()
    later_repeats = partial(find_repeats, environment.runs_dir, started.episode_id)
    doubts = OpenDoubts(log, journal, resolutions, later_repeats)
    sink = ResumeSink(journal, log, control, abort=request.abort)
    engine = engine_over_log(
        catalog,
        log,
        started,
        sink=sink,
        dispatcher=sink.dispatcher,
        runner=UnmaskedRunner(live, doubts.answer),
        clock=environment.clock,
        ids=environment.ids,
        listener=_only_new(listener, log),
        approvals=Approvals((*log.approvals, *new)),
        doubts=None if request.abort else doubts,
        asked=log.asked if request.allow_changed_specs else None,
    )
    engine.waits_in_doubt = not request.abort
    engine.spent_ms = log.sittings.milliseconds
    finished = run_engine(
        engine,
        started.payload["skill"]["id"],
        request_from(started),
        started.run_id or "",
        journal,
        control,
    )
    return finish_run(finished, journal, control)


def _beginning(log: LogIndex) -> Event:
    if log.started is None:
        raise EnvironmentRefusal("episode.unreadable", "this log has no beginning")
    return log.started


def _only_new(listener: Callable[[Event], None] | None, log: LogIndex) -> Callable[[Event], None] | None:
    """A listener that gets only the events after the last one of the log before this command."""
    before = log.last.seq if log.last else None
    if listener is None or before is None:
        return listener
    return lambda event: listener(event) if (event.seq or 0) > before else None


# -- before the engine starts ------------------------------------------------------------------------------------------


def _specs(
    environment: RunEnvironment, log: LogIndex, request: ResumeRequest, directory: Path
) -> tuple[Catalog, SelectionOptions, dict[str, BindingChain], list[str]]:
    """The catalog to continue with, how bindings are selected, the recorded binding chains, and the changed pins.

    Specs are read once. Where some have changed and that is allowed, no recorded chain counts, and each capability is
    as strict as either declaration. Raises EnvironmentRefusal `resume.changed-specs`, ProblemsFound.
    """
    started = _beginning(log)
    # Of a run with changed specs, what it began with counts, too: each capability is as strict as either declaration.
    pinned = read_pinned_catalog(started, directory).capabilities if request.allow_changed_specs else {}
    gates = {gate.capability for capability in pinned.values() for gate in capability.gates}
    catalog = environment.open_registry().reach(started.payload["skill"]["id"], also=sorted(gates))
    changed = find_differing_specs(started, catalog.pins)
    if changed and not request.allow_changed_specs:
        names = ", ".join(f"`{name}`" for name in changed)
        raise EnvironmentRefusal(
            "resume.changed-specs",
            f"changed since this run began: {names}",
            hint="restore them, or go on with --allow-changed-specs",
        )
    if changed:
        catalog = catalog._replace(capabilities=stricter_of(catalog.capabilities, pinned))
    options = started.payload["options"]
    selected = {} if changed else _recorded_chains(started)
    # A recorded binding counts as named by the user: it is called, or nothing is.
    binds = {**options["binds"], **{id: chain.members[0].binding_id for id, chain in selected.items()}}
    selection = SelectionOptions(binds, options["required_conformance_profile"], environment.environ)
    blocking = [problem for problem in check(catalog, options=selection) if problem.severity != "W"]
    if blocking:
        raise ProblemsFound(blocking)
    return catalog, selection, selected, changed


def _recorded_chains(started: Event) -> dict[str, BindingChain]:
    """The non-empty binding chains pinned at the start, by capability. Raises EnvironmentRefusal
    `episode.unreadable`."""
    recorded = started.payload.get("selection") or {}
    try:
        chains = {id: recorded_chain(each) for id, each in recorded.items()}
    except (AttributeError, KeyError, TypeError) as error:
        text = "this log does not say which bindings were chosen"
        raise EnvironmentRefusal("episode.unreadable", text) from error
    return {id: chain for id, chain in chains.items() if chain.members}


def _match_answers(log: LogIndex, request: ResumeRequest) -> list[tuple[Event, bool]]:
    """The open requests that `approve` and `reject` name, each with whether it is granted.

    Raises UsageError `episode.unknown-approval` for a name without a request, `usage.flag` for two answers to one.
    """
    answers = []
    for names, granted in ((request.approve, True), (request.reject, False)):
        for name in names:
            named = [event for event in log.open_requests if name in _names(event)]
            if not named:
                waiting = ", ".join(sorted({n for e in log.open_requests for n in _names(e)})) or "nothing"
                raise UsageError(
                    "episode.unknown-approval", f"nobody asked for `{name}`", expected=f"one of: {waiting}"
                )
            answers += [(event, granted) for event in named if (event, granted) not in answers]
    if len({event.id for event, _ in answers}) < len(answers):
        raise UsageError("usage.flag", "one request is both approved and rejected", hint="keep one answer")
    return answers


def _names(request: Event) -> set[str]:
    payload = request.payload
    return {name for name in (payload["approval_id"], payload["capability"], payload.get("gate")) if name}


def _append_resumption(
    journal: Journal,
    log: LogIndex,
    answers: list[tuple[Event, bool]],
    request: ResumeRequest,
    changed: list[str],
) -> None:
    last, started = log.last, log.started
    if last is None or started is None:
        return
    reason = "answered" if answers else "resumed"
    if request.abort:
        reason = f"closed by {request.by or 'somebody'}" + (f": {request.reason}" if request.reason else "")
    if request.allow_changed_specs:
        reason += ", changed specs allowed"
    checkpoint = {"offset": last.seq, "event": last.id}
    draft = build.run_resumed(
        started.run_id or "", reason=reason, checkpoint=checkpoint, caused_by=last.id, changed_specs=changed
    )
    journal.append(draft)


def _append_answer(journal: Journal, asked: Event, granted: bool, request: ResumeRequest) -> Any:
    payload = {name: asked.payload[name] for name in ("capability", "step_id", "action_hash")}
    draft = build.approval_answered(
        asked.run_id or "",
        asked.step_id or "",
        granted=granted,
        approval_id=asked.payload["approval_id"],
        by=request.by,
        payload={**payload, "reason": request.reason},
    )
    return answered_request(asked, journal.append(draft, durable=True))
