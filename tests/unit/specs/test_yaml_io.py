"""Strict YAML in, plain values with positions out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples

from cogcli.base.json_pointer import pointer_of
from cogcli.base.yaml import positions
from cogcli.base.yaml.parsers import has_c_parser
from cogcli.base.yaml.positions import Span, YamlPositions
from cogcli.base.yaml.reader import ParsedYaml, parse, read_file

pytestmark = pytest.mark.sampled(3)

Place = tuple[str, int, int, str]


@pytest.fixture(params=["c parser", "pure parser"])
def either_parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test that asks for this runs with the C parser and as if it were not installed."""
    if request.param == "pure parser":
        parse(b"a: 1", file="f")
        monkeypatch.setitem(sys.modules, "ruamel.yaml.cyaml", None)
        assert not has_c_parser()


def parsed(text: str | bytes) -> ParsedYaml:
    return parse(text if isinstance(text, bytes) else text.encode(), file="f.yaml")


def value(text: str | bytes) -> Any:
    found = parsed(text)
    assert found.problems == []
    return found.value


def problems(text: str | bytes) -> list[Place]:
    """Code, line, column and path of every problem."""
    found = parsed(text)
    assert found.value is None
    assert all(
        p.severity == "E" and p.file == "f.yaml" and p.message and p.hint for p in found.problems
    )
    return [(p.code, p.line, p.column, p.path) for p in found.problems]


def message(text: str | bytes) -> str:
    (problem,) = parsed(text).problems
    return problem.message


SKILL = """\
id: text.demo   # a comment
version: "1.0"
steps:
  - id: one
    uses: text.summarize
    input: {text: inputs.text, "limit": 10}
  -
    id: two
notes: |
  first
  second
after:
last: [1,
  2]
"""

# Values


@pytest.mark.usefixtures("either_parser")
def test_a_skill_becomes_plain_values() -> None:
    assert value(SKILL) == {
        "id": "text.demo",
        "version": "1.0",
        "steps": [
            {"id": "one", "uses": "text.summarize", "input": {"text": "inputs.text", "limit": 10}},
            {"id": "two"},
        ],
        "notes": "first\nsecond\n",
        "after": None,
        "last": [1, 2],
    }


@pytest.mark.usefixtures("either_parser")
@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("true", True), ("True", True), ("TRUE", True), ("false", False), ("False", False), ("FALSE", False),
        ("null", None), ("Null", None), ("NULL", None), ("~", None), ("", None),
        ("0", 0), ("-0", 0), ("7", 7), ("-12", -12), ("9007199254740991", 2**53 - 1), ("-9007199254740991", 1 - 2**53),
        ("0.5", 0.5), ("-1.25", -1.25), ("1e3", 1000.0), ("1E-2", 0.01), ("2.5e+1", 25.0), ("1.10", 1.1),
        ("tRUE", "tRUE"), ("nULL", "nULL"), ("y", "y"), ("n", "n"), ("Y", "Y"), ("yess", "yess"), ("offf", "offf"),
        ("2026-01-01", "2026-01-01"), ("2026-01-01T10:00:00Z", "2026-01-01T10:00:00Z"),
        ("2026-01-01 10:00:00", "2026-01-01 10:00:00"), ("1.2.3", "1.2.3"), ("v1", "v1"), ("1a", "1a"),
        ("8080:80", "8080:80"), ("1:2:3x", "1:2:3x"), ("0x", "0x"), ("0xg", "0xg"), ("0o8", "0o8"), ("1_a", "1_a"),
        ("_1", "_1"), ("1,000", "1,000"), ("inf", "inf"), ("nan", "nan"), ("NaN", "NaN"), (".", "."), ("-x", "-x"),
        ("+", "+"), ("..", ".."), ("1e", "1e"), ("e1", "e1"), ("١", "١"), ("=", "="), ("<<", "<<"),
        ("http://a/b?c=d#e", "http://a/b?c=d#e"), ("a, b", "a, b"), ("inputs.text", "inputs.text"),
        ('"true"', "true"), ("'yes'", "yes"), ('"017"', "017"), ("'1:30'", "1:30"), ('"~"', "~"), ("''", ""),
        ('"a\\tb\\n\\u00e9\\x41\\U0001F600\\/"', "a\tb\né" + "A😀/"), ("'it''s'", "it's"),
        ("|\n  yes", "yes"), (">\n  1\n  2\n", "1 2\n"), ("|-\n  true\n", "true"), (">+\n  a\n\n", "a\n\n"),
        ("a\n  b", "a b"), ('"a\n  b"', "a b"), ("[]", []), ("{}", {}), ("[a, 1, ~, [x]]", ["a", 1, None, ["x"]]),
        ("{a: , b}", {"a": None, "b": None}), ("\n- 1\n-\n- a: 2", [1, None, {"a": 2}]), ("\n- 1\n", [1]),
    ],
)  # fmt: skip
def test_a_scalar_means_what_yaml_1_2_says(written: str, meant: object) -> None:
    found = value(f"k: {written}")["k"]
    assert (found, type(found)) == (meant, type(meant))


@pytest.mark.usefixtures("either_parser")
def test_keys_are_text_as_written() -> None:
    words = ["on", "yes", "1", "1.10", "true", "~", "017", "0x1F", ".inf", "2026-01-01", "a b"]
    assert list(value("".join(f"{word}: x\n" for word in words))) == words
    assert list(value('"": 1\n"<<": 2\n')) == ["", "<<"]


