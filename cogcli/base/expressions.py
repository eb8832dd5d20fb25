"""The expression language (docs/reference/execution.md#expressions): a subset of Python's syntax
with its own parser, which never uses eval.

1. The language consists of what `_COMPILE` lists. All other syntax is refused when the expression
is read.

2. Values are compared without coercion: `1 == 1.0`, but `true` is not 1 and `"10"` is not 10.

3. A path that leads nowhere is an error. It is treated as null as an operand of `is null`, `is not
null`, `== null` and `!= null`, and as an operand of `or` that is not the last.

4. A call names a function of `expression_functions.FUNCTIONS`. An error names the part that failed.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Final

from cogcli.base.errors import ExpressionError
from cogcli.base.expression_functions import FUNCTIONS, contains
from cogcli.base.expression_hints import (
    foreign_function,
    foreign_operator,
    hint_for,
    similar_functions,
)
from cogcli.base.jsonvalue import NotJson, equal, kind_of, to_plain_json
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import suggestion_hint
from cogcli.base.python_syntax import parse_python
from cogcli.base.refs import MAX_SEGMENTS, MISSING, READABLE, Reference

MAX_LENGTH: Final = 2000
MAX_DEPTH: Final = 50
Lookup = Callable[[Reference], object]
"""A function that returns the value of a reference, or MISSING."""
Evaluate = Callable[[Lookup], object]


_Compute = Callable[..., object]
"""A function of values of an expression."""


class ExpressionFault(ValueError):
    """A string is not an expression of the language.

    `column` is 1-based in the text. `name` is set if a word is not a path. `hint` suggests a
    replacement, if one is known.
    """

    def __init__(self, message: str, column: int = 1, name: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.column = column
        self.name = name
        self.hint = hint


class ReferenceMention(NamedTuple):
    """A reference with its 0-based place in the text. `lenient`: a missing value is treated as
    null.
    """

    reference: Reference
    offset: int
    lenient: bool


class Expression(NamedTuple):
    """A compiled expression: its evaluator, and its references in order without duplicates."""

    text: str
    evaluate: Evaluate
    references: tuple[Reference, ...]
    path: Reference | None
    """The reference, if the whole expression is one."""
    mentions: tuple[ReferenceMention, ...]
    """Every place of a reference in the text."""


def evaluate(expression: Expression, lookup: Lookup, *, missing_is_null: bool = False) -> Any:
    """Return the value of an expression. Raise ExpressionError `expr.missing`, `expr.type` or
    `expr.limit`."""
    if missing_is_null and expression.path is not None:
        value = lookup(expression.path)
        return None if value is MISSING else value
    return expression.evaluate(lookup)


@lru_cache(maxsize=1024)
def read_expression(text: str, loop_names: frozenset[str] = frozenset()) -> Expression:
    """Parse and compile the text of an expression. Raise ExpressionFault."""
    if len(text) > MAX_LENGTH:
        raise ExpressionFault(f"longer than {MAX_LENGTH} characters")
    source = _SourceText(text)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree: ast.expr = parse_python(source.python, "eval").body
    except SyntaxError as error:
        offset, sign, hint = foreign_operator(text)
        if sign:
            raise ExpressionFault(
                f"`{sign}` is not in the language", offset + 1, hint=hint
            ) from None
        column = source.offset(error.lineno or 1, (error.offset or 1) - 1) + 1
        raise ExpressionFault(f"not an expression: {error.msg}", column) from None
    except (ValueError, MemoryError, RecursionError):
        raise ExpressionFault("not an expression") from None
    reader = _ExpressionParser(loop_names, source)
    evaluate = reader.build_evaluator(tree, 1)
    path = reader.path(tree) if isinstance(tree, _PATHS) else None
    references = dict.fromkeys(mention.reference for mention in reader.mentions)
    return Expression(text, evaluate, tuple(references), path, tuple(reader.mentions))


_TOKEN: Final = re.compile(
    r"""(?P<text>\"{3}(?:\\.|[^\\])*?\"{3}|'{3}(?:\\.|[^\\])*?'{3}|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')"""
    r"""|(?P<number>\d[\w.]*)|(?P<word>[A-Za-z_]\w*)|(?P<index>\.(?P<digits>\d+)(?![\w]))|(?P<space>\s+)"""
    r"""|(?P<other>.)""",
    re.DOTALL,
)


