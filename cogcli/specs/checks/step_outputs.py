"""The writes of a step, from its `output` mapping or from its capability's hints."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from cogcli.base.problems import KeyPath, suggest_path, suggestion
from cogcli.base.refs import Target, parse_target
from cogcli.declarations.field_spec import Fields, FieldSpec
from cogcli.specs.capability import hinted_writes
from cogcli.specs.checks.absent_members import report_absent_member
from cogcli.specs.checks.references import (
    explain_slot_misfit,
    find_first_path,
    find_overlapping_targets,
    find_target_fault,
)
from cogcli.specs.checks.step_facts import PlannedWrite, StateRead, StepFacts
from cogcli.specs.checks.step_inputs import record_reference
from cogcli.specs.inner_shapes import InnerShape, follow, shape_of
from cogcli.specs.step_values import reference_of


def _check_duplicates(
    step: StepFacts, output: Mapping[str, str], targets: list[tuple[str, Target]]
) -> None:
    """Report outputs of one step whose targets overlap, unless both targets combine their writes."""
    overwriting = {left for left, _ in targets if not _is_combined(step, output[left])}
    for left, other in find_overlapping_targets(targets):
        if left in overwriting or other in overwriting:
            message = f"`{output[left]}` is also written by `{other}`"
            hint = "write merge_strategy: replace, or write elsewhere"
            step.report.error("target.duplicate", ("output", left), message, hint=hint)


def check_output(step: StepFacts) -> None:
    """Record the writes of a step's `output` mapping and report its faults.

    If the step has no mapping, record the writes of the hints.
    """
    if step.step.output is None:
        _note_hinted_writes(step)
        return
    strategy_of = step.step.config.strategy_of
    valid_targets: list[tuple[str, Target]] = []
    for left, right in step.step.output.items():
        path = ("output", left)
        produced, shape = _find_produced_field(step, left, path)
        fault = find_target_fault(right)
        target = parse_target(right)
        if fault:
            step.report.fault(fault, path)
        elif target:
            valid_targets.append((left, target))
            maybe = _may_skip(step, left) or not produced.required
            strategy = strategy_of(right) or "overwrite"
            _note_write(step, PlannedWrite(target, path, strategy, produced, maybe, shape=shape))
    _check_duplicates(step, step.step.output, valid_targets)
    _check_strategies(step, step.step.output.values())


def _is_combined(step: StepFacts, target: str) -> bool:
    """Return whether a target may be written twice by one mapping."""
    return step.step.config.strategy_of(target) not in (None, "overwrite")


def _check_strategies(step: StepFacts, targets: Collection[str]) -> None:
    """Report each strategy of a target that the step does not write."""
    declared = step.step.config.merge_strategy
    for target in declared if isinstance(declared, dict) else ():
        if target not in targets:
            message = f"`merge_strategy` names `{target}`, which the step does not write"
            hint = suggestion(target, targets) or f"it writes {', '.join(targets) or 'nothing'}"
            path = ("config", "merge_strategy", target)
            step.report.error("step.output-unknown", path, message, hint=hint, key=True)


def _find_produced_field(
    step: StepFacts, source: str, path: KeyPath
) -> tuple[FieldSpec, InnerShape]:
    """Return the field and the known shape that an entry of the `output` mapping reads.

    The type is `any` for a path and for an invalid source.
    """
    outputs = step.interface.outputs
    if source in outputs:
        return outputs[source], step.interface.shape(source)
    head = source.partition(".")[0]
    if head in outputs:
        return _find_inner_field(step, source, path)
    reference = reference_of(source, frozenset())
    if reference and reference.namespace in ("inputs", "vars", "outputs"):
        record_reference(step, StateRead(reference, path), key=True)
        declared = step.skill.inputs.get(source[7:]) if reference.namespace == "inputs" else None
        copied = FieldSpec(type=declared.type if declared else "any", required=True)
        return copied, shape_of(declared) if declared else InnerShape()
    if step.interface.complete:
        message = f"`{source}` is neither an output of {step.target_name()} nor a reference to copy"
        hint = _suggest_output(outputs, source)
        step.report.error("step.output-unknown", path, message, hint=hint, key=True)
    return FieldSpec(type="any", required=True), InnerShape()


def _find_inner_field(step: StepFacts, source: str, path: KeyPath) -> tuple[FieldSpec, InnerShape]:
    """Return the field and the known shape at a path in an output."""
    head, *segments = source.split(".")
    field = step.interface.outputs[head]
    produced = FieldSpec(type="any", required=field.required)
    if field.type not in ("object", "array", "any"):
        message = f"`{source}`: output `{head}` is {field.type}, no path leads into it"
        step.report.error("ref.walk", path, message, key=True)
        return produced, InnerShape()
    result = follow([step.interface.shape(head)], segments, lists=True)
    report_absent_member(step.report, path, (head, *segments), 1, result, key=True)
    return produced, result.shapes[0] if result.shapes else InnerShape()


def _suggest_output(outputs: Fields, source: str) -> str:
    """Return a hint with the output that a string probably means, or with all outputs."""
    inner = find_first_path(source)
    last = inner.rpartition(".")[2]
    if last in outputs:
        return f"write {last}"
    first, dot, rest = inner.partition(".")
    listed = f"it has {', '.join(f'`{name}`' for name in sorted(outputs))}" if outputs else ""
    return suggest_path(first, outputs, suffix=dot + rest) or listed


def _note_hinted_writes(step: StepFacts) -> None:
    """Record the writes of a step without an `output` mapping."""
    config = step.step.config
    targets = []
    for called in step.interface.called:
        if called.capability is None:
            continue
        for write in hinted_writes(called.capability, as_list=config.foreach is not None):
            target = parse_target(write.target)
            field = step.interface.outputs.get(write.output)
            if target and field and find_target_fault(write.target) is None:
                targets.append(write.target)
                strategy = config.strategy_of(write.target) or write.strategy
                maybe = _may_skip(step, write.output) or not field.required
                shape = InnerShape() if write.as_list else step.interface.shape(write.output)
                planned = PlannedWrite(
                    target, ("uses",), strategy, field, maybe, write.as_list, shape
                )
                _note_write(step, planned)
    _check_strategies(step, targets)


def _note_write(step: StepFacts, write: PlannedWrite) -> None:
    step.writes.append(write)
    wanted = "" if write.wraps else explain_slot_misfit(write.target, write.field)
    if wanted:
        message = f"`{write.target.text}` holds {wanted}, the value is {write.field.type}"
        step.report.error("flow.slot", write.path, message)


def _may_skip(step: StepFacts, source: str) -> bool:
    """Return whether the step may succeed without making the write for this source."""
    config = step.step.config
    if not step.interface.degrades and (config.condition is None or step.holds):
        return False
    names, defaults = {source, source.split(".")[0]}, config.otherwise or {}
    return names.isdisjoint(defaults) and not (
        defaults and names.isdisjoint(step.interface.outputs)
    )
