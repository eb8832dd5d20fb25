"""The place of a pointer in the text of a document is found without keeping the document."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cogcli.base.yaml.pointer_position import find_pointer
from cogcli.base.yaml.positions import YamlPositions

DOCUMENT: dict[str, Any] = {
    "openapi": "3.0.0",
    "paths": {
        "/a": {"get": {"tags": ["x", "y", {"z": 1}], "n": 10**30}},
        "/b~c": {"get": {"empty": None, "text": 'a "quoted" }{ text'}},
    },
    "list": [],
}
POINTERS: list[tuple[str, ...]] = [
    (), ("paths",), ("paths", "/a", "get", "tags", "2", "z"), ("paths", "/b~c", "get", "text"),
    ("paths", "/b~c", "get", "empty"), ("paths", "/a", "put"), ("list", "0"), ("list", "x"),
    ("openapi", "deeper"), ("paths", "/a", "get", "tags", "9"),
]  # fmt: skip
YAML = """\
openapi: 3.0.0
paths: # a comment
  /a:
    get:
      tags: [x, y, {z: 1}]
      n: 10
  "/b~c": {get: {empty: , text: "a"}}
  ? [a, b]
  : skipped
list: []
"""
TEXTS = {
    "indented": json.dumps(DOCUMENT, indent=2),
    "one line": json.dumps(DOCUMENT),
    "yaml": YAML,
    "a flow mapping": "{openapi: 3.0.0, paths: {/a: {get: {tags: [x, y, {z: 1}]}}}}",
}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("pointer", POINTERS)
def test_the_position_is_that_of_all_positions(name: str, pointer: tuple[str, ...]) -> None:
    span = YamlPositions(TEXTS[name]).at_pointer(pointer)
    assert find_pointer(TEXTS[name], pointer) == (span.line, span.column)


@pytest.mark.parametrize("text", ["", "{", '{"a"', '{"a": [1,', "a: [", "\t- x"])
def test_a_broken_text_has_a_position(text: str) -> None:
    line, column = find_pointer(text, ("a", "1"))
    assert line >= 1
    assert column >= 1


@pytest.mark.parametrize("name", ["json", "yaml"])
def test_a_fault_at_the_end_of_a_large_document_has_its_line(name: str) -> None:
    if name == "json":
        large = {"info": {"x": "y" * 5_000_000}, "paths": {"/last": {"get": 1}}}
        text, line = json.dumps(large, indent=1), 6
    else:
        text = "paths:\n" + "  /a: {get: [1, 2, 3]}\n" * 3 + f"  # {'y' * 5_000_000}\n  /last: 1\n"
        line = 6
    assert find_pointer(text, ("paths", "/last"))[0] == line
