"""The input schema of a tool, narrowed by the rules of a pack (docs/reference/gateway.md#narrowing). Pure.

A client reads the narrowed schema, so that a model does not propose a call that a rule denies. The schema decides
nothing: the rules decide about each call. A condition that is not understood here narrows nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from cogcli.base.jsonvalue import deep_copy, equal, items_of
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.schema import keywords
from cogcli.declarations.pack_spec import PolicyRule
from cogcli.declarations.value_types import Json
from cogcli.policy.pack_policy import Policy
from cogcli.specs.unchecked import list_at, object_at

_DENYING: Final = frozenset(("deny", "refuse"))
_SPECIAL: Final = frozenset("\\^$.|?*+()[]{}/")
_ARGUMENT: Final = "args."
_MIRRORED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_BOUNDS: Final = {
    "<": ("exclusiveMaximum", "minimum"),
    "<=": ("maximum", "exclusiveMinimum"),
    ">": ("exclusiveMinimum", "maximum"),
    ">=": ("minimum", "exclusiveMaximum"),
}
"""By comparison with a constant: the keyword if the comparison is true, and the keyword if it is false."""
_EQUALITY: Final = {"==": True, "===": True, "!=": False, "!==": False}
_BOUND_WORDS: Final = frozenset(word for words in _BOUNDS.values() for word in words)
_LOWER: Final = frozenset(("minimum", "exclusiveMinimum"))


class Constraint(NamedTuple):
    """A schema that an argument must satisfy for no rule to deny the call."""

    field: str
    """The name of the input of the capability."""
    schema: Json
    is_required: bool = True


class _Operand(NamedTuple):
    """An argument in a condition, or the beginning of one."""

    field: str
    is_required: bool
    prefix_length: int | None = None


def find_constraints(policy: Policy, intent: str, capability: str) -> list[Constraint]:
    """Return the constraints that the enforced rules of a pack put on the arguments of a capability."""
    found: list[Constraint] = []
    for rule in policy.rules_for(intent, capability):
        if rule.declared.is_enforced:
            is_constant = not rule.condition.paths and not rule.condition.computed
            found += _constraints_of(rule.declared, applies_always=is_constant)
    return found


def _constraints_of(rule: PolicyRule, *, applies_always: bool) -> list[Constraint]:
    """Return the constraints of a rule. If `applies_always`, the rule's condition reads nothing, so its value is the
    same for each call.
    """
    found = []
    if rule.then.verdict in _DENYING:
        found += _constraints_if(rule.condition, holds=False)
    if applies_always and _is_true(rule.condition):
        for name, limit in rule.then.limits.items():
            members = {"minimum": limit.min, "maximum": limit.max, "enum": limit.enum}
            schema = {word: value for word, value in members.items() if value is not None}
            found.append(Constraint(name, schema))
    return found


def _is_true(condition: object) -> bool:
    """Return whether a condition is written as true."""
    match condition:
        case True:
            return True
        case {"==": [left, right]}:
            return equal(left, right)
    return False


# -- conditions --------------------------------------------------------------------------------------------------------


def _constraints_if(condition: object, *, holds: bool) -> list[Constraint]:
    """Return the constraints on arguments under which a condition is true (or false, without `holds`). Empty if no
    constraint is known.
    """
    if not isinstance(condition, dict) or len(condition) != 1:
        return []
    ((operator, written),) = condition.items()
    parts = items_of(written)
    if operator == "!" and len(parts) == 1:
        return _constraints_if(parts[0], holds=not holds)
    if operator == ("and" if holds else "or"):
        return [each for part in parts for each in _constraints_if(part, holds=holds)]
    return _constraints_from_comparison(operator, parts, holds=holds) if len(parts) == 2 else []


def _constraints_from_comparison(
    operator: str, parts: list[object], *, holds: bool
) -> list[Constraint]:
    """Return the constraints under which a comparison of an argument with a constant is true (or false, without
    `holds`).
    """
    left, right = parts
    operand = _parse_operand(left)
    if operand is None and operator != "in":
        operand, right = _parse_operand(right), left
        operator = _MIRRORED.get(operator, operator)
    if operand is None or _has_operator(right):
        return []
    schema = _schema_from_comparison(operator, operand, right, holds=holds)
    return [] if schema is None else [Constraint(operand.field, schema, operand.is_required)]


def _schema_from_comparison(
    operator: str, operand: _Operand, value: object, *, holds: bool
) -> Json | None:
    """Return the schema that matches a comparison with a constant; None if no schema matches it."""
    if operator in _EQUALITY:
        is_equal = _EQUALITY[operator] == holds
        if operand.prefix_length is not None:
            return _prefix_schema(operand.prefix_length, value, is_equal=is_equal)
        return {"enum": [value]} if is_equal else {"not": {"enum": [value]}}
    if operand.prefix_length is not None:
        return None
    if operator in _BOUNDS and isinstance(value, int | float) and not isinstance(value, bool):
        return {_BOUNDS[operator][0 if holds else 1]: value}
    if operator == "in" and isinstance(value, list) and len({type(each) for each in value}) == 1:
        return {"enum": value} if holds else {"not": {"enum": value}}
    return None


def _prefix_schema(length: int, value: object, *, is_equal: bool) -> Json | None:
    """Return the pattern of texts that begin, or do not begin, with a text of this length."""
    if not isinstance(value, str) or len(value) != length:
        return None
    escaped = "".join(f"\\{letter}" if letter in _SPECIAL else letter for letter in value)
    pattern: Json = {"pattern": f"^{escaped}"}
    return pattern if is_equal else {"not": pattern}


def _parse_operand(expression: object) -> _Operand | None:
    """Return the argument that an operand reads; None if it is anything else."""
    match expression:
        case {"substr": [inner, 0, int(length)]} if length > 0:
            whole = _parse_operand(inner)
            return None if whole is None else whole._replace(prefix_length=length)
        case {"var": str(path)} | {"var": [str(path)]}:
            is_required = True
        case {"var": [str(path), _]}:
            is_required = False
        case _:
            return None
    name = path.removeprefix(_ARGUMENT)
    return None if name == path or "." in name or not name else _Operand(name, is_required)


def _has_operator(value: object) -> bool:
    """Return whether a value contains an operator and so is not a constant."""
    if isinstance(value, list):
        return any(map(_has_operator, value))
    return isinstance(value, dict)


# -- schemas -----------------------------------------------------------------------------------------------------------


def narrow_schema(
    schema: Mapping[str, object], constraints: Iterable[Constraint], fields: Mapping[str, str]
) -> Json:
    """Return a copy of the input schema of a tool in which its arguments satisfy the constraints.

    `fields` are the inputs of the capability by the names of the arguments.
    """
    narrowed: Json = deep_copy(dict(schema))
    arguments = {field: name for name, field in fields.items()}
    for each in constraints:
        name = arguments.get(each.field)
        properties = object_at(narrowed, "properties")
        if name is None or name not in properties:
            continue
        properties[name] = _narrow_value(properties[name], each.schema)
        required = list_at(narrowed, "required")
        if each.is_required and name not in required:
            narrowed["required"] = [*required, name]
        for word in ("oneOf", "anyOf"):
            _drop_branches(narrowed, word, name, properties[name])
    return narrowed


def _narrow_value(schema: object, constraint: Json) -> object:
    """Return the schema of an argument that also satisfies a constraint."""
    if not isinstance(schema, dict):
        return dict(constraint)
    known = keywords.items(schema, "enum")
    kept = [each for each in known if _satisfies(each, constraint)]
    if kept and len(kept) < len(known):
        return {**schema, "enum": kept}
    if any(word in schema and word not in _BOUND_WORDS for word in constraint):
        return {**schema, "allOf": [*list_at(schema, "allOf"), constraint]}
    bounds = {
        word: _tighter_bound(word, schema.get(word), value) for word, value in constraint.items()
    }
    return {**schema, **bounds}


def _tighter_bound(word: str, bound: object, value: object) -> object:
    """Return the tighter one of two bounds; `value` if there is one only."""
    if not isinstance(bound, int | float) or not isinstance(value, int | float):
        return value
    choose: Callable[[float, float], float] = max if word in _LOWER else min
    return choose(bound, value)


def _satisfies(value: object, constraint: Json) -> bool:
    """Return whether a value satisfies a schema. Only `enum` and `not: {enum}` are checked."""
    allowed, excluded = list_at(constraint, "enum"), list_at(constraint, "not", "enum")
    is_allowed = "enum" not in constraint or any(equal(value, each) for each in allowed)
    return is_allowed and not any(equal(value, each) for each in excluded)


def _drop_branches(schema: Json, word: str, name: str, allowed_schema: object) -> None:
    """Remove the branches of a choice whose values for an argument are not allowed."""
    branches = list_at(schema, word)
    kept = [branch for branch in branches if _permits_value(branch, name, allowed_schema)]
    if kept and len(kept) < len(branches):
        schema[word] = kept


def _permits_value(branch: object, argument: str, narrowed_schema: object) -> bool:
    """Return whether at least one value of a branch satisfies the argument's narrowed schema."""
    in_branch = object_at(branch, "properties", argument)
    values = [in_branch["const"]] if "const" in in_branch else list_at(in_branch, "enum")
    if not values or not isinstance(narrowed_schema, dict):
        return True
    schemas = [narrowed_schema, *(object_at(each) for each in list_at(narrowed_schema, "allOf"))]
    return any(_satisfies_all(value, schemas) for value in values)


def _satisfies_all(value: object, schemas: Sequence[Json]) -> bool:
    """Return whether a value satisfies each schema."""
    return all(_satisfies(value, schema) for schema in schemas)
