"""Runs of an engine in memory beside the reference gate: random packs, calls, budgets and answers of people, good ones
and stretched ones. Each call is decided the same, for the same reason (docs/reference/pack.md#governed-calls)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, NamedTuple

import pytest
from fakes.runner import ScriptedRunner, gives, member
from fakes.runs import RUN_ID, request
from fakes.sink import MemorySink
from fakes.specs import skill, step
from reference_gate import approval_mode, decide_run, may_answer
from test_reference_gate import CAPABILITIES, LONG, Draw

from cogcli.base.errors import PolicyApprovalError, TransportError
from cogcli.base.system import FakeClock, FakeIds
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.envelope import Event
from cogcli.declarations.governance_events import ApprovalRequested
from cogcli.declarations.options import RunOptions
from cogcli.declarations.pack_spec import Pack
from cogcli.declarations.run_start import RecordedPolicy
from cogcli.policy.approvals import ApprovalAnswer, Approvals, RequestedAction, action_hash
from cogcli.policy.budgets import Budgets
from cogcli.policy.pack_policy import Policy
from cogcli.policy.run_policy import Requester, RunPolicy
from cogcli.run.approver import require_approver
from cogcli.run.engine.run import execute
from cogcli.run.launch import build_engine
from cogcli.specs.catalog import Catalog

pytestmark = pytest.mark.sampled(8)

SEQUENCES = 10_000 if LONG else 1_600
"""The runs of one part, with four calls on average."""
RUN_PARTS = range(25 if LONG else 1)
PER_PACK = 20
START = 1_700_000_000
TODAY = "2023-11-14T22:13:20.000000Z"
ROLES = ("finance", "finance", "clerk", "")
USER, AGENT = "cust_7", "agent.support-desk"
PEOPLE = ("ann", "ann", "ann", USER, AGENT)
NOW = {"substr": [{"var": "run.now"}, 0, 10]}
GATES = {
    "GATE_FINANCE_APPROVAL": {"approver_roles": ["finance"], "ttl_s": 86_400, "allow_self": False},
    "GATE_OPEN": {"ttl_s": 3_600, "allow_self": True},
}
STRETCHED = ("argument", "step", "binding", "pack", "late", "twice")


def _at(seconds: float) -> str:
    at = datetime.fromisoformat(TODAY) + timedelta(seconds=seconds)
    return at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class World(NamedTuple):
    """A pack with the capabilities that it governs, as both sides take them."""

    raw: dict[str, Any]
    policy: Any
    capabilities: dict[str, tuple[dict[str, Any], Capability]]

    @classmethod
    def of(cls, raw: dict[str, Any], specs: list[dict[str, Any]]) -> World:
        pack = Pack.of(raw)
        return cls(
            raw,
            (pack, Policy.of(pack)),
            {each["id"]: (each, Capability.of(each)) for each in specs},
        )

    def stricter(self) -> World:
        """The pack with one more rule, which never matches."""
        layer = self.raw["policy_layer"]
        rule = {"rule_id": "never", "mode": "shadow", "if": False, "then": {"verdict": "deny"}}
        changed = {**self.raw, "policy_layer": {**layer, "rules": [*layer["rules"], rule]}}
        return World.of(changed, [raw for raw, _ in self.capabilities.values()])


class RunDraw(Draw):
    """Random runs of one to four calls, and answers to what they ask."""

    def rule(self, number: int) -> dict[str, Any]:
        rule = super().rule(number)
        if self.random.random() < 0.6:
            asks = {"verdict": self.one("allow_with_gate", "allow_with_gate", "escalate")}
            rule["then"] = {**asks, "gate": self.one(*GATES, "GATE_OPERATOR")}
            amount = {self.one("<", ">="): [{"var": ["args.amount", 12]}, self.one(31, 240)]}
            rule["if"] = self.one(amount, {"==": [NOW, TODAY[:10]]}, {"!=": [NOW, TODAY[:10]]})
        if "obligations" in rule["then"]:  # what is masked is said by the services' own specs
            rule["then"]["obligations"] = [
                each for each in rule["then"]["obligations"] if each != "mask:a.b"
            ]
        return rule

    def world(self) -> World:
        raw = self.pack()
        raw["policy_layer"]["gates"] = GATES
        everything = [{"role": "agent", "allow": CAPABILITIES}]
        if self.random.random() < 0.8:
            raw["policy_layer"]["permissions"] = everything
            raw["decision_layer"] = {"intents": [{"id": "refund", "capabilities": CAPABILITIES}]}
        raw["tooling_layer"] = {
            **raw["tooling_layer"],
            "capabilities": {
                id: {"approval_mode": self.one("read_only", "read_only", "network", "destructive")}
                for id in CAPABILITIES
            },
        }
        return World.of(
            raw,
            [
                {**self.capability(), **FIELDS, **self.one({}, READ), "id": id}
                for id in CAPABILITIES
            ],
        )

    def run(self) -> dict[str, Any]:
        """What both sides are told of a run."""
        uses = [self.one(*CAPABILITIES) for _ in range(self.random.randint(1, 4))]
        order = {
            "age": self.one(12, 31),
            "total": self.one(2.5, 240, "x"),
            "lines": self.one([1, 5], [], "x"),
        }
        return {
            "calls": [
                (name, id, self.arguments(), self.one(1, 1, 1, 2))
                for name, id in zip("abcd", uses, strict=False)
            ],
            "order": {name: value for name, value in order.items() if self.random.random() < 0.9},
            "limits": {
                f"tool_calls.per_{of}": self.one(0, 1, 2, 3, 4, 8)
                for of in self.some(["turn", "workflow"])
            },
            "user_role": self.one("staff", "guest"),
            "safety_mode": self.one(
                "destructive", "destructive", "destructive", "destructive", "network"
            ),
            "hosts": {id: self.one("", "", "pay.example", "evil.example") for id in CAPABILITIES},
            "user": self.one(USER, USER, USER, USER, USER, "default"),
        }

    def arguments(self) -> dict[str, Any]:
        return self.one(
            {"amount": self.one(0, 12, 31, 240, "12"), "kind": "a"},
            {"amount": self.one(12, 240)},
            {},
        )


READ = {"properties": {"side_effects": False}, "safety": {}}
FIELDS = {
    "inputs": {name: {"type": "any"} for name in ("amount", "kind")},
    "outputs": {"y": {"type": "any"}},
}


class Sitting(NamedTuple):
    """One process of a run: what it is told, when, and what people had said by then."""

    world: World
    run: dict[str, Any]
    bindings: str = "b"
    after: float = 0.0
    """Seconds since the run began."""

    def ours(self, approvals: Approvals) -> tuple[list[dict[str, Any]], list[Event]]:
        run, (pack, policy) = self.run, self.world.policy
        steps, inputs = [], {}
        for name, id, arguments, _ in run["calls"]:
            steps.append(step(name, id, {key: f"inputs.{name}_{key}" for key in arguments}))
            inputs |= {f"{name}_{key}": value for key, value in arguments.items()}
        main = skill(*steps, inputs=" ".join(inputs))
        capabilities = {id: spec for id, (_, spec) in self.world.capabilities.items()}
        clock, ids, sink = FakeClock(START + int(self.after)), FakeIds(0), MemorySink()
        requester = Requester("refund", run["user"], run["user_role"], role="agent")
        hosts = {f"s_{self.bindings}_{id}": host for id, host in run["hosts"].items()}
        governs = RunPolicy(
            pack,
            policy,
            Budgets(run["limits"]),
            requester,
            safety_mode=run["safety_mode"],
            slots={"order": "order:o1"},
            hosts=hosts,
        )
        governs.merge_known_facts({"order": run["order"]})
        engine = build_engine(
            Catalog(capabilities=capabilities, skills={main.id: main}),
            sink=sink,
            runner=self._runner(),
            clock=clock,
            ids=ids,
            options=RunOptions(trust_level="privileged", max_workers=1),
            policy=governs,
            approvals=approvals,
        )
        execute(engine, engine.plan_of(main.id), request(inputs), RUN_ID)
        return _told(sink.events), sink.events

    def _runner(self) -> ScriptedRunner:
        scripts: dict[str, Any] = {id: [] for id in CAPABILITIES}
        for _, id, _, attempts in self.run["calls"]:
            scripts[id] += [_away] * (attempts - 1) + [gives(y=1)]
        runner = ScriptedRunner({id: script or gives(y=1) for id, script in scripts.items()})
        runner.members = {
            id: (member(f"{self.bindings}_{id}", retries=1, base=0.0),) for id in CAPABILITIES
        }
        return runner

    def theirs(self, answers: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
        return decide_run(
            self.world.raw,
            [self._call(*each) for each in self.run["calls"]],
            self.run["limits"],
            answers,
        )

    def _call(self, name: str, id: str, arguments: dict[str, Any], attempts: int) -> dict[str, Any]:
        run, spec = self.run, self.world.capabilities[id][0]
        inputs = {
            f"{step}_{key}": value
            for step, _, given, _ in run["calls"]
            for key, value in given.items()
        }
        data = {
            "request": {
                "intent": "refund",
                "message": "",
                "channel": "",
                "locale": "",
                "params": inputs,
            },
            "user": {"id": run["user"], "role": run["user_role"], "consent": []},
            "agent": {"role": "agent", "voice": ""},
            "run": {"safety_mode": run["safety_mode"], "turn": 1, "now": TODAY},
            "call": {
                "capability": id,
                "approval_mode": approval_mode(self.world.raw, spec),
                "step": name,
            },
            "args": arguments,
            "inputs": inputs,
            "vars": {},
            "outputs": {},
            "state": {},
            "order": {"id": "o1", **run["order"]},
        }
        of_call = {
            "capability": id,
            "binding": f"{self.bindings}_{id}",
            "step": name,
            "arguments": arguments,
        }
        asked_by = {"intent": "refund", "role": "agent", "safety_mode": run["safety_mode"]}
        known = {"named_user": run["user"] != "default", "host": run["hosts"][id], "data": data}
        return {**of_call, **asked_by, **known, "spec": spec, "attempts": attempts}


def _away(given: Any) -> Any:
    raise TransportError("call.transport", "away", left=False)


WHY = {"the approval expired": "expired", "what is about": "changed"}


def _told(events: list[Event]) -> list[dict[str, Any]]:
    """What the log says of each call, as the reference says it."""
    calls: dict[str, dict[str, Any]] = {}
    for event in events:
        kind, payload = event.event_type, event.payload
        one = calls.setdefault(
            event.step_id or "", {"step": event.step_id, "decided": [], "end": "", "why": ""}
        )
        if kind == "policy.decided":
            one["decided"].append((payload["verdict"], payload["reason"]))
        elif kind == "step.completed":
            one["end"] = "done"
        elif kind == "step.vetoed":
            one["end"] = payload["error"]["code"]
        elif kind == "approval.requested":
            one["why"] = next(
                (word for text, word in WHY.items() if payload["reason"].startswith(text)), "asked"
            )
            one["gate"] = payload["gate"]
        elif kind == "budget.exceeded":
            one["why"] = payload["key"]
        elif kind == "run.paused":
            waiting = [
                each for each in calls.values() if each["why"] in ("asked", "changed", "expired")
            ]
            waiting[-1]["end"] = payload["reason"].split(":")[0]
    return [one for one in calls.values() if one["decided"]]


def _comparable(outcomes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The reference's outcomes, without what only it keeps."""
    waits = ("policy.approval", "policy.escalated")
    return [
        {name: each[name] for name in ("step", "decided", "end", "why")}
        | ({"gate": each["request"]["decision"]["gate"]} if each["end"] in waits else {})
        for each in outcomes
    ]


