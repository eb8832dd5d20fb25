"""`cogcli test`: finding the cases beside skills, running each, and judging what it gave
(docs/reference/test-case.md#run)."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from typing import Final, NamedTuple

from cogcli.app.language_model import chosen_model
from cogcli.app.needs import NETWORK, Need
from cogcli.app.registry import open_registry, untrusted_warning
from cogcli.app.settings import Settings
from cogcli.app.skill_test_run import CaseRun, run_case
from cogcli.core.errors import CogcliError, EnvironmentRefusal, UsageError
from cogcli.core.extras import EXTRAS, install_line, missing_module
from cogcli.core.problems import Problem, suggestion
from cogcli.core.redact import Redactor
from cogcli.core.scratch import scratch_folder
from cogcli.core.source_lines import hide_secrets
from cogcli.core.system_text import variable
from cogcli.models.settings import TEMPLATE
from cogcli.protocols import PROTOCOLS
from cogcli.protocols.exchange_checks import Check, Frame
from cogcli.report.coverage import Coverage
from cogcli.specs.layers import BUILT_IN, Layer
from cogcli.verification.check_result import (
    FAILED,
    PASSED,
    SKIPPED,
    CheckResult,
    CheckResults,
    short,
    verify_all,
)
from cogcli.verification.expectations import judge
from cogcli.verification.skill_case import CaseFault, SkillCase, read_cases, skill_folder

UNTRUSTED: Final = "service.untrusted"
"""The code of a case that was skipped because its project is not trusted."""


class FoundCases(NamedTuple):
    """The cases that were asked for, and the problems of files that cannot be read as cases."""

    cases: tuple[SkillCase, ...]
    problems: tuple[Problem, ...]


class CaseFile(NamedTuple):
    """A case file, and the skill that it is beside."""

    skill_id: str
    path: str
    layer: Layer


def find_cases(settings: Settings, words: Sequence[str]) -> FoundCases:
    """The cases that words name, as skills, patterns of skills or cases, or paths; without words all of the project.

    Raises UsageError `usage.value` for a word that names none, EnvironmentRefusal `project.none`.
    """
    files = _case_files(settings)
    if not words:
        if settings.project is None and not settings.value("registry"):
            hint = "name skills, or start in a project with -C DIR"
            raise EnvironmentRefusal("project.none", "there is no project here", hint=hint)
        return _read(settings, {file: ["*"] for file in files if is_own(settings, file.layer)})
    wanted: dict[CaseFile, list[str]] = {}
    for word in words:
        is_path = os.path.exists(word) or word.endswith((".yaml", ".yml"))
        named = _at_path(word, files) if is_path else _of_skills(word.partition("/")[0], files)
        if not named:
            raise _nothing_named(settings, word, files)
        for file in named:
            wanted.setdefault(file, []).append("*" if is_path else word)
    found = _read(settings, wanted)
    for word in {word for patterns in wanted.values() for word in patterns}:
        if not found.problems and not any(_fits(case.id, word) for case in found.cases):
            raise _nothing_named(settings, word, files)
    return found


def all_cases(settings: Settings) -> FoundCases:
    """The cases of all skills of all layers, the shipped ones, too."""
    return _read(settings, {file: ["*"] for file in _case_files(settings)})


def _of_skills(pattern: str, files: Sequence[CaseFile]) -> list[CaseFile]:
    return [file for file in files if fnmatchcase(file.skill_id, pattern)]


def is_own(settings: Settings, layer: Layer) -> bool:
    """Whether a layer is the user's: any but the shipped one, unless the project is that."""
    return layer.name != BUILT_IN or layer.root == settings.project


def _case_files(settings: Settings) -> list[CaseFile]:
    """The case files of the skills in all layers; those of a skill that a later layer replaces are left out."""
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


def _at_path(word: str, files: Sequence[CaseFile]) -> list[CaseFile]:
    """The case files at a path: a file, those below a directory, or those of the skill whose file it is."""
    path = os.path.realpath(word)
    below = os.path.dirname(path) if os.path.basename(path) == "skill.yaml" else path
    real = {os.path.realpath(file.path): file for file in files}
    return [
        file for place, file in real.items() if place == path or place.startswith(below + os.sep)
    ]


