"""Reference of cumulative limits: what a limit makes of the decision about a call.

Written from the rules alone (docs/reference/limits.md), next to `reference_gate.py`, which gives the decision of the
rules. Amounts are added as fractions; the other implementation adds decimal numbers.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from reference_gate import is_number, matches_any

DEFAULT_GATE = "GATE_OPERATOR"
MOST = 2**53 - 1


def at(value: Any, path: str) -> Any:
    """Return the value at a path with dots inside objects, or None."""
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def find_owner(per: str, arguments: dict[str, Any], owners: dict[str, Any]) -> str | None:
    """Return whose counter a call adds to: text that is not empty, or a whole number."""
    value = at(arguments, per.removeprefix("args.")) if per.startswith("args.") else owners.get(per)
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        return None
    return f"{per}:{value}"


def find_amount(limit: dict[str, Any], arguments: dict[str, Any]) -> Fraction | None:
    """Return what a call adds: 1, or its argument if that is a number which is not negative."""
    if "sum" not in limit:
        return Fraction(1)
    value = at(arguments, limit["sum"])
    if not is_number(value) or not 0 <= value <= MOST:
        return None
    return Fraction(repr(value))


def limit_decision(
    pack: dict[str, Any],
    decision: dict[str, Any],
    call: dict[str, Any],
    owners: dict[str, Any],
    used: dict[str, Fraction],
) -> dict[str, Any]:
    """Return the decision with the limits applied. Only a call that the rules do not deny is counted."""
    found = {**decision, "limit": "", "reads": {}}
    limits = [each for each in pack["policy_layer"]["limits"] if counts(each, call)]
    if decision["verdict"] in ("deny", "refuse") or not limits:
        return found
    is_built_in = decision["reason"] == "destructive"
    no = {"verdict": "deny", "stage": "situation", "rule": "", "gate": ""}
    exceeded, unknown = [], []
    for limit in limits:
        id = limit["id"]
        owner = find_owner(limit["per"], call["arguments"] or {}, owners)
        amount = find_amount(limit, call["arguments"] or {})
        if owner is None or amount is None or id not in used:
            unknown.append(id)
            continue
        found["reads"][id] = (owner, used[id], amount)
        if used[id] + amount > Fraction(repr(limit["max"])):
            exceeded.append(limit)
    if unknown:
        return {**found, **no, "reason": f"limit_unknown:{unknown[0]}", "limit": unknown[0]}
    for limit in exceeded:
        if limit.get("over", "deny") == "deny":
            return {**found, **no, "reason": f"limit_exceeded:{limit['id']}", "limit": limit["id"]}
    if exceeded:
        return ask(found, exceeded[0], is_built_in)
    return lift(pack, found, {limit["id"] for limit in limits}, is_built_in)


def counts(limit: dict[str, Any], call: dict[str, Any]) -> bool:
    """Return whether a limit counts a call."""
    scope = limit["applies_to"]
    intents = scope.get("intents")
    return (intents is None or matches_any(intents, call["intent"])) and matches_any(
        scope["capabilities"], call["capability"]
    )


def ask(found: dict[str, Any], limit: dict[str, Any], is_built_in: bool) -> dict[str, Any]:
    """Return the decision about a call beyond a limit that asks. A rule that asks already is enough."""
    if found["verdict"] != "allow" and not is_built_in:
        return found
    asked = {"verdict": "allow_with_gate", "stage": "situation", "rule": ""}
    asked |= {"reason": f"limit_exceeded:{limit['id']}", "gate": limit.get("gate", DEFAULT_GATE)}
    return {**found, **asked, "limit": limit["id"]}


def lift(
    pack: dict[str, Any], found: dict[str, Any], within: set[str], is_built_in: bool
) -> dict[str, Any]:
    """Return the decision without the built-in gate, if matching rules lift it within limits that are kept."""
    rules = {rule["rule_id"]: rule for rule in pack["policy_layer"]["rules"]}
    named = [rules[id]["then"].get("without_gate") for id in found["matched"]]
    lifting = [id for id in named if id]
    if not (is_built_in and lifting and set(lifting) <= within):
        return found
    return {
        **found,
        "verdict": "allow",
        "reason": f"within_limit:{lifting[0]}",
        "gate": "",
        "limit": lifting[0],
    }
