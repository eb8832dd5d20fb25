"""What the tests next to the rules of a pack reach: rules, branches of conditions, and verdicts
(docs/reference/pack.md#coverage). Pure.

A branch is one outcome of a part that decides: the condition, each operand of `and` and `or`, each condition of `if`. A
part counts as evaluated only where the evaluation gets to it. Loops are not looked into.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from cogcli.base.jsonvalue import list_of
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.pack_spec import PolicyRule
from cogcli.declarations.value_types import Json
from cogcli.policy.jsonlogic import compile_rule, evaluate
from cogcli.policy.pack_policy import breaks_limits
from cogcli.specs.unchecked import object_at

_CHOICES: Final = ("if", "?:")
_DEEPEST: Final = 64
Path = tuple[str | int, ...]


class RuleCoverage(NamedTuple):
    """The outcomes of one rule's parts, as text: all possible ones, and those that its tests reach."""

    rule_id: str
    wanted: tuple[str, ...]
    reached: frozenset[str]

    @property
    def missing(self) -> list[str]:
        """The outcomes that no test reaches."""
        return [each for each in self.wanted if each not in self.reached]

    def to_payload(self) -> Json:
        """Return the coverage of the rule as JSON."""
        return {
            "rule": self.rule_id,
            "wanted": len(self.wanted),
            "reached": len(self.wanted) - len(self.missing),
            "missing": self.missing,
        }


def cover_rules(rules: Iterable[PolicyRule]) -> list[RuleCoverage]:
    """Return the coverage of each rule by its tests."""
    return [_cover_rule(rule) for rule in rules]


def share_reached(found: Iterable[RuleCoverage]) -> float:
    """Return the share of all rules, branches and verdicts that tests reach, in percent. Without any it is 100."""
    found = list(found)
    wanted = sum(len(each.wanted) for each in found)
    missing = sum(len(each.missing) for each in found)
    return 100.0 * (wanted - missing) / wanted if wanted else 100.0


def _cover_rule(rule: PolicyRule) -> RuleCoverage:
    limits = rule.then.limits
    verdicts = dict.fromkeys((rule.then.verdict, *(["deny"] if limits else [])))
    branches = [
        f"{_part_name(path)} {word}"
        for path, _ in _list_parts(rule.condition, ())
        for word in ("true", "false")
    ]
    wanted = (*branches, *(f"verdict {verdict}" for verdict in verdicts))
    reached: set[str] = set()
    for test in rule.tests:
        reached.update(_reached_outcomes(rule.condition, (), test.data))
        found = evaluate(compile_rule(rule.condition), test.data)
        if found.result:
            broken = breaks_limits(limits, object_at(test.data, "args"))
            reached.add(f"verdict {'deny' if broken else rule.then.verdict}")
    return RuleCoverage(rule.rule_id, wanted, frozenset(reached))


def _part_name(path: Path) -> str:
    return "/".join(("if", *map(str, path)))


def _list_parts(part: object, path: Path) -> Iterator[tuple[Path, object]]:
    """Yield the parts of a condition that decide, with their paths: itself, then those inside it. Constants decide
    nothing.
    """
    if not isinstance(part, dict) or len(path) > _DEEPEST:
        return
    yield path, part
    for place, operand in _list_operands(part):
        yield from _list_parts(operand, (*path, *place))


def _list_operands(part: Json) -> list[tuple[Path, object]]:
    """Return the operands of `and`, `or`, `!` and `if` that are conditions themselves."""
    operator, given = next(iter(part.items())) if len(part) == 1 else ("", None)
    operands = list_of(given)
    if operator in ("and", "or", "!"):
        return [((operator, number), operand) for number, operand in enumerate(operands)]
    if operator in _CHOICES:
        return [((operator, number), operand) for number, operand in enumerate(operands)]
    return []


def _reached_outcomes(part: object, path: Path, data: Json) -> Iterator[str]:
    """Yield the outcomes of the parts that are evaluated for this data."""
    if not isinstance(part, dict) or len(path) > _DEEPEST:
        return
    outcome = _truth_of(part, data)
    if outcome is not None:
        yield f"{_part_name(path)} {'true' if outcome else 'false'}"
    operator = next(iter(part), "")
    operands = _list_operands(part)
    if operator in _CHOICES:
        operands = list(_follow_choice(operands, data))
    for place, operand in operands:
        yield from _reached_outcomes(operand, (*path, *place), data)
        found = _truth_of(operand, data)
        if found is None or (operator == "and" and not found) or (operator == "or" and found):
            return


def _follow_choice(
    operands: list[tuple[Path, object]], data: Json
) -> Iterator[tuple[Path, object]]:
    """Yield the conditions that an `if` evaluates, then the value that it chooses."""
    position = 0
    while position + 1 < len(operands):
        yield operands[position]
        found = _truth_of(operands[position][1], data)
        if found is None:
            return
        if found:
            yield operands[position + 1]
            return
        position += 2
    if position < len(operands):
        yield operands[position]


def _truth_of(part: object, data: Json) -> bool | None:
    """Return whether a part is true; None if its evaluation fails."""
    return evaluate(compile_rule({"!!": [part]}), data).result
