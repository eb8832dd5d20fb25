"""JSON Schema behind one facade: both engines give the same verdicts, places and texts, and prove containment."""

from __future__ import annotations

import re
import sys
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples
from support.growth import assert_linear
from support.sources import PACKAGE, modules, said

from cogcli.base.errors import UnusableEnvironment
from cogcli.base.schema import engine_choice
from cogcli.base.schema.candidates import candidates
from cogcli.base.schema.containment import CoverResult, covers, disjoint
from cogcli.base.schema.engine_choice import PYTHON, RUST, engine
from cogcli.base.schema.patterns import PYTHON_TEXT, pattern_of, refusal, render_pattern
from cogcli.base.schema.regex_parser import parse_regex
from cogcli.base.schema.regex_work import max_steps, trim_ends
from cogcli.base.schema.validator import UNUSABLE, errors, invalid

pytestmark = pytest.mark.sampled(3)

ENGINES = (PYTHON, RUST)


@pytest.fixture(params=ENGINES)
def either(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    name: str = request.param
    monkeypatch.setenv("COGCLI_SCHEMA_ENGINE", name)
    return name


def on(name: str, schema: Any, value: Any) -> list[tuple[str, str]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COGCLI_SCHEMA_ENGINE", name)
        return errors(schema, value)


TOLD: list[tuple[Any, Any, list[tuple[str, str]]]] = [
    ({"type": ["string", "null"]}, 1, [("", "expected null or string, found number 1")]),
    ({"enum": ["a", 1]}, True, [("", 'expected one of text "a", number 1, found boolean true')]),
    ({"const": 1}, 1.0, []),
    ({"minimum": 3.0}, 2, [("", "expected at least 3, found number 2")]),
    ({"exclusiveMaximum": 2}, 2, [("", "expected less than 2, found number 2")]),
    ({"multipleOf": 0.1}, 0.3, []),
    ({"multipleOf": 0.01}, 19.995, [("", "expected a multiple of 0.01, found number 19.995")]),
    ({"minLength": 2}, "😀", [("", "expected at least 2 characters, found 1")]),
    ({"maxItems": 1}, [1, 2], [("", "expected at most 1 items, found 2")]),
    ({"pattern": "^a$"}, "a\n", [("", 'expected text matching `^a$`, found text "a\n"')]),
    ({"required": ["b", "a"]}, {}, [("", "`a` is missing"), ("", "`b` is missing")]),
    ({"dependentRequired": {"a": ["b"]}}, {"a": 1}, [("", "`b` is missing")]),
    (
        {"required": ["a"], "properties": {}, "additionalProperties": False},
        {"a": 1},
        [("", "unknown: `a`")],
    ),
    ({"additionalProperties": False}, {"b": 1, "a": 1}, [("", "unknown: `a`, `b`")]),
    ({"properties": {"a": False}}, {"a": 1}, [("a", "number 1 is excluded")]),
    ({"items": False, "prefixItems": [True]}, [1, 2], [("1", "number 2 is excluded")]),
    (
        {
            "additionalProperties": False,
            "properties": {"a": True},
            "patternProperties": {r"^\d": True},
        },
        {"z": 1, "b": 1, "1": 1, "a": 1},
        [("", "unknown: `b`, `z`")],
    ),
    ({"unevaluatedProperties": False}, {"a": 1}, [("", "has keys that nothing allows")]),
    ({"unevaluatedItems": False}, [1], [("", "has items that nothing allows")]),
    (
        {"propertyNames": {"maxLength": 1, "pattern": "z"}},
        {"ab": 1},
        [("", "key `ab` is not allowed")],
    ),
    (
        {"contains": {"type": "string"}, "maxContains": 1},
        ["a", "b"],
        [("", "holds too few or too many of the items that are asked for")],
    ),
    ({"uniqueItems": True}, [1, True], []),
    ({"uniqueItems": True}, [1, 1.0], [("", "holds an item twice")]),
    ({"anyOf": [{"type": "string"}, False]}, 1, [("", "number 1 fits none of the alternatives")]),
    ({"oneOf": [{"type": "null"}, False]}, 1, [("", "number 1 fits none of the alternatives")]),
    ({"oneOf": [True, True]}, 1, [("", "number 1 fits more than one of the alternatives")]),
    (
        {"if": True, "then": {"minLength": 2}},
        "a",
        [("", "expected at least 2 characters, found 1")],
    ),
    ({"not": {"type": "string"}}, "a", [("", 'text "a" is excluded')]),
    (False, 1, [("", "number 1 is excluded")]),
    ({"format": "date"}, "no date", []),
    (
        {"items": {"$ref": "#/$defs/n"}, "$defs": {"n": {"type": "integer"}}},
        ["a", *[1] * 9, "b"],
        [("0", 'expected integer, found text "a"'), ("10", 'expected integer, found text "b"')],
    ),
    ({"pattern": "(?=a)b"}, "c", []),  # refused, so not applied
]


@pytest.mark.parametrize(("schema", "value", "told"), TOLD, ids=str)
def test_both_engines_say_the_same(
    either: str, schema: Any, value: Any, told: list[tuple[str, str]]
) -> None:
    assert errors(schema, value) == told


def test_at_most_twenty_are_told_the_first_by_place(either: str) -> None:
    found = errors({"items": {"type": "string"}}, list(range(300)))
    assert [place for place, _ in found] == [str(index) for index in range(20)]


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "http://127.0.0.1:9/schema"},
        {"$ref": "other.json"},
        {"$ref": "https://json-schema.org/draft/2020-12/schema"},
        {"$ref": "#/nowhere"},
        {"$ref": "#"},
        {"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}]}}},
        {"type": "strin"},
        {"properties": []},
        {"items": 1},
        {"minLength": "1"},
    ],
    ids=str,
)
def test_a_schema_that_cannot_be_applied_is_broken_by_every_value(either: str, schema: Any) -> None:
    assert errors(schema, "x") == [("", UNUSABLE)]
    assert (
        covers(schema, {"type": "string"}).verdict
        == covers({"type": "string"}, schema).verdict
        == "unknown"
    )
    assert not disjoint(schema, {"type": "string"})


