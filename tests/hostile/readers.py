"""Hostile input for the two readers, as a table: what it is, the bytes, and the codes that refuse it.

`Y..` goes to the YAML reader, `J..` to the JSON reader. No codes: it must be read. Names ending in a letter
are variants of the case before.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Case:
    """One input and the codes it must be refused with, all of them; none when it must be read."""

    name: str
    what: str
    data: bytes
    codes: frozenset[str] = frozenset()


def _case(name: str, what: str, data: str | bytes, *codes: str) -> Case:
    return Case(name, what, data if isinstance(data, bytes) else data.encode(), frozenset(codes))


def _nested(levels: int) -> str:
    """Block mappings inside one another, `levels` of them."""
    return "".join("  " * i + "a:\n" for i in range(levels - 1)) + "  " * (levels - 1) + "b: 1\n"


_LAUGHS = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]\n" for before, name in ("ab", "bc", "cd")
)

YAML = (
    _case("Y03", "aliases that multiply", _LAUGHS, "yaml.alias"),
    _case("Y05", "an alias of what it stands in", "a: &a [*a]\n", "yaml.alias"),
    _case("Y05a", "a merge key", "a: {b: 1}\nc:\n  <<: {d: 1}\n", "yaml.alias"),
    _case(
        "Y08",
        "a tag that names a call",
        'x: !!python/object/apply:os.system ["touch pwn"]\n',
        "yaml.tag",
    ),
    _case("Y08a", "a tag that names a new object", "x: !!python/object/new:str [a]\n", "yaml.tag"),
    _case("Y09", "a tag of one's own", "x: !foo bar\n", "yaml.tag"),
    _case("Y09a", "a harmless tag", "x: !!str bar\n", "yaml.tag"),
    _case("Y09b", "a binary tag", "x: !!binary aGk=\n", "yaml.tag"),
    _case("Y09c", "a tag handle that nobody defined", "x: !e!foo bar\n", "yaml.tag"),
    _case("Y10", "brackets without end", "[" * 100_000 + "]" * 100_000, "yaml.root", "yaml.limit"),
    _case("Y10a", "braces without end", "a: " + "{a: " * 50_000, "yaml.limit"),
    _case("Y10b", "dashes without end", "a:\n" + "- " * 100_000, "yaml.limit"),
    _case("Y11", "mappings one level too deep", _nested(33), "yaml.limit"),
    _case("Y11a", "mappings two levels too deep", _nested(34), "yaml.limit"),
    _case("Y12", "mappings a level less than the limit", _nested(31)),
    _case("Y12a", "mappings at the limit", _nested(32)),
    _case("Y13", "a comment one byte over the size limit", "#" + "x" * 262_144, "yaml.size"),
    _case("Y13a", "a comment at the size limit, but no value", "#" + "x" * 262_143, "yaml.empty"),
    _case("Y14", "two documents", "a: 1\n---\nb: 2\n", "yaml.documents"),
    _case(
        "Y14a", "two documents, the second after an end mark", "a: 1\n...\nb: 2\n", "yaml.documents"
    ),
    _case("Y15", "an empty file", "", "yaml.empty"),
    _case("Y15a", "only comments", "# a\n# b\n", "yaml.empty"),
    _case("Y15b", "only a document mark", "---\n", "yaml.empty"),
    _case("Y15c", "only a null", "null\n", "yaml.root"),
    _case("Y19", "a duration that some read as ninety", "timeout: 1:30\n", "yaml.ambiguous"),
    _case("Y20", "octal numbers, new and old", "mode: 0o17\nold: 017\n", "yaml.ambiguous"),
    _case(
        "Y20a",
        "words that some read as booleans",
        "a: yes\nb: No\nc: ON\nd: oFF\n",
        "yaml.ambiguous",
    ),
    _case("Y20b", "hexadecimal and grouped digits", "a: 0x1F\nb: 1_000\n", "yaml.ambiguous"),
    _case("Y21", "what is not a number", "x: .nan\ny: .inf\n", "yaml.ambiguous"),
    _case("Y21a", "a float that overflows", "x: 1e400\n", "yaml.number"),
    _case(
        "Y22", "an integer that not every reader keeps", "x: 99999999999999999999\n", "yaml.number"
    ),
    _case(
        "Y22a",
        "the first integer that not every reader keeps",
        "x: 9007199254740992\n",
        "yaml.number",
    ),
    _case("Y22b", "the last integer that every reader keeps", "x: 9007199254740991\n"),
    _case("Y23", "an integer of five thousand digits", "x: " + "9" * 5000, "yaml.number"),
    _case("Y25", "a list as key", "? [a]\n: 1\n", "yaml.key"),
    _case("Y25a", "a mapping as key, meant as a template", "a: {{ b }}\n", "yaml.key"),
    _case("Y25b", "a repeated key", "type: a\nb: 1\ntype: c\n", "yaml.duplicate-key"),
    _case("Y27", "half a surrogate pair by escape", 'a: "\\ud800"\n', "yaml.characters"),
    _case("Y27a", "a nul by escape", 'a: "\\0"\n', "yaml.characters"),
    _case("Y27b", "a raw escape character", "a: x\x1b[31m\n", "yaml.characters"),
    _case("Y27c", "text that runs backwards", "a: x\u202ey\n", "yaml.characters"),
    _case("Y27d", "a key behind a comment's hidden end", "a: 1 # x\u2028b: 2\n", "yaml.characters"),
    _case("Y30", "Latin-1", b"a: caf\xe9\n", "yaml.encoding"),
    _case("Y30a", "UTF-16 with its mark", "a: 1\n".encode("utf-16"), "yaml.encoding"),
    _case("Y30b", "UTF-16 without its mark", "a: 1\n".encode("utf-16-le"), "yaml.encoding"),
    _case("Y30c", "an encoded surrogate", b"a: \xed\xa0\x80\n", "yaml.encoding"),
    _case("Y31", "a version directive", "%YAML 1.1\n---\na: 1\n", "yaml.directive"),
    _case("Y31a", "a tag directive", "%TAG ! tag:x,2000:\n---\na: 1\n", "yaml.directive"),
)

JSON = (
    _case("J02", "what is not a number", '{"x": NaN}', "json.number"),
    _case("J02a", "infinity", '{"x": Infinity}', "json.number"),
    _case("J02b", "infinity below", '{"x": -Infinity}', "json.number"),
    _case("J03", "a float that overflows", '{"x": 1e400}', "json.number"),
    _case(
        "J04", "an integer that not every reader keeps", '{"x": 9007199254740993}', "json.number"
    ),
    _case("J04a", "an integer of five thousand digits", '{"x": ' + "9" * 5000 + "}", "json.number"),
    _case("J08", "a hundred levels", "[" * 100 + "]" * 100),
    _case("J08a", "a hundred and one levels", "[" * 101 + "]" * 101, "json.depth"),
    _case("J08b", "a hundred thousand levels", "[" * 100_000 + "]" * 100_000, "json.depth"),
    _case("J09", "half a surrogate pair", '"\\ud800"', "json.surrogate"),
    _case("J09a", "half a surrogate pair in a key", '{"\\udfff": 1}', "json.surrogate"),
    _case("J10", "a whole surrogate pair", '"\\ud83d\\ude00"'),
    _case("J12", "words after the value", '{"a":1} trailing', "json.syntax"),
    _case("J12a", "a repeated key", '{"a":1,"a":1}', "json.duplicate-key"),
    _case("J12b", "a repeated key, once by escape", '{"a":1,"\\u0061":1}', "json.duplicate-key"),
    _case("J13", "keys that mean something elsewhere", '{"__proto__": {"x":1}, "constructor": 1}'),
    _case("J15", "a byte over eight mebibytes", '"' + "x" * (8 * 2**20 - 1) + '"', "json.size"),
    _case("J15a", "eight mebibytes", '"' + "x" * (8 * 2**20 - 2) + '"'),
    _case("J19", "a whole number written as a float", '{"amount": 1.0}'),
    _case(
        "J20",
        "a hundred thousand keys",
        "{" + ",".join(f'"k{i}":0' for i in range(100_000)) + "}",
        "json.nodes",
    ),
    _case("J20a", "millions of empty objects", "[" + "{}," * 2_700_000 + "0]", "json.nodes"),
    _case("J22", "a nul by escape", '{"a":"\\u0000"}'),
    _case("J30", "nothing", "", "json.empty"),
    _case("J31", "Latin-1", b'"caf\xe9"', "json.encoding"),
    _case("J31a", "UTF-16", '{"a":1}'.encode("utf-16"), "json.encoding"),
)

# Each breaks the grammar of JSON: the JSON reader refuses it, the YAML reader may make sense of it.
BROKEN_JSON = tuple(
    data.encode()
    for data in (
        "[1 true]", "[a\u00e5]", '["": 1]', '[""],', "[,1]", "[1,,2]", '["x",,]', '["x"]]', '["",]', '["x"',
        "[x", "[3[4]]", "[1:2]", "[,]", "[-]", "[   , \"\"]", '["a",\n4\n,1,', "[1,]", "[1,,]", '["\va"\\f]',
        "[*]", '[""', "[1,\n1\n,1", "[{}", "[fals]", "[nul]", "[tru]", "[++1234]", "[+1]", "[+Inf]", "[-01]",
        "[-1.0.]", "[-2.]", "[-NaN]", "[.-1]", "[.2e-3]", "[0.1.2]", "[0.3e+]", "[0.3e]", "[0.e1]", "[0E+]",
        "[0E]", "[0e+]", "[0e]", "[1.0e+]", "[1.0e-]", "[1.0e]", "[1 000.0]", "[1eE2]", "[2.e+3]", "[2.e-3]",
        "[2.e3]", "[9.e+]", "[Inf]", "[NaN]", "[\uff11]", "[1+2]", "[0x1]", "[0x42]", "[Infinity]", "[0e+-1]",
        "[-123.123foo]", "[1ea]", "[-1x]", "[1.2a-3]", "[1.8011670033376514H-308]", "[-012]", "[-.123]",
        "[- 1]", '["x", truth]', '{[: "x"}\n', '{"x", null}', '{"x"::"b"}', '{"a":"a" 123}', '{key: "value"}',
        '{"a" b}', '{:"b"}', '{"a" "b"}', '{"a":', '{"a"', "{1:1}", "{9999E9999:1}", "{null:null,null:null}",
        '{"id":0,,,,,}', "{'a':0}", '{"id":0,}', '{"a":"b"}/**/', '{"a":"b"}/**//', '{"a":"b"}//',
        '{"a":"b"}/', '{"a":"b",,"c":"d"}', '{a: "b"}', '{"a":"a', '{"foo":"bar", "a"}', '{"a":"b"}#', '{"":',
        " ", '["\\uD800\\"]', '["\\uD800\\u"]', '["\\uD800\\u1"]', '["\\uD800\\u1x"]', "[\u00e9]",
        '["\\\u0000"]', '["\\x00"]', '["\\\\\\"]', '["\\\t"]', '["\\\U0001f300"]', '["\\"]', '["\\u00A"]',
        '["\\uD834\\uDd"]', '["\\uD800\\uD800\\x"]', '["\\a"]', '["\\uqqqq"]', "[\\u0020\"asd\"]", "[\\n]",
        '"', "['single quote']", "abc", '["\\', '["a\u0000a"]', '["new\nline"]', '["\t"]', '"\\UA66D"', '""x',
        "<.>", "[<null>]", "[1]x", "[1]]", '["asd]', "a\u00e5", "[True]", "1]", '{"x": true,', "[][]", "]",
        "\ufeff\ufeff{}", '{"": "', "[", "", "[\u0000]", "2@", "{}}", '{"a":/*comment*/"b"}',
        '{"a": true} "x"', "['", '["a', '["a"', "[,", "[{", "{", "{]", "{,", "{[", '{"a"b', "{'a'",
        '["\\{["\\{["\\{["\\{', "\u00e9", "*", '{"a":"b"}#{}', "[\\u000A\"\"]", "[1", "[ false, nul",
        "[ true, fals", "[ false, tru", '{"asd":"asd"', "\u00e5", "[\u2060]", "[\f]",
    )
)  # fmt: skip

# Each breaks the grammar of YAML, or a rule of ours: there is no value to make of it.
BROKEN_YAML = tuple(
    data.encode()
    for data in (
        "a: 'b': c", "a: b: c", "- a\n b: c", "a:\n  b\n c: d", "a: [b", "a: b]\nc: d: e", "a: {b: c",
        "a: [b]]", "a: [b, , c]", "a: [ , ]", "a: \"b\nc: d", "a: 'b\nc: d", 'a: "\\."', "a: \"b\" c",
        "a: 'b' 'c'", "a: [b] c", "a: - b", "a: - b\n   - c", "a: &x &y b", "a: &x *x", "a: !x !y b", "*a: b",
        "&a", "a: *b", "%YAML 1.2\n", "%YAML 1.2\na: b", "%YAML 1.1\n%YAML 1.1\n---\na: b",
        "a: b\n%YAML 1.2\n---\nc: d", "a: @b", "a: `b`", "a: %b", "@a: b", "a: |b\n c", "a: >1b\n c",
        "a: |0\n b", "a: |10\n b", "a: |\n  b\n c", "a: b\nc", "a\nb: c", "a:\n\tb: c", "\ta: b",
        "a: b\n\tc: d", "{a: b}}", "{a: b} c", "[a]: b: c", "{a b: c: d}", "? a\n? - b\n: : c", "? - a\n: b",
        "--- a: b: c", "--- >\n a\n--- b", "a: b\n--- c: d", "a: b\n... c", "...\n...", "a: 'b''", "a: \"b\\",
        "a: !<x b", "a: !!x!y b: c", ": : a", "- - - a", "a: b #c\n d: e", "a: {b: c}: d", "a: [b: c: d]",
        "{a: b, a: c}", "a: |\n b\n  c\nd", "a: 1\na: 2",
    )
)  # fmt: skip
