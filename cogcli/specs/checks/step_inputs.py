"""The reads of a step: its `input` and `otherwise`, compared with the contract, and the references in them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from cogcli.base.jsonvalue import preview
from cogcli.base.problems import KeyPath, Severity, suggestion
from cogcli.declarations.field_spec import FieldSpec
from cogcli.specs.checks.references import (
    build_plausible_read_fault,
    explain_near_miss,
    find_reference_fault,
    guess_reference,
)
from cogcli.specs.checks.step_facts import StateRead, StepFacts
from cogcli.specs.fields import fit_values
from cogcli.specs.plausible_syntax import ReferenceLookalike, find_plausible, placeholders
from cogcli.specs.step_values import (
    ValuePart,
    is_text,
    parts_of,
    reference_of,
    slots_in_text,
)
from cogcli.specs.template import LITERAL, TemplateFault, is_literal
from cogcli.specs.unchecked import members_of


def check_input(step: StepFacts) -> None:
    """Report input values that do not fit the target, and missing inputs."""
    inputs, values, report = step.interface.inputs, step.step.input, step.report
    for name, value in values.items():
        path = ("input", name)
        wanted = inputs.get(name)
        if wanted is None and step.interface.complete:
            message = f"`{name}` is not an input of {step.target_name()}, so not passed on"
            report.warn(
                "step.input-undeclared", path, message, hint=suggestion(name, inputs), key=True
            )
        _check_value(step, name, value, path, wanted)
    for name, wanted in inputs.items():
        if wanted.needs_value and name not in values:
            message = f"required input `{name}` of {step.target_name()} is not mapped"
            path = report.first(("input",), ("uses",))
            report.error("step.input-missing", path, message, hint=f"add {name}: ...", key=True)


def check_otherwise(step: StepFacts) -> None:
    """Report values of `otherwise`, which are the outputs of a skipped step, that do not fit."""
    outputs = step.interface.outputs
    for name, value in (step.step.config.otherwise or {}).items():
        path = ("config", "otherwise", name)
        if name not in outputs and step.interface.complete:
            message = f"otherwise: `{name}` is not an output of {step.target_name()}"
            step.report.error(
                "step.output-unknown", path, message, hint=suggestion(name, outputs), key=True
            )
        _check_value(step, name, value, path, outputs.get(name))


def _check_value(
    step: StepFacts, name: str, value: object, path: KeyPath, field: FieldSpec | None
) -> None:
    """Record the references in a value, and report a literal that cannot fit."""
    literal, misused = True, False
    for part in parts_of(value, path):
        has_read = _check_part(step, part, name, path, field)
        literal = literal and not has_read
        misused = misused or part.kind in ("odd", "mixed") or (has_read and part.kind == "braces")
    if field is not None and not misused and (literal or not isinstance(value, str)):
        reason = _explain_misfit(value, field, is_literal_value=literal)
        if reason:
            step.report.error("flow.type", path, f"`{name}`: {reason}")


def _check_part(
    step: StepFacts, part: ValuePart, name: str, path: KeyPath, field: FieldSpec | None
) -> bool:
    """Record the references in a string, or report its fault. Return False if the text is a literal."""
    match part.kind:
        case "literal":
            return False
        case "braces":
            return _check_braces(step, part)
        case "mixed":
            key = part.path[-1]
            code = "ref.literal" if key == LITERAL else "ref.text"
            message = f"`{key}` has other keys next to it"
            step.report.error(code, part.path, message, hint="remove the other keys", key=True)
        case "odd":
            hint = f"write {{$text: {_DEAR}}}"
            step.report.error("ref.text", part.path, "`$text` holds no text", hint=hint)
        case "text":
            _check_text(step, part, name)
        case "plain":
            return _check_plain_text(step, part, name, field if part.path == path else None)
    return True


def _check_braces(step: StepFacts, part: ValuePart) -> bool:
    """Report an object that was meant to be a reference in braces. Return whether it was reported."""
    if reference_of(part.text, step.loops) is None:
        return False
    hint = f"write {part.text}, or {{$literal: ...}} for this very object"
    step.report.error("ref.text", part.path, f"`{{{part.text}}}` reads no value", hint=hint)
    return True


def _check_plain_text(step: StepFacts, part: ValuePart, name: str, field: FieldSpec | None) -> bool:
    """Record a reference, or report a string that was meant to be one. Return False for any other string."""
    if reference := reference_of(part.text, step.loops):
        record_reference(step, StateRead(reference, part.path, name, field))
    elif fault := explain_near_miss(part.text, step.loops):
        step.report.fault(fault, part.path)
    elif lookalike := find_plausible(part.text, step.loops):
        fault = build_plausible_read_fault(part.text, lookalike, step.skill, step.loops)
        step.report.fault(fault, part.path, within=(part.text, lookalike.offset))
    else:
        return False
    return True


_DEAR: Final = '"Dear ${inputs.name}"'


def _check_text(step: StepFacts, part: ValuePart, name: str) -> None:
    """Record the references in a `$text`, or report its fault."""
    text, path, loops = part.text, part.path, step.loops
    try:
        slots = slots_in_text(text, loops)
    except TemplateFault as fault:
        _report_text_fault(step, part, fault)
        return
    for slot in slots:
        lenient = slot.otherwise is not None
        read = StateRead(slot.reference, path, name, text=text, offset=slot.offset, lenient=lenient)
        record_reference(step, read._replace(filled=True))
    places = [slot.offset for slot in slots]
    odd = [each for each in placeholders(text, loops, known_only=True) if each.offset not in places]
    if reference_of(text, loops):
        odd.append(ReferenceLookalike(0, text, text))
    for found in odd[:1]:
        message = f"`{found.found}` is not filled in"
        hint = f"write ${{{guess_reference(found.path, step.skill, loops)}}}"
        step.report.error("ref.text", path, message, hint=hint, within=(text, found.offset))


def _report_text_fault(step: StepFacts, part: ValuePart, fault: TemplateFault) -> None:
    meant = "inputs.NAME"
    for found in placeholders(part.text, step.loops):
        if found.offset == fault.offset:
            meant = guess_reference(found.path, step.skill, step.loops)
            break
    hint = f"write ${{{meant}}}, ${{{meant}:-text}}, or $${{ for a plain ${{"
    within = (part.text, fault.offset)
    step.report.error("ref.text", part.path, str(fault), hint=hint, within=within)


def record_reference(step: StepFacts, read: StateRead, *, key: bool = False) -> None:
    """Record a reference as a read of the step, or report its fault."""
    reference, foreach = read.reference, step.step.config.foreach
    if reference.namespace in step.loops:
        if foreach and reference.namespace == foreach.index_name and reference.segments:
            message = f"`{reference.text}`: `{foreach.index_name}` is integer"
            step.report.error("ref.walk", read.path, message, within=read.within)
        elif reference.segments:
            step.item_reads.append(read)
        return
    fault = find_reference_fault(reference, step.skill.inputs, expression=read.in_expression)
    if fault:
        step.report.fault(fault, read.path, key=key, within=read.within)
    if fault is None or fault.severity != "E":
        step.reads.append(read)


def find_type_misfit(sources: Collection[str], expected: str) -> Severity | None:
    """Return the severity of a value of one of these types where another type is expected, or None
    if one fits.

    A number for an integer is a warning, any other misfit an error. Only a file fits a file: a
    value of unknown type must not name one.
    """
    if expected == "file":
        return None if "file" in sources else "E"
    for source in sources:
        if (
            source == expected
            or "any" in (source, expected)
            or (source, expected) == ("integer", "number")
        ):
            return None
    return "W" if expected == "integer" and "number" in sources else "E"


def _explain_misfit(value: object, field: FieldSpec, *, is_literal_value: bool) -> str:
    """Return why a literal value cannot fit a field, or an empty text.

    Unless `is_literal_value`, the value contains references, and only its kind is known.
    """
    if is_literal(value):
        value, is_literal_value = value[LITERAL], True
    if value is None:
        return ""
    if is_text(value):
        misfit = find_type_misfit(["string"], field.type)
        return f"expected {field.type}, found text" if misfit else ""
    if not is_literal_value:
        kind = _TYPE_OF_HOLDER.get(type(value), "any")
        misfit = find_type_misfit([kind], field.type)
        return f"expected {field.type}, found {preview(value)}" if misfit else ""
    if _holds_literal(value):
        return ""
    _, violations = fit_values({"": field.replace(schema=None)}, {"": value})
    return violations[0].message.partition("`: ")[2] if violations else ""


_TYPE_OF_HOLDER: Final[dict[type, str]] = {dict: "object", list: "array"}


def _holds_literal(value: object) -> bool:
    return is_literal(value) or any(_holds_literal(item) for _, item in members_of(value))