def test_a_schema_is_held_against_its_dialect(either: str) -> None:
    assert invalid({"type": 5, "properties": {"a": 1}, "minLength": -1}) == [
        (("minLength",), "expected at least 0, found number -1"),
        (("properties", "a"), "expected boolean or object, found number 1"),
        (("type",), "number 5 fits none of the alternatives"),
    ]
    assert invalid({"type": "object", "properties": {"a": {"$ref": "#"}}}) == []


@pytest.mark.parametrize("text", ["jsonschema-rust", "JSONSCHEMA"])
def test_an_unknown_engine_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("COGCLI_SCHEMA_ENGINE", text)
    with pytest.raises(UnusableEnvironment) as caught:
        engine()
    assert caught.value.code == "config.key"


def test_the_fast_engine_is_taken_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COGCLI_SCHEMA_ENGINE", raising=False)
    assert engine() == RUST


def test_without_a_wheel_the_other_engine_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COGCLI_SCHEMA_ENGINE", raising=False)
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    engine_choice._choose_engine.cache_clear()
    try:
        assert engine() == PYTHON
        assert engine_choice.engine_key() == ":0"
        assert refusal("^(a|a)*$")
        assert errors({"pattern": "^a+$"}, "b")
    finally:
        engine_choice._choose_engine.cache_clear()


def test_only_the_contracts_import_a_schema_library() -> None:
    libraries = {"jsonschema", "jsonschema_rs", "referencing"}
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in modules()
        if {name.partition(".")[0] for name in said(path).modules} & libraries
    }
    assert {name for name in found if not name.startswith("official/")} == {
        "base/schema/containment.py",
        "base/schema/engines.py",
        "base/schema/patterns.py",
        "base/schema/engine_choice.py",
    }


