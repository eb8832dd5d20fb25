"""Decisions on the screen: their reasons, and those that another pack would decide differently."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cogcli.app.policy_history import DecisionChange
from cogcli.cli.envelope import dumps
from cogcli.policy.pack_diff import PolicyChange

_SIGNS = {"added": "+", "removed": "-", "changed": "~"}


def explanation_lines(call: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of one governed call: its verdict, the stages in order, the values read, and
    the deciding comparisons."""
    caused = ", after an answer" if call["caused_by"] else ""
    yield f"{call['step_id']}  {call['capability']}  {verdict_text(call)}{caused}"
    for stage in call["stages"]:
        reason = f": {stage['reason']}" if stage.get("reason") else ""
        yield f"  {stage['stage']:<11} {stage['outcome']}{reason}"
    if inside := call.get("inside"):
        yield f"  {'inside':<11} {', '.join(inside)}"
    if matched := call.get("matched"):
        yield f"  {'matched':<11} {', '.join(matched)}"
    for path, value in (call.get("reads") or {}).items():
        yield f"  {'read':<11} {path} = {'nothing' if value is None else _value(value)}"
    for each in call.get("would") or ():
        yield f"  {'would':<11} {each['rule']}: {each['verdict']} (shadow)"
    for path in call["missing"]:
        yield f"  {'missing':<11} {path}"
    for each in call["compared"]:
        yield f"  {'decided by':<11} {each['text']}{_nearest_counterfactual(each, call['flips'])}"
    if why := call.get("why"):
        yield f"  {'decided by':<11} cannot be told: {why}"


def verdict_text(said: Mapping[str, Any]) -> str:
    """Return a verdict with its gate, and the rule or the word that gave it."""
    gate = f" {said['gate']}" if said.get("gate") else ""
    reason = said.get("rule") if said.get("reason") != "approved" else "approved"
    return f"{said['verdict']}{gate} ({reason or said.get('reason')})"


def _nearest_counterfactual(
    comparison: Mapping[str, Any], flips: Sequence[Mapping[str, Any]]
) -> str:
    """Return the nearest number that would change the decision."""
    path = comparison["path"]
    own = next(
        (each for each in flips if each["path"] == path and each["rule"] == comparison["rule"]),
        None,
    )
    return f"; {own['text']}" if own else ""


def change_lines(changes: Sequence[PolicyChange]) -> Iterator[str]:
    """Yield the differences between two policies, a line for each part and each of its members."""
    for change in changes:
        yield f"{_SIGNS[change.change]} {change.kind} {change.id}"
        if change.change == "changed":
            for name, (old, new) in change.members.items():
                yield f"    {name}: {_value(old)} -> {_value(new)}"


def decision_line(change: DecisionChange) -> str:
    """Return the line of a recorded decision that changes, or that cannot be compared."""
    where = f"{change.episode_id}  {change.event.step_id}  {change.event.payload.get('capability')}"
    if change.before is None or change.after is None:
        return f"? {where}  {change.why}"
    return f"~ {where}  {verdict_text(change.before)} -> {verdict_text(change.after)}"


def _value(value: Any) -> str:
    text = dumps(value)
    return text if len(text) <= 120 else f"{text[:120]}…"
