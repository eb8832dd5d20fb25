"""Texts of a pack for its customers (docs/reference/pack.md#say), with the installed command."""

from __future__ import annotations

import json

import pytest
from support.agent_desk import document, episode_of, payloads
from support.limited_desk import UNDER, limited_pack, make_limited_desk, pay
from support.project import Project, Result

pytestmark = pytest.mark.sampled(8)

PACK = "packs/support-desk/4.0.0.yaml"
LOOKUP = "capabilities/orders.lookup.yaml"
OLD = "Order ${order.id} of ${order.total} is ${order.age_days} days old: too late."
WAITS = "A colleague looks at ${order.id} [bold]today[/bold]."
CARD = "Please send no card numbers."
LAWYER = "A person answers you."
SAYS = (
    ("      then: {verdict: deny}\n", f'      say: "{OLD}"\n      then: {{verdict: deny}}\n'),
    (
        "      then: {verdict: allow_with_gate, gate: GATE_FINANCE_APPROVAL}\n",
        f'      say: "{WAITS}"\n      then: {{verdict: allow_with_gate, gate: GATE_FINANCE_APPROVAL}}\n',
    ),
    ('reason: "No card numbers."', f'reason: "No card numbers.", say: "{CARD}"'),
    ("phrases: [lawyer],", f"phrases: [lawyer], say: {LAWYER},"),
)


@pytest.fixture
def talking(desk: Project) -> Project:
    """The desk, whose rules and guardrails have texts for customers."""
    return change(desk, PACK, *SAYS)


def change(desk: Project, name: str, *changes: tuple[str, str]) -> Project:
    text = (desk.root / name).read_text()
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    desk.write(name, text.encode())
    return desk


def invoke(desk: Project, message: str, *more: str) -> Result:
    asked = ("--message", message, "--pack", "support-desk@4.0.0", "--user", "cust_7")
    return desk.run("agent", "invoke", *asked, *more)


def assert_told(desk: Project, result: Result, text: str, code: str) -> None:
    """The text stands beside the code, in the record of the decision, and in the same way after a replay."""
    error = result.json["error"]
    assert (error["say"], error["code"]) == (text, code)
    assert document(episode_of(desk, result), "decision")["say"] == text
    desk.run("verify", "@last").assert_ok()
    if result.code != 5:
        desk.run("replay", "@last").assert_ok()


@pytest.mark.parametrize(
    ("message", "exit_code", "code", "text"),
    [
        (
            "Refund ord_100", 4, "policy.denied",
            "Order ord_100 of 80 is 45 days old: too late.",
        ),
        ("Refund ord_881", 5, "policy.approval", "A colleague looks at ord_881 [bold]today[/bold]."),
        ("Refund ord_881 to 4111111111111111", 4, "policy.refused", CARD),
        ("Refund ord_440, says my lawyer", 5, "policy.escalated", LAWYER),
    ],
)  # fmt: skip
def test_a_customer_reads_the_text_and_a_program_the_code(
    talking: Project, message: str, exit_code: int, code: str, text: str
) -> None:
    talking.run("pack", "check", "support-desk@4.0.0").assert_ok()
    result = invoke(talking, message, "--json")
    assert result.code == exit_code
    assert_told(talking, result, text, code)
    shown = invoke(talking, message)
    assert (shown.code, shown.out) == (exit_code, f"{text}\n")


def test_the_text_of_a_denied_plan_reaches_no_model(talking: Project) -> None:
    refund = {"name": "payments.refund", "args": {"order_id": "ord_100", "amount": 80}}
    lookup = {"name": "orders.lookup", "args": {"order_id": "ord_100"}}
    replies = [
        {"json": {"tool_calls": [lookup]}},
        {"json": {"tool_calls": [refund]}},
        {"json": {"response": "I did it."}, "times": 3},
    ]
    talking.write("models/tries.yaml", json.dumps({"replies": replies}).encode())
    result = invoke(talking, "Refund ord_100", "--json", "--model", "scripted:models/tries.yaml")
    assert_told(talking, result, "Order ord_100 of 80 is 45 days old: too late.", "policy.denied")
    prompts = payloads(talking.episode, "model.requested")
    assert len(prompts) > 2
    assert "too late" not in json.dumps(prompts)
    assert "ord_100" in json.dumps(prompts)


PII = (LOOKUP, ("properties:", "safety: {data_classification: pii}\nproperties:"))
RENAMED = (
    PACK,
    ("order.total: output.total", "order.sum: output.total"),
    ("[order.age_days, order.total]", "[order.age_days]"),
)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [(PII, "what `orders.lookup` gives is pii"), (RENAMED, "no call gives it")],
)
def test_a_value_that_a_customer_may_not_see_is_an_error_and_left_out(
    talking: Project, changed: tuple[str, tuple[str, str]], reason: str
) -> None:
    change(talking, *changed)
    assert_unsafe(talking, reason)
    said = invoke(talking, "Refund ord_100", "--json").json["error"]["say"]
    assert said.startswith("Order ord_100 of is")
    assert "80" not in said


