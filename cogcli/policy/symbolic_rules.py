"""Conditions of rules as terms for a solver (docs/adr/0038-proofs.md). Pure.

Each operator of `policy/operators.py` has the same meaning here, as far as it is known. What is not known (parts of
texts, items of lists, rounded arithmetic) is any value, but the same one wherever the same expression stands. So a
proof holds for all values; a difference must be confirmed by the evaluator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Final

from cogcli.base.canonical import compact
from cogcli.base.jsonvalue import MAX_INTEGER, kind_of
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.value_types import Json
from cogcli.policy.evaluation import Evaluation, EvaluationError, is_number
from cogcli.policy.jsonlogic import Rule, compile_rule
from cogcli.policy.operators import MAKES_LIST
from cogcli.policy.smt_script import (
    EXACT,
    FALSE,
    TRUE,
    SmtScript,
    all_of,
    any_of,
    either,
    equals,
    implies,
    negated,
    number_term,
)
from cogcli.policy.symbolic_values import (
    ABSENT_KIND,
    FAILURE,
    KINDS,
    FactTable,
    KindCase,
    SymbolicValue,
    choose_value,
    condition_value,
    constant_value,
)

_Reader = Callable[["RuleReader", list[object], Json], SymbolicValue]
_GIVES: Final = {
    "all": "boolean",
    "some": "boolean",
    "none": "boolean",
    "in": "boolean",
    "cat": "text",
    "substr": "text",
    "map": "list",
    "filter": "list",
    "merge": "list",
    "missing": "list",
    "missing_some": "list",
}
"""The kind of an operator's result, if it has one. Results of other operators may be of any kind."""


class RuleReading(NamedTuple):
    """The conditions under which a rule matches and fails, the paths that it reads, and its unknown operators."""

    matches: str
    fails: str
    paths: frozenset[str] = frozenset()
    inexact: frozenset[str] = frozenset()


class Readings:
    """The shared state of both policies: the script, the paths, and the unknown values by expression."""

    def __init__(self) -> None:
        self.script = SmtScript()
        self.facts = FactTable(self.script)
        self.unknown: dict[bytes, SymbolicValue] = {}
        self.rules: dict[bytes, RuleReading] = {}
        """The rules that were read and whose values no kind of call fixes."""

    def open_value(self, kind: str | None) -> SymbolicValue:
        """Return an unknown value of a kind, whose evaluation may also fail. Without a kind, of any
        kind.
        """
        kinds = KINDS if kind is None else (ABSENT_KIND, kind)
        found = self.facts.unknown(kinds)
        if kind is None:
            cases = dict(found.value.kinds) | {"null": KindCase(found.is_kind("null"))}
            return SymbolicValue(cases, found.is_kind(ABSENT_KIND))
        return SymbolicValue({kind: found.value.case(kind)}, found.is_kind(ABSENT_KIND))

    def open_condition(self, key: bytes) -> str:
        """Return an undetermined condition, the same one for the same key."""
        if key not in self.unknown:
            self.unknown[key] = self.open_value("boolean")
        return self.unknown[key].case("boolean").term


