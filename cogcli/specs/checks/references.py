"""References: the texts of a step that are references, and the faults of each by itself
(docs/reference/skill.md#reference-checks)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from cogcli.core.problems import Severity, suggestion
from cogcli.core.refs import (
    FRAME_FIELDS,
    OUTPUT_FIELDS,
    READABLE,
    WORKING_SLOTS,
    Reference,
    parse,
    parse_loop,
)
from cogcli.specs.fields import Fields
from cogcli.specs.problem_report import TextFault

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
    for name in READABLE:
        limit = 2 if len(name) > 5 else 1
        if abs(len(head) - len(name)) <= limit and _distance(head, name) <= limit:
            hint = f"did you mean `{name}{text[len(head) :]}`? real text: {{$literal: {text}}}"
            return TextFault("ref.namespace", f"`{text}`: unknown namespace `{head}`", hint)
    return None


@lru_cache(maxsize=1024)
def _distance(a: str, b: str) -> int:
    """The edit distance of two words: the least number of characters to insert, remove or replace."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        previous, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (x != y))
    return row[-1]


_ATTRIBUTES: Final = {"working": WORKING_SLOTS, "frame": FRAME_FIELDS, "output": OUTPUT_FIELDS}
_TEXT_ATTRIBUTES: Final = frozenset(
    ("frame.goal", "frame.priority", "output.summary", "output.result_type", "output.status_reason")
)


def reference_fault(reference: Reference, inputs: Fields, *, expression: bool = False) -> TextFault | None:
    """The fault of a reference independent of the steps: unknown input or slot, path into a scalar.

    In an expression paths may lead into lists, and a missing value is not null.
    """
    text, namespace = reference.text, reference.namespace
    head, *below = reference.segments or ("",)
    where, attributes = f"{namespace}.{head}", _ATTRIBUTES.get(namespace)
    if namespace == "inputs":
        field = inputs.get(head)
        if field is None:
            effect = "so it leads nowhere" if expression else "so null"
            message = f"`{text}`: `{head}` is no input of this skill, {effect}"
            return TextFault("ref.input", message, suggestion(head, inputs), "W")
        scalar = "" if not below or has_members(field.type, below[0], lists=expression) else field.type
    elif attributes is None:
        return None
    elif head not in attributes:
        hint = suggestion(head, attributes) or f"there are {', '.join(attributes)}"
        severity: Severity = "E" if namespace == "working" else "W"
        return TextFault("ref.slot", f"`{text}`: {namespace} has no `{head}`", hint, severity)
    else:
        listed = namespace == "working" and head != "artifacts" and below and not below[0].isdecimal()
        scalar = "text" if below and where in _TEXT_ATTRIBUTES else "a list" if listed else ""
    return (
        TextFault("ref.walk", f"`{text}`: `{where}` is {scalar}, no path leads into it") if scalar else None
    )


def has_members(type: str, segment: str, *, lists: bool) -> bool:
    """Whether a value of a type may have members at a segment."""
    return type in ("object", "any") or (lists and type == "array" and segment.isdecimal())
