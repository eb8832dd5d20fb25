"""The strict JSON parser."""

from __future__ import annotations

import contextlib
import json
import math
import sys
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples

from cogcli.base.json_parser import JsonParser
from cogcli.base.strict_json import InvalidJson, _build_fault, _decode_utf8, loads

if TYPE_CHECKING:
    from collections.abc import Callable


def refusal(data: bytes | str, **limits: int) -> InvalidJson:
    with pytest.raises(InvalidJson) as caught:
        loads(data, **limits)
    return caught.value


def place(data: bytes | str) -> tuple[str, int, int]:
    refused = refusal(data)
    return refused.code, refused.line, refused.column


# What is accepted


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{}", {}),
        ("[]", []),
        ("null", None),
        ("true", True),
        ("false", False),
        ('""', ""),
        ("0", 0),
        ("-0", 0),
        ("-12", -12),
        (" \t\r\n[ 1 , 2 ] \n", [1, 2]),
        ('{"b":1,"a":[{"c":null}]}', {"b": 1, "a": [{"c": None}]}),
        ('"\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9"', '"\\/\b\f\n\r\té'),
        ('"\\ud83d\\ude00"', "😀"),
        ('"\\u0000"', "\0"),
        ('"\x7f\u2028"', "\x7f\u2028"),
        ('{"__proto__":{"x":1},"constructor":1}', {"__proto__": {"x": 1}, "constructor": 1}),
        ('{"a":"b\\":"}', {"a": 'b":'}),
        ('{"a":":c"}', {"a": ":c"}),
        ('{"a\\"":1,"":2}', {'a"': 1, "": 2}),
    ],
)
def test_json_has_its_value(text: str, value: object) -> None:
    assert loads(text) == value
    assert loads(text.encode()) == value


def test_keys_keep_their_order() -> None:
    assert list(loads('{"z":1,"a":2,"m":3}')) == ["z", "a", "m"]


@pytest.mark.parametrize("text", ["3.0", "-0.0", "1e2", "1E+2", "0.1e-7", "1e300", "1e-400"])
def test_a_number_with_a_point_or_exponent_stays_a_float(text: str) -> None:
    value = loads(text)
    assert isinstance(value, float)
    assert value == float(text)
    assert math.copysign(1, value) == math.copysign(1, float(text))


@pytest.mark.parametrize("number", [2**53 - 1, -(2**53 - 1), 0, 10**15])
def test_an_integer_within_two_to_the_53_is_exact(number: int) -> None:
    value = loads(f"[{number}]")[0]
    assert (value, type(value)) == (number, int)


def test_one_byte_order_mark_is_tolerated() -> None:
    assert loads(b'\xef\xbb\xbf{"a":1}') == {"a": 1}
    assert place(b"\xef\xbb\xbf\xef\xbb\xbf{}") == ("json.syntax", 1, 1)
    assert place(b'\xef\xbb\xbf{"a":}') == ("json.syntax", 1, 6)


# Limits


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_a_hundred_levels_are_the_deepest(opening: str, closing: str) -> None:
    inner = "" if opening == "[" else "1"
    loads(opening * 100 + inner + closing * 100)
    refused = refusal(opening * 101 + inner + closing * 101)
    assert (refused.code, refused.message) == ("json.depth", "nesting deeper than 100")
    assert (refused.line, refused.column) == (1, 100 * len(opening) + 1)


@pytest.mark.parametrize("opening", ["[", '{"a":', '[{"a":'])
def test_a_hundred_thousand_levels_are_refused_without_a_crash(opening: str) -> None:
    assert refusal(opening * 100_000).code == "json.depth"


def test_scalars_in_the_deepest_container_are_no_level() -> None:
    assert refusal("[[[1]]]", max_depth=2).code == "json.depth"
    assert loads('[[1,"a"],[{}]]', max_depth=3) == [[1, "a"], [{}]]
    assert loads("[[1]]", max_depth=2) == [[1]]


def test_fifty_thousand_values_are_the_most() -> None:
    assert len(loads(f"[{'0,' * 49_998}0]")) == 49_999
    refused = refusal(f"[{'0,' * 49_999}0]")
    assert (refused.code, refused.message) == ("json.nodes", "more than 50,000 values")
    assert (refused.line, refused.column) == (1, 100_000)


