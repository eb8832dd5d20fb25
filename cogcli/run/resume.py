"""Resume: the engine runs again over the same log with the recorded answers, then continues live
(docs/reference/episode.md#doubts).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from cogcli.base.calls import Answer, Attempt, BindingChain, chain_from_payload
from cogcli.base.errors import CogcliError, RunTimeoutError, UnusableEnvironment
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import ProblemsFound
from cogcli.base.redact import Redactor
from cogcli.declarations.envelope import Event, draft_of
from cogcli.declarations.events import RunPaused, RunResumed, RunStarted, RunTerminated
from cogcli.declarations.governance_events import AnswerSignature
from cogcli.declarations.options import options_from_log
from cogcli.declarations.run_start import start_of
from cogcli.episode.exclusive import hold_name
from cogcli.episode.journal import Journal, has_standing_permissions
from cogcli.episode.seal import persist_pending
from cogcli.policy.approvals import Approvals
from cogcli.run.answers import Approver, append_answer, match_answers, require_approvers
from cogcli.run.doubt_decisions import DoubtAnswer, OpenDoubts, resolutions_from
from cogcli.run.earlier_approvals import recorded_approvals
from cogcli.run.engine.context import Engine, LimitAccount
from cogcli.run.engine.outcome import RunOutcome
from cogcli.run.engine.ports import EarlierApprovals, SnapshotWriter
from cogcli.run.engine.run import SKILL, Limit
from cogcli.run.file_inputs import files_in_payload
from cogcli.run.form_answers import FormAnswer, match_inputs
from cogcli.run.launch import (
    InterceptedRunner,
    allow_typed_inputs,
    build_engine_over_log,
    build_live_runner,
    find_recorded_agent,
    open_ledger,
    open_store,
    rebuild_policy,
    run_engine,
)
from cogcli.run.log_index import LogIndex, located_error
from cogcli.run.log_index_reading import index_events
from cogcli.run.policy_request import PolicyRequest
from cogcli.run.prepare import AgentRun, Intercept, RunEnvironment
from cogcli.run.replay import (
    reach_present,
    read_pinned_catalog,
    request_from,
)
from cogcli.run.rerun_effects import find_repeats
from cogcli.run.results import (
    Control,
    RunResult,
    find_run_in_doubt,
    finish_run,
    finished_from_log,
    pause_in_doubt,
    publish,
    seal_run,
)
from cogcli.run.resume_adapters import (
    NewEventListener,
    RecordedBindingRunner,
    ResumeSink,
    send_unmasked,
)
from cogcli.run.waypoints import has_foldable_loops, live_files
from cogcli.specs.catalog import Catalog
from cogcli.specs.checks import check
from cogcli.specs.checks.packs import check_agent
from cogcli.specs.selection import SelectionOptions
from cogcli.specs.spec_snapshot import without_secret_requirements
from cogcli.specs.stricter import merge_stricter
from cogcli.state.reducer import rebuild

if TYPE_CHECKING:
    from cogcli.episode.waypoint import WaypointFold


class ResumeRequest(NamedTuple):
    """The flags of `resume`. `approve` and `reject` contain ids of requests, capabilities or gates."""

    approve: tuple[str, ...] = ()
    reject: tuple[str, ...] = ()
    by: str = ""
    reason: str = ""
    signatures: Mapping[str, AnswerSignature] = {}
    """The approver's signatures, by the ids of the requests."""
    in_doubt: tuple[DoubtAnswer, ...] = ()
    inputs: tuple[FormAnswer, ...] = ()
    """Answers to the input requests of services."""
    allow_changed_specs: bool = False
    abort: bool = False
    """Close the run: no new work starts, and it ends with the status `aborted`."""
    durability: str = "process"
    head: str = ""
    """The hash at the end of the log: the user knows this log and grants its recorded permissions again."""
    timeout: float | None = None
    """Seconds that the run may take from now on. None: the rest of the limit that was set before."""
    allow_hosts: tuple[str, ...] = ()
    """The public hosts that an untrusted project may call from now on. Earlier ones no longer count."""

    @property
    def only_rejects(self) -> bool:
        """Whether the request rejects and grants nothing. Such a request needs no specs, services or secrets."""
        return bool(self.reject) and not (
            self.approve or self.in_doubt or self.inputs or self.abort
        )