TEXTS = (
    "",
    "a",
    "ab",
    "b",
    "1",
    "٣",
    "a\n",
    "é",
    "\u00a0",
    "\x85",
    "\ufeff",
    "_",
    "-",
    "]",
    "\\",
    "{a}",
    " ",
    "\u2028",
)
PATTERNS = (
    r"\d", r"^\w+$", r"\W", r"\s", r"\S", r"[\s\d]", r"[^\D]", ".", "^.$", "a|b$", "(a|b){2}", "[^a]", r"[\]\\-]", "^$",
    r"\x41", "é", "a??b", r"\{a\}", "[a-f0-9]{1,3}", r"\u00e9", "(?:ab)?c*", r"[^\s]", "\\.", "[+-]",
)  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns_mean_the_same_to_both(pattern: str) -> None:
    found = pattern_of(pattern)
    assert found is not None
    for text in TEXTS:
        schema = {"pattern": pattern}
        assert on(PYTHON, schema, text) == on(RUST, schema, text), text


def test_patterns_follow_ecma(either: str) -> None:
    assert errors({"pattern": r"\d"}, "٣")
    assert errors({"pattern": "."}, "\u2028")
    assert not errors({"pattern": r"\s"}, "\ufeff")


@pytest.mark.parametrize("pattern", [r"\bfoo", "(?i)Foo", "(?i:F)oo", "(?P<name>foo)", "(?s)^fo."])
def test_what_ecma_writes_otherwise_is_applied_all_the_same(either: str, pattern: str) -> None:
    assert not errors({"pattern": pattern}, "foo")
    assert errors({"pattern": pattern}, "bar")


@pytest.mark.parametrize(
    "pattern", ["(?=a)b", r"(a)\1", "(a{300}){300}", "(", r"\p{L}", "(?m)^a", "a" * 10_001]
)
def test_patterns_that_may_be_slow_or_are_none_are_refused(either: str, pattern: str) -> None:
    assert pattern_of(pattern) is None
    assert refusal(pattern)


SLOW = [
    ("^(a|a)*$", "a" * 5000 + "b"), ("(a|a)*b", "a" * 5000), ("a*" * 20 + "b", "a" * 100_000),
    ("^(a+)+$", "a" * 5000 + "!"), (r"^(\w+\s?)*!$", "a " * 5000), ("(.*,)*x", "," * 20_000),
    ("[ab]*c", "ab" * 50_000), ("(x+x+)+y", "x" * 20_000),
]  # fmt: skip


@pytest.mark.parametrize(("pattern", "text"), SLOW)
def test_no_pattern_takes_more_than_linear_time(either: str, pattern: str, text: str) -> None:
    def judge(size: int) -> tuple[Any, Any]:
        end = text[-size:]
        found = errors({"pattern": pattern, "patternProperties": {pattern: False}}, end)
        named = errors(
            {"patternProperties": {pattern: True}, "additionalProperties": False}, {end: 1}
        )
        return found, named

    assert_linear(judge, len(text))
    found, named = judge(len(text))
    applied = not refusal(pattern)
    assert (bool(found), bool(named)) == (applied, True)
    assert applied or either == PYTHON


FINE = [
    r"^[a-z0-9]+(-[a-z0-9]+)*$", "^[a-z][a-z0-9-]{0,62}[a-z0-9]$", r"^\d{4}-\d\d$", r"\.json$", "^(en|de)$", "[0-9]+",
    r"^.*\.json$", "^.{1,4096}$", "^(foo|bar)+$", "^https?://[^/]+/", "^[A-Za-z0-9+/]*={0,2}$", r"^(([a-z]+)?,)*$",
]  # fmt: skip


@pytest.mark.parametrize("pattern", FINE)
def test_common_patterns_are_run_by_either_engine(either: str, pattern: str) -> None:
    assert pattern_of(pattern) is not None


CHARACTERS = st.sampled_from(["a", "b", "c", "[ab]", "[^a]", "."])
EXPRESSIONS = st.recursive(
    CHARACTERS,
    lambda inner: (
        st.tuples(inner, inner).map("".join)
        | st.tuples(inner, inner).map(lambda two: f"(?:{two[0]}|{two[1]})")
        | st.tuples(
            inner, st.sampled_from(["*", "+", "?", "{0,3}", "{2}", "{2,}", "*?"])
        ).map(lambda two: f"(?:{two[0]}){two[1]}")
    ),
    max_leaves=6,
)  # fmt: skip
WHOLE = st.tuples(st.sampled_from(["^", ""]), EXPRESSIONS, st.sampled_from(["$", ""])).map("".join)


