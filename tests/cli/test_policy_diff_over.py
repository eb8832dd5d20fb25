"""`policy diff --over`: recorded sessions are decided again under changed rules, with the limits and the budgets that
the other decisions leave (docs/reference/pack.md#diff).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from cogcli.api import Gate
from cogcli.api import Project as Opened

pytestmark = pytest.mark.sampled(4)

PACK = """
contract_meta: {{contract_version: "1.0"}}
pack_meta:
  pack_id: desk
  pack_version: {version}
  defaults: {{safety_mode: destructive, budget: {{tool_calls: {{per_workflow: {budget}}}}}}}
policy_layer:
  permissions: [{{role: clerk, allow: [pay.out]}}]
  limits: [{limits}]
  rules:
    - rule_id: most
      mode: enforce
      if: {{">": [{{var: args.amount}}, {most}]}}
      then: {{verdict: {verdict}}}
tooling_layer: {{}}
decision_layer:
  intents: [{{id: help, phrases: [help], risk: destructive, capabilities: [pay.out]}}]
tone_and_comms: {{agent: {{role: clerk}}}}
"""
DAY = "{id: day, applies_to: {capabilities: [pay.out]}, sum: amount, max: MAX, per: user, window_s: 86400}"


def write_pack(project: Any, version: str, **changes: Any) -> None:
    """A version of the pack."""
    values = {"budget": 20, "limits": "", "most": 1000, "verdict": "deny", **changes}
    project.write("cogcli.toml", "")
    project.write(f"packs/desk/{version}.yaml", PACK.format(version=version, **values))


def pay(project: Any, *sessions: Iterable[int]) -> list[str]:
    """Make sessions with payments of these amounts under the first version, and return what became of each call."""
    found = []
    opened = Opened(project.root, environ=project.env)
    with Gate("desk@1.0.0", project=opened, intent="help", user="ann") as gate:
        gate.tool(lambda amount, order="o": "paid", capability="pay.out")
        for number, amounts in enumerate(sessions):
            with gate.session(f"s{number}"):
                for place, amount in enumerate(amounts):
                    inputs = {"amount": amount, "order": f"o{place}"}
                    found.append(gate.call("pay.out", inputs).status)
    return found


def compare(project: Any, code: int) -> tuple[list[tuple[str, str, str]], list[str]]:
    """The calls that change, each with both verdicts and the new reason, and the reasons of the undecided ones."""
    words = ("policy", "diff", "desk@1.0.0", "desk@2.0.0", "--over", ".cogcli/episodes", "--json")
    found = project.run(*words).assert_exit(code).json["decisions"]
    changed = [
        (each["before"]["verdict"], each["after"]["verdict"], each["after"]["reason"])
        for each in found["changed"]
    ]
    return changed, [each["why"] for each in found["undecided"]]


def test_a_lower_limit_counts_what_it_would_have_let_through(project: Any) -> None:
    """Of three sessions: 40 + 40 + 40 + 10 stay below 130, and below 90 the third does not, but the fourth does."""
    write_pack(project, "1.0.0", limits=DAY.replace("MAX", "130"))
    write_pack(project, "2.0.0", limits=DAY.replace("MAX", "90"))
    assert pay(project, [40, 40], [40], [10, 5]) == ["done"] * 4 + ["denied"]
    changed, undecided = compare(project, 1)
    assert changed == [("allow", "deny", "limit_exceeded:day")]
    assert undecided == [], "the last was denied at 130, and is denied at 90 with 90 used"


def test_a_rule_that_denies_leaves_room_for_later_calls(project: Any) -> None:
    write_pack(project, "1.0.0", limits=DAY.replace("MAX", "100"))
    write_pack(project, "2.0.0", limits=DAY.replace("MAX", "100"), most=50)
    assert pay(project, [80], [30, 20]) == ["done", "denied", "done"]
    changed, undecided = compare(project, 1)
    assert changed == [("allow", "deny", "most"), ("deny", "allow", "no_rule")]
    assert undecided == []


def test_a_person_who_would_be_asked_makes_later_calls_unknown(project: Any) -> None:
    write_pack(project, "1.0.0", limits=DAY.replace("MAX", "100"))
    write_pack(
        project, "2.0.0", limits=DAY.replace("MAX", "100"), most=50, verdict="allow_with_gate"
    )
    assert pay(project, [80], [30, 15]) == ["done", "denied", "done"]
    changed, undecided = compare(project, 1)
    assert changed == [("allow", "allow_with_gate", "most")]
    assert len(undecided) == 2, "30 fit if the person says no, and then 15 do"
    assert "a person" in undecided[0]


def test_what_a_new_limit_counted_before_is_unknown(project: Any) -> None:
    write_pack(project, "1.0.0")
    write_pack(project, "2.0.0", limits=DAY.replace("MAX", "3"))
    assert pay(project, [5, 1], [1]) == ["done"] * 3
    changed, undecided = compare(project, 1)
    assert changed == [("allow", "deny", "limit_exceeded:day")], "5 never fit"
    assert len(undecided) == 2, "calls before these sessions may have counted"
    assert "not known" in undecided[0]


def test_budgets_are_spent_anew(project: Any) -> None:
    write_pack(project, "1.0.0", budget=3)
    write_pack(project, "2.0.0", budget=2, most=50)
    assert pay(project, [60, 1, 2, 3], [1]) == ["done"] * 3 + ["denied", "done"]
    changed, undecided = compare(project, 1)
    assert changed == [("allow", "deny", "most")], (
        "the next two fit, and the last was over budget before"
    )
    write_pack(project, "2.0.0", budget=9)
    changed, undecided = compare(project, 1)
    assert changed == [("deny", "allow", "no_rule")]
    write_pack(project, "2.0.0", budget=3, say="")
    assert compare(project, 0) == ([], [])
    assert undecided == []