def resume(
    environment: RunEnvironment,
    directory: Path,
    request: ResumeRequest,
    require_consent: Callable[[LogIndex, Journal], None],
    *,
    listener: Callable[[Event], None],
    control: Control,
) -> RunResult:
    """Continue an interrupted or paused run in its own log, with its own ids and options. Seal it if it ends.

    Raise UsageError `episode.sealed` or `episode.unknown-approval`. Raise UnusableEnvironment `episode.busy`,
    `episode.unreadable`, `run.exclusive`, `resume.changed-specs`, `resume.untrusted` or `resume.masked`. Raise
    RunTimeoutError, before any event is appended, if no time remains.
    """
    result = _continue_run(environment, directory, request, require_consent, listener, control)
    return publish(result, environment.export, environment.hooks)


def _continue_run(
    environment: RunEnvironment,
    directory: Path,
    request: ResumeRequest,
    require_consent: Callable[[LogIndex, Journal], None],
    listener: Callable[[Event], None],
    control: Control,
) -> RunResult:
    """Continue a run as `resume` does, and release its log."""
    redactor = Redactor()
    store = open_store(environment)
    # Rounds that are done stay left out only if they follow from the specs that the run continues with.
    by_waypoint = not request.allow_changed_specs
    journal, events, _, from_waypoint = store.reopen(
        directory,
        by_waypoint=by_waypoint,
        clock=environment.clock,
        ids=environment.ids,
        redactor=redactor,
        durability=request.durability,
    )
    try:
        foreign = (event for event in events if not journal.is_allowed(event.seq))
        log = index_events(directory, events, foreign, from_waypoint)
        events.clear()
        if log.started is None:
            raise UnusableEnvironment("episode.unreadable", "this log has no beginning")
        end = log.ended.runs.get(log.root)
        if end is not None:
            return _seal_ended_run(journal, end, log.ended.signal)
        refusals: list[CogcliError] = []
        if not request.abort:
            try:
                require_consent(log, journal)
            except CogcliError as error:
                if not request.only_rejects or journal.vouched.differs:
                    raise
                refusals.append(error)
        if not request.abort:
            exclusive = options_from_log(log.started.payload).exclusive
            runs_dir, id = directory.resolve().parent, log.started.episode_id
            with hold_name(runs_dir, exclusive, id, shared=environment.shared):
                pass  # the log is locked: the name is held from here on
        if has_standing_permissions(log.started.payload):
            journal.announce_each()
        fold = from_waypoint.fold if from_waypoint else None
        resumption = _Resumption(
            environment, directory, request, journal, log, log.started, fold, refusals
        )
        return resumption.run(redactor, listener, control)
    finally:
        journal.close()


def _seal_ended_run(journal: Journal, end: Event, signal: str | None) -> RunResult:
    """Seal a run whose log contains its end, and return its result. Only events of sealing are appended."""
    closing = RunTerminated.of(end.payload)
    error = located_error(closing.error) if closing.error else None
    outcome = RunOutcome(closing.status, error, closing.outputs, tuple(closing.required_missing))
    finished = finished_from_log(outcome, rebuild(journal.history()).root)
    seal_run(journal, finished)
    control = Control()
    if signal is not None:
        control.cancel(signal)
    return finish_run(finished, journal, control)


class _ResumedCalls:
    """Answers the attempts of a continued run: from a decision about a call in doubt, otherwise by a live call."""

    def __init__(
        self, refusals: Sequence[CogcliError], doubts: OpenDoubts, intercept: Intercept | None
    ) -> None:
        self._refusals = refusals
        self._doubts = doubts
        self._intercept = intercept
        self.limit: Limit | None = None
        """The time limit of the run. Set once the engine exists."""

    def answer(self, attempt: Attempt, send: Callable[[Attempt], Answer]) -> Answer:
        """Return the answer to an attempt. Raise the first refusal, or a time-out if no time remains."""
        if self._refusals:
            raise self._refusals[0]
        decided = self._doubts.answer(attempt)
        if decided is not None:
            return decided
        if self.limit is not None and self.limit.is_gone:
            error = self.limit.timeout_error()
            error.left = False
            raise error
        if self._intercept is not None:
            return self._intercept(attempt, partial(send_unmasked, send=send))
        return send_unmasked(attempt, send)