def test_keys_are_no_values_of_their_own() -> None:
    def object_of(count: int) -> str:
        return "{" + ",".join(f'"k{i}":0' for i in range(count)) + "}"

    assert len(loads(object_of(49_999))) == 49_999
    assert refusal(object_of(50_000)).code == "json.nodes"


def test_commas_inside_text_are_no_values() -> None:
    text = "," * 60_000
    assert loads(json.dumps([text, "[{" * 30_000])) == [text, "[{" * 30_000]


def test_eight_mebibytes_are_the_most() -> None:
    most = 8 * 2**20
    assert len(loads(b'"' + b"x" * (most - 2) + b'"')) == most - 2
    refused = refusal(b'"' + b"x" * (most - 1) + b'"')
    assert refused.code == "json.size"
    assert refused.message == "8,388,609 bytes, at most 8,388,608 are allowed"
    assert (refused.line, refused.column) == (0, 0)


def test_the_size_is_that_of_the_bytes_also_for_text() -> None:
    assert loads('"é"', max_bytes=4) == "é"
    assert refusal('"éé"', max_bytes=5).code == "json.size"


def test_smaller_limits_hold_where_asked_for() -> None:
    assert refusal("[1,2]", max_nodes=2).code == "json.nodes"
    assert loads("[1,2]", max_nodes=3) == [1, 2]


# What is refused, and where


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity", "nan", "inf", "+Infinity"])
def test_what_is_no_number_is_refused(word: str) -> None:
    refused = refusal(f'{{"x": {word}}}')
    assert (refused.code, refused.line, refused.column) == ("json.number", 1, 7)
    assert refused.message == f"`{word}` is not a JSON number"


@pytest.mark.parametrize("number", ["1e400", "-1e400", "1" + "0" * 400 + ".5"])
def test_a_float_that_overflows_is_refused(number: str) -> None:
    refused = refusal(f"[{number}]")
    assert (refused.code, refused.column, refused.hint) == ("json.number", 2, "send it as a string")


@pytest.mark.parametrize(
    "number",
    [2**53, -(2**53), 2**53 + 1, 2**63, 2**64, -(2**64), 10**30, "9" * 5000, "-" + "9" * 5000],
)
def test_an_integer_beyond_two_to_the_53_is_refused(number: object) -> None:
    refused = refusal(f'{{"x":\n  {number}}}')
    assert (refused.code, refused.line, refused.column) == ("json.number", 2, 3)
    assert refused.hint == "send it as a string"
    assert len(refused.message) < 80


@pytest.mark.parametrize("number", [2**53, -(2**63), 2**64, 10**30, "9" * 5000])
def test_a_wide_integer_is_the_nearest_float_where_asked_for(number: object) -> None:
    wide = loads(f'{{"x": {number}}}', wide_integers=True)["x"]
    assert isinstance(wide, float)
    assert math.isfinite(wide)
    key_like = loads(f'{{"x": {number}, "y": "\\"a\\": 1"}}', wide_integers=True)
    assert key_like == {"x": wide, "y": '"a": 1'}
    begins_with_colon = loads(f'{{"x": {number}, "y": ": 1"}}', wide_integers=True)
    assert begins_with_colon == {"x": wide, "y": ": 1"}


@pytest.mark.parametrize(
    "text", ["01", "-01", "+1", ".5", "1.", "1.e1", "1e", "1e+", "-", "0x1F", "1_000", "--1"]
)
def test_a_number_that_is_no_json_number_is_a_syntax_error(text: str) -> None:
    assert place(text) == ("json.syntax", 1, 1)
    assert refusal(text).message == f"`{text}` is not a JSON number"


@pytest.mark.parametrize(
    "text",
    [
        '{"a":1,"a":2}',
        '{"a" :1, "a"\t:2}',
        '{"a":1,"\\u0061":2}',
        '[{"b":{"a":1,"a":1}}]',
        '{"a":{},"a":":"}',
        '{"a":"\\":","a":1}',
        '{"a":"\\\\","a":1}',
        '{"\\\\":":","a":1,"a":"\\\\"}',
    ],
)
def test_a_repeated_key_is_refused(text: str) -> None:
    refused = refusal(text)
    assert (refused.code, refused.message) == ("json.duplicate-key", "key `a` repeated")


def test_a_repeated_key_is_placed_at_its_second_occurrence() -> None:
    assert place('{"é😀": 1,\n  "b": 2, "é😀": 3}') == ("json.duplicate-key", 2, 11)


