"""A step's input: compiled once per run, resolved at each invocation (docs/reference/execution.md#reading)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from cogcli.core.errors import InputMappingError, ReferenceResolutionError
from cogcli.core.jsonvalue import deep_copy
from cogcli.core.refs import MISSING, Reference, parse, parse_loop
from cogcli.mapping.namespaces import look_up, read_reference, walk
from cogcli.state.execution import ExecutionState


class Scope(NamedTuple):
    """What an input is resolved in: the run's state and, inside foreach, its loop names."""

    state: ExecutionState
    loop: Mapping[str, Any] = {}


Resolver = Callable[[Scope, dict[str, None]], Any]
"""Gives the value in a scope; references read are added to the dict, in order and without repeats."""


def compile_input(value: Any, loop_names: frozenset[str] = frozenset()) -> Resolver:
    """The resolver of a value as written in `input` or `otherwise`; its results share nothing with the state."""
    if isinstance(value, str):
        reference = parse(value)
        if reference is not None:
            return _read_state(reference)
        loop = parse_loop(value, loop_names) if loop_names else None
        return _read_loop(loop) if loop else lambda scope, reads: value
    if isinstance(value, dict):
        if value.keys() == {"$literal"}:
            literal = value["$literal"]
            return lambda scope, reads: deep_copy(literal)
        members = {key: compile_input(member, loop_names) for key, member in value.items()}
        return lambda scope, reads: {key: give(scope, reads) for key, give in members.items()}
    if isinstance(value, list):
        items = [compile_input(item, loop_names) for item in value]
        return lambda scope, reads: [give(scope, reads) for give in items]
    return lambda scope, reads: value


def _read_state(reference: Reference) -> Resolver:
    text = reference.text

    def resolve(scope: Scope, reads: dict[str, None]) -> Any:
        reads[text] = None
        return deep_copy(read_reference(scope.state, reference))

    return resolve


def _read_loop(reference: Reference) -> Resolver:
    def resolve(scope: Scope, reads: dict[str, None]) -> Any:
        reads[reference.text] = None
        value = walk(scope.loop[reference.namespace], reference.segments)
        if value is MISSING:
            raise ReferenceResolutionError("input.reference", f"`{reference.text}`: not in this item")
        return deep_copy(value)

    return resolve


def reads_nothing(value: Any, state: ExecutionState) -> bool:
    """Whether a value as written in `input` is one reference to an absent value."""
    reference = parse(value) if isinstance(value, str) else None
    return reference is not None and look_up(state, reference) is MISSING


def resolve_input(mapping: Resolver, scope: Scope, reads: dict[str, None]) -> Any:
    """The value of a compiled mapping. Raises InputMappingError whose cause is the failing reference."""
    try:
        return mapping(scope, reads)
    except ReferenceResolutionError as error:
        raise InputMappingError(error.code, error.message, hint=error.hint) from error
