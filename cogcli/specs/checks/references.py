"""The texts of a step that name a place in the state: references and targets, and their faults.

Faults here do not depend on other steps. The rules are in docs/reference/skill.md#reference-checks and
docs/reference/skill.md#target-checks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

from cogcli.base import refs
from cogcli.base.lazy_pattern import lazy_pattern
from cogcli.base.problems import Severity, did_you_mean, suggest_path
from cogcli.base.refs import READABLE, WORKING_SLOTS, WRITABLE, Reference, Target
from cogcli.declarations.field_spec import Fields, FieldSpec
from cogcli.declarations.skill_spec import Skill
from cogcli.specs.plausible_syntax import ReferenceLookalike, find_plausible, suggest_correct_form
from cogcli.specs.problem_report import TextFault
from cogcli.specs.step_values import reference_of

_DOTTED: Final = lazy_pattern(r"([A-Za-z_][A-Za-z0-9_-]*)\.[^\s]*")
_WORD: Final = lazy_pattern(r"([A-Za-z_][A-Za-z0-9_-]*)(?:\.[A-Za-z0-9_-]+)+")


def explain_near_miss(text: str, loops: frozenset[str]) -> TextFault | None:
    """Return the fault of a string that was probably meant to be a reference, or None for a literal.

    A string in an unknown namespace is a literal. It has a warning if the name is similar to the
    name of a namespace.
    """
    match = _DOTTED.fullmatch(text)
    if match is None:
        return None
    head = match[1]
    if head in READABLE or head in loops:
        found = find_plausible(text, loops)
        hint = f"write {found.path if found else f'{head}.NAME'}, or {{$literal: ...}} for text"
        return TextFault("ref.format", f"`{text}` is not a reference", hint)
    if not _WORD.fullmatch(text):
        return None
    for name in READABLE:
        if _is_near(head, name):
            hint = f"did you mean `{name}{text[len(head) :]}`? real text: {{$literal: {text}}}"
            message = f"`{text}` is passed as text: `{head}` is not a namespace"
            return TextFault("ref.namespace", message, hint, "W")
    return None


def build_plausible_read_fault(
    text: str, lookalike: ReferenceLookalike, skill: Skill, loops: frozenset[str]
) -> TextFault:
    """Return the fault `ref.text` of a literal that contains an apparent reference."""

    def guess(path: str) -> str:
        return guess_reference(path, skill, loops)

    correct_form, literal_hint = (
        suggest_correct_form(text, lookalike, loops, guess),
        "or {$literal: ...} for this very text",
    )
    shown = lookalike.found if len(lookalike.found) <= 60 else f"{lookalike.found[:60]}…"
    if lookalike.fills:
        return TextFault(
            "ref.text", f"`{shown}` is not filled in", f"write {correct_form}, {literal_hint}"
        )
    if lookalike.found == lookalike.path:
        return TextFault(
            "ref.text", f"`{shown}` has blanks around it", f"write {correct_form}, {literal_hint}"
        )
    hint = f"write {correct_form}, {literal_hint}; expressions stand in condition, items and on"
    return TextFault("ref.text", f"`{shown}` is not computed", hint)


def guess_reference(path: str, skill: Skill, loops: frozenset[str]) -> str:
    """Return the reference that the author of a path or bare name probably intended.

    Return `inputs.NAME` literally if it is unknown.
    """
    if reference_of(path, loops):
        return path
    head, *rest = path.split(".")
    if rest:
        for name in READABLE:
            if _is_near(head, name):
                return ".".join((name, *rest))
    if target := _find_target_of_step(path, skill):
        return target
    known = collect_readable_names(skill)
    for name in (path, head, *did_you_mean(head, known)):
        if name in known:
            return ".".join((known[name], *(rest if name != path else ())))
    return "inputs.NAME"


def _find_target_of_step(path: str, skill: Skill) -> str:
    """Return the target that contains a step's output, for a path in the syntax of other tools. Return an empty string
    if no target does.

    An example of such a path is `steps.fetch.outputs.total`.
    """
    words = path.split(".")
    outputs = [step.output or {} for step in skill.steps if step.id in words]
    return next(filter(None, (output.get(words[-1]) for output in outputs)), "")


def collect_readable_names(skill: Skill) -> dict[str, str]:
    """Return the references that steps of a skill can read, by the name after the namespace.

    If an input and a write of a step have the same name, the input is returned.
    """
    targets = (target for each in skill.steps for target in (each.output or {}).values())
    readable = [
        text for text in targets if text.partition(".")[0] in ("vars", "outputs", "working")
    ]
    return {
        text.partition(".")[2]: text
        for text in (*readable, *(f"inputs.{name}" for name in skill.inputs))
    }


def _is_near(head: str, name: str) -> bool:
    limit = 2 if len(name) > 5 else 1
    return abs(len(head) - len(name)) <= limit and _edit_distance(head, name) <= limit


@lru_cache(maxsize=1024)
def _edit_distance(a: str, b: str) -> int:
    """Return the edit distance of two words: the minimum number of characters to insert, remove or replace."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        previous, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (x != y))
    return row[-1]


