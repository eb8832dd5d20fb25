"""Finds text that looks like a reference but is not one: `${inputs.x}`, `{{ x }}`, `$inputs.x`, `inputs.x

upper`.

The rules are in docs/reference/skill.md#plausible-syntax.

1. A placeholder anywhere in a text: `${...}` or `{{...}}` whose content begins with a name; `$` or one brace before a
   path in a namespace or a loop name; a tag `{% ... %}` or `<% ... %>` that contains such a path.
2. A whole text that is an expression with such a path, in Python's syntax or with `||`, `&&`, `!`, `?` or `|`; such a
   path after `$.`, `$$`, `@` or `=`, or in angle brackets; a path of other tools, such as `steps.fetch.outputs.total`.

Prose, prices, shell variables, regular expressions, JSON and Markdown are plain text.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Final

import orjson

from cogcli.base.lazy_pattern import lazy_pattern
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.python_syntax import parse_python
from cogcli.base.refs import READABLE

_LONGEST: Final = 2000
"""A longer text is not parsed as an expression."""
_SHOWN: Final = 72


class ReferenceLookalike(NamedTuple):
    """A part of a string that looks like a reference: its offset, its text, and the path in it as it is written.

    `fills` is true for a placeholder, and false if the whole text is an expression. `rest` is the text after the path
    in a placeholder.
    """

    offset: int
    found: str
    path: str
    fills: bool = True
    rest: str = ""

    @property
    def fallback(self) -> str:
        """`:-text` for a placeholder with a default text, otherwise an empty string."""
        match = _DEFAULT.match(self.rest)
        return f":-{match[1] if match[1] is not None else match[3]}" if match else ""


_DEFAULT: Final = lazy_pattern(r"""\s*(?::-(.*)|\|\s*default\(\s*(["'])([^"'}]*)\2.*)""", re.DOTALL)


class _Patterns(NamedTuple):
    """The regular expressions of the rules, for the namespaces and for the loop names of one step."""

    anywhere: re.Pattern[str]
    spaced: re.Pattern[str]
    operated: re.Pattern[str]
    marked: re.Pattern[str]
    heads: frozenset[str]


@lru_cache(maxsize=256)
def _compile_patterns(loops: frozenset[str]) -> _Patterns:
    heads = "|".join(map(re.escape, (*READABLE, *sorted(loops))))
    name, loop = r"(?>[A-Za-z_][\w-]*(?:\.[\w-]+)*)", "|".join(map(re.escape, sorted(loops)))
    path = rf"(?>(?:{heads})(?:\.[\w-]+|\[[^\]\n]{{1,80}}\])+)"
    marked = rf"{path}|(?:{loop})\b" if loop else path
    return _Patterns(
        re.compile(
            rf"\$?\{{\{{[-~]?\s*+(?P<double>{name})(?P<rest2>[^{{}}\n]{{0,200}})\}}\}}"
            rf"|\$\{{\s*+(?P<dollar>{name})(?P<rest1>[^{{}}\n]{{0,200}})\}}?"
            rf"|(?<![\w$])\$(?P<bare>{marked})"
            rf"|\{{\s*+(?P<single>{path})(?P<rest3>[^{{}}\n]{{0,80}})\}}"
            rf"|[{{<]%[^%\n]{{0,200}}?\b(?P<tag>{path})[^%\n]{{0,200}}%[}}>]"
        ),
        re.compile(rf"\b(?:{heads})\s*[.\[]"),
        re.compile(
            rf"(?:!\s*)?\(?\s*(?P<path>{path})\s*(?:\|\|?|&&|\?\??)\s*\S|!\s*(?P<not>{path})"
        ),
        re.compile(
            rf"(?:[$@=]\.?|\$\$|<)\s*(?P<path>{path})\s*>?|(?P<step>steps\.[\w-]+\.outputs?\.[\w.-]+)"
        ),
        frozenset((*READABLE, *loops)),
    )


def placeholders(
    text: str, loops: frozenset[str], *, known_only: bool = False
) -> Iterator[ReferenceLookalike]:
    """Yield the placeholders of rule 1. With `known_only`, only those with a path in a namespace or
    a loop name.
    """
    if not ("{" in text or "$" in text or "<%" in text):
        return
    patterns = _compile_patterns(loops)
    for match in patterns.anywhere.finditer(text):
        path = next(filter(None, map(match.group, ("double", "dollar", "bare", "single", "tag"))))
        if not known_only or path.partition(".")[0] in patterns.heads:
            rest = match["rest2"] or match["rest1"] or match["rest3"] or ""
            yield ReferenceLookalike(
                match.start(), match[0], path, fills=match["tag"] is None, rest=rest
            )


def find_plausible(
    text: str, loops: frozenset[str], *, known_only: bool = False
) -> ReferenceLookalike | None:
    """Return the first part of a string that looks like a reference, or None for plain text.

    `known_only` is as in `placeholders`.
    """
    found = next(placeholders(text, loops, known_only=known_only), None)
    if found or len(text) > _LONGEST:
        return found
    patterns, whole = _compile_patterns(loops), text.strip()
    if marked := patterns.marked.fullmatch(whole):
        return ReferenceLookalike(text.index(whole), whole, marked["path"] or marked["step"])
    if not patterns.spaced.search(text):
        return None
    operated = patterns.operated.match(whole)
    if not operated and _is_prose(whole):
        return None
    path = (
        (operated["path"] or operated["not"])
        if operated
        else _find_path_in_expression(whole, patterns.heads)
    )
    return ReferenceLookalike(text.index(whole), whole, path, fills=False) if path else None


_WORDS: Final = r"(?:and|or|not|in|is|if|else|for|lambda|await)\b"
_TWO_WORDS: Final = lazy_pattern(rf"(?<![\w.])(?!{_WORDS})[\w.]++\s+(?!{_WORDS})\w")


def _is_prose(text: str) -> bool:
    """Return whether two adjacent words of a string have no operator between them, so that the string is not an
    expression.
    """
    return not ("'" in text or '"' in text) and _TWO_WORDS.search(text) is not None


def _find_path_in_expression(text: str, heads: frozenset[str]) -> str:
    """Return the first path in a string that is a Python expression. Empty if it has none, or is not an expression."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            nodes = list(ast.walk(parse_python(text, "eval").body))
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return ""
    methods = [node.func for node in nodes if isinstance(node, ast.Call)]
    paths = (
        _join_dotted_path(node, heads)
        for node in nodes
        if isinstance(node, _PATHS) and node not in methods
    )
    return next(filter(None, paths), "")


_PATHS: Final = (ast.Attribute, ast.Subscript)


def _join_dotted_path(node: ast.expr, heads: frozenset[str]) -> str:
    segments: list[str] = []
    while True:
        match node:
            case ast.Attribute(attr=name, value=inner):
                segments.append(name)
            case ast.Subscript(slice=ast.Constant(value=str() | int() as key), value=inner):
                segments.append(str(key))
            case ast.Subscript(value=inner):
                segments.clear()  # only the part before can be a path
            case ast.Name(id=head) if head in heads and segments:
                return ".".join([head, *reversed(segments)])
            case _:
                return ""
        node = inner


def suggest_correct_form(
    text: str, lookalike: ReferenceLookalike, loops: frozenset[str], guess: Callable[[str], str]
) -> str:
    """Return the correct text to write instead. `guess` returns the reference for a path in its written form."""
    if not lookalike.fills or (lookalike.found == text.strip() and not lookalike.fallback):
        return guess(lookalike.path)
    parts, end, before = [], 0, 0
    for each in placeholders(text, loops):
        parts.append(text[end : each.offset])
        if not end:
            before = sum(map(len, parts))
        parts.append(f"${{{guess(each.path)}{each.fallback}}}")
        end = each.offset + len(each.found)
    parts.append(text[end:])
    return f"{{$text: {_quote_excerpt(''.join(parts), before)}}}"


def _quote_excerpt(text: str, offset: int) -> str:
    """Return a string in double quotes that YAML can read. A long string is truncated around `offset`."""
    if len(text) > _SHOWN:
        start = max(0, min(offset - 16, len(text) - _SHOWN))
        end = min(len(text), start + _SHOWN)
        text = f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"
    return orjson.dumps(text).decode()
