"""The assembly of a run from a journal, a runner, an engine and signal handling.

`run`, `trace SKILL`, `rerun`, `serve mcp`, probes and verification launch a prepared run. `resume` and `replay` build
the same engine over a log.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from cogcli import __version__
from cogcli.base.calls import Answer, Attempt, BindingChain
from cogcli.base.canonical import compact
from cogcli.base.errors import CogcliError, UnusableEnvironment
from cogcli.base.jsonvalue import NOTHING
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.redact import Redactor
from cogcli.declarations.envelope import Event
from cogcli.declarations.options import RunOptions, options_from_log
from cogcli.declarations.run_start import EarlierApproval, start_of
from cogcli.declarations.value_types import Json
from cogcli.episode.journal import Journal
from cogcli.episode.log_lines import FIRST, rules_of
from cogcli.episode.store import Store
from cogcli.policy.approvals import Approvals
from cogcli.protocols.invoker import InvokerContext
from cogcli.protocols.live.breaker import process_circuits
from cogcli.protocols.live.runner import LiveRunner
from cogcli.protocols.pythoncall.module_access import SHIPPED
from cogcli.protocols.pythoncall.stdout_capture import divert_streams
from cogcli.protocols.secrets import Secrets
from cogcli.run.engine.context import Engine, LimitAccount
from cogcli.run.engine.doubt import EarlierCalls
from cogcli.run.engine.run import SKILL, FinishedRun, Request, execute
from cogcli.run.given_inputs import RequestedRun, prepare_given
from cogcli.run.input_origins import select_typed_inputs
from cogcli.run.policy_request import PolicyRequest
from cogcli.run.prepare import (
    AgentOf,
    AgentRun,
    Intercept,
    PreparedRun,
    RunEnvironment,
    call_policy,
)
from cogcli.run.results import (
    Control,
    RunResult,
    close_after_error,
    finish_run,
    pause_in_doubt,
    publish,
    seal_run,
)
from cogcli.run.waypoints import has_foldable_loops, live_files
from cogcli.specs.catalog import Catalog
from cogcli.specs.contradictions import Contradictions
from cogcli.specs.selection import SelectionOptions, select
from cogcli.specs.spec_snapshot import document_of
from cogcli.state.reducer import ReusedResult

if TYPE_CHECKING:
    from cogcli.run.engine.ports import (
        CallPolicy,
        CapabilityRunner,
        EarlierApprovals,
        LimitLedger,
    )
    from cogcli.run.log_index import LogIndex
    from cogcli.specs.registry import Registry

_STARTS_PROGRAMS: Final = frozenset((f"{SHIPPED}commands",))
"""Shipped modules with functions that start one of the user's programs."""
Watch = Callable[[PreparedRun, Control], AbstractContextManager[Callable[[Event], None]]]
"""A context manager around a run: returns the listener of its events, and may cancel the run."""


class RunIdentity(NamedTuple):
    """The identity of a run that its caller determines: a line of a batch."""

    run_id: str
    open_journal: Callable[[Redactor], Journal]
    """Returns the empty log of the run, which its caller has claimed."""


class EarlierRun(NamedTuple):
    """The results and approvals that a rerun reuses. Empty for a first run."""

    results: Mapping[str, ReusedResult] = {}
    """The results of the steps that are not run, by step path."""
    effects: Mapping[str, Any] = {}
    """The effects, as in `run.started`."""
    approvals: Sequence[EarlierApproval] = ()
    """The unused approvals, of which the new run may take over each once."""


_NO_EARLIER_RUN: Final = EarlierRun()


class InterceptedRunner(NamedTuple):
    """A capability runner that passes each attempt to an interceptor."""

    live: CapabilityRunner
    intercept: Intercept

    def chain(self, capability_id: str) -> BindingChain:
        return self.live.chain(capability_id)

    def attempt(self, attempt: Attempt) -> Answer:
        return self.intercept(attempt, self.live.attempt)

    def close(self, grace: float) -> None:
        self.live.close(grace)