def _nothing_named(settings: Settings, word: str, files: Sequence[CaseFile]) -> UsageError:
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


def _read(settings: Settings, wanted: Mapping[CaseFile, Sequence[str]]) -> FoundCases:
    """The cases of files, of each those that one of its patterns fits."""
    cases: list[SkillCase] = []
    problems: list[Problem] = []
    for file, patterns in wanted.items():
        read = read_cases(file.path, settings.display_path(file.path), file.skill_id, PROTOCOLS)
        problems += read.problems
        cases += [
            case for case in read.cases if any(_fits(case.id, pattern) for pattern in patterns)
        ]
    return FoundCases(tuple(cases), tuple(problems))


def _fits(case_id: str, pattern: str) -> bool:
    """Whether a pattern of cases, or of skills, names a case."""
    return fnmatchcase(case_id, pattern) or fnmatchcase(case_id.partition("/")[0], pattern)


class CaseResults(NamedTuple):
    """The results of cases in order, what of their skills ran, and the runs that may be looked at."""

    results: CheckResults
    coverage: Coverage
    runs: dict[str, CaseRun]
    """By the id of a case that ran."""


def run_cases(
    settings: Settings,
    cases: Sequence[SkillCase],
    *,
    jobs: int,
    listener: Callable[[CheckResult], None] | None = None,
    allow_hosts: tuple[str, ...] = (),
) -> CaseResults:
    """Run each case, `jobs` at a time; `listener` gets each result, in the order of the cases. Cases of a project that
    is not trusted may reach the hosts `allow_hosts`."""
    coverage = Coverage()
    runs: dict[str, CaseRun] = {}

    def test(root: str, case: SkillCase) -> CheckResult:
        began = time.monotonic()
        folder = os.path.join(root, case.id.replace("/", "@"))
        result = _test(settings, case, folder, runs, allow_hosts)
        return result._replace(ms=round((time.monotonic() - began) * 1000))

    with scratch_folder("test", keep=True) as root:
        results = verify_all(cases, partial(test, root), jobs, listener)
    for run in (runs[case.id] for case in cases if case.id in runs):
        coverage.add(run.catalog, run.fold, run.case.skill_id)
    return CaseResults(results, coverage, runs)


def find_warning(settings: Settings, cases: Sequence[SkillCase]) -> CogcliError | None:
    """What the runs of cases leave out of a project that is not trusted; None if they leave out nothing."""
    if not cases:
        return None
    own = next((case for case in cases if not _is_trusted(settings, case)), None)
    return untrusted_warning(settings, "skill", own.skill_id if own else "")


def _test(
    settings: Settings,
    case: SkillCase,
    folder: str,
    runs: dict[str, CaseRun],
    allow_hosts: tuple[str, ...],
) -> CheckResult:
    """The result of one case. What is wrong with the case, the skill or its services is never raised."""
    base = CheckResult(case.id, FAILED, subject=case.description, file=case.source.shown)
    kept = False
    try:
        if unmet := [*unmet_needs(settings, case)]:
            reason = f"needs {', '.join(map(_need_text, unmet))}"
            code = UNTRUSTED if any(need.kind == "trust" for need in unmet) else ""
            return base._replace(status=SKIPPED, reason=reason, code=code)
        os.mkdir(folder)
        trusted = _is_trusted(settings, case)
        run = runs[case.id] = run_case(
            settings, case, folder, trusted=trusted, allow_hosts=allow_hosts
        )
        result = judge_run(run.case, run, base)
        kept = result.status == FAILED and bool(run.directory)
    except CaseFault as fault:
        result = _faulty(case, fault.problem, base)
    except CogcliError as error:
        result = base._replace(reason=f"{error.code}: {error.message}", code=error.code)
    finally:
        if not kept:
            shutil.rmtree(folder, ignore_errors=True)
    return result


