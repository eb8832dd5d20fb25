"""Runs one test case: a run as any other, in a runs directory of its own, with the clock, the ids and the answers that
the case says (docs/reference/test-case.md#run)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from cogcli.app.run_skill import environment_of, policy_request
from cogcli.app.settings import Settings
from cogcli.app.settings.config import KEYS
from cogcli.app.settings.runs_dir import SIGNING_KEY
from cogcli.app.skill_test_catalog import (
    CaseRegistry,
    require_called,
    require_harmless,
    require_own_skill,
    stubs_of,
)
from cogcli.bindings.breaker import Circuits
from cogcli.core.calls import Answer, Attempt
from cogcli.core.errors import CogcliError, RuntimeErrorBase
from cogcli.core.problems import KeyPath
from cogcli.core.system import FakeClock, FakeIds
from cogcli.episode.history import History
from cogcli.events.envelope import Event
from cogcli.runs.given_inputs import GivenRun
from cogcli.runs.input_origins import CASE
from cogcli.runs.launch import launch_given
from cogcli.runs.log_index import LogIndex, read_log_index
from cogcli.runs.policy_request import PolicyRequest
from cogcli.runs.prepare import PreparedRun, RunEnvironment, RunRequest
from cogcli.runs.results import Control, RunResult
from cogcli.runs.resume import ResumeRequest, resume
from cogcli.specs.catalog import Catalog
from cogcli.specs.registry import Registry
from cogcli.verification.expectations import CaseOutcome
from cogcli.verification.skill_case import CaseFault, SkillCase
from cogcli.verification.stubs import Recorded, Stub, StubbedCalls
from cogcli.yaml.reader import read_file

FILE: Final = "$file"
_MOST_ANSWERS: Final = 100


class CaseRun(NamedTuple):
    """What became of a case, which is filled with the paths of its files; `directory` is that of its episode, empty
    where nothing ran."""

    case: SkillCase
    outcome: CaseOutcome
    fold: History
    catalog: Catalog
    calls: StubbedCalls
    directory: str


def run_case(
    settings: Settings,
    case: SkillCase,
    folder: str,
    *,
    trusted: bool,
    allow_hosts: tuple[str, ...] = (),
) -> CaseRun:
    """Run a case in this folder, which is empty. `trusted`: whether its layer is; if it is not, its real calls reach
    the hosts `allow_hosts` alone.

    Raises CaseFault, before anything runs.
    """
    case, log = _prepared_case(settings, case, folder)
    registry = CaseRegistry(settings, case)
    request = _request(settings, case)._replace(allow_hosts=allow_hosts)
    catalog = registry.reach(case.skill_id, pack=request.pack_ref)
    require_own_skill(settings, case, catalog)
    stubs: list[Stub] = []
    if case.skill_id in catalog.skills:  # one that has errors is refused when it is prepared
        require_called(case, catalog, "real", names=case.real)
        require_called(case, catalog, "expect", "calls", names=case.expect.get("calls") or {})
        stubs += stubs_of(case, catalog)
        require_harmless(settings, case, catalog, may_be_real=trusted or bool(allow_hosts))
    calls = StubbedCalls(stubs, catalog.stubbed, _recorded(log) if log else None)
    environment = _environment(settings, case, folder, registry, calls, trusted=trusted)
    fold = History()
    return _run(environment, case, request, catalog, calls, fold)


def _run(
    environment: RunEnvironment, case: SkillCase, request: RunRequest, catalog: Catalog, calls: StubbedCalls,
    fold: History,
) -> CaseRun:  # fmt: skip
    def watch(
        prepared: PreparedRun, control: Control
    ) -> AbstractContextManager[Callable[[Event], None]]:
        return _listening(fold)

    result: RunResult | None = None
    try:
        result = launch_given(environment, catalog, GivenRun(request, (), ()), watch)
        for _ in range(_MOST_ANSWERS):
            answer = _answer(case, fold) if result.status == "pending" else None
            if answer is None:
                break
            answer = answer._replace(allow_hosts=request.allow_hosts)
            directory = Path(result.directory)
            result = resume(
                environment,
                directory,
                answer,
                lambda log, journal: None,
                listener=fold.apply,
                control=Control(),
            )
        error: Mapping[str, Any] = result.error or {}
        code, message, hint = (str(error.get(name) or "") for name in ("code", "message", "hint"))
        exit_code = result.exit_code
    except CogcliError as refused:
        code, exit_code, hint = refused.code, refused.exit_code, refused.hint
        message = (
            f"{refused.file}:{refused.line}: {refused.message}" if refused.file else refused.message
        )
    steps = {path: step.status for run in fold.runs.values() for path, step in run.steps.items()}
    outcome = CaseOutcome(
        exit_code,
        code,
        message,
        (result and result.outputs) or {},
        result.finished.state if result else None,
        steps,
        {
            name: calls.counts[catalog.aliases.get(name, name)]
            for name in (*catalog.capabilities, *catalog.aliases)
        },
        hint,
    )
    return CaseRun(case, outcome, fold, catalog, calls, result.directory if result else "")


@contextmanager
def _listening(fold: History) -> Iterator[Callable[[Event], None]]:
    yield fold.apply


def _answer(case: SkillCase, fold: History) -> ResumeRequest | None:
    """A yes to the first open request that the case approves, by somebody who may; None without one."""
    for ask in fold.asks.open:
        if {ask.capability, ask.gate, ask.approval_id}.intersection(case.approve):
            by = f"tester:{ask.approver_roles[0]}" if ask.approver_roles else "tester"
            return ResumeRequest(approve=(ask.approval_id,), by=by, durability="none")
    return None


# -- what the run is given --------------------------------------------------------------------------------------------


def _environment(
    settings: Settings, case: SkillCase, folder: str, registry: Registry, calls: StubbedCalls, *, trusted: bool
) -> RunEnvironment:  # fmt: skip
    own = settings.copy_for_run()
    start = datetime.fromisoformat(case.now)
    environment = environment_of(own)
    reads = environment.reads
    if reads is not None:
        # The files that the case holds are written there.
        folders = [os.path.realpath(os.path.join(folder, "files"))]
        if trusted:
            # A shipped case may read the samples beside its skill, whatever project it is run in.
            folders.append(os.path.realpath(os.path.dirname(case.source.folder)))
        reads = reads._replace(named_folders=tuple(folders))
    return environment._replace(
        reads=reads,
        runs_dir=folder,
        store_dir=os.path.join(folder, "stores"),
        environ={name: value for name, value in settings.environ.items() if name != SIGNING_KEY},
        clock=FakeClock(int(start.timestamp())),
        ids=FakeIds(case.seed),
        open_registry=lambda: registry,
        signer=lambda: None,
        owner=lambda: None,
        circuits=Circuits(),
        intercept=calls,
    )


def _request(settings: Settings, case: SkillCase) -> RunRequest:
    """The options are the case's and the project's: those of a user would make it another test."""
    options = {**_of_project(settings), **case.options}
    names = ("pack", "intent", "user", "safety_mode", "budget")
    given = PolicyRequest(**{name: options[name] for name in names if name in options})
    try:
        policy = policy_request(settings, given, case.skill_id)
    except CogcliError as error:
        raise CaseFault(case, error.code, ("options",), error.message, error.hint) from error
    seconds: dict[str, Any] = {
        name: options[name] and float(options[name]) for name in ("timeout", "step_timeout")
    }
    return RunRequest(
        skill_id=case.skill_id,
        inputs=case.inputs or {},
        origins=dict.fromkeys(case.inputs or {}, CASE),
        frame=case.frame,
        trace_id=None,
        trust_level=options["trust_level"],
        confirmed=tuple(options.get("confirm") or ()),
        binds=options.get("bind") or {},
        fail_fast=not options["keep_going"],
        max_workers=options["max_workers"],
        **seconds,
        conformance=options["conformance"],
        seed=case.seed,
        tags=options.get("tag") or {},
        durability="none",
        policy=policy,
    )


def _of_project(settings: Settings) -> dict[str, Any]:
    """The options of a run as the file of a trusted project says them, else their defaults. Raises EnvironmentRefusal
    `config.key`."""
    settings.require_sound_files()
    files = [file for file in settings.files if file.project and settings.trust]
    names = ("trust_level", "conformance", "keep_going", "max_workers", "timeout", "step_timeout")
    found = {name: file.values[name] for file in files for name in names if name in file.values}
    return {name: KEYS[name].default for name in names} | found


def _prepared_case(
    settings: Settings, case: SkillCase, folder: str
) -> tuple[SkillCase, LogIndex | None]:
    """The case with its inputs, its files written, each `{$file: NAME}` the path of a file; and the log that answers in
    place of stubs."""
    place = os.path.join(folder, "files")
    if case.files:
        os.makedirs(place)
    for name, text in case.files.items():
        Path(place, name).write_text(text, encoding="utf-8", newline="\n")

    def fill(value: Any, *path: str | int) -> Any:
        if isinstance(value, dict):
            if value.keys() == {FILE} and isinstance(value[FILE], str):
                name = value[FILE]
                return (
                    os.path.join(place, name)
                    if name in case.files
                    else _beside(settings, case, name, path)
                )
            return {key: fill(inner, *path, key) for key, inner in value.items()}
        return (
            [fill(inner, *path, n) for n, inner in enumerate(value)]
            if isinstance(value, list)
            else value
        )

    log = _log(settings, case) if case.recorded else None
    inputs = case.inputs
    if case.inputs_file:
        inputs = _read_inputs(settings, case)
    elif inputs is None and log is not None and log.started is not None:
        inputs = log.started.payload["inputs"]
    stubs = fill(case.stubs, "stubs")
    filled = {
        "inputs": fill(inputs or {}, "inputs"),
        "stubs": stubs,
        "expect": fill(case.expect, "expect"),
    }
    return case._replace(**filled), log


def _beside(settings: Settings, case: SkillCase, name: str, path: KeyPath) -> str:
    """The path of a file that is relative to the case and in the same project. Raises CaseFault `test.file`."""
    source = os.path.realpath(case.source.path)
    found = os.path.realpath(os.path.join(os.path.dirname(source), name))
    roots = [os.path.realpath(layer.root) for layer in settings.layers]
    inside = any(
        found.startswith(root + os.sep) and source.startswith(root + os.sep) for root in roots
    )
    if os.path.isabs(name) or not inside:
        raise CaseFault(
            case, "test.file", path, f"`{name}` is outside of the folder that holds the skills"
        )
    if not os.path.exists(found):
        hint = "paths are relative to the case; or write the file under `files`"
        raise CaseFault(case, "test.file", path, f"there is no file `{name}`", hint)
    return found


def _read_inputs(settings: Settings, case: SkillCase) -> dict[str, Any]:
    path = _beside(settings, case, case.inputs_file, ("inputs_file",))
    parsed = read_file(path, file=case.inputs_file)[1]  # whatever is JSON is YAML, too
    if parsed.value is None:
        first = parsed.problems[0]
        message = f"{case.inputs_file}:{first.line}: {first.message}"
        raise CaseFault(case, "test.file", ("inputs_file",), message, first.hint)
    return parsed.value


def _log(settings: Settings, case: SkillCase) -> LogIndex:
    directory = _beside(settings, case, case.recorded, ("recorded",))
    try:
        return read_log_index(Path(directory))[1]
    except CogcliError as error:
        raise CaseFault(case, "test.file", ("recorded",), error.message, error.hint) from error


def _recorded(log: LogIndex) -> Recorded:
    """The outcomes of a log by step path and number of the attempt."""
    runs = {path: run for run, path in log.intents}

    def outcome(attempt: Attempt) -> Answer | RuntimeErrorBase | None:
        return log.result(runs.get(attempt.step_id) or "", attempt.step_id, attempt.number)

    return outcome