def launch_given(
    environment: RunEnvironment, catalog: Catalog, given: RequestedRun, watch: Watch
) -> RunResult:
    """Prepare a run over the closure of its skill, and launch it within `watch`.

    Raise the same errors as `prepare_given` and `launch`.
    """
    prepared = prepare_given(catalog, given, environment.environ)
    control = Control()
    with watch(prepared, control) as listener:
        return launch(environment, prepared, listener=listener, control=control)


def launch(
    environment: RunEnvironment,
    prepared: PreparedRun,
    *,
    listener: Callable[[Event], None] | None = None,
    control: Control | None = None,
    approvals: Approvals | None = None,
    earlier: EarlierRun = _NO_EARLIER_RUN,
    intercept: Intercept | None = None,
    identity: RunIdentity | None = None,
) -> RunResult:
    """Run a prepared run to its end as a new sealed episode, and return its result.

    A rerun reuses the results in `earlier`. All attempts go through `intercept`. Without an `identity` the run gets new
    ids. Raise UnusableEnvironment if the log cannot be written; the written part stays readable.
    """
    control = control or Control()
    ledger = open_ledger(environment, prepared.policy)
    redactor = Redactor()
    if identity is None:
        journal = _create_journal(environment, prepared.request.options, redactor)
        run_id = environment.ids.run_id()
    else:
        journal, run_id = identity.open_journal(redactor), identity.run_id
    try:
        allowed, typed = _allow_typed_files(environment, prepared)
        started = _Launch(
            allowed._replace(files=frozenset(prepared.files)), prepared, earlier, journal, run_id
        )
        runner = started.build_runner(redactor)
        engine = started.build_engine(
            runner, intercept or environment.intercept, ledger, listener, approvals
        )
        agent = prepared.agent
        if agent is not None and agent.secrets is not None:
            agent.secrets.connect(redactor.add)
        request = started.build_request(runner, typed)
        finished = run_engine(engine, prepared.skill.id, request, run_id, journal, control, agent)
        result = finish_run(finished, journal, control, prepared.catalog)
        result = result._replace(leftovers=tuple(runner.leftovers))
    except BaseException as error:
        waiting = close_after_error(journal)
        if waiting is None or not (isinstance(error, CogcliError) and error.code == "env.disk"):
            raise
        result = pause_in_doubt(journal, waiting, error, control)
    finally:
        journal.close()
    return publish(result, environment.export, environment.hooks)


class _Launch(NamedTuple):
    """One new run whose log is open."""

    environment: RunEnvironment
    prepared: PreparedRun
    earlier: EarlierRun
    journal: Journal
    run_id: str

    def build_runner(self, redactor: Redactor) -> LiveRunner:
        """Return the runner of the run's calls."""
        return build_live_runner(
            self.environment,
            self.prepared.catalog,
            self.prepared.selection,
            redactor,
            max_workers=self.prepared.request.options.max_workers,
            is_agent=self.prepared.agent is not None,
            policy=self.prepared.request.policy,
        )

    def build_engine(
        self,
        runner: LiveRunner,
        intercept: Intercept | None,
        ledger: LimitLedger | None,
        listener: Callable[[Event], None] | None,
        approvals: Approvals | None,
    ) -> Engine:
        """Return the engine of the run. Its calls go through `intercept`, if there is one."""
        environment, prepared, earlier = self.environment, self.prepared, self.earlier
        return build_engine(
            prepared.catalog,
            sink=self.journal,
            lines=self.journal,
            runner=InterceptedRunner(runner, intercept) if intercept else runner,
            clock=environment.clock,
            ids=environment.ids,
            options=prepared.request.options,
            listener=listener,
            approvals=approvals,
            signatures=environment.signatures,
            earlier_approvals=_redeemable_approvals(environment, self.journal, earlier.approvals),
            taken_over=earlier.results,
            effects=earlier.effects,
            policy=prepared.policy,
            contradictions=prepared.contradictions,
            service_changes=runner.service_changes,
            limits=ledger and LimitAccount(ledger, self.journal.episode_id),
            snapshots=live_files(self.journal, self.run_id, has_waypoints=self._may_have_waypoints),
        )

    @property
    def _may_have_waypoints(self) -> bool:
        """Return whether readers of the log may skip finished rounds, because only steps decide how the run
        continues.
        """
        prepared = self.prepared
        deciders = (prepared.policy, prepared.agent, *self.earlier, prepared.contradictions.lenient)
        return not any(deciders) and has_foldable_loops(prepared.catalog)

    def build_request(self, runner: LiveRunner, typed: list[str]) -> Request:
        """Return the request of the run. `typed` are the inputs whose files it may read."""
        earlier, prepared = self.earlier, self.prepared
        return _build_request(prepared, self.journal, runner.pinned())._replace(
            taken_over={path: one.to_payload() for path, one in earlier.results.items()},
            effects=earlier.effects,
            approvals={each.approval_id: each.json for each in earlier.approvals},
            typed=typed,
            files=[each.to_payload() for each in prepared.files],
        )


