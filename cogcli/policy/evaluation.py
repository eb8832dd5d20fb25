"""One evaluation of a JsonLogic rule: the facts, the record of reads, and values without coercion. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol, TypeGuard

from cogcli.base.jsonvalue import MAX_INTEGER, equal, kind_of
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.refs import MISSING
from cogcli.declarations.value_types import Json, Number

MAX_OPERATIONS: Final = 10_000
MAX_BYTES: Final = 16 * 1024

Path = tuple[str | int, ...]


class Evaluation:
    """One evaluation of a rule: the facts, the values read up to now, and the remaining operations."""

    __slots__ = ("data", "last", "left", "reads")

    def __init__(self, data: Json) -> None:
        self.data = data
        self.reads: Json = {}
        self.left = MAX_OPERATIONS
        self.last = ""
        """The path of the last fact that was read."""

    def spend(self, operations: int) -> None:
        """Subtract operations from the number left. Raise EvaluationError `limit` if there are too few."""
        self.left -= operations
        if self.left < 0:
            raise EvaluationError("limit", f"more than {MAX_OPERATIONS} operations")

    def look_up(self, scope: object, path: str, segments: list[str]) -> object:
        """Return the value at a dotted path, or MISSING if it is absent or null.

        Record the read if the path leads to a fact.
        """
        if scope is self.data:
            known = self.reads.get(path, MISSING)
            if known is not MISSING:
                self.last = path
                return MISSING if known is None else known
        value = scope
        for segment in segments:
            if isinstance(value, dict):
                value = value.get(segment)
            elif isinstance(value, list) and segment.isascii() and segment.isdigit():
                value = (
                    value[int(segment)] if len(segment) < 10 and int(segment) < len(value) else None
                )
            else:
                value = None
        if scope is self.data:
            self.reads[path] = value
            self.last = path
        return MISSING if value is None else value


def segments_of(path: str) -> list[str]:
    """Return the segments of a dotted path. The empty path means the whole scope and has no segments."""
    return path.split(".") if path else []


Evaluate = Callable[[Evaluation, object], object]


class EvaluationError(Exception):
    """Ends an evaluation. The operator that fails adds its path in the rule."""

    def __init__(self, code: str, message: str, name: str = "", path: Path | None = None) -> None:
        self.code, self.message, self.name, self.path = code, message, name, path


class Compiler(Protocol):
    """The interface of the rule compiler that operators use."""

    paths: set[str]
    """The paths that `var` and `missing` name outside of loops."""
    computed: bool
    """Whether `missing` accepts computed names."""

    def expression(self, source: object, path: Path, depth: int, *, at_root: bool) -> Evaluate: ...

    def build_truth_test(self, source: object) -> Callable[[object], bool]: ...

    def fault(self, path: Path, message: str) -> Evaluate: ...


class OperatorCall(NamedTuple):
    """An operator and its arguments, while the rule is compiled."""

    compiler: Compiler
    arguments: list[object]
    path: Path
    depth: int
    """The nesting depth of the expression, itself included."""
    listed: bool
    """Whether the arguments are written as a list."""
    at_root: bool
    """Whether paths refer to the facts, not to the item of a loop."""

    def at(self, number: int) -> Path:
        """Return the path of an argument in the rule."""
        return (*self.path, number) if self.listed else self.path

    def argument(self, number: int, *, at_root: bool | None = None) -> Evaluate:
        """Return the closure of an argument.

        `at_root` is False for the body of a loop, whose paths start at the item.
        """
        inside = self.at_root if at_root is None else at_root
        return self.compiler.expression(
            self.arguments[number], self.at(number), self.depth + 1, at_root=inside
        )

    def every(self) -> list[Evaluate]:
        """Return the closures of all arguments."""
        return [self.argument(number) for number in range(len(self.arguments))]

    def condition(self, number: int, *, at_root: bool | None = None) -> Evaluate:
        """Return a closure that evaluates an argument and converts its value to a boolean."""
        run, truth = self.valued_condition(number, at_root=at_root)
        return lambda evaluation, scope: truth(run(evaluation, scope))

    def valued_condition(
        self, number: int, *, at_root: bool | None = None
    ) -> tuple[Evaluate, Callable[[object], bool]]:
        """Return the closure of an argument, and the function that converts its value to a boolean."""
        return self.argument(number, at_root=at_root), self.compiler.build_truth_test(
            self.arguments[number]
        )

    def fault(self, message: str) -> Evaluate:
        """Report a defect of this operator, and return a closure that raises it."""
        return self.compiler.fault(self.path, message)


def describe(value: object) -> str:
    """Return the type of a value with its article, for messages."""
    return f"a {kind_of(value)}" if value is not None else "null"


def require_boolean(value: object) -> bool:
    """Return the value if it is a boolean, otherwise raise EvaluationError `type`, like the functions below."""
    if isinstance(value, bool):
        return value
    raise EvaluationError("type", f"expected true or false, found {describe(value)}")


def is_number(value: object) -> TypeGuard[Number]:
    """Return whether the value is a number. A boolean is not a number."""
    return type(value) is int or type(value) is float


def require_number(value: object) -> Number:
    """Return the value if it is a number."""
    if type(value) is int or type(value) is float:  # as in `is_number`, without another call
        return value
    raise EvaluationError("type", f"expected a number, found {describe(value)}")


def require_integer(value: object) -> int:
    """Return the value if it is an integer."""
    if type(value) is int:
        return value
    raise EvaluationError("type", f"expected a whole number, found {describe(value)}")


def require_text(value: object) -> str:
    """Return the value if it is text."""
    if isinstance(value, str):
        return value
    raise EvaluationError("type", f"expected text, found {describe(value)}")


def require_list(value: object) -> list[object]:
    """Return the value if it is a list."""
    if isinstance(value, list):
        return value
    raise EvaluationError("type", f"expected a list, found {describe(value)}")


def require_safe_number(value: Number) -> Number:
    """Return a computed number. Raise EvaluationError `range` if it is too large for some JSON readers."""
    if not abs(value) <= MAX_INTEGER:  # false for NaN too
        raise EvaluationError("range", "the number is out of range")
    return value


def equal_values(a: object, b: object) -> bool:
    """Return whether two values of the same type are deeply equal. Raise EvaluationError `type` if the types differ."""
    if type(a) is str and type(b) is str:  # most are texts, and this is the hot path of a rule
        return a == b
    if kind_of(a) != kind_of(b):
        raise EvaluationError("type", f"{describe(a)} is compared with {describe(b)}")
    return equal(a, b)