@pytest.mark.usefixtures("either_parser")
@pytest.mark.parametrize(
    "text", ["? a\n: 1", '"a": 1', "'a': 1", "{a: 1}", '{"a":1}', "---\na: 1", "a: 1\n...\n"]
)
def test_other_ways_to_write_a_mapping_are_fine(text: str) -> None:
    assert value(text) == {"a": 1}


@pytest.mark.usefixtures("either_parser")
def test_one_leading_byte_order_mark_is_tolerated_and_takes_no_column() -> None:
    assert value(b"\xef\xbb\xbfa: 1") == {"a": 1}
    assert problems(b"\xef\xbb\xbfa: yes") == [("yaml.ambiguous", 1, 4, "/a")]


@pytest.mark.usefixtures("either_parser")
def test_windows_line_ends_are_fine() -> None:
    assert value("a: 1\r\nb: |\r\n  x\r\n  y\r\n") == {"a": 1, "b": "x\ny\n"}


@pytest.mark.usefixtures("either_parser")
def test_what_only_yaml_1_2_allows_is_fine() -> None:
    assert value("a: {url: http://host/?q=1, b: [x?y, z]}") == {
        "a": {"url": "http://host/?q=1", "b": ["x?y", "z"]}
    }


# What parsers let pass
TAB = "a tab where only spaces are allowed"
LEFT = "a line of {} begins too far left"
NO_BLANK = "a blank is missing before `#`"
END = "`|` or `>` must end its line"
DEEP = "a blank line before the text is indented deeper than it"
SLIPS = [
    ("a: x\ty", 1, 5, TAB),
    ("a: x\t\nb: 1\n", 1, 5, TAB),
    ("a:\t1\n", 1, 3, TAB),
    ("a:\n -\tb\n", 2, 3, TAB),
    ("a: 1\n\t\nb: 2\n", 2, 1, TAB),
    ("a: 1\n  \t# c\nb: 2\n", 2, 3, TAB),
    ("a: x\n \ty\n", 2, 2, TAB),
    ("a:\t|\n  x\n", 1, 3, TAB),
    ('a: "1.0.0"# no blank\n', 1, 11, NO_BLANK),
    ("a: 'x'#\n", 1, 7, NO_BLANK),
    ("a: [x]# c\n", 1, 7, NO_BLANK),
    ("a: [x, y,#c\n z]\n", 1, 10, NO_BLANK),
    ("a: |# c\n  x\n", 1, 5, END),
    ("a: >-#\n  x\n", 1, 6, END),
    ("a: >\n \n  \n   \n # c\n", 1, 4, DEEP),
    ("a: [x,\ny]\n", 2, 1, LEFT.format("what stands in brackets")),
    ("a:\n  b: {c: 1,\n  d: 2}\n", 3, 3, LEFT.format("what stands in brackets")),
    ("a:\n- [x,\ny]\n", 3, 1, LEFT.format("what stands in brackets")),
    ('a: [x, "y\nz"]\n', 2, 1, LEFT.format("what stands in brackets")),
    ('a: "x\ny"\n', 2, 1, LEFT.format("quoted text")),
    ('a: "x\n\ty"\n', 2, 1, LEFT.format("quoted text")),
    ("a:\n  - 'x\n  y'\n", 3, 3, LEFT.format("quoted text")),
    ("a: { ?text: 1}\n", 1, 6, "text in brackets cannot start with `?`"),
    ("a: [x, ?y]\n", 1, 8, "text in brackets cannot start with `?`"),
    ("a: {b:, c: 1}\n", 1, 5, "text in brackets cannot end with `:`"),
    ("a: [-]\n", 1, 5, "`- ` is not expected here"),
]


@pytest.mark.usefixtures("either_parser")
@pytest.mark.parametrize(("text", "line", "column", "found"), SLIPS)
def test_what_parsers_let_pass_is_refused(text: str, line: int, column: int, found: str) -> None:
    (problem,) = parsed(text).problems
    assert (problem.code, problem.line, problem.column) == ("yaml.syntax", line, column)
    assert problem.message == found


@pytest.mark.usefixtures("either_parser")
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a: x#y #z\n", "x#y"),
        ("a: '#x' # y\n", "#x"),
        ("a: http://h/?q=1#f\n", "http://h/?q=1#f"),
        ('a: "#\t# {?x: [-]}" #\t\n', "#\t# {?x: [-]}"),
        ("a: |\n  \tx# y\n  [?a, -,\n", "\tx# y\n[?a, -,\n"),
        ("a: | # c\n  x\n", "x\n"),
        ("a: |\n\n  \n  x\n   \n", "\n\nx\n \n"),
        ("a: >\n \n  # x\n", "\n# x\n"),
        ("a: |2\n     \n    x\n", "   \n  x\n"),
        ('a: "x\n  \n  y"\n', "x\ny"),
        ('a:\n "x\n y"\n', "x y"),
        ("a: [x,\n y\n]\n", ["x", "y"]),
        ("a: {\n# c\n b: 1\n}\n", {"b": 1}),
        ("a: [x, # c\n y]\n", ["x", "y"]),
        ("a: [x?, -1]\n", ["x?", -1]),
        ('a: {"b":1, c: {"d":[2]}}\n', {"b": 1, "c": {"d": [2]}}),
        ("a: ?x\n", "?x"),
        ("a: -x\n", "-x"),
        ("a: [b: c]\n", [{"b": "c"}]),
        ("a: {b: , c: 1}\n", {"b": None, "c": 1}),
    ],
)
def test_what_looks_alike_and_is_right_is_read(text: str, found: Any) -> None:
    assert value(text) == {"a": found}