def open_ledger(environment: RunEnvironment, policy: CallPolicy | None) -> LimitLedger | None:
    """Return the counters of the policy's limits, or None if it has no limits.

    Raise UnusableEnvironment if they cannot be used: then no call may be made.
    """
    if policy is None or not policy.has_limits:
        return None
    if environment.limits is None:
        raise UnusableEnvironment("limits.lost", "this program has no counters for limits of packs")
    ledger = environment.limits()
    ledger.require_sound()
    return ledger


def _redeemable_approvals(
    environment: RunEnvironment, journal: Journal, approvals: Sequence[EarlierApproval]
) -> EarlierApprovals | None:
    """Return the unused approvals that a rerun may use; None if `approvals` is empty."""
    if not approvals:
        return None
    from cogcli.run.earlier_approvals import RedeemableApprovals  # only a rerun needs it

    return RedeemableApprovals(
        environment.runs_dir, journal.episode_id, approvals, shared=environment.shared
    )


def _create_journal(
    environment: RunEnvironment, options: RunOptions, redactor: Redactor
) -> Journal:
    """Return the journal of a new episode with new ids. The episode holds the exclusive name of its run. Raise
    UnusableEnvironment `env.runs-dir`, `run.exclusive`.
    """
    ids = environment.ids
    episode_id = f"ep_{ids.ulid()}"
    store = open_store(environment)
    with _hold_name(store, options, episode_id):
        return store.create(
            episode_id,
            trace_id=options.trace_id or ids.trace_id(),
            clock=environment.clock,
            ids=ids,
            redactor=redactor,
            durability=options.durability,
        )


def open_store(environment: RunEnvironment) -> Store:
    """Return the store of the runs directory, which writes episodes as this user."""
    sign, owner = environment.signer(), environment.owner()
    return Store(environment.runs_dir, sign=sign, owner=owner, shared=environment.shared)


def _hold_name(store: Store, options: RunOptions, episode_id: str) -> AbstractContextManager[None]:
    """Return the context in which an episode gets the exclusive name of its run."""
    if not options.exclusive:
        return nullcontext()
    from cogcli.episode.exclusive import hold_name  # most runs hold no name

    return hold_name(store.runs_dir, options.exclusive, episode_id, shared=store.shared)


def _allow_typed_files(
    environment: RunEnvironment, prepared: PreparedRun
) -> tuple[RunEnvironment, list[str]]:
    """Return an environment in which the run may also read files named by typed inputs, and the names of these
    inputs.
    """
    before = environment.reads
    if before is None:
        return environment, []
    values = select_typed_inputs(prepared.inputs, prepared.request.origins)
    names = [name for name, value in values.items() if before.with_typed(value) != before]
    return allow_typed_inputs(environment, prepared.inputs, names), names


