"""The comparisons that decided a call, and the nearest number that would decide otherwise
(docs/reference/pack.md#explain). Pure.

A number is tried, never derived: the call is decided again with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import Final

from cogcli.base.canonical import compact
from cogcli.base.json_pointer import pointer_of
from cogcli.base.jsonvalue import MAX_INTEGER, list_of
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.pack_spec import PolicyRule
from cogcli.declarations.value_types import Json
from cogcli.policy.evaluation import Evaluation, EvaluationError, Path, is_number
from cogcli.policy.jsonlogic import compile_rule
from cogcli.policy.limits import ARGUMENT, LimitedCall
from cogcli.policy.pack_policy import CompiledPolicyRule
from cogcli.policy.run_policy import JudgedCall, with_value
from cogcli.policy.verdict import Verdict

Decide = Callable[[JudgedCall], Verdict]
MIRRORED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NEGATED: Final = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
_OPERATORS: Final = {"===": "==", "!==": "!=", **{each: each for each in _NEGATED}}
_UNLIMITED: Final = LimitedCall()
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
    """One comparison in a rule, or with a limit, with its operands: the value at a path and a threshold."""

    rule: str
    pointer: str
    """Its place in the rule: a JSON pointer below `if`, or `/args/NAME`. `/max` of a limit."""
    path: str
    value: object
    operator: str
    threshold: object
    holds: bool

    @property
    def text(self) -> str:
        """The comparison as readable text."""
        word = self.operator if self.holds else f"is not {self.operator}"
        return f"`{self.path}` {_render_value(self.value)} {word} {_render_value(self.threshold)}"


class VerdictChange(NamedTuple):
    """A range of numbers at a path that would change the verdict on a call: those in relation `operator` to `value`."""

    path: str
    operator: str
    value: float
    verdict: str
    gate: str
    rule: str
    """The rule or the limit of the comparison that changes there."""
    distance: float
    """The distance between the number and the actual one."""

    @property
    def text(self) -> str:
        """A phrase with the numbers and the verdict that they would cause."""
        numbers = _WORDS[self.operator].format(_render_value(self.value))
        return f"{numbers} would {_VERDICTS[self.verdict].format(self.gate)}"


class VerdictExplanation(NamedTuple):
    """The explanation of a verdict: the deciding comparisons, the numbers that would change it, and missing facts.
    Changes of the deciding rule are first, followed by those with the smallest distance.
    """

    verdict: Verdict
    decided: tuple[Comparison, ...]
    flips: tuple[VerdictChange, ...]
    missing: tuple[str, ...]


def explain_verdict(
    rules: Sequence[CompiledPolicyRule],
    case: JudgedCall,
    decide: Decide,
    limits: LimitedCall = _UNLIMITED,
) -> VerdictExplanation:
    """Explain a verdict: find the comparisons that caused it and the numbers that would change it.

    The call is decided again with each of these numbers. `limits` are those that count it.
    """
    verdict = decide(case)
    enforced = [rule.declared for rule in rules if rule.declared.is_enforced]
    compared = [each for rule in enforced for each in comparisons_of(rule, case.data)]
    compared += _compare_with_limits(limits)
    turns = [
        (flip, each)
        for each in compared
        for flip in _find_verdict_changes(each, case, verdict, decide)
    ]

    def rank(turn: _Turn) -> tuple[bool, float, str]:
        flip, _ = turn
        return flip.rule not in _deciders(verdict), flip.distance, flip.path

    turns = sorted(_drop_later_changes(turns), key=rank)
    flips = dict.fromkeys(flip for flip, _ in turns)
    decisive = dict.fromkeys(_find_decisive_comparisons(verdict, compared, turns))
    return VerdictExplanation(verdict, tuple(decisive), tuple(flips), _find_missing_paths(verdict))


def _deciders(verdict: Verdict) -> tuple[str, ...]:
    """Return the ids of the rule and of the limit that decided."""
    return tuple(filter(None, (verdict.rule, verdict.limit)))


def _drop_later_changes(turns: Sequence[_Turn]) -> Iterator[_Turn]:
    """Yield the changes, without those that a nearer number at the same path already causes."""

    def effect_of(flip: VerdictChange) -> tuple[str, ...]:
        return flip.path, flip.operator, flip.verdict, flip.gate

    nearest: dict[tuple[str, ...], float] = {}
    for flip, _ in turns:
        effect = effect_of(flip)
        nearest[effect] = min(flip.distance, nearest.get(effect, math.inf))
    for flip, comparison in turns:
        if flip.distance == nearest[effect_of(flip)]:
            yield flip, comparison


def _compare_with_limits(limits: LimitedCall) -> Iterator[Comparison]:
    """Yield the comparison of each summed amount with the remaining amount of its limit."""
    used = limits.used or {}
    for claim in limits.claims:
        limit = claim.limit
        if limit.sum and claim.amount is not None and limit.id in used:
            amount, left = _to_number(claim.amount), _to_number(claim.remaining(used[limit.id]))
            path = f"{ARGUMENT}{limit.sum}"
            yield Comparison(limit.id, "/max", path, amount, "<=", left, amount <= left)


def _to_number(amount: Decimal) -> float:
    """Return an amount as JSON has it: whole, or with a fraction."""
    return int(amount) if amount == amount.to_integral_value() else float(amount)


_Turn = tuple[VerdictChange, Comparison]
"""A range of numbers that changes the verdict, and the comparison that changes there."""


def _find_decisive_comparisons(
    verdict: Verdict, comparisons: list[Comparison], changes_with_comparison: list[_Turn]
) -> list[Comparison]:
    """Return the comparisons of the deciding rule and limit that would change the verdict, or all of them if none
    would.

    If neither decided, return the comparison that needs the smallest change.
    """
    deciders = _deciders(verdict)
    decisive = [each for _, each in changes_with_comparison if each.rule in deciders]
    if decisive:
        return decisive
    if not deciders:
        return [each for _, each in changes_with_comparison[:1]]
    return [each for each in comparisons if each.rule in deciders]


def _find_missing_paths(verdict: Verdict) -> tuple[str, ...]:
    """Return the missing paths, if a missing value is the reason why a rule has no result."""
    if all(error["code"] != "missing" for error in verdict.rule_errors):
        return ()
    return tuple(path for path, value in verdict.reads.items() if value is None)


def comparisons_of(rule: PolicyRule, data: Json) -> list[Comparison]:
    """Return the comparisons of a rule between a fact and another value.

    Comparisons without a result, and comparisons of the items of a list, are omitted.
    """
    found = [
        each
        for site in _find_operand_pairs(rule.condition, ())
        for each in _compare_paths(rule.rule_id, *site, data)
    ]
    for name, limit in rule.then.limits.items():
        value = data["args"].get(name)
        for operator, bound in (("<=", limit.max), (">=", limit.min)):
            if bound is not None:
                found += _evaluate_comparison(
                    rule.rule_id, ("args", name), f"args.{name}", value, operator, bound
                )
    return found


def _find_operand_pairs(source: object, path: Path) -> Iterator[tuple[Path, str, object, object]]:
    """Yield each comparison in an expression: its path, its operator and its two operands.

    A comparison of three operands yields both adjacent pairs.
    """
    match source:
        case list():
            for number, item in enumerate(source):
                yield from _find_operand_pairs(item, (*path, number))
        case dict() if len(source) == 1:
            name, given = next(iter(source.items()))
            sides, operator = list_of(given), _OPERATORS.get(name, "")
            for left, right in pairwise(sides) if operator else ():
                yield (*path, name), operator, left, right
            inside = sides[:1] if name in _LOOPS and sides else given
            yield from _find_operand_pairs(inside, (*path, name))


def _compare_paths(
    rule_id: str, place: Path, operator: str, left: object, right: object, data: Json
) -> Iterator[Comparison]:
    """Yield comparisons of the values that the operands read with the thresholds that change the result."""
    for own_operand, other_operand, operator_for_own in (
        (left, right, operator),
        (right, left, MIRRORED.get(operator, operator)),
    ):
        threshold = _evaluate_or_none(other_operand, data)
        for path in sorted(compile_rule(own_operand).paths):
            value = _evaluate_or_none({"var": path}, data)
            turned = _solve_for_path(own_operand, path, data, value, threshold, operator_for_own)
            if turned is not None:
                yield from _evaluate_comparison(rule_id, place, path, value, *turned)


def _evaluate_comparison(
    rule_id: str, place: Path, path: str, value: object, operator: str, threshold: object
) -> Iterator[Comparison]:
    """Yield the comparison of a value with a threshold, unless it cannot be evaluated."""
    sides = [{"var": "value"}, {"var": "threshold"}]
    holds = _evaluate_or_none({operator: sides}, {"value": value, "threshold": threshold})
    if isinstance(holds, bool):
        yield Comparison(rule_id, pointer_of(place), path, value, operator, threshold, holds)


def _solve_for_path(
    side: object, path: str, data: Json, value: object, threshold: object, operator: str
) -> tuple[str, object] | None:
    """Solve a comparison for one path of a linear operand. Return the equivalent operator and threshold.

    Return None if the operand is not linear in the path.
    """
    if path_of(side) == path:
        return operator, threshold
    if not (is_number(value) and is_number(threshold)):
        return None
    results = [_evaluate_or_none(side, with_value(data, path, value + step)) for step in (0, 1, 2)]
    numbers = list(filter(is_number, results))
    if len(numbers) < len(results):
        return None
    here, one, two = numbers
    slope = one - here
    if slope == 0 or two - one != slope:
        return None
    bound = value + (threshold - here) / slope
    if not math.isfinite(bound):
        return None
    return (operator if slope > 0 else MIRRORED.get(operator, operator)), _as_integer(bound)


def _find_verdict_changes(
    found: Comparison, case: JudgedCall, verdict: Verdict, decide: Decide
) -> Iterator[VerdictChange]:
    """Yield the numbers around a comparison's threshold that change the verdict. If the verdict stays the same at the
    threshold, try both sides of it, where another rule may decide.
    """
    if not (is_number(found.value) and is_number(found.threshold)):
        return
    turned = _NEGATED[found.operator] if found.holds else found.operator
    for operator in (turned, "<", ">"):
        number = _find_nearest_number(operator, found.threshold)
        other = decide(case.with_value(found.path, number))
        if (other.outcome, other.gate) != (verdict.outcome, verdict.gate):
            distance = abs(found.value - number)
            yield VerdictChange(
                found.path,
                operator,
                found.threshold,
                other.outcome,
                other.gate,
                found.rule,
                distance,
            )
            if operator == turned:
                return


def _find_nearest_number(operator: str, bound: float) -> float:
    """Return the number closest to `bound` that is in relation `operator` to it."""
    if operator in ("<=", ">=", "=="):
        return bound
    up = operator == ">"
    if type(bound) is int:
        return bound + (1 if up else -1)
    return math.nextafter(bound, math.inf if up else -math.inf)


def _evaluate_or_none(source: object, data: Json) -> object:
    """Return the value of an expression with these facts, or None if it cannot be evaluated."""
    try:
        return compile_rule(source).run(Evaluation(data), data)
    except EvaluationError:
        return None


def path_of(source: object) -> str:
    """Return the path that an expression reads if it is only a variable, otherwise an empty string."""
    match source:
        case {"var": str(path) | [str(path), *_], **others} if not others:
            return path
    return ""


def _as_integer(value: object) -> object:
    """Return an integral float within the range of JSON integers as an integer, and any other value unchanged."""
    return (
        int(value)
        if type(value) is float and value.is_integer() and abs(value) <= MAX_INTEGER
        else value
    )


def _render_value(value: object) -> str:
    text = compact(_as_integer(value)).decode()
    return text if len(text) <= 60 else f"{text[:60]}…"
