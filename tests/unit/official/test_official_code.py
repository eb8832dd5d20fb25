"""Differences, formatting and measures of source code."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import LONG, examples
from support.growth import assert_linear

from cogcli.official.code import analyze_source, extract_diff, format_source
from cogcli.sdk import Refused

pytestmark = pytest.mark.sampled(4)

STDLIB = Path(sysconfig.get_path("stdlib"))
LINES = st.lists(
    st.sampled_from(["a\n", "b\n", "\n", "  x = 1\n", "-- y\n", "+++ z\n", "\r\n", "é\x0c\n"]),
    max_size=30,
)
ENDS = st.sampled_from(["", "last", "\\ No newline at end of file"])


def patched(a: str, diff: str, folder: Path) -> str:
    """What the program `patch` makes of a text."""
    target, change = folder / "a", folder / "change"
    target.write_bytes(a.encode())
    change.write_bytes(diff.encode())
    command = [
        "patch",
        "--binary",
        "--force",
        "--fuzz=0",
        "--no-backup-if-mismatch",
        str(target),
        str(change),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return target.read_bytes().decode() if target.exists() else ""


def applied(a: str, diff: str) -> str:
    """The same by the rules of the format, for many small texts."""
    lines, made, at = [f"{line}\n" for line in a.split("\n")], [], 0
    lines[-1] = lines[-1][:-1]
    lines = [line for line in lines if line]
    kept: list[str] = []
    for line in diff.split("\n")[2:-1]:
        if line.startswith("@@"):
            start, _, size = line.split()[1][1:].partition(",")
            low = int(start) - (size != "0")
            made += lines[at:low]
            at = low
        elif line.startswith("\\"):
            if kept:
                kept[-1] = kept[-1][:-1]
                made[-1] = kept[-1] if made and made[-1] == kept[-1] + "\n" else made[-1]
        else:
            kept = [f"{line[1:]}\n"]
            if line[0] in " -":
                at += 1
            if line[0] in " +":
                made.append(kept[0])
            else:
                kept = []
    return "".join(made + lines[at:])


@given(one=LINES, two=LINES, end=ENDS, other=ENDS)
@examples(300)
def test_a_difference_turns_one_text_into_the_other(
    one: Any, two: Any, end: str, other: str
) -> None:
    a, b = "".join(one) + end, "".join(two) + other
    found: Any = extract_diff(a, b)
    assert applied(a, found["diff"]) == b
    assert (found["diff"] == "") == (a == b)
    lines = found["diff"].split("\n")[2:]
    assert found["stats"]["added"] == sum(line.startswith("+") for line in lines)
    assert found["stats"]["removed"] == sum(line.startswith("-") for line in lines)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("", "x"),
        ("x\n", ""),
        ("a\nb\n", "a\nb"),
        ("a\nb", "a\nb\n"),
        (
            "".join(f"{n}\n" for n in range(100)),
            "".join(f"{n}\n" for n in range(100) if n not in (7, 8, 50)),
        ),
        ("x\r\ny\r\n", "x\r\nz\r\n"),
        ("-- a\n++ b\n", "++ b\n-- a\n@@ -1 +1 @@\n"),
        (Path(ast.__file__).read_text(), Path(json.__file__).read_text()),
        ("same\n" * 900, "same\n" * 400 + "other\n" * 300 + "same\n" * 400),
    ],
)
def test_patch_takes_it(a: str, b: str, tmp_path: Path) -> None:
    diff: Any = extract_diff(a, b)["diff"]
    assert patched(a, diff, tmp_path) == b
    assert applied(a, diff) == b


def test_what_was_defined_and_changed_is_told() -> None:
    a = "def one():\n    return 1\n\n\ndef two(x):\n    return 2\n"
    b = "def one():\n    return 1\n\n\ndef two(y):\n    return 2\n\n\nclass Three:\n    pass\n"
    stats: Any = extract_diff(a, b)["stats"]
    assert (stats["added"], stats["removed"], stats["unchanged"], stats["hunks"]) == (5, 1, 5, 1)
    assert stats["names"] == {"changed": ["two"], "new": ["Three"], "gone": []}
    assert stats["sentence"] == "5 lines added, 1 removed, in 1 place; changed: two; new: Three."
    same: Any = extract_diff(a, a)
    assert (same["diff"], same["stats"]["sentence"]) == ("", "The two are equal.")


@pytest.mark.parametrize(
    ("a", "b", "names"),
    [
        ("def f():\n    return 1\n", "def f():\n    return 2\n", "changed: f"),
        (
            "def f(\n    a,\n) -> int:\n    return 1\n",
            "def f(\n    a,\n) -> int:\n    return 2\n",
            "changed: f",
        ),
        (
            "class A:\n    def f(self):\n        x\n\n    y = 1\n",
            "class A:\n    def f(self):\n        x\n\n    y = 2\n",
            "changed: A",
        ),
        ("function f()\n{\n  one();\n}\n", "function f()\n{\n  two();\n}\n", "changed: f"),
        ("def f():\n    pass\n\nx = 1\n", "def f():\n    pass\n\nx = 2\n", ""),
        ("def f():\n    pass\n", "def f():\n    pass\n\n\nx = 2\n", ""),
        (
            "def f():\n    pass\n\n\ndef g():\n    pass\n",
            "def h():\n    pass\n\n\ndef g():\n    pass\n",
            "new: h; gone: f",
        ),
    ],
    ids=["body", "long head", "class", "braces", "module", "behind", "renamed"],
)
def test_a_function_whose_body_changed_is_named(a: str, b: str, names: str) -> None:
    stats: Any = extract_diff(a, b)["stats"]
    assert stats["sentence"].partition(" place")[2].partition("; ")[2].rstrip(".") == names


def test_of_many_names_the_rest_is_counted() -> None:
    stats: Any = extract_diff("", "".join(f"def f{n:02}():\n    pass\n" for n in range(22)))[
        "stats"
    ]
    assert stats["sentence"].endswith("f18, f19 and 2 more.")
    assert len(stats["names"]["new"]) == 22


@pytest.mark.sampled(12)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("a", "b"),
    [
        (
            "".join(f"{n}\n" for n in range(200_000)),
            "".join(f"{n + n % 2}\n" for n in range(200_000)),
        ),
        ("a\nb\n" * 100_000, "b\na\na\n" * 100_000),
        (
            "".join(f"{n}\n" for n in range(100_000)),
            "".join(f"{n}\n" for n in reversed(range(100_000))),
        ),
        ("x" * 4_000_000, "y" * 4_000_000),
        (
            "".join(f"{n % 50}\n" for n in range(100_000)),
            "".join(f"{n * 7 % 53}\n" for n in range(100_000)),
        ),
    ],
    ids=["every other line", "two lines", "reversed", "one line", "few values"],
)
def test_large_texts_take_time_in_proportion(a: str, b: str, tmp_path: Path) -> None:
    assert_linear(lambda size: extract_diff(a[:size], b[:size]), max(len(a), len(b)))
    diff: Any = extract_diff(a, b)["diff"]
    assert patched(a, diff, tmp_path) == b


def test_more_than_eight_megabytes_are_refused() -> None:
    with pytest.raises(Refused) as refused:
        extract_diff("x" * 8 * 1024 * 1024, "y")
    assert refused.value.reason == "too-large"


def without_docstrings(code: str) -> str:
    """The tree of a module, but for blanks in texts that stand alone, which formatting may change."""
    tree = ast.parse(code)
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            node.value.value = " ".join(node.value.value.split())
    return ast.dump(tree)


MODULES = sorted(STDLIB.glob("*.py"))[:: 1 if LONG else 40]


@pytest.mark.slow
@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_formatting_twice_is_once_and_the_program_is_the_same(path: Path) -> None:
    code = path.read_text(encoding="utf-8")
    once: Any = format_source(code, "Python")["formatted_code"]
    assert format_source(once, "py")["formatted_code"] == once
    assert without_docstrings(once) == without_docstrings(code)


@given(
    st.recursive(
        st.one_of(
            st.none(),
            st.booleans(),
            st.integers(-(2**53) + 1, 2**53 - 1),
            st.floats(allow_nan=False, allow_infinity=False),
            st.text(),
        ),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=8,
    )
)
def test_formatted_json_is_the_same_value(value: Any) -> None:
    once: Any = format_source(json.dumps(value), "json")["formatted_code"]
    assert json.loads(once) == value
    assert format_source(once, "json")["formatted_code"] == once


@pytest.mark.parametrize(
    ("code", "language", "reason", "message"),
    [
        ("x = 1\ndef f(:\n", "python", "bad-data", "line 2"),
        ('{"a": 1,\n}', "json", "bad-data", "line 2"),
        ('{"a": 1, "a": 2}', "json", "bad-data", "repeated"),
        ("x = 1", "cobol", "unsupported", "'cobol' is not formatted"),
        ("x\n" * 600_000, "python", "too-large", "1 MiB"),
        ("(" * 100_000, "python", "bad-data", "."),
        ("\ud800", "python", "bad-data", "."),
    ],
)
def test_what_cannot_be_formatted_is_refused(
    code: str, language: str, reason: str, message: str
) -> None:
    with pytest.raises(Refused, match=message) as refused:
        format_source(code, language)
    assert refused.value.reason == reason


def test_python_is_measured() -> None:
    code = """import os


