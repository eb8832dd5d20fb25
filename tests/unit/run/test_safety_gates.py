from __future__ import annotations

from typing import Any

import pytest
from fakes.runner import Script, ScriptedRunner, echo, gives, raises
from fakes.runs import Ran, run
from fakes.sink import payload_of
from fakes.specs import capability, gate, skill, step

from cogcli.base.calls import Answer
from cogcli.base.canonical import digest_of
from cogcli.base.errors import ServerFaultError
from cogcli.base.redact import MASK
from cogcli.specs.fields import fields_from


def guarded(*pre: Any, post: tuple[Any, ...] = (), effect: str = "none", **safety: Any) -> Any:
    block = {"mandatory_pre_gates": list(pre), "mandatory_post_gates": list(post), **safety}
    return capability(
        "c.a", "x z", "y", effect=effect, safety={k: v for k, v in block.items() if v}
    )


def asked(cap: Any, scripts: dict[str, Script | list[Script]], *more: Any, **options: Any) -> Ran:
    runner = ScriptedRunner({"c.a": gives(y="out"), **scripts})
    gates = [
        gate(name) for name in scripts if name.startswith("g.") and name not in {m.id for m in more}
    ]
    main = skill(step("s", "c.a", {"x": "inputs.x"}, output={"y": "vars.y"}), step("t", "c.free"))
    runner.scripts["c.free"] = gives(y=1)
    return run(
        main, runner, cap, *gates, capability("c.free"), *more, inputs={"x": "in"}, **options
    )


def no(reason: str = "no") -> Script:
    return gives(allowed=False, reason=reason)


YES = gives(allowed=True)
NONSENSE: list[Script] = [
    gives(), gives(allowed=None), gives(allowed=1), gives(allowed="true"), gives(allowed=[]),
    raises(lambda: ServerFaultError("call.server-error", "boom", left=True)),
]  # fmt: skip


def on_fail(gate_id: str, word: str) -> dict[str, str]:
    return {"capability": gate_id, "on_fail": word}


@pytest.mark.parametrize("when", ["pre", "post"])
def test_true_passes(when: str) -> None:
    cap = guarded("g.one") if when == "pre" else guarded(post=("g.one",))
    result = asked(cap, {"g.one": YES})
    assert (result.outcome.status, result.state.vars) == ("ok", {"y": "out"})


@pytest.mark.parametrize("when", ["pre", "post"])
@pytest.mark.parametrize(
    ("word", "status", "code", "steps"),
    [
        ("block", "vetoed", "safety.gate", {"s": "vetoed", "t": "skipped"}),
        ("warn", "ok", None, {"s": "done", "t": "done"}),
        ("degrade", "ok", None, {"s": "skipped", "t": "done"}),
        ("require_human", "pending", "safety.confirmation", {"s": "pending", "t": "pending"}),
    ],
)
def test_false_leads_to_on_fail(
    when: str, word: str, status: str, code: str | None, steps: dict[str, str]
) -> None:
    rule = on_fail("g.one", word)
    cap = guarded(rule) if when == "pre" else guarded(post=(rule,))
    result = asked(cap, {"g.one": no("too hot")})
    assert (result.outcome.status, result.code, result.steps) == (status, code, steps)
    called = "s" in result.runner.called()
    assert called is (when == "post" or word == "warn")
    assert result.state.vars == ({"y": "out"} if word == "warn" else {})
    decided = payload_of(result.sink.events, "gate.decided")
    assert (decided["verdict"], decided["on_fail"], decided["reason"]) == (word, word, "too hot")
    if code:
        assert result.outcome.error is not None
        assert "too hot" in result.outcome.error.message
        assert (result.outcome.error.capability_id, result.outcome.error.step_id) == ("c.a", "s")


@pytest.mark.parametrize("when", ["pre", "post"])
@pytest.mark.parametrize("word", ["block", "warn", "degrade", "require_human"])
@pytest.mark.parametrize("script", NONSENSE)
def test_anything_else_blocks_whatever_on_fail_says(when: str, word: str, script: Script) -> None:
    rule = on_fail("g.one", word)
    result = asked(guarded(rule) if when == "pre" else guarded(post=(rule,)), {"g.one": script})
    assert (result.outcome.status, result.code) == ("vetoed", "safety.gate-error")
    assert result.state.vars == {}
    assert payload_of(result.sink.events, "gate.decided")["decision"] == "veto"


