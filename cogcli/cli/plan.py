"""`run --plan`: the steps that would run (docs/reference/command-line.md#views)."""

from __future__ import annotations

from collections.abc import Iterator

from cogcli.app.plan_skill import plan_given
from cogcli.base.errors import OK
from cogcli.base.terminal_text import cells, pad, visible
from cogcli.cli.context import CommandContext
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Json
from cogcli.report.humanize import count_of
from cogcli.report.styled_text import Glyphs, StyledLine, fit
from cogcli.run.given_inputs import GivenRun

PlanRow = tuple[str, ...]
"""Wave, step, target, tool, reads; a row of fewer cells is not aligned."""


def show_plan(context: CommandContext, given: GivenRun) -> int:
    """Write the plan of a run. Raise the errors of `plan_given`."""

    def write(plan: Json) -> None:
        context.own["plan"] = plan
        context.answer(_lines(context, plan))

    context.warnings += [
        warning.to_payload() for warning in plan_given(context.settings, given, write)
    ]
    return OK


def _lines(context: CommandContext, plan: Json) -> list[StyledLine]:
    out = context.screen.out
    amount = count_of(len(plan["steps"]), "step")
    head = f"would run {amount} in {count_of(plan['waves'], 'wave')}; nothing was executed"
    lines: list[StyledLine] = [[(head, "bold")]]
    texts = _align(list(_PlanRows(plan["skills"], out.glyphs).of_plan(plan)))
    lines += [[(fit(text, out.width), "")] for text in texts]
    return lines + _needs(plan["needs"], out.glyphs, out.width)


def _align(rows: list[PlanRow]) -> Iterator[str]:
    sizes = [max((cells(row[n]) for row in rows if len(row) > 2), default=0) for n in range(4)]
    for row in rows:
        if len(row) > 2:
            row = (*(pad(text, size) for text, size in zip(row[:4], sizes, strict=True)), row[4])
        yield f"  {'  '.join(row)}".rstrip()


class _PlanRows:
    """The rows of a plan; a nested skill is expanded at its first call only."""

    def __init__(self, skills: Json, glyphs: Glyphs) -> None:
        self._skills = skills
        self._glyphs = glyphs
        self._expanded: set[str] = set()

    def of_plan(self, plan: Json, depth: int = 0) -> Iterator[PlanRow]:
        """Yield the steps of a skill by waves; below a step its targets."""
        for wave in range(1, plan["waves"] + 1):
            together = [PlanStepRow.of(step) for step in plan["steps"] if step["wave"] == wave]
            number = str(wave) if depth == 0 else " "
            if len(together) > 1:
                names = f" {self._glyphs.parallel} ".join(visible(step.id) for step in together)
                yield (number, "  " * depth + names)
                number = " "
            for step in together:
                yield from self._of_step(step, number, depth)

    def _of_step(self, step: PlanStepRow, number: str, depth: int) -> Iterator[PlanRow]:
        indent = "  " * depth
        reads = visible(f"reads {', '.join(step.reads)}") if step.reads else ""
        yield (number, indent + visible(step.id), *step.cells, reads)
        if not step.targets:
            yield from self._of_nested(step, depth + 1)
        for target in step.targets or ():
            yield (" ", f"{indent}  {visible(target.name)}", *target.cells, "")
            yield from self._of_nested(target, depth + 2)

    def _of_nested(self, target: PlanTargetRow, depth: int) -> Iterator[PlanRow]:
        if target.skill and target.skill not in self._expanded:
            self._expanded.add(target.skill)
            yield from self.of_plan(self._skills[target.skill], depth)


class PlanTargetRow(Record):
    """A target of a planned step."""

    name: str
    uses: str
    tool: str | None = None
    skill: str | None = None

    @property
    def cells(self) -> tuple[str, str]:
        """The target and the tool that does it."""
        return visible(self.uses), visible(self.tool or "")


class PlanStepRow(PlanTargetRow):
    """A step of a plan. Without targets it has one, itself."""

    id: str
    reads: list[str]
    targets: list[PlanTargetRow] | None = None


def _needs(needs: Json, glyphs: Glyphs, width: int | None) -> list[StyledLine]:
    """Return all needs in one line, or a line per need if that is too wide."""
    parts = [visible(part) for part in _parts(needs, glyphs)]
    whole = f"needs  {'   '.join(parts)}"
    if width is None or cells(whole) <= width:
        return [[(whole, "dim")]]
    return [[(f"{'needs' if part is parts[0] else '     '}  {part}", "dim")] for part in parts]


def _parts(needs: Json, glyphs: Glyphs) -> Iterator[str]:
    def met(good: bool) -> str:
        return glyphs.sign("done" if good else "failed")

    if needs["variables"]:
        yield ", ".join(f"{entry['name']} {met(entry['set'])}" for entry in needs["variables"])
    yield f"network {', '.join(needs['network']) or 'none'}"
    trust = needs["trust"]
    yield f"trust {trust['needed']}" + (
        "" if trust["enough"] else f" {met(False)} (the run has {trust['given']})"
    )
    approvals = [f"{entry['capability']} {met(entry['confirmed'])}" for entry in needs["approvals"]]
    asking = [f"{entry['capability']} if {entry['gate']} says no" for entry in needs["may_ask"]]
    yield f"approvals {', '.join([*approvals, *asking]) or 'none'}"