@pytest.mark.slow
@examples(200)
@given(pattern=WHOLE, text=st.text("abc", max_size=8))
def test_a_pattern_written_anew_finds_what_the_author_wrote(pattern: str, text: str) -> None:
    found = bool(re.search(pattern.replace("$", r"\Z"), text))
    for name in ENGINES:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("COGCLI_SCHEMA_ENGINE", name)
            applied = pattern_of(pattern) is not None
        assert bool(on(name, {"pattern": pattern}, text)) is (applied and not found), name


def search(pattern: re.Pattern[str], piece: str, end: str, count: int) -> None:
    pattern.search(piece * count + end)


@examples(150, deadline=None)
@given(pattern=WHOLE)
def test_what_is_shown_to_be_linear_is_so_where_the_engine_goes_back(pattern: str) -> None:
    steps = max_steps(trim_ends(parse_regex(pattern)))
    if steps is None:
        return
    compiled = re.compile(render_pattern(trim_ends(parse_regex(pattern)), PYTHON_TEXT))
    for piece in ("a", "ab", "aab", "b", "abb", "c"):
        for end in ("", "c", "!"):
            assert_linear(partial(search, compiled, piece, end), 2000)


def test_two_patterns_of_one_meaning_are_both_applied(either: str) -> None:
    schema = {
        "patternProperties": {
            r"\d": {"type": "string"},
            "[0-9]": {"minLength": 2},
            "a+": {"maxLength": 1},
        }
    }
    assert {place for place, _ in errors(schema, {"1": 2, "2": "x", "aa": "xx"})} == {
        "1",
        "2",
        "aa",
    }
    assert errors({"allOf": [{"pattern": "b+"}, {"pattern": "b"}]}, "a") == [
        ("", 'expected text matching `b+`, found text "a"'),
        ("", 'expected text matching `b`, found text "a"'),
    ]


LARGE: list[tuple[str, Any, Any]] = [
    ("a pattern of many ways", {"pattern": "(a{1,100}){1,100}c"}, "a" * 100_000),
    ("many choices", {"items": {"enum": [{"a": n} for n in range(5000)]}}, [{"a": -1}] * 5000),
    ("many texts", {"items": {"enum": [str(n) for n in range(10_000)]}}, ["x"] * 10_000),
    ("many schemas", {"items": {"allOf": [{"minimum": -n} for n in range(9000)]}}, [1] * 10_000),
    ("many alternatives", {"items": {"anyOf": [{"type": "string"}] * 1000}}, [1] * 10_000),
    ("many keys", {"items": {"required": [str(n) for n in range(10_000)]}}, [{}] * 10_000),
    ("many items", {"uniqueItems": True}, [{"a": n} for n in range(20_000)]),
]


@pytest.mark.parametrize(
    ("schema", "value"), [each[1:] for each in LARGE], ids=[each[0] for each in LARGE]
)
def test_a_check_takes_time_that_grows_with_the_value_alone(schema: Any, value: Any) -> None:
    assert_linear(lambda size: on(RUST, schema, value[:size]), len(value))
    found = on(RUST, schema, value)
    assert bool(found) is ("uniqueItems" not in schema)


@pytest.mark.parametrize(
    ("items", "unique"),
    [
        ([{"a": n, "b": [n]} for n in range(20_000)], True), ([[n, {}] for n in range(20_000)], True),
        ([1, True, "1", [1], [True], {"a": 1}, {"a": True}, None, [], {}], True),
        ([{"a": 1, "b": [2.0]}, {"b": [2], "a": 1.0}], False), ([[], []], False), ([0, False, 0.0], False),
    ],
    ids=range(6),
)  # fmt: skip
def test_items_are_told_apart_soon(either: str, items: list[Any], unique: bool) -> None:
    assert_linear(lambda size: errors({"uniqueItems": True}, items[:size]), len(items))
    assert (errors({"uniqueItems": True}, items) == []) is unique


