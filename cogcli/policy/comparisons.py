"""Why a call was decided as it was: the comparisons of its rules, and the nearest number that would decide otherwise
(docs/reference/pack.md#explain). Pure.

A number is tried, never derived: the call is decided again with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

from cogcli.base.canonical import compact
from cogcli.base.json_pointer import pointer_of
from cogcli.base.jsonvalue import MAX_INTEGER
from cogcli.declarations.pack_spec import PolicyRule
from cogcli.policy.evaluation import Broken, Evaluation, Path
from cogcli.policy.jsonlogic import compile_rule
from cogcli.policy.pack_policy import CompiledPolicyRule
from cogcli.policy.run_policy import JudgedCall, with_value
from cogcli.policy.verdict import Verdict

Decide = Callable[[JudgedCall], Verdict]
MIRRORED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NEGATED: Final = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
_OPERATORS: Final = {"===": "==", "!==": "!=", **{each: each for each in _NEGATED}}
_LOOPS: Final = frozenset(("map", "filter", "reduce", "all", "some", "none"))
_WORDS: Final = {
    "<": "less than {}",
    "<=": "{} or less",
    ">": "more than {}",
    ">=": "{} or more",
    "==": "{}",
    "!=": "other than {}",
}
_VERDICTS: Final = {
    "allow": "be allowed",
    "allow_with_gate": "wait for {}",
    "escalate": "be escalated to {}",
    "refuse": "be refused",
    "deny": "be denied",
}


class Comparison(NamedTuple):
    """One comparison of a rule with what it compared: the value at a path with a threshold."""

    rule: str
    pointer: str
    """Where it stands in the rule: a JSON pointer below `if`, or `/args/NAME`."""
    path: str
    value: Any
    operator: str
    threshold: Any
    holds: bool

    @property
    def text(self) -> str:
        """As people write it."""
        word = self.operator if self.holds else f"is not {self.operator}"
        return f"`{self.path}` {_value_text(self.value)} {word} {_value_text(self.threshold)}"


class Flip(NamedTuple):
    """The numbers at a path with which the call would be decided otherwise: those in `operator` relation to `value`."""

    path: str
    operator: str
    value: float
    verdict: str
    gate: str
    rule: str
    """The rule whose comparison turns there."""
    distance: float
    """How far the number is from the one that was given."""

    @property
    def text(self) -> str:
        """As people say it."""
        numbers = _WORDS[self.operator].format(_value_text(self.value))
        return f"{numbers} would {_VERDICTS[self.verdict].format(self.gate)}"


class Explained(NamedTuple):
    """The comparisons that decided; the numbers that would decide otherwise, those of the rule that decided first, then
    the nearest; and the facts that were missing."""

    verdict: Verdict
    decided: tuple[Comparison, ...]
    flips: tuple[Flip, ...]
    missing: tuple[str, ...]


def explain_verdict(
    rules: Sequence[CompiledPolicyRule], case: JudgedCall, decide: Decide
) -> Explained:
    """What decided a case under these rules, by deciding it again with other numbers."""
    verdict = decide(case)
    enforced = [rule.declared for rule in rules if rule.declared.is_enforced]
    compared = [each for rule in enforced for each in comparisons_of(rule, case.data)]
    turns = [(flip, each) for each in compared for flip in _flips(each, case, verdict, decide)]

    def rank(turn: tuple[Flip, Comparison]) -> tuple[bool, float, str]:
        flip, _ = turn
        return flip.rule != verdict.rule, flip.distance, flip.path

    turns.sort(key=rank)
    flips = tuple(dict.fromkeys(flip for flip, _ in turns))
    own = [each for each in compared if each.rule == verdict.rule]
    decisive = [each for _, each in turns if each.rule == verdict.rule]
    if not decisive:
        decisive = own if verdict.rule else [each for _, each in turns[:1]]
    missing = [error["rule"] for error in verdict.rule_errors if error["code"] == "missing"]
    absent = [path for path, value in verdict.reads.items() if value is None] if missing else []
    return Explained(verdict, tuple(dict.fromkeys(decisive)), flips, tuple(absent))


def comparisons_of(rule: PolicyRule, data: dict[str, Any]) -> list[Comparison]:
    """The comparisons of a rule between a value that is read and another one; those without a result, and those of
    the items of a list, are left out."""
    found = [
        each for site in _sites(rule.condition, ()) for each in _compared(rule.rule_id, *site, data)
    ]
    for name, limit in rule.then.limits.items():
        value = data["args"].get(name)
        for operator, bound in (("<=", limit.max), (">=", limit.min)):
            if bound is not None:
                found += _held(rule.rule_id, ("args", name), f"args.{name}", value, operator, bound)
    return found


def _sites(source: Any, path: Path) -> Iterator[tuple[Path, str, Any, Any]]:
    """Each comparison below an expression: its place, operator and two sides; of three sides both pairs."""
    if isinstance(source, list):
        for number, item in enumerate(source):
            yield from _sites(item, (*path, number))
    elif isinstance(source, dict) and len(source) == 1:
        name, given = next(iter(source.items()))
        inside = given[:1] if name in _LOOPS and isinstance(given, list) else given
        operator = _OPERATORS.get(name)
        if operator and isinstance(given, list):
            for left, right in pairwise(given):
                yield (*path, name), operator, left, right
        yield from _sites(inside, (*path, name))


def _compared(
    rule_id: str, place: Path, operator: str, left: Any, right: Any, data: dict[str, Any]
) -> Iterator[Comparison]:
    """A comparison for each side that depends on one path: its value there against what it would have to be."""
    for mine, other, word in (
        (left, right, operator),
        (right, left, MIRRORED.get(operator, operator)),
    ):
        threshold = _value_of(other, data)
        for path in sorted(compile_rule(mine).paths):
            value = _value_of({"var": path}, data)
            turned = _solved(mine, path, data, value, threshold, word)
            if turned is not None:
                yield from _held(rule_id, place, path, value, *turned)


def _held(
    rule_id: str, place: Path, path: str, value: Any, operator: str, threshold: Any
) -> Iterator[Comparison]:
    """The comparison of a value with a threshold, if it has a result."""
    sides = [{"var": "value"}, {"var": "threshold"}]
    holds = _value_of({operator: sides}, {"value": value, "threshold": threshold})
    if holds is not None:
        yield Comparison(rule_id, pointer_of(place), path, value, operator, threshold, holds)


def _solved(
    side: Any, path: str, data: dict[str, Any], value: Any, threshold: Any, operator: str
) -> tuple[str, Any] | None:
    """The comparison of a path alone that a side, which may compute with it, stands for; None where that is none."""
    if path_of(side) == path:
        return operator, threshold
    if not (_is_number(value) and _is_number(threshold)):
        return None
    here, one, two = (_value_of(side, with_value(data, path, value + step)) for step in (0, 1, 2))
    if (
        not (_is_number(here) and _is_number(one) and _is_number(two))
        or two - one != one - here
        or one == here
    ):
        return None
    bound = value + (threshold - here) / (one - here)
    if not math.isfinite(bound):
        return None
    return (operator if one > here else MIRRORED.get(operator, operator)), _whole(bound)


def _flips(found: Comparison, case: JudgedCall, verdict: Verdict, decide: Decide) -> Iterator[Flip]:
    """Where a comparison turns, if the call is decided otherwise there; else on either side of its threshold, where
    another rule may have left off."""
    if not _is_number(found.value):
        return
    turned = _NEGATED[found.operator] if found.holds else found.operator
    for operator in (turned, "<", ">"):
        number = _beyond(operator, found.threshold)
        other = decide(case.with_value(found.path, number))
        if (other.verdict, other.gate) != (verdict.verdict, verdict.gate):
            distance = abs(found.value - number)
            yield Flip(
                found.path,
                operator,
                found.threshold,
                other.verdict,
                other.gate,
                found.rule,
                distance,
            )
            if operator == turned:
                return


def _beyond(operator: str, bound: float) -> float:
    """The first number in this relation to a bound."""
    if operator in ("<=", ">=", "=="):
        return bound
    up = operator == ">"
    if type(bound) is int:
        return bound + (1 if up else -1)
    return math.nextafter(bound, math.inf if up else -math.inf)


def _value_of(source: Any, data: dict[str, Any]) -> Any:
    """The value of an expression with these facts; None where it has none."""
    try:
        return compile_rule(source).run(Evaluation(data), data)
    except Broken:
        return None


def path_of(source: Any) -> str:
    """The path of an expression that is a variable alone; empty for any other."""
    match source:
        case {"var": str(path) | [str(path), *_], **others} if not others:
            return path
    return ""


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _whole(value: Any) -> Any:
    """An integer instead of an equal number with a point, as far as JSON tells integers apart."""
    return (
        int(value)
        if type(value) is float and value.is_integer() and abs(value) <= MAX_INTEGER
        else value
    )


def _value_text(value: Any) -> str:
    text = compact(_whole(value)).decode()
    return text if len(text) <= 60 else f"{text[:60]}…"
