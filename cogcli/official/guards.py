"""Checks an output against a policy, and a payload against a constraint. If in doubt, the answer is
no.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from cogcli.official.personal_data import find_personal_data
from cogcli.official.secret_values import find_secrets
from cogcli.official.table_rows import OPERATORS, comparison
from cogcli.official.values import at_path, walk
from cogcli.sdk import Refused, evaluate, schema_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def gate_output(output: dict[str, object], policy: dict[str, object]) -> dict[str, object]:
    """Return whether an output may leave, with a reason for each refusal.

    A policy has any of `block_pii`, `block_secrets` (true or false), `max_size` (bytes as JSON),
    `required_keys` and `forbidden_keys` (paths like `a.b`; a forbidden name without a dot counts at
    any depth). An unknown key, or one of the wrong type, is a refusal.
    """
    reasons = [
        reason for key, setting in policy.items() for reason in _find_refusals(output, key, setting)
    ]
    return {"allowed": not reasons, "reasons": reasons}


def _find_refusals(output: dict[str, object], key: str, setting: object) -> Iterator[str]:
    """Yield why an output breaks one key of a policy."""
    check = _POLICY.get(key)
    if check is None:
        yield f"the policy has an unknown key {key!r:.60}; known are {', '.join(_POLICY)}"
        return
    expected, judge = check
    if not isinstance(setting, expected) or (expected is int and isinstance(setting, bool)):
        yield f"the policy's {key} is no {expected.__name__}"
        return
    try:
        yield from judge(output, setting)
    except Refused as refused:
        yield f"{key} cannot be checked: {refused.message}"


def _find_personal_data(output: object, is_blocked: Any) -> Iterator[str]:
    if is_blocked:
        kinds = sorted({span.kind for span in find_personal_data(as_lines(output))})
        yield from (f"personal data: {kind}" for kind in kinds)


def _find_credentials(output: object, is_blocked: Any) -> Iterator[str]:
    if is_blocked:
        kinds = sorted({span.kind for span in find_secrets(as_lines(output))})
        yield from (f"credential: {kind}" for kind in kinds)


def _check_size(output: object, limit: Any) -> Iterator[str]:
    size = len(json.dumps(output, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    if size > limit:
        yield f"{size:,} bytes, at most {limit:,} may leave"


def _find_missing_keys(output: object, names: Any) -> Iterator[str]:
    yield from (
        f"required key {name!s:.80} is missing"
        for name in names
        if not at_path(output, str(name))[0]
    )


def _find_forbidden_keys(output: object, forbidden: Any) -> Iterator[str]:
    names = {key for _, key, _ in walk(output)}
    for name in map(str, forbidden):
        if name in names or at_path(output, name)[0]:
            yield f"forbidden key {name:.80}"


_POLICY: dict[str, tuple[type, Callable[[Any, Any], Iterator[str]]]] = {
    "block_pii": (bool, _find_personal_data),
    "block_secrets": (bool, _find_credentials),
    "max_size": (int, _check_size),
    "required_keys": (list, _find_missing_keys),
    "forbidden_keys": (list, _find_forbidden_keys),
}


def as_lines(value: object) -> str:
    """Return all values inside a value as `key: value` lines, so that one search sees each value
    with its key.
    """
    return "\n".join(
        f"{key}: {inner if isinstance(inner, str) else json.dumps(inner)}"
        if inner is not None
        else f"{key}:"
        for _, key, inner in walk(value)
    )


def check_constraint(payload: dict[str, object], constraint: dict[str, Any]) -> dict[str, object]:
    """Return whether a payload satisfies a constraint, with `rule`, `path` and `message` of each
    violation.

    A constraint has any of `required_keys`, `forbidden_keys`, `max_size`, `schema` (a JSON Schema),
    `expression` (over `payload`), `rules` (a list of `{field, op, value}`), or is such a rule or a
    JSON Schema itself. An unknown key is a violation.
    """
    if "field" in constraint:
        constraint = {"rules": [constraint]}
    elif "$schema" in constraint or "properties" in constraint:
        constraint = {"schema": constraint}
    violations = [
        one
        for key, setting in constraint.items()
        for one in _find_violations(payload, key, setting)
    ]
    return {"valid": not violations, "violations": violations}


def _find_violations(
    payload: dict[str, object], key: str, setting: Any
) -> Iterator[dict[str, object]]:
    if key == "schema" and isinstance(setting, dict):
        for place, message in schema_errors(setting, payload):
            yield {"rule": key, "path": place.replace("/", "."), "message": message}
    elif key == "expression" and isinstance(setting, str):
        if not evaluate(setting, {"payload": payload}):
            yield {"rule": key, "path": "", "message": f"does not hold: {setting:.200}"}
    elif key == "rules" and isinstance(setting, list):
        for rule in setting:
            yield from _check_rule(payload, rule)
    elif key in _STRUCTURE:
        for reason in _find_refusals(payload, key, setting):
            yield {"rule": key, "path": "", "message": reason}
    else:
        keys = ", ".join(("schema", "expression", "rules", *_STRUCTURE))
        yield {
            "rule": str(key),
            "path": "",
            "message": f"unknown, or not of its type; known are {keys}",
        }


_STRUCTURE = ("required_keys", "forbidden_keys", "max_size")


def _check_rule(payload: dict[str, object], rule: Any) -> Iterator[dict[str, object]]:
    """Yield the violation if the payload breaks a rule `{field, op, value}`. Raise Refused for an
    invalid rule.
    """
    if not isinstance(rule, dict) or not isinstance(rule.get("field"), str):
        raise Refused("bad-data", "a rule must be an object with `field`, `op` and `value`")
    op = rule.get("op", rule.get("operator", "exists"))
    if op not in _OPS or rule.keys() - {"field", "op", "operator", "value", "message"}:
        raise Refused(
            "bad-data",
            f"rule for {rule['field']:.60}: unknown op or key; ops are {', '.join(_OPS)}",
        )
    exists, value = at_path(payload, rule["field"])
    if op == "absent":
        holds = not exists
    elif op == "exists" or not exists:
        holds = exists
    else:
        try:
            holds = bool(_OPS[op](value, rule.get("value")))
        except (TypeError, ValueError):
            holds = False
    if not holds:
        message = str(
            rule.get("message") or _describe_rule(rule["field"], str(op), rule.get("value"), exists)
        )
        yield {"rule": str(op), "path": rule["field"], "message": message}


def _describe_rule(field: str, op: str, value: object, exists: bool) -> str:
    operand = (
        ""
        if op in ("exists", "absent", "is_null", "not_null")
        else f" {json.dumps(value, ensure_ascii=False)}"
    )
    verb = _VERBS.get(op, f"be {op.replace('_', ' ')}")
    return f"{field:.80}{'' if exists else ' is missing:'} must {verb}{operand:.120}"


_VERBS = {
    "matches": "match",
    "contains": "contain",
    "starts_with": "start with",
    "ends_with": "end with",
    "exists": "be there",
    "min_length": "have a length of at least",
    "max_length": "have a length of at most",
    "type": "be of type",
    "eq": "be",
    "ne": "not be",
    "lt": "be less than",
    "le": "be at most",
    "gt": "be more than",
    "ge": "be at least",
    "in": "be one of",
    "not_in": "be none of",
    "is_null": "be null",
    "not_null": "not be null",
}


def _make_comparison(op: str) -> Callable[[Any, Any], bool]:
    """Return a comparison with the rules of table rows; values that cannot be compared give False."""

    def holds(value: Any, operand: Any) -> bool:
        try:
            return comparison({"field": "value", "op": op, "value": operand}, [])(
                1, {"value": value}
            )
        except Refused:
            return False

    return holds


def _matches_pattern(value: Any, pattern: Any) -> bool:
    from cogcli.official.patterns import matches

    return isinstance(value, str) and matches(str(pattern), value)


_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


def _is_type(value: object, name: Any) -> bool:
    return isinstance(value, _TYPES.get(str(name), ())) and isinstance(value, bool) is (
        name == "boolean"
    )


_OPS: dict[Any, Callable[[Any, Any], bool]] = {
    "exists": lambda value, _: True,
    "absent": lambda value, _: False,
    **{op: _make_comparison(op) for op in OPERATORS},
    "matches": _matches_pattern,
    "type": _is_type,
    "min_length": lambda value, length: len(value) >= length,
    "max_length": lambda value, length: len(value) <= length,
}
