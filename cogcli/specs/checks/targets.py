"""Targets: whether a text is a place that can be written (docs/reference/skill.md#target-checks)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from cogcli.core.problems import suggestion
from cogcli.core.refs import (
    MAX_SEGMENTS,
    OUTPUT_FIELDS,
    READ_ONLY,
    WORKING_SLOTS,
    WRITABLE,
    Target,
    parse_target,
)
from cogcli.specs.fields import FieldSpec
from cogcli.specs.problem_report import TextFault

_SLOTS: Final = {"working": WORKING_SLOTS, "output": OUTPUT_FIELDS}
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
    if namespace in READ_ONLY:
        message = f"`{text}`: {namespace} cannot be written"
        return TextFault("target.read-only", message, f"write to {', '.join(WRITABLE)}")
    if namespace not in WRITABLE:
        message = f"`{text}`: unknown namespace `{namespace}`"
        return TextFault("target.namespace", message, suggestion(namespace, WRITABLE))
    if len(segments) > MAX_SEGMENTS:
        return TextFault("target.path", f"`{text}`: more than {MAX_SEGMENTS} segments")
    if parse_target(text) is None:
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
