"""The writes of a step: its output lines, or those of its capability's hints."""

from __future__ import annotations

from cogcli.core.problems import KeyPath, suggestion
from cogcli.core.refs import Target, parse_target
from cogcli.specs.capability import Capability
from cogcli.specs.checks import references, targets
from cogcli.specs.checks.step_facts import PlannedWrite, Read, Subject
from cogcli.specs.checks.step_inputs import note_reference
from cogcli.specs.cognitive_hints import hinted_writes
from cogcli.specs.fields import FieldSpec


def check_output(at: Subject) -> None:
    """Report the faults of a step's output lines and note its writes; without lines those of its hints."""
    if at.step.output is None:
        _note_hinted_writes(at)
        return
    strategy = at.step.config.merge_strategy or "overwrite"
    good: list[tuple[str, Target]] = []
    for left, right in at.step.output.items():
        path = (*at.path, "output", left)
        produced = _produced(at, left, path)
        fault = targets.fault_of(right)
        target = parse_target(right)
        if fault:
            at.report.error(fault.code, path, f"{at.subject}: {fault.message}", hint=fault.hint)
        elif target:
            good.append((left, target))
            _note_write(
                at,
                PlannedWrite(target, path, strategy, produced, _may_skip(at, left) or not produced.required),
            )
    if strategy == "overwrite":
        for left, other in targets.overlapping_targets(good):
            target_text = at.step.output[left]
            message = f"{at.subject}: `{target_text}` is also written by `{other}`"
            hint = "say merge_strategy: replace, or write elsewhere"
            at.report.error("target.duplicate", (*at.path, "output", left), message, hint=hint)


def _produced(at: Subject, left: str, path: KeyPath) -> FieldSpec:
    """The field of an output line's left side; one of any type for a faulty left side."""
    outputs = at.facts.interface.outputs
    if left in outputs:
        return outputs[left]
    head = left.split(".")[0]
    if head in outputs:
        field = outputs[head]
        if field.type not in ("object", "array", "any"):
            message = f"{at.subject}: `{left}`: output `{head}` is {field.type}, no path leads into it"
            at.report.error("ref.walk", path, message, key=True)
        return FieldSpec("any", required=field.required)
    reference = references.reference_of(left, frozenset())
    if reference and reference.namespace in ("inputs", "vars", "outputs"):
        note_reference(at, Read(reference, path), key=True)
        declared = at.skill.inputs.get(left[7:]) if reference.namespace == "inputs" else None
        return FieldSpec(declared.type if declared else "any", required=True)
    if at.facts.interface.complete:
        message = f"{at.subject}: `{left}` is neither an output of {at.called()} nor a reference to copy"
        at.report.error("step.output-unknown", path, message, hint=suggestion(left, outputs), key=True)
    return FieldSpec("any", required=True)


def _note_hinted_writes(at: Subject) -> None:
    """The writes of a step without an output mapping."""
    place = (*at.path, "uses")
    for called in at.facts.interface.called:
        if not isinstance(called.spec, Capability):
            continue
        for wire in hinted_writes(called.spec, as_list=at.step.config.foreach is not None):
            target = parse_target(wire.target)
            field = at.facts.interface.outputs.get(wire.output)
            if target and field and targets.fault_of(wire.target) is None:
                strategy = at.step.config.merge_strategy or wire.strategy
                maybe = _may_skip(at, wire.output) or not field.required
                _note_write(at, PlannedWrite(target, place, strategy, field, maybe, wraps=wire.as_list))


def _note_write(at: Subject, write: PlannedWrite) -> None:
    at.facts.writes.append(write)
    wanted = "" if write.wraps else targets.slot_misfit(write.target, write.field)
    if wanted:
        message = f"{at.subject}: `{write.target.text}` holds {wanted}, the value is {write.field.type}"
        at.report.error("flow.slot", write.path, message)


def _may_skip(at: Subject, left: str) -> bool:
    """Whether the step may succeed without writing this line."""
    config = at.step.config
    may_skip = at.facts.interface.degrades or (config.condition is not None and at.facts.holds is not True)
    if not may_skip:
        return False
    given = config.otherwise or {}
    produced = left in at.facts.interface.outputs or left.split(".")[0] in at.facts.interface.outputs
    return not (left in given or left.split(".")[0] in given or (given and not produced))