class RuleReader:
    """Reads the conditions of one policy for one call. `fixed` are the values that the call determines, by path. `own`
    are those for which the other policy determines another value.
    """

    def __init__(
        self, shared: Readings, fixed: Mapping[str, SymbolicValue], own: frozenset[str], side: str
    ) -> None:
        self._shared, self._fixed, self._own, self._side = shared, fixed, own, side
        self.paths: set[str] = set()
        """The paths that were read."""
        self.inexact: set[str] = set()
        """The operators whose value is not known."""

    def read_rule(self, rule: Rule, source: object) -> RuleReading:
        """Return the conditions under which a rule matches, and under which it fails."""
        if rule.faults:
            return RuleReading(FALSE, TRUE)
        paths = {canonical_path(path) for path in rule.paths}
        is_free = not rule.computed and "" not in paths and paths.isdisjoint(self._fixed)
        key, known = compact(source), self._shared.rules
        found = known.get(key) if is_free else None
        if found is None:
            found = self._read_condition(source)
        if is_free:
            known[key] = found
        self.paths |= found.paths
        self.inexact |= found.inexact
        return found

    def _read_condition(self, source: object) -> RuleReading:
        reader = RuleReader(self._shared, self._fixed, self._own, self._side)
        found = reader.read(source).case("boolean")
        shorten = self._shared.script.shorten
        matches = shorten(all_of(found.condition, found.term))
        fails = shorten(negated(found.condition))
        return RuleReading(matches, fails, frozenset(reader.paths), frozenset(reader.inexact))

    def read(self, source: object) -> SymbolicValue:
        """Return the value of an expression."""
        match source:
            case list():
                parts = [self.read(each) for each in source]
                holds = TRUE if parts else FALSE
                fails = any_of(*[part.fails for part in parts])
                return SymbolicValue({"list": KindCase(negated(fails), holds)}, fails)
            case dict():
                name, arguments = next(iter(source.items()))
                read = _OPERATORS.get(name)
                given = arguments if isinstance(arguments, list) else [arguments]
                return read(self, given, source) if read else self.leave_open(source)
        return self._read_constant(source)

    def _read_constant(self, source: object) -> SymbolicValue:
        kind = kind_of(source)
        if isinstance(source, str):
            return constant_value(kind, self._shared.facts.text(source))
        if is_number(source):
            return constant_value(kind, number_term(source))
        return constant_value(kind, TRUE if source is True else FALSE)

    def fact(self, path: str) -> SymbolicValue:
        """Return the value at a path of the call's data."""
        path = canonical_path(path)
        if path in self._fixed:
            return self._fixed[path]
        self.paths.add(path)
        return self._shared.facts.fact(path).value

    def is_absent(self, path: str) -> str:
        """Return the condition that a path has no value."""
        return self.fact(path).fails

    def truth(self, source: object) -> tuple[SymbolicValue, str, str]:
        """Return the value of an expression, when it has no truth value, and when it is true."""
        value = self.read(source)
        made = isinstance(source, dict) and next(iter(source)) in MAKES_LIST
        found = value.case("list" if made or isinstance(source, list) else "boolean")
        shorten = self._shared.script.shorten
        return value, shorten(negated(found.condition)), shorten(found.term)

    def leave_open(self, source: Json) -> SymbolicValue:
        """Return any value for an expression, but the same one as elsewhere. Without paths it is evaluated."""
        compiled = compile_rule(source)
        if not compiled.paths and not compiled.computed:
            return self._evaluate_constant(compiled)
        name = next(iter(source))
        return self._unknown_value(compiled, name, compact(source), _GIVES.get(name))

    def _unknown_value(
        self, compiled: Rule, name: str, key: bytes, kind: str | None
    ) -> SymbolicValue:
        paths = {canonical_path(path) for path in compiled.paths}
        for path in paths:
            if path and path not in self._fixed:
                self.paths.add(path)
                self._shared.facts.fact(path)
        self.inexact.add(name)
        if compiled.computed or "" in paths or not paths.isdisjoint(self._own):
            key += self._side.encode()
        known = self._shared.unknown
        if key not in known:
            known[key] = self._shared.open_value(kind)
        return known[key]

    def _evaluate_constant(self, compiled: Rule) -> SymbolicValue:
        """Return the value of an expression without reads."""
        try:
            found = compiled.run(Evaluation({}), {})
        except EvaluationError:
            return FAILURE
        if isinstance(found, list):
            return constant_value("list", TRUE if found else FALSE)
        return self._read_constant(found)

    def compute(self, source: Json, fits: str, exact: str, in_range: str) -> SymbolicValue:
        """Return the number that arithmetic computes where `fits` is true. Rounding may make it any number. Under EXACT
        it is `exact`, where `in_range` is true.
        """
        shared, found = self._shared.script, self.leave_open(source).case("number")
        shared.require(implies(EXACT, implies(fits, equals(found.condition, in_range))))
        shared.require(implies(EXACT, implies(found.condition, equals(found.term, exact))))
        known = shared.shorten(all_of(fits, found.condition))
        return SymbolicValue({"number": KindCase(known, found.term)}, negated(known))

    def is_same(self, source: Json, first: SymbolicValue, second: SymbolicValue) -> tuple[str, str]:
        """Return the conditions under which two values cannot be compared, and under which they are equal."""
        comparable, holds = FALSE, FALSE
        for kind in first.kinds:
            mine, theirs = first.case(kind), second.case(kind)
            both = all_of(mine.condition, theirs.condition)
            if both == FALSE:
                continue
            same = TRUE if kind == "null" else equals(mine.term, theirs.term)
            if kind in ("list", "object"):
                key = compact({kind: source})
                same = (
                    self._unknown_value(compile_rule(source), "==", key, "boolean")
                    .case("boolean")
                    .term
                )
            comparable, holds = any_of(comparable, both), either(both, same, holds)
        return negated(comparable), holds


