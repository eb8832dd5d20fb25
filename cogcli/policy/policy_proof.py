"""Proofs that one policy permits as much as another one, with examples of what it permits otherwise
(docs/reference/pack.md#prove). Pure: the solver is given.

A proof is about single calls: the same call, with the same facts and counters, under the old and the new pack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Final, Protocol

from cogcli.base.canonical import canonical
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.pack_spec import MODES, Pack, PackTool
from cogcli.declarations.spec_types import NESTED
from cogcli.declarations.value_types import Json
from cogcli.policy.counterexample import (
    USER,
    CallCase,
    CallKind,
    ComparedPacks,
    mode_at,
    number_from,
    shrink,
)
from cogcli.policy.pack_diff import PolicyChange, diff_packs
from cogcli.policy.pack_policy import Policy
from cogcli.policy.policy_effect import (
    DIFFERENT,
    NARROWER,
    RELATIONS,
    WIDER,
    compare_gate_names,
)
from cogcli.policy.smt_script import EXACT, FALSE, all_of, any_of, either, equals, negated
from cogcli.policy.symbolic_policy import (
    PolicySide,
    SymbolicCaller,
    SymbolicVerdict,
    VerdictReader,
    limits_on,
)
from cogcli.policy.symbolic_rules import Readings, RuleReader
from cogcli.policy.symbolic_values import (
    ABSENT_KIND,
    KINDS,
    SymbolicValue,
    Unknown,
    constant_value,
)
from cogcli.policy.verdict import Verdict, mode_under

EQUAL: Final = "equal"
INCOMPARABLE: Final = "incomparable"
UNKNOWN: Final = "unknown"
_SIDES: Final = ("old", "new")
_COUNTED: Final = ("max", "over", "gate")
"""The members of a limit whose change a proof understands. Others make it another counter."""


class Solver(Protocol):
    """Solves a script of SMT-LIB."""

    def check(self, assumptions: Sequence[str]) -> bool | None:
        """Return whether the script is satisfiable under these constants; None if the solver gave up."""
        ...

    def value(self, name: str) -> Fraction:
        """Return the value of a constant in the last solution: of a condition 0 or 1."""
        ...


OpenSolver = Callable[[str], Solver]
FindTool = Callable[[str], Capability | None]
"""Returns the contract of a capability or of `skill:ID`, or None for an unknown name."""


class PolicyDifference(NamedTuple):
    """A call that the two packs decide differently, with both verdicts."""

    relation: str
    case: CallCase
    before: Verdict
    after: Verdict

    def to_payload(self) -> Json:
        """Return the difference as JSON."""
        verdicts = {"before": _verdict_payload(self.before), "after": _verdict_payload(self.after)}
        return {"relation": self.relation, **verdicts, **self.case.to_payload()}


def _verdict_payload(verdict: Verdict) -> Json:
    members = verdict.to_payload()
    return {name: members.get(name) or "" for name in ("verdict", "gate", "rule", "reason")} | {
        "obligations": sorted(verdict.obligations)
    }


class UnprovenPart(NamedTuple):
    """A part of the packs that the proof does not cover, and why."""

    what: str
    why: str


class PolicyProof(NamedTuple):
    """The result of comparing two packs: differences, and parts without a proof."""

    differences: tuple[PolicyDifference, ...]
    open_parts: tuple[UnprovenPart, ...]
    calls: int
    """The number of compared kinds of calls."""

    @property
    def answer(self) -> str:
        """`equal`, `wider`, `narrower` or `incomparable`; `unknown` if any part is not covered."""
        if self.open_parts:
            return UNKNOWN
        found = {each.relation for each in self.differences}
        if not found:
            return EQUAL
        return found.pop() if len(found) == 1 and DIFFERENT not in found else INCOMPARABLE

    def to_payload(self) -> Json:
        """Return the proof as JSON."""
        return {
            "answer": self.answer,
            "calls": self.calls,
            "differences": [each.to_payload() for each in self.differences],
            "unknown": [each._asdict() for each in self.open_parts],
        }


def prove(old: Pack, new: Pack, find_tool: FindTool, open_solver: OpenSolver) -> PolicyProof:
    """Prove how the policy of a new pack relates to the policy of an old pack."""
    packs = ComparedPacks.of(old, new)
    kinds, open_parts = _list_calls(packs, find_tool)
    open_parts += _find_unproven_parts(old, new)
    if not kinds:
        open_parts.append(
            UnprovenPart("calls", "no intent of either pack lists a known capability")
        )
    questions = _Questions(packs)
    open_calls = [questions.ask(kind) for kind in kinds if _may_differ(packs, kind)]
    differences = []
    if open_calls:
        solver = open_solver(questions.shared.script.text)
        for question in open_calls:
            found, unproven = _answer_question(question, solver, questions)
            differences += found
            open_parts += unproven
    return PolicyProof(tuple(differences), tuple(open_parts), len(kinds))


def _list_calls(
    packs: ComparedPacks, find_tool: FindTool
) -> tuple[list[CallKind], list[UnprovenPart]]:
    """Return the kinds of calls that either pack lists, and the names that denote no known capability."""
    kinds: dict[tuple[str, str, str], CallKind] = {}
    unknown: dict[str, None] = {}
    for intent, name in _listed_names(packs):
        tool = find_tool(name)
        if tool is None:
            unknown[name] = None
            continue
        kinds[intent, tool.id, ""] = CallKind(intent, tool)
        for each in tool.reaches if name.startswith(NESTED) else ():
            kinds[intent, each.id, name] = CallKind(intent, each, name)
    why = "the registry has no such capability, so its approval mode is not known"
    return list(kinds.values()), [UnprovenPart(f"`{name}`", why) for name in unknown]


def _listed_names(packs: ComparedPacks) -> Iterator[tuple[str, str]]:
    """Yield each intent with each capability that either pack lists for it."""
    layers = [pack.decisions.intents for pack in (packs.old, packs.new)]
    for intent in dict.fromkeys(id for layer in layers for id in layer):
        listed = [layer[intent].capabilities for layer in layers if intent in layer]
        for name in dict.fromkeys(name for names in listed for name in names):
            yield intent, name


def _find_unproven_parts(old: Pack, new: Pack) -> list[UnprovenPart]:
    """Return the changes that affect more than single calls, or the known facts about calls."""
    found = [
        UnprovenPart(f"{change.kind} {change.id}", _WHY_OPEN[change.kind])
        for change in diff_packs(old, new)
        if _is_unproven(change)
    ]
    parts = (
        ("intelligence_refs", old.knowledge, new.knowledge),
        ("slots", _list_slots(old), _list_slots(new)),
    )
    found += [UnprovenPart(name, _WHY_OPEN[name]) for name, mine, its in parts if mine != its]
    if old.policy.limits and new.policy.limits and _owner_of(old) != _owner_of(new):
        found.append(UnprovenPart("limits", _WHY_OPEN["limits"]))
    nested = dict.fromkeys((*_find_nested_evidence(old), *_find_nested_evidence(new)))
    return found + [UnprovenPart(f"`{name}`", _WHY_OPEN["evidence"]) for name in nested]


def _is_unproven(change: PolicyChange) -> bool:
    """Return whether the comparison of single calls does not cover a change."""
    match change.kind:
        case "guardrail":
            return True
        case "capability":
            return "facts" in change.members
        case "limit":
            return change.change == "changed" and not set(change.members) <= set(_COUNTED)
    return (change.kind, change.id) in _OPEN_SETTINGS


def _find_nested_evidence(pack: Pack) -> Iterator[str]:
    """Yield the required evidence that is not a fact of a slot, such as `order.status`."""
    for intent in pack.decisions.intents:
        for name in pack.decisions.required_evidence(intent):
            if name.count(".") != 1:
                yield name


_OPEN_SETTINGS: Final = frozenset((("setting", "budget"), ("setting", "read_only_actions")))
_WHY_OPEN: Final = {
    "guardrail": "texts are not compared",
    "setting": "it decides about whole runs",
    "capability": "it changes which facts are known",
    "limit": "its counter is another one",
    "intelligence_refs": "it changes which facts are known",
    "slots": "they change which facts are known",
    "limits": "packs of another id or tenant have counters of their own",
    "evidence": "required evidence is a slot and a fact",
}


def _owner_of(pack: Pack) -> tuple[str, str]:
    """Return whose counters the limits of a pack have."""
    return pack.tenant, pack.pack_id


def _list_slots(pack: Pack) -> dict[str, object]:
    return {id: intent.slots for id, intent in pack.decisions.intents.items()}


def _may_differ(packs: ComparedPacks, kind: CallKind) -> bool:
    """Return whether anything that decides about a kind of call differs between the packs."""
    old, new = (
        _list_grounds(pack, policy, kind)
        for pack, policy in zip((packs.old, packs.new), packs.policies, strict=True)
    )
    return old != new


def _list_grounds(pack: Pack, policy: Policy, kind: CallKind) -> list[object]:
    """Return all that decides about a kind of call."""
    rules = policy.rules_for(kind.intent, kind.capability.id)
    enforced = [rule.declared for rule in rules if rule.declared.is_enforced]
    agent = pack.tone.agent
    return [
        policy.offers(kind.intent, agent.role, kind.capability.id),
        policy.offers(kind.intent, agent.role, kind.inside),
        pack.tooling.capabilities.get(kind.capability.id, PackTool()).approval_mode,
        mode_under(pack.tooling.capabilities, kind.capability),
        pack.meta.defaults.safety_mode,
        pack.tooling.hosts,
        (agent.role, agent.voice),
        set(pack.decisions.required_evidence(kind.intent)),
        pack.policy.gates,
        limits_on(pack, kind),
        [(canonical(rule.condition), rule.then) for rule in enforced],
    ]


class _Question(NamedTuple):
    """The formulas that the solver decides for one kind of call."""

    kind: CallKind
    formulas: dict[str, str]
    """By relation: the constant under which the new pack decides so."""
    paths: tuple[str, ...]
    """The paths that either pack reads."""
    inexact: tuple[str, ...]
    """The operators whose meaning the solver does not know."""


class _Questions:
    """Puts the questions about all kinds of calls into one script."""

    def __init__(self, packs: ComparedPacks) -> None:
        self.packs, self.shared = packs, Readings()
        script = self.shared.script
        self.hosts = tuple(
            dict.fromkeys(
                host for pack in (packs.old, packs.new) for host in pack.tooling.hosts or ()
            )
        )
        self.host = script.declare("Int")
        script.require(f"(<= 0 {self.host} {len(self.hosts) + 1})")
        self.ceilings = self._declare_ceilings()
        self.used = self._declare_counters()
        self.user = self.shared.facts.fact(USER)

    def _declare_ceilings(self) -> tuple[str, str]:
        """Declare the safety modes of a run. A flag may select a lower mode than the pack's, but a higher one is a
        usage error.
        """
        script, packs = self.shared.script, (self.packs.old, self.packs.new)
        old, new = (MODES.index(pack.meta.defaults.safety_mode) for pack in packs)
        first = script.declare("Int")
        if old == new:
            script.require(f"(<= 0 {first} {old})")
            return first, first
        second = script.declare("Int")
        own = all_of(equals(first, str(old)), equals(second, str(new)))
        lowered = all_of(equals(first, second), f"(<= 0 {first} {min(old, new)})")
        script.require(any_of(own, lowered))
        return first, second

    def _declare_counters(self) -> tuple[dict[str, str], dict[str, str]]:
        """Declare the values of the limits' counters. Limits that count the same calls share a counter."""
        found: tuple[dict[str, str], dict[str, str]] = ({}, {})
        counters: dict[bytes, str] = {}
        for names, pack in zip(found, (self.packs.old, self.packs.new), strict=True):
            for limit in pack.policy.limits:
                members = {k: v for k, v in limit.json.items() if k not in _COUNTED}
                key = canonical([*_owner_of(pack), members])
                if key not in counters:
                    counters[key] = self.shared.script.declare("Real")
                    self.shared.script.require(f"(>= {counters[key]} 0.0)")
                names[limit.id] = counters[key]
        return found

    def ask(self, kind: CallKind) -> _Question:
        """Build the question whether one kind of call gets different verdicts."""
        facts, packs = self.shared.facts, self.packs
        named = negated(equals(self.user.text, facts.text("default")))
        scene = SymbolicCaller(named, self.host, self.hosts)
        fixed = [
            self._list_fixed_values(pack, kind, number) for number, pack in enumerate(packs[:2])
        ]
        own = frozenset(path for path in fixed[0] if fixed[0][path] != fixed[1][path])
        verdicts: list[SymbolicVerdict] = []
        paths: dict[str, None] = {USER: None}
        inexact: dict[str, None] = {}
        for number, pack in enumerate(packs[:2]):
            reader = RuleReader(self.shared, fixed[number], own, _SIDES[number])
            side = PolicySide(
                pack, packs.policies[number], self.ceilings[number], reader, self.used[number]
            )
            verdicts.append(VerdictReader(self.shared, side, kind, scene).read())
            paths |= dict.fromkeys(sorted(reader.paths))
            inexact |= dict.fromkeys(sorted(reader.inexact))
        formulas = {
            relation: self.shared.script.ask(self._relation_condition(relation, *verdicts))
            for relation in RELATIONS
        }
        return _Question(kind, formulas, tuple(paths), tuple(inexact))

    def _list_fixed_values(
        self, pack: Pack, kind: CallKind, number: int
    ) -> dict[str, SymbolicValue]:
        """Return the values that a kind of call fixes, by path."""
        text = self.shared.facts.text
        mode = text(MODES[0])
        for position, name in enumerate(MODES):
            mode = either(equals(self.ceilings[number], str(position)), text(name), mode)
        texts = {
            "request.intent": text(kind.intent),
            "call.capability": text(kind.capability.id),
            "call.approval_mode": text(mode_under(pack.tooling.capabilities, kind.capability)),
            "run.safety_mode": mode,
            "agent.role": text(pack.tone.agent.role),
            "agent.voice": text(pack.tone.agent.voice),
        }
        return {path: constant_value("text", term) for path, term in texts.items()}

    def _relation_condition(self, relation: str, old: SymbolicVerdict, new: SymbolicVerdict) -> str:
        """Return the condition under which the verdicts have a relation of `compare_verdicts`."""
        shorten = self.shared.script.shorten
        first, second = old.rank, new.rank
        same = shorten(all_of(equals(first, second), new.binds))
        gates = any_of(
            *[
                all_of(condition, other)
                for gate, condition in old.gates.items()
                for name, other in new.gates.items()
                if relation in compare_gate_names(self.packs.old, gate, self.packs.new, name)
            ]
        )
        stricter = {WIDER: f"(< {second} {first})", NARROWER: f"(> {second} {first})"}
        more, less = (old, new) if relation == WIDER else (new, old)
        lost = any_of(
            *[
                all_of(term, negated(less.obligations.get(name, FALSE)))
                for name, term in more.obligations.items()
            ]
        )
        by_gate = all_of(new.asks, gates)
        if relation == DIFFERENT:
            return all_of(same, by_gate)
        return any_of(stricter[relation], all_of(same, any_of(lost, by_gate)))

    def read_case(self, question: _Question, solver: Solver) -> CallCase:
        """Return the call of the last solution."""
        texts = {number: text for text, number in self.shared.facts.texts.items()}
        facts: dict[str, object] = {}
        for path in question.paths:
            found = self.shared.facts.fact(path)
            if KINDS[int(solver.value(found.kind))] != ABSENT_KIND:
                facts[path] = _read_fact(found, solver, texts)
        hosts = ("", *self.hosts, "elsewhere.example")
        old, new = (
            {id: number_from(solver.value(name)) for id, name in names.items()}
            for names in self._counters_of(question.kind)
        )
        modes = [mode_at(solver.value(name)) for name in self.ceilings]
        return CallCase(
            question.kind,
            facts,
            (modes[0], modes[1]),
            hosts[int(solver.value(self.host))],
            (old, new),
        )

    def _counters_of(self, kind: CallKind) -> Iterator[dict[str, str]]:
        """Yield the counters of the limits on a kind of call under each pack."""
        for pack, names in zip((self.packs.old, self.packs.new), self.used, strict=True):
            yield {limit.id: names[limit.id] for limit in limits_on(pack, kind)}


