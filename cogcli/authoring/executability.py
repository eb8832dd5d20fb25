"""`registry executability` and `coverage`: the skills that run on this machine, and the specs that
really ran (docs/reference/command-line.md#registry-checks).
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from cogcli.app.needs import (
    NETWORK,
    MissingRequirement,
    find_needs,
    find_outside_need,
    first_eligible_link,
)
from cogcli.app.registry import open_registry, selection_options
from cogcli.app.settings import Settings
from cogcli.authoring.contracts import check_contracts
from cogcli.authoring.skill_test_run import CaseRun
from cogcli.authoring.skill_tests import UNTRUSTED, all_cases, find_unmet_needs, run_cases
from cogcli.authoring.spec_results import (
    TRUST,
    SpecResult,
    is_shipped,
    load_valid_catalog,
    match_ids,
)
from cogcli.authoring.verification.check_result import FAILED, PASSED, SKIPPED, CheckResult
from cogcli.authoring.verification.skill_case import SkillCase
from cogcli.base.errors import BindingResolutionError
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import ProblemsFound
from cogcli.base.system_text import variable
from cogcli.declarations.binding_spec import Binding
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.skill_spec import Skill
from cogcli.declarations.value_types import Json
from cogcli.episode.history import History
from cogcli.specs.catalog import Catalog

_JOBS: Final = 4
KINDS: Final = ("capabilities", "bindings", "skills")


class SkillResults(NamedTuple):
    """The result of each skill in order, and the total seconds."""

    checked: tuple[SpecResult, ...]
    seconds: float


class _TestedCase(NamedTuple):
    """A case with its result; `run` is None if it did not run."""

    case: SkillCase
    result: CheckResult
    run: CaseRun | None

    @property
    def lacking_extra(self) -> MissingRequirement | None:
        """The missing extra that ended the run, or None. The case may expect that error."""
        failure = self.run.outcome.failure if self.run else None
        if failure is None or failure.code != "env.extra":
            return None
        return MissingRequirement("extra", failure.message, failure.hint)

    @property
    def is_untrusted(self) -> bool:
        """Whether the case was skipped because its project is not trusted."""
        return self.result.status == SKIPPED and self.result.code == UNTRUSTED

    @property
    def has_failed(self) -> bool:
        """Whether the case failed for another reason than a missing extra."""
        return self.result.status == FAILED and self.lacking_extra is None

    def really_ran(self, remote_ids: Collection[str]) -> bool:
        """Return whether the case passed with a successful run, and no stub answered for one of these
        capabilities.
        """
        if self.run is None or self.result.status != PASSED or not self.case.ends_well:
            return False
        return self.run.catalog.stubbed.isdisjoint(remote_ids)


def check_skills(settings: Settings, words: Sequence[str] = ()) -> SkillResults:
    """Run the cases of each skill, or of the named ones.

    A skill passes if no case fails, and one case runs it successfully without a stub for a
    capability outside this machine. Other needs are part of the result. Raise ProblemsFound,
    UnusableEnvironment or UsageError.
    """
    catalog, begun = load_valid_catalog(settings), time.monotonic()
    ids = match_ids(words, catalog.skills, "skill")
    tested = _run_cases(settings, ids)
    needs = find_needs(open_registry(settings), catalog, selection_options(settings))
    checked = []
    for id in ids:
        skill = catalog.skills[id]
        subject = " ".join(skill.description.split())
        base = CheckResult(id, SKIPPED, subject=subject, file=skill.file)
        own = [each for each in tested if each.case.skill_id == id]
        outside = dict(_outside_calls(settings, catalog, id))
        judged = _build_result(settings, base, own, needs.skill(id), outside)
        checked.append(judged._replace(shipped=is_shipped(settings, skill.file)))
    return SkillResults(tuple(checked), time.monotonic() - begun)


def _run_cases(settings: Settings, skills: Collection[str]) -> list[_TestedCase]:
    """Return the cases of skills with their results. The runs are deleted. Raise ProblemsFound for
    invalid case files.
    """
    found = all_cases(settings)
    if found.problems:
        raise ProblemsFound(list(found.problems))
    cases = [case for case in found.cases if case.skill_id in skills]
    tested = run_cases(settings, cases, jobs=_JOBS)
    for run in tested.runs.values():
        if run.outcome.directory:
            shutil.rmtree(Path(run.outcome.directory).parent, ignore_errors=True)
    return [
        _TestedCase(case, result, tested.runs.get(case.id))
        for case, result in zip(cases, tested.results.results, strict=True)
    ]


def _failed_result(base: CheckResult, case: CheckResult) -> SpecResult:
    """Return the result of a skill whose case failed."""
    reason, code = f"{case.id}: {case.reason}", case.code or "test.failed"
    return SpecResult(base._replace(status=FAILED, reason=reason, code=code))


def _build_result(
    settings: Settings,
    base: CheckResult,
    tested_cases: Sequence[_TestedCase],
    needs: tuple[MissingRequirement, ...],
    remote_needs: Mapping[str, MissingRequirement],
) -> SpecResult:
    """Return the result of a skill from the results of its cases.

    `needs` are the needs of its specs, `remote_needs` the needs of its calls outside this machine,
    by capability.
    """
    if any(each.is_untrusted for each in tested_cases):
        return _needing_result(base, (TRUST,))
    failed = next((each.result for each in tested_cases if each.has_failed), None)
    if failed is not None:
        return _failed_result(base, failed)
    ran = [each.result for each in tested_cases if each.really_ran(remote_needs)]
    missing = _find_missing(settings, tested_cases, needs, remote_needs, has_run=bool(ran))
    return _needing_result(base, missing) if missing else SpecResult(_passed_result(base, ran))


def _find_missing(
    settings: Settings,
    tested_cases: Sequence[_TestedCase],
    needs: tuple[MissingRequirement, ...],
    remote_needs: Mapping[str, MissingRequirement],
    *,
    has_run: bool,
) -> tuple[MissingRequirement, ...]:
    """Return the needs of a skill that this machine lacks: of its specs, else the network, else of its cases."""
    if needs:
        return needs
    has_network = bool(variable(settings.environ, NETWORK))
    if remote_needs and not has_network:
        return tuple(remote_needs.values())
    return () if has_run else _needs_of_cases(settings, tested_cases)


def _passed_result(base: CheckResult, ran: Sequence[CheckResult]) -> CheckResult:
    """Return the result of a skill that these cases ran successfully."""
    took = sum(result.ms or 0 for result in ran)
    return base._replace(status=PASSED, checks=ran[0].checks, ms=took)


def _needing_result(base: CheckResult, needs: tuple[MissingRequirement, ...]) -> SpecResult:
    return SpecResult(base._replace(reason=needs[0].sentence), needs)


def _needs_of_cases(
    settings: Settings, tested_cases: Sequence[_TestedCase]
) -> tuple[MissingRequirement, ...]:
    """Return the needs of a skill without a passed case: those of its cases, or the need of a case
    that runs it.
    """
    extras = [each.lacking_extra for each in tested_cases]
    ending_well = [each.case for each in tested_cases if each.case.ends_well]
    unmet = [need for case in ending_well for need in find_unmet_needs(settings, case)]
    needs = tuple(dict.fromkeys([*filter(None, extras), *unmet]))
    return needs or (MissingRequirement("case", "a case that runs it", "cogcli test --record EP"),)


def _outside_calls(
    settings: Settings, catalog: Catalog, id: str
) -> Iterator[tuple[str, MissingRequirement]]:
    """Yield the capabilities that a skill calls outside this machine, with their needs. A stub for
    them proves nothing.
    """
    for capability in catalog.reached(id):
        try:
            link = first_eligible_link(catalog, capability.id, selection_options(settings))
        except BindingResolutionError:
            continue
        if need := find_outside_need(catalog, capability, link):
            yield capability.id, need._replace(cure=f"{NETWORK}=1")


# -- what ran --------------------------------------------------------------------------------------------------------


class RegistryCoverage(NamedTuple):
    """For each kind: the number of specs in all layers, the number that ran, and the others.

    `yours` has the same for specs that are not shipped. `untrusted` is the number of capabilities
    and cases that were left out because their layer is not trusted.
    """

    counts: dict[str, Json]
    untrusted: int


def measure_coverage(settings: Settings) -> RegistryCoverage:
    """Return which specs run when all examples are called and all cases are run.

    A stubbed capability does not count as run, nor does a skill with a stubbed call outside this
    machine. Raise the errors of `check_skills`.
    """
    called = check_contracts(settings)
    catalog = called.catalog
    tested = _run_cases(settings, catalog.skills)
    ran: dict[str, set[str]] = {kind: set() for kind in KINDS}
    for history in called.histories:
        _add_run_specs(ran, catalog, history, {})
    outside = {id: dict(_outside_calls(settings, catalog, id)).keys() for id in catalog.skills}
    for each in tested:
        if each.run is not None:
            _add_run_specs(ran, each.run.catalog, each.run.outcome.history, outside)
    specs: dict[str, Mapping[str, Capability | Binding | Skill]] = {
        "capabilities": catalog.capabilities,
        "bindings": catalog.bindings,
        "skills": catalog.skills,
    }
    counts = {kind: _count_executed_specs(settings, specs[kind], ran[kind]) for kind in KINDS}
    untrusted = sum(each.needs_trust for each in called.checked)
    untrusted += sum(each.result.code == UNTRUSTED for each in tested)
    return RegistryCoverage(counts, untrusted)


def _count_executed_specs(
    settings: Settings, specs: Mapping[str, Capability | Binding | Skill], ran: Collection[str]
) -> Json:
    """Return the number of specs of a kind, and those that did not run."""
    missing = sorted(id for id in specs if id not in ran)
    yours = {id for id, spec in specs.items() if not is_shipped(settings, spec.file)}
    return {
        "total": len(specs),
        "ran": len(specs) - len(missing),
        "missing": missing,
        "yours": {"total": len(yours), "ran": len(yours.difference(missing))},
    }


def _add_run_specs(
    run_ids: Mapping[str, set[str]],
    catalog: Catalog,
    fold: History,
    remote_by_skill: Mapping[str, Collection[str]],
) -> None:
    """Add to `run_ids` the specs that a log records as called and answered, including gates and
    nested runs.

    `remote_by_skill` are the capabilities that each skill calls outside this machine.
    """
    stubbed = catalog.stubbed
    for view in fold.runs.values():
        if view.status == "ok" and stubbed.isdisjoint(remote_by_skill.get(view.skill, ())):
            run_ids["skills"].add(view.skill)
        for step in view.steps.values():
            capability = catalog.capability(step.uses)
            if capability is None or capability.id in stubbed or not step.binding:
                continue
            if any(attempt.status == "success" for attempt in step.attempts):
                run_ids["capabilities"].add(capability.id)
                run_ids["bindings"].add(step.binding)
