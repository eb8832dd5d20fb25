"""The operators of JsonLogic rules, one row each (docs/reference/pack.md#rules). Pure.

They differ from the public operator table so that neither a value nor a missing value can widen a verdict:
1. A missing variable without a default is an error, and null is missing.
2. Values are never coerced: ordering and arithmetic take numbers, `cat` and `substr` text, loops lists. `==` is `===`,
   and equality or `in` across JSON types is an error.
3. A truth value is a boolean, or whether a list from an operator has items. The result of a rule is a boolean.
4. Paths of `var` are literal, `and`, `or` and `if` are not empty, and no other operator exists.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from typing import Final

from cogcli.base.named_tuple import NamedTuple
from cogcli.base.refs import MISSING
from cogcli.declarations.value_types import Number
from cogcli.policy.evaluation import (
    MAX_BYTES,
    Evaluate,
    Evaluation,
    EvaluationError,
    OperatorCall,
    equal_values,
    is_number,
    require_integer,
    require_list,
    require_number,
    require_safe_number,
    require_text,
    segments_of,
)


def _compile_var(call: OperatorCall) -> Evaluate:
    written, default = call.arguments[0], call.argument(1) if len(call.arguments) == 2 else None
    path = _parse_path(written)
    if path is None:
        return call.fault("the path of `var` is not written out")
    if call.at_root:
        call.compiler.paths.add(path)
    segments = segments_of(path)

    def read_path(evaluation: Evaluation, scope: object) -> object:
        if scope is evaluation.data:
            # Rules of a pack read the same few facts: this is `look_up` without a call.
            known = evaluation.reads.get(path)
            if known is not None:
                evaluation.last = path
                return known
        value = evaluation.look_up(scope, path, segments)
        if value is not MISSING:
            return value
        if default is None:
            raise EvaluationError("missing", f"no value at `{path}`", evaluation.last)
        return default(evaluation, scope)

    return read_path


def _parse_path(value: object) -> str | None:
    """Return the path in a value: a string, or a whole number as text. None for any other value."""
    if isinstance(value, str):
        return value
    if type(value) is int:
        return str(value)
    return str(int(value)) if type(value) is float and value.is_integer() else None


def _add_paths(call: OperatorCall, arguments: list[object]) -> None:
    """Add the arguments of `missing` to the paths that the rule reads. A computed argument may be any path."""
    if call.at_root:
        paths = map(_parse_path, arguments)
        call.compiler.paths.update(path for path in paths if path is not None)
        call.compiler.computed |= any(isinstance(name, dict | list) for name in arguments)


def _find_absent_paths(evaluation: Evaluation, scope: object, names: list[object]) -> list[object]:
    """Return the paths that have no value."""
    evaluation.spend(len(names))
    absent = []
    for name in names:
        path = _parse_path(name)
        path = require_text(name) if path is None else path
        if evaluation.look_up(scope, path, segments_of(path)) is MISSING:
            absent.append(name)
    return absent


def _compile_missing(call: OperatorCall) -> Evaluate:
    """Compile `missing`. The paths are its arguments, or the items of its only argument if that is a list."""
    parts = call.every()
    _add_paths(call, _unpack_single_list(call.arguments))

    def missing(evaluation: Evaluation, scope: object) -> list[object]:
        values = [part(evaluation, scope) for part in parts]
        return _find_absent_paths(evaluation, scope, _unpack_single_list(values))

    return missing


def _unpack_single_list(values: list[object]) -> list[object]:
    """Return the items of a list that is the only value, otherwise the values themselves."""
    first = values[0] if len(values) == 1 else None
    return first if isinstance(first, list) else values


def _missing_some(call: OperatorCall) -> Evaluate:
    """Compile `missing_some`. The paths are the items of its second argument."""
    needed, names = call.every()
    written = call.arguments[1]
    _add_paths(call, _unpack_single_list([written]))

    def missing_some(evaluation: Evaluation, scope: object) -> list[object]:
        minimum = needed(evaluation, scope)
        wanted = require_list(names(evaluation, scope))
        absent = _find_absent_paths(evaluation, scope, wanted)
        return [] if len(wanted) - len(absent) >= require_integer(minimum) else absent

    return missing_some


def _compile_if(call: OperatorCall) -> Evaluate:
    last = len(call.arguments) - len(call.arguments) % 2
    cases = [(call.condition(number), call.argument(number + 1)) for number in range(0, last, 2)]
    otherwise = call.argument(last) if last < len(call.arguments) else None

    def choose(evaluation: Evaluation, scope: object) -> object:
        for condition, value in cases:
            if condition(evaluation, scope):
                return value(evaluation, scope)
        return otherwise(evaluation, scope) if otherwise else None

    return choose


def _short_circuit(decisive: bool) -> Callable[[OperatorCall], Evaluate]:
    """Compile `and` or `or`. The result is the first value with the truth `decisive`, otherwise the last value.

    Later arguments are not evaluated.
    """

    def build(call: OperatorCall) -> Evaluate:
        parts = [call.valued_condition(number) for number in range(len(call.arguments))]

        def run(evaluation: Evaluation, scope: object) -> object:
            value = None
            for part, truth in parts:
                value = part(evaluation, scope)
                held = value if type(value) is bool else truth(value)
                if held is decisive:
                    break
            return value

        return run

    return build


def _compile_truth(call: OperatorCall) -> Evaluate:
    return call.condition(0)


def _compile_not(call: OperatorCall) -> Evaluate:
    condition = call.condition(0)
    return lambda evaluation, scope: not condition(evaluation, scope)


def _equal_to_text(value: Evaluate, constant: str) -> Evaluate:
    """Compile `==` with a constant text, which most conditions of rules are."""

    def compare(evaluation: Evaluation, scope: object) -> bool:
        found = value(evaluation, scope)
        return found == constant if type(found) is str else equal_values(found, constant)

    return compare


def _apply_to_all(function: Callable[..., object]) -> Callable[[OperatorCall], Evaluate]:
    """Compile an operator that applies a function to the values of all its arguments."""

    def build(call: OperatorCall) -> Evaluate:
        parts = call.every()
        if len(parts) == 2:  # most are, and this is the hot path of a rule
            first, second = parts
            known = call.arguments[1]
            if function is equal_values and isinstance(known, str):
                return _equal_to_text(first, known)
            if not isinstance(known, dict | list):  # a constant
                return lambda evaluation, scope: function(first(evaluation, scope), known)
            return lambda evaluation, scope: function(
                first(evaluation, scope), second(evaluation, scope)
            )
        return lambda evaluation, scope: function(*[part(evaluation, scope) for part in parts])

    return build


def _compare_numbers(
    compare_pair: Callable[[float, float], bool],
) -> Callable[[OperatorCall], Evaluate]:
    """Compile a comparison of two numbers. With three numbers, the comparison must be true for both adjacent pairs."""

    def compare(first: object, second: object, third: object = MISSING) -> bool:
        low, middle = require_number(first), require_number(second)
        first_holds = compare_pair(low, middle)
        return (
            first_holds
            if third is MISSING
            else compare_pair(middle, require_number(third)) and first_holds
        )

    build = _apply_to_all(compare)

    def build_comparison(call: OperatorCall) -> Evaluate:
        constant = call.arguments[1]
        if len(call.arguments) == 2 and is_number(constant):
            return _compare_to_number(compare_pair, call.every()[0], constant)
        return build(call)

    return build_comparison


def _compare_to_number(
    compare_pair: Callable[[float, float], bool], value: Evaluate, constant: Number
) -> Evaluate:
    """Compile a comparison with a constant number, which most conditions of rules are."""

    def compare(evaluation: Evaluation, scope: object) -> bool:
        found = value(evaluation, scope)
        if type(found) is int or type(found) is float:  # as in `require_number`, without a call
            return compare_pair(found, constant)
        return compare_pair(require_number(found), constant)

    return compare


def _subtract_numbers(first: object, second: object = MISSING) -> Number:
    return require_safe_number(
        -require_number(first)
        if second is MISSING
        else require_number(first) - require_number(second)
    )


def _divide_numbers(dividend: object, divisor: object) -> Number:
    a, b = require_number(dividend), _require_divisor(divisor)
    return require_safe_number(a // b if a % b == 0 else a / b)


def _signed_remainder(dividend: object, divisor: object) -> Number:
    """Return the remainder with the sign of the dividend."""
    a, b = require_number(dividend), _require_divisor(divisor)
    rest = math.fmod(a, b)
    return int(rest) if type(a) is int and type(b) is int else rest


def _require_divisor(value: object) -> Number:
    if require_number(value) == 0:
        raise EvaluationError("range", "division by zero")
    return require_number(value)


def _combine_numbers(
    combine: Callable[[list[Number]], Number],
) -> Callable[[OperatorCall], Evaluate]:
    return _apply_to_all(
        lambda *values: require_safe_number(combine([require_number(value) for value in values]))
    )


def _multiply_numbers(numbers: list[Number]) -> Number:
    product: Number = 1
    for number in numbers:
        product = require_safe_number(product * number)
    return product


def _concatenate(*values: object) -> str:
    text = "".join(map(require_text, values))
    if len(text) > MAX_BYTES:
        raise EvaluationError("limit", f"text longer than {MAX_BYTES} characters")
    return text


def _substring(value: object, start: object, length: object = MISSING) -> str:
    """Return a substring.

    A negative start is relative to the end; a negative length drops that many characters at the end.
    """
    rest = require_text(value)[require_integer(start) :]
    return rest if length is MISSING else rest[: require_integer(length)]


def _compile_in(call: OperatorCall) -> Evaluate:
    needle, haystack = call.every()

    def contains(evaluation: Evaluation, scope: object) -> bool:
        wanted, among = needle(evaluation, scope), haystack(evaluation, scope)
        if isinstance(among, str):
            return require_text(wanted) in among
        items = require_list(among)
        evaluation.spend(len(items))
        return True in [equal_values(wanted, item) for item in items]

    return contains


def _compile_merge(call: OperatorCall) -> Evaluate:
    """Compile `merge`: it concatenates lists. A constant that is not a list becomes one item."""
    sources = call.arguments
    parts = [
        call.argument(number)
        if isinstance(source, dict | list)
        else (lambda item: lambda *_: [item])(source)
        for number, source in enumerate(sources)
    ]

    def merge(evaluation: Evaluation, scope: object) -> list[object]:
        joined = [item for part in parts for item in require_list(part(evaluation, scope))]
        evaluation.spend(len(joined))
        return joined

    return merge


def _compile_loop(
    walk: Callable[[Iterable[tuple[object, object]]], object], *, condition: bool
) -> Callable[[OperatorCall], Evaluate]:
    """Compile an operator that evaluates its second argument for each item of its first. The item is the scope."""

    def build(call: OperatorCall) -> Evaluate:
        items = call.argument(0)
        body = call.condition(1, at_root=False) if condition else call.argument(1, at_root=False)
        return lambda evaluation, scope: walk(
            (item, body(evaluation, item)) for item in require_list(items(evaluation, scope))
        )

    return build


def _list_results(results: Iterable[tuple[object, object]]) -> list[object]:
    """Return for each item whether the condition is true. All items are evaluated, so that an error in any of them is
    raised.
    """
    return [holds for _, holds in results]


def _all_nonempty(results: Iterable[tuple[object, object]]) -> bool:
    """Return whether the condition is true for every item. False without items."""
    held = _list_results(results)
    return bool(held) and False not in held


def _compile_reduce(call: OperatorCall) -> Evaluate:
    items, body, start = call.argument(0), call.argument(1, at_root=False), call.argument(2)

    def reduce(evaluation: Evaluation, scope: object) -> object:
        listed, accumulator = require_list(items(evaluation, scope)), start(evaluation, scope)
        for item in listed:
            accumulator = body(evaluation, {"current": item, "accumulator": accumulator})
        return accumulator

    return reduce


class Operator(NamedTuple):
    """An operator of rules: its allowed number of arguments, and the function that compiles it."""

    minimum: int
    maximum: int | None
    build: Callable[[OperatorCall], Evaluate]

    @property
    def takes(self) -> str:
        """A phrase for the allowed number of arguments."""
        if self.maximum is None:
            return f"{self.minimum} or more arguments"
        many = (
            str(self.minimum)
            if self.minimum == self.maximum
            else f"{self.minimum} to {self.maximum}"
        )
        return f"{many} argument" + ("s" if self.maximum > 1 else "")


OPERATORS: Final[dict[str, Operator]] = {
    "var": Operator(1, 2, _compile_var),
    "missing": Operator(1, None, _compile_missing),
    "missing_some": Operator(2, 2, _missing_some),
    "if": Operator(2, None, _compile_if),
    "?:": Operator(3, 3, _compile_if),
    "==": Operator(2, 2, _apply_to_all(equal_values)),
    "===": Operator(2, 2, _apply_to_all(equal_values)),
    "!=": Operator(2, 2, _apply_to_all(lambda a, b: not equal_values(a, b))),
    "!==": Operator(2, 2, _apply_to_all(lambda a, b: not equal_values(a, b))),
    "!": Operator(1, 1, _compile_not),
    "!!": Operator(1, 1, _compile_truth),
    "and": Operator(1, None, _short_circuit(False)),
    "or": Operator(1, None, _short_circuit(True)),
    "<": Operator(2, 3, _compare_numbers(operator.lt)),
    "<=": Operator(2, 3, _compare_numbers(operator.le)),
    ">": Operator(2, 2, _compare_numbers(operator.gt)),
    ">=": Operator(2, 2, _compare_numbers(operator.ge)),
    "+": Operator(1, None, _combine_numbers(sum)),
    "-": Operator(1, 2, _apply_to_all(_subtract_numbers)),
    "*": Operator(1, None, _combine_numbers(_multiply_numbers)),
    "/": Operator(2, 2, _apply_to_all(_divide_numbers)),
    "%": Operator(2, 2, _apply_to_all(_signed_remainder)),
    "min": Operator(1, None, _combine_numbers(min)),
    "max": Operator(1, None, _combine_numbers(max)),
    "map": Operator(
        2, 2, _compile_loop(lambda results: [value for _, value in results], condition=False)
    ),
    "filter": Operator(
        2,
        2,
        _compile_loop(lambda results: [item for item, kept in results if kept], condition=True),
    ),
    "reduce": Operator(3, 3, _compile_reduce),
    "all": Operator(2, 2, _compile_loop(_all_nonempty, condition=True)),
    "some": Operator(
        2, 2, _compile_loop(lambda results: True in _list_results(results), condition=True)
    ),
    "none": Operator(
        2, 2, _compile_loop(lambda results: True not in _list_results(results), condition=True)
    ),
    "merge": Operator(1, None, _compile_merge),
    "in": Operator(2, 2, _compile_in),
    "cat": Operator(1, None, _apply_to_all(_concatenate)),
    "substr": Operator(2, 3, _apply_to_all(_substring)),
}
MAKES_LIST: Final = frozenset(("missing", "missing_some", "map", "filter", "merge"))
"""Operators whose result is always a list. Only such a list has a truth value."""
