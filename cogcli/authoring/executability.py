"""`registry executability` and `coverage`: which skills run here, and what of the registry really ran
(docs/reference/command-line.md#registry-checks)."""

from __future__ import annotations

import shutil
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from cogcli.app.needs import NETWORK, Need, called_first, find_needs, outside_need
from cogcli.app.registry import open_registry, selection_options
from cogcli.app.settings import Settings
from cogcli.authoring.contracts import (
    Checked,
    check_contracts,
    ids_named,
    is_shipped,
    sound_catalog,
)
from cogcli.authoring.skill_test_run import CaseRun
from cogcli.authoring.skill_tests import UNTRUSTED, CaseResults, all_cases, run_cases, unmet_needs
from cogcli.authoring.verification.check_result import FAILED, PASSED, SKIPPED, CheckResult
from cogcli.authoring.verification.skill_case import SkillCase
from cogcli.base.errors import OK, BindingResolutionError
from cogcli.base.problems import ProblemsFound
from cogcli.base.system_text import variable
from cogcli.episode.history import History
from cogcli.specs.catalog import Catalog

_JOBS: Final = 4
KINDS: Final = ("capabilities", "bindings", "skills")


class SkillResults(NamedTuple):
    """The result of each skill, in order, and the seconds that they took."""

    checked: tuple[Checked, ...]
    seconds: float


def check_skills(settings: Settings, words: Sequence[str] = ()) -> SkillResults:
    """Run each skill, or those that words name, by the cases beside it. One has passed where a case runs it to a good
    end, with no stub for what is outside of this machine, and none fails; what else it needs is told.

    Raises ProblemsFound, EnvironmentRefusal, UsageError.
    """
    catalog, begun = sound_catalog(settings), time.monotonic()
    by_skill: dict[str, list[SkillCase]] = {
        id: [] for id in ids_named(words, catalog.skills, "skill")
    }
    cases, tested = _tested(settings, by_skill)
    for case in cases:
        by_skill[case.skill_id].append(case)
    needs = find_needs(open_registry(settings), catalog, selection_options(settings))
    results = {result.id: result for result in tested.results.results}
    checked = tuple(
        _checked(
            settings,
            catalog,
            id,
            needs.skill(id),
            [(case, results[case.id]) for case in own],
            tested.runs,
        )._replace(shipped=is_shipped(settings, catalog.skills[id].file))
        for id, own in by_skill.items()
    )
    return SkillResults(checked, time.monotonic() - begun)


def _tested(
    settings: Settings, skills: Collection[str]
) -> tuple[tuple[SkillCase, ...], CaseResults]:
    """The cases of skills and what they gave; nothing is kept of their runs. Raises ProblemsFound for files that are
    none."""
    found = all_cases(settings)
    if found.problems:
        raise ProblemsFound(list(found.problems))
    cases = tuple(case for case in found.cases if case.skill_id in skills)
    tested = run_cases(settings, cases, jobs=_JOBS)
    for run in tested.runs.values():
        if run.outcome.directory:
            shutil.rmtree(Path(run.outcome.directory).parent, ignore_errors=True)
    return cases, tested


def _checked(
    settings: Settings, catalog: Catalog, id: str, needs: tuple[Need, ...],
    ran: list[tuple[SkillCase, CheckResult]], runs: Mapping[str, CaseRun],
) -> Checked:  # fmt: skip
    skill = catalog.skills[id]
    base = CheckResult(id, SKIPPED, subject=" ".join(skill.description.split()), file=skill.file)
    if any(result.status == SKIPPED and result.code == UNTRUSTED for _, result in ran):
        need = Need("trust", "its layer is not trusted", "cogcli config trust")
        return Checked(base._replace(reason=need.sentence), (need,))
    lacking = {case.id: need for case, _ in ran for need in _lacking_extra(runs.get(case.id))}
    failures = (result for _, result in ran if result.status == FAILED and result.id not in lacking)
    if failed := next(failures, None):
        reason = f"{failed.id}: {failed.reason}"
        return Checked(
            base._replace(status=FAILED, reason=reason, code=failed.code or "test.failed")
        )
    outside = dict(_outside(settings, catalog, id))
    if not variable(settings.environ, NETWORK):
        needs = needs or tuple(outside.values())
    ends_well = [(case, result) for case, result in ran if case.expectation.exit_code == OK]
    passed = [
        result
        for case, result in ends_well
        if result.status == PASSED and outside.keys().isdisjoint(runs[case.id].catalog.stubbed)
    ]
    if not needs and not passed:
        needs = _needs_of_cases(settings, [case for case, _ in ends_well], lacking.values())
    if needs:
        return Checked(base._replace(reason=needs[0].sentence), needs)
    took = sum(result.ms or 0 for result in passed)
    return Checked(base._replace(status=PASSED, checks=passed[0].checks, ms=took))