@pytest.mark.usefixtures("either_parser")
def test_the_root_in_brackets_may_begin_anywhere() -> None:
    assert value('{\n"a": [\n1,\n\t2\n]\n}\n') == {"a": [1, 2]}


@pytest.mark.usefixtures("either_parser")
def test_a_slip_is_told_with_what_else_is_wrong() -> None:
    assert problems('a: yes\nb: "x"# y\n') == [
        ("yaml.ambiguous", 1, 4, "/a"),
        ("yaml.syntax", 2, 7, ""),
    ]


@pytest.mark.usefixtures("either_parser")
def test_tabs_in_quoted_and_block_text_are_text() -> None:
    assert value("a: 'x\ty'\nb: |\n  x\ty\n") == {"a": "x\ty", "b": "x\ty\n"}


@pytest.mark.usefixtures("either_parser")
def test_tabs_may_indent_json() -> None:
    assert value('{\n\t"a": [\n\t\t1\n\t]\n}') == {"a": [1]}


# Problems of a file as a whole


@pytest.mark.parametrize(
    "text", ["", "\n\n", "# nothing\n", "---\n", "---\n# nothing\n...\n", "\ufeff", "   \n"]
)
@pytest.mark.usefixtures("either_parser")
def test_a_file_without_a_value_is_empty(text: str) -> None:
    assert problems(text) == [("yaml.empty", 0, 0, "")]


@pytest.mark.usefixtures("either_parser")
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("- a\n- b\n", "a list"),
        ("[]", "a list"),
        ("hello", "text"),
        ("~", "text"),
        ("42", "text"),
        ("''", "text"),
        ("\n|\n x", "text"),
    ],
)
def test_a_root_that_is_no_mapping_is_refused(text: str, found: str) -> None:
    assert problems(text) == [("yaml.root", 2 if text[0] == "\n" else 1, 1, "")]
    assert message(text) == f"found {found}, expected a mapping"


@pytest.mark.usefixtures("either_parser")
@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: 1\n---\nb: 2\n", 2),
        ("---\na: 1\n---\n", 3),
        ("a: 1\n...\n---\n", 3),
        ("a: 1\n...\nb: 2", 3),
    ],
)
def test_a_second_document_is_refused_where_it_starts(text: str, line: int) -> None:
    assert problems(text) == [("yaml.documents", line, 1, "")]


@pytest.mark.usefixtures("either_parser")
@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("%YAML 1.1\n---\na: 1", 1),
        ("# c\n\n%YAML 1.2\n---\na: 1", 3),
        ("%FOO bar\n---\na: 1", 1),
        ("%YAML 9.9\r\n---\r\na: 1", 1),
    ],
)
def test_a_directive_is_refused(text: str, line: int) -> None:
    assert problems(text) == [("yaml.directive", line, 1, "")]


@pytest.mark.usefixtures("either_parser")
def test_every_directive_is_told_with_the_other_problems() -> None:
    text = "%YAML 1.1\n%TAG !e! tag:x,2000:\n---\na: yes\nb: !e!c d"
    assert [place[:3] for place in problems(text)] == [
        ("yaml.directive", 1, 1), ("yaml.directive", 2, 1), ("yaml.ambiguous", 4, 4), ("yaml.tag", 5, 4),
    ]  # fmt: skip


def test_a_file_over_256_kib_is_refused() -> None:
    assert value(b"a: 1\n#" + b"x" * (256 * 1024 - 6)) == {"a": 1}
    assert problems(b"a: 1\n#" + b"x" * (256 * 1024 - 5)) == [("yaml.size", 0, 0, "")]
    assert message(b" " * 262_145) == "has 262,145 bytes, at most 262,144 are allowed"


@pytest.mark.parametrize(
    ("data", "line", "column", "found"),
    [
        (b"a: caf\xe9\n", 1, 7, "byte 0xE9 is not UTF-8"),
        ("é: 1\nü: ".encode() + b"\xff", 2, 4, "byte 0xFF is not UTF-8"),
        (b"\xef\xbb\xbf\xc0\x80", 1, 1, "byte 0xC0 is not UTF-8"),
        (b"a: \xed\xa0\x80", 1, 4, "byte 0xED is not UTF-8"),
        ("a: 1".encode("utf-16"), 1, 1, "the file is UTF-16, expected UTF-8"),
        ("a: 1".encode("utf-16-le"), 1, 1, "the file is UTF-16, expected UTF-8"),
        ("a: 1".encode("utf-16-be"), 1, 1, "the file is UTF-16, expected UTF-8"),
        ("\ufeff\ufeffa: 1".encode(), 1, 1, "more than one byte order mark"),
    ],
)
def test_a_file_that_is_not_utf_8_is_refused(
    data: bytes, line: int, column: int, found: str
) -> None:
    assert problems(data) == [("yaml.encoding", line, column, "")]
    assert message(data) == found


# Limits


def nested(levels: int) -> str:
    return "".join("  " * i + "a:\n" for i in range(levels - 1)) + "  " * (levels - 1) + "b: 1\n"


