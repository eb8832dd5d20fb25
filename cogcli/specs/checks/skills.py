"""All checks of one skill, in the order in which they build on each other."""

from __future__ import annotations

from cogcli.specs.checks.context import CheckContext
from cogcli.specs.checks.dataflow import Dataflow, check_reads
from cogcli.specs.checks.flow_types import check_read_types, check_write_types
from cogcli.specs.checks.graph import StepGraph, dependencies_of, report_cycle
from cogcli.specs.checks.steps import facts_of
from cogcli.specs.checks.write_conflicts import check_names, check_outputs, check_races, check_rewrites
from cogcli.specs.skill import Skill


def check_skills(context: CheckContext) -> None:
    """Report the problems of all skills."""
    for skill in context.catalog.skills.values():
        _check_skill(context, skill)


def _check_skill(context: CheckContext, skill: Skill) -> None:
    """Report the problems of one skill: references, graph and dataflow."""
    report = context.report(skill.file)
    facts = [facts_of(context, skill, index, report) for index in range(len(skill.steps))]
    dependencies = dependencies_of(skill, report)
    graph = StepGraph(dependencies)
    if not graph.order:
        report_cycle(skill, dependencies, report)
        return
    flow = Dataflow(facts, graph)
    check_reads(flow, report)
    check_read_types(flow, skill, report)
    check_write_types(flow, skill, report)
    check_races(flow, report)
    check_rewrites(flow, report)
    check_outputs(flow, skill, report)
    check_names(flow, skill, report)
