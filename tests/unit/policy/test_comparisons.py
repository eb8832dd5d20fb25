"""Which comparison decided a call, and the nearest number that would decide otherwise
(docs/reference/pack.md#explain)."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cogcli.base.canonical import compact
from cogcli.declarations.pack_spec import CumulativeLimit, PackIntent, PolicyRule
from cogcli.policy.comparisons import Comparison, comparisons_of, explain_verdict, path_of
from cogcli.policy.jsonlogic import compile_rule, evaluate
from cogcli.policy.limits import LimitClaim, LimitedCall, apply_limits
from cogcli.policy.pack_policy import GovernedCall, Policy
from cogcli.policy.run_policy import JudgedCall, with_value
from cogcli.policy.verdict import Verdict

AMOUNT = {"var": "args.amount"}
MORE = {"+": [{"var": "args.limit"}, 5]}
AGE = {"var": "order.age_days"}


def _rule(condition: Any, verdict: str = "deny", rule_id: str = "r", **more: Any) -> PolicyRule:
    then = {"verdict": verdict, **more.pop("then", {})}
    raw = {"rule_id": rule_id, "mode": "enforce", "if": condition, "then": then}
    return PolicyRule.of(raw | more)


def _policy(rules: list[PolicyRule]) -> Policy:
    intent = PackIntent(id="buy", capabilities=("pay",))
    return Policy(permissions={"clerk": ["pay"]}, intents={"buy": intent}, rules=rules)


def _explained(rules: list[PolicyRule], **data: Any) -> Any:
    policy = _policy(rules)
    call = GovernedCall("pay", "network", "clerk", "network", data.get("args", {}))
    case = JudgedCall(call, {"args": {}, **data})
    return explain_verdict(
        policy.rules_for("buy", "pay"),
        case,
        lambda each: policy.decide("buy", each.call, each.data),
    )


@pytest.mark.parametrize(
    ("condition", "value", "decided", "flip"),
    [
        ({">": [AMOUNT, 200]}, 240, "`args.amount` 240 > 200", "200 or less would be allowed"),
        ({">=": [AMOUNT, 200]}, 240, "`args.amount` 240 >= 200", "less than 200 would be allowed"),
        ({"<": [AMOUNT, 200]}, 20, "`args.amount` 20 < 200", "200 or more would be allowed"),
        ({"<=": [AMOUNT, 200]}, 20, "`args.amount` 20 <= 200", "more than 200 would be allowed"),
        ({"<": [200, AMOUNT]}, 240, "`args.amount` 240 > 200", "200 or less would be allowed"),
        ({"==": [AMOUNT, 7]}, 7, "`args.amount` 7 == 7", "other than 7 would be allowed"),
        ({"!=": [AMOUNT, 7]}, 8, "`args.amount` 8 != 7", "7 would be allowed"),
        ({"!": [{"<=": [AMOUNT, 200]}]}, 240, "`args.amount` 240 is not <= 200", "200 or less would be allowed"),
        ({"<": [10, AMOUNT, 99]}, 12, "`args.amount` 12 > 10", "10 or less would be allowed"),
        ({">": [AMOUNT, 200]}, 20, "`args.amount` 20 is not > 200", "more than 200 would be denied"),
        ({">": [AMOUNT, 200.5]}, 240.25, "`args.amount` 240.25 > 200.5", "200.5 or less would be allowed"),
        ({"<=": [AMOUNT, 200.5]}, 20, "`args.amount` 20 <= 200.5", "more than 200.5 would be allowed"),
        ({">": [AMOUNT, MORE]}, 240, "`args.amount` 240 > 105", "105 or less would be allowed"),
        ({">": [{"*": [AMOUNT, 2]}, 400]}, 240, "`args.amount` 240 > 200", "200 or less would be allowed"),
        ({">": [{"*": [AMOUNT, 2]}, 401]}, 240, "`args.amount` 240 > 200.5", "200.5 or less would be allowed"),
        ({">": [{"+": [AMOUNT, 5]}, 205]}, 240, "`args.amount` 240 > 200", "200 or less would be allowed"),
        ({">": [{"/": [AMOUNT, -2]}, -60]}, 20, "`args.amount` 20 < 120", "120 or more would be allowed"),
        ({">=": [AMOUNT, 200.5]}, 240, "`args.amount` 240 >= 200.5", "less than 200.5 would be allowed"),
        ({"<=": [200, AMOUNT]}, 240, "`args.amount` 240 >= 200", "less than 200 would be allowed"),
        ({">": [200, AMOUNT]}, 20, "`args.amount` 20 < 200", "200 or more would be allowed"),
        ({">=": [200, AMOUNT]}, 20, "`args.amount` 20 <= 200", "more than 200 would be allowed"),
        ({"===": [AMOUNT, 7]}, 7, "`args.amount` 7 == 7", "other than 7 would be allowed"),
        ({"!==": [7, AMOUNT]}, 8, "`args.amount` 8 != 7", "7 would be allowed"),
    ],
)  # fmt: skip
def test_the_comparison_that_decided(condition: Any, value: float, decided: str, flip: str) -> None:
    explained = _explained([_rule(condition)], args={"amount": value, "limit": 100})
    assert explained.decided[0].text == decided
    assert (explained.flips[0].text, explained.flips[0].path) == (flip, "args.amount")


@pytest.mark.parametrize(
    ("verdict", "says"),
    [
        ("deny", "be denied"),
        ("refuse", "be refused"),
        ("escalate", "be escalated to GATE_X"),
        ("allow_with_gate", "wait for GATE_X"),
    ],
)
def test_a_flip_says_what_would_become_of_the_call(verdict: str, says: str) -> None:
    explained = _explained(
        [_rule({">": [AMOUNT, 200]}, verdict, then={"gate": "GATE_X"})], args={"amount": 20}
    )
    assert [flip.text for flip in explained.flips] == [f"more than 200 would {says}"]


@given(
    st.sampled_from(("<", "<=", ">", ">=", "==", "!=", "===", "!==")),
    st.sampled_from((5, 6, 7, 6.5, "a", "b", True)),
    st.sampled_from((6, 6.5, "a", False)),
    st.booleans(),
)
def test_a_comparison_holds_as_the_rule_does(
    operator: str, value: Any, bound: Any, turned: bool
) -> None:
    condition = {operator: [bound, AMOUNT] if turned else [AMOUNT, bound]}
    facts = {"args": {"amount": value}}
    result = evaluate(compile_rule(condition), facts)
    compared = [each.holds for each in comparisons_of(_rule(condition), facts)]
    assert compared == ([result.result] if result.error is None else [])


def test_where_a_comparison_turns_the_numbers_on_its_other_side_are_not_tried() -> None:
    rules = [
        _rule({"<=": [AMOUNT, 200]}, "escalate"),
        _rule({"==": [AMOUNT, 199]}, rule_id="other"),
    ]
    own = [flip for flip in _explained(rules, args={"amount": 20}).flips if flip.rule == "r"]
    assert [flip.text for flip in own] == ["more than 200 would be allowed"]


def test_a_whole_number_turns_at_the_next_whole_one() -> None:
    explained = _explained([_rule({">=": [{"*": [AMOUNT, 2]}, 400]})], args={"amount": 240})
    assert [flip.distance for flip in explained.flips] == [41]


def test_of_a_call_that_is_allowed_the_nearest_comparison_decided() -> None:
    rules = [_rule({">": [AMOUNT, 1000]}), _rule({">": [AMOUNT, 300]}, "escalate", "limit")]
    explained = _explained(rules, args={"amount": 240})
    assert [each.text for each in explained.decided] == ["`args.amount` 240 is not > 300"]
    assert len(explained.flips) == 2


def test_the_nearest_number_comes_first() -> None:
    rules = [_rule({">": [AMOUNT, 1000]}), _rule({">": [AMOUNT, 200]}, "escalate", "limit")]
    explained = _explained(rules, args={"amount": 240})
    assert [flip.text for flip in explained.flips] == [
        "200 or less would be allowed",
        "more than 1000 would be denied",
    ]
    assert [each.rule for each in explained.decided] == ["limit"]


def test_of_conditions_joined_each_that_turns_it_decided() -> None:
    both = {"and": [{">": [AMOUNT, 200]}, {">": [AGE, 30]}]}
    explained = _explained([_rule(both)], args={"amount": 240}, order={"age_days": 31})
    assert [each.text for each in explained.decided] == [
        "`order.age_days` 31 > 30",
        "`args.amount` 240 > 200",
    ]
    either = _explained([_rule({"or": both["and"]})], args={"amount": 240}, order={"age_days": 31})
    assert either.flips == ()
    assert [each.path for each in either.decided] == ["args.amount", "order.age_days"]


def test_limits_of_arguments_are_comparisons_too() -> None:
    rule = _rule({"==": [1, 1]}, "allow", then={"args": {"amount": {"max": 500}}})
    explained = _explained([rule], args={"amount": 600})
    assert explained.decided[0].text == "`args.amount` 600 is not <= 500"
    assert explained.flips[0].text == "500 or less would be allowed"


def test_what_is_no_number_has_no_flip() -> None:
    rule = _rule({"==": [{"var": "user.role"}, "guest"]})
    explained = _explained([rule], user={"role": "guest"})
    assert explained.decided[0].text == '`user.role` "guest" == "guest"'
    assert explained.flips == ()


def test_what_is_unknown_is_named() -> None:
    explained = _explained([_rule({">": [AGE, 30]})], order={})
    assert (explained.decided, explained.flips, explained.missing) == ((), (), ("order.age_days",))
    asked = _explained([_rule({"!!": [{"missing": ["order.age_days"]}]})], order={})
    assert (asked.verdict.outcome, asked.missing) == ("deny", ())


def test_shadow_rules_decide_nothing() -> None:
    explained = _explained([_rule({">": [AMOUNT, 100]}, mode="shadow")], args={"amount": 240})
    assert (explained.decided, explained.flips) == ((), ())


@pytest.mark.parametrize("loop", ["map", "filter", "reduce", "all", "some", "none"])
def test_the_items_of_a_list_are_not_compared_but_what_makes_the_list_is(loop: str) -> None:
    items = {"if": [{">": [AMOUNT, 200]}, {"var": "args.items"}, []]}
    condition = {loop: [items, {">": [{"var": "price"}, 5]}, {"<": [{"var": "price"}, 9]}]}
    found = comparisons_of(
        _rule(condition), {"args": {"amount": 240, "items": [{"price": 9}]}, "price": 7}
    )
    assert [(each.pointer, each.path) for each in found] == [(f"/{loop}/0/if/0/>", "args.amount")]


@pytest.mark.parametrize(
    "condition",
    [
        {},
        {"some": AMOUNT},
        {">": 5},
        {">": "ab"},
        {">": [AMOUNT]},
        {"var": []},
        {"log": [AMOUNT, 5]},
        None,
    ],
)
def test_a_rule_with_faults_is_compared_with_nothing(condition: Any) -> None:
    assert comparisons_of(_rule(condition), {"args": {"amount": 240}}) == []


def test_a_comparison_says_where_it_stands() -> None:
    (found,) = comparisons_of(_rule({"and": [{">": [AMOUNT, 200]}, True]}), {"args": {"amount": 1}})
    assert (found.pointer, found.operator, found.value, found.threshold, found.holds) == (
        "/and/0/>",
        ">",
        1,
        200,
        False,
    )


def test_a_rule_for_other_calls_has_no_part() -> None:
    rule = _rule({">": [AMOUNT, 200]}, applies_to={"capabilities": ["refund"]})
    assert _explained([rule], args={"amount": 240}).decided == ()


@pytest.mark.parametrize(
    ("condition", "args"),
    [
        ({">": [AMOUNT, 200]}, {"amount": "240"}),
        ({">": [AMOUNT, 200]}, {"amount": True}),
        ({">": [AMOUNT, 200]}, {}),
        ({">": [AMOUNT, {"var": "args.gone"}]}, {"amount": 240}),
        ({"==": [AMOUNT, {"var": "args.gone"}]}, {"amount": 240}),
        ({"==": [{"var": "args.gone"}, "x"]}, {}),
        ({">": [{"+": [AMOUNT, {"cat": ["x"]}]}, 200]}, {"amount": 240}),
        ({">": [{"*": [AMOUNT, AMOUNT]}, 200]}, {"amount": 240}),
        ({">": [{"*": [AMOUNT, 0]}, 200]}, {"amount": 240}),
        ({"==": [{"cat": [{"var": "args.name"}, "x"]}, "ax"]}, {"name": "a"}),
        ({"==": [{"cat": [{"var": "args.name"}, "x"]}, 5]}, {"name": "a"}),
        ({"==": [{"+": [AMOUNT, 1]}, "x"]}, {"amount": 240}),
        ({"==": [AMOUNT, {"map": [[1], {"var": "price"}]}]}, {"amount": 240}),
    ],
)
def test_what_has_no_number_or_no_line_is_compared_with_nothing(
    condition: Any, args: dict[str, Any]
) -> None:
    assert comparisons_of(_rule(condition), {"args": args}) == []


@pytest.mark.parametrize("number", [240, 241, 242])
def test_a_side_that_is_no_number_at_one_of_three_numbers_has_no_line(number: int) -> None:
    side = {"if": [{"==": [AMOUNT, number]}, "none", AMOUNT]}
    found = comparisons_of(_rule({">": [side, 200]}), {"args": {"amount": 240}})
    assert [each.pointer for each in found] == ["/>/0/if/0/=="]


@pytest.mark.parametrize(
    ("source", "path"),
    [
        ({"var": "a.b"}, "a.b"),
        ({"var": ["a.b"]}, "a.b"),
        ({"var": ["a.b", "default"]}, "a.b"),
        ({"var": []}, ""),
        ({"var": [1, "a"]}, ""),
        ({"var": 1}, ""),
        ({"var": "a", "+": [1, 2]}, ""),
        ({"missing": "a"}, ""),
        ("a", ""),
    ],
)
def test_which_path_a_side_is_alone(source: Any, path: str) -> None:
    assert path_of(source) == path


def test_the_slope_of_a_side_turns_its_comparison() -> None:
    (found,) = comparisons_of(_rule({">": [{"-": [100, AMOUNT]}, 40]}), {"args": {"amount": 10}})
    assert (found.text, found.holds) == ("`args.amount` 10 < 60", True)


def test_limits_that_an_argument_cannot_keep_are_not_compared() -> None:
    rule = _rule(True, then={"args": {"amount": {"min": 1, "max": 9}, "name": {"enum": ["a"]}}})
    at = ("r", "/args/amount", "args.amount")
    assert comparisons_of(rule, {"args": {"amount": 4, "name": "b"}}) == [
        Comparison(*at, 4, "<=", 9, True),
        Comparison(*at, 4, ">=", 1, True),
    ]
    assert comparisons_of(rule, {"args": {"amount": "4"}}) == []


def test_numbers_are_shown_as_people_write_them_and_long_values_cut() -> None:
    rule = _rule({"==": [{"var": "args.text"}, "y" * 58]})
    (found,) = comparisons_of(rule, {"args": {"text": "x" * 59}})
    assert found.text == f'`args.text` "{"x" * 59}… is not == "{"y" * 58}"'
    (found,) = comparisons_of(_rule({">": [AMOUNT, 2.0]}), {"args": {"amount": 2.5}})
    assert found.text == "`args.amount` 2.5 > 2"
    for bound, text in ((2.0**53 - 1, "9007199254740991"), (2.0**53, "9007199254740992.0")):
        (found,) = comparisons_of(_rule({">": [AMOUNT, bound]}), {"args": {"amount": 2.5}})
        assert found.text == f"`args.amount` 2.5 is not > {text}"


def test_a_number_in_a_list_can_be_tried_too() -> None:
    rule = _rule({">": [{"var": "args.parts.1"}, 5]})
    explained = _explained([rule], args={"parts": [1, 7]})
    assert explained.flips[0].text == "5 or less would be allowed"
    assert with_value({"args": {}}, "args.a.b", 1) == {"args": {"a": {"b": 1}}}


def test_a_number_beyond_what_other_rules_say_is_found() -> None:
    rules = [_rule({"==": [AMOUNT, number]}, rule_id=f"r{number}") for number in (4, 5, 6)]
    explained = _explained(rules, args={"amount": 5})
    assert [flip.text for flip in explained.flips] == [
        "less than 4 would be allowed",
        "more than 6 would be allowed",
    ]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(("<", "<=", ">", ">=", "==", "!=")),
            st.integers(-20, 20),
            st.sampled_from(("deny", "escalate", "allow_with_gate", "allow")),
        ),
        min_size=1,
        max_size=4,
    ),
    st.integers(-21, 21),
)
@settings(max_examples=60, deadline=None)
def test_the_first_number_that_flips_flips_and_none_before_it_does(
    rules: list[tuple[str, int, str]], amount: int
) -> None:
    declared = [
        _rule({operator: [AMOUNT, bound]}, verdict, f"r{number}")
        for number, (operator, bound, verdict) in enumerate(rules)
    ]

    policy = _policy(declared)

    def verdict_at(number: int) -> tuple[str, str]:
        args = {"amount": number}
        found = policy.decide(
            "buy", GovernedCall("pay", "network", "clerk", "network", args), {"args": args}
        )
        return found.outcome, found.gate

    here = verdict_at(amount)
    others = [number for number in range(-22, 23) if verdict_at(number) != here]
    flips = _explained(declared, args={"amount": amount}).flips
    assert bool(flips) == bool(others)
    if flips:
        assert min(flip.distance for flip in flips) == min(
            abs(number - amount) for number in others
        )


@pytest.mark.parametrize("number", [1e300, -1e300, 1.7e308, 2.0**53, 5e-324, -0.0])
@pytest.mark.parametrize(
    "condition",
    [
        {">": [AMOUNT, 200]},
        {">": [{"*": [AMOUNT, 1e-300]}, 200]},
        {">": [{"*": [AMOUNT, 1e-300]}, 1e300]},
        {"<": [{"+": [AMOUNT, 1e300]}, 1e308]},
        {"==": [AMOUNT, 1e300]},
    ],
)
def test_numbers_of_any_size_are_told(condition: Any, number: float) -> None:
    explained = _explained([_rule(condition)], args={"amount": number})
    for found in (*explained.decided, *explained.flips):
        assert found.text
        assert json.loads(compact(found._asdict())) == found._asdict()


def test_a_limit_is_compared_with_what_was_left() -> None:
    policy = _policy([])
    scope = {"capabilities": ["pay"]}
    limits = (
        CumulativeLimit.of(
            {"id": "sum", "applies_to": scope, "sum": "amount", "max": 50, "per": "user"}
        ),
        CumulativeLimit.of({"id": "count", "applies_to": scope, "max": 9, "per": "user"}),
        CumulativeLimit.of(
            {"id": "lost", "applies_to": scope, "sum": "amount", "max": 9, "per": "user"}
        ),
        CumulativeLimit.of(
            {"id": "no", "applies_to": scope, "sum": "other", "max": 9, "per": "user"}
        ),
    )

    def claim(amount: Decimal) -> tuple[LimitClaim, ...]:
        amounts = (amount, Decimal(1), amount, None)
        return tuple(
            LimitClaim(limit, "t", "p", "user:a", each)
            for limit, each in zip(limits, amounts, strict=True)
        )

    def decide(case: JudgedCall) -> Verdict:
        verdict = policy.decide("buy", case.call, case.data)
        amount = Decimal(repr(case.data["args"]["amount"]))
        return apply_limits(
            verdict, claim(amount)[:2], {"sum": Decimal("20.5"), "count": Decimal(0)}
        )

    data = {"args": {"amount": 30}}
    case = JudgedCall(GovernedCall("pay", "network", "clerk", "network", data["args"]), data)
    used = {"sum": Decimal("20.5"), "count": Decimal(0), "no": Decimal(0)}
    found = explain_verdict((), case, decide, LimitedCall(claim(Decimal(30)), used))
    assert [each.text for each in found.decided] == ["`args.amount` 30 is not <= 29.5"]
    assert [each.text for each in found.flips] == ["29.5 or less would be allowed"]
    assert explain_verdict((), case, decide, LimitedCall(claim(Decimal(30)), None)).flips == ()


def test_an_amount_that_takes_all_that_is_left_is_within_its_limit() -> None:
    declared = {"id": "sum", "applies_to": {"capabilities": ["pay"]}, "sum": "amount"}
    limit = CumulativeLimit.of({**declared, "max": 50, "per": "user"})
    claims = (LimitClaim(limit, "t", "p", "user:a", Decimal(20)),)
    used = {"sum": Decimal(30)}

    def decide(case: JudgedCall) -> Verdict:
        amount = Decimal(repr(case.data["args"]["amount"]))
        verdict = _policy([]).decide("buy", case.call, case.data)
        return apply_limits(verdict, (claims[0]._replace(amount=amount),), used)

    data = {"args": {"amount": 20}}
    case = JudgedCall(GovernedCall("pay", "network", "clerk", "network", data["args"]), data)
    found = explain_verdict((), case, decide, LimitedCall(claims, used))
    assert [(each.text, each.pointer) for each in found.decided] == [
        ("`args.amount` 20 <= 20", "/max")
    ]
    assert [each.text for each in found.flips] == ["more than 20 would be denied"]


def test_a_count_is_compared_with_no_argument() -> None:
    declared = {"id": "count", "applies_to": {"capabilities": ["pay"]}, "max": 0, "per": "user"}
    claims = (LimitClaim(CumulativeLimit.of(declared), "t", "p", "user:a", Decimal(1)),)
    used = {"count": Decimal(0)}

    def decide(case: JudgedCall) -> Verdict:
        return apply_limits(_policy([]).decide("buy", case.call, case.data), claims, used)

    data = {"args": {"amount": 20}}
    case = JudgedCall(GovernedCall("pay", "network", "clerk", "network", data["args"]), data)
    found = explain_verdict((), case, decide, LimitedCall(claims, used))
    assert (found.verdict.reason, found.decided, found.flips) == ("limit_exceeded:count", (), ())
