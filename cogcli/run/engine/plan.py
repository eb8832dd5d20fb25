"""The plan of a skill: plan order, dependents, and which steps must write before others.

1. A step depends on `depends_on`. If that is absent, it depends on the previous step in the file; `[]` means none.
2. Plan order is topological, with ties in file order. Every result that could depend on timing follows plan order.
3. If two steps may run at once and write overlapping targets, the later one in plan order writes last.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapify, heappop, heappush
from typing import Literal

from cogcli.base.named_tuple import NamedTuple
from cogcli.base.redact import names_secret
from cogcli.base.refs import parse_target
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.events import PlanEntry
from cogcli.declarations.field_spec import Fields, FieldSpec
from cogcli.declarations.skill_spec import Skill, Step
from cogcli.specs.capability import hinted_writes
from cogcli.state import expressions, inputs, outputs

ERRORS = "$errors"
"""The left side that a `foreach` step with `on_error: collect` has in addition to its outputs."""
ITERATIONS, EXHAUSTED = "$iterations", "$exhausted"
"""The left sides of an output mapping that a `while` step has in addition to its outputs."""


class StepTarget(NamedTuple):
    """A target that a step may call: a capability, or the nested skill `skill_id`."""

    uses: str
    capability: Capability | None
    skill_id: str
    inputs: Fields
    outputs: Fields


class PlainKey(NamedTuple):
    """The common part of calls whose events differ only in values that `run.engine.plain_invocation` inserts."""

    uses: str
    kind: str
    part: Literal["", "item", "round"] = ""
    """The kind of loop part that makes the call."""


class StepExpressions(NamedTuple):
    """The compiled expressions of a step, and its `otherwise` mapping. What the step does not declare is None."""

    condition: object
    otherwise: inputs.Resolver | None
    foreach: object
    while_: object
    router: object


class PlannedStep(NamedTuple):
    """One step, with everything about it that is the same in every run."""

    position: int
    """Its index in plan order."""
    step: Step
    depends_on: tuple[str, ...]
    target: StepTarget | None
    """The target that is called, or the router's default. None if the step has only `targets`."""
    targets: Mapping[str, StepTarget]
    """Targets by router case or scatter name."""
    kind: str
    input: inputs.Resolver
    produces: Fields
    """The fields that the output mapping, or `otherwise`, may name."""
    expressions: StepExpressions
    rules: tuple[outputs.OutputRule, ...]
    written: tuple[str, ...]
    """The targets of the rules, each once."""
    plain_key: PlainKey | None = None
    """Set if the step, apart from its condition, only makes one call without effect and writes parts of its output.
    It has no loop, choice of a target, gate or limit, and copies no value of the state."""
    part_key: PlainKey | None = None
    """Set for a loop if all that each item or round does is one call without effect."""

    @property
    def capability(self) -> Capability | None:
        """The capability, if the step always calls the same one, otherwise None."""
        return self.target.capability if self.target and not self.targets else None

    def rules_for(self, capability_id: str | None) -> tuple[outputs.OutputRule, ...]:
        """Return the output rules for the result of one capability. For None, return the first hint for each output."""
        if self.step.output is not None or not self.targets:
            return self.rules
        if capability_id is not None:
            return tuple(rule for rule in self.rules if rule.hint_of == capability_id)
        return tuple({rule.left: rule for rule in reversed(self.rules)}.values())

    @property
    def all_targets(self) -> tuple[StepTarget, ...]:
        """All targets that this step may call. The router's default or the target of `uses` comes first."""
        return (*((self.target,) if self.target else ()), *self.targets.values())


class StepPlan(NamedTuple):
    """The steps of a skill in plan order. The members after `steps` are indexed by position in that order."""

    skill: Skill
    steps: tuple[PlannedStep, ...]
    dependents: tuple[tuple[int, ...], ...]
    waiting_on: tuple[int, ...]
    """The number of steps on which each depends."""
    writes_after: Mapping[int, int]
    """The steps that must write before a step, as a bit set."""


def plan_skill(
    skill: Skill, capabilities: Mapping[str, Capability], skills: Mapping[str, Skill]
) -> StepPlan:
    """Return the plan of a skill that passed the static checks. Capabilities are looked up by id or alias."""
    needs = _resolve_dependencies(skill)
    order = _sort_steps(skill, needs)
    position = {step.id: index for index, step in enumerate(order)}
    steps = tuple(
        _build_planned_step(index, step, needs[step.id], capabilities, skills)
        for index, step in enumerate(order)
    )
    dependents: list[list[int]] = [[] for _ in order]
    for index, step in enumerate(order):
        for name in needs[step.id]:
            dependents[position[name]].append(index)
    return StepPlan(
        skill,
        steps,
        tuple(map(tuple, dependents)),
        tuple(len(needs[step.id]) for step in order),
        _find_earlier_writers(steps, position),
    )


