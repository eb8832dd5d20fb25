"""Checks of paths into values of known shape (docs/reference/skill.md#flow-checks).

The shapes of inputs, of writes of steps, and of items of loops are known.
"""

from __future__ import annotations

from collections.abc import Sequence

from cogcli.base.problems import Severity
from cogcli.base.refs import Reference
from cogcli.specs.checks.absent_members import report_absent_member
from cogcli.specs.checks.dataflow import FLAT, Dataflow
from cogcli.specs.checks.step_facts import StateRead, StepFacts
from cogcli.specs.inner_shapes import (
    MAX_SHAPES,
    InnerShape,
    element_of,
    follow,
    shape_of,
    shape_of_value,
)


def check_member(flow: Dataflow, fact: StepFacts, read: StateRead) -> bool:
    """Report a reference to a member that its value does not have. Return whether it was reported."""
    namespace, segments = read.reference.namespace, read.reference.segments
    shapes, start = _find_source_shapes(flow, fact, read.reference)
    walks = read.in_expression or namespace not in ("inputs", *FLAT)
    inside = follow(shapes, segments[start:], lists=walks)
    if inside.absent is None:
        return False
    # `flow.null` reports null values; a place that a condition tests may be missing.
    is_null = namespace in ("inputs", "frame") and not read.in_expression
    severity: Severity = "W" if is_null or read.lenient else "E"
    path = (namespace, *segments)
    report_absent_member(
        fact.report, read.path, path, start + 1, inside, severity, within=read.within
    )
    return True


def _find_source_shapes(
    flow: Dataflow, fact: StepFacts, reference: Reference
) -> tuple[Sequence[InnerShape], int]:
    """Return the known shapes of the value at the first segments of a reference, and the number of those segments."""
    namespace, segments = reference.namespace, reference.segments
    if namespace in fact.loops:
        return _find_item_shapes(flow, fact), 0
    if namespace == "inputs":
        field = flow.skill.inputs.get(segments[0])
        return ([shape_of(field)] if field else []), 1
    if namespace in FLAT:
        whole = len(segments) > 1 and (namespace, ".".join(segments)) in flow.written
        return ([] if whole else flow.shapes.get((namespace, segments[0]), [])), 1
    return _find_written_shapes(flow, namespace, segments)


def _find_written_shapes(
    flow: Dataflow, namespace: str, segments: Sequence[str]
) -> tuple[Sequence[InnerShape], int]:
    """Return the shapes of the only written place that contains a path, and the number of its segments."""
    places = [(namespace, *segments[: end + 1]) for end in range(len(segments))]
    written = [place for place in places if place in flow.shapes]
    if len(written) != 1 or written[0] in flow.within:
        return [], 0
    return flow.shapes[written[0]], len(written[0]) - 1


def _find_item_shapes(flow: Dataflow, fact: StepFacts) -> Sequence[InnerShape]:
    """Return the known shapes of the items of a step's loop. Empty if they are unknown."""
    foreach = fact.step.config.foreach
    if foreach and foreach.expression is None:
        return (
            [shape_of_value(item) for item in foreach.items]
            if len(foreach.items) <= MAX_SHAPES
            else []
        )
    if fact.items is None:
        return []
    shapes, start = _find_source_shapes(flow, fact, fact.items)
    reached = follow(shapes, fact.items.segments[start:], lists=True).shapes or ()
    elements = [element for shape in reached if (element := element_of(shape))]
    return elements if len(elements) == len(reached) else []