def allow_typed_inputs(
    environment: RunEnvironment, inputs: Mapping[str, object], names: Iterable[str]
) -> RunEnvironment:
    """Return an environment in which the run may also read the files that these inputs name."""
    values = [inputs[name] for name in names if name in inputs]
    if environment.reads is None or not values:
        return environment
    return environment._replace(reads=environment.reads.with_typed(values))


def run_engine(
    engine: Engine, skill_id: str, request: Request, run_id: str, journal: Journal, control: Control,
    agent: AgentRun | None,
) -> FinishedRun:  # fmt: skip
    """Run an engine until the run ends, or until `control` cancels it. Then seal the episode, or leave it waiting."""
    control.attach(engine)
    with divert_streams():
        program = agent.program if agent else SKILL
        finished = execute(engine, engine.plan_of(skill_id), request, run_id, program)
    seal_run(journal, finished)
    return finished


def build_engine(
    catalog: Catalog,
    *,
    effects: Mapping[str, Any] | None = None,
    result_sources: Mapping[str, str] | None = None,
    **parts: Any,
) -> Engine:
    """Return the engine of one run tree over a catalog. Capabilities are found by id and by alias.

    `effects` are those of the source run of a rerun, as in `run.started`. `result_sources` are passed to
    EarlierCalls. `parts` are the other arguments of Engine.
    """
    earlier = EarlierCalls(effects, result_sources) if effects else None
    return Engine(
        capabilities=catalog.by_name, skills=catalog.skills, earlier_calls=earlier, **parts
    )


def build_engine_over_log(
    catalog: Catalog, log: LogIndex, started: Event, agent: AgentRun | None, **parts: Any
) -> Engine:
    """Return an engine that runs a log again, with the options and reused results of its first event.

    `parts` are the other arguments of Engine.
    """
    start = start_of(started)
    effects = start.effects or None
    engine = build_engine(
        catalog,
        options=options_from_log(started.payload),
        taken_over=log.reused,
        effects=effects,
        result_sources=log.result_source_by_step if effects else None,
        policy=agent.policy if agent else rebuild_policy(catalog, started),
        contradictions=Contradictions.from_log(start.contracts),
        form_answers=log.form_answers,
        **parts,
    )
    engine.timeout_seconds = log.timeout
    engine.passes_null = rules_of(started.payload) == FIRST
    return engine


def rebuild_policy(catalog: Catalog, started: Event) -> CallPolicy | None:
    """Return the policy of a recorded run, over the catalog to continue with."""
    start = start_of(started)
    return call_policy(catalog, PolicyRequest.recorded(start), start.skill.id, start.inputs)


def find_recorded_agent(
    agent_of: AgentOf | None, catalog: Catalog, started: Event
) -> AgentRun | None:
    """Return the agent run, or the session of a gateway, that the first event records. None for the run of a skill."""
    start = start_of(started)
    has_program = start.agent is not None or start.gateway is not None
    return agent_of(started, catalog) if agent_of and has_program else None


def build_live_runner(
    environment: RunEnvironment,
    catalog: Catalog,
    selection: SelectionOptions,
    redactor: Redactor,
    *,
    max_workers: int = 8,
    selected: Mapping[str, BindingChain] | None = None,
    is_agent: bool = False,
    policy: PolicyRequest | None = None,
    sampled: Mapping[str, int] = NOTHING,
) -> LiveRunner:
    """Return a runner that calls services through the selected bindings of a catalog.

    Secrets in use are added to `redactor`. `selected` are recorded chains by capability, which replace the
    selection. `policy` are the policy flags of the run, and `sampled` the usage of the model that services asked in
    earlier processes of the run.
    """
    reads = environment.reads
    if reads is not None and not is_agent:
        # Called when a file of credentials is read, long after the runner exists.
        reads = reads._replace(
            is_online=lambda: may_reach_network(catalog, _find_used_services(runner))
        )
    runner = LiveRunner(
        catalog,
        lambda capability_id: select(catalog, capability_id, selection),
        build_invoker_context(environment, redactor.add, max_workers=max_workers)._replace(
            # Functions see the same specs as the run.
            open_registry=partial(_open_registry, environment, catalog),
            allow_hosts=selection.allow_hosts,
            reads=reads,
            open_sampler=None
            if environment.open_sampler is None or is_agent
            else partial(environment.open_sampler, redactor.add, catalog, policy, sampled),
        ),
        environment.circuits or process_circuits(),
        selected,
    )
    return runner