def _resolve_dependencies(skill: Skill) -> dict[str, tuple[str, ...]]:
    needs = {}
    previous: tuple[str, ...] = ()
    for step in skill.steps:
        declared = step.config.depends_on
        needs[step.id] = previous if declared is None else tuple(dict.fromkeys(declared))
        previous = (step.id,)
    return needs


def _sort_steps(skill: Skill, needs: dict[str, tuple[str, ...]]) -> list[Step]:
    place = {step.id: n for n, step in enumerate(skill.steps)}
    missing = [len(needs[step.id]) for step in skill.steps]
    dependents: list[list[int]] = [[] for _ in skill.steps]
    for step in skill.steps:
        for name in needs[step.id]:
            dependents[place[name]].append(place[step.id])
    ready = [n for n, count in enumerate(missing) if not count]
    heapify(ready)
    order = []
    while ready:
        n = heappop(ready)
        order.append(skill.steps[n])
        for dependent in dependents[n]:
            missing[dependent] -= 1
            if not missing[dependent]:
                heappush(ready, dependent)
    return order


def _build_planned_step(
    index: int,
    step: Step,
    depends_on: tuple[str, ...],
    capabilities: Mapping[str, Capability],
    skills: Mapping[str, Skill],
) -> PlannedStep:
    config = step.config
    loop = step.loop_names
    target, targets = _find_targets(step, capabilities, skills)
    called = (*((target,) if target else ()), *targets.values())
    first = called[0].capability if called else None
    produces = _find_produced_fields(step, called, targets)
    found = _compile_expressions(step, loop)
    rules = _compile_rules(step, called, produces)
    kind = config.kind or (first.step_kind if first else "act")
    key = _find_plain_key(step, target, kind)
    return PlannedStep(
        position=index,
        step=step,
        depends_on=depends_on,
        target=target,
        targets=targets,
        kind=kind,
        input=inputs.compile_input(step.input, loop),
        produces=produces,
        expressions=found,
        rules=rules,
        written=tuple(dict.fromkeys(rule.target.text for rule in rules)),
        plain_key=None if key is None or key.part or _are_unusual(rules) else key,
        part_key=key if key and key.part else None,
    )


def _find_targets(
    step: Step, capabilities: Mapping[str, Capability], skills: Mapping[str, Skill]
) -> tuple[StepTarget | None, dict[str, StepTarget]]:
    """Return the only or default target of a step, and the targets of its cases or branches by name."""
    config = step.config

    def build_target(uses: str) -> StepTarget:
        skill_id = uses.removeprefix("skill:") if uses.startswith("skill:") else ""
        contract: Capability | Skill = skills[skill_id] if skill_id else capabilities[uses]
        capability = contract if isinstance(contract, Capability) else None
        return StepTarget(uses, capability, skill_id, contract.inputs, contract.outputs)

    if config.router:
        named, only = config.router.cases, config.router.default
    elif config.scatter:
        named, only = config.scatter.targets, None
    else:
        named, only = {}, step.uses
    targets = {name: build_target(uses) for name, uses in named.items()}
    return (build_target(only) if only else None), targets


def _find_plain_key(step: Step, target: StepTarget | None, kind: str) -> PlainKey | None:
    """Return the common part of a step's calls, if the step or its loop makes a single call without effect. Otherwise
    return None.
    """
    config = step.config
    is_chosen = config.router is not None or config.scatter is not None
    if target is None or is_chosen or config.timeout_seconds is not None:
        return None
    if not _is_harmless(target.capability):
        return None
    if config.foreach is not None:
        return PlainKey(target.uses, kind, "item")
    if config.while_ is not None:
        return PlainKey(target.uses, kind, "round")
    return PlainKey(target.uses, kind)


def _are_unusual(rules: tuple[outputs.OutputRule, ...]) -> bool:
    """Return whether a written value is copied from the state, or the log masks it because of its target's name, or
    lists it as an artifact.
    """
    return any(
        rule.copy_of or names_secret(rule.target.path[-1]) or "artifacts" in rule.target.path
        for rule in rules
    )


def _is_harmless(capability: Capability | None) -> bool:
    """Return whether the target is a capability without effect and gates, so that a call needs no decision."""
    return capability is not None and capability.effect == "none" and capability.safety is None


