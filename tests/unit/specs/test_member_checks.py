"""Members of values whose shape is known are checked wherever they are read; unknown shapes stay silent."""

from __future__ import annotations

from typing import Any

import pytest
from fakes.checked import problems_of
from fakes.specs import capability, skill, step
from support.growth import assert_linear

from cogcli.base.problems import Problem
from cogcli.declarations.skill_spec import Skill

ITEM = {"type": "object", "properties": {"sku": {"type": "string"}, "qty": {"type": "integer"}}}
ORDER = {
    "type": "object",
    "properties": {
        "sku": {"type": "string"},
        "buyer": {"$ref": "#/$defs/buyer"},
        "lines": {"type": "array", "items": {**ITEM, "additionalProperties": False}},
        "free": {"type": "object"},
        "either": {"anyOf": [ITEM]},
    },
    "additionalProperties": False,
    "$defs": {"buyer": {"type": ["object", "null"], "properties": {"name": {"type": "string"}}}},
}
GIVES: dict[str, Any] = {
    "order": {"type": "object", "required": True, "schema": ORDER},
    "rows": {
        "type": "array",
        "required": True,
        "items": {"type": "object", "schema": {"properties": {"sku": {}}}},
    },
    "any": {"type": "any", "required": True},
}
FETCH = capability("t.fetch", "x", outputs=GIVES)
DO = capability("t.do", "x y", "y!")
FIRST = step(
    "first", "t.fetch", output={"order": "vars.order", "rows": "vars.rows", "any": "vars.any"}
)


def found_in(*steps: dict[str, Any], others: tuple[Skill, ...] = (), **more: Any) -> list[Problem]:
    main = skill(FIRST, *steps, **more)
    problems = problems_of(main, *others, capabilities=[FETCH, DO])
    return [each for each in problems if each.code in ("ref.field", "ref.walk")]


def reading(text: Any, **config: Any) -> list[Problem]:
    return found_in(
        step("a", "t.do", {"x": text}, **config),
        inputs={"order": GIVES["order"], "n": {"type": "any"}},
    )


@pytest.mark.parametrize(
    ("text", "severity", "hint"),
    [
        ("vars.order.skuu", "E", "did you mean `vars.order.sku`?"),
        ("vars.order.wrong", "E", "it has sku, buyer, lines, free, either"),
        ("vars.order.buyer.nmae", "W", "did you mean `vars.order.buyer.name`?"),
        ("vars.order.byer.name", "E", "did you mean `vars.order.buyer.name`?"),
        ({"$text": "for ${vars.order.skuu}"}, "E", "did you mean `vars.order.sku`?"),
        ([{"k": "vars.order.skuu"}], "E", "did you mean `vars.order.sku`?"),
        ("inputs.order.skuu", "W", "did you mean `inputs.order.sku`?"),
    ],
)
def test_a_member_that_is_not_there_is_told_with_one_that_is(
    text: Any, severity: str, hint: str
) -> None:
    [problem] = reading(text)
    assert (problem.code, problem.severity, problem.hint) == ("ref.field", severity, hint)


@pytest.mark.parametrize(
    "text",
    [
        "vars.order.sku", "vars.order.buyer.name", "vars.order.free.what.ever", "vars.order.either.nope",
        "vars.any.x.y",
        "vars.order.lines", "inputs.order.buyer", "inputs.n.x", "frame.context.x", "extensions.a.b",
        "working.artifacts",
    ],
)  # fmt: skip
def test_what_is_there_or_not_known_is_silent(text: str) -> None:
    assert not reading(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("vars.order.sku.x", "`vars.order.sku` is string, no path leads into it"),
        ("vars.order.lines.sku", "`vars.order.lines` is a list, no path leads into it"),
        ("vars.order.lines.0.sku", "`vars.order.lines` is a list, no path leads into it"),
    ],
)
def test_a_path_into_a_scalar_or_a_list_is_told_at_any_depth(text: str, says: str) -> None:
    [problem] = reading(text)
    assert (problem.code, problem.severity) == ("ref.walk", "E")
    assert problem.message.endswith(says)


@pytest.mark.parametrize(
    ("condition", "codes"),
    [
        ("vars.order.lines[0].sku == 'a'", []),
        ("vars.order.lines.0.skuu == 'a'", [("ref.field", "E")]),
        ("vars.order.lines.sku == 'a'", [("ref.walk", "E")]),
        ("len(vars.order.linse) > 1", [("ref.field", "E")]),
        ("vars.order.skuu is null", [("ref.field", "W")]),
        ("inputs.order.skuu == 1", [("ref.field", "E")]),
        ("vars.rows[0].skuu == 1", [("ref.field", "W")]),
    ],
)
def test_expressions_walk_lists(condition: str, codes: list[tuple[str, str]]) -> None:
    assert [
        (each.code, each.severity) for each in reading("inputs.n", condition=condition)
    ] == codes


