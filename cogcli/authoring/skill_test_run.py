"""Runs of test cases of skills: ordinary runs in a separate runs directory, with the clock, the ids
and the answers of the case (docs/reference/test-case.md#run).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final

from cogcli.app.file_scope import find_file_scope
from cogcli.app.limits import limits_in
from cogcli.app.run_skill import environment_of, resolve_pack_option
from cogcli.app.settings import Settings
from cogcli.app.settings.runs_dir import SIGNING_KEY
from cogcli.authoring.skill_test_catalog import (
    CaseRegistry,
    read_stubs,
    require_called_by_skill,
    require_harmless,
    require_own_skill,
)
from cogcli.authoring.verification.case import (
    Answers,
    Case,
    CaseTarget,
    Expectation,
    Inputs,
    Outcome,
    run_case,
)
from cogcli.authoring.verification.check_result import shorten_json
from cogcli.authoring.verification.expectations import skill_expectation
from cogcli.authoring.verification.skill_case import CaseFault, SkillCase
from cogcli.authoring.verification.stubs import RecordedResults, Stub, StubbedCalls
from cogcli.base.calls import Attempt
from cogcli.base.errors import CogcliError
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import KeyPath
from cogcli.base.redact import Redactor
from cogcli.base.system import FakeClock, FakeIds
from cogcli.base.yaml.reader import read_file
from cogcli.declarations.options import CASES, OPTIONS, RunOptions, normalized
from cogcli.declarations.value_types import Json
from cogcli.episode.history import History
from cogcli.protocols.exchange_checks import Check
from cogcli.protocols.live.breaker import Circuits
from cogcli.run.file_inputs import FileScope
from cogcli.run.given_inputs import RequestedRun, prepare_given
from cogcli.run.input_origins import CASE
from cogcli.run.log_index import AttemptResult, LogIndex
from cogcli.run.log_index_reading import read_log_index
from cogcli.run.prepare import PreparedRun, RunEnvironment, RunRequest
from cogcli.run.resume import ResumeRequest
from cogcli.specs.catalog import Catalog
from cogcli.specs.registry import Registry

FILE: Final = "$file"


class CaseRun(NamedTuple):
    """The run of a test case. Its values contain the paths of the case's files."""

    case: SkillCase
    outcome: Outcome
    catalog: Catalog
    calls: StubbedCalls

    def expectation(self, case: SkillCase) -> list[Expectation]:
        """Return the expectations of the case: every call has an answer, `expect` in the file is met, and every stub is
        used.
        """
        return [
            lambda outcome: self._check_unmatched_calls(case),
            *skill_expectation(case, self.catalog.aliases),
            lambda outcome: self._check_unused_stubs(case) if outcome.directory else (),
        ]

    def _check_unmatched_calls(self, case: SkillCase) -> Iterator[Check]:
        """Yield a failed check for each call that fits no stub."""
        found = [
            (call.capability, call.step, shorten_json(Redactor().mask(dict(call.input)), 120))
            for call in self.calls.unanswered
        ]
        for capability, step, shown in dict.fromkeys(found):
            detail = f"step `{step}` called it with {shown}, none fits"
            frame = case.frame_of("stubs", *self._stub_key(case, capability))
            yield Check(f"a stub for {capability}", False, detail, frame, "test.unanswered")

    def _check_unused_stubs(self, case: SkillCase) -> Iterator[Check]:
        """Yield a failed check for each stub that no call used."""
        for stub in self.calls.unused:
            name = f"stub {stub.number + 1} of {stub.capability}"
            frame = case.frame_of("stubs", *self._stub_key(case, stub.capability), stub.number)
            yield Check(name, False, "no call used it", frame, "test.unused")

    def _stub_key(self, case: SkillCase, capability: str) -> tuple[str, ...]:
        """Return the name of a capability in the stubs of a case: its id or an alias."""
        aliases = self.catalog.aliases
        return tuple(name for name in case.stubs if aliases.get(name, name) == capability)[:1]


