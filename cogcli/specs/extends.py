"""`extends`: finds, checks and merges the chain of a capability's bases (docs/reference/capability.md#extends).

A capability inherits inputs, outputs, properties, safety, hints and requires. Mappings are inherited by key, other
values as a whole. It does not inherit id, version, name, description, metadata, aliases, status and deprecation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from cogcli.base.jsonvalue import Json
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import suggestion
from cogcli.declarations.capability_spec import (
    GATES,
    STRICTNESS,
    TRUST_RANKS,
    Capability,
    Gate,
    Safety,
)
from cogcli.declarations.field_spec import Fields
from cogcli.specs.unchecked import object_at, value_at

if TYPE_CHECKING:
    from cogcli.specs.problem_report import ProblemReport
    from cogcli.specs.spec_reader import SpecFile

MAX_BASES: Final = 5
_BY_KEY: Final = ("inputs", "outputs", "properties", "safety", "cognitive_hints")


class ExtendsChain(NamedTuple):
    """The files of a capability and its bases, the nearest first.

    `fault` has code and reason of an incomplete chain.
    """

    files: tuple[SpecFile, ...]
    fault: tuple[str, str] | None = None


def follow_bases(
    start: SpecFile,
    find_file: Callable[[str], SpecFile | None],
    resolve_id: Callable[[str], str],
) -> ExtendsChain:
    """Return the chain that starts at a capability's file.

    `find_file` returns the effective file of an id, or None. `resolve_id` returns the id for an id or an alias.
    """
    files = [start]
    while (base := value_at(files[-1].raw, "extends")) is not None:
        id = resolve_id(base)
        ids = [loaded.id for loaded in files]
        if id in ids:
            cycle = " -> ".join([*ids[ids.index(id) :], id])
            return ExtendsChain(tuple(files), ("extends.cycle", f"cycle {cycle}"))
        if len(files) > MAX_BASES:
            return ExtendsChain(tuple(files), ("extends.depth", f"more than {MAX_BASES} bases"))
        loaded = find_file(id)
        if loaded is None:
            return ExtendsChain(
                tuple(files), ("extends.unknown", "no valid capability has this id")
            )
        files.append(loaded)
    return ExtendsChain(tuple(files))


def fold_chain(files: Sequence[SpecFile]) -> Json:
    """Return the mapping of the first file, with all bases merged in."""
    *nearer, farthest = files
    raw = farthest.raw or {}
    for loaded in reversed(nearer):
        raw = fold_base(loaded.raw or {}, raw)
    return raw


def check_chain(
    chain: ExtendsChain, report: ProblemReport, list_ids: Callable[[], list[str]]
) -> None:
    """Report the problems of a chain in its first file."""
    capability, *bases = chain.files
    if chain.fault:
        code, reason = chain.fault
        base = (chain.files[-1].raw or {})["extends"]
        base_text = f"extends `{base}` by way of `{bases[-1].id}`" if bases else f"extends `{base}`"
        hint = suggestion(base, list_ids()) if code == "extends.unknown" else ""
        report.error(code, ("extends",), f"{base_text}: {reason}", hint=hint)
    elif bases:
        for path, reason in find_weakened_keys(
            Capability.of(capability.raw or {}), Capability.of(fold_chain(bases))
        ):
            report.error("extends.weakens", path, f"weaker than its base: {reason}", key=True)


def fold_base(capability: Json, base: Json) -> Json:
    """Return a capability's checked mapping, merged with the mapping of its base."""
    result = dict(capability)
    for key in ("requires", "probe"):
        if capability.get(key) is None and base.get(key) is not None:
            result[key] = base[key]
    for key in _BY_KEY:
        if base.get(key) is not None:
            result[key] = {**base[key], **(capability.get(key) or {})}
    produces = {**_collect_hints(base), **_collect_hints(capability)}
    if produces:
        result["cognitive_hints"] = {**result["cognitive_hints"], "produces": produces}
    return result


def _collect_hints(raw: Json) -> Json:
    return object_at(raw, "cognitive_hints", "produces")


def find_weakened_keys(
    capability: Capability, base: Capability
) -> list[tuple[tuple[str, ...], str]]:
    """Return the keys whose value is less strict than the base's, as (path of the key, message)."""
    found: list[tuple[tuple[str, ...], str]] = []
    for side in ("inputs", "outputs"):
        changes = _find_weakened_fields(side, getattr(capability, side), getattr(base, side))
        found += [((side, name), reason) for name, reason in changes]
    if capability.safety is not None:
        base_safety = base.safety or Safety()
        merged = Safety.of({**base_safety.json, **capability.safety.json})
        found += [
            (("safety", key), reason) for key, reason in find_weakened_safety(merged, base_safety)
        ]
    return found


def _find_weakened_fields(side: str, fields: Fields, bases: Fields) -> Iterator[tuple[str, str]]:
    for name, field in fields.items():
        inherited = bases.get(name)
        if inherited is None:
            continue
        if field.type != inherited.type:
            yield name, f"`{side}.{name}` is {field.type}, in the base {inherited.type}"
        if inherited.required and not field.required:
            yield name, f"`{side}.{name}` is optional, in the base required"


def find_weakened_safety(new: Safety, old: Safety) -> list[tuple[str, str]]:
    """Return the keys in which a safety block is less strict than another one, as (key, message)."""
    found = []
    if TRUST_RANKS[new.trust_level] < TRUST_RANKS[old.trust_level]:
        message = f"trust level {new.trust_level} is below {old.trust_level}"
        found.append(("trust_level", message))
    if old.requires_confirmation and not new.requires_confirmation:
        found.append(("requires_confirmation", "no confirmation is required any more"))
    for key in GATES:
        found += [
            (key, each) for each in _find_weakened_gates(getattr(new, key), getattr(old, key))
        ]
    for key in ("allowed_targets", "scope_constraints"):
        gone = [entry for entry in getattr(old, key) if entry not in getattr(new, key)]
        found += [(key, f"`{entry}` is gone from {key}") for entry in gone]
    return found


def _find_weakened_gates(new: tuple[Gate, ...], old: tuple[Gate, ...]) -> Iterator[str]:
    present = _find_strictest(new)
    for gate, before in _find_strictest(old).items():
        if gate not in present:
            yield f"gate `{gate}` is gone"
        elif STRICTNESS.index(present[gate]) < STRICTNESS.index(before):
            yield f"gate `{gate}`: on_fail {present[gate]} is weaker than {before}"


def _find_strictest(gates: tuple[Gate, ...]) -> dict[str, str]:
    """Return the strictest `on_fail` for each gate."""
    found: dict[str, str] = {}
    for gate in gates:
        weaker = found.get(gate.capability, STRICTNESS[0])
        found[gate.capability] = max(weaker, gate.on_fail, key=STRICTNESS.index)
    return found
