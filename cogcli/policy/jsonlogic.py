"""JsonLogic rules, compiled once to closures and evaluated so that they fail closed.

Pure; docs/reference/pack.md#rules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cogcli.base.canonical import canonical
from cogcli.base.json_pointer import pointer_of
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.value_types import Json
from cogcli.policy.evaluation import (
    MAX_BYTES,
    MAX_OPERATIONS,
    Evaluate,
    Evaluation,
    EvaluationError,
    OperatorCall,
    Path,
    describe,
    require_boolean,
)
from cogcli.policy.operators import MAKES_LIST, OPERATORS

MAX_DEPTH: Final = 64


class RuleError(NamedTuple):
    """Explains why a rule has no result. `code` is missing, type, range, limit or invalid. `pointer` is the place of
    the operator.
    """

    code: str
    pointer: str
    message: str
    reads: Json
    missing: str = ""
    """The path of the missing fact. For a member of an item: the path of the list."""


class RuleResult(NamedTuple):
    """Whether a rule matches, and each path that it read with the value at that path. A missing value is None."""

    result: bool | None
    """None if the rule has no result, because of `error`."""
    reads: Json
    error: RuleError | None = None


class RuleFault(NamedTuple):
    """A defect of a rule that the compiler finds, before any data is known."""

    path: Path
    message: str

    def refuse(self, evaluation: Evaluation, scope: object) -> object:
        """Raise the error of this fault.

        A rule with a fault always ends here, even if the faulty part is not reached.
        """
        raise EvaluationError("invalid", self.message, path=self.path)


class Rule(NamedTuple):
    """A compiled rule. A rule with faults never has a result."""

    run: Evaluate
    paths: frozenset[str]
    """The paths that `var` and `missing` name outside of loops."""
    computed: bool
    """Whether `missing` accepts computed names."""
    faults: tuple[RuleFault, ...]


def evaluate(rule: Rule, data: Json) -> RuleResult:
    """Return whether a rule matches these facts, or the error that prevents a result. Never raises."""
    evaluation = Evaluation(data)
    found = evaluate_in(rule, evaluation)
    if found is True or found is False:
        return RuleResult(found, evaluation.reads)
    return RuleResult(None, evaluation.reads, found)


def evaluate_in(rule: Rule, evaluation: Evaluation) -> bool | RuleError:
    """Return whether a rule matches. The evaluation may be shared with other rules.

    Reads are shared. The limit of operations applies to each rule separately.
    """
    evaluation.left, evaluation.last = MAX_OPERATIONS, ""
    try:
        result = rule.run(evaluation, evaluation.data)
    except EvaluationError as broken:
        pointer = pointer_of(broken.path or ())
        return RuleError(broken.code, pointer, broken.message, evaluation.reads, broken.name)
    if result is True or result is False:
        return result
    message = f"the result is {describe(result)}, expected true or false"
    return RuleError("type", "", message, evaluation.reads)


def compile_rule(source: object, *, depth: int = MAX_DEPTH) -> Rule:
    """Compile a JSON value to a rule. It may nest at most `depth` deep. Defects are in `faults`."""
    compiler = _Compiler(depth)
    if len(canonical(source)) > MAX_BYTES:
        run = compiler.fault((), f"longer than {MAX_BYTES} bytes")
    else:
        run = compiler.expression(source, (), 1, at_root=True)
    faults = tuple(compiler.faults)
    return Rule(
        faults[0].refuse if faults else run, frozenset(compiler.paths), compiler.computed, faults
    )


class _Compiler:
    """Compiles expressions to closures, and collects faults and the paths that the rule reads."""

    def __init__(self, depth: int) -> None:
        self.faults: list[RuleFault] = []
        self.paths: set[str] = set()
        self.computed = False
        self._depth = depth

    def fault(self, path: Path, message: str) -> Evaluate:
        fault = RuleFault(path, message)
        self.faults.append(fault)
        return fault.refuse

    def expression(self, source: object, path: Path, depth: int, *, at_root: bool) -> Evaluate:
        """Return the closure of an expression: an operator with its arguments, a list of expressions, or a constant."""
        match source:
            case dict() | list() if depth > self._depth:
                return self.fault(path, f"nested more than {self._depth} deep")
            case dict():
                return self._compile_operation(source, path, depth, at_root=at_root)
            case list():
                parts = [
                    self.expression(item, (*path, i), depth + 1, at_root=at_root)
                    for i, item in enumerate(source)
                ]
                return lambda evaluation, scope: [part(evaluation, scope) for part in parts]
        return lambda evaluation, scope: source

    def _compile_operation(
        self, source: Json, path: Path, depth: int, *, at_root: bool
    ) -> Evaluate:
        """Return the closure of an operator with its arguments."""
        if len(source) != 1:
            return self.fault(path, "expected one operator in each object")
        name, arguments = next(iter(source.items()))
        operator = OPERATORS.get(name)
        if operator is None:
            return self.fault((*path, name), f"no operator `{name}`")
        listed = isinstance(arguments, list)
        given = arguments if listed else [arguments]
        if not operator.minimum <= len(given) <= (operator.maximum or len(given)):
            return self.fault((*path, name), f"`{name}` takes {operator.takes}, found {len(given)}")
        call = OperatorCall(self, given, (*path, name), depth, listed, at_root)
        return _guard_operator(operator.build(call), call.path)

    def build_truth_test(self, source: object) -> Callable[[object], bool]:
        """Return the function that converts the value of an expression to a boolean.

        A list is true if it has items, but only if the rule writes it out or an operator produces it.
        """
        match source:
            case list():
                return bool
            case dict() if next(iter(source), None) in MAKES_LIST:
                return bool
        return require_boolean


def _guard_operator(run: Evaluate, path: Path) -> Evaluate:
    """Return a closure that spends one operation, and adds the operator's path to an error that has no path."""

    def limited(evaluation: Evaluation, scope: object) -> object:
        try:
            evaluation.left -= 1
            if evaluation.left < 0:
                evaluation.spend(
                    0
                )  # raises: the call for each operator would cost as much as an operator
            return run(evaluation, scope)
        except EvaluationError as broken:
            broken.path = path if broken.path is None else broken.path
            raise

    return limited