_POSITION: Final = re.compile(r"\.\d")
"""Characters without which a text needs no conversion. This search takes a hundredth of the time of tokenizing."""
_OPERATORS: Final = frozenset(("and", "or", "not", "in", "is"))
"""Words that a number may follow, as in `x or .5`."""


class _SourceText:
    """A string, and the Python source that is parsed for it: `a.0` becomes `a[0]`."""

    def __init__(self, text: str) -> None:
        # To Python a carriage return ends a line, which would make columns differ.
        stripped = text.replace("\r", " ").strip()
        self._indent = len(text) - len(text.lstrip()) if stripped else 0
        self._length = len(stripped)
        self._added: list[int] = []
        self.python = (
            "".join(self._convert_pieces(stripped)) if _POSITION.search(stripped) else stripped
        )
        self._is_plain = not self._added and "\n" not in stripped and stripped.isascii()

    def _convert_pieces(self, text: str) -> Iterator[str]:
        after_path, length = False, 0
        for token in _TOKEN.finditer(text):
            kind, piece = token.lastgroup, token[0]
            if token["digits"] is not None and after_path:
                piece = f"[{token['digits']}]"
                self._added.append(length + len(piece) - 1)
            else:
                path = (kind == "word" and piece not in _OPERATORS) or piece == "]"
                after_path = path or (kind == "space" and after_path)
            length += len(piece)
            yield piece

    def offset(self, line: int, column: int) -> int:
        """Return the offset in the text of a 1-based line and 0-based column of the Python source."""
        lines = self.python.split("\n")
        place = sum(len(before) + 1 for before in lines[: line - 1]) + max(column, 0)
        place -= sum(added < place for added in self._added)
        return self._indent + min(place, max(self._length - 1, 0))

    def start(self, node: ast.expr) -> int:
        """Return the offset in the text where a node starts. Python counts columns in bytes."""
        if self._is_plain:
            return self._indent + min(node.col_offset, max(self._length - 1, 0))
        line = self.python.split("\n")[node.lineno - 1]
        return self.offset(
            node.lineno, len(line.encode()[: node.col_offset].decode(errors="ignore"))
        )


_PATHS: Final = (ast.Attribute, ast.Subscript, ast.Name)
_NAMES: Final = {"true": True, "false": False, "null": None, "none": None}


