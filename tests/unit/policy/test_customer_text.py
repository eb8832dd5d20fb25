"""The texts of a pack for its customers (docs/reference/pack.md#say)."""

from __future__ import annotations

from typing import Any

import pytest
from fakes.support_desk import pack

from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.pack_spec import CumulativeLimit, Pack, PolicyLayer
from cogcli.policy.customer_text import (
    check_texts,
    find_fact_fault,
    find_text,
    list_limit_values,
    list_safe_facts,
    render_text,
)
from cogcli.specs.problem_report import ProblemReport

LIMIT: dict[str, Any] = {
    "id": "day",
    "applies_to": {"capabilities": ["payments.refund"]},
    "max": 50,
    "per": "user",
    "say": "too much",
}
RULE: dict[str, Any] = {
    "rule_id": "window",
    "mode": "enforce",
    "if": True,
    "then": {"verdict": "deny"},
    "say": "too late",
}
LAYER = PolicyLayer.of(
    {
        "rules": [RULE, {**RULE, "rule_id": "silent", "say": ""}],
        "limits": [LIMIT],
        "guardrails": {
            "must_refuse": [{"id": "card", "pattern": "[0-9]{13}", "say": "no cards"}],
            "must_escalate": [{"id": "legal", "phrases": ["lawyer"], "say": "a person"}],
        },
    }
)


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        ("window", "too late"),
        ("silent", ""),
        ("evidence_missing:window", ""),
        ("policy_eval_error", ""),
        ("limit_exceeded:day", "too much"),
        ("limit_unknown:day", ""),
        ("must_refuse:card", "no cards"),
        ("must_refuse:legal", ""),
        ("must_escalate:legal", "a person"),
    ],
)
def test_a_text_belongs_to_the_reason_of_a_decision(reason: str, text: str) -> None:
    found = find_text(LAYER, reason)
    assert (found.text if found else "") == text
    assert (found is not None and found.limit is not None) == (reason == "limit_exceeded:day")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("ord_1", "ord_1"),
        (240.0, "240"),
        (0.1, "0.1"),
        (1e20, "100000000000000000000"),
        (7, "7"),
        (100, "100"),
        (float("inf"), ""),
        (True, ""),
        (None, ""),
        ([1], ""),
        ("a\x1b[31m\u202eb\n c", "a[31mb c"),
        ("x" * 201, f"{'x' * 199}…"),
        ("x" * 200, "x" * 200),
        ("${a.b}", "${a.b}"),
        ("[masked]", ""),
        ('{"password": "hunter2"}', ""),
        ("नि\u200dष", "नि\u200dष"),
    ],
)
def test_a_value_is_a_text_or_a_number(value: object, shown: str) -> None:
    assert render_text("<${a.b}>", {"a.b": value}) == f"<{shown}>"


def test_a_text_is_one_paragraph() -> None:
    assert render_text("One\n\ttwo  ${a.c} $${x}.\x07", {}) == "One two ${x}."
    assert render_text("${a.password}", {"a.password": "hunter2"}) == ""


@pytest.mark.parametrize("text", ["${a}", "${a.b + 1}", "${", "${a.${b}}", "${a..b}", "${a.b:-c}"])
def test_a_placeholder_that_cannot_be_read_has_no_text(text: str) -> None:
    assert render_text(text, {"a": 1, "a.b": 1}) == ""


@pytest.mark.parametrize(
    ("per", "read", "expected"),
    [
        ("user", {"used": "29.7"}, {"limit.max": 50, "limit.left": "20.3"}),
        ("user", {"used": "60"}, {"limit.max": 50, "limit.left": "0"}),
        ("user", {"used": "[masked]"}, {"limit.max": 50}),
        ("user", None, {"limit.max": 50}),
        ("tenant", {"used": "1"}, {"limit.max": 50}),
    ],
)
def test_what_is_left_is_that_of_the_user(per: str, read: Any, expected: dict[str, Any]) -> None:
    limit = CumulativeLimit.of({**LIMIT, "per": per})
    assert list_limit_values(limit, {"limits.day": read}) == expected


