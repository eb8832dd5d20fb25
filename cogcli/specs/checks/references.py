"""The texts of a step that name a place in the state: references (docs/reference/skill.md#reference-checks) and targets
(docs/reference/skill.md#target-checks), and the faults of each by itself."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from cogcli.core import refs
from cogcli.core.problems import Severity, suggestion
from cogcli.core.refs import READABLE, WORKING_SLOTS, WRITABLE, Reference, Target
from cogcli.specs.fields import Fields, FieldSpec
from cogcli.specs.problem_report import TextFault

_DOTTED: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*)\.[^\s]*")
_WORD: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*)(?:\.[A-Za-z0-9_-]+)+")


def reference_of(text: str, loops: frozenset[str]) -> Reference | None:
    """The reference in a text, None for a literal; loop names are known only in their own step."""
    return refs.parse(text) or (refs.parse_loop(text, loops) if loops else None)


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


_ATTRIBUTES: Final = {"working": WORKING_SLOTS, "frame": refs.FRAME_FIELDS, "output": refs.OUTPUT_FIELDS}
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


_SLOTS: Final = {"working": WORKING_SLOTS, "output": refs.OUTPUT_FIELDS}
_OPEN_SLOTS: Final = ("artifacts", "result")
"""The slots below which values may be written."""
_LIST_SLOTS: Final = frozenset(WORKING_SLOTS) - {"artifacts"}


@lru_cache(maxsize=4096)
def target_fault(text: str) -> TextFault | None:
    """Why a target cannot be written, None if it can."""
    namespace, _, rest = text.partition(".")
    segments = rest.split(".")
    if not rest or any(char.isspace() for char in text):
        return TextFault(
            "target.format", f"`{text}` is no target", "write vars.NAME, outputs.NAME or working.SLOT"
        )
    if namespace in refs.READ_ONLY:
        message = f"`{text}`: {namespace} cannot be written"
        return TextFault("target.read-only", message, f"write to {', '.join(WRITABLE)}")
    if namespace not in WRITABLE:
        message = f"`{text}`: unknown namespace `{namespace}`"
        return TextFault("target.namespace", message, suggestion(namespace, WRITABLE))
    if len(segments) > refs.MAX_SEGMENTS:
        return TextFault("target.path", f"`{text}`: more than {refs.MAX_SEGMENTS} segments")
    if refs.parse_target(text) is None:
        hint = "separate letters, digits, `_` and `-` by dots"
        return TextFault("target.format", f"`{text}` is no target", hint)
    slots, slot = _SLOTS.get(namespace), segments[0]
    if slots is None:
        return None
    if slot not in slots:
        message = f"`{text}`: {namespace} has no slot `{slot}`"
        return TextFault("target.slot", message, suggestion(slot, slots) or f"slots: {', '.join(slots)}")
    if len(segments) > 1 and slot not in _OPEN_SLOTS:
        kind = "a list" if namespace == "working" else "text"
        return TextFault("target.path", f"`{text}`: {namespace}.{slot} holds {kind}, nothing is below it")
    return None


def overlapping_targets(targets: Iterable[tuple[str, Target]]) -> list[tuple[str, str]]:
    """The left sides of one mapping whose target overlaps that of an earlier one, as (left side, earlier one)."""
    exact: dict[tuple[str, ...], str] = {}
    above: dict[tuple[str, ...], str] = {}
    found = []
    for left, target in targets:
        place = (target.namespace, *target.path)
        prefixes = [place[:n] for n in range(1, len(place))]
        other = exact.get(place) or above.get(place) or next((exact[p] for p in prefixes if p in exact), None)
        if other is not None:
            found.append((left, other))
        exact.setdefault(place, left)
        for prefix in prefixes:
            above.setdefault(prefix, left)
    return found


def slot_misfit(target: Target, field: FieldSpec) -> str:
    """The value that a typed slot demands where the declared type cannot fit; empty if it may fit."""
    if target.namespace == "working" and len(target.path) == 1:
        if target.path[0] not in _LIST_SLOTS:
            return "" if field.type in ("object", "any") else "an object"
        elements = field.items.type if field.items else "any"
        objects = field.type == "array" and elements in ("object", "any")
        return "" if field.type == "any" or objects else "a list of objects"
    if target.namespace == "output" and target.path[0] != "result":
        return "" if field.type in ("string", "any") else "text"
    return ""