@pytest.mark.parametrize(
    "text", ['"\\ud800"', '"\\udc00"', '"\\ude00\\ud83d"', '["a\\ud83dz"]', '{"\\ud800":1}']
)
def test_half_a_surrogate_pair_is_refused(text: str) -> None:
    assert refusal(text).code == "json.surrogate"


def test_half_a_surrogate_pair_in_given_text_is_refused() -> None:
    assert place('["a",\n "\ud800"]') == ("json.surrogate", 2, 3)


@pytest.mark.parametrize("text", ["", " ", "\n\t\r ", "\ufeff"])
def test_nothing_is_refused_as_empty(text: str) -> None:
    assert refusal(text).code == "json.empty"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_sixteen_bit_text_is_named(encoding: str) -> None:
    refused = refusal('{"a":1}'.encode(encoding))
    assert (refused.code, refused.message) == (
        "json.encoding",
        "the text is UTF-16, expected UTF-8",
    )


@pytest.mark.parametrize(
    "bad", [b"\xe9", b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82"]
)
def test_bytes_that_are_no_utf_8_are_refused_at_their_place(bad: bytes) -> None:
    assert place('["é",\n "'.encode() + bad + b'"]') == ("json.encoding", 2, 3)


@pytest.mark.parametrize(
    ("text", "line", "column", "message", "hint"),
    [
        ('{"a":1,}', 1, 7, "trailing comma", "remove the comma before the closing bracket"),
        ("[1,\n 2,\n]", 2, 3, "trailing comma", "remove the comma before the closing bracket"),
        ("{'a':1}", 1, 2, "single quotes, JSON has only double quotes", 'write "text" in double quotes'),
        ("'{\"a\":1}'", 1, 1, "single quotes, JSON has only double quotes", 'write "text" in double quotes'),
        ("{\"a\":'b'}", 1, 6, "single quotes, JSON has only double quotes", 'write "text" in double quotes'),
        ("{“a”:1}", 1, 2, "smart quote “, JSON has only straight ones", 'write "text" in straight quotes'),
        ('{"a":”b“}', 1, 6, "smart quote ”, JSON has only straight ones", 'write "text" in straight quotes'),
        ('{"a":True}', 1, 6, "`True` is Python, not JSON", "write true"),
        ("[False]", 1, 2, "`False` is Python, not JSON", "write false"),
        ("[None]", 1, 2, "`None` is Python, not JSON", "write null"),
        ("{text:hi}", 1, 2, "your shell removed the double quotes (PowerShell does)", "use -p text=hi"),
        ("{ a: b c, d: 3 }", 1, 3, "your shell removed the double quotes (PowerShell does)", 'use -p "a=b c"'),
        ("{a:{b:1}}", 1, 2, "your shell removed the double quotes (PowerShell does)", "use -p a=VALUE"),
        ('{text: "hi"}', 1, 2, "key `text` without double quotes", 'write "text"'),
        ('{"text": hi}', 1, 10, "text `hi` without double quotes", 'write "hi"'),
        ("notes.json", 1, 1, "a file name, not JSON", "use --input-file notes.json"),
        ("./a/notes.json\n", 1, 1, "a file name, not JSON", "use --input-file ./a/notes.json"),
        ('{"a":1} trailing', 1, 9, "`trailing` after the end of the JSON value", "remove it"),
        ('{"a":1}\n}', 2, 1, "`}` after the end of the JSON value", "remove it"),
        ('{"a":1}\n{"a":2}\n', 2, 1, "a second JSON value after the first", "send one value, or a list of them"),
        ('{"a":1', 1, 7, "the text ends inside an object", "close it with }"),
        ("[1", 1, 3, "the text ends inside a list", "close it with ]"),
        ("[1,", 1, 4, "the text ends where a value is expected", "complete it"),
        ('{"a":1,', 1, 8, "the text ends inside an object", "close it with }"),
        ('{"a"', 1, 5, "`:` expected after key `a`", "write `:` and a value"),
        ('["a', 1, 2, "text is never closed", "add the closing double quote"),
        ('["a\\', 1, 4, "unknown escape `\\` in text", r"write \\ for a backslash"),
        ('["C:\\dir"]', 1, 5, r"unknown escape `\d` in text", r"write \\ for a backslash"),
        ('["\\u12"]', 1, 3, r"unknown escape `\u` in text", r"write \\ for a backslash"),
        ('["a\n"]', 1, 4, "control character in text", r"write \n"),
        ('["\x01"]', 1, 3, "control character in text", r"write \u0001"),
        ("[1 2]", 1, 4, "`,` or `]` expected, found `2`", "add a comma, or close it"),
        ('{"a":1 "b":2}', 1, 8, '`,` or `}` expected, found `"`', "add a comma, or close it"),
        ("[1}", 1, 3, "`,` or `]` expected, found `}`", "add a comma, or close it"),
        ('{"a" 1}', 1, 6, "`:` expected after key `a`", "write `:` and a value"),
        ('{"a":}', 1, 6, "`}` where a value is expected", "write a value, or remove it"),
        ("[,1]", 1, 2, "`,` where a value is expected", "write a value, or remove it"),
        ("{,}", 1, 2, "`,` where a key is expected", "write keys in double quotes"),
        ("// note\n1", 1, 1, "JSON has no comments", "remove it"),
        ('{"a":1 # note\n}', 1, 8, "JSON has no comments", "remove it"),
        ("[\0]", 1, 2, r"text `\u0000` without double quotes", r'write "\u0000"'),
        ("\u00a01", 1, 1, r"`\u00a0` where a value is expected", "write a value, or remove it"),
    ],
)  # fmt: skip
def test_a_syntax_error_names_its_cause(
    text: str, line: int, column: int, message: str, hint: str
) -> None:
    refused = refusal(text)
    assert refused.code == "json.syntax"
    assert (refused.line, refused.column, refused.message, refused.hint) == (
        line,
        column,
        message,
        hint,
    )
    assert str(refused) == f"{message} (line {line}, column {column})"


def test_columns_count_characters_not_bytes() -> None:
    assert place('{"é😀":1,}') == ("json.syntax", 1, 8)


def test_a_long_word_is_shortened_in_the_message() -> None:
    assert refusal("a" * 1_000_000).message == f"text `{'a' * 40}…` without double quotes"


# Properties

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
)
keys = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(keys, inner, max_size=5),
    max_leaves=20,
)
shapes = st.sampled_from(
    [{}, {"indent": 1}, {"separators": (",", ":")}, {"separators": (" , ", " : ")}]
)
bits = st.sampled_from(
    [
        *'{}[],:" \n\\',
        '"a"',
        '":',
        '"a":',
        '"a" :',
        "1",
        "-0",
        "0.5",
        "1e9",
        "true",
        "null",
        '"\\u0061"',
    ]
)


