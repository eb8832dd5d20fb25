"""The ceilings that settings give to skills (docs/reference/spec-files.md#ceilings)."""

from __future__ import annotations

from collections.abc import Iterator

from cogcli.base.jsonvalue import preview
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import KeyPath
from cogcli.declarations.skill_spec import Step
from cogcli.declarations.spec_ceilings import setting_name
from cogcli.specs.checks.context import CheckContext
from cogcli.specs.problem_report import ProblemReport


class LoopBound(NamedTuple):
    """The largest number of rounds or items that a loop declares, or has by default."""

    path: KeyPath
    ceiling: str
    rounds: int


def check_ceilings(context: CheckContext) -> None:
    """Report skills with more steps, rounds or items than the settings allow."""
    ceilings = context.catalog.ceilings
    most = {"max_items": ceilings.max_items, "max_iterations": ceilings.max_iterations}
    for skill in context.iterate_specs(context.catalog.skills):
        report = context.report(skill.file, skill.at)
        if len(skill.steps) > ceilings.steps:
            message = f"found {len(skill.steps)} entries, expected 1 to {ceilings.steps}"
            subject = report.part(f"skill `{skill.id}`: steps")
            subject.error(
                "skill.steps", ("steps",), message, hint=_name_setting("split the skill", "steps")
            )
        for index, step in enumerate(skill.steps):
            for bound in _bounds_of(step):
                if bound.rounds > most[bound.ceiling]:
                    _report_loop_bound(
                        context.step_report(skill, index), bound, most[bound.ceiling]
                    )


def _bounds_of(step: Step) -> Iterator[LoopBound]:
    config = step.config
    if config.foreach is not None:
        path = ("config", "foreach", "max_items")
        yield LoopBound(path, "max_items", config.foreach.max_items)
    if config.while_ is not None:
        path = ("config", "while", "max_iterations")
        yield LoopBound(path, "max_iterations", config.while_.max_iterations)


def _report_loop_bound(report: ProblemReport, bound: LoopBound, maximum: int) -> None:
    """Report a loop at its bound, or at the loop if it has the default."""
    where = ".".join(map(str, bound.path))
    message = f"{where}: found {preview(bound.rounds)}, expected a whole number from 1 to {maximum}"
    report.error("value.range", bound.path, message, hint=_name_setting("lower it", bound.ceiling))


def _name_setting(cure: str, ceiling: str) -> str:
    return f"{cure}, or raise the setting {setting_name(ceiling)}"
