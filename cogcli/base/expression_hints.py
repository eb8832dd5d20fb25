"""Hints for syntax of other languages that expressions do not support."""

from __future__ import annotations

import ast
import re
from typing import Final

from cogcli.base.expression_functions import FUNCTIONS
from cogcli.base.problems import did_you_mean

_TEXT: Final = r"""(?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')"""
_PATH: Final = r"[A-Za-z_][\w.-]*"
_CHOICE: Final = "a choice: `C and A or B`, where A counts as true, or a `router` on the step"
_PATTERN: Final = "contains(text, part) or startswith(text, part); patterns are not matched"
_QUOTES: Final = "text stands in ' or \""
_INFIX: Final = {
    "contains": "contains(a, b)", "includes": "contains(a, b)", "has": "contains(a, b)",
    "startswith": "startswith(a, b)",
    "matches": _PATTERN, "like": _PATTERN, "between": "`low <= x <= high`", "if": _CHOICE, "then": _CHOICE,
    "eq": "`==`", "ne": "`!=`", "neq": "`!=`", "gt": "`>`", "ge": "`>=`", "gte": "`>=`",
    "lt": "`<`", "le": "`<=`", "lte": "`<=`",
}  # fmt: skip
"""Infix words of other languages, and their replacements."""
_FOREIGN: Final = re.compile(
    rf"""{_TEXT}|(?P<braces>\$\{{+|\{{\{{|\$\.?(?={_PATH}\.))|(?P<symbol>&&|\|\||===|!==|=~|!~|=>|\?\?|\?\.|<>|[!=<>]=|[!=?;`“”‘’])"""
    rf"""|\b(?P<word>AND|OR|NOT|IN|IS)\b|(?<![\w.'"])(?P<infix>{"|".join(_INFIX)})\b(?!\s*\()"""
)
_INSTEAD: Final = {
    "&&": "`and`", "||": "`or`", "!": "`not`", "=": "`==`", "===": "`==`", "!==": "`!=`", "<>": "`!=`", "??": "`or`",
    "=~": _PATTERN, "!~": _PATTERN, "?.": "`.`, and `is null` where it may lead nowhere",
    "=>": "contains(list, value), or go over the list with `foreach` on a step",
}  # fmt: skip
_SYMBOLS: Final = {
    **{sign: (sign, f"write {instead}") for sign, instead in _INSTEAD.items()},
    **{sign: (sign, _QUOTES) for sign in "`“”‘’"},
    ";": (";", "one expression stands alone"),
    "?": ("?:", f"write {_CHOICE}"),
}
"""Symbols of other languages, with their names in messages and their replacements."""
_BRACES: Final = re.compile(rf"\$?\.?\{{*\s*({_PATH})")

_OTHER_NAMES: Final = {
    "length": "len", "size": "len", "count": "len", "tolower": "lower", "lowercase": "lower", "downcase": "lower",
    "toupper": "upper", "uppercase": "upper", "upcase": "upper", "includes": "contains", "has": "contains",
    "beginswith": "startswith", "concat": "join", "minimum": "min", "maximum": "max",
    "some": "any", "every": "all", "total": "sum", "add": "sum", "sort": "sorted", "datetime": "date", "time": "date",
    "timestamp": "date", "parsedate": "date", "before": "date", "after": "date",
}  # fmt: skip


_NO_VALUES: Final = {
    "nil": "null", "undefined": "null", "nan": "null", "yes": "true", "on": "true", "no": "false", "off": "false",
}  # fmt: skip
_IS_THERE: Final = ("exists", "defined", "isdefined", "isset", "isnotnull", "notnull", "present")
_IS_EMPTY: Final = ("isempty", "empty", "isblank", "blank")
_IS_NULL: Final = ("isnull", "missing", "ismissing")
_OF_PATTERNS: Final = (
    "match",
    "matches",
    "ismatch",
    "regex",
    "regexp",
    "test",
    "like",
    "search",
    "fullmatch",
)
_NO_CLOCK: Final = ("now", "today", "utcnow", "currentdate", "currenttime")


def foreign_value(name: str) -> str:
    """Return the replacement for a value name of another language; empty for any other name."""
    if name.lower() in _NO_CLOCK:
        return "give the time as an input: an expression reads no clock"
    instead = _NO_VALUES.get(name.lower(), "")
    return f"write {instead}" if instead else ""


