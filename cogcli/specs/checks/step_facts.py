"""The facts about a step that do not depend on other steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cogcli.core.problems import KeyPath
from cogcli.core.refs import Reference, Target
from cogcli.specs.checks.context import CheckContext
from cogcli.specs.checks.step_interfaces import interface_of
from cogcli.specs.fields import FieldSpec
from cogcli.specs.skill import Skill

if TYPE_CHECKING:
    from cogcli.core.expressions import Mention


class Read(NamedTuple):
    """A reference with its place below the step. `wanted` is the field whose whole value it is, if any.

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
    """A target with its place below the step. `field` declares the value; `maybe`: it may remain unwritten."""

    target: Target
    path: KeyPath
    strategy: str
    field: FieldSpec
    maybe: bool
    wraps: bool = False
    """Whether the value is converted for a list slot."""

    @property
    def place(self) -> tuple[str, ...]:
        """The namespace and the path of the target."""
        return (self.target.namespace, *self.target.path)


class StepFacts:
    """A step that is checked, its contract, and the reads and writes of it for the checks of order and flow.

    Paths in its `report` are below the step.
    """

    __slots__ = (
        "context",
        "guards",
        "holds",
        "interface",
        "loops",
        "reads",
        "report",
        "skill",
        "step",
        "writes",
    )

    def __init__(self, context: CheckContext, skill: Skill, index: int) -> None:
        self.context = context
        self.skill = skill
        self.step = skill.steps[index]
        self.report = context.step_report(skill, index)
        self.interface = interface_of(context.catalog, self.step)
        foreach = self.step.config.foreach
        self.loops = frozenset(filter(None, (foreach.as_name, foreach.index_name) if foreach else ()))
        self.reads: list[Read] = []
        self.writes: list[PlannedWrite] = []
        self.guards: tuple[Mention, ...] = ()
        """The references in its condition."""
        condition = self.step.config.condition
        self.holds: bool | None = condition if isinstance(condition, bool) else None
        """The value of a constant condition."""

    def called(self) -> str:
        """The name of the step's target for messages."""
        names = [f"`{called.name}`" for called in self.interface.called]
        return names[0] if len(names) == 1 else f"any of {', '.join(names[:5])}"
