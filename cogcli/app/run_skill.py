"""`run`: load the closure of a skill, check it, run it as an episode, seal the episode."""

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
from cogcli.core.step_path import StepPath
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
    """The skill, inputs and options of one run, not yet checked. Times are in seconds."""

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
    """A skill that passed all checks, with checked inputs and frame."""

    skill: Skill
    catalog: Catalog
    inputs: dict[str, Any]
    frame: dict[str, Any]
    selection: SelectionOptions
    warnings: list[Problem]


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
    leftovers: tuple[str, ...] = ()
    """A sentence per process that a server left running and that was killed."""
    stopped_by: str = ""
    """The name of the first signal, empty without one."""
    in_doubt: tuple[str, ...] = ()
    """The step paths of undecided calls in doubt; empty unless the run waits."""


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
        """Cancel the run because of this signal; a second call leaves it no grace."""
        self.signals.append(signal_name)
        if self._engine is not None:
            self._engine.loop.interrupt(signal_name)


def load_skill_inputs(settings: Settings, skill_id: str) -> Fields:
    """The declared inputs of a skill. Raises SkillNotFoundError, or ProblemsFound where its file has errors."""
    catalog = _registry(settings).reach(skill_id)
    return _skill(catalog, skill_id).inputs


def reach(settings: Settings, skill_id: str) -> Catalog:
    """The closure of a skill, with or without problems. Raises SkillNotFoundError."""
    return _registry(settings).reach(skill_id)


def load(settings: Settings, request: RunRequest) -> CheckedSkill:
    """The closure and the inputs of a request, all checks passed. Nothing is started or written.

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
    """Run a checked skill to its end, as a sealed episode.

    Steps in `taken_over` (a rerun) are not run; `effects` are those of the earlier run, for `run.started`. `around`
    wraps the live runner. Raises EnvironmentRefusal where the log cannot be written; what is written stays readable.
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
            taken_over={path: one.to_payload() for path, one in (taken_over or {}).items()},
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
        if waiting is None or not _is_full_disk(error):
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
    """`pins` of `run.started`: the digest of each spec file, and the blob that holds all specs."""
    catalog = loaded.catalog
    return {
        "specs": dict(sorted(catalog.pins.items())),
        "policy": "builtin.default",
        "cogcli": __version__,
        "python": ".".join(map(str, sys.version_info[:3])),
        "specs_blob": journal.put_blob(compact(document_of(catalog))),
    }


def seal_run(journal: Journal, finished: Finished) -> None:
    """Seal the episode of a run that ended; of one that waits, write `state.json` alone."""
    from cogcli.episode.seal import persist_pending, seal

    if finished.outcome.status == "pending":
        persist_pending(journal)
    else:
        seal(journal)


def _is_full_disk(error: BaseException) -> bool:
    return isinstance(error, CogcliError) and error.code == "env.disk"


def pause_in_doubt(
    journal: Journal, log: LogIndex, error: BaseException, control: Control | None
) -> RunResult:
    """The result of a run whose log cannot be written any more, with a call in doubt: it waits (`pending`)."""
    from cogcli.core.errors import EffectInDoubtError
    from cogcli.engine.outcome import RunOutcome, name_step
    from cogcli.engine.run import Finished
    from cogcli.episode.state_rebuild import rebuild

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
    state = rebuild([event for _, event in journal.events()])
    doubt.message = name_step(doubt, StepPath(step_id).first(), "")
    steps = {
        name: state.step_results[name].status if name in state.step_results else "pending"
        for name in state.plan_order
    }
    return finish_run(Finished(RunOutcome("pending", doubt, {}), state, steps), journal, control)


def finish_run(
    finished: Finished, journal: Journal, control: Control | None, catalog: Catalog | None = None
) -> RunResult:
    """The RunResult of a finished or waiting run. With `catalog`, an error gets its place in the spec files."""
    from cogcli.app.error_payload import error_payload

    outcome, state = finished.outcome, finished.state
    return RunResult(
        status=outcome.status,
        exit_code=_exit_code(finished, control),
        outputs=outcome.outputs if outcome.status in ("ok", "partial") else None,
        error=error_payload(outcome.error, catalog) if outcome.error else None,
        episode_id=journal.episode_id,
        run_id=state.run_id,
        trace_id=state.trace_id,
        directory=str(journal.directory),
        metrics=state.trace.metrics.to_payload(),
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
