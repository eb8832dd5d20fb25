"""Write what schemas say of each key of a spec file, from the tables and examples of docs/reference/, or with `--check`
say whether it is stale."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from cogcli.base.yaml.reader import parse
from cogcli.protocols import PROTOCOLS
from cogcli.specs.json_schema import page_path
from cogcli.specs.shape import Either, ListOf, MapOf, RecordShape, Shape
from cogcli.specs.shapes import shape_of

ROOT: Final = Path(__file__).resolve().parent.parent
REFERENCE: Final = ROOT / "docs" / "reference"
FILE: Final = ROOT / "cogcli" / "app" / "pages" / "keys.json"
PAGES: Final = {
    "spec-files": "field",
    "test-case": "case",
    **{kind: kind for kind in ("skill", "capability", "binding", "service", "pack")},
}
KINDS_OF_FILES: Final = {
    "policies/official_default_selection.yaml": "policy",
    "services.yaml": "services",
    "overrides.yaml": "overrides",
}
_TABLE: Final = re.compile(
    r"^\| key(?: of `([^`]+)`)?(?: below `([^`|]+)`)? (\|.*)\n\|[-|]+\n((?:\|.*\n)+)", re.M
)
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
    """By `KIND:PATH` of a key: its description, default and examples, as keywords of JSON Schema."""
    said: dict[str, dict[str, Any]] = {}
    for page, kind in PAGES.items():
        text = (REFERENCE / f"{page}.md").read_text(encoding="utf-8")
        for name, words in _described(text, kind):
            said.setdefault(name, words)
    for page in PAGES:
        text = (REFERENCE / f"{page}.md").read_text(encoding="utf-8")
        for folder, block in _BLOCK.findall(text):
            kind = _KINDS[folder]
            for name, value in _values(
                shape_of(kind, PROTOCOLS), parse(block.encode(), file="").value, (kind, "")
            ):
                examples = said.get(name, {}).setdefault("examples", [])
                if value not in examples and len(examples) < _MOST_EXAMPLES:
                    examples.append(value)
    return said


def _described(text: str, kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The keys that the tables of a page tell of."""
    for other, below, head, rows in _TABLE.findall(text):
        columns = ["key", *(cell.strip() for cell in head.strip("|").split("|"))]
        if "meaning" not in columns:
            continue
        for row in rows.splitlines():
            cells = dict(
                zip(columns, (cell.strip() for cell in row.strip("|").split("|")), strict=True)
            )
            for name in re.findall(r"`([^`]+)`", cells["key"]):
                for path in _spelled_out(f"{below}.{name}" if below else name):
                    yield f"{KINDS_OF_FILES.get(other, kind)}:{path}", _words(cells)


def _words(cells: dict[str, str]) -> dict[str, Any]:
    words: dict[str, Any] = {"description": _LINK.sub(r"\1", cells["meaning"]).replace("`", "")}
    default = re.fullmatch(r"`(.+)`", cells.get("default", ""))
    try:
        value = json.loads(default[1]) if default else None
    except ValueError:
        value = None
    return words | ({"default": value} if value not in (None, {}, []) else {})


def _spelled_out(path: str) -> Iterator[str]:
    """The paths that one with `{a,b}` stands for."""
    braces = re.search(r"\{([^}]+)\}", path)
    if not braces:
        yield path
        return
    for word in braces[1].split(","):
        yield from _spelled_out(path.replace(braces[0], word))


def _values(shape: Shape, value: Any, at: tuple[str, str]) -> Iterator[tuple[str, Any]]:
    """The single values of a mapping with the name of their key."""
    at = page_path(shape, at)
    kind, path = at
    if isinstance(shape, Either):
        yield from _values(shape.option_for(value) or shape.options[0], value, at)
    elif isinstance(shape, ListOf) and isinstance(value, list):
        for item in value:
            yield from _values(shape.item, item, (kind, f"{path}[]"))
    elif isinstance(shape, MapOf) and isinstance(value, dict):
        for item in value.values():
            yield from _values(shape.value, item, (kind, f"{path}.NAME"))
    elif isinstance(shape, RecordShape) and isinstance(value, dict):
        for name, key in shape.keys.items():
            if name in value:
                yield from _values(
                    key.shape, value[name], (kind, f"{path}.{name}" if path else name)
                )
    elif isinstance(value, str | int | float) and not path.endswith("]"):
        yield f"{kind}:{path}", value


if __name__ == "__main__":
    sys.exit(main())
