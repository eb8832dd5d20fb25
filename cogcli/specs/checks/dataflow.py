"""Dataflow between steps: which steps write and read each place in the state.

The rules are in docs/reference/skill.md#reference-checks and docs/reference/skill.md#graph-checks. Sets of steps are
bit sets over the plan order, so that a check of one step takes few operations in a large skill.

1. A read needs an earlier writer. If a writer is concurrent, the value depends on timing.
2. `vars` and `outputs` hold flat keys: a read uses its whole path as one key, otherwise its first segment.
3. In other namespaces a write supplies reads of its place, of places below it, and of places that contain it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from cogcli.base.problems import suggest_path
from cogcli.base.refs import Reference
from cogcli.declarations.skill_spec import Skill
from cogcli.specs.checks.graph import StepGraph
from cogcli.specs.checks.step_facts import StateRead, StepFacts
from cogcli.specs.inner_shapes import MAX_SHAPES, InnerShape

StatePath = tuple[str, ...]
FLAT: Final = ("vars", "outputs")
_MUST_EXIST: Final = ("vars", "outputs", "working")


class Dataflow:
    """The writers and readers of every place. Steps are identified by their position in plan order."""

    def __init__(self, skill: Skill, facts: Sequence[StepFacts], graph: StepGraph) -> None:
        self.skill = skill
        self.facts = [facts[index] for index in graph.order]
        self.graph = graph
        self.written: defaultdict[StatePath, int] = defaultdict(int)
        self.within: defaultdict[StatePath, int] = defaultdict(int)
        self.surely: defaultdict[StatePath, int] = defaultdict(int)
        self.types: defaultdict[StatePath, set[str]] = defaultdict(set)
        self.shapes: dict[StatePath, list[InnerShape]] = {}
        """Shapes written to each place. Empty if more than `MAX_SHAPES` shapes are known."""
        self.read: defaultdict[StatePath, int] = defaultdict(int)
        for position, fact in enumerate(self.facts):
            for write in fact.writes:
                bit, place = 1 << position, write.place
                self.written[place] |= bit
                self.types[place].add(write.field.type)
                self._note_shape(place, write.shape)
                for end in range(1, len(place)):
                    self.within[place[:end]] |= bit
                for end in () if write.maybe else range(1, len(place) + 1):
                    self.surely[place[:end]] |= bit
            for read in fact.reads:
                for source in list_supplying_places(read.reference):
                    self.read[source] |= 1 << position

    def _note_shape(self, place: StatePath, shape: InnerShape) -> None:
        known = self.shapes.setdefault(place, [shape])
        if known and not any(each is shape or each.has_same_declaration(shape) for each in known):
            known.append(shape)
        if len(known) > MAX_SHAPES:
            known.clear()

    def writers(self, reference: Reference) -> int:
        """Return, as bits, the steps whose writes may supply the value of a reference."""
        bits = self.within.get((reference.namespace, *reference.segments), 0)
        for place in list_supplying_places(reference):
            bits |= self.written.get(place, 0)
        return bits

    def sure_writers(self, reference: Reference) -> int:
        """Return, as bits, the steps that always write the place of a reference."""
        bits = 0
        for place in list_supplying_places(reference):
            bits |= self.surely.get(place, 0)
        return bits

    def name(self, bits: int) -> str:
        """Return the id of the first step in a set of bits."""
        return self.facts[(bits & -bits).bit_length() - 1].step.id


def list_supplying_places(reference: Reference) -> list[StatePath]:
    """Return the places whose writes may supply the value of a reference.

    In flat namespaces these are two keys, otherwise the place itself and the places that contain it.
    """
    namespace, segments = reference.namespace, reference.segments
    if len(segments) == 1:
        return [(namespace, segments[0])]
    if namespace in FLAT:
        return [(namespace, ".".join(segments)), (namespace, segments[0])]
    return [(namespace, *segments[:end]) for end in range(1, len(segments) + 1)]


def check_reads(flow: Dataflow) -> None:
    """Report references whose writers are concurrent, later or missing."""
    unreachable = 0
    for position, fact in enumerate(flow.facts):
        gone, never = False, fact.holds is False
        for read in fact.reads:
            gone = _check_read(flow, position, read, unreachable) or gone
        if never:
            fact.report.warn(
                "graph.unreachable", ("config", "condition"), "its condition is never true"
            )
        if (never and fact.step.config.otherwise is None) or gone:
            unreachable |= 1 << position


def _check_read(flow: Dataflow, position: int, read: StateRead, unreachable: int) -> bool:
    """Report the problems of one read. Return whether all its values come from steps that never run."""
    reference, report, graph = read.reference, flow.facts[position].report, flow.graph
    writers = flow.writers(reference)
    concurrent = writers & graph.find_concurrent(position)
    if concurrent:
        other = flow.name(concurrent)
        message = f"`{reference.text}` is written by concurrent step `{other}`"
        hint = f"add `{other}` to depends_on"
        report.error("ref.unordered", read.path, message, hint=hint, within=read.within)
        return False
    before = writers & (graph.before[position] | (1 << position if read.own else 0))
    if not before:
        if _is_required(reference):
            _report_unwritten(flow, position, read, writers)
        return False
    if before & ~unreachable == 0 and not read.lenient:
        message = f"`{reference.text}` is written only by `{flow.name(before)}`, which never runs"
        report.warn("graph.unreachable", read.path, message, within=read.within)
        return True
    if _is_required(reference):
        _check_sure_writer(flow, position, read, before)
    return False


def _check_sure_writer(
    flow: Dataflow, position: int, read: StateRead, earlier_writers: int
) -> None:
    """Report a read of a place if every earlier writer may leave it unwritten."""
    fact = flow.facts[position]
    if flow.sure_writers(read.reference) & earlier_writers or _may_be_unwritten(fact, read):
        return
    # The last few writers are enough: one with the same condition is near.
    if not any(
        _have_same_condition(fact, flow.facts[writer]) for writer in latest(earlier_writers, 16)
    ):
        message = f"`{read.reference.text}`: `{flow.name(earlier_writers)}` may leave it unwritten"
        hint = "give that step `otherwise`, or this one the same condition"
        fact.report.warn("ref.maybe", read.path, message, hint=hint, within=read.within)


def _may_be_unwritten(fact: StepFacts, read: StateRead) -> bool:
    """Return whether a read may find no value: a missing value is null, or the condition of the step tests the path. A
    read of the step's own write in the previous iteration may, too.
    """
    reference = read.reference
    if read.lenient or any(guard.lenient and guard.reference == reference for guard in fact.guards):
        return True
    places = list_supplying_places(reference)
    return read.own and any(write.field.required and write.place in places for write in fact.writes)


def _is_required(reference: Reference) -> bool:
    if reference.namespace == "working":
        return reference.segments[0] == "artifacts" and len(reference.segments) > 1
    return reference.namespace in _MUST_EXIST


def _report_unwritten(flow: Dataflow, position: int, read: StateRead, writers: int) -> None:
    text, hint = read.reference.text, ""
    later = writers & flow.graph.after[position]
    if later:
        message, hint = (
            f"is written later by `{flow.name(later)}`",
            "move that step before this one",
        )
    elif writers:
        message = "is written by this step itself only"
    else:
        namespace, segments = read.reference.namespace, read.reference.segments
        written = [
            ".".join(place[1:]).split(".") for place in flow.written if place[0] == namespace
        ]
        # The hint keeps the read path below the written place.
        known = [".".join((*path, *segments[len(path) :])) for path in written]
        message = "is written by no step"
        hint = suggest_path(".".join(segments), known, prefix=f"{namespace}.")
        if segments[0] in flow.facts[position].loops:
            hint = f"`{segments[0]}` is of the loop: write `{'.'.join(segments)}`"
    report = flow.facts[position].report
    report.error("ref.unwritten", read.path, f"`{text}` {message}", hint=hint, within=read.within)


def _have_same_condition(reader: StepFacts, writer: StepFacts) -> bool:
    """Return whether both steps have the same condition, and it reads only values that are fixed during a run."""
    condition = reader.step.config.condition
    return (
        condition is not None
        and condition == writer.step.config.condition
        and not writer.interface.degrades
        and all(write.field.required for write in writer.writes)
        and all(guard.reference.namespace in ("inputs", "frame") for guard in reader.guards)
    )


def latest(bits: int, limit: int) -> Iterator[int]:
    """Yield the positions in a bit set from last to first, at most `limit` of them."""
    while bits and limit:
        position = bits.bit_length() - 1
        yield position
        bits ^= 1 << position
        limit -= 1