@pytest.mark.parametrize("word", ["block", "warn", "degrade", "require_human"])
def test_a_gate_that_cannot_be_asked_blocks(word: str) -> None:
    unknown = asked(guarded(on_fail("g.gone", word)), {})
    unbound = asked(guarded(on_fail("g.gone", word)), {}, gate("g.gone"))
    unfit = asked(guarded(on_fail("g.one", word)), {"g.one": YES}, gate("g.one", "other!"))
    untrusted = asked(
        guarded(on_fail("g.one", word)),
        {"g.one": YES},
        gate("g.one", safety={"trust_level": "privileged"}),
    )
    for result in (unknown, unbound, unfit, untrusted):
        assert (result.outcome.status, result.code) == ("vetoed", "safety.gate-error")
        assert "s" not in result.runner.called()


def test_gates_run_in_order_until_one_blocks() -> None:
    result = asked(
        guarded(on_fail("g.a", "require_human"), on_fail("g.b", "block"), "g.c"),
        {"g.a": no(), "g.b": no("blocked"), "g.c": YES},
    )
    assert result.runner.called() == ["s@pre0", "s@pre1"]
    assert (result.outcome.status, result.code) == ("vetoed", "safety.gate")


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["warn", "degrade"], "skipped"),
        (["degrade", "warn"], "skipped"),
        (["degrade", "require_human", "warn"], "pending"),
        (["warn", "warn"], "done"),
    ],
)
def test_otherwise_the_strictest_counts(words: list[str], status: str) -> None:
    rules = [on_fail(f"g.{n}", word) for n, word in enumerate(words)]
    result = asked(guarded(*rules), {f"g.{n}": no() for n in range(len(words))})
    assert result.steps["s"] == status


def test_trust_and_confirmation_come_before_any_gate() -> None:
    cap = guarded("g.one", trust_level="elevated", requires_confirmation=True)
    result = asked(cap, {"g.one": YES})
    assert (result.code, result.runner.called()) == ("safety.trust", [])
    result = asked(cap, {"g.one": YES}, trust_level="elevated")
    assert (result.code, result.runner.called()) == ("safety.confirmation", [])
    confirmed = frozenset({"c.a"})
    result = asked(cap, {"g.one": YES}, trust_level="elevated", confirm=confirmed)
    assert result.outcome.status == "ok"


def test_a_confirmed_id_does_not_answer_a_gate_that_asks_for_a_person() -> None:
    confirmed = frozenset({"c.a", "g.one"})
    result = asked(
        guarded(on_fail("g.one", "require_human")),
        {"g.one": no()},
        confirm=confirmed,
    )
    assert result.outcome.status == "pending"


def test_no_safety_block_means_no_checks() -> None:
    result = asked(capability("c.a", "x z", "y"), {}, trust_level="sandbox")
    assert result.outcome.status == "ok"


def test_gates_are_asked_with_equally_named_fields_or_their_own_mapping() -> None:
    seen: dict[str, Any] = {}

    def note(name: str) -> Script:
        return lambda given: seen.setdefault(name, given) and {"allowed": True}

    own = {"capability": "g.c", "input": {"x": "output.y", "z": "input.x", "w": "input.gone"}}
    cap = guarded("g.a", post=("g.b", own))
    gates = [gate("g.a", "x"), gate("g.b", "y x"), gate("g.c", "x z w")]
    asked(cap, {"g.a": note("g.a"), "g.b": note("g.b"), "g.c": note("g.c")}, *gates)
    assert seen == {"g.a": {"x": "in"}, "g.b": {"y": "out"}, "g.c": {"x": "out", "z": "in"}}