class _ExpressionParser:
    """Compiles the syntax tree of an expression to closures, and collects its references."""

    def __init__(self, loop_names: frozenset[str], source: _SourceText) -> None:
        self._loop_names = loop_names
        self._source = source
        self.mentions: list[ReferenceMention] = []

    def fault(
        self, message: str, node: ast.expr, *, name: str = "", hint: str = ""
    ) -> ExpressionFault:
        """Return a fault at a node."""
        return ExpressionFault(message, self._source.start(node) + 1, name, hint)

    def placed(self, node: ast.expr, compute: _Compute) -> _Compute:
        """Return `compute` with errors that name their part of the expression."""

        def placed(*values: object) -> object:
            try:
                return compute(*values)
            except ExpressionError as error:
                start = self._source.start(node) + 1
                error.message = f"`{_short_source(node, 60)}` at character {start}: {error.message}"
                raise

        return placed

    def mention(self, reference: Reference, node: ast.expr, *, lenient: bool = False) -> None:
        """Record a reference and its place."""
        self.mentions.append(ReferenceMention(reference, self._source.start(node), lenient))

    def build_evaluator(self, node: ast.expr, depth: int) -> Evaluate:
        """Return the evaluator of a node. Raise ExpressionFault."""
        if depth > MAX_DEPTH:
            raise ExpressionFault(f"nested deeper than {MAX_DEPTH}")
        compile_node = _COMPILE.get(type(node))
        if compile_node is None:
            raise self.fault(
                f"`{_short_source(node)}` is not in the language", node, hint=hint_for(node)
            )
        return compile_node(self, node, depth)

    def constant(self, node: ast.Constant, depth: int) -> Evaluate:
        value = node.value
        try:
            if isinstance(value, int | float | str | None):
                to_plain_json(value)
                return lambda lookup: value
        except NotJson:
            pass
        raise self.fault(f"`{_short_source(node)}` is not a value of the language", node)

    def build_list(self, node: ast.List, depth: int) -> Evaluate:
        items = [self.build_evaluator(item, depth + 1) for item in node.elts]
        return lambda lookup: [item(lookup) for item in items]

    def unary(self, node: ast.UnaryOp, depth: int) -> Evaluate:
        operand = self.build_evaluator(node.operand, depth + 1)
        match node:
            case ast.UnaryOp(op=ast.Not()):
                return lambda lookup: not operand(lookup)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
                if not isinstance(number, bool):
                    return lambda lookup: -number
        raise self.fault(f"`{_short_source(node)}` is not in the language", node)

    def boolean(self, node: ast.BoolOp, depth: int) -> Evaluate:
        if isinstance(node.op, ast.And):
            terms = [self.build_evaluator(value, depth + 1) for value in node.values]
            return lambda lookup: _first_or_last(terms, lookup, truth=False)
        *first, last = node.values
        lenient = [self.lenient(value, depth + 1) for value in first]
        terms = [*lenient, self.build_evaluator(last, depth + 1)]
        return lambda lookup: _first_or_last(terms, lookup, truth=True)

    def lenient(self, node: ast.expr, depth: int) -> Evaluate:
        """Return the evaluator of a node that treats a missing value as null."""
        reference = self.path(node) if isinstance(node, _PATHS) else None
        if reference is None:
            return self.build_evaluator(node, depth)
        self.mention(reference, node, lenient=True)
        return lambda lookup: None if (value := lookup(reference)) is MISSING else value

    def comparison(self, node: ast.Compare, depth: int) -> Evaluate:
        operands = [node.left, *node.comparators]
        pairs = zip(operands, node.ops, operands[1:], strict=False)
        links = [
            self.link(node, left, operator, right, depth + 1) for left, operator, right in pairs
        ]
        return lambda lookup: all(link(lookup) for link in links)

    def link(
        self, chain: ast.Compare, left: ast.expr, operator: ast.cmpop, right: ast.expr, depth: int
    ) -> Evaluate:
        """Return the evaluator of one comparison in a chain."""
        if isinstance(operator, ast.Is | ast.IsNot):
            if not _is_null(right):
                is_test = _short_source(right) in ("defined", "set", "present")
                hint = "write `is not null`" if is_test else "write `==`"
                raise self.fault("only `null` may stand behind `is`", right, hint=hint)
            value, negated = self.lenient(left, depth), isinstance(operator, ast.IsNot)
            return lambda lookup: (value(lookup) is None) is not negated
        null = _is_null(left) or _is_null(right)
        build_operand = (
            self.lenient
            if null and isinstance(operator, ast.Eq | ast.NotEq)
            else self.build_evaluator
        )
        a, b = build_operand(left, depth), build_operand(right, depth)
        compare = self.placed(chain, _COMPARE[type(operator)])
        return lambda lookup: compare(a(lookup), b(lookup))

    def call(self, node: ast.Call, depth: int) -> Evaluate:
        if not isinstance(node.func, ast.Name):
            raise self.fault(
                f"`{_short_source(node)}` is not in the language", node, hint=_method_hint(node)
            )
        name = node.func.id
        function = FUNCTIONS.get(name)
        if function is None:
            known = foreign_function(name, [_short_source(argument) for argument in node.args])
            hint = (
                known
                or suggestion_hint(similar_functions(name))
                or f"there are {', '.join(FUNCTIONS)}"
            )
            raise self.fault(f"there is no function `{name}`", node, hint=hint)
        if node.keywords or not function.minimum <= len(node.args) <= function.maximum:
            raise self.fault(
                f"`{_short_source(node)}`: other arguments", node, hint=f"write {function.usage}"
            )
        arguments = [self.build_evaluator(argument, depth + 1) for argument in node.args]
        compute = self.placed(node, function.call)
        return lambda lookup: compute(*[argument(lookup) for argument in arguments])

    def reference(self, node: ast.expr, depth: int) -> Evaluate:
        if isinstance(node, ast.Name) and node.id in _NAMES and node.id not in self._loop_names:
            value = _NAMES[node.id]
            return lambda lookup: value
        reference = self.path(node)
        if reference is None:
            text = _short_source(node, 60)
            hint = "positions are whole numbers from 0" if isinstance(node, ast.Subscript) else ""
            raise self.fault(f"`{text}` is not a path", node, name=text, hint=hint)
        self.mention(reference, node)

        def look_up(lookup: Lookup) -> object:
            if (value := lookup(reference)) is MISSING:
                hint = "compare with `is null` first"
                raise ExpressionError(
                    "expr.missing", f"`{reference.text}` leads nowhere", hint=hint
                )
            return value

        return look_up

    def path(self, node: ast.expr) -> Reference | None:
        """Return the reference that names, attributes and constant subscripts form, or None."""
        segments: list[str] = []
        while not isinstance(node, ast.Name):
            match node:
                case ast.Attribute(attr=key):
                    segments.append(key)
                case ast.Subscript(slice=ast.Constant(value=str(key))):
                    segments.append(key)
                case ast.Subscript(slice=ast.Constant(value=int(index))) if _is_index(index):
                    segments.append(str(index))
                case _:
                    return None
            node = node.value
        segments.reverse()
        known = (node.id in READABLE and segments) or node.id in self._loop_names
        if not known or len(segments) > MAX_SEGMENTS:
            return None
        return Reference(".".join([node.id, *segments]), node.id, tuple(segments))