class _Resumption(NamedTuple):
    """One continuation of a run whose log is open."""

    environment: RunEnvironment
    directory: Path
    request: ResumeRequest
    journal: Journal
    log: LogIndex
    started: Event
    fold: WaypointFold | None
    """The fold of the log, if it was read from its waypoint on."""
    refusals: list[CogcliError]
    """The reasons why no new work may start. Then only a rejection continues, with the specs in the log, until new
    work is due.
    """

    @property
    def _is_closed(self) -> bool:
        """Whether no new work may start."""
        return self.request.abort or bool(self.refusals)

    @property
    def _uses_pinned_specs(self) -> bool:
        """Whether the specs in the log are enough.

        They are for a gateway's session: its tools have no spec files, and only its client asks for new calls.
        """
        return self._is_closed or start_of(self.started).gateway is not None

    def run(
        self, redactor: Redactor, listener: Callable[[Event], None], control: Control
    ) -> RunResult:
        """Check all answers, append the resumption, then run the engine. Raise the same errors as `resume`."""
        environment, request, journal, log = (
            self._own_environment(),
            self.request,
            self.journal,
            self.log,
        )
        if not (request.abort or request.only_rejects):
            self._require_time()
        catalog, selection, selected, changed = self._load_specs()
        self._require_logins(catalog, selected)
        answers = match_answers(log, request.approve, request.reject)
        given = match_inputs(log, request.inputs, self.directory.name)
        approver = Approver(request.by, request.reason, request.signatures)
        now = environment.clock.now()
        require_approvers(self.started, answers, approver, environment.signatures, now)
        resolutions = resolutions_from(
            log,
            request.in_doubt,
            catalog.capability,
            by=request.by or "somebody",
            reason=request.reason,
            episode=self.directory.name,
        )
        agent = find_recorded_agent(environment.agent_of, catalog, self.started)
        workers = options_from_log(self.started.payload).max_workers
        live = build_live_runner(
            environment, catalog, selection, redactor,
            max_workers=workers, selected=selected, is_agent=agent is not None,
            policy=PolicyRequest.recorded(start_of(self.started)), sampled=log.sampled,
        )  # fmt: skip
        with self._open_agent(agent):
            self._append_resumption(changed, answered=bool(answers or given))
            try:
                for form in given:
                    form.record(journal, log, request.by or "somebody")
                for each in answers:
                    log.index_answer(append_answer(journal, each, approver))
                repeats = partial(find_repeats, environment.runs_dir, self.started.episode_id)
                doubts = OpenDoubts(log, journal, resolutions, repeats)
                if agent is not None and agent.secrets is not None:
                    agent.secrets.connect(redactor.add)
                recorded = selected if self._uses_pinned_specs else {}
                engine = self._build_engine(
                    catalog, RecordedBindingRunner(live, recorded), doubts, listener, control, agent
                )
                return self._run_engine(engine, control, agent)
            except CogcliError as error:
                if error in self.refusals:
                    self._leave_waiting()
                if not isinstance(error, UnusableEnvironment):
                    raise
                is_full = error.code == "env.disk" and not request.abort
                waiting = find_run_in_doubt(journal) if is_full else None
                if waiting is None:
                    raise
                return pause_in_doubt(journal, waiting, error, control)

    def _require_logins(self, catalog: Catalog, selected: Mapping[str, BindingChain]) -> None:
        """Raise ServiceResolutionError `service.login` if a step that is not done needs a login that does not exist.

        A closed run needs none, and a call in doubt may be decided without one. Calls in nested skills, gates and the
        calls of agents are checked when they come.
        """
        require, request = self.environment.require_logins, self.request
        skill = catalog.skills.get(start_of(self.started).skill.id)
        if require is None or skill is None or self._is_closed:
            return
        if request.only_rejects or request.in_doubt:
            return
        done = {step for run, step in self.log.closings if run == self.log.root}
        called = [catalog.capability(step.uses) for step in skill.steps if step.id not in done]
        chains = [selected[each.id] for each in called if each is not None and each.id in selected]
        require(catalog, [[each.service_id for each in chain.members] for chain in chains])

    @contextmanager
    def _open_agent(self, agent: AgentRun | None) -> Iterator[None]:
        """Lock the conversation of an agent and open its model, unless the run is only closed."""
        if agent is None or self.request.abort:
            yield
            return
        with agent.hold():
            try:
                agent.open_model(self.journal.history())  # before an approved effect takes place
            except CogcliError as error:
                if not self.request.only_rejects:
                    raise
                self.refusals.append(error)
            yield

    def _leave_waiting(self) -> None:
        """Leave the run waiting: its answer is recorded, but the next work may not start now."""
        payload = RunPaused(reason="answered: `resume` continues the run")
        self.journal.append(draft_of(payload, self.log.root or ""), durable=True)
        persist_pending(self.journal)

    def _own_environment(self) -> RunEnvironment:
        """Return the environment of this run: no call of a gateway's session waits for an answer to a service, and no
        agent's call asks the person at the terminal or the configured model.
        """
        environment, start = self._environment_with_user_files(), start_of(self.started)
        if start.gateway is not None:
            environment = environment._replace(pauses_for_input=False)
        elif start.using != "agent":
            return environment
        return environment._replace(person=None, open_sampler=None)

    def _environment_with_user_files(self) -> RunEnvironment:
        """Return the environment with permission for the files that the user typed at the start.

        The first event lists their inputs and the files that it may send. Without a proof of the event's origin, no
        permission is granted.
        """
        if not self.journal.is_allowed(self.started.seq):
            return self.environment
        start = start_of(self.started)
        environment = allow_typed_inputs(self.environment, start.inputs, start.typed)
        return environment._replace(files=frozenset(files_in_payload(start.files)))

    def _require_time(self) -> None:
        """Raise RunTimeoutError if earlier sessions used up the run's time and no new limit is set.

        An answer about a call in doubt is still accepted, but new calls fail then.
        """
        total, used = self.log.timeout, self.log.timed_ms / 1000
        if (
            self.request.timeout is None
            and total is not None
            and used >= total
            and not self.request.in_doubt
        ):
            name = self.directory.name
            text = f"the {total:g} s of this run are used up: its sessions took {used:.1f} s"
            hint = "give it more with --timeout, or close it with --abort"
            error = RunTimeoutError("run.timeout", text, hint=hint)
            error.next = (
                f"cogcli resume {name} --timeout {total:g}",
                f"cogcli resume {name} --abort",
            )
            raise error

    def _run_engine(self, engine: Engine, control: Control, agent: AgentRun | None) -> RunResult:
        skill, first = start_of(self.started).skill.id, request_from(self.started)
        finished = run_engine(
            engine, skill, first, self.log.root or "", self.journal, control, agent
        )
        return finish_run(finished, self.journal, control)

    def _build_engine(
        self, catalog: Catalog, live: RecordedBindingRunner, doubts: OpenDoubts, listener: Callable[[Event], None],
        control: Control, agent: AgentRun | None,
    ) -> Engine:  # fmt: skip
        environment, request, log = self.environment, self.request, self.log
        sink = ResumeSink(self.journal, log, control, abort=request.abort, refusals=self.refusals)
        policy = agent.policy if agent else rebuild_policy(catalog, self.started)
        ledger = open_ledger(environment, policy)
        if ledger is not None:
            # The log is whole and locked: what has no intent in it was not made, and is reserved anew.
            ledger.settle_episode(self.journal.episode_id, log.did_not_leave)

        calls = _ResumedCalls(self.refusals, doubts, environment.intercept)
        engine = build_engine_over_log(
            catalog,
            log,
            self.started,
            agent,
            sink=sink,
            limits=ledger and LimitAccount(ledger, self.journal.episode_id),
            dispatcher=sink.dispatcher,
            runner=InterceptedRunner(live, calls.answer),
            clock=environment.clock,
            ids=environment.ids,
            listener=NewEventListener(listener, log.last.seq or 0 if log.last else 0),
            approvals=Approvals(log.approvals),
            signatures=environment.signatures,
            earlier_approvals=self._earlier_approvals(),
            doubts=None if request.abort else doubts,
            snapshots=None if self._is_closed else self._live_files(catalog, agent),
            requested_actions=log.requested_actions if request.allow_changed_specs else None,
            service_changes=live.live.service_changes,
        )
        if engine.policy is None and agent is None and not request.abort:
            sink.leave_log = partial(engine.leave_log, self.journal, self.journal)
        engine.waits_in_doubt = not request.abort
        engine.spent_ms, engine.timed_ms = log.active_time.milliseconds, log.timed_ms
        if request.timeout is not None:
            engine.timeout_seconds, engine.timed_ms = request.timeout, 0
        calls.limit = (agent.program if agent else SKILL).limit(engine)
        return engine

    def _earlier_approvals(self) -> EarlierApprovals | None:
        """Return the approvals that this rerun may still reuse. None if the run is being closed, or if specs have
        changed.
        """
        if self._is_closed or self.request.allow_changed_specs or self.log.changed:
            return None
        return recorded_approvals(self.started, self.directory, shared=self.environment.shared)

    def _live_files(self, catalog: Catalog, agent: AgentRun | None) -> SnapshotWriter:
        """Return the writer of the run's files during the run."""
        start, log = start_of(self.started), self.log
        limits = PolicyRequest.recorded(start)
        earlier = start.effects or start.taken_over or start.contracts or start.approvals
        others = agent or limits or earlier or self.request.allow_changed_specs or log.changed
        has_waypoints = not others and has_foldable_loops(catalog)
        return live_files(self.journal, log.root or "", has_waypoints=has_waypoints, fold=self.fold)

    def _load_specs(self) -> tuple[Catalog, SelectionOptions, dict[str, BindingChain], list[str]]:
        """Return the catalog to continue with, the selection of bindings, the recorded binding chains, and the changed
        pins.

        To close a run, or to reject when the current specs are refused, the specs in its log are used. Raise
        UnusableEnvironment `resume.changed-specs` or ProblemsFound.
        """
        if self._uses_pinned_specs:
            pinned = self._load_pinned_specs()
            if pinned is not None:
                return pinned
        try:
            return self._load_present_specs()
        except CogcliError as error:
            pinned = self._load_pinned_specs() if self.request.only_rejects else None
            if pinned is None:
                raise
            self.refusals.append(error)
            return pinned

    def _load_pinned_specs(
        self,
    ) -> tuple[Catalog, SelectionOptions, dict[str, BindingChain], list[str]] | None:
        """Return the same as `_load_specs`, from the log alone. None for a log without its specs."""
        if not start_of(self.started).pins.specs_blob:
            return None
        pinned = read_pinned_catalog(self.started, self.directory)
        catalog = without_secret_requirements(pinned)
        options = options_from_log(self.started.payload)
        selection = SelectionOptions.of(options, self.environment.environ)
        return catalog, selection, recorded_chains(self.started), []

    def _load_present_specs(
        self,
    ) -> tuple[Catalog, SelectionOptions, dict[str, BindingChain], list[str]]:
        """Return the same as `_load_specs`, from the current specs, which are read once.

        If specs have changed and that is allowed, the recorded chains are not used. Each capability is as strict as the
        stricter of its declarations.
        """
        catalog, changed = self._read_catalog()
        options = options_from_log(self.started.payload)
        selected = {} if changed else recorded_chains(self.started)
        # A recorded binding counts as the user's choice: no other binding replaces it.
        binds = {
            **options.bind,
            **{id: chain.members[0].binding_id for id, chain in selected.items()},
        }
        options = options.replace(bind=binds, allow_hosts=list(self.request.allow_hosts))
        selection = SelectionOptions.of(options, self.environment.environ)
        is_agent = start_of(self.started).agent is not None
        found = (check_agent if is_agent else check)(catalog, options=selection)
        blocking = [problem for problem in found if problem.severity != "W"]
        if blocking:
            raise ProblemsFound(blocking)
        return catalog, selection, selected, changed

    def _read_catalog(self) -> tuple[Catalog, list[str]]:
        """Return the current specs, made as strict as the original ones, and the changed pins."""
        started, allowed = self.started, self.request.allow_changed_specs
        # With changed specs the original ones count too: each capability is as strict as either declaration.
        read_pinned = partial(read_pinned_catalog, started, self.directory)
        pinned = read_pinned().capabilities if allowed else {}
        gates = {gate.capability for capability in pinned.values() for gate in capability.gates}
        catalog, changed = reach_present(
            self.environment.open_registry(), started, read_pinned, also=sorted(gates)
        )
        if changed and not allowed:
            names = ", ".join(f"`{name}`" for name in changed)
            raise UnusableEnvironment(
                "resume.changed-specs",
                f"changed since this run began: {names}",
                hint="restore them, or continue with --allow-changed-specs",
            )
        if changed:
            catalog = catalog._replace(capabilities=merge_stricter(catalog.capabilities, pinned))
        return catalog, changed

    def _append_resumption(self, changed: list[str], *, answered: bool) -> None:
        request, last = self.request, self.log.last or self.started
        reason = "answered" if answered else "resumed"
        if request.abort:
            reason = f"closed by {request.by or 'somebody'}" + (
                f": {request.reason}" if request.reason else ""
            )
        if request.allow_changed_specs:
            reason += ", changed specs allowed"
        if request.head:
            reason += f", what was allowed up to {request.head} given again"
        checkpoint = {"offset": last.seq, "event": last.id}
        payload = RunResumed(
            reason=reason,
            checkpoint=checkpoint,
            changed_specs=list(changed),
            timeout_seconds=None if request.abort else request.timeout,
        )
        draft = draft_of(payload, self.log.root or "", caused_by=last.id)
        self.log.record_resumption(self.journal.append(draft))


def recorded_chains(started: Event) -> dict[str, BindingChain]:
    """Return the non-empty binding chains pinned at the start, by capability. Raise UnusableEnvironment
    `episode.unreadable`."""
    recorded = RunStarted.of(started.payload).selection
    try:
        chains = {id: chain_from_payload(each) for id, each in recorded.items()}
    except (AttributeError, KeyError, TypeError) as error:
        text = "this log does not record the chosen bindings"
        raise UnusableEnvironment("episode.unreadable", text) from error
    return {id: chain for id, chain in chains.items() if chain.members}
