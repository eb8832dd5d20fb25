"""The fifteen invariants of an agent's state (docs/reference/agent-state.md#invariants), most over any replies.

`seeded_defects.py` has the defect that each excludes; `test_seeded_defects.py` sees it caught.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from agent_strategies import (
    ANY_REPLIES,
    CALLS,
    HOSTILE,
    JSON,
    LONG_TEXTS,
    NAMES,
    NOW,
    REPLIES,
    RESULTS,
    SOUND_TEXTS,
    TEXTS,
    TOOL,
    TURNS,
    after,
    begun,
    compiled,
    headers,
    replied,
)
from hypothesis import example, given
from hypothesis import strategies as st
from support.examples import examples

from cogcli.agent import state as agent_state
from cogcli.agent.bounds import json_size
from cogcli.agent.compress import compress_for_context, compress_for_injection, get_situated_context
from cogcli.agent.context.tokenizer import ESTIMATE, Tokenizer
from cogcli.agent.context.truncation import LONG_WORD, cut_text
from cogcli.agent.learning import is_synthesis_due, parse_learned, update_from_interaction
from cogcli.agent.modes import judge_switch
from cogcli.agent.profile import MAX_PROFILE_ITEMS, UserProfile, apply_statement
from cogcli.agent.prompts import (
    HEADERS,
    ToolSpec,
    build_conversation_context,
    build_reasoning_prompt,
)
from cogcli.agent.reply import Reply, ReplyProblem, parse_reply, reply_of_tool_calls
from cogcli.agent.state import AgentState
from cogcli.agent.update import (
    BYTES,
    CHARACTERS,
    MAX_ITEMS,
    MAX_STATE_BYTES,
    add_insight,
    add_message,
    add_notification,
    advance_iteration,
    complete_tool_calls,
    end_run,
    set_tool_calls,
    should_continue,
    update_facts,
    update_from_reasoning,
)

pytestmark = pytest.mark.sampled(4)

LETTERS = Tokenizer("letters/1", False, "", lambda text: len(text))
LABELS = (
    "GOAL", "STRATEGY", "FACTS", "INSIGHTS", "LAST THINKING", "COMMUNICATION", "CURRENT GOALS", "PREFERENCES",
    "ACTIVE PROJECTS", "EXPERTISE", "CONSTRAINTS",
)  # fmt: skip
LOOKUP = {"name": "orders.lookup", "args": {"order_id": "ord_881"}}


def prompt_of(state: AgentState, **given: Any) -> str:
    """The message of data of a prompt."""
    return build_reasoning_prompt(state, compiled(), [TOOL], "fast", **given).messages[-1][
        "content"
    ]


@given(
    st.sampled_from([None, "", "done"]), st.sampled_from([None, "", "stopped"]), st.integers(0, 12)
)
def test_inv_01(response: str | None, stop_reason: str | None, iteration: int) -> None:
    """A run goes on as long as nothing is answered, nothing stopped it, and an iteration is left."""
    state = begun()
    assert should_continue(state)
    execution = state.execution._replace(
        response=response, stop_reason=stop_reason, iteration=iteration
    )
    expected = not response and not stop_reason and iteration < 10
    assert should_continue(state._replace(execution=execution)) == expected
    called = set_tool_calls(state, [LOOKUP], NOW).state
    done = advance_iteration(
        complete_tool_calls(
            called, [{"name": "x", "success": True, "output": "42 days"}], NOW
        ).state
    )
    assert should_continue(done)
    assert "42 days" in prompt_of(done)


@given(st.lists(ANY_REPLIES, max_size=5))
def test_inv_02(values: list[Any]) -> None:
    """A reply replaces what is pending, all of it."""
    state = set_tool_calls(begun(), [LOOKUP, LOOKUP], NOW).state
    for value in [*values, {"tool_calls": [], "response": "done"}]:
        reply = replied(value)
        if reply:
            state = update_from_reasoning(state, reply, NOW).state
            assert list(state.execution.pending_calls) == list(reply.calls)
    assert state.execution.pending_calls == ()


@given(st.lists(CALLS, min_size=1, max_size=3), SOUND_TEXTS.filter(str.strip))
def test_inv_03(calls: list[Any], text: str) -> None:
    """Of calls and a response the calls run; the response is a draft. Nothing is pending once a run ends."""
    state = update_from_reasoning(begun(), Reply(calls=tuple(calls), response=text), NOW).state
    execution = state.execution
    assert (len(execution.pending_calls), execution.response) == (len(calls), None)
    assert execution.draft_response
    assert should_continue(state)
    assert "@data draft model" in prompt_of(complete_tool_calls(state, [], NOW).state)
    assert end_run(state, "budget_exceeded", NOW).state.execution.pending_calls == ()
    answered = update_from_reasoning(state, Reply(response="done"), NOW).state.execution
    assert (answered.response, answered.draft_response, answered.pending_calls) == (
        "done",
        None,
        (),
    )


@given(TURNS, st.sampled_from([None, "", "  "]))
def test_inv_04(turns: list[Any], nothing: str | None) -> None:
    """Facts are applied; null and empty texts change nothing; there is always a goal."""
    state = after(begun(), turns)
    assert state.reasoning.goal
    known = update_facts(state, {"asked_for": "refund"}, NOW).state
    given = {
        "goal": nothing,
        "strategy": nothing,
        "facts": {"asked_for": nothing},
        "insights": [nothing],
    }
    reply = replied({"tool_calls": [LOOKUP], "context_updates": given})
    assert reply
    assert update_from_reasoning(known, reply, NOW).state.reasoning == known.reasoning
    told = replied(
        {"tool_calls": [LOOKUP], "context_updates": {"facts": {"total": 240, "asked_for": nothing}}}
    )
    assert told
    facts = update_from_reasoning(known, told, NOW).state.reasoning.facts
    assert (facts["asked_for"], facts["total"]) == ("refund", 240)


@given(TURNS, st.booleans(), st.integers(1, 4))
def test_inv_05(turns: list[Any], locked: bool, iterations: int) -> None:
    """A mode is switched only as the rules say, to `fast` or `deep`; no prompt is made in another."""
    state = begun(mode_locked=locked, max_iterations=iterations)
    for value, results in turns:
        before, reply = state.execution, replied(value)
        state = advance_iteration(after(state, [(value, results)]))
        if state.execution.mode != before.mode:
            assert reply
            assert state.execution.mode == reply.switch_mode
            assert len(reply.switch_why.split()) >= 3
            assert not locked
            assert before.switches < 2
            assert before.iteration + 1 < iterations
            assert judge_switch(before, reply)
        assert state.execution.mode in ("fast", "deep")
    with pytest.raises(ValueError, match="fast or deep"):
        build_reasoning_prompt(state, compiled(), [], "adapt")


@given(st.lists(st.tuples(st.integers(0, 29), st.integers()), max_size=60))
def test_inv_06(updates: list[tuple[int, int]]) -> None:
    """A fact that is updated is the newest; the one that was not updated for longest goes."""
    state, newest = begun(), list[str]()
    for number, value in updates:
        state = update_facts(state, {f"fact {number}": value % 1000}, NOW).state
        newest = [*(name for name in newest if name != f"fact {number}"), f"fact {number}"][-20:]
        assert list(state.reasoning.facts) == newest
        assert state.reasoning.facts[f"fact {number}"] == value % 1000


@given(LONG_TEXTS, st.integers(0, 60), st.sampled_from([ESTIMATE, LETTERS]))
def test_inv_07(text: str, most: int, tokenizer: Tokenizer) -> None:
    """Limits of tokens count tokens; a cut ends at a word, and says so."""
    cut = cut_text(text, most, tokenizer.count, tokenizer)
    assert tokenizer.count(cut.text) <= most
    assert cut.truncated == (tokenizer.count(text) > most)
    if cut.truncated and cut.text:
        kept, _, marker = cut.text.rpartition("[truncated: ")
        kept = kept.removesuffix(" ")
        assert marker.endswith(" tokens]")
        assert text.startswith(kept)
        rest = text[len(kept) :]
        assert rest
        halves = (kept.split() or [""])[-1], (rest.split() or [""])[0]
        is_long = len("".join(halves)) > LONG_WORD
        assert not kept or rest[0].isspace() or "字" in (kept[-1], rest[0]) or is_long
    reasoning = begun(text).reasoning._replace(strategy=text, insights=(text,))
    profile = UserProfile("ann", communication_style=text)
    for compress, value in ((compress_for_context, reasoning), (compress_for_injection, profile)):
        digest, whole = compress(value, most, tokenizer), compress(value, 10**6, tokenizer)
        assert tokenizer.count(digest.text) <= most
        assert digest.truncated == (tokenizer.count(whole.text) > most)
        assert digest.truncated or digest == whole


@given(
    st.lists(
        st.sampled_from(["ship", " Ship", "SHIP ", "straße", "STRASSE", "b"]),
        min_size=1,
        max_size=8,
    )
)
def test_inv_08(texts: list[str]) -> None:
    """White space and case do not make another entry."""
    state, profile = begun(), UserProfile("ann")
    for text in texts:
        state = add_insight(state, text, NOW).state
        insights = {
            "goals": [text],
            "expertise": [text],
            "success_pattern": text,
            "failure_pattern": text,
        }
        profile = update_from_interaction(profile, insights, NOW).state
    distinct = list(dict.fromkeys(text.strip().casefold() for text in reversed(texts)))[::-1]
    patterns = (profile.success_patterns, profile.failure_patterns)
    for entries in (state.reasoning.insights, profile.goals, profile.expertise_areas, *patterns):
        assert [entry.casefold() for entry in entries] == distinct
        assert entries[-1] == texts[-1].strip()


@pytest.mark.sampled(8)
@examples(100)
@given(TURNS, st.lists(TEXTS, max_size=6), st.integers(1, 5))
def test_inv_09(turns: list[Any], messages: list[str], times: int) -> None:
    """Every collection, every text and the whole state stay below their limits."""
    state = begun(messages[0] if messages else "query", profile=UserProfile("ann"))
    for text in messages * 9:
        state = add_message(state, {"role": "user", "content": text}, NOW).state
        state = add_notification(state, {"text": text}, NOW).state
    state = after(state, turns * times)
    large = {
        "name": "x",
        "success": True,
        "output": {"texts": [text * 9 for text in HOSTILE if len(text) > 99]},
    }
    state = complete_tool_calls(state, [large], NOW).state
    execution, reasoning = state.execution, state.reasoning
    for result in execution.completed_calls:
        assert json_size([result.get("output"), result.get("error")]) <= BYTES["output"] + 16
    for name in ("messages", "pending_calls", "completed_calls", "notifications"):
        assert len(getattr(execution, name)) <= MAX_ITEMS[name]
    for name in ("insights", "facts", "thoughts"):
        assert len(getattr(reasoning, name)) <= MAX_ITEMS[name]
    assert max(len(reasoning.goal), len(reasoning.strategy)) <= CHARACTERS["goal"]
    assert all(len(text) <= CHARACTERS["insight"] for text in reasoning.insights)
    assert all(len(thought["thinking"]) <= CHARACTERS["thinking"] for thought in reasoning.thoughts)
    assert all(
        len(json.dumps(value, ensure_ascii=False).encode()) <= BYTES["fact"] + 64
        for value in reasoning.facts.values()
    )
    assert len(json.dumps(state.to_payload(), ensure_ascii=False).encode()) <= MAX_STATE_BYTES * 2
    assert (
        len(json.dumps(state.to_payload(), ensure_ascii=False, separators=(",", ":")).encode())
        <= MAX_STATE_BYTES
    )


@given(TURNS, st.lists(ANY_REPLIES, max_size=3))
def test_inv_10_payload(turns: list[Any], learned: list[Any]) -> None:
    """What is stored is read back. A real store has its own test of this."""
    profile = UserProfile("ann")
    for insights in learned:
        profile = update_from_interaction(profile, insights, NOW).state
    state = after(begun(profile=profile), turns)
    assert AgentState.from_payload(json.loads(json.dumps(state.to_payload()))) == state


@given(st.integers(-1, 40), st.integers(0, 9), st.integers(0, 9), st.booleans(), st.dictionaries(
    st.sampled_from([*MAX_PROFILE_ITEMS, "user_id", "interaction_count", "synthesis_version", "created_at"]),
    JSON | st.lists(SOUND_TEXTS), max_size=6,
))  # fmt: skip
def test_inv_11(
    count: int, iterations: int, calls: int, read_only: bool, given: dict[str, Any]
) -> None:
    """A profile is synthesized when the rule says so, never before the first interaction, and only in fields of the
    list."""
    due = is_synthesis_due(count, iterations, calls, read_only=read_only)
    assert due == (not read_only and count > 0 and (count % 3 == 0 or iterations > 3 or calls > 2))
    before = UserProfile("ann", created_at=NOW, last_updated=NOW, interaction_count=6)
    learned = parse_learned(json.dumps(given), "synthesize", before)
    assert not isinstance(learned, ReplyProblem)
    changed = before
    for statement in learned.statements:
        assert statement.field in MAX_PROFILE_ITEMS
        changed = apply_statement(changed, statement, [])
    changes = {
        name for name in UserProfile._fields if getattr(changed, name) != getattr(before, name)
    }
    assert changes <= set(MAX_PROFILE_ITEMS)


@example("ab", "insights")
@given(JSON, st.sampled_from(["goal", "strategy", "facts", "insights"]))
def test_inv_12(value: Any, field: str) -> None:
    """A field of a wrong type is dropped with a note, its neighbours are applied; a text is not a list."""
    right = {
        "goal": "settle it",
        "strategy": "look up",
        "facts": {"total": 240},
        "insights": ["recent", "known"],
    }
    reply = replied({"tool_calls": [LOOKUP], "context_updates": {**right, field: value}})
    assert reply
    for name, expected in right.items():
        found = getattr(reply, name)
        if name != field:
            assert (list(found) if name == "insights" else found) == expected
    kind = {"facts": dict, "insights": list}.get(field, str)
    if value is not None and not isinstance(value, kind):
        assert not getattr(reply, field)
        assert reply.notes[0]["code"] == "wrong_type"
        assert field in reply.notes[0]["what"]
    profile = UserProfile("ann")
    insights = {"goals": value, "expertise": ["python"], "communication_style": "concise"}
    learned = update_from_interaction(profile, insights, NOW).state
    assert (learned.expertise_areas, learned.communication_style) == (("python",), "concise")
    assert isinstance(value, list) or learned.goals == ()


BYTES_OF_REPLIES = st.one_of(
    st.binary(max_size=60),
    TEXTS,
    TEXTS.map(lambda text: f'{{"response": "{text}"}}'),
    ANY_REPLIES.map(json.dumps),
    st.tuples(REPLIES.map(json.dumps), st.integers(0, 200), st.text(max_size=5)).map(
        lambda each: each[0][: each[1]] + each[2] + each[0][each[1] + 1 :]
    ),
    st.sampled_from(
        ["[" * 9000, "{" * 9000, '{"a":' * 9000, "```json\n{", "```", '"\\u', "NaN", "-", "1e999"]
    ),
)


@examples(400)
@example("\ud800", None)
@example('{"response": "\ud800"}', [{"name": "a", "args": {}}])
@given(BYTES_OF_REPLIES, JSON)
def test_inv_13(text: str | bytes, calls: Any) -> None:
    """Any bytes are a reply or a problem."""
    assert isinstance(parse_reply(text, 3), Reply | ReplyProblem)
    given = calls if isinstance(calls, list) else [calls]
    plain = text.decode("latin-1") if isinstance(text, bytes) else text
    assert isinstance(reply_of_tool_calls(plain, given, 3), Reply | ReplyProblem)
    if isinstance(found := parse_reply(text, 3), Reply):
        state = update_from_reasoning(begun(), found, NOW).state
        assert AgentState.from_payload(state.to_payload()) == state


@pytest.mark.sampled(8)
@examples(200)
@given(
    st.lists(SOUND_TEXTS, min_size=13, max_size=13),
    TEXTS,
    NAMES,
    RESULTS,
    st.sampled_from([300, 600, 8000]),
)
def test_inv_14(texts: list[str], message: str, name: str, results: list[Any], room: int) -> None:
    """No text opens a section of a prompt."""
    goal, fact, insight, thought, output, draft, notice, role, *rest = texts
    profile = UserProfile(
        rest[0],
        {name: rest[1]},
        (rest[2],),
        (rest[3],),
        rest[4],
        {rest[2]: rest[3]},
        (),
        (rest[0],),
    )
    state = AgentState(
        agent_state.ExecutionState(
            goal,
            messages=({"role": role, "content": goal, "timestamp": NOW},),
            completed_calls=(
                {
                    "name": output,
                    "success": True,
                    "step": fact,
                    "output": output,
                    "truncated": False,
                },
            ),
            draft_response=draft,
        ),
        begun().reasoning._replace(
            goal=goal,
            facts={name: fact},
            insights=(insight,),
            thoughts=({"thinking": thought},),
            strategy=goal,
        ),
        profile,
    )
    state = complete_tool_calls(state, results, NOW).state._replace(user_profile=profile)
    context = compiled(message, evidence=output, memory=fact, session=goal, ref=insight)
    tool = ToolSpec(output, insight, {"type": notice}, (draft,))
    notices = [{"code": "loop_detected", "text": notice}]
    system, developer, user = build_reasoning_prompt(
        state, context, [tool], "deep", notices, max_tokens=room
    ).messages
    assert headers(user["content"]) == [*HEADERS, "Iteration 1/10"]
    plain = build_reasoning_prompt(begun(), compiled(), [TOOL], "deep").messages
    assert system == plain[0]
    assert len(developer["content"].splitlines()) == len(plain[1]["content"].splitlines())
    assert all(headers(each["content"]) == [] for each in build_conversation_context(state))
    assert {each["role"] for each in build_conversation_context(state)} <= {"user", "assistant"}
    assert headers(get_situated_context(state)) in ([], [HEADERS[0], ""])
    lines = [
        *compress_for_context(state.reasoning, 10**6).text.splitlines(),
        *compress_for_injection(profile, 10**6).text.splitlines(),
    ]
    labels = [line.partition(": ")[0] for line in lines]
    assert labels == [label for label in LABELS if label in labels]


@given(TURNS, st.sampled_from(["2026-11-23T04:00:00", "yesterday", "", "2026-11-23", "04:00Z"]))
def test_inv_15(turns: list[Any], naive: str) -> None:
    """A state is JSON, and its times have a zone."""
    state = after(begun(), turns)
    json.dumps(state.to_payload(), allow_nan=False).encode()
    stamped = (*state.execution.messages, *state.execution.notifications, *state.reasoning.thoughts)
    assert all(entry["timestamp"] == NOW for entry in stamped)
    with pytest.raises(ValueError, match="not a time with a zone"):
        update_from_reasoning(state, Reply(thinking="x", response="y"), naive)
    with pytest.raises(ValueError, match="not a time with a zone"):
        update_from_interaction(UserProfile("ann"), {}, naive)


def test_hostile_texts_hold_each_separator() -> None:
    """Else the property above would try less than it says."""
    for separator in "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029":
        assert any(separator in text for text in HOSTILE)
