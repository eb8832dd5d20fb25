"""The facts about a step that do not depend on other steps: its contract, its reads and its writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from cogcli.base.jsonvalue import NOTHING
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import KeyPath
from cogcli.base.refs import Reference, Target
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.field_spec import Fields, FieldSpec, FieldType
from cogcli.declarations.skill_spec import Skill, Step
from cogcli.declarations.spec_types import NESTED
from cogcli.specs.catalog import Catalog
from cogcli.specs.checks.context import CheckContext
from cogcli.specs.inner_shapes import InnerShape, shape_of
from cogcli.specs.skill import targets_of

if TYPE_CHECKING:
    from cogcli.base.expressions import ReferenceMention


_COLLECTED: Final = {"$errors": FieldSpec(type="array", required=True)}
_ROUNDS: Final = {
    "$iterations": FieldSpec(type="integer", required=True),
    "$exhausted": FieldSpec(type="boolean", required=True),
}


class ResolvedTarget(NamedTuple):
    """A target of a step: its name, its path in the step, and its spec. The spec is None if it is unknown."""

    name: str
    path: KeyPath
    spec: Capability | Skill | None

    @property
    def capability(self) -> Capability | None:
        """Its capability. None if the target is a skill, or unknown."""
        return self.spec if isinstance(self.spec, Capability) else None


class Interface(NamedTuple):
    """The contract of a step. A field of `outputs` is `required` if it is always produced.

    `complete` is false if a target is unknown: then there may be more fields. `results` has the outputs of each target
    of a collecting scatter, by name.
    """

    called: tuple[ResolvedTarget, ...]
    complete: bool
    inputs: Fields
    outputs: Fields
    degrades: bool
    results: dict[str, Fields] = NOTHING

    def shape(self, name: str) -> InnerShape:
        """Return the known shape of one output."""
        if name in self.results:
            return InnerShape("object", fields=self.results[name])
        return shape_of(self.outputs[name])


class StateRead(NamedTuple):
    """A reference that a step reads, with its path in the step.

    `wanted` is the field whose whole value is the reference, if any. In an expression or a `$text`, `text` is the whole
    text and `offset` the position of the reference in it. `lenient`: a missing value is null. `own`: writes of the step
    itself can be read. `filled`: the value becomes part of a string.
    """

    reference: Reference
    path: KeyPath
    name: str = ""
    wanted: FieldSpec | None = None
    text: str = ""
    offset: int = 0
    lenient: bool = False
    own: bool = False
    filled: bool = False

    @property
    def in_expression(self) -> bool:
        """Whether the reference is in an expression.

        There, paths may lead into lists, and a missing value is not null.
        """
        return bool(self.text) and not self.filled

    @property
    def within(self) -> tuple[str, int] | None:
        """The text that contains the reference, and the offset in it. None if the reference is the whole value."""
        return (self.text, self.offset) if self.text else None


class PlannedWrite(NamedTuple):
    """A target that a step writes, with its path in the step. `field` is the declaration of the value. `maybe` is
    whether the target may stay unwritten.
    """

    target: Target
    path: KeyPath
    strategy: str
    field: FieldSpec
    maybe: bool
    wraps: bool = False
    """Whether the value is converted for a list slot."""
    shape: InnerShape = InnerShape()
    """The known shape of the value."""

    @property
    def place(self) -> tuple[str, ...]:
        """The namespace and the path of the target."""
        return (self.target.namespace, *self.target.path)


class StepFacts:
    """A step to check, its contract, and its reads and writes. Checks of order and dataflow use them.

    Paths in its `report` are relative to the step.
    """

    __slots__ = (
        "context",
        "guards",
        "holds",
        "interface",
        "item_reads",
        "items",
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
        self.loops = self.step.loop_names
        self.reads: list[StateRead] = []
        self.item_reads: list[StateRead] = []
        """Reads of members of the item of its loop."""
        self.items: Reference | None = None
        """The reference that its loop iterates over, if it is a single one."""
        self.writes: list[PlannedWrite] = []
        self.guards: tuple[ReferenceMention, ...] = ()
        """The references in its condition."""
        condition = self.step.config.condition
        self.holds: bool | None = condition if isinstance(condition, bool) else None
        """The value of a constant condition."""

    def target_name(self) -> str:
        """Return the name of the step's target, for messages."""
        names = [f"`{target.name}`" for target in self.interface.called]
        return names[0] if len(names) == 1 else f"any of {', '.join(names[:5])}"


