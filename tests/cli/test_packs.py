"""Runs under a pack, and the commands about packs, over the support desk of the documentation
(docs/reference/pack.md)."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from support.project import Project, Result

pytestmark = pytest.mark.sampled(8)

DESK = Path(__file__).parents[2] / "docs/examples/support-desk"
PACK = "support-desk@4.0.0"
FILE = "packs/support-desk/4.0.0.yaml"
GATE = "GATE_FINANCE_APPROVAL"


def _refund(desk: Project, order: str, *more: str, user: str = "cust_7") -> Result:
    under = ("--pack", PACK, "--intent", "support.refund", "--user", user)
    return desk.run("run", "support.refund", "-p", f"order_id={order}", *under, *more, "--json")


def _events(desk: Project, result: Result, event_type: str) -> list[dict[str, Any]]:
    directory = next(desk.root.rglob(result.json["episode_id"]))
    lines = (directory / "events.jsonl").read_text().splitlines()
    events = [json.loads(line) for line in lines]
    return [event["payload"] for event in events if event["event_type"] == event_type]


def _change_pack(desk: Project, old: str, new: str) -> None:
    text = (desk.root / FILE).read_text()
    assert old in text
    (desk.root / FILE).write_text(text.replace(old, new))


def test_a_refund_above_the_limit_waits_for_finance(desk: Project) -> None:
    paused = _refund(desk, "ord_881").assert_exit(5)
    assert paused.json["error"]["code"] == "policy.approval"
    verdicts = [payload["verdict"] for payload in _events(desk, paused, "policy.decided")]
    assert verdicts == ["allow", "allow", "allow_with_gate"]
    for by, why in (
        ("bob", "found none"),
        ("bob:support", "found `support`"),
        ("cust_7:finance", "another person"),
    ):
        refused = desk.run("resume", "@last", "--approve", GATE, "--by", by).assert_exit(5)
        assert why in refused.err
    done = desk.run(
        "resume", "@last", "--approve", GATE, "--by", "ann:finance", "--json"
    ).assert_ok()
    assert done.json["outputs"]["receipt"]["status"] == "done"
    answer = _events(desk, done, "approval.granted")[0]
    assert (answer["by"], answer["role"]) == ("ann", "finance")
    desk.run("verify", "@last").assert_ok()
    desk.run("replay", "@last").assert_ok()


@pytest.mark.parametrize(
    ("shadow", "mode"),
    [
        ((), "interventive"),
        (("refund_limit",), "hybrid"),
        (("refund_limit", "refund_window"), "advisory"),
    ],
)
def test_the_state_says_how_rules_took_part(
    desk: Project, shadow: tuple[str, ...], mode: str
) -> None:
    for rule in shadow:
        _change_pack(
            desk, f"rule_id: {rule}\n      mode: enforce", f"rule_id: {rule}\n      mode: shadow"
        )
    _refund(desk, "ord_440").assert_exit(5)
    shown = desk.run("state", "show", "@last", "--json").assert_ok().json
    assert shown["state"]["episode"]["intuition_mode"] == mode
    desk.run("resume", "@last", "--approve", "payments.refund", "--by", "bob").assert_ok()
    desk.run("verify", "@last").assert_ok()
    desk.run("replay", "@last").assert_ok()


def test_a_rejection_vetoes(desk: Project) -> None:
    _refund(desk, "ord_881").assert_exit(5)
    result = desk.run(
        "resume", "@last", "--reject", GATE, "--by", "ann:finance", "--json"
    ).assert_exit(4)
    assert result.json["error"]["code"] == "safety.rejected"


def test_a_destructive_call_below_the_limit_waits_for_anybody(desk: Project) -> None:
    paused = _refund(desk, "ord_440").assert_exit(5)
    assert _events(desk, paused, "approval.requested")[0]["gate"] == "GATE_OPERATOR"
    desk.run("resume", "@last", "--approve", "payments.refund", "--by", "bob").assert_ok()


def test_rules_that_read_the_state_say_the_same_when_the_run_goes_on(desk: Project) -> None:
    done_before = '{"all": [{var: state.outcomes.actions}, {"==": [{var: result_status}, ok]}]}'
    planned = '{"==": [{var: state.plan.steps.0.status}, done]}'
    _change_pack(desk, '{">": [{var: args.amount}, 200]}', f"{{and: [{done_before}, {planned}]}}")
    paused = _refund(desk, "ord_440").assert_exit(5)
    asked = _events(desk, paused, "policy.decided")[-1]
    assert (asked["rule"], asked["reads"]["state.plan.steps.0.status"]) == ("refund_limit", "done")
    done = desk.run(
        "resume", "@last", "--approve", GATE, "--by", "ann:finance", "--json"
    ).assert_ok()
    assert _events(desk, done, "policy.decided")[-1]["reads"] == asked["reads"]
    desk.run("verify", "@last").assert_ok()
    desk.run("replay", "@last").assert_ok()


def test_an_old_order_is_denied_by_its_age(desk: Project) -> None:
    skill = "skills/local/support/refund/skill.yaml"
    text = (desk.root / skill).read_text()
    (desk.root / skill).write_text(text.replace("    config: {condition: vars.ok}\n", ""))
    denied = _refund(desk, "ord_100").assert_exit(4)
    assert denied.json["error"]["code"] == "policy.denied"
    last = _events(desk, denied, "policy.decided")[-1]
    assert (last["rule"], last["stage"], last["reads"]["order.age_days"]) == (
        "refund_window",
        "situation",
        45,
    )
    desk.run("replay", "@last").assert_ok()


def test_nobody_in_particular_gets_no_refund(desk: Project) -> None:
    assert (
        _refund(desk, "ord_440", user="default").assert_exit(4).json["error"]["code"]
        == "policy.denied"
    )


def test_a_lower_ceiling_and_a_lower_budget(desk: Project) -> None:
    low = _refund(desk, "ord_440", "--safety-mode", "read_only").assert_exit(4)
    assert "above_safety_mode" in low.json["error"]["message"]
    spent = _refund(desk, "ord_440", "--budget", "tool_calls.per_workflow=1").assert_exit(4)
    assert "in the budget of the pack" in spent.json["error"]["hint"]
    assert spent.json["error"]["code"] == "budget.exceeded"
    assert _events(desk, spent, "budget.exceeded") == [
        {"key": "tool_calls.per_workflow", "used": 1, "limit": 1}
    ]


def test_without_a_pack_only_what_is_given_is_held(desk: Project) -> None:
    free = desk.run("run", "support.refund", "-p", "order_id=ord_440", "--json").assert_ok()
    assert _events(desk, free, "policy.decided") == []
    assert "policy" not in _events(desk, free, "run.started")[0]
    low = desk.run(
        "run", "support.refund", "-p", "order_id=ord_440", "--safety-mode", "local_write", "--json"
    )
    assert [p["reason"] for p in _events(desk, low.assert_exit(4), "policy.decided")] == [
        "above_safety_mode"
    ]


@pytest.mark.parametrize(
    ("flags", "code", "error"),
    [
        (("--pack", PACK), 2, "usage.flag"),
        (("--intent", "support.refund"), 2, "usage.flag"),
        (("--user", "ann"), 2, "usage.flag"),
        (("--pack", PACK, "--intent", "support.refnd"), 2, "usage.value"),
        (("--pack", "support-desk@4.0.1", "--intent", "support.refund"), 3, "pack.unknown"),
        (("--pack", f"{PACK}#sha256:00", "--intent", "support.refund"), 3, "pack.mismatch"),
        (
            (
                "--pack",
                PACK,
                "--intent",
                "support.refund",
                "--budget",
                "tool_calls.per_workflow=99",
            ),
            2,
            "usage.value",
        ),
        (("--pack", PACK, "--intent", "support.refund", "--budget", "turns=1"), 2, "usage.value"),
        (("--budget", "tool_calls.per_workflow=many"), 2, "usage.value"),
    ],
)
def test_what_is_refused_before_anything_runs(
    desk: Project, flags: tuple[str, ...], code: int, error: str
) -> None:
    refused = desk.run(
        "run", "support.refund", "-p", "order_id=ord_440", *flags, "--json"
    ).assert_exit(code)
    assert refused.json["error"]["code"] == error
    assert not list(desk.root.rglob("events.jsonl"))


def test_a_pack_that_was_edited_since_stops_a_resume(desk: Project) -> None:
    _refund(desk, "ord_881").assert_exit(5)
    _change_pack(desk, "200]", "300]")
    refused = desk.run(
        "resume", "@last", "--approve", GATE, "--by", "ann:finance", "--json"
    ).assert_exit(3)
    assert refused.json["error"]["code"] == "resume.changed-specs"
    assert f"pack:{PACK}" in refused.json["error"]["message"]


def test_an_approval_holds_under_the_pack_that_asked(desk: Project) -> None:
    paused = _refund(desk, "ord_881").assert_exit(5)
    _change_pack(desk, "Later only as store credit.", "Later by hand.")
    answer = ("--approve", GATE, "--by", "ann:finance", "--allow-changed-specs", "--json")
    again = desk.run("resume", "@last", *answer).assert_exit(5)
    assert again.json["error"]["code"] == "policy.approval"
    assert len(_events(desk, paused, "approval.requested")) == 2
    desk.run("resume", "@last", *answer).assert_ok()


def test_a_rerun_stays_under_its_pack(desk: Project) -> None:
    _refund(desk, "ord_881", "--safety-mode", "network").assert_exit(4)
    again = desk.run("rerun", "@last", "--json").assert_exit(4)
    started = _events(desk, again, "run.started")[0]
    assert (started["policy"]["pack"], started["policy"]["safety_mode"]) == (PACK, "network")
    assert [payload["verdict"] for payload in _events(desk, again, "policy.decided")] == [
        "allow",
        "allow",
        "deny",
    ]


def test_a_plan_checks_the_pack_too(desk: Project) -> None:
    line = (
        "run",
        "support.refund",
        "-p",
        "order_id=ord_881",
        "--plan",
        "--intent",
        "support.refund",
    )
    desk.run(*line, "--pack", PACK).assert_ok()
    desk.run(*line, "--pack", "support-desk@9.9.9").assert_exit(3)


def test_a_hash_names_exactly_one_pack(desk: Project) -> None:
    reference = desk.run("pack", "hash", PACK).assert_ok().out.strip()
    assert reference.startswith(f"{PACK}#sha256:")
    assert desk.run("pack", "hash", FILE).assert_ok().out.strip() == reference
    _change_pack(desk, "200]", "300]")
    assert (
        desk.run("pack", "hash", reference, "--json").assert_exit(3).json["error"]["code"]
        == "pack.mismatch"
    )


def test_a_rule_that_is_edited_under_the_same_version_is_another_policy_at_once(
    desk: Project,
) -> None:
    reference = desk.run("pack", "hash", PACK).assert_ok().out.strip()
    before = _refund(desk, "ord_440").assert_exit(5)
    assert _events(desk, before, "approval.requested")[0]["gate"] == "GATE_OPERATOR"
    assert _events(desk, before, "run.started")[0]["pins"]["policy"] == reference
    _change_pack(desk, "{var: args.amount}, 200]", "{var: args.amount}, 10]")
    under = ("--pack", reference, "--intent", "support.refund", "--user", "cust_7")
    stale = desk.run(
        "run", "support.refund", "-p", "order_id=ord_440", *under, "--json"
    ).assert_exit(3)
    assert stale.json["error"]["code"] == "pack.mismatch"
    after = _refund(desk, "ord_440").assert_exit(5)
    assert _events(desk, after, "approval.requested")[0]["gate"] == GATE
    assert _events(desk, after, "run.started")[0]["pins"]["policy"] != reference


@pytest.mark.sampled(16)
def test_checks_of_a_pack_and_of_its_rules(desk: Project) -> None:
    desk.run("pack", "check", PACK).assert_ok()
    desk.run("policy", "test", PACK).assert_ok()
    _change_pack(desk, "{var: args.amount}, 200]", "{var: args.amount}, 250]")
    failed = desk.run("policy", "test", PACK, "--json").assert_exit(1)
    assert [test["rule_id"] for test in failed.json["tests"] if not test["passed"]] == [
        "refund_limit"
    ]
    _change_pack(desk, "gate: GATE_FINANCE_APPROVAL}", "gate: GATE_FINANC_APPROVAL}")
    checked = desk.run("pack", "check", PACK, "--json").assert_exit(1)
    assert [problem["code"] for problem in checked.json["problems"]] == ["pack.reference"]
    assert desk.run("validate", "--json").assert_exit(1).json["counts"]["packs"] == 1


def test_rule_tests_of_a_pack_without_rules_checked_nothing(desk: Project) -> None:
    pack = YAML(typ="safe").load(desk.root / FILE)
    pack["policy_layer"].pop("rules")
    desk.write("bare.yaml", json.dumps(pack))
    for coverage in ((), ("--coverage", "--min-coverage", "100")):
        empty = desk.run("policy", "test", "bare.yaml", *coverage, "--json").assert_exit(3)
        assert empty.json["error"]["code"] == "check.nothing"


@pytest.mark.parametrize(
    ("change", "code", "verdict"),
    [
        ({}, 5, "allow_with_gate"),
        ({"args": {"amount": 20}}, 5, "allow_with_gate"),
        ({"order": {}}, 4, "deny"),
    ],
)
def test_what_a_pack_says_of_a_call(
    desk: Project, change: dict[str, Any], code: int, verdict: str
) -> None:
    call = {
        "request": {"intent": "support.refund"},
        "user": {"id": "cust_7"},
        "order": {"age_days": 12},
        "args": {"amount": 240},
    }
    desk.write("call.json", json.dumps(call | change))
    said = desk.run(
        "policy", "eval", PACK, "--capability", "payments.refund", "--data", "call.json", "--json"
    )
    assert said.assert_exit(code).json["verdict"]["verdict"] == verdict


EDGE = {
    "subject": "order:ord_881",
    "predicate": "age_days",
    "value": 12,
    "evidence_ref": "crm/1",
    "trust": "verified",
}


def _import(desk: Project, *edges: dict[str, Any]) -> Result:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    desk.write(
        "facts.jsonl", "".join(json.dumps({"observed_at": now, **edge}) + "\n" for edge in edges)
    )
    return desk.run("knowledge", "import", "facts.jsonl", "--tenant", "acme", "--json")


def test_knowledge_is_imported_whole_and_found_again(desk: Project) -> None:
    first = _import(
        desk, EDGE, {**EDGE, "predicate": "customer", "value": None, "object": "customer:c7"}
    ).assert_ok()
    second = _import(
        desk, {**EDGE, "subject": "customer:c7", "predicate": "since", "value": 2019}
    ).assert_ok()
    assert second.json["snapshot"]["seq"] == 3
    found = desk.run(
        "knowledge", "query", "order:ord_881", "--tenant", "acme", "--hops", "2"
    ).assert_ok()
    assert [json.loads(line)["predicate"] for line in found.out.splitlines()] == [
        "age_days",
        "customer",
        "since",
    ]
    at = ("--tenant", "acme", "--hops", "2", "--at", first.json["snapshot"]["ref"], "--json")
    assert len(desk.run("knowledge", "query", "order:ord_881", *at).assert_ok().json["edges"]) == 2
    assert (
        desk.run("knowledge", "snapshot").assert_ok().out.strip() == second.json["snapshot"]["ref"]
    )


@pytest.mark.parametrize(
    "change",
    [
        {"subject": "order"},
        {"evidence_ref": ""},
        {"observed_at": "yesterday"},
        {"observed_at": "2026-05-04T09:30:00"},
        {"trust": "sure"},
        {"colour": "red"},
        {"object": "a:b"},
        {"retracts": 0},
        {"retracts": 2},
    ],
)
def test_one_wrong_line_imports_nothing(desk: Project, change: dict[str, Any]) -> None:
    refused = _import(desk, EDGE, {**EDGE, **change}).assert_exit(2)
    assert refused.json["error"]["code"] == "input.json"
    error = refused.json["error"]
    assert (error["file"], error["line"]) == ("facts.jsonl", 2)
    assert desk.run("knowledge", "snapshot", "--json").assert_ok().json["snapshot"]["seq"] == 0


def test_a_context_is_compiled_over_what_is_known(desk: Project) -> None:
    _import(desk, EDGE, {**EDGE, "predicate": "total", "value": 240}).assert_ok()
    request = {"message": "Refund order ord_881", "user": {"user_id": "cust_7"}}
    desk.write("request.json", json.dumps(request))
    compiled = (
        desk.run("context", "compile", "request.json", "--pack", PACK, "--json")
        .assert_ok()
        .json["context"]
    )
    assert compiled["runtime_controls"]["commit_allowed"] is True
    assert [tool["capability"] for tool in compiled["manifests"]["tool_manifest"]][
        -1
    ] == "payments.refund"
    anonymous = ("context", "compile", "--message", request["message"], "--pack", PACK, "--json")
    redacted = desk.run(*anonymous).assert_ok().json["context"]["redactions"]
    assert redacted == [
        {"capability": "payments.refund", "check": "situation", "reason": "named_user"}
    ]
    assert not list(desk.root.rglob("events.jsonl"))


def test_what_has_no_context(desk: Project) -> None:
    desk.run("context", "compile", "--message", "the weather", "--pack", PACK).assert_exit(4)
    desk.run("context", "compile", "--message", "x").assert_exit(2)
    desk.run("context", "compile", "--pack", PACK).assert_exit(2)
    desk.write("request.json", json.dumps({"message": "x", "mesage": "y"}))
    desk.run("context", "compile", "request.json", "--pack", PACK).assert_exit(2)


def test_the_templates_of_a_pack_are_checked_as_skills_at_their_place(desk: Project) -> None:
    _change_pack(desk, "input: {days: vars.age}", "input: {days: vars.ago}")
    result = desk.run("pack", "check", PACK, "--json").assert_exit(1)
    (problem,) = [each for each in result.json["problems"] if each["severity"] == "E"]
    assert (problem["code"], problem["file"]) == ("ref.unwritten", FILE)
    assert problem["path"] == "/decision_layer/task_templates/0/steps/1/input/days"
    desk.run("agent", "invoke", "requests/allowed.json").assert_exit(3)


def test_what_of_a_policy_can_never_decide(desk: Project) -> None:
    assert desk.run("policy", "check", PACK, "--json").assert_ok().json["problems"] == []
    _change_pack(
        desk,
        '      if: {">": [{var: args.amount}, 200]}',
        '      if: {">": [{var: order.age_days}, 40]}',
    )
    _change_pack(desk, "blocks:\n", "blocks:\n    - {id: more, text: More.}\n")
    warned = desk.run("policy", "check", PACK, "--json").assert_ok().json["problems"]
    assert [(problem["code"], problem["severity"], problem["line"]) for problem in warned] == [
        ("policy.unreachable", "W", 46)
    ]
    _change_pack(desk, "gate: GATE_FINANCE_APPROVAL}", "gate: GATE_FINANC_APPROVAL}")
    found = desk.run("policy", "check", PACK, "--json").assert_exit(1).json["problems"]
    assert "pack.reference" in [problem["code"] for problem in found]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"args": []}, "`args` of the data: expected an object, found list"),
        ({"request": "support.refund"}, "`request` of the data: expected an object"),
        ({"agent": {"role": ["support_agent"]}}, "`agent.role` of the data: expected text"),
        ({"user": {"id": 7}}, "`user.id` of the data: expected text"),
        ({"run": {"safety_mode": "DESTRUCTIVE"}}, "no mode `DESTRUCTIVE`"),
        ({"run": {"safety_mode": 9}}, "`run.safety_mode` of the data: expected text"),
    ],
)
def test_data_that_says_of_no_call_is_refused(
    desk: Project, data: dict[str, Any], says: str
) -> None:
    desk.write("call.json", json.dumps(data).encode())
    what = ("--capability", "payments.refund", "--data", "call.json")
    assert says in desk.run("policy", "eval", PACK, *what).assert_exit(2).err


def test_a_file_without_a_key_of_packs_is_checked_as_the_pack_that_it_is_meant_to_be(
    project: Project,
) -> None:
    project.write("shop.yaml", "id: shop\nrules: []\n")
    found = project.run("pack", "check", "shop.yaml", "--json").assert_exit(1).json["problems"]
    missing = {each["message"] for each in found if each["code"] == "key.missing"}
    assert "pack `shop`: key `contract_meta` is missing" in missing
    assert not [each for each in found if "capability" in each["message"]]
