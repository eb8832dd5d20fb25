"""What the checks know about expressions before anything runs; the cases themselves are in tests/specs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fakes.specs import skill as skill_of
from fakes.specs import step

from cogcli.base.problems import Problem
from cogcli.base.yaml.positions import YamlPositions
from cogcli.protocols import PROTOCOLS
from cogcli.specs.binding_chain import SelectionOptions
from cogcli.specs.catalog import Catalog
from cogcli.specs.checks import check
from cogcli.specs.checks.context import CheckContext
from cogcli.specs.checks.step_expressions import check_expressions
from cogcli.specs.checks.step_facts import StepFacts
from cogcli.specs.layers import Layer
from cogcli.specs.registry import Registry

Write = Callable[..., str]


@pytest.mark.parametrize(
    ("condition", "value"),
    [
        (True, True),
        (None, None),
        ("false", False),
        ("1 > 2 or not true", False),
        ("false and inputs.x", False),
        ("true or inputs.x", True),
        ("inputs.x and false", None),
        ("1 < 'a'", None),
        ("no expression", None),
    ],
)
def test_a_condition_is_constant_where_no_value_is_asked_for(
    condition: object, value: bool | None
) -> None:
    context = CheckContext(Catalog(), SelectionOptions())
    facts = StepFacts(context, skill_of(step("a", "t.a", condition=condition)), 0)
    check_expressions(facts)
    assert facts.holds is value


@pytest.mark.parametrize(
    ("source", "column"),
    [
        ("k: ab cd", 7),
        ("k: 'ab cd'", 8),
        ('k: "ab cd"', 8),
        ("k: 'it''s cd'", 4),
        ("k: >-\n  ab cd", 4),
        ("k: ab\n  cd", 4),
    ],
)
def test_a_place_inside_a_text_is_exact_where_the_text_is_written_as_it_is(
    source: str, column: int
) -> None:
    text = "it's cd" if "it" in source else "ab cd"
    assert YamlPositions(source).value(("k",)).column_of(text, text.index("cd")) == column


def conditioned(root: Write, condition: str) -> list[Problem]:
    steps = (
        "  - {id: a, uses: text.echo, input: {text: inputs.text}, output: {text: outputs.text},"
        f" config: {{condition: '{condition}'}}}}\n"
    )
    skill = (
        'id: t.s\nversion: "1.0.0"\nname: S\ndescription: S.\n'
        "inputs: {text: {type: string, required: true}}\noutputs: {text: {type: string}}\nsteps:\n"
        + steps
    )
    folder = root(files={"skills/local/t/s/skill.yaml": skill})
    found = check(
        Registry([Layer("here", folder, True)], protocols=PROTOCOLS, base=folder).everything()
    )
    return [problem for problem in found if problem.file.startswith("skills/local/t/s/")]


def test_a_bare_name_is_told_with_what_may_have_been_meant(root: Write) -> None:
    (problem,) = conditioned(root, "text is null")
    assert (problem.code, problem.path) == ("expr.name", "/steps/0/config/condition")
    assert problem.message == "step `a`: `condition`: `text` is not a value"
    assert "`inputs.text`" in problem.hint


def test_two_problems_of_one_expression_have_their_own_places(root: Write) -> None:
    first, second = conditioned(root, "vars.a is null or vars.b is null")
    assert (first.code, second.code) == ("ref.unwritten", "ref.unwritten")
    assert second.column - first.column == len("vars.a is null or ")


def test_places_found_once_are_the_same_from_the_cache(root: Write, tmp_path: object) -> None:
    from cogcli.specs.cache import CompiledCache

    conditioned(root, "vars.a is null or vars.b is null")
    layer = Layer("here", f"{tmp_path}/project", True)

    def places() -> list[tuple[int, int]]:
        cache = CompiledCache(f"{tmp_path}/specs.db")
        found = check(
            Registry([layer], cache=cache, protocols=PROTOCOLS, base=layer.root).everything()
        )
        return [(problem.line, problem.column) for problem in found]

    assert places() == places() != []
