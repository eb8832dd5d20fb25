"""One evaluation of a JsonLogic rule: the facts, what is read of them, and values without coercion. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol

from cogcli.base.jsonvalue import MAX_INTEGER, equal, kind_of
from cogcli.base.refs import MISSING

MAX_OPERATIONS: Final = 10_000
MAX_BYTES: Final = 16 * 1024

Path = tuple[str | int, ...]


class Evaluation:
    """One evaluation of a rule: the facts, what was read of them, and the operations that are left."""

    __slots__ = ("data", "last", "left", "reads")

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data
        self.reads: dict[str, Any] = {}
        self.left = MAX_OPERATIONS
        self.last = ""
        """The path of the fact that was read last."""

    def spend(self, operations: int) -> None:
        """Count operations. Raises Broken `limit` once there were too many."""
        self.left -= operations
        if self.left < 0:
            raise Broken("limit", f"more than {MAX_OPERATIONS} operations")

    def look_up(self, scope: Any, path: str, segments: list[str]) -> Any:
        """The value at a dotted path, MISSING where there is none or null; noted if it is one of the facts."""
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
    """The segments of a dotted path; none of the empty one, which is all that is in scope."""
    return path.split(".") if path else []


Evaluate = Callable[[Evaluation, Any], Any]


class Broken(Exception):
    """Ends an evaluation; the operator that it happened in adds its place."""

    def __init__(self, code: str, message: str, name: str = "", path: Path | None = None) -> None:
        self.code, self.message, self.name, self.path = code, message, name, path


class Compiler(Protocol):
    """What an operator asks of the compiler of its rule."""

    paths: set[str]
    """What `var` and `missing` name outside of loops."""
    computed: bool
    """Whether `missing` takes names that are worked out."""

    def expression(self, source: Any, path: Path, depth: int, *, at_root: bool) -> Evaluate: ...

    def truth_of(self, source: Any) -> Callable[[Any], bool]: ...

    def fault(self, path: Path, message: str) -> Evaluate: ...


class OperatorCall(NamedTuple):
    """An operator with its arguments, while it is compiled."""

    compiler: Compiler
    arguments: list[Any]
    path: Path
    depth: int
    """How many expressions it is inside of, itself among them."""
    listed: bool
    """Whether the arguments are written as a list."""
    at_root: bool
    """Whether paths are those of the facts, not of the item of a loop."""

    def at(self, number: int) -> Path:
        """The place of an argument."""
        return (*self.path, number) if self.listed else self.path

    def argument(self, number: int, *, at_root: bool | None = None) -> Evaluate:
        """The closure of an argument; the body of a loop is not `at_root`."""
        inside = self.at_root if at_root is None else at_root
        return self.compiler.expression(
            self.arguments[number], self.at(number), self.depth + 1, at_root=inside
        )

    def every(self) -> list[Evaluate]:
        """The closures of all arguments."""
        return [self.argument(number) for number in range(len(self.arguments))]

    def condition(self, number: int, *, at_root: bool | None = None) -> Evaluate:
        """The closure of an argument that is asked for its truth."""
        run, truth = self.valued_condition(number, at_root=at_root)
        return lambda evaluation, scope: truth(run(evaluation, scope))

    def valued_condition(
        self, number: int, *, at_root: bool | None = None
    ) -> tuple[Evaluate, Callable[[Any], bool]]:
        """The closure of an argument, and what the truth of its value is."""
        return self.argument(number, at_root=at_root), self.compiler.truth_of(
            self.arguments[number]
        )

    def fault(self, message: str) -> Evaluate:
        """Report that this operator is wrong in itself."""
        return self.compiler.fault(self.path, message)


def describe(value: Any) -> str:
    """The kind of a value with its article, for messages."""
    return f"a {kind_of(value)}" if value is not None else "null"


def boolean_of(value: Any) -> bool:
    """The value, which must be a boolean. Raises Broken `type`, like the functions below."""
    if isinstance(value, bool):
        return value
    raise Broken("type", f"expected true or false, found {describe(value)}")


def number_of(value: Any) -> int | float:
    """The value, which must be a number."""
    if type(value) is int or type(value) is float:
        return value
    raise Broken("type", f"expected a number, found {describe(value)}")


def whole_of(value: Any) -> int:
    """The value, which must be an integer."""
    if type(value) is int:
        return value
    raise Broken("type", f"expected a whole number, found {describe(value)}")


def text_of(value: Any) -> str:
    """The value, which must be text."""
    if isinstance(value, str):
        return value
    raise Broken("type", f"expected text, found {describe(value)}")


def list_of(value: Any) -> list[Any]:
    """The value, which must be a list."""
    if isinstance(value, list):
        return value
    raise Broken("type", f"expected a list, found {describe(value)}")


def in_range(value: int | float) -> int | float:
    """A computed number. Raises Broken `range` where JSON readers would not all read the same one."""
    if not abs(value) <= MAX_INTEGER:  # false of a NaN, too
        raise Broken("range", "the number is out of range")
    return value


def same(a: Any, b: Any) -> bool:
    """Deep equality of two values of one kind. Raises Broken `type` for two kinds."""
    if kind_of(a) != kind_of(b):
        raise Broken("type", f"{describe(a)} is compared with {describe(b)}")
    return equal(a, b)
