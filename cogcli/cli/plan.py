"""The screen of `run --plan`: the steps that would run (docs/reference/command-line.md#views)."""

from __future__ import annotations

from collections.abc import Iterator

from cogcli.app.plan_skill import plan_requested_run
from cogcli.base.errors import OK
from cogcli.base.terminal_text import cells, pad, visible
from cogcli.cli.context import CommandContext
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Json
from cogcli.report.humanize import count_of
from cogcli.report.styled_text import Glyphs, StyledLine, fit
from cogcli.run.given_inputs import RequestedRun

PlanRow = tuple[str, ...]
"""Wave, step, target, tool, reads; a row of fewer cells is not aligned."""


def show_plan(context: CommandContext, requested: RequestedRun) -> int:
    """Write the plan of a run. Raise the errors of `plan_requested_run`."""

    def write(plan: Json) -> None:
        """Write a plan, and add it to the envelope."""
        context.own["plan"] = plan
        context.answer(_plan_lines(context, plan))

    context.warnings += [
        warning.to_payload() for warning in plan_requested_run(context.settings, requested, write)
    ]
    return OK


def _plan_lines(context: CommandContext, plan: Json) -> list[StyledLine]:
    """Return the lines of a plan."""
    out = context.screen.out
    amount = count_of(len(plan["steps"]), "step")
    head = f"would run {amount} in {count_of(plan['waves'], 'wave')}; nothing was executed"
    lines: list[StyledLine] = [[(head, "bold")]]
    texts = _align_rows(list(_PlanRows(plan["skills"], out.glyphs).plan_rows(plan)))
    lines += [[(fit(text, out.width), "")] for text in texts]
    return lines + _need_lines(plan["needs"], out.glyphs, out.width)


def _align_rows(rows: list[PlanRow]) -> Iterator[str]:
    """Yield rows as lines with aligned columns."""
    sizes = [max((cells(row[n]) for row in rows if len(row) > 2), default=0) for n in range(4)]
    for row in rows:
        if len(row) > 2:
            row = (*(pad(text, size) for text, size in zip(row[:4], sizes, strict=True)), row[4])
        yield f"  {'  '.join(row)}".rstrip()


class _PlanRows:
    """The rows of a plan. A nested skill is expanded only at its first call."""

    def __init__(self, skills: Json, glyphs: Glyphs) -> None:
        self._skills = skills
        self._glyphs = glyphs
        self._expanded: set[str] = set()

    def plan_rows(self, plan: Json, depth: int = 0) -> Iterator[PlanRow]:
        """Yield the steps of a skill wave by wave, with the targets of a step below it."""
        for wave in range(1, plan["waves"] + 1):
            together = [PlanStepRow.of(step) for step in plan["steps"] if step["wave"] == wave]
            number = str(wave) if depth == 0 else " "
            if len(together) > 1:
                names = f" {self._glyphs.parallel} ".join(visible(step.id) for step in together)
                yield (number, "  " * depth + names)
                number = " "
            for step in together:
                yield from self._step_rows(step, number, depth)

    def _step_rows(self, step: PlanStepRow, number: str, depth: int) -> Iterator[PlanRow]:
        """Yield the row of a step, and its targets and nested skill."""
        indent = "  " * depth
        reads = visible(f"reads {', '.join(step.reads)}") if step.reads else ""
        yield (number, indent + visible(step.id), *step.cells, reads)
        if not step.targets:
            yield from self._nested_rows(step, depth + 1)
        for target in step.targets or ():
            yield (" ", f"{indent}  {visible(target.name)}", *target.cells, "")
            yield from self._nested_rows(target, depth + 2)

    def _nested_rows(self, target: PlanTargetRow, depth: int) -> Iterator[PlanRow]:
        """Yield the steps of a nested skill at its first call."""
        if target.skill and target.skill not in self._expanded:
            self._expanded.add(target.skill)
            yield from self.plan_rows(self._skills[target.skill], depth)


class PlanTargetRow(Record):
    """A target of a planned step."""

    name: str
    uses: str
    tool: str | None = None
    skill: str | None = None

    @property
    def cells(self) -> tuple[str, str]:
        """The columns for the target and its tool."""
        return visible(self.uses), visible(self.tool or "")


class PlanStepRow(PlanTargetRow):
    """A step of a plan. A step without `targets` is its own target."""

    id: str
    reads: list[str]
    targets: list[PlanTargetRow] | None = None


def _need_lines(needs: Json, glyphs: Glyphs, width: int | None) -> list[StyledLine]:
    """Return all needs of a plan in one line, or a line per need if that is too wide."""
    parts = [visible(part) for part in _need_texts(needs, glyphs)]
    single_line = f"needs  {'   '.join(parts)}"
    if width is None or cells(single_line) <= width:
        return [[(single_line, "dim")]]
    return [[(f"{'needs' if part is parts[0] else '     '}  {part}", "dim")] for part in parts]


def _need_texts(needs: Json, glyphs: Glyphs) -> Iterator[str]:
    """Yield each need with a sign for whether it is met."""

    def need_sign(is_met: bool) -> str:
        """Return the sign for whether a need is met."""
        return glyphs.sign("done" if is_met else "failed")

    if needs["variables"]:
        yield ", ".join(
            f"{entry['name']} {need_sign(entry['set'])}" for entry in needs["variables"]
        )
    yield f"network {', '.join(needs['network']) or 'none'}"
    trust = needs["trust"]
    yield f"trust {trust['needed']}" + (
        "" if trust["enough"] else f" {need_sign(False)} (the run has {trust['given']})"
    )
    approvals = [
        f"{entry['capability']} {need_sign(entry['confirmed'])}" for entry in needs["approvals"]
    ]
    asking = [f"{entry['capability']} if {entry['gate']} says no" for entry in needs["may_ask"]]
    yield f"approvals {', '.join([*approvals, *asking]) or 'none'}"