def test_of_a_large_value_the_first_breach_is_told(either: str) -> None:
    schema = {"items": {"enum": [str(n) for n in range(8000)]}}
    assert [place for place, _ in errors(schema, ["1"] * 100 + ["x"] * 100)] == ["100"]


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.sampled_from([0.5, 1.0, -1.5, 0.3]),
    st.sampled_from(["", "a", "ab"]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=6,
)
TYPES = st.sampled_from(["string", "number", "integer", "boolean", "array", "object", "null"])
SMALL = st.integers(0, 3)


def keywords(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries(
        {},
        optional={
            "type": TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True),
            "enum": st.lists(SCALARS, min_size=1, max_size=3),
            "minimum": st.sampled_from([-1, 0, 0.5, 2]),
            "exclusiveMaximum": st.integers(-1, 3),
            "multipleOf": st.sampled_from([1, 2, 0.1, 0.5]),
            "minLength": SMALL,
            "maxLength": SMALL,
            "pattern": st.sampled_from(["^a", "b$", "^$", "."]),
            "items": inner,
            "prefixItems": st.lists(inner, min_size=1, max_size=2),
            "contains": inner,
            "minItems": SMALL,
            "uniqueItems": st.booleans(),
            "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
            "required": st.lists(st.sampled_from("abc"), max_size=2, unique=True),
            "additionalProperties": inner,
            "propertyNames": inner,
            "allOf": st.lists(inner, min_size=1, max_size=2),
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "oneOf": st.lists(inner, min_size=1, max_size=2),
            "not": inner,
        },
    )


SCHEMAS = st.recursive(st.booleans() | keywords(st.booleans()), keywords, max_leaves=4)


@pytest.mark.slow
@examples(150)
@given(schema=SCHEMAS, value=VALUES)
def test_engines_agree_on_any_schema_and_value(schema: Any, value: Any) -> None:
    assert on(PYTHON, schema, value) == on(RUST, schema, value)


def verdict(name: str, wide: Any, narrow: Any) -> tuple[CoverResult, bool]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COGCLI_SCHEMA_ENGINE", name)
        return covers(wide, narrow), disjoint(wide, narrow)


@pytest.mark.sampled(12)
@pytest.mark.slow
@pytest.mark.parametrize("name", ENGINES)
@examples(120)
@given(wide=SCHEMAS, narrow=SCHEMAS, values=st.lists(VALUES, max_size=8))
def test_verdicts_are_never_contradicted(
    name: str, wide: Any, narrow: Any, values: list[Any]
) -> None:
    found, apart = verdict(name, wide, narrow)
    if found.verdict == "no":
        assert not errors(narrow, found.example)
        assert errors(wide, found.example)
    for value in [*values, *candidates(narrow), *candidates(wide)]:
        if not errors(narrow, value):
            assert found.verdict != "yes" or not errors(wide, value)
            assert not apart or errors(wide, value)


PLAIN: list[tuple[Any, Any, str]] = [
    ({"type": "string"}, {"type": "string"}, "yes"),
    ({"type": "number"}, {"type": "integer"}, "yes"),
    ({"type": "string"}, {"type": "string", "minLength": 1}, "yes"),
    (True, {"type": "object"}, "yes"),
    ({}, {"minLength": 4}, "yes"),
    ({"enum": ["a", "b"]}, {"enum": ["a"]}, "yes"),
    ({"enum": ["a"]}, {"enum": ["a", "b"]}, "no"),
    ({"minLength": 1}, {"const": ""}, "no"),
    ({"type": "string"}, {"type": "object"}, "no"),
    ({"type": "string", "pattern": "(a+)+"}, {"type": "string"}, "unknown"),
    ({"type": "string", "minLength": 1}, True, "unknown"),
]


@pytest.mark.parametrize(("wide", "narrow", "said"), PLAIN, ids=str)
def test_what_is_plain_is_told_without_the_fast_engine(wide: Any, narrow: Any, said: str) -> None:
    assert verdict(PYTHON, wide, narrow)[0].verdict == said


