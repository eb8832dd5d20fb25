"""Plain steps write the very bytes, and leave the very state, of the general path."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from fakes.runner import Script, ScriptedRunner, echo, gives, member, raises
from fakes.runs import RUN_ID, engine_for, request
from fakes.specs import capability, skill, step

from cogcli.base.calls import Answer
from cogcli.base.errors import RejectedError, TransportError
from cogcli.base.redact import Redactor
from cogcli.base.system import FakeClock, FakeIds
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.envelope import Event
from cogcli.declarations.event_line import EventLine
from cogcli.declarations.pack_spec import Pack
from cogcli.episode.journal import Journal
from cogcli.episode.layout import CHECKPOINT
from cogcli.episode.store import Store
from cogcli.policy.budgets import Budgets
from cogcli.policy.pack_policy import Policy
from cogcli.policy.run_policy import LimitsPolicy, Requester, RunPolicy
from cogcli.run.engine.effects import CallSpeed
from cogcli.run.engine.ports import CallPolicy
from cogcli.run.engine.run import execute
from cogcli.state.execution import snapshot

A = capability("c.a", "x y:integer note:string", "y out:object list:array")
EFFECT = capability("c.effect", "x", "y", effect="effect")
SECRET = "kdJ3-93jd-XX81-pq0z"


class Lines:
    """A journal's lines, counted."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.written = 0

    @property
    def secrets_version(self) -> object:
        return self._journal.secrets_version

    def line_of(self, draft: Any) -> EventLine | None:
        return self._journal.line_of(draft)

    def append_line(self, *given: Any) -> str | None:
        placed = self._journal.append_line(*given)
        self.written += placed is not None
        return placed


class SteadySpeed(CallSpeed):
    """The speed of calls that are all quick, or all slow, however busy the machine is."""

    def __init__(self, quick: bool) -> None:
        super().__init__()
        for _ in range(4 if quick else 0):
            super().note(0.0)

    def note(self, seconds: float) -> None:
        return


class Done(NamedTuple):
    log: bytes
    checkpoint: bytes
    state: dict[str, Any]
    steps: dict[str, str]
    heard: list[Event]
    plain: int
    """The events of plain steps."""


def run_once(
    folder: Path,
    steps: list[dict[str, Any]],
    script: Script | list[Script],
    *,
    plain: bool,
    quick: bool = False,
    secrets: tuple[str, ...] = (),
    capabilities: tuple[Capability, ...] = (A, EFFECT),
    learn: int | None = None,
    durability: str = "none",
    retries: int = 0,
    fallback: bool = False,
    policy: Callable[[], CallPolicy | None] = lambda: None,
) -> Done:
    redactor = Redactor(secrets)
    journal = Store(str(folder)).create(
        "ep_0000000000000000000000000A",
        trace_id="0" * 31 + "1",
        clock=FakeClock(1_700_000_000),
        ids=FakeIds(0),
        redactor=redactor,
        durability=durability,
        owner=b"k" * 32,
    )
    lines = Lines(journal)

    def called(values: dict[str, Any]) -> Any:
        if len(runner.attempts) == learn:
            redactor.add(SECRET)
        return scripts.pop(0)(values) if len(scripts) > 1 else scripts[0](values)

    scripts = list(script) if isinstance(script, list) else [script]
    runner = ScriptedRunner({"c.a": called, "c.effect": echo})
    runner.members["c.a"] = (
        member("b_c.a", retries=retries, base=0),
        *((member("b_other"),) if fallback else ()),
    )
    main = skill(*steps, inputs="x text:string token:string")
    engine = engine_for(
        runner,
        capabilities,
        [main],
        sink=journal,
        lines=lines if plain else None,
        policy=policy(),
        max_workers=1,
    )
    engine._call_speeds["c.a"] = SteadySpeed(quick)
    heard: list[Event] = []
    engine.observe(heard.append)
    given = {"x": 1, "text": "plain", "token": "t" * 12}
    finished = execute(engine, engine.plan_of(main.id), request(given), RUN_ID)
    journal.close()
    log = (journal.directory / "events.jsonl").read_bytes()
    checkpoint = (journal.directory / CHECKPOINT).read_bytes()
    return Done(log, checkpoint, snapshot(finished.state), finished.steps, heard, lines.written)