@pytest.mark.usefixtures("either_parser")
def test_thirty_two_levels_are_the_deepest() -> None:
    assert value(nested(32)) is not None
    assert problems(nested(33)) == [("yaml.limit", 33, 65, "/a" * 32)]
    assert message(nested(33)) == "nesting deeper than 32"
    assert value("a: " + "[" * 31 + "]" * 31) is not None
    assert problems("a: " + "[" * 32 + "]" * 32) == [("yaml.limit", 1, 35, "/a" + "/0" * 31)]


@pytest.mark.slow
@pytest.mark.usefixtures("either_parser")
@pytest.mark.parametrize("opening", ["[", "{a: ", "? ", "- ", "[{a: "])
def test_any_depth_is_refused_without_a_crash(opening: str) -> None:
    assert "yaml.limit" in {place[0] for place in problems("a: [" + opening * 50_000)} | {
        place[0] for place in problems(opening * 50_000)
    }


@pytest.mark.sampled(2)
@pytest.mark.slow
@pytest.mark.usefixtures("either_parser")
def test_fifty_thousand_nodes_are_the_most() -> None:
    # The root, a key, a list and its items.
    assert len(value(f"a: [{'1,' * 49_997}]")["a"]) == 49_997
    (problem,) = parsed(f"a: [{'1,' * 49_998}]").problems
    assert (problem.code, problem.line, problem.column, problem.path) == (
        "yaml.limit",
        1,
        99_999,
        "/a",
    )
    assert problem.message == "more than 50,000 nodes"


@pytest.mark.sampled(12)
@pytest.mark.slow
@pytest.mark.usefixtures("either_parser")
def test_keys_and_missing_values_are_nodes() -> None:
    keys = "".join(f"{i}:\n" for i in range(25_000))
    assert problems(keys) == [("yaml.limit", 25_000, 1, "")]


@pytest.mark.usefixtures("either_parser")
@pytest.mark.parametrize("quote", ["", '"', "'"])
def test_a_key_has_at_most_256_characters(quote: str) -> None:
    assert value(f"{quote}{'é' * 256}{quote}: 1") == {"é" * 256: 1}
    assert problems(f"a: 1\n{quote}{'é' * 257}{quote}: 1") == [("yaml.limit", 2, 1, "")]
    assert message(f"{quote}{'é' * 257}{quote}: 1") == "key longer than 256 characters"


@pytest.mark.usefixtures("either_parser")
@pytest.mark.parametrize(
    "text", ["KEY: 1", "a: 1\nKEY: 1", "a:\n  KEY: 1\n  b: 2", '"KEY": 1', "{a: 1, KEY: 2}"]
)
def test_a_key_that_no_parser_takes_for_one_is_a_limit_too(text: str) -> None:
    assert {place[0] for place in problems(text.replace("KEY", "k" * 2_000))} == {"yaml.limit"}


@pytest.mark.usefixtures("either_parser")
def test_a_file_full_of_problems_tells_the_first_hundred() -> None:
    found = parsed("".join(f"k{i}: yes\n" for i in range(500))).problems
    assert [p.code for p in found] == ["yaml.ambiguous"] * 100 + ["yaml.limit"]
    assert found[-1].message == "more than 100 problems, the rest is not told"


# Problems inside


@pytest.mark.usefixtures("either_parser")
@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("a: &x 1\nb: *x\n", [("yaml.alias", 1, 4, "/a"), ("yaml.alias", 2, 4, "/b")]),
        ("a: &x [*x]\n", [("yaml.alias", 1, 4, "/a"), ("yaml.alias", 1, 8, "/a/0")]),
        ("&k a: 1", [("yaml.alias", 1, 1, "/a")]),
        ("&r\na: 1", [("yaml.alias", 1, 1, "")]),
        ("a:\n  <<: {b: 1}\n", [("yaml.alias", 2, 3, "/a")]),
        ("*x : 1", [("yaml.alias", 1, 1, "")]),
        ("a: *.txt", [("yaml.alias", 1, 4, "/a")]),
        ("a: * x", [("yaml.alias", 1, 5, "")]),
        ("a: !foo bar", [("yaml.tag", 1, 4, "/a")]),
        ("a: !!str bar", [("yaml.tag", 1, 4, "/a")]),
        ("a: !!binary aGk=", [("yaml.tag", 1, 4, "/a")]),
        ("a: ! bar", [("yaml.tag", 1, 4, "/a")]),
        ("a: !<tag:x> bar", [("yaml.tag", 1, 4, "/a")]),
        ("a: !e!f bar", [("yaml.tag", 1, 4, "")]),
        ("a: !!python/object/apply:os.system [x]", [("yaml.tag", 1, 4, "/a")]),
        ("!!map\na: 1", [("yaml.tag", 1, 1, "")]),
        ("!!str a: 1", [("yaml.tag", 1, 1, "/a")]),
        ("- !x\n", [("yaml.root", 1, 1, ""), ("yaml.tag", 1, 3, "/0")]),
        ("a: &x !y z", [("yaml.alias", 1, 4, "/a"), ("yaml.tag", 1, 4, "/a")]),
    ],
)
def test_anchors_aliases_merge_keys_and_tags_are_refused(text: str, places: list[Place]) -> None:
    assert problems(text) == places