def test_a_value_that_a_rule_masks_may_not_be_shown(talking: Project) -> None:
    mask = (
        "    - rule_id: mask_total\n      mode: enforce\n      applies_to: {capabilities: [orders.lookup]}\n"
        "      if: true\n      then: {verdict: allow, obligations: ['mask:total']}\n    - rule_id: refund_limit\n"
    )
    change(talking, PACK, ("    - rule_id: refund_limit\n", mask))
    assert_unsafe(talking, "a rule masks it in what `orders.lookup` gives")


def assert_unsafe(desk: Project, reason: str) -> None:
    """`pack check` says why the text may not show `order.total`."""
    checked = desk.run("pack", "check", "support-desk@4.0.0", "--json")
    problems = [each for each in checked.json["problems"] if each["path"].endswith("/say")]
    assert checked.code == 1
    assert {each["code"] for each in problems} == {"pack.reference"}
    assert any("order.total" in each["message"] and reason in each["message"] for each in problems)


def test_a_malformed_placeholder_is_an_error(talking: Project) -> None:
    change(talking, PACK, ("${order.age_days} days", "${order.age_days + 1} days"))
    checked = talking.run("pack", "check", "support-desk@4.0.0", "--json")
    (problem,) = checked.json["problems"]
    assert (checked.code, problem["code"]) == (1, "request.template")
    result = invoke(talking, "Refund ord_100", "--json")
    assert result.code == 4
    assert "say" not in result.json["error"]


def test_a_fact_brings_no_escapes_and_no_second_placeholder(talking: Project) -> None:
    change(talking, LOOKUP, ("  total:", "  note: {type: string, description: A note.}\n  total:"))
    (binding,) = talking.root.glob("bindings/**/desk_orders_lookup.yaml")
    name = str(binding.relative_to(talking.root))
    change(talking, name, ("total: response.total", "total: response.total\n  note: response.note"))
    value = '"\\x1b[31m\\u202e${order.id} [bold]\\n" * 99'
    change(talking, "support_desk.py", ('45, "total": 80.0', f'45, "total": 80.0, "note": {value}'))
    change(
        talking,
        PACK,
        ("order.total: output.total", "order.note: output.note, order.total: output.total"),
    )
    change(talking, PACK, (OLD, "${order.note}"))
    talking.run("pack", "check", "support-desk@4.0.0").assert_ok()
    shown = invoke(talking, "Refund ord_100")
    assert shown.out.startswith("[31m${order.id} [bold] [31m${order.id} [bold] ")
    assert shown.out.endswith("…\n")
    assert len(shown.out) == 201


def test_a_limit_shows_what_is_left_to_the_user(project: Project) -> None:
    limit = (
        "{id: daily, applies_to: {capabilities: [pay.refund]}, sum: amount, max: 50.5, per: user, window_s: 86400, "
        "say: 'At most ${limit.max} a day; ${limit.left} are left.'}"
    )
    desk = make_limited_desk(project, limit)
    pay(desk, "a", 30.3).assert_ok()
    asked = ("--message", "pay back", "--param", "order=b", "--param", "amount:=30", *UNDER)
    denied = desk.run("agent", "invoke", *asked)
    assert denied.code == 4
    assert_told(desk, denied, "At most 50.5 a day; 20.2 are left.", "policy.denied")
    skill = pay(desk, "b", 30)
    assert skill.json["error"]["say"] == "At most 50.5 a day; 20.2 are left."


def test_what_others_used_is_not_shown(project: Project) -> None:
    limit = (
        "{id: shared, applies_to: {capabilities: [pay.refund]}, sum: amount, max: 50, per: tenant, "
        "say: '${limit.left} of ${limit.max}'}"
    )
    desk = make_limited_desk(project, limit)
    checked = desk.run("pack", "check", "limited@1.0.0", "--json")
    assert "limit.left" in str(checked.json["problems"])
    assert pay(desk, "b", 60).json["error"]["say"] == "of 50"
    desk.write(
        "packs/limited/1.0.0.yaml", limited_pack(limit.replace("${limit.left} of ", "")).encode()
    )
    desk.run("pack", "check", "limited@1.0.0").assert_ok()


@pytest.mark.parametrize(
    ("more", "said", "exit_code"),
    [
        ((), "Order ord_1 of 80 is 31 days old: too late.", 0),
        ((), "Order ord_1 is 31 days old: too late.", 1),
        ((PII,), "Order ord_1 of is days old: too late.", 0),
    ],
)
def test_policy_test_compares_the_text_as_a_customer_reads_it(
    talking: Project, more: tuple[tuple[str, tuple[str, str]], ...], said: str, exit_code: int
) -> None:
    for name, changed in more:
        change(talking, name, changed)
    change(
        talking,
        PACK,
        (
            "- {data: {order: {age_days: 31}}, expect: match}",
            f'- {{data: {{order: {{id: ord_1, age_days: 31, total: 80}}}}, expect: {{say: "{said}"}}}}',
        ),
    )
    result = talking.run("policy", "test", "support-desk@4.0.0", "--json").assert_exit(exit_code)
    first = result.json["tests"][0]
    assert (first["expected"], first["passed"]) == (f"say: {said}", exit_code == 0)