PROVED: list[tuple[Any, Any, str, Any]] = [
    ({"type": "string", "minLength": 1}, {"type": "string"}, "no", ""),
    ({"type": "integer"}, {"type": "number"}, "no", 0.5),
    ({"anyOf": [{"type": "string"}, {"type": "null"}]}, {"type": "string"}, "yes", None),
    ({"type": "string"}, {"type": ["string", "null"]}, "no", None),
    (
        {"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}},
        {
            "type": "object",
            "required": ["a", "b"],
            "properties": {"a": {"type": "string", "maxLength": 3}},
        },
        "yes",
        None,
    ),
    ({"type": "object", "required": ["a"]}, {"type": "object"}, "no", {}),
]


@pytest.mark.parametrize(("wide", "narrow", "said", "example"), PROVED, ids=str)
def test_the_fast_engine_proves_containment(
    wide: Any, narrow: Any, said: str, example: Any
) -> None:
    assert verdict(RUST, wide, narrow)[0] == CoverResult(said, example)  # type: ignore[arg-type]


def test_bounds_that_exclude_each_other_have_nothing_in_common() -> None:
    assert verdict(RUST, {"type": "string", "minLength": 5}, {"type": "string", "maxLength": 2})[1]
    assert not verdict(
        RUST, {"type": "string", "minLength": 2}, {"type": "string", "maxLength": 2}
    )[1]


def test_a_schema_too_large_to_reason_about_is_not_known() -> None:
    wide = {"enum": ["x" * 1000] * 70}
    assert covers(wide, {"enum": ["x" * 1000] * 69}).verdict == "unknown"
    assert covers(wide, wide).verdict == "yes"


TREE: dict[str, Any] = {
    "type": "object",
    "properties": {"next": {"$ref": "#/$defs/T"}, "v": {"type": "string"}},
}
REFERRED: dict[str, Any] = {"$ref": "#/$defs/T", "$defs": {"T": TREE}}
RENAMED: dict[str, Any] = {"v": {"type": "string"}, "next": {"$ref": "#/$defs/1.T"}}
INLINED: dict[str, Any] = {
    "type": "object",
    "properties": RENAMED,
    "$defs": {"1.T": {"type": "object", "properties": RENAMED}},
}
NAMED: dict[str, Any] = {"type": "object", "required": ["name"]}
LARGE: dict[str, Any] = {
    "type": "object",
    "properties": {f"property-{n}": {"type": "string"} for n in range(3000)},
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("wide", "narrow", "verdict"),
    [
        (REFERRED, INLINED, "yes"),
        (INLINED, REFERRED, "yes"),
        (
            {"anyOf": [{"$ref": "#/$defs/T"}, {"type": "null"}], "$defs": {"T": TREE}},
            INLINED,
            "yes",
        ),
        ({**REFERRED, "minProperties": 1}, INLINED, "no"),
        (REFERRED, {**INLINED, "properties": {**RENAMED, "v": {"type": "number"}}}, "no"),
        (
            {"properties": {"$defs": {"type": "string"}}},
            {"properties": {"$defs": {"type": "number"}}},
            "no",
        ),
        (
            {"properties": {"$ref": {"type": "string"}}},
            {"properties": {"$ref": {"type": "number"}}},
            "no",
        ),
        ({"type": "object"}, LARGE, "yes"),
        ({"type": "array"}, LARGE, "unknown"),
        (LARGE, LARGE, "yes"),
        (LARGE, {**LARGE, "minProperties": 1}, "unknown"),
        ({"type": ["object"]}, {"type": "object"}, "yes"),
        ({"type": ["string", "null"]}, {"type": ["null", "string"]}, "yes"),
        ({"type": "object", "allOf": [NAMED]}, {"allOf": [NAMED]}, "yes"),
        ({"allOf": [NAMED]}, {"type": "object", "allOf": [NAMED]}, "yes"),
    ],
)
def test_schemas_that_read_the_same_cover_each_other(
    either: str, wide: Any, narrow: Any, verdict: str
) -> None:
    if verdict != "no" or either == RUST:
        assert covers(wide, narrow).verdict == verdict
    else:
        assert covers(wide, narrow).verdict in ("no", "unknown")
