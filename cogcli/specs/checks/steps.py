"""A step by itself: its targets, inputs and outputs (docs/reference/skill.md#step-checks,
docs/reference/skill.md#target-checks, docs/reference/skill.md#reference-checks)."""

from __future__ import annotations

from cogcli.core.problems import KeyPath
from cogcli.specs.capability import Capability
from cogcli.specs.checks.constant_conditions import constant
from cogcli.specs.checks.context import CheckContext
from cogcli.specs.checks.step_facts import Facts, Subject
from cogcli.specs.checks.step_inputs import check_input, check_otherwise
from cogcli.specs.checks.step_interfaces import interface_of
from cogcli.specs.checks.step_outputs import check_output
from cogcli.specs.problem_report import ProblemReport
from cogcli.specs.skill import NESTED, Skill, StepConfig


def facts_of(context: CheckContext, skill: Skill, index: int, report: ProblemReport) -> Facts:
    """The facts about one step that do not depend on others; reports its problems."""
    step = skill.steps[index]
    facts = Facts(step, interface_of(context.catalog, step), holds=constant(step.config.condition))
    at = Subject(context, skill, facts, ("steps", index), report)
    _check_uses(at)
    check_input(at)
    check_otherwise(at)
    check_output(at)
    if _has_expressions(at.step.config):
        from cogcli.specs.checks.step_expressions import check_expressions

        check_expressions(at)
    return facts


def _check_uses(at: Subject) -> None:
    for called in at.facts.interface.called:
        path = (*at.path, *called.path)
        nested = called.name.startswith(NESTED)
        if called.spec is None:
            kind = "skill" if nested else "capability"
            said, hint = at.context.absent(kind, called.name.removeprefix(NESTED))
            at.report.error("step.uses", path, f"{at.subject}: {said}", hint=hint)
        elif isinstance(called.spec, Capability):
            _check_deprecated(at, called.spec, path)


def _check_deprecated(at: Subject, capability: Capability, path: KeyPath) -> None:
    if capability.deprecated or capability.metadata.get("status") == "deprecated":
        message = f"{at.subject}: capability `{capability.id}` is deprecated"
        hint = f"use {capability.replacement}" if capability.replacement else ""
        at.report.warn("capability.deprecated", path, message, hint=hint)


def _has_expressions(config: StepConfig) -> bool:
    return config.condition is not None or any((config.foreach, config.while_, config.router))