@pytest.mark.parametrize(
    ("items", "text", "hint"),
    [
        ("vars.order.lines", "item.skuu", "did you mean `item.sku`?"),
        ("vars.order.lines or []", "item.skuu", "did you mean `item.sku`?"),
        ("vars.rows", "item.skuu", "did you mean `item.sku`?"),
        ([{"sku": 1}, {"qty": 2}], "item.skuu", "did you mean `item.sku`?"),
        ("vars.order.lines", {"$text": "${item.skuu}"}, "did you mean `item.sku`?"),
        ("vars.order.lines", "item.sku", ""), ("vars.any", "item.x", ""), ("[inputs.n]", "item.x", ""),
        ([{"sku": 1}], "item.sku", ""),
        ("vars.any.x", "item.x", ""),
    ],
)  # fmt: skip
def test_items_of_a_loop_have_the_shape_of_the_list(items: Any, text: Any, hint: str) -> None:
    found = reading(text, foreach={"items": items})
    assert [each.hint for each in found] == ([hint] if hint else [])


def test_what_a_loop_writes_is_a_list_of_what_it_calls() -> None:
    loop = step(
        "each",
        "t.fetch",
        {"x": "item"},
        foreach={"items": "vars.rows"},
        output={"order": "vars.orders"},
    )
    use = step(
        "use", "t.do", {"x": "item.skuu", "y": "item.lines"}, foreach={"items": "vars.orders"}
    )
    assert [each.hint for each in found_in(loop, use)] == ["did you mean `item.sku`?"]


def test_nested_skills_give_what_they_declare() -> None:
    inner = skill(FIRST, id="test.inner", outputs={"order": GIVES["order"]})
    call = step("call", "skill:test.inner", {"x": 1}, output={"order": "outputs.order"})
    use = step("use", "t.do", {"x": "outputs.order.skuu"})
    assert [each.hint for each in found_in(call, use, others=(inner,))] == [
        "did you mean `outputs.order.sku`?"
    ]


def test_results_of_scatter_have_the_outputs_of_their_targets() -> None:
    targets = [{"name": "one", "uses": "t.fetch"}, {"name": "two", "uses": "t.do"}]
    both = step(
        "both", "_scatter", {"x": 1}, scatter={"capabilities": targets}, output={"one": "vars.one"}
    )
    use = step("use", "t.do", {"x": "vars.one.order.skuu", "y": "vars.one.oder"})
    hints = [each.hint for each in found_in(both, use)]
    assert hints == ["did you mean `vars.one.order.sku`?", "did you mean `vars.one.order`?"]


def test_of_several_writers_one_that_may_have_it_is_enough() -> None:
    other = step("other", "t.do", output={"y": "vars.order"}, merge_strategy="replace")
    use = step("use", "t.do", {"x": "vars.order.skuu"})
    assert not found_in(other, use)
    again = step("again", "t.fetch", output={"order": "vars.order"}, merge_strategy="deep_merge")
    assert [each.code for each in found_in(again, use)] == ["ref.field"]


def test_left_sides_are_paths_into_what_is_produced() -> None:
    found = found_in(
        step(
            "a",
            "t.fetch",
            output={"order.skuu": "vars.a", "order.buyer": "vars.b", "order.lines.sku": "vars.c"},
        ),
        step("b", "t.do", {"x": "vars.b.nmae", "y": "vars.a"}),
    )
    assert [(each.code, each.severity, each.hint) for each in found] == [
        ("ref.field", "E", "did you mean `order.sku`?"),
        ("ref.walk", "E", "go over it with foreach"),
        ("ref.field", "W", "did you mean `vars.b.name`?"),
    ]


def test_values_below_slots_are_known_where_one_step_writes_them_whole() -> None:
    put = step("put", "t.fetch", output={"order": "working.artifacts.order"})
    use = step(
        "use",
        "t.do",
        {"x": "working.artifacts.order.skuu", "y": "working.artifacts.order.lines.0.sku"},
    )
    assert [each.hint for each in found_in(put, use)] == [
        "did you mean `working.artifacts.order.sku`?"
    ]
    below = step(
        "below", "t.do", output={"y": "working.artifacts.order.skuu"}, merge_strategy="replace"
    )
    assert not found_in(put, below, use)


def test_many_writers_and_readers_are_checked_in_linear_time() -> None:
    def check(count: int) -> None:
        writers = [
            step(f"w{n}", "t.fetch", output={"order": f"vars.o{n % 3}"}, merge_strategy="replace")
            for n in range(count)
        ]
        readers = [
            step(
                f"r{n}",
                "t.do",
                {"x": "vars.o1.sku", "y": "item.skuu"},
                foreach={"items": "vars.o2.lines"},
            )
            for n in range(count)
        ]
        found_in(*writers, *readers)

    assert_linear(check, 1500)
