"""The facts about a step that do not depend on other steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cogcli.core.problems import KeyPath
from cogcli.core.refs import Reference, Target
from cogcli.specs.checks.context import CheckContext
from cogcli.specs.checks.step_interfaces import Interface
from cogcli.specs.fields import FieldSpec
from cogcli.specs.problem_report import ProblemReport
from cogcli.specs.skill import Skill, Step

if TYPE_CHECKING:
    from cogcli.core.expressions import Mention


class Read(NamedTuple):
    """A reference with its place. `wanted` is the field whose whole value it is, if any.

    In an expression `text` is the whole expression and `offset` the place in it. `lenient`: a missing value is null;
    `own`: the step's own writes can be read.
    """

    reference: Reference
    path: KeyPath
    name: str = ""
    wanted: FieldSpec | None = None
    text: str = ""
    offset: int = 0
    lenient: bool = False
    own: bool = False

    @property
    def within(self) -> tuple[str, int] | None:
        """The text of the value at `path` and the offset of the reference in it; None where the reference is the
        value."""
        return (self.text, self.offset) if self.text else None


class PlannedWrite(NamedTuple):
    """A target with its place. `field` declares the value; `maybe`: it may remain unwritten."""

    target: Target
    path: KeyPath
    strategy: str
    field: FieldSpec
    maybe: bool
    wraps: bool = False
    """Whether the value is converted for a list slot."""


class Facts:
    """The facts about a step for the checks of order and flow. `holds`: the value of a constant condition."""

    __slots__ = ("guards", "holds", "interface", "reads", "step", "writes")

    def __init__(self, step: Step, interface: Interface, *, holds: bool | None = None) -> None:
        self.step = step
        self.interface = interface
        self.holds = holds
        self.reads: list[Read] = []
        self.writes: list[PlannedWrite] = []
        self.guards: tuple[Mention, ...] = ()
        """The references in its condition."""

    @property
    def never(self) -> bool:
        """Whether its condition is constantly false."""
        return self.holds is False


class Subject:
    """A step that is checked: its skill, its path in the file, its facts and its report."""

    def __init__(
        self, context: CheckContext, skill: Skill, facts: Facts, path: KeyPath, report: ProblemReport
    ) -> None:
        self.context = context
        self.skill = skill
        self.facts = facts
        self.step = facts.step
        self.path = path
        self.report = report
        self.subject = f"step `{self.step.id}`"
        foreach = self.step.config.foreach
        names = (foreach.as_name, foreach.index_name) if foreach else ()
        self.loops = frozenset(name for name in names if name)

    def called(self) -> str:
        """The name of the step's target for messages."""
        names = [f"`{called.name}`" for called in self.facts.interface.called]
        return names[0] if len(names) == 1 else f"any of {', '.join(names[:5])}"
