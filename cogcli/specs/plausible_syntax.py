"""Text that looks like a way to read a value and is none: `${inputs.x}`, `{{ x }}`, `$inputs.x`, `inputs.x | upper`
(docs/reference/skill.md#plausible-syntax).

1. A placeholder anywhere in a text: `${...}` or `{{...}}` whose content begins with a name; `$` or one brace before a
   path in a namespace or a loop name; a tag `{% ... %}` or `<% ... %>` with such a path in it.
2. A whole text that is an expression, in Python's syntax or with `||`, `&&`, `!`, `?` or `|`, and holds such a path;
   such a path behind `$.`, `$$`, `@` or `=`, or in angles; what other tools name so: `steps.fetch.outputs.total`.
Prose, prices, shell variables, regular expressions, JSON and Markdown are text.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

import orjson

from cogcli.base.python_syntax import parse_python
from cogcli.base.refs import READABLE

_LONGEST: Final = 2000
"""Longer texts are no expressions."""
_SHOWN: Final = 72


class Plausible(NamedTuple):
    """A part of a text that looks as if it read a value: where it stands, what it is, and the path in it as written.
    `fills`: it is a placeholder, else the whole text is computed. `rest`: what follows the path in a placeholder."""

    offset: int
    found: str
    path: str
    fills: bool = True
    rest: str = ""

    @property
    def fallback(self) -> str:
        """`:-text` for a placeholder that says what stands there where nothing is given."""
        match = _DEFAULT.match(self.rest)
        return f":-{match[1] if match[1] is not None else match[3]}" if match else ""


_DEFAULT: Final = re.compile(r"""\s*(?::-(.*)|\|\s*default\(\s*(["'])([^"'}]*)\2.*)""", re.DOTALL)


class _Patterns(NamedTuple):
    """What the rules look for, for the namespaces and the loop names of one step."""

    anywhere: re.Pattern[str]
    spaced: re.Pattern[str]
    operated: re.Pattern[str]
    marked: re.Pattern[str]
    heads: frozenset[str]


@lru_cache(maxsize=256)
def _patterns(loops: frozenset[str]) -> _Patterns:
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


def placeholders(text: str, loops: frozenset[str], *, named: bool = False) -> Iterator[Plausible]:
    """The placeholders of rule 1; `named`: only those of a path in a namespace or of a loop name."""
    if not ("{" in text or "$" in text or "<%" in text):
        return
    patterns = _patterns(loops)
    for found in patterns.anywhere.finditer(text):
        path = next(filter(None, map(found.group, ("double", "dollar", "bare", "single", "tag"))))
        if not named or path.partition(".")[0] in patterns.heads:
            rest = found["rest2"] or found["rest1"] or found["rest3"] or ""
            yield Plausible(found.start(), found[0], path, fills=found["tag"] is None, rest=rest)


def find_plausible(text: str, loops: frozenset[str], *, named: bool = False) -> Plausible | None:
    """The first part of a text that looks as if it read a value, None for mere text; `named` as above."""
    found = next(placeholders(text, loops, named=named), None)
    if found or len(text) > _LONGEST:
        return found
    patterns, whole = _patterns(loops), text.strip()
    if marked := patterns.marked.fullmatch(whole):
        return Plausible(text.index(whole), whole, marked["path"] or marked["step"])
    if not patterns.spaced.search(text):
        return None
    operated = patterns.operated.match(whole)
    if not operated and _is_prose(whole):
        return None
    path = (
        (operated["path"] or operated["not"]) if operated else _path_computed(whole, patterns.heads)
    )
    return Plausible(text.index(whole), whole, path, fills=False) if path else None


_WORDS: Final = r"(?:and|or|not|in|is|if|else|for|lambda|await)\b"
_TWO_WORDS: Final = re.compile(rf"(?<![\w.])(?!{_WORDS})[\w.]++\s+(?!{_WORDS})\w")


def _is_prose(text: str) -> bool:
    """Whether two words stand beside each other with nothing between, so that no expression need be looked for."""
    return not ("'" in text or '"' in text) and _TWO_WORDS.search(text) is not None


def _path_computed(text: str, heads: frozenset[str]) -> str:
    """The first path of a text that is an expression of Python's syntax; empty without one."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            nodes = list(ast.walk(parse_python(text, "eval").body))
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return ""
    methods = [node.func for node in nodes if isinstance(node, ast.Call)]
    paths = (
        _dotted(node, heads) for node in nodes if isinstance(node, _PATHS) and node not in methods
    )
    return next(filter(None, paths), "")


_PATHS: Final = (ast.Attribute, ast.Subscript)


def _dotted(node: ast.expr, heads: frozenset[str]) -> str:
    segments: list[str] = []
    while isinstance(node, _PATHS):
        if isinstance(node, ast.Attribute):
            segments.append(node.attr)
        elif isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str | int):
            segments.append(str(node.slice.value))
        else:
            segments.clear()  # only what stands before can be a path
        node = node.value
    if not (isinstance(node, ast.Name) and node.id in heads and segments):
        return ""
    return ".".join([node.id, *reversed(segments)])


def right_form(
    text: str, found: Plausible, loops: frozenset[str], meant: Callable[[str], str]
) -> str:
    """What to write instead of a text; `meant` gives the reference for a path as written."""
    if not found.fills or (found.found == text.strip() and not found.fallback):
        return meant(found.path)
    parts, end, first = [], 0, 0
    for each in placeholders(text, loops):
        parts.append(text[end : each.offset])
        if not end:
            first = sum(map(len, parts))
        parts.append(f"${{{meant(each.path)}{each.fallback}}}")
        end = each.offset + len(each.found)
    parts.append(text[end:])
    return f"{{$text: {_quoted(''.join(parts), first)}}}"


def _quoted(text: str, around: int) -> str:
    """A text in double quotes, as YAML reads it; of a long one what stands around an offset."""
    if len(text) > _SHOWN:
        start = max(0, min(around - 16, len(text) - _SHOWN))
        end = min(len(text), start + _SHOWN)
        text = f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"
    return orjson.dumps(text).decode()
