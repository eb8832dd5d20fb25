"""Declared types along the graph: reads against the fields that they fill, writes against declared outputs."""

from __future__ import annotations

from cogcli.core.refs import Reference
from cogcli.specs.checks.dataflow import FLAT, Dataflow
from cogcli.specs.checks.references import has_members
from cogcli.specs.checks.step_facts import Read
from cogcli.specs.checks.types import MISFIT, NARROWS, best_fit, fits, slot_type
from cogcli.specs.problem_report import ProblemReport
from cogcli.specs.skill import Skill


def check_read_types(flow: Dataflow, skill: Skill, report: ProblemReport) -> None:
    """Report references that do not fit the field that they fill."""
    for position, fact in enumerate(flow.facts):
        for read in fact.reads:
            _check_type(flow, skill, position, read, report)


def _check_type(flow: Dataflow, skill: Skill, position: int, read: Read, report: ProblemReport) -> None:
    """`flow.type`, `flow.null`, and paths into a scalar that a step wrote."""
    subject = f"step `{flow.facts[position].step.id}`"
    reference, wanted = read.reference, read.wanted
    sources = _types_read(flow, skill, read)
    if sources is None:
        message = f"{subject}: `{reference.text}`: no path leads into `{reference.namespace}.{reference.segments[0]}`"
        report.error("ref.walk", read.path, message, within=read.within)
        return
    if wanted is None:
        return
    verdict = best_fit(sources, wanted.type)
    if verdict in (MISFIT, NARROWS):
        found = " or ".join(sorted(sources))
        message = f"{subject}: `{reference.text}` is {found}, `{read.name}` wants {wanted.type}"
        report.add("flow.type", "W" if verdict else "E", read.path, message, within=read.within)
    _check_null(flow, skill, position, read, report)


def _types_read(flow: Dataflow, skill: Skill, read: Read) -> set[str] | None:
    """The types that a reference may have; None if it leads into a value without members."""
    reference = read.reference
    namespace, segments = reference.namespace, reference.segments
    if namespace == "inputs":
        field = skill.inputs.get(segments[0])
        return {field.type if field and len(segments) == 1 else "any"}
    if namespace not in FLAT:
        return {slot_type(reference)}
    whole = flow.types.get((namespace, ".".join(segments)))
    if whole or len(segments) == 1:
        return whole or {"any"}
    head = flow.types.get((namespace, segments[0]), {"any"})
    inner = any(has_members(type, segments[1], lists=bool(read.text)) for type in head)
    return {"any"} if inner else None


def _check_null(flow: Dataflow, skill: Skill, position: int, read: Read, report: ProblemReport) -> None:
    reference, wanted = read.reference, read.wanted
    if wanted is None or not wanted.required or wanted.default is not None or wanted.type == "any":
        return
    if len(reference.segments) != 1 or not _may_be_null(reference, skill):
        return
    fact = flow.facts[position]
    if any(guard.reference == reference for guard in fact.guards):
        return
    message = f"step `{fact.step.id}`: `{reference.text}` may be null, `{read.name}` is required"
    hint = "give it a default, make it required, or add a condition"
    report.warn("flow.null", read.path, message, hint=hint, within=read.within)


def _may_be_null(reference: Reference, skill: Skill) -> bool:
    name = reference.segments[0]
    if reference.namespace == "inputs":
        field = skill.inputs.get(name)
        return field is not None and not field.required and field.default is None
    return reference.namespace == "frame" and name in ("goal", "priority")


def check_write_types(flow: Dataflow, skill: Skill, report: ProblemReport) -> None:
    """Report writes that do not fit the declared output."""
    for fact in flow.facts:
        for write in fact.writes:
            declared = (
                skill.outputs.get(write.target.path[0]) if write.target.namespace == "outputs" else None
            )
            if declared is None:
                continue
            verdict = fits(write.field.type, declared.type)
            if verdict in (MISFIT, NARROWS):
                said = f"`{write.target.text}` is declared {declared.type}, the value is {write.field.type}"
                message = f"step `{fact.step.id}`: {said}"
                report.add("flow.type", "W" if verdict else "E", write.path, message)
