"""Running a skill: load what it reaches, check all, run it as an episode, seal that."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from cogcli import __version__
from cogcli.app.run_inputs import check_frame, check_inputs
from cogcli.core.canonical import compact
from cogcli.core.errors import ABORTED, OK, CogcliError
from cogcli.core.problems import Problem, ProblemsFound, sort_problems
from cogcli.specs.selection import SelectionOptions
from cogcli.specs.spec_snapshot import document_of

if TYPE_CHECKING:
    from cogcli.app.settings import Settings
    from cogcli.engine.context import Engine, RunOptions
    from cogcli.engine.ports import CapabilityRunner
    from cogcli.engine.run import Finished, Request
    from cogcli.episode.journal import Journal
    from cogcli.episode.log_index import LogIndex
    from cogcli.events.envelope import Event
    from cogcli.mapping.apply import ReusedResult
    from cogcli.specs.catalog import Catalog
    from cogcli.specs.fields import Fields
    from cogcli.specs.registry import Registry
    from cogcli.specs.skill import Skill


class RunRequest(NamedTuple):
    """What the caller asks, as given."""

    skill_id: str
    inputs: dict[str, Any]
    frame: dict[str, Any]
    trace_id: str | None
    trust_level: str = "standard"
    confirmed: tuple[str, ...] = ()
    binds: Mapping[str, str] = {}
    fail_fast: bool = True
    max_workers: int = 8
    timeout: float | None = None
    step_timeout: float = 60.0
    conformance: str | None = None
    seed: int = 0
    tags: Mapping[str, str] = {}
    durability: str = "process"


class CheckedSkill(NamedTuple):
    """A skill that may run: its catalog without blocking problems, its inputs and frame checked."""

    skill: Skill
    catalog: Catalog
    inputs: dict[str, Any]
    frame: dict[str, Any]
    selection: SelectionOptions
    warnings: list[Problem]


class RunResult(NamedTuple):
    """How a run ended. `error` is the envelope's error object; `counts` are steps by status."""

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
    leftovers: tuple[str, ...] = ()
    """What servers left running when the run was over; it was killed."""
    stopped_by: str = ""
    """The signal that ended it or made it wait, if one did."""
    in_doubt: tuple[str, ...] = ()
    """The steps, items among them, whose effects may have happened; a person has to decide about each."""


class Control:
    """Ends a run from outside. `cancel` may be called from a signal handler, twice to leave no grace."""

    def __init__(self) -> None:
        self._engine: Engine | None = None
        self.signals: list[str] = []

    def attach(self, engine: Engine) -> None:
        """Reach the run from now on; signals that came before are passed on."""
        self._engine = engine
        for name in self.signals:
            engine.loop.interrupt(name)

    def cancel(self, signal_name: str) -> None:
        """Ask the run to end because of this signal."""
        self.signals.append(signal_name)
        if self._engine is not None:
            self._engine.loop.interrupt(signal_name)


def load_skill_inputs(settings: Settings, skill_id: str) -> Fields:
    """The declared inputs of a skill. Raises SkillNotFoundError, or ProblemsFound where its file has errors."""
    catalog = _registry(settings).reach(skill_id)
    return _skill(catalog, skill_id).inputs


def reach(settings: Settings, skill_id: str) -> Catalog:
    """All that a skill can reach, in order or not. Raises SkillNotFoundError."""
    return _registry(settings).reach(skill_id)


def load(settings: Settings, request: RunRequest) -> CheckedSkill:
    """What a run needs, all checks passed. Nothing is started or written.

    Raises SkillNotFoundError, or ProblemsFound with every problem: those of specs (exit 3, or 4 where all are
    `safety.scope`) before those of inputs (exit 2).
    """
    from cogcli.specs.checks import check

    catalog = _registry(settings).reach(request.skill_id)
    options = SelectionOptions(request.binds, request.conformance, settings.environ)
    found = check(catalog, options=options)
    blocking = [problem for problem in found if problem.severity != "W"]
    skill = catalog.skills.get(request.skill_id)
    inputs, wrong = check_inputs(skill.inputs, request.inputs) if skill else ({}, [])
    frame, wrong_frame = check_frame(request.frame)
    if blocking or wrong or wrong_frame:
        raise ProblemsFound(blocking + wrong + wrong_frame)
    warnings = [problem for problem in found if problem.severity == "W"]
    return CheckedSkill(_skill(catalog, request.skill_id), catalog, inputs, frame, options, warnings)