def outcome(parse: Callable[[bytes], Any], data: bytes) -> str:
    """The value as Python writes it, or the refusal with its place."""
    try:
        return repr(parse(data))
    except InvalidJson as refused:
        return f"{refused.code} {refused.line}:{refused.column} {refused.message}"


def reference(data: bytes) -> Any:
    """The slow parser alone, which is the authority."""
    return JsonParser(_decode_utf8(data), 100, 50_000, _build_fault).document()


@pytest.mark.sampled(3)
@pytest.mark.slow
@examples(200)
@given(values, shapes, st.booleans())
def test_written_json_is_read_back(value: Any, shape: Any, ascii_only: bool) -> None:
    data = json.dumps(value, ensure_ascii=ascii_only, **shape).encode()
    assert repr(loads(data)) == repr(reference(data)) == repr(json.loads(data))


@pytest.mark.slow
@examples(500)
@given(st.lists(bits, max_size=14).map("".join))
def test_both_ways_through_the_parser_agree(text: str) -> None:
    assert outcome(loads, text.encode()) == outcome(reference, text.encode())


@pytest.mark.slow
@examples(300)
@given(st.binary(max_size=40) | st.lists(bits, max_size=10).map("".join).map(str.encode))
def test_any_bytes_give_the_value_of_the_standard_parser_or_a_refusal(data: bytes) -> None:
    found = outcome(loads, data)
    assert found.startswith("json.") or found == repr(json.loads(data))


@examples(100)
@given(st.text(st.characters(), max_size=30))
def test_any_text_gives_a_value_or_a_refusal(text: str) -> None:
    with contextlib.suppress(InvalidJson):
        loads(text)


def test_a_hundred_levels_take_few_frames() -> None:
    frames, frame = 0, sys._getframe().f_back
    while frame is not None:
        frames, frame = frames + 1, frame.f_back
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(frames + 320)
    try:
        assert refusal("[" * 101).code == "json.depth"
    finally:
        sys.setrecursionlimit(before)