def _is_trusted(settings: Settings, case: SkillCase) -> bool:
    """Whether the layer of a case is trusted; where roots lie in each other, the innermost."""
    path = os.path.realpath(case.source.path)
    layers = [
        layer for layer in settings.layers if path.startswith(os.path.realpath(layer.root) + os.sep)
    ]
    if not layers:
        return False
    return max(layers, key=lambda layer: len(os.path.realpath(layer.root))).trusted


def judge_run(case: SkillCase, run: CaseRun, base: CheckResult) -> CheckResult:
    """The result of a case that ran; `base` has its name and file."""
    checks = [
        *_unanswered(case, run),
        *(("test.failed", check) for check in judge(case, run.outcome)),
    ]
    checks += _unused(case, run) if run.directory else ()
    failed = next(((code, check) for code, check in checks if not check.passed), None)
    reason = f"{failed[1].name}: {failed[1].detail}" if failed else ""
    return base._replace(
        status=FAILED if failed else PASSED,
        checks=tuple(check for _, check in checks),
        reason=reason,
        code=failed[0] if failed else "",
        outputs=Redactor().mask(dict(run.outcome.outputs)),
        episode=run.directory if failed else "",
    )


def _unanswered(case: SkillCase, run: CaseRun) -> Iterator[tuple[str, Check]]:
    """A failed check for each call that no stub fits."""
    for capability, step, given in dict.fromkeys(
        (one.capability, one.step, short(Redactor().mask(dict(one.input)), 120))
        for one in run.calls.unanswered
    ):
        name = f"a stub for {capability}"
        place = case.frame_of("stubs", *_key(case, run, capability))
        yield (
            "test.unanswered",
            Check(name, False, f"step `{step}` called it with {given}, none fits", place),
        )


def _unused(case: SkillCase, run: CaseRun) -> Iterator[tuple[str, Check]]:
    """A failed check for each stub that no call used."""
    for stub in run.calls.unused:
        place = case.frame_of("stubs", *_key(case, run, stub.capability), stub.number)
        yield (
            "test.unused",
            Check(f"stub {stub.number + 1} of {stub.capability}", False, "no call used it", place),
        )


def _key(case: SkillCase, run: CaseRun, capability: str) -> tuple[str, ...]:
    """The name under which the stubs of a case name a capability: its id, or an alias."""
    aliases = run.catalog.aliases
    return tuple(name for name in case.stubs if aliases.get(name, name) == capability)[:1]


def _faulty(case: SkillCase, problem: Problem, base: CheckResult) -> CheckResult:
    """The result of a case that cannot be run as it is written."""
    line = hide_secrets(case.source.line(problem.line))
    check = Check(
        "the case can be run",
        False,
        problem.summary_line,
        Frame(problem.line, line, problem.column, 1),
    )
    return base._replace(checks=(check,), reason=problem.summary_line, code=problem.code)


# -- needs -----------------------------------------------------------------------------------------------------------


def unmet_needs(settings: Settings, case: SkillCase) -> Iterator[Need]:
    """What a case needs and is not there."""
    if (
        not _is_trusted(settings, case)
        and open_registry(settings).for_run("skill", case.skill_id).is_trusted
    ):
        # A run takes the shipped skill, and this case belongs to another one.
        yield Need("trust", "a trusted project", "cogcli config trust")
    for word in case.needs:
        kind, _, name = word.partition(".")
        if kind == "env" and not settings.environ.get(name):
            yield Need("service", f"the variable {name}", f"export {name}=...")
        elif kind == "extra" and (name not in EXTRAS or missing_module(name)):
            yield Need("extra", f"extra {name}", install_line(name))
        elif kind == "network" and not variable(settings.environ, NETWORK):
            yield Need("web", "the network", f"{NETWORK}=1")
        elif kind == "model" and chosen_model(settings).settings.adapter == TEMPLATE:
            yield Need("model", "a model", "[model] in the configuration, or COGCLI_MODEL")


def _need_text(need: Need) -> str:
    return need.text if need.kind == "service" else f"{need.text}: {need.cure}"