def _read_fact(found: Unknown, solver: Solver, texts: Mapping[int, str]) -> object:
    """Return a value of the last solution. A text that no rule mentions gets a name."""
    match KINDS[int(solver.value(found.kind))]:
        case "number":
            return number_from(solver.value(found.number))
        case "text":
            number = int(solver.value(found.text))
            return texts.get(number, f"text-{number}")
        case "boolean":
            return solver.value(found.boolean) == 1
        case "list":
            return []
        case "object":
            return {}
    return None


def _answer_question(
    question: _Question, solver: Solver, questions: _Questions
) -> tuple[list[PolicyDifference], list[UnprovenPart]]:
    """Return the confirmed differences of one kind of call, and its parts without a proof."""
    differences, unproven = [], []
    for relation, name in question.formulas.items():
        found = solver.check((name,))
        if found is False:
            continue
        if found and question.inexact:
            found = solver.check((name, EXACT))
        difference = _confirm_difference(question, relation, solver, questions) if found else None
        if difference:
            differences.append(difference)
        else:
            unproven.append(_explain_open(question, relation, gave_up=found is None))
    return differences, unproven


def _confirm_difference(
    question: _Question, relation: str, solver: Solver, questions: _Questions
) -> PolicyDifference | None:
    """Return the difference in a solution of the solver, if the evaluator confirms it; otherwise None."""
    packs, case = questions.packs, questions.read_case(question, solver)
    if relation not in packs.compare(case):
        return None
    case = shrink(packs, case, relation)
    return PolicyDifference(relation, case, *packs.decide(case))


def _explain_open(question: _Question, relation: str, *, gave_up: bool) -> UnprovenPart:
    """Return why it is not known whether the packs differ in a way."""
    what = f"{question.kind.capability.id} for {question.kind.intent}"
    used = ", ".join(f"`{name}`" for name in question.inexact)
    if gave_up:
        why = "the solver gave up"
    elif used:
        why = f"it depends on what {used} gives"
    else:
        why = "what the solver found is not what the evaluator finds"
    return UnprovenPart(what, f"whether it is {relation}: {why}")
