"""Checks of declared types along the graph (docs/reference/skill.md#flow-checks).

Reads are compared with the fields that they fill, and writes with the declared outputs.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from cogcli.base.refs import Reference
from cogcli.declarations.field_spec import FieldSpec
from cogcli.declarations.skill_spec import Skill
from cogcli.specs.checks.dataflow import FLAT, Dataflow
from cogcli.specs.checks.flow_shapes import check_member
from cogcli.specs.checks.references import has_members
from cogcli.specs.checks.step_facts import StateRead, StepFacts
from cogcli.specs.checks.step_inputs import find_type_misfit

_TYPES: Final = {
    "frame.goal": "string",
    "frame.priority": "string",
    "frame.context": "object",
    "frame.constraints": "object",
    "frame.success_criteria": "object",
    "frame.assumptions": "array",
    "working.artifacts": "object",
    "output.summary": "string",
    "output.result_type": "string",
    "output.status_reason": "string",
}
"""The types of whole slots. Any other slot of `working` is a list."""


def check_read_types(flow: Dataflow) -> None:
    """Report references whose type does not fit the field that they fill."""
    for fact in flow.facts:
        for read in fact.reads:
            _check_type(flow, fact, read)
        for read in fact.item_reads:
            check_member(flow, fact, read)


def _check_type(flow: Dataflow, fact: StepFacts, read: StateRead) -> None:
    """Report `flow.type`, `flow.null`, and paths that lead into a scalar written by a step."""
    reference, field = read.reference, read.wanted
    sources = _find_read_types(flow, read)
    if sources is None:
        message = f"`{reference.text}`: no path leads into `{reference.namespace}.{reference.segments[0]}`"
        fact.report.error("ref.walk", read.path, message, within=read.within)
        return
    if check_member(flow, fact, read):
        return
    is_nullable = _may_be_null(reference, flow.skill)
    if is_nullable and read.filled and not read.lenient:
        message = f"`{reference.text}` may be null in this text"
        hint = f"write ${{{reference.text}:-}}"
        fact.report.warn("flow.null", read.path, message, hint=hint, within=read.within)
    if field is not None:
        _check_read_type(fact, read, field, sources)
        if is_nullable:
            _check_required(fact, read, field)


def _check_required(fact: StepFacts, read: StateRead, field: FieldSpec) -> None:
    """Report `flow.null` if a field requires a value that may be null, and no condition guards it."""
    reference = read.reference
    is_guarded = any(guard.reference == reference for guard in fact.guards)
    if not is_guarded and field.needs_value and field.type != "any":
        message = f"`{reference.text}` may be null, `{read.name}` is required"
        hint = "give it a default, make it required, or add a condition"
        fact.report.warn("flow.null", read.path, message, hint=hint, within=read.within)


def _check_read_type(
    fact: StepFacts, read: StateRead, field: FieldSpec, sources: Collection[str]
) -> None:
    """Report `flow.type` if a value of these types does not fit the field that reads it."""
    severity = find_type_misfit(sources, field.type)
    if severity := find_type_misfit(sources, field.type):
        message = f"`{read.reference.text}` is {' or '.join(sorted(sources))}, `{read.name}` wants {field.type}"
        fact.report.add("flow.type", severity, read.path, message, within=read.within)


def _find_read_types(flow: Dataflow, read: StateRead) -> set[str] | None:
    """Return the possible types of a reference. None if it leads into a value without members."""
    namespace, segments = read.reference.namespace, read.reference.segments
    is_whole = len(segments) == 1
    if namespace == "inputs":
        field = flow.skill.inputs.get(segments[0])
        return {field.type if field and is_whole else "any"}
    if namespace not in FLAT:
        other = "array" if namespace == "working" else "any"
        return {_TYPES.get(f"{namespace}.{segments[0]}", other) if is_whole else "any"}
    written = flow.types.get((namespace, ".".join(segments)))
    if written or is_whole:
        return written or {"any"}
    head = flow.types.get((namespace, segments[0]), {"any"})
    inner = any(has_members(type, segments[1], lists=read.in_expression) for type in head)
    return {"any"} if inner else None


def _may_be_null(reference: Reference, skill: Skill) -> bool:
    """Return whether a reference is a whole input or a field of the frame that may have no value."""
    name, *below = reference.segments
    if reference.namespace == "inputs" and not below:
        field = skill.inputs.get(name)
        return field is not None and not field.required and field.default is None
    return reference.namespace == "frame" and not below and name in ("goal", "priority")


def check_write_types(flow: Dataflow) -> None:
    """Report writes whose type does not fit the declared output."""
    for fact in flow.facts:
        for write in fact.writes:
            namespace, name = write.place[:2]
            declared = flow.skill.outputs.get(name) if namespace == "outputs" else None
            found = write.field.type
            if declared and (severity := find_type_misfit([found], declared.type)):
                message = f"`{write.target.text}` is declared {declared.type}, the value is {found}"
                fact.report.add("flow.type", severity, write.path, message)