def _find_used_services(runner: LiveRunner) -> set[str]:
    """Return the ids of the services in the chains of a run."""
    chains = runner.pinned().values()
    return {each["service_id"] for chain in chains for each in chain["members"]}


def may_reach_network(catalog: Catalog, service_ids: Iterable[str]) -> bool:
    """Return whether one of these services may reach another machine.

    Only shipped functions that run in this process and start no program cannot. The code of a user's function is
    unknown.
    """
    for service in (catalog.services[id] for id in service_ids):
        module = service.module or ""
        if (
            not catalog.in_process(service)
            or not module.startswith(SHIPPED)
            or module in _STARTS_PROGRAMS
        ):
            return True
    return False


def _open_registry(environment: RunEnvironment, catalog: Catalog) -> Registry:
    """Return the registry with the layers of a catalog, or the whole registry if the catalog has no layers."""
    registry = environment.open_registry()
    return registry.with_layers(catalog.layers) if catalog.layers else registry


def build_invoker_context(
    environment: RunEnvironment, remember: Callable[[str], None], *, max_workers: int = 8
) -> InvokerContext:
    """Return the context for invokers. Each secret that is read is passed to `remember`."""
    return InvokerContext(
        secrets=Secrets(environment.environ, remember),
        clock=environment.clock,
        state_dir=environment.state_dir,
        store_dir=environment.store_dir,
        bytecode_dir=environment.bytecode_dir,
        environ=environment.environ,
        max_workers=max_workers,
        use_env_proxy=environment.use_env_proxy,
        reads=environment.reads,
        files=environment.files,
        write_roots=environment.write_roots,
        open_registry=environment.open_registry,
        on_progress=environment.on_progress,
        on_question=environment.on_question,
        person=environment.person,
        pauses_for_input=environment.pauses_for_input,
    )


def _find_variables(selection: Mapping[str, Json], catalog: Catalog) -> dict[str, dict[str, str]]:
    """Return by service the variable values of the services in the pinned chains. These values are not secrets."""
    used = {each["service_id"] for chain in selection.values() for each in chain["members"]}
    return {id: dict(values) for id in sorted(used) if (values := catalog.services[id].values)}


def _build_request(prepared: PreparedRun, journal: Journal, selection: dict[str, Json]) -> Request:
    skill, frame, agent = prepared.skill, prepared.frame, prepared.agent
    variables = _find_variables(selection, prepared.catalog)
    own = " ".join(f"{skill.name}: {skill.description}".split())
    return Request(
        task=agent.task if agent else frame.get("goal") or own,
        inputs=prepared.inputs,
        frame=frame,
        seed=prepared.request.options.seed,
        tags=prepared.request.options.tags,
        pins={
            "specs": dict(sorted(prepared.catalog.pins.items())),
            "policy": prepared.policy.name if prepared.policy else "builtin.default",
            "cogcli": __version__,
            "python": ".".join(map(str, sys.version_info[:3])),
            "specs_blob": journal.put_blob(compact(document_of(prepared.catalog))),
            **({"variables": variables} if variables else {}),
            **(agent.pins if agent else {}),
        },
        selection=selection,
        policy=policy.to_payload() if (policy := prepared.request.policy) else {},
        agent=agent.payload if agent else {},
        gateway=agent.gateway if agent else {},
    )
