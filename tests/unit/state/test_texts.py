"""Texts with values: what stands in the place of a reference, what is read, and what is an error."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples

from cogcli.base.errors import InputMappingError
from cogcli.state.execution import ExecutionState, FrameState, WorkingState
from cogcli.state.inputs import MAX_TEXT, Scope, compile_input, resolve_input

NAMES = frozenset(("item", "i"))


def state() -> ExecutionState:
    made = ExecutionState("run_1", "t", "test.main")
    made.inputs.update({"name": "Ana", "n": 3, "o": {"a": [1, "ü"]}, "no": None})
    made.vars.update({"text": "${inputs.name} {{ x }}", "long": "x" * (MAX_TEXT // 2 + 1)})
    made.frame = FrameState(goal="win")
    made.working = WorkingState(risks=[{"name": "late"}])
    return made


def resolved(value: Any) -> tuple[Any, list[str]]:
    reads: dict[str, None] = {}
    scope = Scope(state(), {"item": {"id": 7}, "i": 0})
    return resolve_input(compile_input(value, NAMES), scope, reads), list(reads)


@pytest.mark.parametrize(
    ("text", "expected", "reads"),
    [
        ("Dear ${inputs.name}", "Dear Ana", ["inputs.name"]),
        ("${inputs.n}", "3", ["inputs.n"]),
        ("${inputs.o}", '{"a":[1,"ü"]}', ["inputs.o"]),
        (
            "${inputs.o.a}|${inputs.name}|${inputs.name}",
            '[1,"ü"]|Ana|Ana',
            ["inputs.o.a", "inputs.name"],
        ),
        ("${item.id}/${i}/${item}", '7/0/{"id":7}', ["item.id", "i", "item"]),
        (
            "${working.risks.0.name} ${frame.goal}",
            "late win",
            ["working.risks.0.name", "frame.goal"],
        ),
        (
            "${vars.nope:-none}${inputs.no:-}${item.x:-a:-b}",
            "nonea:-b",
            ["vars.nope", "inputs.no", "item.x"],
        ),
        ("$${inputs.name} $5 {x}", "${inputs.name} $5 {x}", []),
        ("${vars.text}", "${inputs.name} {{ x }}", ["vars.text"]),
        ("", "", []),
    ],
)
def test_what_a_text_with_values_gives(text: str, expected: str, reads: list[str]) -> None:
    assert resolved({"$text": text}) == (expected, reads)
    assert resolved([{"k": {"$text": text}}]) == ([{"k": expected}], reads)


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ("${vars.nope}", "input.reference", "`vars.nope`: no `nope`, present: long, text"),
        ("${inputs.no}", "input.reference", "`inputs.no`: null in a text"),
        ("${inputs.nope}", "input.reference", "`inputs.nope`: null in a text"),
        ("${item.nope}", "input.reference", "`item.nope`: not in this item"),
        (
            "${vars.long}${vars.long}",
            "input.contract",
            "a `$text` of more than 10485760 characters",
        ),
    ],
)
def test_what_cannot_stand_in_a_text_is_an_error(text: str, code: str, says: str) -> None:
    with pytest.raises(InputMappingError) as caught:
        resolved({"$text": text})
    assert (caught.value.code, caught.value.message) == (code, says)


@examples(200)
@given(st.text("a$\n{}é:-", max_size=20), st.text(max_size=20))
def test_a_value_is_put_in_as_it_is_and_nothing_is_expanded_twice(before: str, value: str) -> None:
    made = state()
    made.vars["v"] = value
    text = before.replace("${", "").rstrip("$")
    scope = Scope(made, {})
    given = resolve_input(compile_input({"$text": f"{text}${{vars.v}}{text}"}), scope, {})
    assert given == text + value + text