def run(
    settings: Settings,
    loaded: CheckedSkill,
    request: RunRequest,
    *,
    listener: Callable[[Event], None] | None = None,
    control: Control | None = None,
    taken_over: Mapping[str, ReusedResult] | None = None,
    effects: Mapping[str, Any] | None = None,
    around: Callable[[CapabilityRunner], CapabilityRunner] | None = None,
) -> RunResult:
    """Run a loaded skill to its end as a sealed episode; steps in `taken_over` are not done again. `effects`
    tells what the run did that this one runs again, as its first event will.

    `around` may put something between the engine and the live calls, to look at what goes through.
    Raises EnvironmentRefusal where the log cannot be written: what is there stays readable.
    """
    from cogcli.app.launch import engine_of, live_runner
    from cogcli.app.signing import signer_of
    from cogcli.core.redact import Redactor
    from cogcli.engine.run import execute
    from cogcli.episode.seal import give_up
    from cogcli.episode.store import Store
    from cogcli.protocols.pythoncall.stdout_capture import divert_streams

    ids = settings.ids
    redactor = Redactor()
    journal = Store(settings.runs_dir, sign=signer_of(settings)).create(
        f"ep_{ids.ulid()}",
        trace_id=request.trace_id or ids.trace_id(),
        clock=settings.clock,
        ids=ids,
        redactor=redactor,
        durability=request.durability,
    )
    try:
        runner = live_runner(
            settings, loaded.catalog, loaded.selection, redactor, max_workers=request.max_workers
        )
        engine = engine_of(
            loaded.catalog,
            options=_options(request),
            sink=journal,
            runner=around(runner) if around else runner,
            clock=settings.clock,
            ids=ids,
            listener=listener,
            taken_over=taken_over,
            effects=effects,
        )
        asked = _asked(loaded, request, journal, runner.pinned())
        asked = asked._replace(
            taken_over={path: one.as_dict() for path, one in (taken_over or {}).items()},
            effects=effects or {},
        )
        if control is not None:
            control.attach(engine)
        with divert_streams():
            finished = execute(engine, engine.plan_of(loaded.skill.id), asked, ids.run_id())
        seal_run(journal, finished)
        result = finish_run(finished, journal, control, loaded.catalog)
        return result._replace(leftovers=tuple(runner.leftovers))
    except BaseException as error:
        waiting = give_up(journal)
        if waiting is None or not _of_disk(error):
            raise
        return pause_in_doubt(journal, waiting, error, control)
    finally:
        journal.close()


# ---------------------------------------------------------------------------------------------------------------------


def _registry(settings: Settings) -> Registry:
    from cogcli.specs.cache import CompiledCache
    from cogcli.specs.registry import Registry

    return Registry(settings.layers, cache=CompiledCache(settings.cache_file), base=settings.base)


def _skill(catalog: Catalog, skill_id: str) -> Skill:
    skill = catalog.skills.get(skill_id)
    if skill is None:
        raise ProblemsFound(sort_problems(catalog.problems))
    return skill


def _options(request: RunRequest) -> RunOptions:
    from cogcli.engine.context import RunOptions

    return RunOptions(
        trust_level=request.trust_level,
        confirmed_capabilities=frozenset(request.confirmed),
        fail_fast=request.fail_fast,
        max_workers=request.max_workers,
        step_timeout_seconds=request.step_timeout,
        timeout_seconds=request.timeout,
        binds=request.binds,
        required_conformance_profile=request.conformance,
    )


