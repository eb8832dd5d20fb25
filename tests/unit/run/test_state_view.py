"""The state that rules read is what `state.json` would be at that point of the log (docs/reference/pack.md#rules)."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from fakes.runner import ScriptedRunner, gives
from fakes.runs import Ran, run
from fakes.specs import capability, skill, step

from cogcli.declarations.envelope import Event
from cogcli.declarations.pack_spec import Pack
from cogcli.episode.log_lines import LATEST
from cogcli.episode.projection import project
from cogcli.policy.budgets import Budgets
from cogcli.policy.pack_policy import STATE_PARTS, Policy
from cogcli.policy.run_policy import Requester, RunPolicy
from cogcli.run.state_view import RunStateReader

LOOK = capability("desk.look", "n", "n", effect="none")
SEND = capability("desk.send", "n", "n", effect="effect")
TWO = skill(
    step("first", "desk.look", {"n": "inputs.n"}, output={"n": "vars.seen"}),
    step("second", "desk.send", {"n": "vars.seen"}, output={"n": "outputs.n"}),
)


def _raw(*conditions: Any, verdict: str = "deny") -> dict[str, Any]:
    rules = [
        {
            "rule_id": f"rule_{number}",
            "mode": "enforce",
            "applies_to": {"capabilities": ["desk.send"]},
            "if": condition,
            "then": {"verdict": verdict},
        }
        for number, condition in enumerate(conditions)
    ]
    both = ["desk.look", "desk.send"]
    return {
        "contract_meta": {"contract_version": "1.0", "issuer": "example.org"},
        "pack_meta": {"pack_id": "desk", "pack_version": "1.0.0"},
        "policy_layer": {"permissions": [{"role": "clerk", "allow": both}], "rules": rules},
        "tooling_layer": {},
        "decision_layer": {"intents": [{"id": "work", "capabilities": both}]},
    }


def _ran(*conditions: Any) -> tuple[Ran, dict[str, Any]]:
    """A run of both steps under such rules, and what the last decision says."""
    pack = Pack.of(_raw(*conditions))
    rules = Policy.of(pack)
    policy = RunPolicy(
        pack,
        rules,
        Budgets({}),
        Requester("work", "somebody", role="clerk"),
        safety_mode="destructive",
        view=RunStateReader(rules.state_parts) if rules.state_parts else None,
    )
    runner = ScriptedRunner({"desk.look": gives(n=7), "desk.send": gives(n=8)})
    ran = run(TWO, runner, LOOK, SEND, inputs={"n": 7}, policy=policy)
    decided = [event.payload for event in ran.sink.events if event.event_type == "policy.decided"]
    return ran, decided[-1]


@pytest.mark.parametrize(
    ("condition", "path"),
    [
        ({"==": [{"var": "state.goal.task"}, "a task"]}, "state.goal.task"),
        ({"==": [{"var": "state.plan.steps.0.status"}, "done"]}, "state.plan.steps.0.status"),
        ({"==": [{"var": "state.memory.facts.0.value"}, 7]}, "state.memory.facts.0.value"),
        (
            {"==": [{"var": "state.outcomes.actions.0.step_id"}, "first"]},
            "state.outcomes.actions.0.step_id",
        ),
        ({"==": [{"var": "state.outcomes.status"}, "pending"]}, "state.outcomes.status"),
    ],
)
def test_a_rule_reads_what_the_run_did_before(condition: Any, path: str) -> None:
    ran, decided = _ran(condition)
    assert (ran.code, decided["reason"], decided["stage"]) == (
        "policy.denied",
        "rule_0",
        "situation",
    )
    assert list(decided["reads"]) == [path]
    assert ran.runner.called() == ["first"]


def test_what_the_state_does_not_have_denies() -> None:
    assert _ran({"==": [{"var": "state.beliefs.0.confidence"}, 1]})[1]["reason"].startswith(
        "evidence_missing"
    )
    assert _ran({"==": [{"var": "state.plan.steps.9.status"}, "x"]})[1]["reason"].startswith(
        "evidence_missing"
    )


def test_a_run_whose_rules_read_no_state_keeps_none() -> None:
    pack = Pack.of(_raw({">": [{"var": "args.n"}, 9]}))
    policy = RunPolicy(
        pack, Policy.of(pack), Budgets({}), Requester("work"), safety_mode="destructive"
    )
    assert policy.observe is None
    assert _ran({">": [{"var": "args.n"}, 9]})[0].outcome.status == "ok"


@pytest.mark.parametrize("parts", [set(), {"goal"}, {"plan", "memory"}, STATE_PARTS])
def test_only_the_parts_that_are_asked_for_are_made(parts: set[str]) -> None:
    assert RunStateReader(parts).read().keys() == parts


def _log() -> list[Event]:
    first, *rest = _ran()[0].sink.events
    return [first._replace(payload={**first.payload, "rules": LATEST}), *rest]


def test_after_each_event_it_is_what_the_log_projects_to_and_stays_so() -> None:
    events = _log()
    view, before = RunStateReader(STATE_PARTS), []
    for number, event in enumerate(events, 1):
        view.apply(event)
        document = project(events[:number])
        seen = view.read()
        assert seen == {name: document[name] for name in STATE_PARTS}
        before.append((seen, copy.deepcopy(seen)))
    assert all(seen == kept for seen, kept in before)


def test_a_first_event_that_was_masked_gives_the_same_plan() -> None:
    events = _log()
    bare = {name: value for name, value in events[0].payload.items() if name != "rules"}
    views = RunStateReader(["plan"]), RunStateReader(["plan"])
    for view, first in zip(views, (events[0], events[0]._replace(payload=bare)), strict=True):
        for event in (first, *events[1:]):
            view.apply(event)
    assert views[0].read() == views[1].read()
