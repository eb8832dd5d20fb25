"""Writing of case files: cases from episodes, and accepted outputs
(docs/reference/test-case.md#writing)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Container, Iterator, Mapping, Sequence
from difflib import unified_diff
from typing import Any, Final

from cogcli.app.editor_schemas import FOLDER
from cogcli.app.episodes import find
from cogcli.app.registry import open_registry, writing_to
from cogcli.app.settings import Settings
from cogcli.app.settings.own_writes import Written, keep_trust
from cogcli.authoring.new_specs.new_files import schema_line
from cogcli.authoring.skill_test_catalog import outside_reach_reason
from cogcli.authoring.skill_test_run import CaseRun
from cogcli.authoring.skill_tests import CaseResults, evaluate_run, is_own
from cogcli.authoring.verification.check_result import FAILED, CheckResult
from cogcli.authoring.verification.expectations import changed_outputs
from cogcli.authoring.verification.skill_case import CaseSource, SkillCase
from cogcli.base.canonical import compact
from cogcli.base.errors import NO, OK, SkillNotFoundError, UsageError, exit_code
from cogcli.base.file_roots import is_below
from cogcli.base.files import write_atomic
from cogcli.base.jsonvalue import map_members
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.pinned_file import PinnedFile, read_pinned_file
from cogcli.base.problems import KeyPath
from cogcli.base.redact import MASK, Redactor
from cogcli.base.source_lines import hide_secrets
from cogcli.base.step_path import StepPath
from cogcli.base.yaml.edit import UneditableYaml, replace_values, to_yaml
from cogcli.declarations.envelope import Event
from cogcli.declarations.events import RunStarted, RunTerminated, StepFinished, StepStarted
from cogcli.declarations.reading import read_record
from cogcli.declarations.typed_payload import read_payload
from cogcli.declarations.value_types import Json
from cogcli.run.file_inputs import files_in_payload
from cogcli.run.log_index import LogIndex
from cogcli.run.prepare import RunRequest
from cogcli.run.rerun import read_source_request
from cogcli.specs.layout import CASES

# -- recording --------------------------------------------------------------------------------------------------------


_TRUST_LEVEL: Final = "standard"
"""The default, which a case omits."""
_UNENDED: Final = ("aborted", "pending")


class RecordedCase(NamedTuple):
    """A written case: its id, the display path of its file, and its masked paths."""

    id: str
    file: str
    masked: tuple[str, ...]


def record_case(settings: Settings, episode: str) -> RecordedCase:
    """Write a case with the inputs and the outcome of an episode next to the skill.

    Calls with outside effects are stubbed with their recorded answers. The file is named after the
    episode. Raise UsageError `usage.value` for an episode that is no finished run of a skill or has
    values that no file may contain, and `output.exists`. Raise SkillNotFoundError or
    UnusableEnvironment.
    """
    directory = find(settings, episode)
    request, log = read_source_request(directory, {}, None)
    started, end = _require_recordable(directory.name, log)
    path = os.path.join(
        _own_folder(settings, request.skill_id), CASES, f"{directory.name[:15].lower()}.yaml"
    )
    shown = settings.display_path(path)
    settings.require_inside(path)
    if os.path.lexists(path):
        hint = "remove it, or rename it to keep it"
        raise UsageError("output.exists", f"`{shown}` exists", hint=hint)
    files = frozenset(files_in_payload(read_record(RunStarted, started.payload).files))
    request = request._replace(inputs=_name_files(settings, request.inputs, files))
    granted = {each.asked.gate or each.asked.capability for each in log.approvals if each.granted}
    case = {
        "description": f"as in {directory.name}",
        **_case_keys(request, started),
        "approve": sorted(granted),
        "stubs": _recorded_stubs(settings, request, log, files),
        "expect": _expected_ending(end, log),
    }
    kept = {key: value for key, value in case.items() if value or key == "inputs"}
    text = _case_text(kept, directory.name)
    data = f"{_schema_line(settings, path)}{text}".encode()
    with keep_trust(settings) as written, writing_to(shown):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        write_atomic(path, data, mode=0o644, bound=settings.bound)
        written(path, data)
    name = os.path.basename(path).removesuffix(".yaml")
    masked = tuple(key for key, value in kept.items() if _is_masked(value))
    return RecordedCase(f"{request.skill_id}/{name}", shown, masked)


def _name_files(settings: Settings, value: Any, files: Container[PinnedFile]) -> Any:
    """Return inputs in which each file of the run is its path in the project.

    Raise UsageError `usage.value` for a file that is outside the project, since a case cannot name it.
    """
    pinned = read_pinned_file(value)
    if pinned is not None and pinned in files:
        root = os.path.realpath(settings.project or settings.display_path(""))
        if not is_below(pinned.path, root):
            message = (
                f"the run sent `{pinned.path}`, which is outside the project: no case can name it"
            )
            hint = (
                "copy the file into the project, run the skill with the copy, and record that run"
            )
            raise UsageError("usage.value", message, hint=hint)
        return os.path.relpath(pinned.path, root).replace(os.sep, "/")
    return map_members(value, lambda each: _name_files(settings, each, files))


def _without_paths(value: Any, files: Container[PinnedFile]) -> Any:
    """Return the input of a call in which the files of the run have no path, because it is another one elsewhere."""
    pinned = read_pinned_file(value)
    if pinned is not None and pinned in files:
        return {name: each for name, each in value.items() if name != "path"}
    return map_members(value, lambda each: _without_paths(each, files))


def _require_recordable(episode: str, log: LogIndex) -> tuple[Event, RunTerminated]:
    """Return the first and the last event of the run of a skill. Raise UsageError `usage.value` for
    any other episode.
    """
    started, closing = log.started, log.ended.runs.get(log.root)
    end = read_payload(closing) if closing else None
    if started is None or not isinstance(end, RunTerminated) or end.status in _UNENDED:
        what = f"`{episode}` has not run to its end, so it is not a case"
        raise UsageError("usage.value", what)
    if read_record(RunStarted, started.payload).agent:
        hint = "record the run of a skill"
        what = f"`{episode}` is the run of an agent, not of a skill"
        raise UsageError("usage.value", what, hint=hint)
    return started, end


def _is_masked(value: object) -> bool:
    return MASK.encode() in compact(value)


def _case_text(case: Json, episode: str) -> str:
    """Return a case as YAML. Raise UsageError for a value that YAML cannot represent, such as a control character."""
    try:
        return to_yaml(case)
    except UneditableYaml as error:
        message = f"`{episode}` has a value that no case can hold: {error}"
        hint = "a case with the path of the episode as `recorded` is answered by the episode itself"
        raise UsageError("usage.value", message, hint=hint) from error


def _schema_line(settings: Settings, path: str) -> str:
    """Return the comment by which an editor finds the schema of a case; empty if the project has no
    schemas.
    """
    root = settings.project or ""
    if not path.startswith(f"{root}/") or not os.path.isdir(os.path.join(root, FOLDER)):
        return ""
    return schema_line("case", os.path.relpath(path, root).replace(os.sep, "/"))


def _own_folder(settings: Settings, skill_id: str) -> str:
    """Return the folder of a user's skill. Raise SkillNotFoundError, or UsageError for a shipped
    one.
    """
    found = [
        file for file in open_registry(settings).builder().files("skill") if file.id == skill_id
    ]
    if not found:
        raise SkillNotFoundError(
            "skill.not-found", f"no skill `{skill_id}` here: start in its project with -C DIR"
        )
    if not is_own(settings, found[-1].layer):
        hint = "record the run of a skill of your project"
        raise UsageError(
            "usage.value", f"`{skill_id}` is a shipped skill, whose folder is not yours", hint=hint
        )
    return os.path.dirname(found[-1].path)


def _case_keys(request: RunRequest, start_event: Event) -> Json:
    """Return the keys of a case that describe how a run began, without default values."""
    chosen = request.options
    options = {
        "trust_level": "" if chosen.trust_level == _TRUST_LEVEL else chosen.trust_level,
        "confirm": start_event.payload["options"]["confirmed_capabilities"],
        "bind": chosen.bind,
        "conformance": chosen.conformance,
        "keep_going": chosen.keep_going,
        **chosen.policy,
    }
    return {
        "inputs": request.inputs,
        "frame": request.frame,
        "options": {key: value for key, value in options.items() if value},
        "seed": chosen.seed,
        "now": f"{start_event.timestamp[:19]}Z",
    }


def _recorded_stubs(
    settings: Settings, request: RunRequest, log: LogIndex, files: Container[PinnedFile]
) -> dict[str, list[Json]]:
    """Return the recorded answers of each capability that must be stubbed."""
    stubs: dict[str, list[Json]] = {id: [] for id in _outside_capabilities(settings, request)}
    for (run, step), event in sorted(log.intents.items(), key=lambda each: each[1].seq or 0):
        intent = read_record(StepStarted, event.payload)
        if intent.capability in stubs:
            answers = _recorded_answers(log, run or "", step or "")
            given = _without_paths(intent.input or {}, files)
            stubs[intent.capability] += [{"when": given, **one} for one in answers]
    return {capability: _group_answers(answers) for capability, answers in stubs.items()}


def _outside_capabilities(settings: Settings, request: RunRequest) -> list[str]:
    """Return the capabilities of a run that may change or depend on something outside it."""
    catalog = open_registry(settings).reach(request.skill_id, packs=request.pack_refs)
    binds = request.options.bind
    reached = catalog.reached(request.skill_id)
    return [each.id for each in reached if outside_reach_reason(settings, catalog, each, binds)]


def _group_answers(answers: Sequence[Json]) -> list[Json]:
    """Return answers grouped by their `when`.

    More specific groups are first, because the first match answers. Equal answers at the end of a
    group are reduced to one.
    """
    groups: dict[bytes, list[Json]] = {}
    for answer in answers:
        groups.setdefault(compact(answer["when"]), []).append(answer)
    for group in groups.values():
        while len(group) > 1 and group[-1] == group[-2]:
            group.pop()
    return [one for when in sorted(groups, key=len, reverse=True) for one in groups[when]]


def _recorded_answers(log: LogIndex, run: str, step: str) -> Iterator[Json]:
    """Yield the answer of each attempt of a call."""
    number = 1
    while (result := log.result(run, step, number)) is not None:
        if result.error is None:
            yield {"output": result.answer().output}
        else:
            error = result.error
            members = {"code": error.code, "message": error.message}
            yield {"error": {**members, "left": error.left is not False}}
        number += 1


def _expected_ending(end: RunTerminated, log: LogIndex) -> Json:
    """Return the expectation about the end of the run. Masked outputs are omitted, because they
    cannot be compared.
    """
    code = end.error.code if end.error else ""
    outputs = end.outputs if end.status in ("ok", "partial") else {}
    expected = {
        "exit_code": NO if end.status == "partial" else exit_code(code) if code else OK,
        "code": code,
        "outputs": {name: value for name, value in outputs.items() if not _is_masked(value)},
        "steps": dict(_unusual_steps(log)),
    }
    return {key: value for key, value in expected.items() if value}


def _unusual_steps(log: LogIndex) -> Iterator[tuple[str, str]]:
    """Yield each step of the root run whose status is not `done`, except items, rounds and gates."""
    for (run, step), event in log.closings.items():
        path = StepPath(step or "")
        if run == log.root and step and not path.in_call and not path.in_loop:
            ended = read_record(StepFinished, event.payload)
            if ended.step_status != "done":
                yield step, ended.step_status


# -- accepting --------------------------------------------------------------------------------------------------------


class UpdatedCases(NamedTuple):
    """The results after updating cases, and the change of each file as a unified diff."""

    results: tuple[CheckResult, ...]
    diffs: tuple[str, ...]


def update_cases(
    settings: Settings, cases: Sequence[SkillCase], case_results: CaseResults
) -> UpdatedCases:
    """Replace the expected outputs of failed cases in their files by the actual ones.

    Everything else in the files is unchanged. Secrets are never written. Raise UnusableEnvironment
    `env.disk`.
    """
    changes: dict[str, dict[KeyPath, object]] = {}
    results = {result.id: result for result in case_results.results.results}
    by_file = {case.source.path: case.source for case in cases}
    for case in cases:
        run = case_results.runs.get(case.id)
        if run is None or results[case.id].status != FAILED:
            continue
        case = run.case
        found = _acceptable_outputs(run)
        if found:
            at = {(*case.at, "expect", "outputs", name): value for name, value in found.items()}
            changes.setdefault(case.source.path, {}).update(at)
            outputs = {**case.expect.outputs, **found}
            accepted = case.replace(expect=case.expect.replace(outputs=outputs))
            results[case.id] = evaluate_run(accepted, run, results[case.id])
            if results[case.id].status != FAILED:
                shutil.rmtree(os.path.dirname(run.outcome.directory), ignore_errors=True)
    bound = settings.bound
    with keep_trust(settings) as written:
        diffs = [
            _rewrite_file(by_file[path], each, written, bound) for path, each in changes.items()
        ]
    return UpdatedCases(tuple(results.values()), tuple(diffs))


def _acceptable_outputs(run: CaseRun) -> Json:
    """Return the differing outputs that contain no secret."""
    redactor = Redactor()
    return {
        name: value
        for name, value in changed_outputs(run.case, run.outcome).items()
        if redactor.mask({name: value})[name] == value
    }


def _rewrite_file(
    source: CaseSource, changes: Mapping[KeyPath, object], mark_written: Written, bound: str
) -> str:
    display_path, path, text = source.shown, source.path, source.text
    try:
        new = replace_values(text, changes)
    except UneditableYaml as error:
        raise UsageError(
            "usage.value",
            f"`{display_path}`: {error}",
            hint="write the new outputs into it yourself",
        ) from error
    with writing_to(display_path):
        write_atomic(path, new.encode(), mode=os.stat(path).st_mode & 0o777, bound=bound)
    mark_written(path, new.encode())
    before, after = ([hide_secrets(line) for line in each.splitlines()] for each in (text, new))
    return "".join(
        f"{line}\n"
        for line in unified_diff(before, after, display_path, display_path, n=1, lineterm="")
    )
