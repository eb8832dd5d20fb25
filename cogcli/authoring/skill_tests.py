"""`cogcli test`: find the cases next to skills, run each, and judge the result
(docs/reference/test-case.md#run).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from typing import Final

from cogcli.agent.use_cases.language_model import chosen_model
from cogcli.app.needs import NETWORK, MissingRequirement
from cogcli.app.registry import open_registry, untrusted_warning
from cogcli.app.settings import Settings
from cogcli.app.settings.model_adapters import TEMPLATE
from cogcli.authoring.skill_test_run import CaseRun, run_skill_case
from cogcli.authoring.verification.case import judge
from cogcli.authoring.verification.check_result import (
    FAILED,
    CheckResult,
    CheckResults,
    conclude,
    run_check,
    verify_all,
)
from cogcli.authoring.verification.skill_case import SkillCase, read_cases, skill_folder
from cogcli.base.errors import CogcliError, UnusableEnvironment, UsageError
from cogcli.base.extras import EXTRAS, install_line, missing_module
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import Problem, suggestion
from cogcli.base.redact import Redactor
from cogcli.base.scratch import scratch_folder
from cogcli.base.system_text import variable
from cogcli.protocols import PROTOCOLS
from cogcli.protocols.exchange_checks import NotRunnable
from cogcli.report.coverage import Coverage
from cogcli.specs.layers import BUILT_IN, Layer

UNTRUSTED: Final = "service.untrusted"
"""The code of a case that is skipped because its project is not trusted."""


class RequestedCases(NamedTuple):
    """The requested cases, and the problems of files that cannot be read as cases."""

    cases: tuple[SkillCase, ...]
    problems: tuple[Problem, ...]


class CaseFile(NamedTuple):
    """A case file, and the skill next to it."""

    skill_id: str
    path: str
    layer: Layer


def find_cases(settings: Settings, words: Sequence[str]) -> RequestedCases:
    """Return the cases that words name as skills, patterns of skills or cases, or paths. Without
    words return all of the project.

    Raise UsageError `usage.value` for a word without a case, UnusableEnvironment `project.none`.
    """
    files = _case_files(settings)
    if not words:
        return _own_cases(settings, files)
    wanted: dict[CaseFile, list[str]] = {}
    patterns = {word: "*" if _is_path(word) else word for word in words}
    for word, pattern in patterns.items():
        for file in _find_files(settings, word, files):
            wanted.setdefault(file, []).append(pattern)
    found = _read_matching_cases(settings, wanted)
    for word, pattern in patterns.items():
        is_named = any(_matches_pattern(case.id, pattern) for case in found.cases)
        if not is_named and not found.problems:
            raise _no_such_case(settings, word, files)
    return found


def _own_cases(settings: Settings, files: Sequence[CaseFile]) -> RequestedCases:
    """Return the cases of the project. Raise UnusableEnvironment `project.none`."""
    if settings.project is None and not settings.value("registry"):
        hint = "name skills, or start in a project with -C DIR"
        raise UnusableEnvironment("project.none", "there is no project here", hint=hint)
    return _read_matching_cases(
        settings, {file: ["*"] for file in files if is_own(settings, file.layer)}
    )


def _is_path(word: str) -> bool:
    return os.path.exists(word) or word.endswith((".yaml", ".yml"))


def _find_files(settings: Settings, word: str, files: Sequence[CaseFile]) -> list[CaseFile]:
    """Return the case files at a path, or of the skills that a pattern names. Raise UsageError
    `usage.value`."""
    if _is_path(word):
        found = _case_files_at(word, files)
    else:
        skill_pattern = word.partition("/")[0]
        found = [file for file in files if fnmatchcase(file.skill_id, skill_pattern)]
    if not found:
        raise _no_such_case(settings, word, files)
    return found


def all_cases(settings: Settings) -> RequestedCases:
    """Return the cases of all skills in all layers, including shipped ones."""
    return _read_matching_cases(settings, {file: ["*"] for file in _case_files(settings)})


def is_own(settings: Settings, layer: Layer) -> bool:
    """Return whether a layer is the user's. The shipped layer is not, unless it is the project."""
    return layer.name != BUILT_IN or layer.root == settings.project