def plain(a, b=[]):
    # One way through.
    return a


class Thing:
    def branched(self, x):
        for y in x:
            if y and x or not y:
                try:
                    eval(y)
                except:
                    pass
        return x is "a"
"""
    found: Any = analyze_source(code, "python")
    assert found["metrics"] == {
        "lines": 17,
        "blank_lines": 4,
        "functions": 2,
        "longest_function": 8,
        "max_complexity": 6,
        "average_complexity": 3.5,
        "classes": 1,
        "imports": 1,
        "comment_lines": 1,
        "names": ["branched", "plain"],
    }
    assert [(told["line"], told["rule"]) for told in found["warnings"]] == [
        (4, "shared-default"),
        (14, "dynamic-code"),
        (15, "bare-except"),
        (17, "identity"),
    ]
    assert (
        found["summary"]
        == "17 lines, 2 functions, at most 6 paths through one; 4 places to look at."
    )


def test_other_languages_are_measured_by_lizard() -> None:
    found: Any = analyze_source("int f(int a) {\n  if (a) { return 1; }\n  return 2;\n}\n", "C")
    assert (found["metrics"]["functions"], found["metrics"]["max_complexity"]) == (1, 2)
    assert found["metrics"]["names"] == ["f"]


@pytest.mark.parametrize(
    ("code", "language", "reason", "message"),
    [
        ("x = 1\nx = = 2\n", "python", "bad-data", "syntax error: line 2"),
        ("x", "cobol", "unsupported", "'cobol' is not read"),
        ("x = 1\n" * 200_000, "python", "too-large", "1 MiB"),
        ("-" * 500_000 + "1", "python", "too-large", "."),
        ("\0", "python", "bad-data", "."),
    ],
)
def test_what_cannot_be_measured_is_refused(
    code: str, language: str, reason: str, message: str
) -> None:
    with pytest.raises(Refused, match=message) as refused:
        analyze_source(code, language)
    assert refused.value.reason == reason


def test_a_library_that_is_not_there_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = [path for path in sys.path if "site-packages" not in path]
    monkeypatch.setattr(sys, "path", [*kept, str(Path(__file__).parents[3])])
    with pytest.raises(ModuleNotFoundError) as missing:
        analyze_source("int f() {}", "c")
    assert missing.value.name == "lizard"