def _asked(loaded: CheckedSkill, request: RunRequest, journal: Journal, selection: dict[str, Any]) -> Request:
    from cogcli.engine.run import Request

    skill = loaded.skill
    one_line = " ".join(f"{skill.name}: {skill.description}".split())
    return Request(
        task=loaded.frame.get("goal") or one_line,
        inputs=loaded.inputs,
        frame=loaded.frame,
        seed=request.seed,
        tags=request.tags,
        pins=_pins(loaded, journal),
        selection=selection,
    )


def _pins(loaded: CheckedSkill, journal: Journal) -> dict[str, Any]:
    """What this run stands on: every spec by the digest of its file, and all of them in one blob."""
    catalog = loaded.catalog
    return {
        "specs": dict(sorted(catalog.pins.items())),
        "policy": "builtin.default",
        "cogcli": __version__,
        "python": ".".join(map(str, sys.version_info[:3])),
        "specs_blob": journal.put_blob(compact(document_of(catalog))),
    }


def seal_run(journal: Journal, finished: Finished) -> None:
    """Make the documents of a run that ended, or of one that waits."""
    from cogcli.episode.seal import persist_pending, seal

    if finished.outcome.status == "pending":
        persist_pending(journal)
    else:
        seal(journal)


def _of_disk(error: BaseException) -> bool:
    return isinstance(error, CogcliError) and error.code == "env.disk"


def pause_in_doubt(
    journal: Journal, log: LogIndex, error: BaseException, control: Control | None
) -> RunResult:
    """How a run stands whose log could not go on, with an effect in it that may have happened."""
    from cogcli.core.errors import EffectInDoubtError
    from cogcli.engine.outcome import RunOutcome, name_step
    from cogcli.engine.run import Finished
    from cogcli.episode.state_rebuild import rebuild

    intent = log.open_doubts[0]
    told, step_id = intent.payload, intent.step_id or ""
    doubt = EffectInDoubtError(
        "effect.in-doubt",
        f"`{told['capability']}` may have happened, its answer could not be recorded: {error}",
        hint="free space, look at the other side, then resume with --in-doubt done, rerun, skip or fail",
        left=True,
    )
    doubt.step_id, doubt.capability_id = intent.step_id, told["capability"]
    doubt.binding_id, doubt.service_id = told.get("binding"), told.get("service")
    state = rebuild([event for _, event in journal.events()])
    doubt.message = name_step(doubt, step_id.partition("/")[0], "")
    steps = {
        name: state.step_results[name].status if name in state.step_results else "pending"
        for name in state.plan_order
    }
    return finish_run(Finished(RunOutcome("pending", doubt, {}), state, steps), journal, control)


def finish_run(
    finished: Finished, journal: Journal, control: Control | None, catalog: Catalog | None = None
) -> RunResult:
    """How a run ended, for whoever asked for it. Errors get their place in the files of `catalog`."""
    outcome, state = finished.outcome, finished.state
    return RunResult(
        status=outcome.status,
        exit_code=_exit_code(finished, control),
        outputs=outcome.outputs if outcome.status in ("ok", "partial") else None,
        error=_told(outcome.error, catalog) if outcome.error else None,
        episode_id=journal.episode_id,
        run_id=state.run_id,
        trace_id=state.trace_id,
        directory=str(journal.directory),
        metrics=state.trace.metrics.as_dict(),
        counts=dict(Counter(finished.steps.values())),
        stopped_by=control.signals[0] if control and control.signals else "",
        in_doubt=_in_doubt(journal) if outcome.status == "pending" else (),
    )


def _in_doubt(journal: Journal) -> tuple[str, ...]:
    from cogcli.episode.log_index import LogIndex

    log = LogIndex(event for _, event in journal.events())
    return tuple(event.step_id or "" for event in log.open_doubts)


def _exit_code(finished: Finished, control: Control | None) -> int:
    outcome = finished.outcome
    if outcome.status == "ok":
        return OK
    if outcome.status == "aborted":
        return ABORTED[control.signals[0]] if control and control.signals else ABORTED["SIGINT"]
    if outcome.status == "partial":
        return 1
    return outcome.error.exit_code if outcome.error else 1


def _told(error: CogcliError, catalog: Catalog | None) -> dict[str, Any]:
    from cogcli.app.error_payload import error_payload

    return error_payload(error, catalog)