def _is_index(value: int) -> bool:
    return value >= 0 and not isinstance(value, bool)


def _short_source(node: ast.expr, limit: int = 40) -> str:
    """Return an expression as one short line of text."""
    try:
        text = ast.unparse(node)
    except (RecursionError, ValueError):
        return "…"
    return text.encode("utf-8", "backslashreplace").decode()[:limit]


def _method_hint(node: ast.Call) -> str:
    """Return the hint for a method call: the function with the same meaning, applied to the same
    value.
    """
    if not isinstance(node.func, ast.Attribute):
        return ""
    arguments = [_short_source(each) for each in (node.func.value, *node.args)]
    if known := foreign_function(node.func.attr, arguments):
        return known
    meant = similar_functions(node.func.attr)
    return f"write {meant[0]}({', '.join(arguments)})" if meant else ""


def _is_null(node: ast.expr) -> bool:
    match node:
        case ast.Name(id=name):
            return name in ("null", "none")
        case ast.Constant(value=None):
            return True
        case _:
            return False


def _first_or_last(terms: list[Evaluate], lookup: Lookup, *, truth: bool) -> object:
    """Return the first value with this truth, else the last value. Later terms are not evaluated."""
    value: object = None
    for term in terms:
        value = term(lookup)
        if bool(value) is truth:
            break
    return value


_Compare = Callable[[Any, Any], bool]


def _make_ordering(symbol: str, compare: _Compare) -> _Compare:
    def ordered(a: object, b: object) -> bool:
        if kind_of(a) == kind_of(b) and kind_of(a) in ("number", "text"):
            return compare(a, b)
        raise ExpressionError(
            "expr.type",
            f"`{symbol}` compares two numbers or two texts, found {kind_of(a)} and {kind_of(b)}",
        )

    return ordered


_COMPARE: Final[dict[type[ast.cmpop], _Compare]] = {
    ast.Eq: equal,
    ast.NotEq: lambda a, b: not equal(a, b),
    ast.Lt: _make_ordering("<", lambda a, b: bool(a < b)),
    ast.LtE: _make_ordering("<=", lambda a, b: bool(a <= b)),
    ast.Gt: _make_ordering(">", lambda a, b: bool(a > b)),
    ast.GtE: _make_ordering(">=", lambda a, b: bool(a >= b)),
    ast.In: lambda a, b: contains(b, a),
    ast.NotIn: lambda a, b: not contains(b, a),
}

_COMPILE: Final[dict[type[ast.expr], Callable[[_ExpressionParser, Any, int], Evaluate]]] = {
    ast.Constant: _ExpressionParser.constant,
    ast.List: _ExpressionParser.build_list,
    ast.UnaryOp: _ExpressionParser.unary,
    ast.BoolOp: _ExpressionParser.boolean,
    ast.Call: _ExpressionParser.call,
    ast.Compare: _ExpressionParser.comparison,
    ast.Name: _ExpressionParser.reference,
    ast.Attribute: _ExpressionParser.reference,
    ast.Subscript: _ExpressionParser.reference,
}