def test_a_gate_sees_copies_only() -> None:
    def vandal(given: dict[str, Any]) -> Any:
        given["x"].append("vandal")
        return {"allowed": True}

    runner = ScriptedRunner({"c.a": lambda given: {"y": given["x"]}, "g.one": vandal})
    cap = guarded("g.one", post=({"capability": "g.one", "input": {"x": "output.y"}},))
    main = skill(step("s", "c.a", {"x": "inputs.x"}, output={"y": "vars.y"}))
    result = run(main, runner, cap, gate("g.one"), inputs={"x": [1]})
    assert (result.state.vars, result.state.inputs) == ({"y": [1]}, {"x": [1]})


def test_a_refusing_post_gate_withholds_the_output_and_keeps_the_effect_recorded() -> None:
    result = asked(guarded(post=("g.one",), effect="effect"), {"g.one": no()})
    payload = result.closing("s").payload
    assert result.closing("s").event_type == "step.vetoed"
    assert "output" not in payload
    assert [a["status"] for a in payload["attempts"]] == ["success"]
    assert result.sink.types("s") == ["step.started", "step.answered", "step.vetoed"]


def test_each_decision_is_an_event_and_gates_leave_their_own_account() -> None:
    result = asked(guarded("g.a", on_fail("g.b", "warn")), {"g.a": YES, "g.b": no("hm")})
    assert result.sink.types("s@pre0") == ["step.started", "step.completed", "gate.decided"]
    decisions = [e.payload for e in result.sink.events if e.event_type == "gate.decided"]
    assert [(d["decision"], d["gate"], d["enforced"]) for d in decisions] == [
        ("allow", "g.a", True),
        ("audit", "g.b", False),
    ]
    assert [t.step_id for t in result.state.trace.steps] == ["s", "t"]
    inputs = {
        e.step_id: e.payload["input"] for e in result.sink.events if e.event_type == "step.started"
    }
    assert [d["input_hash"] for d in decisions] == [
        digest_of(inputs["s@pre0"]),
        digest_of(inputs["s@pre1"]),
    ]


def test_the_hash_of_what_a_gate_was_asked_is_of_what_the_log_may_hold() -> None:
    names = {"x": "any", "password": "any"}
    guard, call = gate("g.a"), guarded("g.a")
    fields = {name: {"type": kind} for name, kind in names.items()}
    guard = guard.replace(inputs=fields_from(fields))
    call = call.replace(inputs=fields_from(fields))
    ran = run(
        skill(step("s", "c.a", input={"x": "a", "password": "sentinel"})),
        ScriptedRunner({"c.a": echo, "g.a": YES}), call, guard,
    )  # fmt: skip
    told = payload_of(ran.sink.events, "gate.decided")["input_hash"]
    assert told == digest_of({"x": "a", "password": MASK})


def test_usage_of_gates_counts_even_where_they_refuse_the_step() -> None:
    tokens: Script = lambda given: Answer({"allowed": False}, {"input_tokens": 3})  # noqa: E731
    for cap in (guarded("g.a"), guarded(on_fail("g.a", "degrade")), guarded(post=("g.a",))):
        sums = asked(cap, {"g.a": tokens}, keep_going=True).state.trace.metrics
        assert (sums.llm_calls, sums.tokens_in) == (1, 3)


def test_a_gate_may_have_gates_and_levels_of_its_own() -> None:
    inner = gate("g.a", safety={"mandatory_pre_gates": ["g.b"]})
    assert asked(guarded("g.a"), {"g.a": YES, "g.b": YES}, inner).outcome.status == "ok"
    result = asked(guarded(on_fail("g.a", "warn")), {"g.a": YES, "g.b": no()}, inner)
    assert (result.code, result.runner.called()) == ("safety.gate-error", ["s@pre0@pre0"])


def test_echo_gate_cannot_be_talked_into_passing() -> None:
    talker = gate("g.a", "x allowed:any")
    cap = capability("c.a", "x allowed:any", "y", safety={"mandatory_pre_gates": ["g.a"]})
    runner = ScriptedRunner({"c.a": gives(y=1), "g.a": echo})
    main = skill(step("s", "c.a", {"x": "inputs.x", "allowed": {"$literal": "yes"}}))
    assert run(main, runner, cap, talker).code == "safety.gate-error"
