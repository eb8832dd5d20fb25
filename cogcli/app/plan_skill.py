"""`run --plan`: what a run would do, from the specs alone (docs/reference/command-line.md#views)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cogcli.app.plan_needs import PlannedCalls, needs
from cogcli.app.registry import open_registry
from cogcli.app.settings import Settings
from cogcli.core.errors import CogcliError
from cogcli.core.expressions import Expression
from cogcli.core.problems import Problem
from cogcli.core.redact import Redactor
from cogcli.core.refs import READABLE, parse
from cogcli.engine.plan import PlannedStep, StepTarget, plan_skill, record
from cogcli.runs.given_inputs import GivenRun, prepare_given
from cogcli.runs.prepare import RunRequest
from cogcli.specs.catalog import Catalog
from cogcli.specs.checks import check
from cogcli.specs.selection import SelectionOptions
from cogcli.specs.skill import Skill
from cogcli.specs.template import texts


def plan_given(settings: Settings, given: GivenRun, write: Callable[[dict[str, Any]], None]) -> list[Problem]:
    """Give `write` the plan of what a command line asks for; returns the warnings. Nothing is executed.

    Raises as `prepare_given`: of a run that may not start the plan is written before that, unless its specs are broken.
    """
    catalog, request = open_registry(settings).reach(given.request.skill_id), given.request
    options = SelectionOptions(request.binds, request.conformance, settings.environ)
    try:
        warnings = prepare_given(catalog, given, settings.environ).warnings
    except CogcliError as error:
        broken = any(problem.severity == "E" for problem in check(catalog, options=options))
        if not broken and request.skill_id in catalog.skills:
            write(_plan(catalog, request, options, error.exit_code))
        raise
    write(_plan(catalog, request, options, 0))
    return warnings


def _plan(catalog: Catalog, request: RunRequest, options: SelectionOptions, exit_code: int) -> dict[str, Any]:
    """The plan of a skill whose specs have no errors.

    `steps` are in plan order with their waves, `skills` holds the nested ones by id, `needs` are those of the whole
    tree; `exit_code` is the one that the run would be refused with.
    """
    survey = _Survey(catalog, PlannedCalls(catalog, options))
    own = survey.skill(catalog.skills[request.skill_id])
    return {
        "skill": request.skill_id,
        **own,
        "skills": survey.nested,
        "needs": needs(survey.calls, request),
        "exit_code": exit_code,
    }


class _Survey:
    """Collects the steps of a skill and its nested skills, each skill once."""

    def __init__(self, catalog: Catalog, calls: PlannedCalls) -> None:
        self.nested: dict[str, dict[str, Any]] = {}
        self.calls = calls
        self._catalog = catalog
        self._by_name = catalog.by_name

    def skill(self, skill: Skill) -> dict[str, Any]:
        """Version, number of waves and steps of one skill."""
        wave_of: dict[str, int] = {}
        redactor = Redactor()
        steps = []
        for step in plan_skill(skill, self._by_name, self._catalog.skills).steps:
            wave = 1 + max((wave_of[name] for name in step.depends_on), default=0)
            wave_of[step.step.id] = wave
            steps.append(
                {**redactor.mask(record(step)), "wave": wave, "uses": step.step.uses, **self._step(step)}
            )
        return {"version": skill.version, "waves": max(wave_of.values(), default=0), "steps": steps}

    def _step(self, step: PlannedStep) -> dict[str, Any]:
        entry: dict[str, Any] = {"reads": list(reads_of(step))}
        if step.step.config.condition is not None:
            entry["condition"] = step.step.config.condition
        default = [("default", step.target)] if step.targets and step.target else []
        choices = [*step.targets.items(), *default]
        if choices:
            entry["targets"] = [{"name": name, **self._target(target)} for name, target in choices]
        elif step.target:
            entry.update(self._target(step.target))
        return entry

    def _target(self, target: StepTarget) -> dict[str, Any]:
        if target.capability is None:
            if target.skill_id not in self.nested:
                self.nested[target.skill_id] = {}  # its place in the order of first calls
                self.nested[target.skill_id] = self.skill(self._catalog.skills[target.skill_id])
            return {"uses": target.uses, "skill": target.skill_id}
        self.calls.add(target.capability)
        return {"uses": target.uses, "tool": self.calls.tool(target.capability.id)}


def reads_of(step: PlannedStep) -> dict[str, None]:
    """The references in the input of a step, then those in its expressions, without its loop variables."""
    found: dict[str, None] = {}
    for _, text in texts(step.step.input):
        reference = parse(text)
        if reference:
            found[reference.text] = None
    for expression in step.expressions.values():
        for reference in expression.references if isinstance(expression, Expression) else ():
            if reference.namespace in READABLE:
                found[reference.text] = None
    return found
