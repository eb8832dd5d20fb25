"""The reads of a step: its input and `otherwise` against the contract, and the references in them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from cogcli.core.jsonvalue import preview
from cogcli.core.problems import KeyPath, Severity, suggestion
from cogcli.specs.checks.references import explain_near_miss, reference_fault, reference_of
from cogcli.specs.checks.step_facts import Read, StepFacts
from cogcli.specs.fields import FieldSpec, fit_values
from cogcli.specs.template import LITERAL, find_mixed_literals, is_literal, texts


def check_input(step: StepFacts) -> None:
    """Report input values that do not fit the called target, and missing ones."""
    inputs, values, report = step.interface.inputs, step.step.input, step.report
    for name, value in values.items():
        path = ("input", name)
        wanted = inputs.get(name)
        if wanted is None and step.interface.complete:
            message = f"`{name}` is no input of {step.called()}, so not passed on"
            report.warn("step.input-undeclared", path, message, hint=suggestion(name, inputs), key=True)
        _check_value(step, name, value, path, wanted)
    for name, wanted in inputs.items():
        if wanted.required and wanted.default is None and name not in values:
            message = f"required input `{name}` of {step.called()} is not mapped"
            path = report.first(("input",), ("uses",))
            report.error("step.input-missing", path, message, hint=f"add {name}: ...", key=True)


def check_otherwise(step: StepFacts) -> None:
    """Report values of `otherwise`, the outputs of a skipped step, that do not fit."""
    outputs = step.interface.outputs
    for name, value in (step.step.config.otherwise or {}).items():
        path = ("config", "otherwise", name)
        if name not in outputs and step.interface.complete:
            message = f"otherwise: `{name}` is no output of {step.called()}"
            step.report.error("step.output-unknown", path, message, hint=suggestion(name, outputs), key=True)
        _check_value(step, name, value, path, outputs.get(name))


def _check_value(step: StepFacts, name: str, value: Any, path: KeyPath, wanted: FieldSpec | None) -> None:
    """Note the references in one value, and report a literal that cannot fit."""
    literal = True
    for place, text in texts(value, path):
        if reference := reference_of(text, step.loops):
            literal = False
            note_reference(step, Read(reference, place, name, wanted if place == path else None))
        elif fault := explain_near_miss(text, step.loops):
            literal = False
            step.report.fault(fault, place)
    mixed = list(find_mixed_literals(value, path))
    for place in mixed:
        message = "`$literal` stands beside other keys"
        step.report.error("ref.literal", place, message, hint="let it stand alone", key=True)
    if wanted is not None and not mixed and (literal or not isinstance(value, str)):
        reason = _literal_misfit(value, wanted, whole=literal)
        if reason:
            step.report.error("flow.type", path, f"`{name}`: {reason}")


def note_reference(step: StepFacts, read: Read, *, key: bool = False) -> None:
    """Report a faulty reference; note any other as a read."""
    reference, foreach = read.reference, step.step.config.foreach
    if reference.namespace in step.loops:
        if foreach and reference.namespace == foreach.index_name and reference.segments:
            message = f"`{reference.text}`: `{foreach.index_name}` is integer"
            step.report.error("ref.walk", read.path, message, within=read.within)
        return
    fault = reference_fault(reference, step.skill.inputs, expression=bool(read.text))
    if fault:
        step.report.fault(fault, read.path, key=key, within=read.within)
    if fault is None or fault.severity != "E":
        step.reads.append(read)


def misfit(sources: Collection[str], wanted: str) -> Severity | None:
    """The severity of a value of one of these types in place of a wanted one: an error, for a number in place of an
    integer a warning; None where one of them fits."""
    for source in sources:
        if source == wanted or "any" in (source, wanted) or (source, wanted) == ("integer", "number"):
            return None
    return "W" if wanted == "integer" and "number" in sources else "E"


def _literal_misfit(value: Any, wanted: FieldSpec, *, whole: bool) -> str:
    """Why a written value cannot fit a field, empty if it may. Unless `whole`, it holds references, so that only its
    kind is known."""
    if value is None:
        return ""
    if is_literal(value):
        value, whole = value[LITERAL], True
        if value is None:
            return ""
    if not whole:
        kind = "object" if isinstance(value, dict) else "array" if isinstance(value, list) else "any"
        return f"expected {wanted.type}, found {preview(value)}" if misfit([kind], wanted.type) else ""
    if _holds_literal(value):
        return ""
    _, violations = fit_values({"": wanted._replace(schema=None)}, {"": value})
    return violations[0].message.partition("`: ")[2] if violations else ""


def _holds_literal(value: Any) -> bool:
    if isinstance(value, dict):
        return is_literal(value) or any(map(_holds_literal, value.values()))
    return isinstance(value, list) and any(map(_holds_literal, value))
