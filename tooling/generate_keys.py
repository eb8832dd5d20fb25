"""Write the words of editor schemas for each key of a spec file, from its declaration and the examples of the
reference, or with `--check` report whether they are stale."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from generate_key_tables import default_words, key_texts

from cogcli.app.schemas import SPECS
from cogcli.base.yaml.reader import parse
from cogcli.declarations.field import RECORDS, fields_of
from cogcli.declarations.spec import Spec
from cogcli.protocols import PROTOCOLS
from cogcli.specs.shape import ListOf, MapOf, RecordShape, Shape, UnionShape
from cogcli.specs.shape_of_spec import shape_of_spec
from cogcli.specs.shapes import shape_of

ROOT: Final = Path(__file__).resolve().parent.parent
REFERENCE: Final = ROOT / "docs" / "reference"
FILE: Final = ROOT / "cogcli" / "app" / "pages" / "keys.json"
PAGES: Final = ("spec-files", "skill", "capability", "binding", "service", "pack")
"""Those whose examples are shown."""
_LINK: Final = re.compile(r"\[([^\]]+)\]\([^)]+\)")
_BLOCK: Final = re.compile(
    r"^```yaml\n# (skills|capabilities|bindings|services|packs)/\S+\n(.*?)^```$", re.M | re.S
)
_KINDS: Final = {
    "skills": "skill", "capabilities": "capability", "bindings": "binding", "services": "service", "packs": "pack",
}  # fmt: skip
_MOST_EXAMPLES: Final = 3


def main() -> int:
    """Exit code 0, or 1 where `--check` found the file to differ."""
    text = json.dumps(document(), indent=1, ensure_ascii=False) + "\n"
    if FILE.exists() and FILE.read_text(encoding="utf-8") == text:
        return 0
    if "--check" in sys.argv[1:]:
        print(f"stale: {FILE.relative_to(ROOT)} (python tooling/generate_keys.py)", file=sys.stderr)
        return 1
    FILE.write_text(text, encoding="utf-8")
    print(FILE)
    return 0


def document() -> dict[str, dict[str, Any]]:
    """By `CLASS.KEY` the description, default and examples of a key, as keywords of JSON Schema."""
    words: dict[str, dict[str, Any]] = {}
    for kind in SPECS:
        for cls in _classes_in(shape_of(kind, PROTOCOLS)):
            words |= _words_of(cls)
    for page in PAGES:
        text = (REFERENCE / f"{page}.md").read_text(encoding="utf-8")
        for folder, block in _BLOCK.findall(text):
            whole = parse(block.encode(), file="").value
            for declared, value in _values(shape_of(_KINDS[folder], PROTOCOLS), whole, ""):
                examples = words[declared].setdefault("examples", [])
                if value not in examples and len(examples) < _MOST_EXAMPLES:
                    examples.append(value)
    return words


def _classes_in(shape: Shape) -> list[type[Spec]]:
    """The classes whose keys are in a shape."""
    names = {declared.partition(".")[0]: None for declared in _declared_in(shape, set())}
    return [RECORDS[name] for name in names]


def _declared_in(shape: Shape, seen: set[int]) -> Iterator[str]:
    """The names of all keys in a shape."""
    if id(shape) in seen:
        return
    seen.add(id(shape))
    if isinstance(shape, UnionShape):
        for option in shape.options:
            yield from _declared_in(option, seen)
    elif isinstance(shape, ListOf | MapOf):
        yield from _declared_in(shape.item if isinstance(shape, ListOf) else shape.value, seen)
    elif isinstance(shape, RecordShape):
        for key in shape.keys.values():
            yield key.declared
            yield from _declared_in(key.shape, seen)


def _words_of(cls: type[Spec]) -> dict[str, dict[str, Any]]:
    """The words for the keys of a class; those that it inherits are those of the class above it."""
    texts, shape, words = key_texts(cls), shape_of_spec(cls), {}
    for field in fields_of(cls):
        if field.file_key.in_file:
            text, key = texts[field.name], shape.keys[field.key]
            words[key.declared] = _keywords(text.meaning, default_words(field, text, key.shape))
            if text.each:
                words[f"{key.declared}.NAME"] = _keywords(text.each, "")
    return words


def _keywords(meaning: str, default: str) -> dict[str, Any]:
    description = {"description": _LINK.sub(r"\1", meaning).replace("`", "")}
    found = re.fullmatch(r"`(.+)`", default)
    try:
        value = json.loads(found[1]) if found else None
    except ValueError:
        value = None
    return description if value in (None, {}, []) else {**description, "default": value}


def _values(shape: Shape, value: Any, declared: str) -> Iterator[tuple[str, Any]]:
    """The single values of a mapping with the names of their keys."""
    if isinstance(shape, UnionShape):
        yield from _values(shape.option_for(value) or shape.options[0], value, declared)
    elif isinstance(shape, ListOf) and isinstance(value, list):
        for item in value:
            yield from _values(shape.item, item, "")
    elif isinstance(shape, MapOf) and isinstance(value, dict):
        for item in value.values():
            yield from _values(shape.value, item, "")
    elif isinstance(shape, RecordShape) and isinstance(value, dict):
        for name, key in shape.keys.items():
            if name in value:
                yield from _values(key.shape, value[name], key.declared)
    elif isinstance(value, str | int | float) and declared and not declared.endswith(".NAME"):
        yield declared, value


if __name__ == "__main__":
    sys.exit(main())
