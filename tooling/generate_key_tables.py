"""Write the tables of keys in docs/reference/ from the classes that declare them, or with `--check` report stale pages.

A table stands between `<!-- keys of CLASS -->`, or with `below PATH` or `in FILE` behind the class, and
`<!-- end of keys -->`. A part has its rows in the table of what it is part of, unless a table names
its class. The text below a field is its meaning; a last sentence `Default: ...` is what an absent key
gives, where its default does not say so. Fields that stand together above one text share it.
`Each: ...` after that is what the keys mean of a mapping whose names are given.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import sys
import textwrap
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple, get_args, get_origin

from cogcli.declarations.field import RECORDS, Field, fields_of
from cogcli.declarations.spec import Spec, hints_of, plain_hint
from cogcli.protocols import PROTOCOLS
from cogcli.specs.shape import (
    Boolean,
    Data,
    ListOf,
    MapOf,
    NumberShape,
    RecordShape,
    Shape,
    UnionShape,
)
from cogcli.specs.shape import Text as TextShape
from cogcli.specs.shape_of_spec import shape_of_spec, with_protocols

ROOT: Final = Path(__file__).resolve().parent.parent
REFERENCE: Final = ROOT / "docs" / "reference"
PAGES: Final = {"FieldSpec": "spec-files.md#fields", "Step": "skill.md#steps"}
"""Parts that pages of other kinds name and do not describe again."""
_TABLE: Final = re.compile(
    r"(<!-- keys of (\w+)(?: (below|in) (\S+))? -->\n\n).*?(\n<!-- end of keys -->\n)", re.DOTALL
)


class KeyText(NamedTuple):
    """What stands below a field, and the number of that text in its class."""

    number: int
    meaning: str
    default: str
    each: str = ""


class Table(NamedTuple):
    """A table of a page, and the classes that have tables."""

    of: str
    """What the keys are of: words with a file, or with the path above them; empty for those of a page."""
    own: frozenset[str]
    """Those of the same page."""
    elsewhere: frozenset[str]


def main() -> int:
    """Exit code 0, or 1 where `--check` found a page to differ."""
    for module in (ROOT / "cogcli" / "declarations").glob("*_spec.py"):
        import_module(f"cogcli.declarations.{module.stem}")
    for protocol in PROTOCOLS.values():
        protocol.grammar()
    texts = {page: page.read_text(encoding="utf-8") for page in sorted(REFERENCE.glob("*.md"))}
    named = {page: {name for _, name, *_ in _TABLE.findall(text)} for page, text in texts.items()}
    everywhere = frozenset().union(*named.values())
    stale = []
    for page, text in texts.items():
        own = frozenset(named[page])

        def write(found: re.Match[str], own: frozenset[str] = own) -> str:
            word = "of" if found[3] == "in" else found[3]
            table = Table(f" {word} `{found[4]}`" if word else "", own, everywhere - own)
            return f"{found[1]}{write_table(RECORDS[found[2]], table)}{found[5]}"

        if (made := _TABLE.sub(write, text)) != text:
            stale.append(page.name)
            if "--check" not in sys.argv[1:]:
                page.write_text(made, encoding="utf-8")
                print(page)
    if stale and "--check" in sys.argv[1:]:
        print(f"stale: {', '.join(stale)} (python tooling/generate_key_tables.py)", file=sys.stderr)
        return 1
    return 0


def write_table(cls: type[Spec], table: Table) -> str:
    head = f"| key{table.of} | type | default | meaning |\n|---|---|---|---|\n"
    return head + "".join(_rows(cls, "", table))


def _rows(cls: type[Spec], path: str, table: Table) -> Iterator[str]:
    """The rows of a class, those of its parts after the key that holds them."""
    texts, hints = key_texts(cls), hints_of(cls)
    shapes = with_protocols(shape_of_spec(cls), PROTOCOLS).keys
    fields = [field for field in fields_of(cls) if field.file_key.in_file]

    def shared(field: Field) -> tuple[Any, ...]:
        type_words = _type(shapes[field.key].shape, hints[field.name], table)
        return (
            texts[field.name].number,
            type_words,
            default_words(field, texts[field.name], shapes[field.key].shape),
        )

    for (_, type_words, default), group in groupby(fields, key=shared):
        found = list(group)
        keys = [field.key for field in found]
        together = keys[0] if len(keys) == 1 else f"{{{','.join(keys)}}}"
        below = f"{path}.{together}" if path else together
        shown = f"`{below}`" if path else ", ".join(f"`{key}`" for key in keys)
        meaning = texts[found[0].name].meaning
        yield f"| {shown} | {type_words} | {default} | {meaning} |\n"
        if each := texts[found[0].name].each:
            yield _row_of_names(shapes[keys[0]].shape, below, each)
        for part, suffix in _parts(hints[found[0].name]):
            if part.__name__ not in table.own | table.elsewhere and not issubclass(cls, part):
                yield from _rows(part, below + suffix, table)


def _row_of_names(shape: Shape, path: str, meaning: str) -> str:
    """The row of the keys of a mapping whose names are given."""
    names = shape.keys if isinstance(shape, RecordShape) else {}
    words = _shape_words(next(iter(names.values())).shape)
    return f"| `{path}.{{{','.join(names)}}}` | {words} | none | {meaning} |\n"


def _parts(hint: Any) -> Iterator[tuple[type[Spec], str]]:
    """The classes in a type, each with what leads to it from the key."""
    limits = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    words = {name: value for each in limits for name, value in each.words.items()}
    hint = words.get("keys") or plain_hint(hint)
    origin, args = get_origin(hint), get_args(hint)
    if isinstance(hint, type) and issubclass(hint, Spec):
        yield hint, ""
    elif origin in (tuple, list):
        yield from ((part, f"[]{rest}") for part, rest in _parts(args[0]))
    elif origin is dict:
        step = "[]" if "unique" in words else ".NAME"
        yield from ((part, f"{step}{rest}") for part, rest in _parts(args[1]))
    elif origin is not None:
        for option in args:
            yield from _parts(option)


def default_words(field: Field, text: KeyText, shape: Shape) -> str:
    """What an absent key gives, in words."""
    if text.default:
        return text.default
    if field.required:
        return "required"
    if field.default is None:
        return "none"
    if isinstance(field.default, Spec):
        return "`{}`"
    if field.default == {} and isinstance(shape, ListOf):
        return "`[]`"
    return f"`{json.dumps(field.default, ensure_ascii=False)}`"


@cache
def key_texts(cls: type[Spec]) -> dict[str, KeyText]:
    """By attribute what stands below the fields of a class, and of those above it."""
    texts: dict[str, KeyText] = {}
    for each in reversed(cls.__mro__):
        if issubclass(each, Spec) and each is not Spec:
            (definition,) = ast.parse(textwrap.dedent(inspect.getsource(each))).body
            texts |= _texts_of(definition, len(texts))
    return texts


def _texts_of(definition: Any, number: int) -> dict[str, KeyText]:
    texts: dict[str, KeyText] = {}
    waiting: list[str] = []
    for node in definition.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            waiting.append(node.target.id)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and waiting:
            number += 1
            text = _key_text(number, str(node.value.value))
            texts |= dict.fromkeys(waiting, text)
            waiting = []
    return texts | {name: KeyText(0, "", "") for name in waiting}


def _key_text(number: int, text: str) -> KeyText:
    text, _, each = " ".join(text.split()).partition(" Each: ")
    meaning, _, default = text.partition(" Default: ")
    first = re.match(r"\[?([A-Za-z]+)", meaning)
    if first and not re.search("[A-Z]", first[1][1:]):
        start = first.start(1)
        meaning = meaning[:start] + meaning[start].lower() + meaning[start + 1 :]
    return KeyText(number, meaning.removesuffix("."), default, each)


def _type(shape: Shape, hint: Any, table: Table) -> str:
    """The type of a value in words."""
    for part, suffix in _parts(hint):
        page = PAGES.get(part.__name__)
        if page and part.__name__ not in table.own:
            words = f"[{part.__name__.removesuffix('Spec').lower()}{{}}]({page})"
            if suffix == ".NAME":
                return words.format("s")
            return _list_words(shape, words.format("")) if suffix == "[]" else words.format("")
        if page and suffix == "":
            return f"[{part.__name__.removesuffix('Spec').lower()}](#{page.partition('#')[2]})"
    return _shape_words(shape)


def _shape_words(shape: Shape) -> str:
    if isinstance(shape, UnionShape):
        first, *others = shape.options
        if isinstance(first, TextShape) and first.choices and others == [ListOf(first)]:
            return f"{_shape_words(first)}, or a list of these"
        return " or ".join(dict.fromkeys(map(_shape_words, shape.options)))
    if isinstance(shape, ListOf):
        return _list_words(shape, _shape_words(shape.item))
    if isinstance(shape, MapOf):
        return f"mapping to {_shape_words(shape.value)}"
    if isinstance(shape, TextShape):
        return " ".join(f"`{word}`" for word in shape.choices) or "text"
    if isinstance(shape, NumberShape):
        kind = "integer" if shape.whole else "number"
        above = "" if shape.above is None else f", above {_number(shape.above)}"
        return kind + above + _range(shape.minimum, shape.maximum)
    return {Boolean: "boolean", Data: "any", RecordShape: "mapping"}[type(shape)]


def _list_words(shape: Shape, item: str) -> str:
    if not isinstance(shape, ListOf):
        return item
    return f"list of {item}{_range(shape.minimum or None, shape.maximum or None)}"


def _range(least: float | None, most: float | None) -> str:
    if least is not None and most is not None:
        return f", {_number(least)} to {_number(most)}"
    if least is not None:
        return f", at least {_number(least)}"
    return "" if most is None else f", at most {_number(most)}"


def _number(value: float) -> str:
    return f"{value:,}"


if __name__ == "__main__":
    sys.exit(main())
