"""Parsing Python text while other threads do."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from cogcli.base import python_syntax
from cogcli.base.python_syntax import parse_python


def test_a_text_disturbed_by_another_thread_is_parsed_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real, calls = ast.parse, []

    def disturbed(source: Any, **more: Any) -> Any:
        calls.append(source)
        if len(calls) % 3:
            raise SystemError("AST constructor recursion depth mismatch (before=66, after=62)")
        return real(source, **more)

    monkeypatch.setattr(python_syntax.ast, "parse", disturbed)
    assert ast.unparse(parse_python("1 + x", "eval")) == "1 + x"
    assert ast.unparse(parse_python(b"x = 1")) == "x = 1"
    assert len(calls) == 6


def test_what_is_wrong_with_a_text_is_raised() -> None:
    with pytest.raises(SyntaxError):
        parse_python("1 +", "eval")
    with pytest.raises(SyntaxError):
        parse_python(b"def")
