"""What is known of the entity of a request counts for no other (docs/reference/agent-run.md#critic)."""

from __future__ import annotations

from typing import Any

import pytest
from fakes.agents import ScriptedPlanner, calls, invocation, invoke, lookup, says
from fakes.support_desk import CAPABILITIES, READ, capability, pack, raw_pack

OTHER = "ord_440 is not the order of the request, ord_881"


def verdicts(*candidates: Any, **given: Any) -> list[str]:
    ran = invoke(ScriptedPlanner(*candidates, says("Done.")), given=invocation(**given))
    return [each["reason"] for each in ran.payloads("critic.verified")]


@pytest.mark.parametrize(
    ("call", "wrong"),
    [
        (("orders.lookup", {"order_id": "ord_440"}), OTHER),
        (("payments.refund", {"order_id": "ord_440", "amount": 20}), OTHER),
        (
            ("payments.refund", {"order_id": "not an order", "amount": 20}),
            "not an order is not the order",
        ),
        (("policy.eval", {"days": 12}), ""),
    ],
)
def test_a_call_with_effects_or_facts_is_about_the_entity_of_the_request(
    call: Any, wrong: str
) -> None:
    _, found, *_ = verdicts(lookup(), calls(call))
    assert found.startswith(f"args_invalid:{wrong}") if wrong else found == ""


@pytest.mark.parametrize(
    ("arguments", "is_wrong"),
    [({"id": "ord_440"}, True), ({"id": "ord_881"}, False), ({"id": "all"}, False)],
)
def test_an_input_of_another_name_is_told_by_the_pattern(
    arguments: dict[str, Any], is_wrong: bool
) -> None:
    look = capability(
        "orders.lookup",
        {"id": "string"},
        {"age_days": "integer", "total": "number"},
        properties=READ,
    )
    found, *_ = verdicts(
        calls(("orders.lookup", arguments)), capabilities=({**CAPABILITIES, look.id: look}).values()
    )
    assert found == (f"args_invalid:{OTHER}" if is_wrong else "")


def test_a_call_that_only_reads_and_supplies_nothing_may_be_about_anything() -> None:
    tooling = raw_pack()["tooling_layer"]
    silent = pack(tooling_layer={**tooling, "capabilities": {"payments.refund": {}}})
    found, *_ = verdicts(lookup("ord_440"), pack=silent)
    assert found == ""


def test_a_message_that_names_no_entity_leaves_the_call_free() -> None:
    found, *_ = verdicts(lookup("ord_440"), message="Refund what I ordered last")
    assert found == ""


def test_what_a_planner_wrote_is_told_shortly() -> None:
    long, wide, *_ = verdicts(calls(("x" * 9999, {})), calls(("orders.lookup", {"y" * 9999: 1})))
    assert max(len(long), len(wide)) < 200
