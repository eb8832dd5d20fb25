"""The output of a step: conversion of the produced object to writes (docs/reference/execution.md#writing)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from cogcli.base.errors import OutputMappingError, ReferenceResolutionError
from cogcli.base.jsonvalue import SCALARS, copy_writable, is_list_of, items_of, kind_of, preview
from cogcli.base.merge import STRATEGIES, replaces_present, require_mergeable
from cogcli.base.named_tuple import NamedTuple, new_tuple
from cogcli.base.refs import MISSING, WORKING_SLOTS, Reference, Target, overlap, parse, parse_target
from cogcli.declarations.value_types import Json
from cogcli.state.execution import ExecutionState
from cogcli.state.namespaces import read_reference, suggest_existing_path, walk
from cogcli.state.reducer import Write, find_present_kind, write_value


class OutputRule(NamedTuple):
    """One line of an output mapping: a source, which is a path in the produced object or a reference, and a target."""

    left: str
    segments: tuple[str, ...]
    copy_of: Reference | None
    target: Target
    strategy: str
    listed: bool = False
    """Set by a hint of a list type: a single value becomes a list, and an element that is not an object becomes
    `{value: …}`."""
    hint_of: str = ""
    """The capability that has this hint. Empty for a line of a mapping."""
    always_applies: bool = False
    """Whether every value can be written: the strategy takes all kinds, and the target is a member of `vars` or
    `outputs`."""


def compile_output(
    mapping: dict[str, str], strategies: str | Mapping[str, str | None], declared: Iterable[str]
) -> tuple[OutputRule, ...]:
    """Compile an output mapping that passed the static checks. The rules keep the order of the mapping.

    `strategies` is the strategy of all targets, or those by target; `overwrite` is the default.
    """
    known = {*declared}
    rules = []
    for left, right in mapping.items():
        target = parse_target(right)
        if target is None:
            raise OutputMappingError("output.path", f"`{right}`: not a target")
        found = strategies if isinstance(strategies, str) else strategies.get(right)
        strategy = found or "overwrite"
        segments = tuple(left.split("."))
        reference = None if left in known or segments[0] in known else parse(left)
        always = target.namespace in ("vars", "outputs") and not STRATEGIES[strategy].needs
        rule = OutputRule(left, segments, reference, target, strategy, always_applies=always)
        rules.append(rule)
    return tuple(rules)


def writes_of(rules: tuple[OutputRule, ...], produced: Json, state: ExecutionState) -> list[Write]:
    """Compute the writes for a produced object, in the order of the mapping. Values are not merged yet.

    The state is not changed. An absent optional output causes no write. Raise OutputMappingError `output.missing`,
    `output.slot-type`, `output.merge` or `output.path` if any of the writes could not be applied.
    """
    writes = []
    can_apply = True
    for rule in rules:
        if rule.left in produced and rule.copy_of is None:
            value = produced[rule.left]
        else:
            value = _find_value(rule, produced, state)
        if value is MISSING:
            continue
        if type(value) not in SCALARS:
            value = copy_writable(value)
        if rule.listed:
            value = [
                item if isinstance(item, dict) else {"value": item} for item in items_of(value)
            ]
        writes.append(new_tuple(Write, (rule.target, rule.strategy, value)))
        can_apply = can_apply and rule.always_applies
    if not can_apply:
        require_applicable(state, writes)
    return writes


class LoopWrites:
    """The writes of all rounds of a loop, in order, without those that a later round replaces.

    So a loop with a growing list keeps, and records, that list once. If targets of the loop contain each other, every
    write is kept, because one value may contain the place of another.
    """

    def __init__(self) -> None:
        self._writes: dict[int, Write] = {}
        self._numbers: dict[Target, list[int]] = {}
        """The numbers of the kept writes of each target."""
        self._count = 0
        self._keeps_all = False

    def add(self, write: Write) -> None:
        """Add the next write."""
        numbers = self._numbers.get(write.target)
        if numbers is None:
            self._keeps_all = self._keeps_all or any(
                overlap(write.target, known) for known in self._numbers
            )
            numbers = self._numbers[write.target] = []
        if replaces_present(write.strategy) and not self._keeps_all:
            for number in numbers:
                del self._writes[number]
            numbers.clear()
        numbers.append(self._count)
        self._writes[self._count] = write
        self._count += 1

    def to_list(self) -> list[Write]:
        """Return the kept writes in order."""
        return list(self._writes.values())


def _find_value(rule: OutputRule, produced: Json, state: ExecutionState) -> object:
    """Return the value of a rule whose left side is not itself the name of an output, or MISSING."""
    if rule.copy_of is not None:
        try:
            return read_reference(state, rule.copy_of)
        except ReferenceResolutionError as error:
            raise OutputMappingError("output.missing", error.message) from error
    head, *rest = rule.segments
    if head not in produced:
        return MISSING
    value = walk(produced[head], tuple(rest))
    if value is MISSING and rest:
        text = f"`{rule.left}`: not in what was produced, found {preview(produced[head])}"
        raise OutputMappingError(
            "output.missing", text, hint=suggest_existing_path(rule.segments, produced)
        )
    return value


_LIST_SLOTS: Final = frozenset(WORKING_SLOTS) - {"artifacts"}


def require_applicable(state: ExecutionState, writes: list[Write]) -> None:
    """Raise OutputMappingError unless all writes can be applied in order. The state is not changed."""
    ground = _build_scratch(state, writes) if _affect_each_other(writes) else None
    for write in writes:
        present = find_present_kind(ground or state, write.target)
        require_mergeable(write.strategy, write.target.text, present, kind_of(write.value))
        _require_slot_type(write)
        if ground is not None:
            write_value(ground, write.target, write.strategy, copy_writable(write.value))


def _affect_each_other(writes: list[Write]) -> bool:
    """Return whether a target occurs twice, or is inside another one."""
    if len(writes) < 2:
        return False
    places = {(write.target.namespace, *write.target.path) for write in writes}
    within = (place[:end] in places for place in places for end in range(2, len(place)))
    return len(places) < len(writes) or any(within)


def _build_scratch(state: ExecutionState, writes: list[Write]) -> ExecutionState:
    """Return a state in which the values that the writes change are copies, so that the writes can be tried."""
    scratch = ExecutionState(state.run_id, state.trace_id, state.skill_id)
    for namespace, name in {(write.target.namespace, write.target.path[0]) for write in writes}:
        source, ground = getattr(state, namespace), getattr(scratch, namespace)
        if not isinstance(source, dict):
            setattr(ground, name, copy_writable(getattr(source, name)))
        elif name in source:
            ground[name] = copy_writable(source[name])
    return scratch


def _require_slot_type(write: Write) -> None:
    target, value = write.target, write.value
    slot, is_whole = target.path[0], len(target.path) == 1
    if target.namespace == "working" and is_whole and slot in _LIST_SLOTS:
        fits, wanted = is_list_of(value, dict), "a list of objects"
    elif target.namespace == "working" and is_whole:
        fits, wanted = isinstance(value, dict), "an object"
    elif target.namespace == "output" and slot != "result":
        fits = is_whole and (value is None or isinstance(value, str))
        wanted = "text or null"
    else:
        return
    if not fits:
        raise OutputMappingError(
            "output.slot-type", f"`{target.text}`: expected {wanted}, found {preview(value)}"
        )