def _find_produced_fields(
    step: Step, called: tuple[StepTarget, ...], targets: Mapping[str, StepTarget]
) -> Fields:
    """Return the fields that a step produces: the union over its targets. Under foreach each is a list; under
    collect there is one field per target name.
    """
    config = step.config
    if config.scatter and config.scatter.merge == "collect":
        return {name: FieldSpec(type="object") for name in targets}
    fields: Fields = {}
    for target in called:
        for name, spec in target.outputs.items():
            fields.setdefault(name, spec)
    if config.foreach:
        lists = {name: FieldSpec(type="array") for name in fields}
        return {**lists, ERRORS: FieldSpec(type="array")} if config.foreach.collects else lists
    if config.while_:
        return {
            **fields,
            ITERATIONS: FieldSpec(type="integer"),
            EXHAUSTED: FieldSpec(type="boolean"),
        }
    return fields


def _compile_expressions(step: Step, loop: frozenset[str]) -> StepExpressions:
    config, read = step.config, expressions.compile_expression
    otherwise = None if config.otherwise is None else inputs.compile_input(config.otherwise)
    return StepExpressions(
        condition=read(config.condition),
        otherwise=otherwise,
        foreach=read(config.foreach.items) if config.foreach else None,
        while_=read(config.while_.condition) if config.while_ else None,
        router=read(config.router.on, loop) if config.router else None,
    )


def _compile_rules(
    step: Step, called: tuple[StepTarget, ...], produces: Fields
) -> tuple[outputs.OutputRule, ...]:
    """Return the rules of the declared output mapping, or else those of the cognitive hints of the called
    capabilities.
    """
    strategy_of = step.config.strategy_of
    if step.output is not None:
        strategies = {target: strategy_of(target) for target in step.output.values()}
        return outputs.compile_output(step.output, strategies, produces)
    hinting = {target.capability.id: target.capability for target in called if target.capability}
    return tuple(
        outputs.OutputRule(
            wire.output,
            (wire.output,),
            None,
            target,
            strategy_of(wire.target) or wire.strategy,
            wire.as_list,
            id,
        )
        for id, capability in hinting.items()
        for wire in hinted_writes(capability, as_list=step.config.foreach is not None)
        if (target := parse_target(wire.target)) is not None and wire.output in produces
    )


def _find_earlier_writers(
    steps: tuple[PlannedStep, ...], position: Mapping[str, int]
) -> dict[int, int]:
    """Return by step the bit set of earlier steps that may run at the same time and write overlapping targets.

    Overlapping overwrites do not occur, since the static checks refuse them.
    """
    combining = [step for step in steps if any(rule.strategy != "overwrite" for rule in step.rules)]
    if len(combining) < 2:
        return {}
    before = _find_ancestors(steps, position)
    at: dict[tuple[str, ...], int] = {}
    below: dict[tuple[str, ...], int] = {}
    after: dict[int, int] = {}
    for step in combining:
        places = {(rule.target.namespace, *rule.target.path) for rule in step.rules}
        concurrent = _find_writers(places, at, below) & ~before[step.position]
        if concurrent:
            after[step.position] = concurrent
        for place in places:
            at[place] = at.get(place, 0) | 1 << step.position
            for above in _enclosing_places(place):
                below[above] = below.get(above, 0) | 1 << step.position
    return after


def _find_writers(
    places: set[tuple[str, ...]],
    at: Mapping[tuple[str, ...], int],
    below: Mapping[tuple[str, ...], int],
) -> int:
    """Return the bit set of the steps that write at these places, at an enclosing place, or below one of them."""
    found = 0
    for place in places:
        found |= at.get(place, 0) | below.get(place, 0)
        for above in _enclosing_places(place):
            found |= at.get(above, 0)
    return found


def _enclosing_places(place: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [place[:end] for end in range(2, len(place))]


def _find_ancestors(steps: tuple[PlannedStep, ...], position: Mapping[str, int]) -> list[int]:
    """Return for each step the bit set of the steps on which it depends, directly or indirectly."""
    before: list[int] = []
    for step in steps:
        bits = 0
        for name in step.depends_on:
            index = position[name]
            bits |= before[index] | 1 << index
        before.append(bits)
    return before


def plan_entry(step: PlannedStep) -> PlanEntry:
    """Return the step as an entry of the event `plan.created`."""
    capability = step.target.capability if step.target else None
    spec = step.step
    return PlanEntry(
        id=spec.id,
        kind=step.kind,
        capability=capability.id if capability else None,
        description=spec.description or spec.uses,
        rationale=spec.rationale or None,
        depends_on=list(step.depends_on),
        inputs=spec.input,
    )
