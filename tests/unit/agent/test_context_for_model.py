"""A context for a model: its prompt fits as it is sent, and what has no room is an omission
(docs/reference/agent-state.md#sizes)."""

from __future__ import annotations

from typing import Any

import pytest
from agent_strategies import NOW, TOOL, begun
from hypothesis import given
from hypothesis import strategies as st

from cogcli.agent.cognition.context_for_model import fit_context, restore_recorded_sizes
from cogcli.agent.context.compiler import CompiledContext, compile_context
from cogcli.agent.context.placements import IN, placements
from cogcli.agent.prompts import build_reasoning_prompt
from cogcli.agent.sections import Prompt
from cogcli.agent.state import AgentState
from cogcli.agent.update import complete_tool_calls
from cogcli.declarations.layer_records import BudgetReport
from tests.fakes.support_desk import compile_input, edge, pack

WORDS = st.sampled_from(["refunds", "x" * 300, "store credit.", "字" * 40, "a\nb", "30 days.", ""])
TEXTS = st.lists(WORDS, max_size=60).map(" ".join)


def state_with(results: list[str]) -> AgentState:
    """A state after calls with these outputs."""
    calls = [
        {"name": "orders.lookup", "success": True, "step": f"t1_{n}", "output": {"note": text}}
        for n, text in enumerate(results)
    ]
    return complete_tool_calls(begun("Refund order ord_881"), calls, NOW).state


def fitted(
    room: int, business: list[str], notes: list[str], session: list[str], results: list[str],
    total: int = 0, message: str = "",
) -> tuple[CompiledContext, Prompt]:  # fmt: skip
    """The context of a request, and its prompt."""
    state = state_with(results)

    def build(context: CompiledContext, tokens: int) -> Prompt:
        notices = [{"type": "replan", "text": "args_invalid"}]
        return build_reasoning_prompt(
            state, context.payload, [TOOL], "fast", notices, max_tokens=tokens
        )

    blocks = [
        {"id": f"b{n}", "priority": n, "cuttable": n % 2 == 0, "text": text}
        for n, text in enumerate(business)
    ]
    facts = (edge("age_days", 12), edge("total", 240), *(edge("note", text) for text in notes))
    given = compile_input(
        f"Refund order ord_881 {message}",
        pack=pack(business_context={"blocks": blocks}),
        edges=facts,
        session=tuple(session),
        limits={"tokens.context": total or room},
    )
    context = fit_context(compile_context(given), build, room)
    return context, build(context, room)


LISTS = st.lists(TEXTS, max_size=12)


@pytest.mark.sampled(6)
@given(st.integers(0, 2500), LISTS, LISTS, LISTS, st.lists(TEXTS, max_size=4), st.integers(0, 300))
def test_a_prompt_fits_and_all_that_it_lacks_is_an_omission(
    room: int, business: list[str], notes: list[str], session: list[str], results: list[str],
    more: int,
) -> None:  # fmt: skip
    context, prompt = fitted(room, business, notes, session, results, room + more)
    if context.is_overpacked:
        return
    assert prompt.tokens <= room
    report = context.payload["budget_report"]
    left = {each["block_id"]: each["reason"] for each in report["omissions"]}
    texts = "\n".join(message["content"] for message in prompt.messages)
    included = {block.block_id for block in context.compilation.assembly.blocks}
    for block in context.compilation.candidates:
        assert (block.block_id in included) or left[block.block_id] == "no_room"
        if block.bucket in ("evidence", "memory", "session") and block.block_id in included:
            assert f"@data {block.block_id} " in texts
    assert "[truncated: " not in texts or left
    assert report["truncated"] is bool(left)
    for n in range(len(results)):
        assert f"@data result:{n} " in texts or left[f"result:{n}"] == "no_room"


@given(LISTS, st.integers(0, 3000))
def test_a_context_is_overpacked_only_if_the_required_parts_do_not_fit(
    business: list[str], room: int
) -> None:
    least = fitted(10**6, [], [], [], [])[1].tokens
    assert not fitted(least + 200 + room, business, [], [], [])[0].is_overpacked


def test_a_long_request_is_overpacked_and_not_cut() -> None:
    context, _ = fitted(900, [], [], [], [], message="please " * 900)
    assert context.is_overpacked


def test_a_context_with_room_is_recorded_without_reserved_tokens() -> None:
    context, _ = fitted(8000, ["Refunds within 30 days."], [], [], [])
    assert "reserved" not in context.payload["budget_report"]
    assert context.payload == compile_context(context.compilation.compile_input).payload


def test_results_and_texts_share_the_room() -> None:
    texts = ["Refunds within 30 days. " * 20] * 8
    context, prompt = fitted(1400, texts, [], [], ["found " * 400] * 3)
    shown = "\n".join(message["content"] for message in prompt.messages)
    assert "@data result:2 " in shown
    assert "business:b7" in {block.block_id for block in context.compilation.assembly.blocks}
    reasons = {(each.kind, each.status) for each in placements(context.compilation)}
    assert {("business", IN), ("business", "out"), ("state", "cut")} <= reasons


def test_a_context_is_compiled_again_from_its_recorded_report() -> None:
    context, _ = fitted(1400, ["word " * 300] * 9, ["x " * 90] * 9, [], ["found " * 400] * 3)
    given = context.compilation.compile_input
    report: dict[str, Any] = context.payload["budget_report"]
    assert report["reserved"] > 0
    bare = given._replace(reserved=0, state_omissions=())
    again = compile_context(restore_recorded_sizes(bare, BudgetReport.of(report)))
    assert again.payload == context.payload