def _case_files(settings: Settings) -> list[CaseFile]:
    """Return the case files of the skills in all layers, except shadowed skills."""
    builder = open_registry(settings).builder()
    folders = {skill.id: os.path.dirname(skill.path) for skill in builder.files("skill")}
    skills = {folder: id for id, folder in folders.items()}
    found = [
        (skills.get(os.path.dirname(os.path.dirname(file.path))), file)
        for file in builder.files("case")
    ]
    return sorted(
        (CaseFile(id, file.path, file.layer) for id, file in found if id), key=lambda file: file[:2]
    )


def _case_files_at(word: str, files: Sequence[CaseFile]) -> list[CaseFile]:
    """Return the case files at a path: a case file, a directory that contains some, or the file of
    a skill.
    """
    path = os.path.realpath(word)
    below = os.path.dirname(path) if os.path.basename(path) == "skill.yaml" else path
    real = {os.path.realpath(file.path): file for file in files}
    return [
        file for place, file in real.items() if place == path or place.startswith(below + os.sep)
    ]


def _no_such_case(settings: Settings, word: str, files: Sequence[CaseFile]) -> UsageError:
    record = "cogcli test --record EP makes a case of an episode"
    if os.path.isfile(word) and not skill_folder(os.path.abspath(word)):
        what = f"`{word}` is not in the folder `tests` next to a skill of this registry"
        return UsageError("usage.value", what, hint="add its registry with --registry DIR")
    known = {file.skill_id for file in files}
    if word in open_registry(settings).ids("skill"):
        return UsageError("usage.value", f"`{word}` has no cases", hint=record)
    return UsageError(
        "usage.value",
        f"no case is named by `{word}`",
        hint=suggestion(word, sorted(known)) or record,
    )


def _read_matching_cases(
    settings: Settings, patterns_by_file: Mapping[CaseFile, Sequence[str]]
) -> RequestedCases:
    """Return the cases in these files that match one of the patterns."""
    cases: list[SkillCase] = []
    problems: list[Problem] = []
    for file, patterns in patterns_by_file.items():
        content = read_cases(file.path, settings.display_path(file.path), file.skill_id, PROTOCOLS)
        problems += content.problems
        cases += [
            case
            for case in content.cases
            if any(_matches_pattern(case.id, pattern) for pattern in patterns)
        ]
    return RequestedCases(tuple(cases), tuple(problems))


def _matches_pattern(case_id: str, pattern: str) -> bool:
    """Return whether a pattern of cases or of skills matches a case."""
    return fnmatchcase(case_id, pattern) or fnmatchcase(case_id.partition("/")[0], pattern)


class CaseResults(NamedTuple):
    """The results of cases in order, the coverage of their skills, and the runs."""

    results: CheckResults
    coverage: Coverage
    runs: dict[str, CaseRun]
    """The run of each case that ran, by the id of the case."""


def run_cases(
    settings: Settings,
    cases: Sequence[SkillCase],
    *,
    jobs: int,
    listener: Callable[[CheckResult], None] | None = None,
    allow_hosts: tuple[str, ...] = (),
) -> CaseResults:
    """Run each case, `jobs` at a time, and return the results. `listener` gets each result, in the
    order of the cases.

    Cases of a project that is not trusted may reach only the hosts `allow_hosts`."""
    coverage = Coverage()
    runs: dict[str, CaseRun] = {}

    def test(root: str, case: SkillCase) -> CheckResult:
        folder = os.path.join(root, case.id.replace("/", "@"))
        base = CheckResult(case.id, FAILED, subject=case.description, file=case.source.shown)
        result = base
        try:
            result = run_check(
                base, lambda: _run_one(settings, case, base, folder, runs, allow_hosts)
            )
        finally:
            if not result.episode:
                shutil.rmtree(folder, ignore_errors=True)
        return result

    with scratch_folder("test", keep=True) as root:
        results = verify_all(cases, partial(test, root), jobs, listener)
    for run in (runs[case.id] for case in cases if case.id in runs):
        coverage.add(run.catalog, run.outcome.history, run.case.skill_id)
    return CaseResults(results, coverage, runs)