_ATTRIBUTES: Final = {
    "working": WORKING_SLOTS,
    "frame": refs.FRAME_FIELDS,
    "output": refs.OUTPUT_FIELDS,
}
_TEXT_ATTRIBUTES: Final = frozenset(
    ("frame.goal", "frame.priority", "output.summary", "output.result_type", "output.status_reason")
)


_LENGTHS: Final = ("length", "size", "count", "len")


def find_reference_fault(
    reference: Reference, inputs: Fields, *, expression: bool = False
) -> TextFault | None:
    """Return a fault of a reference that does not depend on the steps, or None.

    The input or slot may be unknown, or the path may lead into a scalar. In an expression, paths may lead into lists,
    and a missing value is not null.
    """
    namespace = reference.namespace
    head, *below = reference.segments or ("",)
    scalar: str
    if namespace == "inputs":
        field = inputs.get(head)
        if field is None:
            return _explain_unknown_input(reference, inputs, expression=expression)
        is_open = not below or has_members(field.type, below[0], lists=expression)
        scalar = "" if is_open else field.type
    elif namespace not in _ATTRIBUTES:
        return None
    elif head not in _ATTRIBUTES[namespace]:
        return _explain_unknown_slot(reference, _ATTRIBUTES[namespace])
    else:
        scalar = _find_scalar_slot(namespace, head, below)
    return _explain_walk(reference, scalar, expression=expression) if scalar else None


def _explain_unknown_input(reference: Reference, inputs: Fields, *, expression: bool) -> TextFault:
    head, *below = reference.segments or ("",)
    effect = "so it leads nowhere" if expression else "so null"
    message = f"`{reference.text}`: `{head}` is not an input of this skill, {effect}"
    after = "".join(f".{segment}" for segment in below)
    hint = suggest_path(head, inputs, prefix="inputs.", suffix=after)
    return TextFault("ref.input", message, hint, "W")


def _explain_unknown_slot(reference: Reference, slots: Sequence[str]) -> TextFault:
    namespace = reference.namespace
    head, *below = reference.segments or ("",)
    after = "".join(f".{segment}" for segment in below)
    near = suggest_path(head, slots, prefix=f"{namespace}.", suffix=after)
    hint = near or f"there are {', '.join(slots)}"
    severity: Severity = "E" if namespace == "working" else "W"
    message = f"`{reference.text}`: {namespace} has no `{head}`"
    return TextFault("ref.slot", message, hint, severity)


def _find_scalar_slot(namespace: str, slot: str, segments: Sequence[str]) -> str:
    """Return a description of the slot's value if no path leads into it, else an empty text.
    `segments` is that path.
    """
    if not segments:
        return ""
    if f"{namespace}.{slot}" in _TEXT_ATTRIBUTES:
        return "text"
    is_list = namespace == "working" and slot != "artifacts"
    return "a list" if is_list and not segments[0].isdecimal() else ""


def _explain_walk(reference: Reference, scalar: str, *, expression: bool) -> TextFault:
    head, *below = reference.segments
    where = f"{reference.namespace}.{head}"
    hint = "go over it with foreach" if scalar in ("array", "a list") else ""
    if expression and below[0] in _LENGTHS:
        hint = f"write len({where})"
    message = f"`{reference.text}`: `{where}` is {scalar}, no path leads into it"
    return TextFault("ref.walk", message, hint)


def has_members(type: str, segment: str, *, lists: bool) -> bool:
    """Return whether a value of this type may have a member named by a path segment."""
    return type in ("object", "any", "file") or (lists and type == "array" and segment.isdecimal())