def _capability(id: str, data_class: str | None) -> Capability:
    safety = {"safety": {"data_classification": data_class} if data_class else {}}
    return Capability.of({"id": id, "version": "1.0.0", "description": "Looks up.", **safety})


def _facts(source: str = "output.age", fact: str = "order.age", mask: str = "") -> Pack:
    then = {"verdict": "allow", "obligations": [*([mask] if mask else []), "evidence"]}
    rules = [
        {**RULE, "rule_id": "other", "applies_to": {"capabilities": ["no.such"]}},
        {**RULE, "then": then, "say": f"${{{fact}}} ${{order.id}} $${{}}"},
    ]
    return pack(
        policy_layer={"permissions": [], "rules": rules, "limits": []},
        tooling_layer={"capabilities": {"a.look": {"facts": {fact: source}}, "a.other": {}}},
    )


@pytest.mark.parametrize(
    ("given", "data_class", "reason"),
    [
        (_facts(), None, ""),
        (_facts(), "public", ""),
        (_facts(), "internal", ""),
        (_facts(), "pii", "what `a.look` gives is pii"),
        (_facts(), "restricted", "what `a.look` gives is restricted"),
        (_facts(mask="mask:age"), None, "a rule masks it in what `a.look` gives"),
        (_facts("output.a.b", mask="mask:a"), None, "a rule masks it in what `a.look` gives"),
        (_facts(mask="mask:ages"), None, ""),
        (_facts("output.password"), None, "its path names a secret"),
        (_facts(fact="order.password"), None, "its name is that of a secret"),
    ],
)
def test_a_fact_is_safe_if_all_that_gives_it_is(
    given: Pack, data_class: str | None, reason: str
) -> None:
    known = {"a.look": _capability("a.look", data_class)}
    (fact,) = given.tooling.capabilities["a.look"].facts
    assert find_fact_fault(given, fact, known) == reason
    assert list_safe_facts(given, known) == (frozenset() if reason else {fact})
    report = ProblemReport("p.yaml", None)
    check_texts(given, report, known)
    assert [each.message.rpartition(": ")[2] for each in report.problems] == (
        [reason] if reason else []
    )


def test_a_fact_without_a_known_source_is_not_safe() -> None:
    given = _facts()
    assert find_fact_fault(given, "order.age", {}) == "the classification of `a.look` is not known"
    assert find_fact_fault(given, "order.no", {}) == "no call gives it"


def test_the_class_of_a_skill_is_the_highest_that_it_reaches() -> None:
    skill = _capability("a.skill", None).replace(
        reaches=(_capability("a.one", "pii"), _capability("a.two", "public"))
    )
    assert skill.data_class == "pii"


def test_the_check_names_each_text() -> None:
    texts = {
        "must_refuse": [{"id": "card", "phrases": ["card"], "say": "${order.no}"}],
        "must_escalate": [{"id": "legal", "phrases": ["lawyer"], "say": "${limit.max}"}],
    }
    limits = [
        {**LIMIT, "say": "${limit.max} ${limit.left}"},
        {**LIMIT, "id": "all", "per": "tenant", "say": "${limit.left}"},
    ]
    layer = {
        "permissions": [],
        "guardrails": texts,
        "limits": limits,
        "rules": [{**RULE, "say": "${"}],
    }
    report = ProblemReport("p.yaml", None)
    check_texts(pack(policy_layer=layer), report, {})
    assert [(each.code, each.path) for each in report.problems] == [
        ("pack.reference", "/policy_layer/guardrails/must_refuse/0/say"),
        ("pack.reference", "/policy_layer/guardrails/must_escalate/0/say"),
        ("request.template", "/policy_layer/rules/0/say"),
        ("pack.reference", "/policy_layer/limits/1/say"),
    ]
    assert [each.hint for each in report.problems[:2]] == [
        "did you mean `order.id`?",
        "it has order.id",
    ]
    assert "limit.max" in report.problems[-1].hint
