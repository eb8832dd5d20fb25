"""References: the texts of a step that are references, and the faults of each by itself
(docs/reference/skill.md#reference-checks)."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from cogcli.core.problems import suggestion
from cogcli.core.refs import (
    FRAME_FIELDS,
    OUTPUT_FIELDS,
    READABLE,
    WORKING_SLOTS,
    Reference,
    parse,
    parse_loop,
)
from cogcli.specs.checks.text_fault import TextFault, distance
from cogcli.specs.fields import Fields

_DOTTED: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*)\.[^\s]*")
_WORD: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*)(?:\.[A-Za-z0-9_-]+)+")


def reference_of(text: str, loops: frozenset[str]) -> Reference | None:
    """The reference in a text, None for a literal; loop names are known only in their own step."""
    return parse(text) or (parse_loop(text, loops) if loops else None)


def explain_near_miss(text: str, loops: frozenset[str]) -> TextFault | None:
    """The fault of a text that was probably meant as a reference; None for a literal."""
    match = _DOTTED.fullmatch(text)
    if match is None:
        return None
    head = match[1]
    if head in READABLE or head in loops:
        hint = f"write {head}.NAME, or {{$literal: ...}} for text"
        return TextFault("ref.format", f"`{text}` is no reference", hint)
    if not _WORD.fullmatch(text):
        return None
    near = next((name for name in READABLE if _resembles(head, name)), None)
    if near is None:
        return None
    meant = f"{near}{text[len(head) :]}"
    message = f"`{text}`: unknown namespace `{head}`"
    return TextFault("ref.namespace", message, f"did you mean `{meant}`? real text: {{$literal: {text}}}")


def _resembles(word: str, namespace: str) -> bool:
    limit = 2 if len(namespace) > 5 else 1
    return abs(len(word) - len(namespace)) <= limit and distance(word, namespace) <= limit


class ReferenceFault(NamedTuple):
    """A fault, and whether it is an error."""

    fault: TextFault
    error: bool


_ATTRIBUTES: Final = {"working": WORKING_SLOTS, "frame": FRAME_FIELDS, "output": OUTPUT_FIELDS}
_TEXT_ATTRIBUTES: Final = frozenset(
    ("frame.goal", "frame.priority", "output.summary", "output.result_type", "output.status_reason")
)


def fault_of(reference: Reference, inputs: Fields, *, expression: bool = False) -> ReferenceFault | None:
    """The fault of a reference independent of the steps: unknown input or slot, path into a scalar.

    In an expression paths may lead into lists, and a missing value is not null.
    """
    head, *below = reference.segments or ("",)
    if reference.namespace == "inputs":
        return _input_fault(reference, inputs, expression)
    attributes = _ATTRIBUTES.get(reference.namespace)
    if attributes is None:
        return None
    if head not in attributes:
        message = f"`{reference.text}`: {reference.namespace} has no `{head}`"
        hint = suggestion(head, attributes) or f"there are {', '.join(attributes)}"
        return ReferenceFault(TextFault("ref.slot", message, hint), reference.namespace == "working")
    where = f"{reference.namespace}.{head}"
    if below and where in _TEXT_ATTRIBUTES:
        return _walk_fault(reference, where, "text")
    listed = reference.namespace == "working" and head != "artifacts"
    if below and listed and not below[0].isdecimal():
        return _walk_fault(reference, where, "a list")
    return None


def _input_fault(reference: Reference, inputs: Fields, expression: bool) -> ReferenceFault | None:
    name, *below = reference.segments
    field = inputs.get(name)
    if field is None:
        said = "so it leads nowhere" if expression else "so null"
        message = f"`{reference.text}`: `{name}` is no input of this skill, {said}"
        return ReferenceFault(TextFault("ref.input", message, suggestion(name, inputs)), False)
    if below and not has_members(field.type, below[0], lists=expression):
        return _walk_fault(reference, f"inputs.{name}", field.type)
    return None


def has_members(type: str, segment: str, *, lists: bool) -> bool:
    """Whether a value of a type may have members at a segment."""
    return type in ("object", "any") or (lists and type == "array" and segment.isdecimal())


def _walk_fault(reference: Reference, where: str, kind: str) -> ReferenceFault:
    return ReferenceFault(
        TextFault("ref.walk", f"`{reference.text}`: `{where}` is {kind}, no path leads into it"), True
    )