_SLOTS: Final = {"working": WORKING_SLOTS, "output": refs.OUTPUT_FIELDS}
_OPEN_SLOTS: Final = ("artifacts", "result")
"""The slots that accept writes below them."""
_LIST_SLOTS: Final = frozenset(WORKING_SLOTS) - {"artifacts"}


_INNER_PATH: Final = lazy_pattern(r"[A-Za-z_][\w-]*(?:\.[\w-]+)*")
_SIGNS: Final = lazy_pattern(r"[\s${}|()\[\]]")


def find_first_path(text: str) -> str:
    """Return the first path or name in a string such as `${vars.x}` or `summary

    upper`. Empty if it has none.
    """
    found = _INNER_PATH.search(text)
    return found[0] if found else ""


@lru_cache(maxsize=4096)
def find_target_fault(text: str) -> TextFault | None:
    """Return the reason why a target cannot be written, or None if it can."""
    namespace, _, rest = text.partition(".")
    inner = find_first_path(text)
    if _SIGNS.search(text) and refs.parse_target(inner):
        return TextFault("target.format", f"`{text}` is not a target", f"write {inner}")
    if not rest or any(char.isspace() for char in text):
        hint = "write vars.NAME, outputs.NAME or working.SLOT"
        return TextFault("target.format", f"`{text}` is not a target", hint)
    if namespace in refs.READ_ONLY:
        message = f"`{text}`: {namespace} cannot be written"
        return TextFault("target.read-only", message, f"write to {', '.join(WRITABLE)}")
    if namespace not in WRITABLE:
        hint = suggest_path(namespace, WRITABLE, suffix=f".{rest}")
        return TextFault("target.namespace", f"`{text}`: unknown namespace `{namespace}`", hint)
    segments = rest.split(".")
    if len(segments) > refs.MAX_SEGMENTS:
        return TextFault("target.path", f"`{text}`: more than {refs.MAX_SEGMENTS} segments")
    if refs.parse_target(text) is None:
        hint = "separate letters, digits, `_` and `-` by dots"
        return TextFault("target.format", f"`{text}` is not a target", hint)
    return _find_slot_fault(text, namespace, segments) if namespace in _SLOTS else None


def _find_slot_fault(text: str, namespace: str, segments: Sequence[str]) -> TextFault | None:
    slots, slot = _SLOTS[namespace], segments[0]
    if slot not in slots:
        message = f"`{text}`: {namespace} has no slot `{slot}`"
        after = text.removeprefix(f"{namespace}.{slot}")
        near = suggest_path(slot, slots, prefix=f"{namespace}.", suffix=after)
        return TextFault("target.slot", message, near or f"slots: {', '.join(slots)}")
    if len(segments) > 1 and slot not in _OPEN_SLOTS:
        kind = "a list" if namespace == "working" else "text"
        message = f"`{text}`: {namespace}.{slot} holds {kind}, nothing is below it"
        return TextFault("target.path", message)
    return None


def find_overlapping_targets(targets: Iterable[tuple[str, Target]]) -> list[tuple[str, str]]:
    """Return the outputs of one mapping whose target overlaps an earlier target, as (output, earlier output)."""
    exact: dict[tuple[str, ...], str] = {}
    above: dict[tuple[str, ...], str] = {}
    found = []
    for left, target in targets:
        place = (target.namespace, *target.path)
        prefixes = [place[:n] for n in range(1, len(place))]
        other = (
            exact.get(place)
            or above.get(place)
            or next((exact[p] for p in prefixes if p in exact), None)
        )
        if other is not None:
            found.append((left, other))
        exact.setdefault(place, left)
        for prefix in prefixes:
            above.setdefault(prefix, left)
    return found


def explain_slot_misfit(target: Target, field: FieldSpec) -> str:
    """Return a phrase for the values that a typed slot accepts if the declared type cannot fit. Empty if it may fit."""
    if target.namespace == "working" and len(target.path) == 1:
        if target.path[0] in _LIST_SLOTS:
            wanted, fits = "a list of objects", _may_hold_objects(field)
        else:
            wanted, fits = "an object", field.type == "object"
    elif target.namespace == "output" and target.path[0] != "result":
        wanted, fits = "text", field.type == "string"
    else:
        return ""
    return "" if fits or field.type == "any" else wanted


def _may_hold_objects(field: FieldSpec) -> bool:
    elements = field.items.type if field.items else "any"
    return field.type == "array" and elements in ("object", "any")