@pytest.mark.usefixtures("either_parser")
@pytest.mark.parametrize(
    ("text", "place", "found"),
    [
        (
            "id: x\nsteps: []\n\ntype: a\nb: 1\ntype: c\n",
            (6, 1, "/type"),
            "key `type` repeated, first at line 4",
        ),
        (
            "s:\n  - a: 1\n  - b: 1\n    c: 2\n    b: 3\n",
            (5, 5, "/s/1/b"),
            "key `b` repeated, first at line 3",
        ),
        ('{a: 1,\n "a": 2}', (2, 2, "/a"), "key `a` repeated, first at line 1"),
        ("1: x\n'1': y", (2, 1, "/1"), "key `1` repeated, first at line 1"),
        ('"\\u0061": x\na: y', (2, 1, "/a"), "key `a` repeated, first at line 1"),
        ("a/b~c: 1\na/b~c: 2", (2, 1, "/a~1b~0c"), "key `a/b~c` repeated, first at line 1"),
        ('"a\\nb": 1\n"a\\nb": 2', (2, 1, "/a\nb"), r"key `a\u000ab` repeated, first at line 1"),
    ],
)
def test_a_repeated_key_is_refused_at_any_depth(
    text: str, place: tuple[int, int, str], found: str
) -> None:
    assert problems(text) == [("yaml.duplicate-key", *place)]
    assert message(text) == found


@pytest.mark.usefixtures("either_parser")
def test_a_key_repeated_in_a_repeated_mapping_names_its_own_first() -> None:
    found = parsed("a: {x: 1}\na:\n  y: 1\n  y: 2\n").problems
    assert [p.message for p in found] == [
        "key `a` repeated, first at line 1",
        "key `y` repeated, first at line 3",
    ]


@pytest.mark.usefixtures("either_parser")
@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("? [a]\n: 1\n", [("yaml.key", 1, 3, "")]),
        ("? {a: 1}\n: 1\n", [("yaml.key", 1, 3, "")]),
        ("a: {{ b }}", [("yaml.key", 1, 5, "/a")]),
        ("a: {[b]: c}", [("yaml.key", 1, 5, "/a")]),
        (": 1", [("yaml.key", 1, 1, "")]),
        ("? \n: 1", [("yaml.key", 1, 2, "")]),
        (
            "? [&x a]\n: yes\n",
            [("yaml.key", 1, 3, ""), ("yaml.alias", 1, 4, "/?/0"), ("yaml.ambiguous", 2, 3, "/?")],
        ),
    ],
)
def test_a_key_that_is_no_text_is_refused(text: str, places: list[Place]) -> None:
    assert problems(text) == places


LOOK_ALIKES = [
    "yes", "Yes", "YES", "yEs", "no", "No", "NO", "on", "On", "ON", "off", "Off", "OFF",
    "1:30", "01:30", "12:30:45", "-1:30", "+1:30", "190:20:30.15", "1_0:30",
    "017", "-017", "+017", "00", "08", "007.5", "0o17", "-0o17", "+0O17", "0x1F", "0X1f", "-0x1F", "+0xff", "0x_1",
    "0b101", "-0b1_0", "1_000", "-1_000", "1_000.5", "1_", "+1", "+1.5",
    ".5", "-.5", "+.5", "1.", "-1.", "1.e3", ".5e3", "01e2",
    ".inf", ".Inf", ".INF", "-.inf", "+.inf", "-.INF", ".nan", ".NaN", ".NAN", "-.nan", "+.NaN",
]  # fmt: skip


@pytest.mark.usefixtures("either_parser")
@pytest.mark.parametrize("text", LOOK_ALIKES)
def test_a_look_alike_must_be_quoted(text: str) -> None:
    assert problems(f"a:\n  - {text}\n") == [("yaml.ambiguous", 2, 5, "/a/0")]
    (problem,) = parsed(f"a: {text}").problems
    assert problem.message == f"`{text}` is read differently by different programs"
    assert problem.hint == "write true/false, a decimal number, or quote it"
    assert value(f"a: '{text}'\nb: \"{text}\"\nc: |-\n  {text}\n") == {
        "a": text,
        "b": text,
        "c": text,
    }
    assert value(f"{text}: 1") == {text: 1}


@pytest.mark.usefixtures("either_parser")
@pytest.mark.parametrize(
    ("number", "kind"),
    [
        ("9007199254740992", "an integer beyond 2^53-1"),
        ("-9007199254740992", "an integer beyond 2^53-1"),
        ("99999999999999999999", "an integer beyond 2^53-1"),
        ("9" * 5000, "an integer beyond 2^53-1"),
        ("1e400", "beyond every float"),
        ("-1e400", "beyond every float"),
        ("1" + "0" * 400 + ".0", "beyond every float"),
    ],
)
def test_a_number_that_not_every_reader_keeps_is_refused(number: str, kind: str) -> None:
    assert problems(f"a:\n  b: {number}") == [("yaml.number", 2, 6, "/a/b")]
    shown = number if len(number) <= 40 else f"{number[:40]}…"
    assert message(f"a: {number}") == f"{shown} is {kind}"