def under_pack(
    condition: dict[str, Any] | None = None,
    verdict: str = "deny",
    mode: str = "enforce",
    obligations: tuple[str, ...] = (),
    **limits: int,
) -> dict[str, Any]:
    """A policy that learns the output `y` of each call, with one rule if there is a condition."""
    rule = {
        "rule_id": "r", "mode": mode, "applies_to": {"capabilities": ["c.a"]}, "if": condition,
        "then": {"verdict": verdict, "obligations": [*obligations]},
    }  # fmt: skip
    pack = Pack.of(
        {
            "contract_meta": {"contract_version": "1.0", "issuer": "example.org"},
            "pack_meta": {"pack_id": "plain", "pack_version": "1.0.0"},
            "policy_layer": {
                "permissions": [{"role": "clerk", "allow": ["c.a"]}],
                "rules": [rule] if condition else [],
            },
            "tooling_layer": {"capabilities": {"c.a": {"facts": {"order.y": "output.y"}}}},
            "decision_layer": {"intents": [{"id": "work", "capabilities": ["c.a"]}]},
        }
    )
    spent = {f"tool_calls.{name}": limit for name, limit in limits.items()}

    def policy() -> CallPolicy:
        return RunPolicy(
            pack,
            Policy.of(pack),
            Budgets(spent),
            Requester("work", "somebody", role="clerk"),
            safety_mode="destructive",
            slots={"order": "order:o1"},
        )

    return {"policy": policy}


