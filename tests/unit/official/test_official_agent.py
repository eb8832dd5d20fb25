"""Options that a text lists, routes, plans and skills out of the registry, and what several texts say together."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.growth import assert_linear

from cogcli.official.agent import RouteOption, find_options, generate_plan, rank, route_input
from cogcli.official.passages import MAX_CHARACTERS
from cogcli.official.planning import create_plan
from cogcli.official.synthesis import synthesize_corpus
from cogcli.sdk import Refused, skill_problems
from cogcli.specs.registry import Registry

pytestmark = pytest.mark.sampled(4)


def refused(call: Any, *args: Any, **kwargs: Any) -> str:
    with pytest.raises(Refused) as found:
        call(*args, **kwargs)
    return found.value.reason


@pytest.mark.parametrize(
    ("goal", "context", "options"),
    [
        ("go", "We can:\n- wait\n- turn back: 3 hours", ["wait", "turn back"]),
        ("go", "Option A: wait\nOption B: turn", ["wait", "turn"]),
        ("go", "The options are rail, road or sea.", ["rail", "road", "sea"]),
        ("whether to wait or to turn back", None, ["wait", "to turn back"]),
        (
            "Choose between the north quay and the south quay.",
            "",
            ["the north quay", "the south quay"],
        ),
        ("- wait\n- turn", "One thing only.", ["wait", "turn"]),
        ("go", "- wait\n- wait\n- turn", ["wait", "turn"]),
    ],
)
def test_options_are_those_that_the_text_lists(
    goal: str, context: str | None, options: list[str]
) -> None:
    found: Any = find_options(goal, context)
    assert [option["id"] for option in found["options"]] == options
    for option in found["options"]:
        text = goal if option["source"] == "goal" else context or ""
        assert text[option["start"] : option["end"]] == option["text"]


@pytest.mark.parametrize(
    "context", [None, "", "Buy a boat.", "- only one", "Options are good to have."]
)
def test_no_option_is_invented(context: str | None) -> None:
    assert refused(find_options, "What should we do?", context) == "needs-model"


def test_options_beyond_the_limit_are_counted() -> None:
    found: Any = find_options("go", "- a1\n- b2\n- c3", max_options=2)
    assert (len(found["options"]), found["generation_notes"]) == (
        2,
        "2 of 3 options that the context lists",
    )


@given(
    st.lists(
        st.sampled_from(
            ["- a: n = 3", "either a or b", "options: x, y", "Plan 1: go", "\n", "or", ";"]
        ),
        max_size=8,
    )
)
def test_every_option_stands_in_its_text(parts: list[str]) -> None:
    text = "\n".join(parts)
    try:
        found: Any = find_options("decide", text)
    except Refused as error:
        assert error.reason == "needs-model"  # noqa: PT017
        return
    assert all(text[o["start"] : o["end"]] == o["text"] != "" for o in found["options"])
    assert len({option["text"] for option in found["options"]}) == len(found["options"]) > 1


AGENTS: list[Any] = [
    {"id": "books", "description": "Reads invoices and receipts", "tags": ["accounting"]},
    {"id": "harbour", "description": "Plans ships and tides"},
    "crane log",
]


@pytest.mark.parametrize(
    ("query", "route"),
    [
        ("this month's accounting", "books"),
        ("the tide of tomorrow", "harbour"),
        ("what did the crane lift", "crane log"),
    ],
)
def test_a_request_goes_where_its_words_lead(query: str, route: str) -> None:
    assert route_input(query=query, agents=AGENTS)["route"] == route
    assert route_input(input={"messages": [{"content": query}]}, agents=AGENTS)["route"] == route
    assert route_input(query=query, agents=AGENTS[::-1]) == route_input(query=query, agents=AGENTS)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"query": "bake a cake"}, "no-evidence"),
        ({"query": ""}, "no-evidence"),
        ({}, "no-evidence"),
        ({"input": {"n": 3}}, "no-evidence"),
        ({"query": "ships and receipts"}, "no-evidence"),
        ({"query": "tide", "routing_strategy": "by mood"}, "unsupported"),
        ({"query": "tide", "agents": [3]}, "bad-data"),
        ({"query": "tide", "agents": [{"description": "tide"}]}, "bad-data"),
    ],
)
def test_what_leads_nowhere_or_to_two_is_refused(given: dict[str, Any], reason: str) -> None:
    assert refused(route_input, **{"agents": AGENTS, **given}) == reason


def test_a_word_of_the_id_counts_more_than_one_of_the_description() -> None:
    choices = [
        RouteOption("tide", "", ""),
        RouteOption("b", "tide", ""),
        RouteOption("c", "", "the tides"),
    ]
    assert [one.id for one in rank("tides", choices)] == ["tide", "b", "c"]


@pytest.mark.parametrize(
    ("query", "skill"),
    [
        ("summarise this text", "text.summarize"),
        ("which language is this", "text.language"),
        ("check data", "data.check"),
    ],
)
@pytest.mark.usefixtures("shipped_registry")
def test_without_agents_a_request_goes_to_a_skill(query: str, skill: str) -> None:
    assert route_input(query=query)["route"] == skill


def test_outside_of_a_run_no_registry_is_known() -> None:
    assert refused(route_input, query="summarise this text") == "unsupported"


@pytest.mark.sampled(16)
@pytest.mark.usefixtures("shipped_registry")
def test_a_plan_names_skills_that_exist_and_what_leads_nowhere(shipped_registry: Registry) -> None:
    objective = "Review the document, then bake a cake and check data"
    found: Any = generate_plan(objective)
    assert [step["uses"] for step in found["plan"]["steps"]] == [
        "skill:doc.review",
        "skill:data.check",
    ]
    assert [part["text"] for part in found["plan"]["unmatched"]] == ["bake a cake"]
    assert found["step_count"] == 2
    for part in (*found["plan"]["steps"], *found["plan"]["unmatched"]):
        assert objective[part["start"] : part["end"]] == part["text"]
    assert all(
        s["uses"].removeprefix("skill:") in shipped_registry.everything().skills
        for s in found["plan"]["steps"]
    )
    assert found == generate_plan(objective)


@pytest.mark.usefixtures("shipped_registry")
@pytest.mark.parametrize("objective", ["", "bake a cake", "!?"])
def test_an_objective_that_leads_nowhere_is_refused(objective: str) -> None:
    assert refused(generate_plan, objective) == "no-evidence"


@pytest.mark.sampled(16)
@pytest.mark.usefixtures("shipped_registry")
@pytest.mark.parametrize(
    ("intent", "capabilities"),
    [
        (
            "Normalize text content and then extract keywords",
            ["text.content.normalize", "text.keyword.extract"],
        ),
        ("deduplicate records; sort table rows", ["data.record.deduplicate", "table.row.sort"]),
    ],
)
def test_a_skill_is_made_whose_text_is_valid(intent: str, capabilities: list[str]) -> None:
    found: Any = create_plan(intent, target_channel="local")
    assert found["capabilities_used"] == capabilities
    assert found["validation_errors"] == []
    assert [p for p in skill_problems(found["skill_yaml"]) if p.severity == "E"] == []
    assert f"id: {found['suggested_id']}\n" in found["skill_yaml"]


@pytest.mark.usefixtures("shipped_registry")
def test_a_step_takes_what_the_step_before_gives() -> None:
    text = str(create_plan("Normalize text content and then extract keywords")["skill_yaml"])
    assert "text: vars.normalize_text" in text
    assert "inputs:\n  text: {type: string, required: true}\n" in text


@pytest.mark.usefixtures("shipped_registry")
def test_an_intent_cannot_write_yaml_of_its_own() -> None:
    found: Any = create_plan(
        'Normalize text content\n"}: [\n  - id: x\n    uses: mail.send and extract keywords'
    )
    assert "mail.send" not in found["capabilities_used"]
    assert found["validation_errors"] == []


@pytest.mark.usefixtures("shipped_registry")
@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (("bake a cake",), "no-evidence"),
        (("",), "no-evidence"),
        (("normalize text", "/srv/registry"), "unsupported"),
        (("normalize text", ".", "No Channel"), "bad-data"),
        (("normalize text " * 1_000,), "too-large"),
    ],
)
def test_a_skill_that_cannot_be_made_is_refused(given: tuple[str, ...], reason: str) -> None:
    assert refused(create_plan, *given) == reason


SAYS = st.sampled_from(
    ["The new crane lifts 40 tons of cargo.", "The new crane lifts 35 tons of cargo.", "The crane should be painted.",
     "The new crane does not lift 40 tons of cargo.", "It may rain.", "Who pays the pilot?", "", "港が開く。"]
)  # fmt: skip


@given(
    st.lists(st.lists(SAYS, max_size=4).map(" ".join), max_size=5),
    st.sampled_from([None, "crane", "pilot"]),
)
def test_every_quote_stands_in_its_item(texts: list[str], focus: str | None) -> None:
    items: list[Any] = [{"id": f"i{n}", "text": text} for n, text in enumerate(texts)]
    try:
        found: Any = synthesize_corpus(items, focus)
    except Refused as error:
        assert error.reason == "no-evidence"  # noqa: PT017
        return
    by_id = {item["id"]: item["text"] for item in items}
    for name in ("key_points", "insights", "tensions", "uncertainties", "next_steps"):
        for entry in found[name]:
            for quote in entry.get("quotes", [entry]):
                assert by_id[quote["item"]][quote["start"] : quote["end"]] == quote["text"] != ""
                assert focus is None or focus in quote["text"]
    for entry in (*found["insights"], *found["tensions"]):
        assert len({quote["item"] for quote in entry["quotes"]}) > 1
    assert found == synthesize_corpus(items, focus)


def test_what_agrees_what_differs_and_what_is_denied() -> None:
    items: list[Any] = [
        "The new crane lifts 40 tons of cargo. The pilot comes on board at noon.",
        "The new crane lifts 35 tons of cargo. The pilot comes on board at noon.",
        "The pilot does not come on board at noon.",
    ]
    found: Any = synthesize_corpus(items)
    assert [entry["items"] for entry in found["insights"]] == [["item-1", "item-2"]]
    assert [(entry["differ"], entry.get("values")) for entry in found["tensions"]] == [
        ("number", [["40"], ["35"]]),
        ("negation", None),
        ("negation", None),
    ]
    assert found["coverage"]["items"] == 3


@pytest.mark.parametrize(
    ("items", "focus", "reason"),
    [
        ([], None, "no-evidence"),
        ([{"n": 3}, ""], None, "no-evidence"),
        (["The crane is new."], "bakery", "no-evidence"),
        (["x" * (MAX_CHARACTERS // 2 + 1)] * 2, None, "too-large"),
        (["Ab cd. " * 4_000], None, "too-large"),
    ],
)
def test_nothing_is_said_about_nothing(items: list[object], focus: str | None, reason: str) -> None:
    assert refused(synthesize_corpus, items, focus) == reason


@pytest.mark.slow
@pytest.mark.parametrize(
    "part", ["The same words stand here. ", "One {} two {} three {}. ", "crane {} lifts cargo. "]
)
def test_a_large_corpus_is_compared_in_time(part: str) -> None:
    def compare(size: int) -> None:
        items: list[object] = [
            " ".join(part.replace("{}", f"w{n}{k}") for k in range(size)) for n in range(100)
        ]
        synthesize_corpus(items)

    assert_linear(compare, 29)


@pytest.mark.slow
@pytest.mark.parametrize("part", [" ", "either ", "option a: ", "- x\n", ", or ", "options "])
def test_a_long_text_is_searched_for_options_in_time(part: str) -> None:
    def search(size: int) -> None:
        with suppress(Refused):
            find_options("a", "a" + part * (size // len(part) - 1) + "b")

    assert_linear(search, MAX_CHARACTERS)
