"""What looks like a way to read a value and is none is told, with the right form; everything else stays text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from fakes.checked import problems_of
from fakes.specs import capability, skill, step
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples
from support.growth import assert_linear

from cogcli.base.problems import Problem
from cogcli.specs.plausible_syntax import find_plausible

CALLED = capability("t.do", "x y", "y!")
LOOPS = frozenset(("item", "i"))


def problems_with(value: Any, **config: Any) -> list[Problem]:
    """The problems of a step whose input `x` is this value, behind a step that writes `vars.clean`."""
    main = skill(
        step("first", "t.do", {"x": "inputs.name"}, output={"y": "vars.clean"}),
        step("a", "t.do", {"x": value, "y": "vars.clean"}, **config),
        inputs="name! n:integer o:object",
    )
    return [each for each in problems_of(main, capabilities=[CALLED]) if "/steps/1" in each.path]


PLAUSIBLE = [
    # the whole text is one placeholder: the value itself
    ("${inputs.name}", "inputs.name"), ("${ inputs.name }", "inputs.name"), ("{{ inputs.name }}", "inputs.name"),
    ("{{name}}", "inputs.name"), ("{{- name -}}", "inputs.name"), ("$inputs.name", "inputs.name"),
    ("{inputs.name}", "inputs.name"), ("$.inputs.name", "inputs.name"), ("$$inputs.name", "inputs.name"),
    ("@inputs.name", "inputs.name"), ("=inputs.name", "inputs.name"), ("<inputs.name>", "inputs.name"),
    ("steps.first.outputs.y", "vars.clean"), ("steps.first.output.y", "vars.clean"),
    ("${{ inputs.name }}", "inputs.name"), ("${clean}", "vars.clean"), ("${input.name}", "inputs.name"),
    ("${nmae}", "inputs.name"),
    ("{{ steps.first.outputs.y }}", "vars.clean"), ("{{ vars.clean | trim }}", "vars.clean"),
    ("<%= inputs.name %>", "inputs.name"),
    ("{{ unknown }}", "inputs.NAME"), ("${inputs.o.deep.er}", "inputs.o.deep.er"), ("${inputs.name", "inputs.name"),
    # a part of the text: the form of texts
    ("Dear ${inputs.name},", '{$text: "Dear ${inputs.name},"}'),
    ("Dear {{ name }}", '{$text: "Dear ${inputs.name}"}'),
    ("{{ name | upper }}!", '{$text: "${inputs.name}!"}'), ("a $vars.clean b", '{$text: "a ${vars.clean} b"}'),
    ("${name:-you}", '{$text: "${inputs.name:-you}"}'),
    ("{{ name | default('you') }}", '{$text: "${inputs.name:-you}"}'),
    ("${inputs.name} and {{ clean }}", '{$text: "${inputs.name} and ${vars.clean}"}'),
    ("{inputs.n:.2f} EUR", '{$text: "${inputs.n} EUR"}'),
    ("${HOME}/x", '{$text: "${inputs.NAME}/x"}'),
    ("costs 5 $ for {{ name }}", '{$text: "costs 5 $ for ${inputs.name}"}'),
    # the whole text is computed
    ("inputs.name | upper", "inputs.name"), ("inputs.name|upper", "inputs.name"),
    ("inputs.name | upper | trim", "inputs.name"),
    ("inputs.name | truncate 50", "inputs.name"), ("inputs.n + 1", "inputs.n"),
    ("inputs.name or 'you'", "inputs.name"),
    ("inputs.name || 'you'", "inputs.name"), ("!inputs.n", "inputs.n"), ("not inputs.n", "inputs.n"),
    ("inputs.n ? 1 : 2", "inputs.n"),
    ("inputs.n ?? 2", "inputs.n"), ("len(inputs.name) > 3", "inputs.name"),
    ("inputs.name.upper()", "inputs.name"), ("inputs.n is null", "inputs.n"),
    ("'Dear ' + inputs.name", "inputs.name"), ("[inputs.n, vars.clean]", "inputs.n"),
    ("inputs.o['k']", "inputs.o.k"),
    (" inputs.name", "inputs.name"), ("inputs.name\n", "inputs.name"), ("{% if inputs.n %}", "inputs.n"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "right"), PLAUSIBLE)
def test_what_looks_like_a_way_to_read_is_told_with_the_right_form(text: str, right: str) -> None:
    (problem,) = problems_with(text)
    head = text.partition(".")[0]
    spaced = any(map(str.isspace, text)) or head != "inputs"
    assert (problem.code, problem.severity) == ("ref.text" if spaced else "ref.format", "E")
    assert problem.hint.startswith(f"write {right}, or {{$literal: ...}} for ")


def test_the_tables_of_the_reference_are_true() -> None:
    page = (Path(__file__).parents[3] / "docs/reference/skill.md").read_text(encoding="utf-8")
    table = (
        page.partition("### Plausible syntax")[2]
        .partition("What is reported")[0]
        .replace("\\|", "\0")
    )
    rows = [row.strip("|").split(" | ") for row in table.splitlines() if row.startswith("| `")]
    seen = 0
    for texts, code, _ in rows:
        if re.sub("`[^`]*`", "", texts).strip(" ,") not in ("", "alone"):
            continue
        for text in re.findall("`([^`]*)`", texts):
            assert [each.code for each in problems_with(text.replace("\0", "|"))][:1] == [
                code.strip(" `")
            ], text
            seen += 1
    assert seen > 12


@pytest.mark.parametrize(
    "wrap", [lambda t: [t], lambda t: {"k": [1, {"l": t}]}, lambda t: {"k": t, "l": "inputs.name"}]
)
def test_it_is_told_at_any_depth(wrap: Any) -> None:
    assert [each.code for each in problems_with(wrap("Dear {{ name }}"))] == ["ref.text"]
    assert not problems_with(wrap({"$literal": "Dear {{ name }}"}))
    assert not problems_with(wrap({"$text": "Dear ${inputs.name}"}))


MERE_TEXT = [
    "costs $5 | $6", "$HOME/bin", "$x.y", "${1}", "${#a[@]}", "$(date)", "a | b", "| name | n |",
    "inputs and outputs",
    "the inputs. Then the vars.", "What inputs.name means",
    "see output.csv for more", '{"a": {"b": 1}}', '{"a":{"b":{}}}',
    "{{1, 2}, {3}}", "f(x) = {x}", "{name}", "{item}", "{0}", "%s and %(name)s", "^\\d{2,3}$", "\\frac{{1}}{2}",
    "awk '{print $1}'",
    "a && b", "C ? A : B", "!important", "item or service", "item | price", "- inputs", "10% of inputs.x",
    "x = inputs", "#{title}",
    "{{}}", "{{ }}", "key: {{", "http://x/{id}?a=$b", "if (x) { return y; }", "inputs.", "vars", "@inputs",
    "a.b | c", "2 + 3", "",
    "Summarise in {max} words.\n\n- keep names\n- cost: $12 | EUR 11\n\n```sh\necho $HOME ${1:-x}\n```\n",
]  # fmt: skip


@pytest.mark.parametrize("text", [each for each in MERE_TEXT if each != "inputs."])
def test_prose_shells_patterns_json_and_tables_stay_text(text: str) -> None:
    assert not problems_with(text)
    assert not problems_with(text, foreach={"items": "[1]", "index_as": "i"})


@pytest.mark.parametrize("text", [each for each, _ in PLAUSIBLE])
def test_literal_says_that_the_text_is_meant(text: str) -> None:
    assert not problems_with({"$literal": text})
    assert not problems_with({"$literal": [{"k": text}]})


@pytest.mark.parametrize(
    ("text", "right"),
    [("$item", "item"), ("{{ item.name }}", "item.name"), ("{item.name}", "item.name"), ("${i}", "i"),
    ("item.n + 1", "item.n"),
     ("no $i", '{$text: "no ${i}"}')],
)  # fmt: skip
def test_loop_names_are_meant_in_their_step_only(text: str, right: str) -> None:
    (problem,) = problems_with(text, foreach={"items": "[1]", "index_as": "i"})
    assert problem.hint.startswith(f"write {right},")
    others = {each.code for each in problems_with(text)}
    assert others <= {"ref.text"}


@pytest.mark.parametrize(
    ("value", "code", "hint"),
    [
        ({"$text": "Dear ${inputs.name}, ${vars.clean:-nobody} pays $${x}"}, None, ""),
        ({"$text": "no value: {{ jinja }} and {x}"}, None, ""),
        (
            {"$text": "${name}"},
            "ref.text",
            "write ${inputs.name}, ${inputs.name:-text}, or $${ for a plain ${",
        ),
        ({"$text": "${ inputs.name }"}, "ref.text", "write ${inputs.name}"),
        ({"$text": "${inputs.name"}, "ref.text", "write ${inputs.name}"),
        ({"$text": "${inputs.name | upper}"}, "ref.text", "write ${inputs.name}"),
        ({"$text": "a {{ inputs.name }}"}, "ref.text", "write ${inputs.name}"),
        ({"$text": "inputs.name"}, "ref.text", "write ${inputs.name}"),
        ({"$text": "$inputs.name"}, "ref.text", "write ${inputs.name}"),
        ({"$text": 5}, "ref.text", 'write {$text: "Dear ${inputs.name}"}'),
        ({"$text": "a", "b": 1}, "ref.text", "remove the other keys"),
        ({"$text": "${inputs.nope}"}, "ref.input", ""),
        ({"$text": "${vars.claen:-x}"}, "ref.unwritten", "did you mean `vars.clean`?"),
        ({"$text": "${inputs.n}"}, "flow.null", "write ${inputs.n:-}"),
        ({"$text": "${inputs.n:-}"}, None, ""),
        ({"$text": "${working.risk.0}"}, "ref.slot", "did you mean `working.risks.0`?"),
    ],
)
def test_a_text_with_values_is_checked_like_its_references(
    value: Any, code: str | None, hint: str
) -> None:
    found = problems_with(value)
    assert [each.code for each in found] == ([code] if code else [])
    assert not found or found[0].hint.startswith(hint)


def test_braces_that_yaml_takes_for_an_object_are_told() -> None:
    [problem] = problems_with({"inputs.name": None})
    assert (problem.code, problem.hint[:18]) == ("ref.text", "write inputs.name,")
    assert [each.code for each in problems_with([{"item": None}], foreach={"items": "[1]"})] == [
        "ref.text"
    ]
    assert not problems_with(
        [{"item": None}, {"a.b": None}, {"inputs.name": 1}, {"inputs.name": None, "b": 1}]
    )


def test_a_text_with_values_is_text_and_waits_for_its_writers() -> None:
    number = capability("t.number", "n:number!", "y")
    main = skill(
        step("a", "t.do", {"x": 1}, output={"y": "vars.a"}),
        step("b", "t.number", {"n": {"$text": "${vars.a}"}}, depends_on=[]),
        step(
            "c",
            "t.do",
            {"x": {"$text": "${item}/${vars.l}"}},
            foreach={"items": "[1]"},
            output={"y": "vars.l"},
        ),
    )
    found = {(each.path, each.code) for each in problems_of(main, capabilities=[CALLED, number])}
    assert found == {
        ("/steps/1/input/n", "flow.type"),
        ("/steps/1/input/n/$text", "ref.unordered"),
        ("/steps/2/input/x/$text", "ref.unwritten"),
    }


@pytest.mark.parametrize(
    ("step_keys", "code", "hint"),
    [
        ({"output": {"y": "${vars.x}"}}, "target.format", "write vars.x"),
        ({"output": {"y": "vars.x | upper"}}, "target.format", "write vars.x"),
        ({"output": {"${y}": "vars.z"}}, "step.output-unknown", "write y"),
        ({"output": {"outputs.y | upper": "vars.z"}}, "step.output-unknown", "write y"),
        ({"output": {"{{ t.y }}": "vars.z"}}, "step.output-unknown", "write y"),
        ({"condition": "${inputs.n} > 3"}, "expr.syntax", "a path stands alone: inputs.n"),
        ({"condition": "{{ inputs.n }}"}, "expr.syntax", "a path stands alone: inputs.n"),
        ({"condition": "o.a == 1"}, "expr.name", "did you mean `inputs.o.a`?"),
        (
            {"otherwise": {"y": "Dear ${inputs.name}"}, "condition": "inputs.n == 1"},
            "ref.text",
            "write {$text:",
        ),
        (
            {"foreach": {"items": ["inputs.name", "b"]}},
            "ref.text",
            "write the list as an expression",
        ),
        (
            {"foreach": {"items": [{"$literal": "b"}]}},
            "ref.text",
            "write the list as an expression",
        ),
    ],
)
def test_other_places_of_a_step_are_answered_too(
    step_keys: dict[str, Any], code: str, hint: str
) -> None:
    found = [each for each in problems_with("inputs.name", **step_keys) if each.severity == "E"]
    assert [each.code for each in found] == [code]
    assert found[0].hint.startswith(hint)


def test_a_long_text_is_shown_around_the_place() -> None:
    (problem,) = problems_with("word " * 200 + "{{ name }}" + " word" * 200)
    assert "word ${inputs.name} word" in problem.hint
    assert len(problem.hint) < 200


@pytest.mark.parametrize(
    "piece",
    [
        "{{a",
        "${a",
        "$inputs.",
        "{inputs.a",
        "inputs.a[",
        "{%",
        "inputs.a |",
        "{{a.",
        "(",
        "!inputs.a(",
    ],
)
def test_any_text_is_looked_through_in_linear_time(piece: str) -> None:
    for size in (200_000, 1900):
        assert_linear(lambda size: find_plausible(piece * (size // len(piece)), LOOPS), size)


@examples(300)
@given(
    st.lists(
        st.sampled_from(
            [
                "${",
                "{{",
                "}}",
                "}",
                "$",
                "inputs",
                ".",
                "x",
                "|",
                " ",
                "item",
                "(",
                "'",
                "[0]",
                "%}",
                "{%",
                "\n",
                "\x00",
                "é",
            ]
        ),
        max_size=14,
    ).map("".join)
)
def test_any_text_is_judged(text: str) -> None:
    found = find_plausible(text, LOOPS)
    assert found is None or (found.found in text and text[found.offset :].startswith(found.found))