class Case:
    """A run, sitting after sitting, on both sides."""

    def __init__(self, draw: RunDraw, world: World) -> None:
        self.draw, self.sitting = draw, Sitting(world, draw.run())
        self.ours: list[ApprovalAnswer] = []
        self.theirs: list[dict[str, Any]] = []
        self.seen: set[tuple[str, str]] = set()
        self.how: list[Any] = []

    def sit(
        self, approvals: Approvals | None = None, *, spent: bool = False
    ) -> tuple[dict[str, Any], list[Event]]:
        """One sitting, held against the reference; gives the last call's outcome there, and the log."""
        given: dict[str, list[dict[str, Any]]] = {}
        for answer in [] if spent else self.theirs:
            given.setdefault(answer["step"], []).append(answer)
        ours, events = self.sitting.ours(approvals or Approvals(tuple(self.ours)))
        theirs = self.sitting.theirs(given)
        assert ours == _comparable(theirs), {
            "how": self.how,
            "run": self.sitting.run,
            "rules": self.sitting.world.raw["policy_layer"]["rules"],
            "capabilities": [raw for raw, _ in self.sitting.world.capabilities.values()],
        }
        self.seen |= {(each["end"], each["why"]) for each in theirs}
        return theirs[-1], events

    def go_on(self) -> None:
        last, events = self.sit()
        for _ in range(2):
            if last["end"] not in ("policy.approval", "policy.escalated"):
                return
            if not self.answer(last, events):
                return
            approvals = Approvals(tuple(self.ours))
            last, events = self.sit(approvals)
            if self.how[-1] == "twice":
                self.sit(approvals, spent=True)
                return

    def answer(self, last: dict[str, Any], events: list[Event]) -> bool:
        """Somebody answers what is asked, perhaps something else than what then comes. False where that is refused."""
        draw = self.draw
        asked = [event for event in events if event.event_type == "approval.requested"][-1]
        said = {
            "by": draw.one(*PEOPLE),
            "role": draw.one(*ROLES),
            "granted": draw.random.random() < 0.9,
        }
        if not self.taken(asked, last["request"]["decision"]["gate"], said):
            self.seen.add(("refused", ""))
            return False
        how = draw.one(*STRETCHED) if draw.random.random() < 0.5 else "good"
        self.how.append(how)
        ttl = last["request"]["ttl_s"]
        late = ttl + 60 if how == "late" else draw.one(60, ttl - 60)
        at = _at(self.sitting.after + late)
        told = RequestedAction(*[asked.payload.get(name, "") for name in RequestedAction._fields])
        request = last["request"]
        if last["why"] != "asked":  # what was not valid is not looked at again
            self.ours, self.theirs = self.ours[:-1], self.theirs[:-1]
        self.ours = [each._replace(used=True) for each in self.ours]
        if how == "step":
            other = draw.one("a", "z")
            told = told._replace(
                step_id=other, action_hash=self.action(request["action"] | {"step": other})
            )
            request = {**request, "action": request["action"] | {"step": other}}
        self.ours.append(
            ApprovalAnswer(told, said["granted"], said["by"], "", at, event=f"ev_{len(self.ours)}")
        )
        step = request["action"]["step"]
        self.theirs.append({**said, "step": step, "request": request, "at": at, "age_s": late})
        self.sitting = self.stretched(how, last["step"])._replace(
            after=self.sitting.after + late + 1
        )
        return True

    def action(self, action: dict[str, Any]) -> str:
        names = {"step_id": action["step"], "values": action["arguments"]}
        return action_hash(
            run_id=RUN_ID, capability=action["capability"], binding=action["binding"], **names
        )

    def stretched(self, how: str, step: str) -> Sitting:
        sitting = self.sitting
        if how == "argument":
            calls = [
                (name, id, {**given, "kind": "b"} if name == step else given, count)
                for name, id, given, count in sitting.run["calls"]
            ]
            return sitting._replace(run={**sitting.run, "calls": calls})
        if how == "binding":
            return sitting._replace(bindings="c")
        return sitting._replace(world=sitting.world.stricter()) if how == "pack" else sitting

    def taken(self, asked: Event, gate: str, said: dict[str, Any]) -> bool:
        """Whether the answer of this person is taken; both sides say the same."""
        user = self.sitting.run["user"]
        policy = RecordedPolicy(pack="support-desk@4.0.0", user=user)
        request = ApprovalRequested.of(asked.payload)
        by = f"{said['by']}:{said['role']}" if said["role"] else said["by"]
        try:
            require_approver(request, granted=said["granted"], by=by, policy=policy)
        except PolicyApprovalError:
            ours = False
        else:
            ours = True
        assert ours == may_answer(self.sitting.world.raw, gate, said, user, AGENT), (
            gate,
            said,
            user,
        )
        return ours


def _seen(seed: int) -> set[tuple[str, str]]:
    """How the runs under one random pack ended, once both sides said the same."""
    draw = RunDraw(seed)
    world, seen = draw.world(), set()
    for number in range(PER_PACK):
        case = Case(draw, world)
        try:
            case.go_on()
        except Exception as error:
            raise AssertionError(f"pack {seed}, run {number}") from error
        seen |= case.seen
    return seen


@pytest.mark.sampled(32)
@pytest.mark.parametrize("part", RUN_PARTS)
def test_a_run_in_memory_is_decided_as_the_reference_says(part: int) -> None:
    packs = range(part * SEQUENCES // PER_PACK, (part + 1) * SEQUENCES // PER_PACK)
    seen = {each for seed in packs for each in _seen(seed)}
    refused = {"policy.denied", "policy.refused", "safety.rejected", "budget.exceeded", "refused"}
    assert {"done", "policy.approval", "policy.escalated", *refused} == {end for end, _ in seen}
    keys = {"tool_calls.per_turn", "tool_calls.per_workflow"}
    assert {"", "asked", "changed", "expired", *keys} == {why for _, why in seen}