@pytest.mark.usefixtures("either_parser")
@pytest.mark.parametrize(
    ("char", "kind"),
    [
        *(
            (chr(code), "control character")
            for code in (0, 1, 7, 8, 11, 12, 27, 31, 127, 128, 133, 159)
        ),
        *(
            (char, "bidi control character")
            for char in "\u061c\u200e\u200f\u202a\u202e\u2066\u2069"
        ),
    ],
)
def test_control_and_bidi_control_characters_are_refused_however_written(
    char: str, kind: str
) -> None:
    found = f"{kind} U+{ord(char):04X} is not allowed"
    assert problems(f"é: x{char}y\nb: 1") == [("yaml.characters", 1, 5, "")]
    assert message(f"# {char}\na: 1") == found
    assert problems(f'a: 1\nb: "x\\u{ord(char):04x}"') == [("yaml.characters", 2, 4, "/b")]
    assert message(f'a: "\\u{ord(char):04x}"') == found
    assert problems(f'"\\u{ord(char):04x}": 1') == [("yaml.characters", 1, 1, f"/{char}")]


@pytest.mark.usefixtures("either_parser")
@pytest.mark.parametrize("char", ["\u2028", "\u2029", "\ufeff", "\ufffe", "\uffff"])
def test_characters_that_readers_treat_differently_are_refused_in_a_file(char: str) -> None:
    assert problems(f"a: x{char}y") == [("yaml.characters", 1, 5, "")]


@pytest.mark.usefixtures("either_parser")
def test_a_key_cannot_hide_behind_a_comment() -> None:
    for end in ("\r", "\x85", "\u2028", "\u2029"):
        assert problems(f"a: 1 # note{end}b: 2\n") == [("yaml.characters", 1, 12, "")]


@pytest.mark.usefixtures("either_parser")
def test_a_carriage_return_in_text_is_a_control_character() -> None:
    assert message('a: "x\\r\\n"') == "control character U+000D is not allowed"
    assert message("a: 1\rb: 2") == "carriage return without a line feed"


@pytest.mark.usefixtures("either_parser")
@pytest.mark.parametrize("text", ['"\\ud800"', '"x\\udfff"', '"\\ud83d\\ude00"', '"\\U0000d800"'])
def test_surrogates_are_refused(text: str) -> None:
    assert problems(f"a:\n  b: {text}") == [("yaml.characters", 2, 6, "/a/b")]


@pytest.mark.usefixtures("either_parser")
def test_harmless_characters_are_text() -> None:
    assert value('a: é😀\u00a0\u200b\ud7ff\nb: "\\u00e9\\_\\t\\n"') == {
        "a": "é😀\u00a0\u200b\ud7ff",
        "b": "é\u00a0\t\n",
    }


@pytest.mark.usefixtures("either_parser")
@pytest.mark.parametrize(
    ("text", "line", "column", "found"),
    [
        ("a: b: c", 1, 5, "`: ` is not expected here"),
        ("é: b: c", 1, 5, "`: ` is not expected here"),
        ("a: 1\n b: 2\n", 2, 3, "`: ` is not expected here"),
        ("a: b\nc\n", 2, 1, "a line that is no `key: value`"),
        ("a: b\nc\nd: 1\n", 2, 1, "a line that is no `key: value`"),
        ("\ta: 1", 1, 1, "a tab where only spaces are allowed"),
        ("a:\n\tb: 1", 2, 1, "a tab where only spaces are allowed"),
        ("a: @b", 1, 4, "text cannot start with this character"),
        ("a: `b`", 1, 4, "text cannot start with this character"),
        ("a: %b", 1, 4, "text cannot start with this character"),
        ('b: 1\na: "x', 2, 4, "quoted text is never closed"),
        ("a: 'x\n---\n'", 1, 4, "quoted text is never closed"),
        ("a: - b", 1, 4, "`- ` is not expected here"),
        ("a: [1, 2", 1, 4, "a bracket or brace is never closed"),
        ("a: {b: 1", 1, 4, "a bracket or brace is never closed"),
        ("a: [1 2: 3}", 1, 11, "a comma or the closing bracket is missing"),
        ("a:\n  b: 1\n c: 2", 3, 2, "this does not fit the lines above"),
        ("a: 1\n- b", 2, 1, "this does not fit the lines above"),
        ('a: "b" c', 1, 8, "text after the end of a value"),
        ("a: 'it's'", 1, 8, "text after the end of a value"),
        ("a: |x\n", 1, 5, "`|` or `>` must end its line"),
        ('a: "\\q"', 1, 6, "unknown escape in double quotes"),
        ('a: "\\xZZ"', 1, 7, "unknown escape in double quotes"),
        ('a: "\\U00110000"', 1, 7, "no such character"),
        ("a: ]", 1, 4, "a value is missing here"),
        ("{a: 1}}", 1, 7, "text after the end of the document"),
        ("a: 1\n... x\n", 2, 5, "text after the end of the document"),
    ],
)
def test_a_syntax_error_has_a_place_and_a_cause(
    text: str, line: int, column: int, found: str
) -> None:
    assert problems(text) == [("yaml.syntax", line, column, "")]
    assert message(text) == found


@pytest.mark.usefixtures("either_parser")
def test_all_problems_are_told_together_in_order() -> None:
    text = "%YAML 1.1\n---\na: yes\nb: [017, !x 1]\na: *y\nc: {d: 1, d: \u202e}\n"
    assert problems(text) == [
        ("yaml.directive", 1, 1, ""),
        ("yaml.ambiguous", 3, 4, "/a"),
        ("yaml.ambiguous", 4, 5, "/b/0"),
        ("yaml.tag", 4, 10, "/b/1"),
        ("yaml.duplicate-key", 5, 1, "/a"),
        ("yaml.alias", 5, 4, "/a"),
        ("yaml.duplicate-key", 6, 11, "/c/d"),
        ("yaml.characters", 6, 14, ""),
    ]


