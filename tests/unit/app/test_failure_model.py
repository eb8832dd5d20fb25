"""The failure model is one table: every code that is raised stands in it, has a page, and none is idle."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from cogcli.app.explain import pages
from cogcli.base import errors
from cogcli.base.errors import FAILURE_OF, FAILURES, CogcliError, FailureRow, UsageError, exit_code

pytestmark = pytest.mark.sampled(4)

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "cogcli"
SOURCES = [path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "base/errors.py"]
CODE = re.compile(r"[a-z]+(?:-[a-z]+)*\.[a-z]+(?:-[a-z]+)*|internal")
CLASSES = {
    name: value
    for name, value in vars(errors).items()
    if inspect.isclass(value) and issubclass(value, CogcliError)
}
REPORTERS = (
    "error",
    "warn",
    "need",
    "add",
    "Problem",
    "Fault",
    "Reason",
    "UnloadedFile",
    "Finding",
)
"""What problems and findings are made with."""

ALSO: dict[type[CogcliError], tuple[type[CogcliError], ...]] = {
    errors.InputValidationError: (UsageError,),
    errors.InputMappingError: (errors.ReferenceResolutionError,),
}
"""Other classes with the codes of a row: the same asked on the command line, and the cause inside."""

COMING: dict[str, str] = {}
"""Codes whose meaning is fixed before anything gives them."""


class Written(NamedTuple):
    """What the sources hold: calls with arguments (file, name of what is called, first argument), texts that are put
    together, and all texts."""

    calls: tuple[tuple[Path, str, ast.expr], ...]
    joined: tuple[ast.JoinedStr, ...]
    texts: frozenset[str]


@cache
def written() -> Written:
    """All of it, read once."""
    calls, joined, texts = [], [], set()
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and node.args:
                called = node.func
                name = called.id if isinstance(called, ast.Name) else getattr(called, "attr", "")
                calls.append((path, name, node.args[0]))
            elif isinstance(node, ast.JoinedStr):
                joined.append(node)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.add(node.value)
    return Written(tuple(calls), tuple(joined), frozenset(texts))


def literals(node: ast.AST) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value


def raised() -> Iterator[tuple[Path, str, str]]:
    """Every code written at a place where an error is made: file, class, code."""
    for path, name, argument in written().calls:
        if name in CLASSES:
            yield from ((path, name, text) for text in literals(argument) if CODE.fullmatch(text))


def patterns() -> list[re.Pattern[str]]:
    """Codes that are put together: `f"input.{kind}"`."""
    found = []
    for node in written().joined:
        parts = [part.value if isinstance(part, ast.Constant) else None for part in node.values]
        text = "".join("[a-z-]+" if part is None else re.escape(str(part)) for part in parts)
        if re.fullmatch(r"[a-z-]+\\\.\[a-z-\]\+|\[a-z-\]\+\\\.[a-z-]+", text):
            found.append(re.compile(text))
    return found


def test_every_raised_code_stands_in_the_table_in_the_row_of_its_class() -> None:
    for path, name, code in raised():
        row = FAILURE_OF.get(code)
        assert row is not None, f"{path}: {name} with `{code}`, which is in no row"
        allowed = {row.cls, *ALSO.get(row.cls, ())}
        assert CLASSES[name] in allowed, (
            f"{path}: {name} with `{code}`, a code of {row.cls.__name__}"
        )


def test_every_error_is_raised_with_a_code() -> None:
    for path, name, argument in written().calls:
        if name in CLASSES and isinstance(argument, ast.Constant):
            assert CODE.fullmatch(str(argument.value)), f"{path}: {name}({argument.value!r})"


@pytest.mark.sampled(16)
@pytest.mark.slow
def test_every_code_of_a_check_or_finding_has_a_page() -> None:
    known = set(pages())
    for path, name, argument in written().calls:
        if name in REPORTERS and path.parts[-2] != "cli":
            codes = {text for text in literals(argument) if CODE.fullmatch(text)}
            assert codes <= known | {"header.name"}, f"{path}: {codes - known}"


def test_every_code_of_the_table_has_a_page_and_stands_in_one_row() -> None:
    codes = [code for row in FAILURES for code in row.codes]
    assert len(codes) == len(set(codes))
    assert set(codes) <= set(pages())


def test_no_code_and_no_page_is_idle() -> None:
    texts, made = written().texts, patterns()
    idle = {
        code
        for code in {*FAILURE_OF, *pages()}
        if code not in texts and not any(pattern.fullmatch(code) for pattern in made)
    }
    assert idle == set(COMING)


def test_every_error_class_stands_in_a_row() -> None:
    abstract = {"CogcliError", "RuntimeErrorBase", "ReferenceResolutionError", "StepExecutionError"}
    rows = {row.cls.__name__ for row in FAILURES}
    assert set(CLASSES) - rows <= abstract


@pytest.mark.parametrize("row", FAILURES, ids=lambda row: f"{row.category}-{row.cls.__name__}")
def test_exit_retry_and_fallback_follow_from_the_code(row: FailureRow) -> None:
    for code in row.codes:
        assert exit_code(code) == row.exit
        if issubclass(row.cls, errors.RuntimeErrorBase):
            error = row.cls(code, "m")
            assert (error.exit_code, error.retryable, error.falls_back) == (
                row.exit,
                row.retryable,
                row.falls_back,
            )


def test_a_code_of_no_row_is_one_of_specs() -> None:
    assert exit_code("ref.unwritten") == errors.ENVIRONMENT


def test_the_page_of_failures_is_fresh_and_names_every_code() -> None:
    spec = importlib.util.spec_from_file_location(
        "generate_failures", ROOT / "tooling/generate_failures.py"
    )
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text = module.document()
    assert (ROOT / "docs/reference/failures.md").read_text(encoding="utf-8") == text
    assert all(f"`{code}`" in text for code in pages())