def run_skill_case(
    settings: Settings,
    case: SkillCase,
    folder: str,
    *,
    is_trusted: bool,
    allow_hosts: tuple[str, ...] = (),
) -> CaseRun:
    """Run a case in an empty folder.

    If its layer is not `is_trusted`, its real calls may reach only the hosts `allow_hosts`. Raise
    CaseFault before anything runs.
    """
    log = _read_log(settings, case) if case.recorded else None
    case = _with_files(settings, case, log, os.path.join(folder, "files"))
    registry = CaseRegistry(settings, case)
    request = _case_request(settings, case).with_options(allow_hosts=list(allow_hosts))
    catalog = registry.reach(case.skill_id, packs=request.pack_refs)
    require_own_skill(settings, case, catalog)
    stubs: list[Stub] = []
    if case.skill_id in catalog.skills:  # a skill with errors is refused when it is prepared
        require_called_by_skill(case, catalog, "real", names=case.real)
        require_called_by_skill(case, catalog, "expect", "calls", names=case.expect.calls)
        stubs += read_stubs(case, catalog)
        require_harmless(settings, case, catalog, may_be_real=is_trusted or bool(allow_hosts))
    calls = StubbedCalls(stubs, catalog.stubbed, _recorded_results(log) if log else None)
    environment = _case_environment(settings, case, folder, registry, is_trusted=is_trusted)
    request = request._replace(find_files=partial(_file_scope, settings, environment, folder))

    def prepare(inputs: Inputs) -> PreparedRun:
        given = RequestedRun(request._replace(inputs=dict(inputs)), (), ())
        return prepare_given(catalog, given, environment.environ)

    def approve(history: History) -> ResumeRequest | None:
        answer = _find_approval(case, history)
        return answer and answer._replace(allow_hosts=allow_hosts)

    answers = Answers(intercept=calls, approve=approve)
    # Expectations are judged apart from the run: `--update` judges the same run by accepted outputs.
    target = CaseTarget(environment, prepare)
    outcome = run_case(Case(lambda: target, case.inputs or {}, answers, ()))
    return CaseRun(case, outcome, catalog, calls)


def _find_approval(case: SkillCase, history: History) -> ResumeRequest | None:
    """Return the approval of the first open request that the case approves, by an approver with a
    fitting role; None without one.
    """
    for request in history.asks.open:
        names = {request.capability, request.gate, request.approval_id}
        if names.intersection(case.approve):
            roles = request.approver_roles
            by = f"tester:{roles[0]}" if roles else "tester"
            return ResumeRequest(approve=(request.approval_id,), by=by, durability="none")
    return None


# -- what the run is given --------------------------------------------------------------------------------------------


def _case_environment(
    settings: Settings, case: SkillCase, folder: str, registry: Registry, *, is_trusted: bool
) -> RunEnvironment:  # fmt: skip
    case_settings = settings.copy_for_run()
    start = datetime.fromisoformat(case.now)
    environment = environment_of(case_settings)
    reads = environment.reads
    if reads is not None:
        # The files of the case are written there.
        folders = [os.path.realpath(os.path.join(folder, "files"))]
        if is_trusted:
            # A shipped case may read the samples next to its skill, in any project.
            folders.append(os.path.realpath(os.path.dirname(case.source.folder)))
        reads = reads._replace(named_folders=tuple(folders))
    return environment._replace(
        reads=reads,
        runs_dir=folder,
        store_dir=os.path.join(folder, "stores"),
        limits=partial(limits_in, Path(folder, "stores"), folder, folder),
        environ={name: value for name, value in settings.environ.items() if name != SIGNING_KEY},
        clock=FakeClock(int(start.timestamp())),
        ids=FakeIds(case.seed),
        open_registry=lambda: registry,
        signer=lambda: None,
        owner=lambda: None,
        circuits=Circuits(),
        hooks=None,
    )


def _file_scope(settings: Settings, environment: RunEnvironment, folder: str) -> FileScope:
    """Return the folders of files that a case's inputs may name: the project, and the files of the
    case.
    """
    scope = find_file_scope(settings)
    own = os.path.realpath(os.path.join(folder, "files"))
    return scope._replace(reads=environment.reads or scope.reads, folders=(*scope.folders, own))