def canonical_path(path: str) -> str:
    """Return the path under which a value is known: the parameters of a request are the inputs of the run."""
    head, rest = "request.params", "inputs"
    return rest + path[len(head) :] if path == head or path.startswith(f"{head}.") else path


def _read_var(reader: RuleReader, arguments: list[object], source: Json) -> SymbolicValue:
    path = str(arguments[0])
    if not path or isinstance(arguments[0], float):
        return reader.leave_open(source)
    found = reader.fact(path)
    if len(arguments) < 2:
        return found
    default = reader.read(arguments[1])
    kinds = SymbolicValue(found.kinds, FALSE)
    return choose_value(found.fails, default, kinds)


def _read_missing(reader: RuleReader, arguments: list[object], source: Json) -> SymbolicValue:
    names = arguments
    if len(names) == 1 and isinstance(names[0], list):
        names = list(names[0])
    if not all(isinstance(name, str) and name for name in names):
        return reader.leave_open(source)
    return constant_value("list", any_of(*[reader.is_absent(str(name)) for name in names]))


def _missing_some(reader: RuleReader, arguments: list[object], source: Json) -> SymbolicValue:
    needed, names = arguments
    if not (type(needed) is int and isinstance(names, list)):
        return reader.leave_open(source)
    if not names or not all(isinstance(name, str) and name for name in names):
        return reader.leave_open(source)
    absent = [reader.is_absent(str(name)) for name in names]
    count = f"(+ 0 0 {' '.join(f'(ite {each} 0 1)' for each in absent)})"
    return constant_value("list", all_of(f"(< {count} {number_of(needed)})", any_of(*absent)))


def number_of(value: int) -> str:
    """Return an integer as a term."""
    return str(value) if value >= 0 else f"(- {-value})"


def _read_if(reader: RuleReader, arguments: list[object], source: Json) -> SymbolicValue:
    last = len(arguments) - len(arguments) % 2
    found = reader.read(arguments[last]) if last < len(arguments) else constant_value("null")
    for number in reversed(range(0, last, 2)):
        _, fails, holds = reader.truth(arguments[number])
        chosen = choose_value(holds, reader.read(arguments[number + 1]), found)
        found = choose_value(fails, FAILURE, chosen)
    return found


def _read_junction(decisive: bool) -> _Reader:
    """Return a reader of `and` or `or`: the first value with the truth `decisive`, else the last one."""

    def read(reader: RuleReader, arguments: list[object], source: Json) -> SymbolicValue:
        *firsts, last = [reader.truth(argument) for argument in arguments]
        found = choose_value(last[1], FAILURE, last[0])
        for value, fails, holds in reversed(firsts):
            ends = holds if decisive else negated(holds)
            found = choose_value(fails, FAILURE, choose_value(ends, value, found))
        return found

    return read


def _read_truth(negate: bool) -> _Reader:
    def read(reader: RuleReader, arguments: list[object], source: Json) -> SymbolicValue:
        _, fails, holds = reader.truth(arguments[0])
        return condition_value(fails, negated(holds) if negate else holds)

    return read


def _read_equal(negate: bool) -> _Reader:
    def read(reader: RuleReader, arguments: list[object], source: Json) -> SymbolicValue:
        first, second = map(reader.read, arguments)
        fails, holds = reader.is_same(source, first, second)
        return condition_value(fails, negated(holds) if negate else holds)

    return read