def _needs_of_cases(
    settings: Settings, cases: list[SkillCase], lacking: Iterable[Need]
) -> tuple[Need, ...]:
    """What a skill needs of which no case passed: what the cases lack, else a case that runs it."""
    unmet = [need for case in cases for need in unmet_needs(settings, case)]
    needs = tuple(dict.fromkeys([*lacking, *unmet]))
    return needs or (Need("case", "a case that runs it", "cogcli test --record EP"),)


def _lacking_extra(run: CaseRun | None) -> Iterator[Need]:
    """The extra for want of which a case ended, whatever it expects."""
    if run is not None and run.outcome.failure.code == "env.extra":
        yield Need("extra", run.outcome.failure.message, run.outcome.failure.hint)


def _outside(settings: Settings, catalog: Catalog, id: str) -> Iterator[tuple[str, Need]]:
    """The capabilities that a skill calls outside of this machine: what a stub answers for them is not what they do."""
    for capability in catalog.reached(id):
        try:
            link = called_first(catalog, capability.id, selection_options(settings))
        except BindingResolutionError:
            continue
        if need := outside_need(catalog, capability, link):
            yield capability.id, need._replace(cure=f"{NETWORK}=1")


# -- what ran --------------------------------------------------------------------------------------------------------


class RegistryCoverage(NamedTuple):
    """By kind: how many there are in all layers, how many ran, and which did not; `yours` has how many of these are not
    shipped. `untrusted` counts the capabilities and cases that were left out because their layer is not trusted."""

    counts: dict[str, dict[str, Any]]
    untrusted: int


def measure_coverage(settings: Settings) -> RegistryCoverage:
    """What ran when all examples were called and all cases were run. What a stub answered did not run, nor did a skill
    in whose run one answered for what is outside of this machine. Raises as `check_skills`."""
    called = check_contracts(settings)
    _, tested = _tested(settings, called.catalog.skills)
    ran: dict[str, set[str]] = {kind: set() for kind in KINDS}
    for fold in called.histories:
        _note(ran, called.catalog, fold, {})
    outside = {
        id: dict(_outside(settings, called.catalog, id)).keys() for id in called.catalog.skills
    }
    for run in tested.runs.values():
        _note(ran, run.catalog, run.outcome.history, outside)
    counts = {}
    for kind in KINDS:
        all_ids = sorted(getattr(called.catalog, kind))
        missing = [id for id in all_ids if id not in ran[kind]]
        specs = getattr(called.catalog, kind)
        yours = {id for id in all_ids if not is_shipped(settings, specs[id].file)}
        counts[kind] = {
            "total": len(all_ids),
            "ran": len(all_ids) - len(missing),
            "missing": missing,
            "yours": {"total": len(yours), "ran": len(yours.difference(missing))},
        }
    untrusted = sum(each.needs_trust for each in called.checked)
    untrusted += sum(result.code == UNTRUSTED for result in tested.results.results)
    return RegistryCoverage(counts, untrusted)


def _note(
    ran: Mapping[str, set[str]],
    catalog: Catalog,
    fold: History,
    outside: Mapping[str, Collection[str]],
) -> None:
    """Note what a log says was called and answered, gates and nested runs among it. `outside`: by skill the
    capabilities that it calls outside of this machine."""
    stubbed = catalog.stubbed
    for view in fold.runs.values():
        if view.status == "ok" and stubbed.isdisjoint(outside.get(view.skill, ())):
            ran["skills"].add(view.skill)
        for step in view.steps.values():
            capability = catalog.capability(step.uses)
            if capability is None or capability.id in stubbed or not step.binding:
                continue
            if any(attempt.status == "success" for attempt in step.attempts):
                ran["capabilities"].add(capability.id)
                ran["bindings"].add(step.binding)