def interface_of(catalog: Catalog, step: Step) -> Interface:
    """Return the contract of a step."""
    targets = []
    for path, name in targets_of(step):
        nested = name.startswith(NESTED)
        spec = catalog.skills.get(name[len(NESTED) :]) if nested else catalog.capability(name)
        targets.append(ResolvedTarget(name, path, spec))
    known = [entry.spec for entry in targets if entry.spec is not None]
    # A gate may skip the step.
    degrades = any(
        gate.on_fail == "degrade"
        for entry in targets
        if entry.capability
        for gate in entry.capability.gates
    )
    return Interface(
        called=tuple(targets),
        complete=len(known) == len(targets),
        inputs=known[0].inputs if len(targets) == 1 and known else _join_inputs(known),
        outputs=_find_outputs(step, known),
        degrades=degrades,
        results=_find_results(step, targets),
    )


def _find_results(step: Step, targets: Sequence[ResolvedTarget]) -> dict[str, Fields]:
    scatter = step.config.scatter
    if scatter is None or scatter.merge != "collect":
        return {}
    named = zip(scatter.targets, targets, strict=True)
    return {name: entry.spec.outputs for name, entry in named if entry.spec is not None}


def _join_inputs(specs: Sequence[Capability | Skill]) -> Fields:
    """Return the inputs of all targets of a step. An input is required if any target requires it."""
    joined: Fields = {}
    for spec in specs:
        for name, field in spec.inputs.items():
            other = joined.get(name)
            if other is not None:
                needed = field.needs_value or other.needs_value
                field = FieldSpec(type=_join_types([field, other]), required=needed)
            joined[name] = field
    return joined


def _find_outputs_of_round(step: Step, specs: Sequence[Capability | Skill]) -> Fields:
    """Return the outputs of a step without its loop: the outputs of its targets, merged by its scatter."""
    scatter = step.config.scatter
    merge = scatter.merge if scatter else ""
    if scatter and merge == "collect":
        return {name: FieldSpec(type="object", required=True) for name in scatter.targets}
    return _join_outputs(specs, every=merge != "concat_lists")


def _find_outputs(step: Step, specs: Sequence[Capability | Skill]) -> Fields:
    config = step.config
    outputs = _find_outputs_of_round(step, specs)
    if config.foreach and config.foreach.collects:
        # An item that failed is null, so nothing is known of the items.
        lists = dict.fromkeys(outputs, FieldSpec(type="array", required=True))
        return {**lists, **_COLLECTED}
    if config.foreach:
        return {
            name: FieldSpec(type="array", required=True, items=field)
            for name, field in outputs.items()
        }
    return {**outputs, **_ROUNDS} if config.while_ else outputs


def _join_outputs(specs: Sequence[Capability | Skill], *, every: bool) -> Fields:
    """Return the outputs of all targets of a step.

    With `every`, an output is certain if all targets produce it, otherwise if any of them does.
    """
    if len(specs) == 1:
        return {name: _mark_certain(field) for name, field in specs[0].outputs.items()}
    joined: Fields = {}
    for name in dict.fromkeys(name for spec in specs for name in spec.outputs):
        fields = [_mark_certain(spec.outputs[name]) for spec in specs if name in spec.outputs]
        certain = [field.required for field in fields]
        is_certain = all(certain) and len(fields) == len(specs) if every else any(certain)
        joined[name] = FieldSpec(type=_join_types(fields), required=is_certain)
    return joined


def _join_types(fields: Sequence[FieldSpec]) -> FieldType:
    first = fields[0].type
    return first if all(field.type == first for field in fields) else "any"


def _mark_certain(field: FieldSpec) -> FieldSpec:
    return field if field.required or field.default is None else field.replace(required=True)
