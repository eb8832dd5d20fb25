"""The contexts of a run, compiled again from its log (docs/reference/pack.md#placements)."""

from __future__ import annotations

from typing import Any

from fakes.agents import ScriptedPlanner as Scripted
from fakes.agents import calls, invocation, invoke, lookup, says
from fakes.support_desk import edge, pack, raw_pack

from cogcli.agent.cognition.invocation import StoredValues
from cogcli.agent.cognition.recorded_contexts import recompile
from cogcli.agent.context.placements import placements

FETCHED = StoredValues((edge("note", "fragile"), edge("owner", "x", trust="untrusted")), (), "kg_1")


def test_every_turn_comes_out_as_it_was_recorded() -> None:
    given = invocation(fetched=FETCHED)
    ran = invoke(Scripted(lookup(), calls(("policy.eval", {"days": 12})), says("Looked.")), given)
    found = list(recompile(invocation(fetched=FETCHED), ran.sink.events))
    assert [each.turn for each in found] == [1, 2, 3]
    assert [each.differs for each in found] == ["", "", ""]
    contexts = [each["context"] for each in ran.payloads("context.compiled")]
    assert [each.context.payload for each in found] == contexts


def test_a_turn_knows_the_facts_of_the_calls_before_it_and_what_was_left_out() -> None:
    ran = invoke(Scripted(lookup(), says("Looked.")), invocation(fetched=FETCHED))
    first, second = recompile(invocation(fetched=FETCHED), ran.sink.events)
    by_name = [
        {
            each.name: each.reason
            for each in placements(turn.context.compilation)
            if each.kind == "evidence"
        }
        for turn in (first, second)
    ]
    assert by_name[0] == {"order.note": "hops:1", "order.owner": "low_trust"}
    assert by_name[1] == {**by_name[0], "order.age_days": "hops:1", "order.total": "hops:1"}


def test_rules_that_read_the_state_read_it_as_it_was() -> None:
    rule: dict[str, Any] = {
        "rule_id": "once",
        "mode": "enforce",
        "applies_to": {"capabilities": ["policy.eval"]},
        "if": {
            ">": [
                {
                    "reduce": [
                        {"var": "state.outcomes.actions"},
                        {"+": [{"var": "accumulator"}, 1]},
                        0,
                    ]
                },
                0,
            ]
        },
        "then": {"verdict": "deny"},
        "tests": [],
    }
    of = pack(policy_layer={**raw_pack()["policy_layer"], "rules": [rule]})
    from cogcli.policy.pack_policy import Policy
    from cogcli.run.state_view import RunStateReader

    def viewing() -> Any:
        made = invocation(of)
        made.policy._view = RunStateReader(Policy.of(of).state_parts)
        return made

    ran = invoke(Scripted(lookup(), says("Looked.")), viewing())
    assert [each.differs for each in recompile(viewing(), ran.sink.events)] == ["", ""]
    redacted = [each["context"]["redactions"] for each in ran.payloads("context.compiled")]
    assert [len(each) for each in redacted] == [0, 1]


def test_another_pack_is_told_by_the_first_stage_that_differs() -> None:
    ran = invoke(Scripted(calls(), says("Hello.")), invocation())
    other = pack(business_context={"blocks": [{"id": "other", "text": "Another text."}]})
    (first, *_) = recompile(invocation(other), ran.sink.events)
    assert first.differs == "budget"
    moved = invocation(fetched=StoredValues(snapshot_ref="kg_2"))
    assert next(iter(recompile(moved, ran.sink.events))).differs == "snapshot_ref"


def test_a_record_with_more_than_a_compiler_gives_differs() -> None:
    ran = invoke(Scripted(says("Hello.")), invocation())
    events = list(ran.sink.events)
    place = next(n for n, event in enumerate(events) if event.event_type == "context.compiled")
    ledger = {**events[place].payload["context"]["context_ledger"], "more": "x"}
    events[place] = events[place]._replace(
        payload={"turn": 1, "context": {"context_ledger": ledger}}
    )
    altered = recompile(invocation(), events[: place + 1])
    assert next(altered).differs == "context_ledger"