def find_warning(settings: Settings, cases: Sequence[SkillCase]) -> CogcliError | None:
    """Return the warning about case runs that omit parts of an untrusted project; None if they omit
    nothing.
    """
    if not cases:
        return None
    own = next((case for case in cases if not _is_trusted(settings, case)), None)
    return untrusted_warning(settings, "skill", own.skill_id if own else "")


def _run_one(
    settings: Settings,
    case: SkillCase,
    base: CheckResult,
    folder: str,
    run_by_case: dict[str, CaseRun],
    allow_hosts: tuple[str, ...],
) -> CheckResult:
    """Return the result of a case. Raise NotRunnable."""
    if unmet := [*find_unmet_needs(settings, case)]:
        code = UNTRUSTED if any(need.kind == "trust" for need in unmet) else ""
        raise NotRunnable(f"needs {', '.join(map(_need_text, unmet))}", code, skipped=True)
    os.mkdir(folder)
    trusted = _is_trusted(settings, case)
    run = run_skill_case(settings, case, folder, is_trusted=trusted, allow_hosts=allow_hosts)
    run_by_case[case.id] = run
    return evaluate_run(run.case, run, base)


def _is_trusted(settings: Settings, case: SkillCase) -> bool:
    """Return whether the layer of a case is trusted. With nested roots the innermost one decides."""
    path = os.path.realpath(case.source.path)
    layers = [
        layer for layer in settings.layers if path.startswith(os.path.realpath(layer.root) + os.sep)
    ]
    if not layers:
        return False
    return max(layers, key=lambda layer: len(os.path.realpath(layer.root))).trusted


def evaluate_run(case: SkillCase, run: CaseRun, base: CheckResult) -> CheckResult:
    """Return the result of a case that ran; `base` has its name and file. The episode of a failed
    case is kept.
    """
    result = conclude(base, judge(run.expectation(case), run.outcome))
    return result._replace(
        outputs=Redactor().mask(run.outcome.outputs),
        episode=run.outcome.directory if result.status == FAILED else "",
    )


# -- needs -----------------------------------------------------------------------------------------------------------


def find_unmet_needs(settings: Settings, case: SkillCase) -> Iterator[MissingRequirement]:
    """Yield the needs of a case that this machine does not meet."""
    if (
        not _is_trusted(settings, case)
        and open_registry(settings).for_run("skill", case.skill_id).is_trusted
    ):
        # A run takes the shipped skill, and this case belongs to another one.
        yield MissingRequirement("trust", "a trusted project", "cogcli config trust")
    for word in case.needs:
        kind, _, name = word.partition(".")
        need = _FIND_NEED[kind](settings, name)
        if need is not None:
            yield need


def _find_variable(settings: Settings, name: str) -> MissingRequirement | None:
    is_set = bool(settings.environ.get(name))
    return (
        None
        if is_set
        else MissingRequirement("service", f"the variable {name}", f"export {name}=...")
    )


def _find_extra(settings: Settings, name: str) -> MissingRequirement | None:
    is_installed = name in EXTRAS and not missing_module(name)
    return (
        None if is_installed else MissingRequirement("extra", f"extra {name}", install_line(name))
    )


def _find_network(settings: Settings, name: str) -> MissingRequirement | None:
    is_allowed = bool(variable(settings.environ, NETWORK))
    return None if is_allowed else MissingRequirement("web", "the network", f"{NETWORK}=1")


def _find_model(settings: Settings, name: str) -> MissingRequirement | None:
    if chosen_model(settings).settings.adapter != TEMPLATE:
        return None
    return MissingRequirement("model", "a model", "[model] in the configuration, or COGCLI_MODEL")


_FIND_NEED: Final[dict[str, Callable[[Settings, str], MissingRequirement | None]]] = {
    "env": _find_variable,
    "extra": _find_extra,
    "network": _find_network,
    "model": _find_model,
}
"""The function that returns the unmet need, None if it is met, by the kind of a word of `needs`."""


def _need_text(need: MissingRequirement) -> str:
    return need.text if need.kind == "service" else f"{need.text}: {need.cure}"