def foreign_function(name: str, arguments: list[str]) -> str:
    """Return the replacement for a call of an unknown function; empty if there is no advice."""
    folded, first = name.lower().replace("_", ""), arguments[0] if arguments else "x"
    forms = {
        _IS_THERE: f"write {first} is not null", _IS_NULL: f"write {first} is null",
        _IS_EMPTY: f"write len({first}) == 0", _OF_PATTERNS: f"write {_PATTERN}",
        ("endswith", "hassuffix"): "ends are not compared: let a capability do it",
        ("coalesce", "ifnull", "default", "nvl"): f"write {' or '.join(arguments[:2]) or 'a or b'}",
        ("not",): f"write not {first}", ("if", "iif", "cond"): f"write {_CHOICE}",
        ("exp", "abs", "floor", "ceil", "sqrt", "mod", "pow"): _ARITHMETIC,
    }  # fmt: skip
    found = next((form for names, form in forms.items() if folded in names), "")
    return found or foreign_value(folded)


_ARITHMETIC: Final = "arithmetic belongs into a capability"


def foreign_operator(text: str) -> tuple[int, str, str]:
    """Return the first operator of another language in a string: offset, operator, and its
    replacement.

    The operator is empty if the text has none.
    """
    for found in _FOREIGN.finditer(text):
        kind = found.lastgroup or "text"
        sign = found[kind]
        if kind == "braces":
            alone = _BRACES.match(text, found.start())
            path = alone[1] if alone else "inputs.NAME"
            return found.start(), sign, f"a path stands alone: {path}"
        if kind == "word":
            return found.start(), sign, f"write `{sign.lower()}`"
        if kind == "infix":
            return found.start(), sign, f"write {_INFIX[sign]}"
        if kind == "symbol" and sign in _SYMBOLS:
            name, hint = _SYMBOLS[sign]
            return found.start(), name, hint
    return 0, "", ""


def similar_functions(name: str) -> list[str]:
    """Return the functions that resemble a misspelled name, likeliest first."""
    folded = name.lower().replace("_", "")
    known = _OTHER_NAMES.get(folded, folded)
    return [known] if known in FUNCTIONS else did_you_mean(folded, FUNCTIONS)


def hint_for(node: ast.expr) -> str:
    """Return the replacement for Python syntax outside the language; empty if there is no advice."""
    match node:
        case ast.Set():
            return f"a path stands alone: {_source_text(_strip_braces(node))}"
        case ast.BinOp():
            return _operator_hint(node)
        case _:
            return _HINTS.get(type(node), "")


_LOOP: Final = "go over a list with `foreach` on a step"
_HINTS: Final[dict[type[ast.expr], str]] = {
    ast.IfExp: f"write {_CHOICE}",
    ast.JoinedStr: "write join([a, b])",
    ast.ListComp: _LOOP,
    ast.GeneratorExp: _LOOP,
    ast.SetComp: _LOOP,
    ast.DictComp: _LOOP,
    ast.Lambda: _LOOP,
    ast.Dict: "read values by their paths: an expression makes no object",
}


def _strip_braces(node: ast.expr) -> ast.expr:
    """Return the expression inside nested braces."""
    while isinstance(node, ast.Set) and len(node.elts) == 1:
        node = node.elts[0]
    return node


def _operator_hint(node: ast.BinOp) -> str:
    match node.op:
        case ast.BitOr() if isinstance(node.right, ast.Name | ast.Call):
            return _filter_hint(_source_text(node.left), node.right)
        case ast.BitOr():
            return "write `or`"
        case ast.BitAnd():
            return "write `and`"
        case ast.Add():
            return "write sum([a, b]) for numbers, join([a, b]) for texts"
        case _:
            return _ARITHMETIC


def _filter_hint(value: str, filtered: ast.Name | ast.Call) -> str:
    """Return the replacement for `value | filtered`."""
    match filtered:
        case ast.Call(func=ast.Name(id="default"), args=[default, *_]):
            return f"write {value} or {_source_text(default)}"
        case ast.Call(func=ast.Name(id=name)) | ast.Name(id=name):
            meant = similar_functions(name)
        case _:
            meant = []
    return f"write {meant[0]}({value})" if meant else "nothing is filtered by `|`"


def _source_text(node: ast.expr) -> str:
    return ast.unparse(node)[:60]