def chain(count: int, given: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    output = more.pop("output", {"y": "vars.y"})
    name = more.pop("id", "s")
    return [step(f"{name}{n}", "c.a", given, output=output, **more) for n in range(count)]


def loop_over(items: list[Any], max_parallel: int = 1, **more: Any) -> list[dict[str, Any]]:
    foreach = {"items": items, "as": "it", "max_parallel": max_parallel}
    given = {"x": "it", "note": "inputs.text"}
    return [
        step("s", "c.a", given, output={"y": "vars.ys"}, foreach=foreach, **more),
        step("last", "c.a", {"x": "vars.ys"}),
    ]


def rounds(condition: str, most: int, **more: Any) -> list[dict[str, Any]]:
    loop = {"condition": condition, "max_iterations": most}
    output = {"y": "vars.y", "$iterations": "vars.n"}
    return [step("s", "c.a", {"x": "inputs.x"}, output=output, **more, **{"while": loop})]


ANSWER = gives(y=1, out={"a": [1, 2.5, None, "é%s"]}, list=[{"b": True}])
GONE = raises(lambda: TransportError("call.transport", "gone", left=True))
REFUSED = raises(lambda: RejectedError("call.rejected", "no", left=True))
RETRY = {"max_attempts": 3, "backoff_seconds": 0}
CASES: dict[str, tuple[list[dict[str, Any]], Script | list[Script], dict[str, Any], int]] = {
    "a chain": (chain(4, {"x": "inputs.x", "y": 3}), ANSWER, {}, 6),
    "at once": (
        [step(f"s{n}", "c.a", {"x": n}, depends_on=[]) for n in range(4)],
        ANSWER,
        {},
        6,
    ),
    "values of all kinds": (
        chain(3, {"x": {"deep": ["inputs.text", {"$literal": {"a": 1}}]}, "note": "50 % \\ \x1f é"}),
        echo,
        {},
        4,
    ),
    "a reference that is not there": (
        [*chain(2, {"x": "inputs.x"}), step("last", "c.a", {"x": "vars.none"})],
        ANSWER,
        {},
        2,
    ),
    "an input of a wrong type": (
        [*chain(2, {"x": 1}), step("wrong", "c.a", {"y": "text"})], ANSWER, {}, 2,
    ),
    "a member with the name of a secret": (chain(3, {"x": {"password": "abc"}}), ANSWER, {}, 0),
    "an output with the name of a secret": (
        chain(3, {"x": 1}), gives(y={"api_key": "abc"}), {}, 2,
    ),
    "a target with the name of a secret": (
        chain(3, {"x": 1}, output={"y": "vars.token"}), ANSWER, {}, 0,
    ),
    "a known secret in an input": (
        chain(3, {"note": f"it is {SECRET}"}), ANSWER, {"secrets": (SECRET,)}, 0,
    ),
    "a known secret in an output": (
        chain(3, {"x": 1}), gives(y=f"it is {SECRET}"), {"secrets": (SECRET,)}, 2,
    ),
    "a secret that becomes known": (
        chain(4, {"x": 1}), gives(y=SECRET), {"learn": 2}, 3,
    ),
    "a known secret in a constant": (chain(3, {"x": 1}), ANSWER, {"secrets": ("b_c.a.....", "s_b_c.a:",
     "pythoncall")}, 0),
    "a large value": (chain(3, {"note": "n" * 5000}), ANSWER, {}, 0),
    "a large answer": (chain(3, {"x": 1}), gives(y="n" * 5000), {}, 2),
    "what looks like a blob": (chain(3, {"x": {"$literal": {"$blob": "x"}}}), ANSWER, {}, 0),
    "a cut excerpt": (chain(3, {"note": "n" * 300, "x": "after"}), ANSWER, {}, 4),
    "an answer with a record": (
        chain(3, {"x": 1}), lambda given: Answer({"y": 1}, None, {"duration_ms": 3}), {}, 4,
    ),
    "an answer with usage": (
        chain(3, {"x": 1}), lambda given: Answer({"y": 1}, {"input_tokens": 3}), {}, 2,
    ),
    "an answer with files": (
        chain(3, {"x": 1}),
        lambda given: Answer({"y": 1}, None, {"files": [{"path": "a", "size_bytes": 1, "sha256": "0"}]}),
        {},
        2,
    ),
    "an artifact": (
        chain(3, {"x": 1}, output={"y": "working.artifacts.one"}), ANSWER, {}, 0,
    ),
    "an answer without the output": (chain(3, {"x": 1}), [ANSWER, ANSWER, gives()], {}, 4),
    "an output that does not fit its place": (
        chain(3, {"x": 1}, output={"y": "working.entities"}), [gives(y=[]), gives(y=[]), gives(y=3)], {}, 3,
    ),
    "a failure of steps at once": (
        [step(f"s{n}", "c.a", {"x": n}, depends_on=[]) for n in range(5)], [ANSWER, ANSWER, GONE, ANSWER], {}, 3,
    ),
    "a failure": (chain(3, {"x": 1}), [ANSWER, ANSWER, GONE], {}, 3),
    "a binding with retries": (chain(3, {"x": 1}), ANSWER, {"retries": 1}, 4),
    "a binding that is called again": (
        chain(3, {"x": "inputs.x"}), [ANSWER, ANSWER, GONE, ANSWER], {"retries": 1}, 3,
    ),
    "a binding that fails each time": (chain(3, {"x": 1}), [ANSWER, ANSWER, GONE], {"retries": 2}, 3),
    "a fallback": (chain(3, {"x": 1}), ANSWER, {"fallback": True}, 4),
    "a fallback that answers": (chain(3, {"x": 1}), [ANSWER, ANSWER, GONE, ANSWER], {"fallback": True}, 3),
    "a fallback that fails": (chain(3, {"x": 1}), [ANSWER, ANSWER, GONE], {"fallback": True}, 3),
    "a retry": (chain(3, {"x": 1}, retry=RETRY), ANSWER, {}, 4),
    "a retry that succeeds": (
        chain(3, {"x": "inputs.x"}, retry=RETRY, condition="inputs.text != 1"),
        [ANSWER, ANSWER, GONE, GONE, ANSWER], {}, 3,
    ),
    "a retry that fails each time": (chain(3, {"x": 1}, retry=RETRY), [ANSWER, ANSWER, GONE], {}, 3),
    "a retry of a call that is called again": (
        chain(3, {"x": 1}, retry=RETRY), [ANSWER, ANSWER, GONE, GONE, GONE, ANSWER], {"retries": 1}, 3,
    ),
    "a retry that does not help": (chain(3, {"x": 1}, retry=RETRY), [ANSWER, ANSWER, REFUSED], {}, 3),
    "a retry under a pack": (
        chain(3, {"x": 1}, retry=RETRY), [ANSWER, ANSWER, GONE, gives(y=2)], under_pack(), 5,
    ),
    "a retry beyond a budget": (
        chain(3, {"x": 1}, retry=RETRY), [ANSWER, ANSWER, GONE, ANSWER], under_pack(per_workflow=3), 5,
    ),
    "each event is synced": (chain(3, {"x": 1}), ANSWER, {"durability": "power"}, 0),
    "an effect": ([step(f"s{n}", "c.effect", {"x": 1}) for n in range(3)], ANSWER, {}, 0),
    "a condition": (chain(3, {"x": 1}, condition="inputs.x == 1"), ANSWER, {}, 4),
    "a condition and an input of one place": (
        chain(3, {"x": "inputs.x", "note": "inputs.text"}, condition="inputs.token != inputs.text and inputs.x"),
        ANSWER, {}, 4,
    ),
    "a false condition": (
        [*chain(3, {"x": 1}), *chain(1, {"x": 1}, condition="vars.y == 2", id="off")], ANSWER, {}, 4,
    ),
    "a false condition with an output": (
        [*chain(3, {"x": 1}), *chain(1, {"x": 1}, condition="vars.y == 2", id="off", otherwise={"y": 7})],
        ANSWER, {}, 4,
    ),
    "a condition that fails": (
        [*chain(3, {"x": 1}), *chain(1, {"x": 1}, condition="vars.none == 2", id="off")], ANSWER, {}, 4,
    ),
    "a failure after a condition": (
        chain(3, {"x": 1}, condition="inputs.x == 1"), [ANSWER, ANSWER, GONE], {}, 3,
    ),
    "a loop": (loop_over([1, 2, 3, 4]), ANSWER, {}, 6),
    "a loop with values of all kinds": (
        [step("s", "c.a", {"x": {"deep": ["it.a", "n", "inputs.text"]}, "note": "%é"}, output={"x": "vars.x"},
              foreach={"items": [{"a": 1}, {"a": [None]}, {"a": 2.5}, {"a": "é"}], "as": "it", "index_as": "n"})],
        echo, {}, 6,
    ),
    "a loop of some at a time": (loop_over([1, 2, 3, 4], max_parallel=2), ANSWER, {}, 0),
    "a loop over nothing": (loop_over([]), ANSWER, {}, 0),
    "a loop whose item fails": (loop_over([1, 2, 3, 4]), [ANSWER, ANSWER, GONE], {}, 3),
    "a loop whose item is called again": (
        loop_over([1, 2, 3, 4], retry=RETRY), [ANSWER, ANSWER, GONE, GONE, ANSWER], {"retries": 1}, 5,
    ),
    "a loop whose item lacks something": (
        [step("s", "c.a", {"x": "it.a"}, foreach={"items": [{"a": 1}, {"a": 2}, {}], "as": "it"})], ANSWER, {}, 2,
    ),
    "a loop with a secret": (
        loop_over(["a", "b", f"it is {SECRET}", "d"]), ANSWER, {"secrets": (SECRET,)}, 4,
    ),
    "a loop with an answer that has usage": (
        loop_over([1, 2, 3]), lambda given: Answer({"y": 1}, {"input_tokens": 3}), {}, 2,
    ),
    "a loop under a pack": (loop_over([1, 2, 3, 4]), ANSWER, under_pack(), 9),
    "a loop beyond a budget": (loop_over([1, 2, 3, 4]), ANSWER, under_pack(per_workflow=3), 6),
    "rounds": (rounds("inputs.x == 1", 4), ANSWER, {}, 6),
    "rounds until a value": (rounds("vars.y < 3", 9), [gives(y=n) for n in range(5)], {}, 6),
    "a round that fails": (rounds("inputs.x == 1", 4), [ANSWER, ANSWER, GONE], {}, 3),
    "a round that is called again": (
        rounds("inputs.x == 1", 4, retry=RETRY), [ANSWER, ANSWER, GONE, ANSWER], {}, 5,
    ),
    "a pack": (chain(4, {"x": "inputs.x", "y": 3}), ANSWER, under_pack(), 9),
    "a pack and a condition": (
        chain(3, {"x": 1}, condition="inputs.x == 1"), ANSWER, under_pack({"==": [{"var": "args.x"}, 7]}), 6,
    ),
    "a rule that a learned fact fulfills": (
        chain(4, {"x": 1}), [gives(y=1), gives(y=1), gives(y=2)], under_pack({"==": [{"var": ["order.y", 0]}, 2]}), 6,
    ),
    "a rule that only observes": (
        chain(3, {"x": 1}), ANSWER, under_pack({"==": [{"var": "order.y"}, 1]}, mode="shadow"), 6,
    ),
    "a rule that observes some calls": (
        chain(6, {"x": 1}), [gives(y=1), gives(y=1), gives(y=2), gives(y=2), gives(y=1), gives(y=1)],
        under_pack({"==": [{"var": ["order.y", 0]}, 2]}, mode="shadow"), 15,
    ),
    "a known secret in a fact after equal verdicts": (
        chain(5, {"x": 1}), [gives(y=1), gives(y=1), gives(y=1), gives(y=SECRET)],
        {"secrets": (SECRET,), **under_pack()}, 9,
    ),
    "a rule that requires an approval": (
        chain(3, {"x": 1}), [gives(y=1), gives(y=2)],
        under_pack({"==": [{"var": ["order.y", 0]}, 2]}, verdict="escalate"), 3,
    ),
    "a rule that masks the output": (
        chain(3, {"x": 1}), ANSWER,
        under_pack({"==": [{"var": "args.x"}, 1]}, verdict="allow", obligations=("mask:y",)), 0,
    ),
    "an exceeded budget": (chain(4, {"x": 1}), ANSWER, under_pack(per_workflow=3), 6),
    "a limit without a pack": (
        chain(4, {"x": 1}), ANSWER,
        {"policy": lambda: LimitsPolicy(Budgets({"tool_calls.per_workflow": 3}))}, 4,
    ),
    "a failure under a pack": (chain(3, {"x": 1}), [ANSWER, ANSWER, GONE], under_pack(), 5),
    "a known secret in a call under a pack": (
        chain(3, {"note": f"it is {SECRET}"}), ANSWER, {"secrets": (SECRET,), **under_pack()}, 0,
    ),
    "a known secret in the name of a pack": (
        chain(3, {"x": 1}), ANSWER, {"secrets": ("plain@1.0.0",), **under_pack()}, 2,
    ),
    "a secret that becomes known under a pack": (
        chain(4, {"x": 1}), gives(y=SECRET), {"learn": 2, **under_pack()}, 4,
    ),
    "a known secret in what a condition reads": (
        chain(3, {"x": 1}, condition="inputs.text != 1"), ANSWER, {"secrets": ("inputs.text",)}, 0,
    ),
}  # fmt: skip


def has_loop(steps: list[dict[str, Any]]) -> bool:
    """Whether these steps begin with a loop. Its parts are plain if they are quick."""
    return not {"foreach", "while"}.isdisjoint(steps[0]["config"])


@pytest.mark.sampled(6)
@pytest.mark.parametrize("quick", [False, True], ids=["as a task", "quick"])
@pytest.mark.parametrize("case", CASES)
def test_a_plain_step_writes_what_the_general_path_writes(
    tmp_path: Path, case: str, quick: bool
) -> None:
    steps, script, more, expected = CASES[case]
    plain = run_once(tmp_path / "plain", steps, script, plain=True, quick=quick, **more)
    general = run_once(tmp_path / "general", steps, script, plain=False, **more)
    assert plain.log == general.log
    assert plain.checkpoint == general.checkpoint
    assert plain.state == general.state
    assert plain.steps == general.steps
    assert plain.heard == general.heard
    assert general.plain == 0
    assert plain.plain == (expected if quick or not has_loop(steps) else 0)