def _read_order(operator: str) -> _Reader:
    def read(reader: RuleReader, arguments: list[object], source: Json) -> SymbolicValue:
        numbers = [reader.read(each).case("number") for each in arguments]
        fits = all_of(*[each.condition for each in numbers])
        if fits == FALSE:
            return FAILURE
        pairs = pairwise(numbers)
        holds = [f"({operator} {low.term} {high.term})" for low, high in pairs]
        return condition_value(negated(fits), all_of(*holds))

    return read


def _read_arithmetic(
    compute: Callable[[str, str], str], *, is_exact: bool = False, each_step: bool = False
) -> _Reader:
    """Return a reader of arithmetic over its arguments from the left. An exact result is never rounded."""

    def read(reader: RuleReader, arguments: list[object], source: Json) -> SymbolicValue:
        numbers = [reader.read(each).case("number") for each in arguments]
        fits = all_of(*[each.condition for each in numbers])
        if fits == FALSE:
            return FAILURE
        steps = [numbers[0].term]
        for each in numbers[1:]:
            steps.append(compute(steps[-1], each.term))
        in_range = all_of(*map(_is_safe, steps if each_step else steps[-1:]))
        if is_exact or len(numbers) == 1:
            return _number_where(all_of(fits, in_range), steps[-1])
        return reader.compute(source, fits, steps[-1], in_range)

    return read


def _number_where(condition: str, term: str) -> SymbolicValue:
    return SymbolicValue({"number": KindCase(condition, term)}, negated(condition))


def _read_divide(reader: RuleReader, arguments: list[object], source: Json) -> SymbolicValue:
    dividend, divisor = [reader.read(each).case("number") for each in arguments]
    is_zero = equals(divisor.term, number_term(0)) if divisor.condition != FALSE else TRUE
    fits = all_of(dividend.condition, divisor.condition, negated(is_zero))
    if fits == FALSE:
        return FAILURE
    quotient = f"(/ {dividend.term} {divisor.term})"
    return reader.compute(source, fits, quotient, _is_safe(quotient))


def _read_subtract(reader: RuleReader, arguments: list[object], source: Json) -> SymbolicValue:
    given = arguments if len(arguments) > 1 else [0, *arguments]
    return _read_arithmetic(lambda a, b: f"(- {a} {b})", is_exact=given is not arguments)(
        reader, given, source
    )


def _is_safe(term: str) -> str:
    """Return the condition that a number is within the range of computed numbers."""
    most = number_term(MAX_INTEGER)
    return f"(<= (- {most}) {term} {most})"


def _read_in(reader: RuleReader, arguments: list[object], source: Json) -> SymbolicValue:
    """Read `in` with a literal list. Each item must be of the same kind as the searched value."""
    if not isinstance(arguments[1], list):
        return reader.leave_open(source)
    wanted = reader.read(arguments[0])
    items = [reader.read(each) for each in arguments[1]]
    pairs = [
        reader.is_same({"in": [source, number]}, wanted, item) for number, item in enumerate(items)
    ]
    fails = any_of(wanted.fails, *[item.fails for item in items], *[fails for fails, _ in pairs])
    return condition_value(fails, any_of(*[holds for _, holds in pairs]))


_OPERATORS: Final[dict[str, _Reader]] = {
    "var": _read_var,
    "missing": _read_missing,
    "missing_some": _missing_some,
    "if": _read_if,
    "?:": _read_if,
    "==": _read_equal(negate=False),
    "===": _read_equal(negate=False),
    "!=": _read_equal(negate=True),
    "!==": _read_equal(negate=True),
    "!": _read_truth(negate=True),
    "!!": _read_truth(negate=False),
    "and": _read_junction(False),
    "or": _read_junction(True),
    "<": _read_order("<"),
    "<=": _read_order("<="),
    ">": _read_order(">"),
    ">=": _read_order(">="),
    "+": _read_arithmetic(lambda a, b: f"(+ {a} {b})"),
    "-": _read_subtract,
    "*": _read_arithmetic(lambda a, b: f"(* {a} {b})", each_step=True),
    "/": _read_divide,
    "min": _read_arithmetic(lambda a, b: f"(ite (<= {a} {b}) {a} {b})", is_exact=True),
    "max": _read_arithmetic(lambda a, b: f"(ite (>= {a} {b}) {a} {b})", is_exact=True),
    "in": _read_in,
}
"""The operators whose meaning a solver knows. Results of others are undetermined."""
