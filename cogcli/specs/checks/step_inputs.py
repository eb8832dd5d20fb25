"""The reads of a step: its input and `otherwise` against the contract, and the references in them."""

from __future__ import annotations

from typing import Any

from cogcli.core.problems import KeyPath, suggestion
from cogcli.specs.checks import references
from cogcli.specs.checks.step_facts import Read, Subject
from cogcli.specs.checks.types import literal_misfit
from cogcli.specs.fields import FieldSpec
from cogcli.specs.template import find_mixed_literals, texts


def check_input(at: Subject) -> None:
    """Report input values that do not fit the called target, and missing ones."""
    inputs, complete = at.facts.interface.inputs, at.facts.interface.complete
    for name, value in at.step.input.items():
        path = (*at.path, "input", name)
        wanted = inputs.get(name)
        if wanted is None and complete:
            message = f"{at.subject}: `{name}` is no input of {at.called()}, so not passed on"
            at.report.warn("step.input-undeclared", path, message, hint=suggestion(name, inputs), key=True)
        _check_value(at, name, value, path, wanted)
    for name, wanted in inputs.items():
        if wanted.required and wanted.default is None and name not in at.step.input:
            message = f"{at.subject}: required input `{name}` of {at.called()} is not mapped"
            place = at.report.first((*at.path, "input"), (*at.path, "uses"))
            at.report.error("step.input-missing", place, message, hint=f"add {name}: ...", key=True)


def check_otherwise(at: Subject) -> None:
    """Report values of `otherwise`, the outputs of a skipped step, that do not fit."""
    outputs = at.facts.interface.outputs
    for name, value in (at.step.config.otherwise or {}).items():
        path = (*at.path, "config", "otherwise", name)
        if name not in outputs and at.facts.interface.complete:
            message = f"{at.subject}: otherwise: `{name}` is no output of {at.called()}"
            at.report.error("step.output-unknown", path, message, hint=suggestion(name, outputs), key=True)
        _check_value(at, name, value, path, outputs.get(name))


def _check_value(at: Subject, name: str, value: Any, path: KeyPath, wanted: FieldSpec | None) -> None:
    """Note the references in one value, and report a literal that cannot fit."""
    literal = True
    for place, text in texts(value, path):
        reference = references.reference_of(text, at.loops)
        if reference:
            literal = False
            whole = place == path
            note_reference(at, Read(reference, place, name, wanted if whole else None))
            continue
        fault = references.explain_near_miss(text, at.loops)
        if fault:
            literal = False
            at.report.error(fault.code, place, f"{at.subject}: {fault.message}", hint=fault.hint)
    mixed = list(find_mixed_literals(value, path))
    for place in mixed:
        message = f"{at.subject}: `$literal` stands beside other keys"
        at.report.error("ref.literal", place, message, hint="let it stand alone", key=True)
    if wanted is not None and not mixed and (literal or not isinstance(value, str)):
        said = literal_misfit(value, wanted, whole=literal)
        if said:
            at.report.error("flow.type", path, f"{at.subject}: `{name}`: {said}")


def note_reference(at: Subject, read: Read, *, key: bool = False) -> None:
    """Report a faulty reference; note any other as a read."""
    if read.reference.namespace in at.loops:
        _check_loop(at, read)
        return
    judged = references.fault_of(read.reference, at.skill.inputs, expression=bool(read.text))
    if judged:
        fault, tell = judged.fault, at.report.error if judged.error else at.report.warn
        message = f"{at.subject}: {fault.message}"
        tell(fault.code, read.path, message, hint=fault.hint, key=key, within=read.within)
    if judged is None or not judged.error:
        at.facts.reads.append(read)


def _check_loop(at: Subject, read: Read) -> None:
    foreach = at.step.config.foreach
    if foreach and read.reference.namespace == foreach.index_name and read.reference.segments:
        message = f"{at.subject}: `{read.reference.text}`: `{foreach.index_name}` is integer"
        at.report.error("ref.walk", read.path, message, within=read.within)
