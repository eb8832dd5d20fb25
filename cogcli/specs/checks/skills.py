"""All checks of skills, in the order in which they build on each other.

The rules are in docs/reference/skill.md#step-checks and docs/reference/skill.md#graph-checks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cogcli.base.problems import suggest_path
from cogcli.declarations.skill_spec import Skill
from cogcli.declarations.spec_types import NESTED
from cogcli.specs.checks.context import CheckContext
from cogcli.specs.checks.dataflow import Dataflow, check_reads
from cogcli.specs.checks.flow_types import check_read_types, check_write_types
from cogcli.specs.checks.graph import StepGraph, dependencies_of, report_cycle
from cogcli.specs.checks.step_facts import StepFacts
from cogcli.specs.checks.step_inputs import check_input, check_otherwise
from cogcli.specs.checks.step_outputs import check_output
from cogcli.specs.checks.write_conflicts import (
    check_names,
    check_outputs,
    check_races,
    check_rewrites,
)
from cogcli.specs.cycles import shortest_cycle
from cogcli.specs.skill import skills_of, targets_of

MAX_DEPTH: Final = 10
"""The maximum number of levels of nested skills."""
MAX_LANES: Final = 2
"""The maximum number of levels of nested templates of a pack."""


def check_skills(context: CheckContext) -> None:
    """Report the problems of all skills: in references, graph and dataflow."""
    for skill in context.iterate_specs(context.catalog.skills):
        facts = [StepFacts(context, skill, index) for index in range(len(skill.steps))]
        for step in facts:
            _check_step(step)
        dependencies = dependencies_of(facts)
        graph = StepGraph(dependencies)
        if not graph.order:
            report_cycle(facts, dependencies)
            continue
        flow = Dataflow(skill, facts, graph)
        check_reads(flow)
        check_read_types(flow)
        check_write_types(flow)
        check_races(flow)
        check_rewrites(flow)
        check_names(flow)
        check_outputs(flow, context.report(skill.file, skill.at).part(f"skill `{skill.id}`"))


def _check_step(step: StepFacts) -> None:
    """Report the problems of a single step."""
    _check_targets(step)
    config = step.step.config
    expressions = (config.foreach, config.while_, config.router)
    if config.expression is not None or any(expressions):
        from cogcli.specs.checks.step_expressions import check_expressions

        check_expressions(step)
    check_input(step)
    check_otherwise(step)
    check_output(step)


def _check_targets(step: StepFacts) -> None:
    for called in step.interface.called:
        capability = called.capability
        if called.spec is None:
            kind = "skill" if called.name.startswith(NESTED) else "capability"
            message, hint = _explain_absent_target(step, kind, called.name)
            step.report.error("step.uses", called.path, message, hint=hint)
        elif capability and capability.is_deprecated:
            message = f"capability `{capability.id}` is deprecated"
            hint = f"use {capability.replacement}" if capability.replacement else ""
            step.report.warn("capability.deprecated", called.path, message, hint=hint)


def _explain_absent_target(step: StepFacts, kind: str, name: str) -> tuple[str, str]:
    """Return the message and the hint about an unknown target. The hint has the syntax of `uses`."""
    message, hint = step.context.explain_absence(kind, name.removeprefix(NESTED))
    known = step.context.catalog.known
    if hint and kind == "skill" and known:
        hint = suggest_path(name.removeprefix(NESTED), known("skill"), prefix=NESTED)
    elif not hint and kind == "capability" and known and name in known("skill"):
        hint = f"did you mean `{NESTED}{name}`?"
    return message, hint


def _find_nested_skills(skills: Mapping[str, Skill]) -> dict[str, list[str]]:
    """Return the known skills that each skill calls. Skills that call none are left out."""
    nested: dict[str, list[str]] = {}
    for id in sorted(skills):
        known = [name for name in skills_of(skills[id]) if name in skills]
        if known:
            nested[id] = known
    return nested


def check_nesting(context: CheckContext) -> None:
    """Report `skill.cycle` and `skill.depth` for all skills of the catalog, at the steps that call nested skills."""
    skills = context.catalog.skills
    nested = _find_nested_skills(skills)
    # A skill with a position is a template of a pack, and the templates below it are lanes.
    lanes = {id: [n for n in ids if skills[n].at] for id, ids in nested.items() if skills[id].at}
    depths: dict[str, int] = {}
    lane_depths: dict[str, int] = {}
    for id in nested:
        if id in lanes:
            _check_depth(context, lanes, id, lane_depths, MAX_LANES, "lanes")
        cycle = shortest_cycle(id, lambda name: nested.get(name, ()))
        if cycle:
            message = f"cycle {' -> '.join(cycle)}"
            _report_nesting(context, skills[id], "skill.cycle", message, cycle[1])
        _check_depth(context, nested, id, depths, MAX_DEPTH, "skills")


def _check_depth(
    context: CheckContext,
    nested_by_skill: dict[str, list[str]],
    id: str,
    depths: dict[str, int],
    maximum: int,
    kind: str,
) -> None:
    if _measure_depth(nested_by_skill, id, depths) > maximum:
        deepest = max(nested_by_skill[id], key=lambda name: depths.get(name, 0))
        message = f"{kind} nest more than {maximum} deep"
        _report_nesting(context, context.catalog.skills[id], "skill.depth", message, deepest)


def _measure_depth(nested_by_skill: dict[str, list[str]], id: str, depths: dict[str, int]) -> int:
    """Return the depth of nested skills in a skill, at most one more than allowed. A cycle counts
    as one level.
    """
    stack = [id]
    while stack:
        current = stack[-1]
        if current not in depths:
            depths[current] = -1
            stack += [
                nested_skill
                for nested_skill in nested_by_skill.get(current, ())
                if nested_skill not in depths
            ]
            continue
        stack.pop()
        if depths[current] < 0:
            nested_skill = [max(depths[n], 0) + 1 for n in nested_by_skill.get(current, ())]
            depths[current] = max(nested_skill, default=0)
    return depths[id]


def _report_nesting(
    context: CheckContext, skill: Skill, code: str, message: str, nested_id: str
) -> None:
    """Report a problem at the first step that calls the nested skill."""
    calls = (
        (n, path)
        for n, step in enumerate(skill.steps)
        for path, name in targets_of(step)
        if name == NESTED + nested_id
    )
    index, path = next(calls)
    context.step_report(skill, index).error(code, path, message)