@pytest.mark.usefixtures("either_parser")
def test_what_was_found_before_a_syntax_error_is_told_too() -> None:
    assert problems("a: yes\nb: c: d\n") == [
        ("yaml.ambiguous", 1, 4, "/a"),
        ("yaml.syntax", 2, 5, ""),
    ]


# Places


@pytest.mark.usefixtures("either_parser")
@pytest.mark.parametrize(
    ("path", "key", "at"),
    [
        ((), Span(1, 1, 14, 5), Span(1, 1, 14, 5)),
        (("id",), Span(1, 1, 1, 3), Span(1, 5, 1, 14)),
        (("version",), Span(2, 1, 2, 8), Span(2, 10, 2, 15)),
        (("steps",), Span(3, 1, 3, 6), Span(4, 3, 8, 12)),
        (("steps", 0), Span(4, 5, 6, 44), Span(4, 5, 6, 44)),
        (("steps", 0, "uses"), Span(5, 5, 5, 9), Span(5, 11, 5, 25)),
        (("steps", 0, "input"), Span(6, 5, 6, 10), Span(6, 12, 6, 44)),
        (("steps", 0, "input", "limit"), Span(6, 32, 6, 39), Span(6, 41, 6, 43)),
        (("steps", 1, "id"), Span(8, 5, 8, 7), Span(8, 9, 8, 12)),
        (("notes",), Span(9, 1, 9, 6), Span(9, 8, 12, 1)),
        (("after",), Span(12, 1, 12, 6), Span(12, 1, 12, 6)),
        (("last",), Span(13, 1, 13, 5), Span(13, 7, 14, 5)),
        (("last", 1), Span(14, 3, 14, 4), Span(14, 3, 14, 4)),
    ],
)
def test_keys_and_values_have_places(path: positions.Path, key: Span, at: Span) -> None:
    places = parsed(SKILL).places
    assert (places.key(path), places.value(path)) == (key, at)


@pytest.mark.usefixtures("either_parser")
@pytest.mark.parametrize(
    ("path", "nearest"),
    [
        (("nope",), ()),
        (("steps", 0, "nope"), ("steps", 0)),
        (("steps", 0, "nope", 3, "deeper"), ("steps", 0)),
        (("steps", 7, "id"), ("steps",)),
        (("steps", "0", "id"), ("steps",)),
        (("id", "below"), ("id",)),
        (("after", "below"), ("after",)),
    ],
)
def test_a_path_that_does_not_exist_has_the_place_of_its_nearest_ancestor(
    path: positions.Path, nearest: positions.Path
) -> None:
    places = parsed(SKILL).places
    assert places.key(path) == places.value(path) == places.value(nearest)


@pytest.mark.usefixtures("either_parser")
def test_places_count_characters_not_bytes() -> None:
    places = parsed("é😀: {ü: ß}").places
    assert places.value(("é😀", "ü")) == Span(1, 9, 1, 10)


@pytest.mark.usefixtures("either_parser")
def test_the_first_of_a_repeated_key_has_the_place() -> None:
    assert parsed("a: 1\na: 2").places.value(("a",)) == Span(1, 4, 1, 5)


@pytest.mark.usefixtures("either_parser")
def test_a_key_is_declared_if_the_text_has_it() -> None:
    places = parsed("a:\n  b: 1\n").places
    paths: list[tuple[str, ...]] = [("a",), ("a", "b"), ("a", "c"), ("b",)]
    assert [path for path in paths if places.declares(path)] == [("a",), ("a", "b")]


def test_a_broken_file_has_places_as_far_as_it_can_be_read() -> None:
    places = parsed("a:\n  b: 1\nc: d: e\n").places
    assert places.value(("a", "b")) == Span(2, 6, 2, 7)
    assert places.key(("c",)) == Span(3, 1, 3, 2)


@pytest.mark.parametrize(
    "data", [b"", b"\xff", b" " * 300_000, b"hello", b"- 1", b"[" * 1000, b"? [a]\n: b"]
)
def test_places_answer_in_any_case(data: bytes) -> None:
    places = parsed(data).places
    assert places.value(("a", 0)).line == places.key(("a", 0)).line == 1
    assert YamlPositions("").value(()) == Span(1, 1, 1, 1)


def test_a_pointer_escapes_slash_and_tilde() -> None:
    assert pointer_of(()) == ""
    assert pointer_of(("a/b", 0, "~1", "")) == "/a~1b/0/~01/"


# Files


