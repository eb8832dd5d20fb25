"""The input of a step: compiled once per run, resolved whenever the step runs (docs/reference/execution.md#reading)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from cogcli.base.canonical import text_from
from cogcli.base.errors import InputMappingError, ReferenceResolutionError
from cogcli.base.jsonvalue import SCALARS, Json, copy_writable
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.refs import MISSING, Reference, parse, parse_loop
from cogcli.specs.step_values import TextSlot, parse_text
from cogcli.state.execution import ExecutionState
from cogcli.state.namespaces import NAMESPACES, look_up, read_reference, suggest_existing_path, walk


class Scope(NamedTuple):
    """The values that an input can refer to: the run's state and, in a foreach loop, the names of the loop."""

    state: ExecutionState
    loop: Mapping[str, object] = {}


Resolver = Callable[[Scope, dict[str, None]], Any]
"""Returns the value in a scope. References that are read are added to the dict, in order and without repeats."""


def compile_input(value: object, loop_names: frozenset[str] = frozenset()) -> Resolver:
    """Return the resolver for a value in `input` or `otherwise`. Resolved values share only elements of
    lists with the state, which no write changes."""
    match value:
        case str():
            return _compile_plain_text(value, loop_names)
        case {"$literal": literal, **others} if not others:
            return lambda scope, reads: copy_writable(literal)
        case {"$text": str(text), **others} if not others:
            return _build_text_resolver(text, loop_names)
        case dict():
            return _compile_object(value, loop_names)
        case list():
            return _compile_list(value, loop_names)
        case _:
            return lambda scope, reads: value


def _compile_object(value: Json, loop_names: frozenset[str]) -> Resolver:
    members = [(key, compile_input(member, loop_names)) for key, member in value.items()]

    def resolve(scope: Scope, reads: dict[str, None]) -> Json:
        found: Json = {}
        # A comprehension would cost as much again for the one member of most inputs.
        for key, give in members:
            found[key] = give(scope, reads)
        return found

    return resolve


def _compile_list(value: list[object], loop_names: frozenset[str]) -> Resolver:
    items = [compile_input(item, loop_names) for item in value]
    return lambda scope, reads: [give(scope, reads) for give in items]


def _compile_plain_text(text: str, loop_names: frozenset[str]) -> Resolver:
    """Return the resolver for a string, which is a reference or a literal text."""
    reference = parse(text)
    if reference is not None:
        return _build_state_resolver(reference)
    loop = parse_loop(text, loop_names) if loop_names else None
    return _build_loop_resolver(loop) if loop else lambda scope, reads: text


def _build_state_resolver(reference: Reference) -> Resolver:
    text, namespace = reference.text, reference.namespace
    member = ".".join(reference.segments) if NAMESPACES[namespace].dicts_only else None

    def resolve(scope: Scope, reads: dict[str, None]) -> object:
        reads[text] = None
        if member is not None and member in getattr(scope.state, namespace):
            value = getattr(scope.state, namespace)[member]
        else:
            value = look_up(scope.state, reference)
        if value is MISSING:
            value = read_reference(scope.state, reference)
        return value if type(value) in SCALARS else copy_writable(value)

    return resolve


def _build_loop_resolver(reference: Reference) -> Resolver:
    def resolve(scope: Scope, reads: dict[str, None]) -> object:
        reads[reference.text] = None
        return copy_writable(_read_loop_value(reference, scope))

    return resolve


def _read_loop_value(reference: Reference, scope: Scope) -> object:
    value = walk(scope.loop[reference.namespace], reference.segments)
    if value is MISSING:
        path = (reference.namespace, *reference.segments)
        hint = suggest_existing_path(path, {reference.namespace: scope.loop[reference.namespace]})
        raise ReferenceResolutionError(
            "input.reference", f"`{reference.text}`: not in this item", hint=hint
        )
    return value


MAX_TEXT: Final = 10 * 1024 * 1024
"""The largest number of characters of a `$text` with its values."""


def _build_text_resolver(text: str, loop_names: frozenset[str]) -> Resolver:
    """Return the resolver for a `$text`. It inserts strings unchanged, and other values as compact JSON."""
    pieces = parse_text(text, loop_names)

    def resolve(scope: Scope, reads: dict[str, None]) -> str:
        found, size = [], 0
        for literal, slot in pieces:
            found.append(literal if slot is None else _render_slot(slot, scope, reads))
            size += len(found[-1])
            if size > MAX_TEXT:
                raise InputMappingError(
                    "input.contract", f"a `$text` of more than {MAX_TEXT} characters"
                )
        return "".join(found)

    return resolve


def _render_slot(slot: TextSlot, scope: Scope, reads: dict[str, None]) -> str:
    """Return the value of a slot as text, or its default text if the value is missing or null. Raise
    ReferenceResolutionError if the value is missing and the slot has no default.
    """
    reference = slot.reference
    reads[reference.text] = None
    try:
        looped = reference.namespace in scope.loop
        value = (
            _read_loop_value(reference, scope) if looped else read_reference(scope.state, reference)
        )
    except ReferenceResolutionError:
        if slot.otherwise is None:
            raise
        value = None
    if value is None and slot.otherwise is None:
        hint = f"write ${{{reference.text}:-}} for no text in its place"
        raise ReferenceResolutionError(
            "input.reference", f"`{reference.text}`: null in a text", hint=hint
        )
    if value is None:
        return slot.otherwise or ""
    return text_from(value)


def is_missing_reference(value: object, state: ExecutionState) -> bool:
    """Return whether a value of `input` is a single reference, and the referenced value is missing."""
    reference = parse(value) if isinstance(value, str) else None
    return reference is not None and look_up(state, reference) is MISSING


def resolve_input(mapping: Resolver, scope: Scope, reads: dict[str, None]) -> Any:
    """Return the value of a compiled input. Raise InputMappingError with the failing reference as its cause."""
    try:
        return mapping(scope, reads)
    except ReferenceResolutionError as error:
        raise InputMappingError(error.code, error.message, hint=error.hint) from error
