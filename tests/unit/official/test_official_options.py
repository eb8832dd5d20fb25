"""Options by their numbers: scores, constraints, a recommendation and its margin."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cogcli.official.decision import justify_option
from cogcli.official.options import analyze_options, score_options
from cogcli.official.quality import score_output
from cogcli.sdk import Refused

NUMBERS = st.one_of(st.integers(-1000, 1000), st.floats(allow_nan=False, allow_infinity=False))
CRITERIA: list[object] = [
    {"name": "price", "weight": 2},
    "seats",
    {"name": "age", "direction": "lower"},
]


def refused(call: Any, *args: Any, **kwargs: Any) -> str:
    with pytest.raises(Refused) as found:
        call(*args, **kwargs)
    return found.value.reason


def named(rows: list[tuple[Any, ...]]) -> list[Any]:
    fields = ("price", "seats", "age")
    return [{"id": f"o{n}"} | dict(zip(fields, row, strict=True)) for n, row in enumerate(rows)]


def scores(options: list[Any], criteria: Any = CRITERIA, **kwargs: Any) -> dict[str, float | None]:
    found: Any = score_options(list(options), "a boat", criteria, **kwargs)
    return {entry["id"]: entry["score"] for entry in found["scored_options"]}


ROWS = st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), min_size=2, max_size=7)


@given(ROWS, st.randoms(use_true_random=False))
def test_the_order_of_options_changes_no_score(rows: list[Any], random: Any) -> None:
    options = named(rows)
    shuffled = list(options)
    random.shuffle(shuffled)
    assert scores(options) == scores(shuffled)
    first, again = (
        json.dumps(score_options(list(o), "a boat", CRITERIA)) for o in (options, shuffled)
    )
    assert first == again


@given(ROWS, st.integers(0, 2), st.floats(0, 1e6))
def test_more_of_what_is_better_never_lowers_a_score(
    rows: list[Any], column: int, more: float
) -> None:
    options = named(rows)
    name, sign = [("price", -1), ("seats", 1), ("age", -1)][column]
    better = [options[0] | {name: options[0][name] + sign * more}, *options[1:]]
    assert (scores(better)["o0"] or 0) >= (scores(options)["o0"] or 0)


@given(ROWS)
def test_a_score_lies_between_its_worst_and_best_part(rows: list[Any]) -> None:
    found: Any = score_options(named(rows), "a boat", CRITERIA)
    for entry in found["scored_options"]:
        assert (
            min(entry["parts"].values()) - 1e-6
            <= entry["score"]
            <= max(entry["parts"].values()) + 1e-6
        )
        assert all(0 <= part <= 1 for part in entry["parts"].values())
    ranks = [entry["rank"] for entry in found["scored_options"]]
    assert ranks == sorted(ranks)
    assert ranks[0] == 1


@pytest.mark.parametrize("gap", ["price", "seats"])
def test_an_option_that_lacks_a_number_is_unscored_and_says_which(gap: str) -> None:
    options = named([(1, 2, 3), (2, 3, 4), (3, 4, 5)])
    del options[1][gap]
    found: Any = score_options(options, "a boat", CRITERIA)
    last = found["scored_options"][-1]
    assert (last["id"], last["status"], last["score"], last["missing"]) == (
        "o1",
        "unscored",
        None,
        [gap],
    )
    assert f"o1 (no number for {gap})" in found["comparative_summary"]


@pytest.mark.parametrize("value", ["3", True, None, [3], {"n": 3}])
def test_what_is_no_number_is_no_number(value: Any) -> None:
    assert scores([{"id": "a", "price": 1}, {"id": "b", "price": value}], ["price"]) == {
        "a": None,
        "b": None,
    }


def test_one_option_has_nothing_to_be_compared_with() -> None:
    found: Any = score_options([{"id": "a", "price": 1}], "a boat", ["price"])
    assert found["scored_options"][0]["reason"] == "nothing to compare it with"


def test_equal_options_tie_and_it_is_said() -> None:
    found: Any = score_options([{"id": "b", "price": 1}, {"id": "a", "price": 1}], "a boat")
    assert [(entry["id"], entry["score"], entry["rank"]) for entry in found["scored_options"]] == [
        ("a", 1.0, 1),
        ("b", 1.0, 1),
    ]
    assert "Tie at the top: a, b." in found["comparative_summary"]


@pytest.mark.parametrize(
    ("goal", "criterion", "better", "source"),
    [
        ("a boat", {"name": "draft", "direction": "lower"}, "low", "criterion"),
        ("a boat", {"name": "draft", "direction": "maximise"}, "high", "criterion"),
        ("the lowest draft", "draft", "low", "goal"),
        ("the highest price", "price", "high", "goal"),
        ("a boat", "price", "low", "name"),
        ("a boat", "delivery-time", "low", "name"),
        ("a boat", "draft", "high", "default"),
    ],
)
def test_it_is_said_what_makes_a_number_better(
    goal: str, criterion: Any, better: str, source: str
) -> None:
    name = criterion if isinstance(criterion, str) else criterion["name"]
    found: Any = score_options([{"id": "low", name: 1}, {"id": "high", name: 2}], goal, [criterion])
    assert found["scored_options"][0]["id"] == better
    assert found["criteria_used"][0]["direction_from"] == source


def test_criteria_that_nobody_gives_are_told_apart() -> None:
    found: Any = score_options([{"id": "a", "x": 1}, {"id": "b", "x": 2}], "g", ["x", "beauty"])
    assert [(c["name"], c["status"]) for c in found["criteria_used"]] == [
        ("x", "scored"),
        ("beauty", "unscored"),
    ]
    assert found["scored_options"][0]["score"] == 1.0


def test_tolerance_weighs_criteria_called_risk_and_nothing_else() -> None:
    options = [{"id": "safe", "risk": 1, "gain": 1}, {"id": "bold", "risk": 2, "gain": 2}]
    assert scores(options, ["risk", "gain"], risk_tolerance="low")["safe"] == pytest.approx(
        2 / 3, abs=1e-6
    )
    assert scores(options, ["risk", "gain"], risk_tolerance="high")["bold"] == pytest.approx(
        2 / 3, abs=1e-6
    )
    found: Any = score_options(
        [{"id": "a", "x": 1}, {"id": "b", "x": 2}], "g", risk_tolerance="low"
    )
    assert "No criterion is called risk" in found["comparative_summary"]


def test_numbers_of_a_text_and_of_nested_attributes_count() -> None:
    options = [
        "Quay 3: price: 40, hours = 2",
        {"name": "Quay 4", "attributes": {"Price": 50, "HOURS": 1}},
    ]
    found: Any = score_options(list(options), "a quay", ["price", "hours"])
    assert found["tradeoffs"] == [
        {"a": "Quay 3", "b": "Quay 4", "a_better_on": ["price"], "b_better_on": ["hours"]}
    ]


def test_beside_attributes_nothing_else_is_one() -> None:
    options = [
        {"id": "a", "start": 1, "attributes": {"price": 5}},
        {"id": "b", "start": 9, "attributes": {"price": 4}},
    ]
    found: Any = score_options(list(options), "a boat")
    assert [criterion["name"] for criterion in found["criteria_used"]] == ["price"]


@pytest.mark.parametrize(
    ("options", "criteria", "reason"),
    [
        ([], None, "no-evidence"),
        ([{"id": "a"}, {"id": "a"}], None, "bad-data"),
        ([3], None, "bad-data"),
        (["a", "b"], [{"weight": 1}], "bad-data"),
        (["a", "b"], [{"name": "x", "weight": -1}], "bad-data"),
        (["a", "b"], [{"name": "x", "weight": 10**400}], "bad-data"),
        (["a", "b"], [{"name": "x", "direction": "sideways"}], "bad-data"),
        ([str(n) for n in range(501)], None, "too-large"),
    ],
)
def test_what_cannot_be_scored_is_refused(
    options: list[object], criteria: Any, reason: str
) -> None:
    assert refused(score_options, options, "g", criteria) == reason


@given(ROWS)
def test_best_and_worst_are_the_ends(rows: list[Any]) -> None:
    found: Any = analyze_options(named(rows), "a boat")
    for entry in found["analyzed_options"]:
        for out in entry["stands_out"]:
            numbers = [row[("price", "seats", "age").index(out["attribute"])] for row in rows]
            lowest = (
                out["is"]
                in {"price": ("best",), "age": ("lowest",), "seats": ("lowest",)}[out["attribute"]]
            )
            end = min if lowest else max
            assert out["value"] == end(numbers)


@pytest.mark.parametrize(
    ("constraints", "broken", "unchecked"),
    [
        ({"max_price": 40}, [], []),
        ({"max_price": 39}, ["price"], []),
        ({"min-seats": 3}, ["seats"], []),
        ({"price": {"below": 40}}, ["price"], []),
        ({"price": {"min": 10, "max": 50}}, [], []),
        ({"kind": "tug"}, [], []),
        ({"kind": ["ferry", "barge"]}, ["kind"], []),
        ({"colour": "red"}, [], ["colour"]),
        ({"kind": {"max": 3}}, [], ["kind"]),
        ({"price": {"about": 3}}, [], ["price"]),
        ({"seats": True}, ["seats"], []),
    ],
)
def test_a_constraint_is_kept_broken_or_unchecked(
    constraints: Any, broken: list[str], unchecked: list[str]
) -> None:
    option = {"id": "a", "price": 40, "seats": 2, "kind": "tug"}
    found: Any = analyze_options([option], "a boat", constraints=constraints)["analyzed_options"]
    assert [entry["attribute"] for entry in found[0]["broken_constraints"]] == broken
    assert [entry["attribute"] for entry in found[0]["unchecked_constraints"]] == unchecked


@pytest.mark.parametrize(
    ("text", "quote"),
    [
        ("price at most 50", "price at most 50"),
        ("We need a Price below $ 60.", None),
        ("We need a Price below $60.", "Price below $60"),
        ("price must be under 61 and seats over 9", "price must be under 61"),
        ("unit price > 5", None),
        ("seats at least 2", None),
        ("a ticket price: max 65", "price: max 65"),
    ],
)
def test_a_limit_that_the_goal_states_is_quoted(text: str, quote: str | None) -> None:
    found: Any = analyze_options([{"id": "a", "price": 70, "seats": 10}], "a boat", text)
    assert [
        entry["constraint"] for entry in found["analyzed_options"][0]["broken_constraints"]
    ] == ([quote] if quote else [])
    assert quote is None or quote in text


@settings(max_examples=60)
@given(ROWS, st.randoms(use_true_random=False))
def test_confidence_is_the_margin_and_a_tie_recommends_nobody(rows: list[Any], random: Any) -> None:
    options = named(rows)
    analyzed: Any = analyze_options(list(options), "a boat")["analyzed_options"]
    scored: Any = score_options(list(options), "a boat", CRITERIA)
    found: Any = justify_option(scored["scored_options"], analyzed, "a boat", scored["tradeoffs"])
    first, second = (entry["score"] for entry in scored["scored_options"][:2])
    assert found["confidence_score"] == pytest.approx(first - second, abs=1e-4)
    assert found["tie"] == (first == second)
    assert found["tie"] == found["recommendation"].startswith("No recommendation: ")
    assert found["tie"] == (found["confidence_level"] == "none")
    random.shuffle(scored["scored_options"])
    again: Any = justify_option(scored["scored_options"], analyzed, "a boat", scored["tradeoffs"])
    assert again["recommendation"] == found["recommendation"]
    assert again["confidence_score"] == found["confidence_score"]


SCORED: list[Any] = [
    {"id": "a", "score": 0.9},
    {"id": "b", "score": 0.85},
    {"id": "c", "score": None, "missing": ["price"]},
]


def test_an_option_that_breaks_a_constraint_is_not_recommended() -> None:
    analyzed: Any = [
        {"id": "a", "attributes": {"price": 9}},
        {"id": "b", "attributes": {"price": 5}},
    ]
    found: Any = justify_option(SCORED, analyzed, "g", constraints={"max_price": 6})
    assert found["recommendation"] == "b"
    assert found["alternatives_considered"][0]["broken_constraints"][0]["attribute"] == "price"


def test_what_is_missing_is_uncertain_and_a_next_step() -> None:
    found: Any = justify_option(SCORED, [], "g")
    assert found["uncertainties"] == [{"kind": "unscored", "option": "c", "missing": ["price"]}]
    assert found["next_steps"] == [{"action": "give a number", "option": "c", "criterion": "price"}]
    assert (found["recommendation"], found["confidence_score"], found["confidence_level"]) == (
        "a",
        0.05,
        "low",
    )


def test_a_low_tolerance_wants_a_clear_margin() -> None:
    found: Any = justify_option(SCORED, [], "g", risk_tolerance="low")
    assert found["recommendation"] == "No recommendation: a leads b by only 0.05"
    assert justify_option(SCORED, [], "g", risk_tolerance="high")["recommendation"] == "a"


def test_a_scale_of_a_hundred_is_a_scale() -> None:
    found: Any = justify_option([{"id": "a", "score": 90}, {"id": "b", "score": 45}], [], "g")
    assert found["confidence_score"] == 0.5


def test_what_the_analysis_states_against_it_is_handed_on() -> None:
    analyzed: Any = [{"id": "a", "worst_on": ["age"], "option": {"risks": ["It leaks."]}}]
    found: Any = justify_option(SCORED, analyzed, "g")
    assert found["failure_modes"] == [{"kind": "worst-on", "attribute": "age"}, "It leaks."]


@pytest.mark.parametrize(
    ("scored", "constraints", "reason"),
    [
        ([], None, "no-evidence"),
        ([{"id": "a", "score": None}], None, "no-evidence"),
        ([{"id": "a", "score": 1, "price": 3}], {"max_price": 2}, "no-evidence"),
        ([{"id": "a", "score": 1}, {"id": "a", "score": 2}], None, "bad-data"),
        ([{"id": "a", "score": 10**400}], None, "bad-data"),
    ],
)
def test_without_a_score_there_is_no_recommendation(
    scored: list[object], constraints: Any, reason: str
) -> None:
    assert refused(justify_option, scored, [], "g", constraints=constraints) == reason


@given(
    st.dictionaries(
        st.sampled_from("abcd"),
        st.one_of(st.none(), st.just(""), st.text(), st.integers()),
        min_size=1,
    )
)
def test_filling_an_empty_value_never_lowers_completeness(output: Any) -> None:
    before: Any = score_output(dict(output))["score"]
    filled = {key: value if str(value or "").strip() else "x" for key, value in output.items()}
    assert before <= score_output(filled)["score"] == 1.0  # type: ignore[operator]


@pytest.mark.parametrize(
    ("rubric", "context", "score"),
    [
        ({"length": {"min_words": 4}}, None, 1.0),
        ({"length": {"min_words": 10}}, None, 0.6),
        ({"length": {"max_words": 3}}, None, 0.5),
        ({"mentions": {"terms": ["quay", "crane"]}}, None, 0.5),
        ({"coverage": 1}, "quay metres long water crane", 0.6),
        ({"grounding": 1}, "120 metres at the quay", 1.0),
        ({"grounding": 1}, "12 metres at the quay", 0.0),
        (
            {
                "length": {"weight": 3, "min_words": 4},
                "mentions": {"weight": 1, "terms": ["crane"]},
            },
            None,
            0.75,
        ),
    ],
)
def test_a_dimension_is_measured(rubric: Any, context: str | None, score: float) -> None:
    assert score_output("The quay is 120 metres long.", rubric, context)["score"] == score


def test_readability_is_the_flesch_score() -> None:
    found: Any = score_output("The cat sat on the mat. The dog ran to the cat.", {"readability": 1})
    assert found["dimensions"]["readability"]["reading_ease"] > 90
    assert refused(score_output, "港が開く。", {"readability": 1}) == "no-evidence"


@pytest.mark.parametrize(
    "rubric",
    [None, {"completeness": 1}, {"clarity": 1}, {"grounding": 1}, {"length": 1}, {"mentions": 2}],
)
def test_what_cannot_be_measured_gives_no_score(rubric: Any) -> None:
    assert refused(score_output, "Words.", rubric) == "no-evidence"


@pytest.mark.parametrize(
    "rubric",
    [{"completeness": "much"}, {"length": -1}, {"completeness": {"required": "a"}}, {"x": True}],
)
def test_a_bad_rubric_is_refused(rubric: Any) -> None:
    assert refused(score_output, "Words.", rubric) == "bad-data"


@pytest.mark.parametrize("output", [None, "", [], {}, {"a": None, "b": [{}]}])
def test_an_empty_output_is_worth_nothing(output: Any) -> None:
    assert score_output(output)["score"] == 0.0


def test_filled_values_alone_are_not_called_good() -> None:
    found = score_output({"answer": "x"})
    assert (found["score"], "quality_level" in found) == (1.0, False)
    assert score_output({"answer": "x"}, {"completeness": 1})["quality_level"] == "good"
    assert (
        refused(score_output, {"answer": "x"}, None, "The quay is 120 metres long.")
        == "no-evidence"
    )


def test_what_is_met_what_is_not_and_what_nothing_measures() -> None:
    rubric: Any = {"completeness": {"required": ["a", "b"]}, "length": {"max_words": 9}, "charm": 1}
    found = score_output({"a": "x y"}, rubric)
    assert (found["passed"], found["failed"], found["unscored"]) == (
        ["a", "length"],
        ["b"],
        ["charm"],
    )


def test_numbers_beyond_any_float_are_compared() -> None:
    found: Any = score_options(
        [{"id": "a", "n": 10**400}, {"id": "b", "n": 1e308}, {"id": "c", "n": -1e308}], "g", ["n"]
    )
    assert [entry["id"] for entry in found["scored_options"]] == ["a", "b", "c"]