def _case_request(settings: Settings, case: SkillCase) -> RunRequest:
    """Return the request with the options of the case and of the project.

    Options of the user are ignored, because they would change the test.
    """
    given = {_OPTION_OF.get(key, key): value for key, value in case.options.items()}
    values = {**_project_options(settings), **given, "frame": case.frame, "seed": case.seed}
    options = RunOptions(**normalized(values), durability="none")
    try:
        options = resolve_pack_option(settings, options, case.skill_id)
    except CogcliError as error:
        raise CaseFault(case, error.code, ("options",), error.message, error.hint) from error
    inputs = case.inputs or {}
    return RunRequest(case.skill_id, inputs, options, dict.fromkeys(inputs, CASE))


_OPTION_OF: Final = {"tag": "tags"}
"""The option of a case key that has the name of the flag instead."""


def _project_options(settings: Settings) -> Json:
    """Return the options in the file of a trusted project, else the defaults. Raise
    UnusableEnvironment `config.key`.
    """
    settings.require_sound_files()
    names = [option.name for option in OPTIONS.values() if option.setting and CASES in option.also]
    options: Json = {}
    if settings.trust:
        for file in settings.files:
            if file.project:
                options |= {name: file.values[name] for name in names if name in file.values}
    return options


def _with_files(
    settings: Settings, case: SkillCase, log: LogIndex | None, folder: str
) -> SkillCase:
    """Return the case after writing its files into a folder, with each `{$file: NAME}` replaced by
    a path.
    """
    if case.files:
        os.makedirs(folder)
    for name, text in case.files.items():
        Path(folder, name).write_text(text, encoding="utf-8", newline="\n")

    def path_of(name: str, place: KeyPath) -> str:
        if name in case.files:
            return os.path.join(folder, name)
        return _resolve_case_file(settings, case, name, place)

    inputs = case.inputs
    if case.inputs_file:
        inputs = _read_inputs(settings, case)
    elif inputs is None and log is not None and log.started is not None:
        inputs = log.started.payload["inputs"]
    given = {**case.json, "inputs": inputs or {}}
    filled = ("inputs", "stubs", "expect")
    return case.with_values(**{key: _fill_paths(given.get(key), path_of, key) for key in filled})


def _fill_paths(value: object, path_of: Callable[[str, KeyPath], str], *place: str | int) -> object:
    """Return a value of the case with each `{$file: NAME}` replaced by a path. `place` is its
    location in the case.
    """
    match value:
        case {"$file": str(name), **others} if not others:
            return path_of(name, place)
        case dict():
            return {key: _fill_paths(inner, path_of, *place, key) for key, inner in value.items()}
        case list():
            return [
                _fill_paths(inner, path_of, *place, number) for number, inner in enumerate(value)
            ]
    return value


def _resolve_case_file(settings: Settings, case: SkillCase, name: str, path: KeyPath) -> str:
    """Return the path of a file relative to the case, in the same project. Raise CaseFault
    `test.file`."""
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


def _read_inputs(settings: Settings, case: SkillCase) -> Json:
    path = _resolve_case_file(settings, case, case.inputs_file, ("inputs_file",))
    parsed = read_file(path, file=case.inputs_file)[1]  # JSON is also YAML
    if parsed.value is None:
        first = parsed.problems[0]
        message = f"{case.inputs_file}:{first.line}: {first.message}"
        raise CaseFault(case, "test.file", ("inputs_file",), message, first.hint)
    return parsed.value


def _read_log(settings: Settings, case: SkillCase) -> LogIndex:
    directory = _resolve_case_file(settings, case, case.recorded, ("recorded",))
    try:
        return read_log_index(Path(directory))[1]
    except CogcliError as error:
        raise CaseFault(case, "test.file", ("recorded",), error.message, error.hint) from error


def _recorded_results(log: LogIndex) -> RecordedResults:
    """Return a function that returns the result in a log by step path and number of the attempt."""
    runs = {path: run for run, path in log.intents}

    def find_result(attempt: Attempt) -> AttemptResult | None:
        return log.result(runs.get(attempt.step_id) or "", attempt.step_id, attempt.number)

    return find_result