def test_the_bytes_read_are_the_bytes_parsed(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(b"a: 1\n")
    data, found = read_file(tmp_path / "a.yaml", file="specs/a.yaml")
    assert (data, found.value, found.problems) == (b"a: 1\n", {"a": 1}, [])


def test_problems_carry_the_given_name(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(b"a: yes")
    assert [p.file for p in read_file(tmp_path / "a.yaml", file="specs/a.yaml")[1].problems] == [
        "specs/a.yaml"
    ]


def test_a_file_that_cannot_be_read_is_a_problem(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name, found in [
        ("none", "does not exist"),
        ("", "is a directory, not a regular file"),
        ("pipe", "is a named pipe, not a regular file"),
        ("/dev/zero", "is a device, not a regular file"),
    ]:
        data, result = read_file(tmp_path / name, file="f")
        (problem,) = result.problems
        assert (data, result.value) == (b"", None)
        assert (problem.code, problem.line, problem.column, problem.message) == (
            "yaml.io",
            0,
            0,
            found,
        )


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "a").open("wb") as file:
        file.truncate(1 << 40)
    data, result = read_file(tmp_path / "a", file="f")
    assert (data, [p.code for p in result.problems]) == (b"", ["yaml.size"])


def test_the_yaml_library_is_imported_only_to_parse() -> None:
    program = "import sys, cogcli.base.yaml.reader; print(any(name.startswith('ruamel') for name in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=30
    )
    assert done.stdout == "False\n"


def test_a_machine_without_the_c_parser_reads_the_same() -> None:
    program = (
        "import sys; sys.modules.update(dict.fromkeys(('_ruamel_yaml', '_ruamel_yaml_clibz')))\n"
        "from cogcli.base.yaml.parsers import has_c_parser\n"
        "from cogcli.base.yaml.reader import parse\n"
        "print(has_c_parser(), parse(b'a: [1, yes]', file='f').problems[0].column)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=30
    )
    assert done.stdout == "False 8\n"


# Properties

BITS = [
    "a", "b: ", "k", "- ", "-", ": ", ":", "\n", "\n  ", "\n    ", "\n- ", "{", "}", "[", "]", ", ", '"', "'",
    '"x"', "|\n  t\n", ">\n  t\n   u\n", "# c\n", " #", "? ", "!t ", "&x ", "*x", "%Y\n", "\t", "é", "😀",
    "\\", "\\n", '"\\ud800"', "---\n", "...\n", "~", "1", "yes", "017", "@", "<<: ", "\r\n", "\r",
    "\ufeff", "\u202e", "\0", "c: 1\n", "m: {a: 1}\n", "l:\n  - 1\n",
]  # fmt: skip
texts = st.lists(st.sampled_from(BITS), max_size=12).map("".join)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A good file with a few bytes cut out and others put in."""
    data = SKILL.encode()
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, min(len(data), start + 6)))
        data = data[:start] + draw(st.sampled_from(BITS)).encode() + data[end:]
    return data


@pytest.mark.slow
@examples(400)
@given(st.binary(max_size=60) | texts.map(str.encode) | mutated())
def test_any_bytes_give_a_value_or_problems_with_places(data: bytes) -> None:
    found = parsed(data)
    assert (found.value is None) == bool(found.problems)
    lines = data.decode(errors="replace").split("\n")
    for problem in found.problems:
        assert problem.code.startswith("yaml.")
        assert (problem.line == 0) == (problem.column == 0)
        assert problem.line <= len(lines)
    found.places.value(("steps", 0, "uses"))


def outcome(found: ParsedYaml) -> object:
    return (
        found.value
        if found.value is not None
        else [(p.code, p.line, p.column) for p in found.problems]
    )


@pytest.mark.slow
@examples(300)
@given(texts.map(str.encode) | mutated())
def test_both_parsers_give_the_same_verdict(data: bytes) -> None:
    first = parsed(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "ruamel.yaml.cyaml", None)
        assert repr(parsed(data).value) == repr(first.value)


# Aside from files that are refused either way, at another place.
@pytest.mark.slow
@examples(200)
@given(texts.filter(lambda text: not {"\t", "*", "%"} & set(text) and "..." not in text))
def test_both_parsers_give_the_same_answer(text: str) -> None:
    first = parsed("first: 1\n" + text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "ruamel.yaml.cyaml", None)
        second = parsed("first: 1\n" + text)
        assert outcome(second) == outcome(first)
        for path in ((), ("first",), ("a",), ("m", "a"), ("l", 0)):
            if first.value is not None:
                assert second.places.value(path) == first.places.value(path)


plain_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | plain_text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(plain_text, inner, max_size=4),
    max_leaves=15,
)


@pytest.mark.sampled(6)
@pytest.mark.slow
@examples(200)
@given(
    st.dictionaries(plain_text, json_values, max_size=4), st.sampled_from([None, 1]), st.booleans()
)
def test_json_that_is_accepted_has_the_values_of_a_json_parser(
    root: dict[str, Any], indent: int | None, ascii_only: bool
) -> None:
    text = json.dumps(root, indent=indent, ensure_ascii=ascii_only)
    found = parsed(text)
    if found.value is not None:
        assert repr(found.value) == repr(json.loads(text))
    else:
        assert {p.code for p in found.problems} == {"yaml.characters"}


@pytest.mark.parametrize("value", ["${inputs.text}", "Dear ${inputs.text}!", "${ inputs.text }"])
@pytest.mark.parametrize("frame", ["a: {text: #}", "a:\n  - b: {text: #, c: 1}", "a: [#]"])
def test_a_reference_filled_in_without_quotes_is_told_with_the_right_form(
    frame: str, value: str
) -> None:
    (problem,) = parse(frame.replace("#", value).encode(), file="f").problems
    assert (problem.code, problem.message) == (
        "yaml.syntax",
        "`${inputs.text}` cannot stand here without quotes",
    )
    assert problem.hint == 'write inputs.text, or {$text: "... ${inputs.text}"} for a text with it'


def test_a_variable_without_quotes_is_told_to_be_quoted() -> None:
    (problem,) = parse(b"headers: {X-Key: ${SHOP_KEY}}", file="f").problems
    assert problem.hint == "add it, or quote the text"
