"""Access to the namespaces of a run's state, driven by one table.

The rules are in docs/reference/execution.md#reading and docs/reference/execution.md#writing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cogcli.base.errors import ReferenceResolutionError
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import suggest_path
from cogcli.base.refs import FRAME_FIELDS, MISSING, OUTPUT_FIELDS, WORKING_SLOTS, Reference
from cogcli.state.execution import ExecutionState


class Namespace(NamedTuple):
    """The rules of one namespace.

    With `dicts_only`, paths do not lead into lists, and a whole path may be a single key.
    """

    writable: bool
    missing_is_null: bool
    dicts_only: bool
    attributes: tuple[str, ...] = ()


NAMESPACES: Final[dict[str, Namespace]] = {
    "inputs": Namespace(writable=False, missing_is_null=True, dicts_only=True),
    "vars": Namespace(writable=True, missing_is_null=False, dicts_only=True),
    "outputs": Namespace(writable=True, missing_is_null=False, dicts_only=True),
    "frame": Namespace(
        writable=False, missing_is_null=True, dicts_only=False, attributes=FRAME_FIELDS
    ),
    "working": Namespace(
        writable=True, missing_is_null=False, dicts_only=False, attributes=WORKING_SLOTS
    ),
    "output": Namespace(
        writable=True, missing_is_null=True, dicts_only=False, attributes=OUTPUT_FIELDS
    ),
    "extensions": Namespace(writable=True, missing_is_null=True, dicts_only=False),
}


def look_up(state: ExecutionState, reference: Reference) -> object:
    """Return the value of a reference, or MISSING.

    The state owns the value: callers must copy it before passing it on.
    """
    namespace = NAMESPACES[reference.namespace]
    root = getattr(state, reference.namespace)
    segments = reference.segments
    if namespace.dicts_only:
        flat = segments[0] if len(segments) == 1 else ".".join(segments)
        return root[flat] if flat in root else walk_dicts(root, segments)
    if namespace.attributes:
        if segments[0] not in namespace.attributes:
            return MISSING
        return walk(getattr(root, segments[0]), segments[1:])
    return walk(root, segments)


def look_up_through_lists(state: ExecutionState, reference: Reference) -> object:
    """Return the value of a reference like `look_up`, but let paths lead into lists in every namespace.

    Expressions read values in this way.
    """
    value = look_up(state, reference)
    if value is MISSING and NAMESPACES[reference.namespace].dicts_only:
        return walk(getattr(state, reference.namespace), reference.segments)
    return value


def walk_dicts(value: object, segments: tuple[str, ...]) -> object:
    """Return the value at a path of object keys, or MISSING if a segment does not exist."""
    for segment in segments:
        if type(value) is not dict or segment not in value:
            return MISSING
        value = value[segment]
    return value


def walk(value: object, segments: tuple[str, ...]) -> object:
    """Return the value at a path of object keys and list indices, or MISSING if a segment does not exist."""
    for segment in segments:
        value = _find_member(value, segment)
        if value is MISSING:
            return MISSING
    return value


def _find_member(value: object, segment: str) -> object:
    if type(value) is dict:
        return value.get(segment, MISSING)
    if (type(value) is list or type(value) is tuple) and _is_index(segment):
        # A longer text is past every end, and `int` refuses thousands of digits.
        index = int(segment) if len(segment) < _DIGITS else len(value)
        return value[index] if index < len(value) else MISSING
    return MISSING


def _is_index(segment: str) -> bool:
    return segment.isdecimal() and segment.isascii()


_DIGITS: Final = 16


def read_reference(state: ExecutionState, reference: Reference) -> object:
    """Return the value of a reference. A missing value is None if the namespace allows it.

    Otherwise raise ReferenceResolutionError `input.reference` with the failing segment and the existing keys.
    """
    value = look_up(state, reference)
    if value is not MISSING:
        return value
    if NAMESPACES[reference.namespace].missing_is_null:
        return None
    text, hint = _explain_missing(state, reference)
    raise ReferenceResolutionError("input.reference", text, hint=hint)


def _explain_missing(state: ExecutionState, reference: Reference) -> tuple[str, str]:
    """Return a message with the missing segment and the existing members, and a hint with a corrected reference."""
    root = members_of(state, reference.namespace)
    value = root
    for segment in reference.segments:
        below = _find_member(value, segment)
        if below is MISSING:
            hint = suggest_existing_path(
                (reference.namespace, *reference.segments), {reference.namespace: root}
            )
            return f"`{reference.text}`: no `{segment}`, present: {_describe_members(value)}", hint
        value = below
    return f"`{reference.text}`: lists are not walked in {reference.namespace}", ""


def _describe_members(value: object) -> str:
    match value:
        case dict():
            return ", ".join(sorted(value)[:10]) or "nothing"
        case list():
            return f"{len(value)} item{'' if len(value) == 1 else 's'}"
        case _:
            return "a value without members"


def members_of(state: ExecutionState, namespace: str) -> object:
    """Return the object in which the references of a namespace are looked up."""
    block = getattr(state, namespace)
    return {name: getattr(block, name) for name in NAMESPACES[namespace].attributes} or block


def suggest_existing_path(path: Sequence[str], value: object) -> str:
    """Return a hint with paths that exist in `value` and differ from `path` only in its first missing segment.

    Return an empty string if no segment is missing, or if no similar path exists.
    """
    for failed, segment in enumerate(path):
        below = _find_member(value, segment)
        if below is MISSING:
            before, after = "".join(f"{part}." for part in path[:failed]), path[failed + 1 :]
            known = value if isinstance(value, dict) else ()
            return suggest_path(
                segment, known, prefix=before, suffix="".join(f".{part}" for part in after)
            )
        value = below
    return ""
