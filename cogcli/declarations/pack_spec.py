"""Packs: the permissions, knowledge and texts of an agent, and how its requests become plans
(docs/reference/pack.md#keys).
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, Self, get_args

from cogcli.base.canonical import digest_of
from cogcli.base.jsonvalue import NOTHING
from cogcli.declarations.capability_spec import DataClass
from cogcli.declarations.field import key, place
from cogcli.declarations.options import SAFETY_MODES
from cogcli.declarations.skill_spec import Step
from cogcli.declarations.spec import Spec, SpecLimits
from cogcli.declarations.spec_ceilings import HIGHEST
from cogcli.declarations.spec_types import (
    CAPABILITY_ID,
    LONGEST_ID,
    NESTED,
    SKILL_ID,
    VERDICTS,
    PlainId,
    SafetyMode,
    Version,
    Words,
)
from cogcli.declarations.value_types import Json

MODES: Final = SAFETY_MODES
METRIC_NAMES: Final = (
    "plan_verification_pass_rate",
    "tool_success_rate",
    "recovery_rate",
    "evidence_backed_rate",
    "policy_compliance_rate",
    "mean_time_to_safe_completion_ms",
    "loop_guard_trip_rate",
)
PHASES: Final = ("compile", "plan", "verify", "execute", "score", "consolidate")
"""The phases of a turn. Each may have a time limit."""
BUCKETS: Final = ("policy", "tool", "evidence", "business", "memory", "session")
"""The token buckets of a compiled context, in the order in which they are filled."""
TRUST: Final = ("untrusted", "verified", "authoritative")
"""Trust of evidence, the lowest first."""
DATA_CLASSES: Final[tuple[str, ...]] = get_args(DataClass)
"""Data classifications, the lowest first."""
TIERS: Final = ("working", "episodic", "semantic", "durable")
PROPOSAL_CLASSES: Final = ("evidence_link", "preference", "decision_outcome", "correction")
BUILT_IN_GATE: Final = "GATE_OPERATOR"
"""The gate of every pack that any role may answer."""
BUILT_IN_PACK: Final = "builtin.read-only"
"""The pack of an agent without a pack. It is created for each run, and no file contains it."""
_MAX_AMOUNT: Final = 1_000_000_000

Name = Annotated[str, SpecLimits(empty=False, longest=64, expected="text of 1 to 64 characters")]
Metric = Annotated[str, SpecLimits(choices=METRIC_NAMES)]
CustomerText = Annotated[str, SpecLimits(longest=1000, expected="text of at most 1000 characters")]
RuleVerdict = Annotated[str, SpecLimits(choices=VERDICTS)]
Phase = Annotated[str, SpecLimits(choices=PHASES)]
Bucket = Annotated[str, SpecLimits(choices=BUCKETS)]
Trust = Annotated[str, SpecLimits(choices=TRUST)]
ClassName = Annotated[str, SpecLimits(choices=DATA_CLASSES)]
Tier = Annotated[str, SpecLimits(choices=TIERS)]
ProposalClass = Annotated[str, SpecLimits(choices=PROPOSAL_CLASSES)]
OutcomeName = Annotated[str, SpecLimits(choices=("met", "unmet"))]
Count = Annotated[int, SpecLimits(minimum=0, maximum=_MAX_AMOUNT)]
AgeInSeconds = Annotated[float, SpecLimits(minimum=0, maximum=_MAX_AMOUNT)]
Share = Annotated[float, SpecLimits(minimum=0, maximum=1)]
ToolRef = Annotated[
    str,
    SpecLimits(
        pattern=f"{CAPABILITY_ID}|{NESTED}{SKILL_ID}",
        longest=len(NESTED) + LONGEST_ID,
        code="id.format",
        expected="a capability's id, or `skill:` and a skill's",
        ids="tools",
    ),
]
BucketSizes = dict[Bucket, Count]


class ContractMeta(Spec):
    """The format of a pack."""

    contract_version: Literal["1.0"]
    """The version of these keys."""
    issuer: str | None = None
    """The author of the pack."""


class TokenBudget(Spec):
    """Limits on tokens of a model."""

    context: Count = 8000
    """Maximum tokens of one context."""
    output: Count = 2000
    """Maximum tokens of one reply."""
    workflow: Count = 80_000
    """Maximum tokens of the run."""


class CallBudget(Spec):
    """Limits on calls of tools."""

    per_turn: Count = 8
    """Maximum attempts in a turn."""
    per_workflow: Count = 32
    """Maximum attempts in the run."""


class PackBudget(Spec):
    """The budget of a run. Without a budget in the pack, the run has the defaults."""

    tokens: TokenBudget = TokenBudget()
    """Tokens of a model.
    Default: as its keys"""
    buckets: BucketSizes = NOTHING
    """The maximum tokens of a [bucket](#buckets). The first of the three declarations that names the bucket counts.
    Default: none
    Each: of that bucket"""
    tool_calls: CallBudget = CallBudget()
    """Calls of tools.
    Default: as its keys"""
    wall_clock_ms: Count = 300_000
    """Maximum duration of the run."""
    heartbeat_ms: Count = 10_000
    """Interval between two heartbeats."""
    stage_latency_ms: dict[Phase, Count] = NOTHING
    """Duration of a [phase](#latency) above which the turn escalates.
    Default: none
    Each: of that phase"""
    replans: Count = 3
    """Maximum plans after the first."""
    retries: Count = 2
    """Maximum attempts of a call after its first."""
    turns: Count = 10
    """Maximum turns of the run."""
    cost_microusd: Count | None = None
    """Maximum cost of models in millionths of a dollar, at the [prices](models.md#settings) of the settings."""
    soft: Share = 0.5
    """The used share above which a budget is [under pressure](#functional-state)."""


class PackDefaults(Spec):
    """The highest approval mode, and the budgets of a run. Flags can only lower them."""

    safety_mode: SafetyMode = "read_only"
    """The highest [mode](#modes) of a call; a flag may lower it."""
    budget: Annotated[Json, SpecLimits(keys=PackBudget)] = NOTHING
    """[Budgets](#budgets); flags may lower them."""
    buckets: BucketSizes = NOTHING
    """The maximum tokens of a [bucket](#buckets). The first of the three declarations that names the bucket counts.
    Default: none
    Each: of that bucket"""


class PackMeta(Spec):
    """The identity of a pack."""

    pack_id: PlainId
    """The name of its folder."""
    pack_version: Version
    """The name of its file."""
    tenant: Name = "local"
    """The tenant whose data the pack works with."""
    data_classification: ClassName = "internal"
    """The data classification of its runs."""
    retention_days: dict[ClassName, Count] = NOTHING
    """The time for which [episodes are kept](#retention), by class.
    Default: none
    Each: days"""
    defaults: PackDefaults = PackDefaults()
    """Values for runs whose flags do not set them.
    Default: none"""
    buckets: BucketSizes = NOTHING
    """The maximum tokens of a [bucket](#buckets). The first of the three declarations that names the bucket counts.
    Default: none
    Each: of that bucket"""


class KnowledgeLimits(Spec):
    """The search distance for evidence, the required trust, and the maximum age."""

    max_hops: Annotated[int, SpecLimits(minimum=0, maximum=8)] = 2
    """Maximum distance from the entities of a request, in edges."""
    max_edges: Annotated[int, SpecLimits(minimum=0, maximum=10_000)] = 200
    """Maximum number of statements."""
    min_trust: Trust = "verified"
    """Minimum trust of evidence."""
    freshness_s: Annotated[dict[str, AgeInSeconds], SpecLimits(foreign=True)] = NOTHING
    """Maximum age of evidence, by predicate or `default`."""
    single_valued: tuple[Words, ...] = ()
    """Predicates that have one value at a time. Two values are a conflict."""


class BusinessBlock(Spec):
    """A text of the business for the context."""

    id: Name
    """Unique."""
    text: Words
    """The text in the agent's context."""
    priority: Annotated[int, SpecLimits(minimum=0, maximum=100)] = 50
    """The block with the lowest priority is dropped first."""
    cuttable: bool = False
    """Whether the text may be shortened at the end of a sentence."""


class BusinessContext(Spec):
    """Texts about the business, for the context."""

    blocks: Annotated[tuple[BusinessBlock, ...], SpecLimits(unique="id")] = ()
    """Texts of the business for the [context](#buckets)."""


class Permission(Spec):
    """The capabilities that a role may call."""

    role: Name
    """Unique."""
    allow: tuple[ToolRef, ...]
    """Ids of capabilities, or `skill:` followed by a skill's id."""


class Guardrail(Spec):
    """Text that causes a refusal or an escalation wherever it occurs: a pattern, or phrases."""

    thing = "guardrail"
    id: Name
    """Unique."""
    pattern: Words = ""
    """A regular expression."""
    phrases: tuple[Words, ...] = ()
    """Phrases, matched as whole words."""
    reason: str = ""
    """The reason for the guardrail. It appears in the error of a run that the guardrail ends."""
    say: CustomerText = ""
    """The [text for the customer](#say)."""
    gate: Name = BUILT_IN_GATE
    """The gate that decides after an escalation."""


class Guardrails(Spec):
    """Texts that end a request."""

    must_refuse: Annotated[tuple[Guardrail, ...], SpecLimits(unique="id")] = ()
    must_escalate: Annotated[tuple[Guardrail, ...], SpecLimits(unique="id")] = ()
    """Texts that are refused, or shown to a person first."""


class PackGate(Spec):
    """The people who may approve a call, and how long a request waits."""

    approver_roles: tuple[Name, ...] = ()
    """The roles that may approve. If empty, any person may."""
    ttl_s: Annotated[float, SpecLimits(above=0, maximum=_MAX_AMOUNT)] = 604_800
    """The lifetime of a request for approval. The default is 7 days."""
    allow_self: bool = False
    """Whether the user who made the request may approve it."""
    signed: bool = False
    """Whether only [signed answers](execution.md#signed) are valid."""


class RuleScope(Spec):
    """The calls that a rule applies to."""

    intents: tuple[Words, ...] = ()
    capabilities: tuple[Words, ...] = ()
    """Names, in which `*` matches any text. If empty, all match."""


class ArgumentLimit(Spec):
    """A condition on an argument."""

    max: float | None = None
    min: float | None = None
    """The bounds of the argument."""
    enum: Annotated[list[Any], SpecLimits(minimum=1)] | None = None
    """The permitted values of the argument."""


class RuleOutcome(Spec):
    """The consequence if the condition of a rule is true."""

    verdict: RuleVerdict
    """The [verdict](#verdicts) of the rule."""
    gate: Name = ""
    """The gate that must approve."""
    obligations: tuple[Words, ...] = ()
    """Obligations of the call: `idempotency_key`, `named_user`, `evidence`, `mask:PATH`."""
    limits: Annotated[dict[str, ArgumentLimit], SpecLimits(foreign=True)] = key(
        default=NOTHING, name="args"
    )
    """Conditions by argument."""
    without_gate: Name = ""
    """The [limit](limits.md#without-gate) within which destructive calls need no approval of the built-in gate."""


class ExpectedText(Spec):
    """The expected text for the customer. The rule has to match, too."""

    say: CustomerText
    """The text, with its values filled in."""


class RuleExample(Spec):
    """A test of a rule."""

    data: Annotated[Json, SpecLimits(foreign=True)]
    """The input of the rule."""
    expect: Literal["match", "no_match", "error"] | ExpectedText
    """The expected result. `{say: TEXT}` means a match with this [text for the customer](#say-tests)."""

    @property
    def expected_text(self) -> str | None:
        """The expected text for the customer. None if the test expects none."""
        return self.expect.say if isinstance(self.expect, ExpectedText) else None

    @property
    def expected_result(self) -> str:
        """The expected result of the condition: match, no_match or error."""
        return "match" if isinstance(self.expect, ExpectedText) else self.expect


class PolicyRule(Spec):
    """One rule. If its condition is true, its verdict takes effect."""

    thing = "rule"
    rule_id: Name
    """Unique."""
    mode: Literal["enforce", "shadow"]
    """Whether its verdict is enforced, or only recorded."""
    scope: RuleScope = key(default=RuleScope(), name="applies_to")
    """The intents and capabilities to which the rule applies.
    Default: everything"""
    condition: Any = key(name="if")
    """The condition, in JsonLogic."""
    then: RuleOutcome
    """The outcome if the condition in `if` is true."""
    rationale: str = ""
    """The reason for the rule."""
    say: CustomerText = ""
    """The [text for the customer](#say) if the rule decides."""
    tests: tuple[RuleExample, ...] = ()
    """An enforced rule needs at least one example that matches and one that does not."""

    @property
    def is_enforced(self) -> bool:
        """Whether the verdict of the rule takes effect. The verdict of a shadow rule is only
        recorded.
        """
        return self.mode == "enforce"


class CumulativeLimit(Spec):
    """The most that calls may add up to."""

    thing = "limit"
    id: Name
    """Unique."""
    scope: RuleScope = key(name="applies_to")
    """The calls that are counted. `capabilities` must have at least one entry."""
    sum: Words = ""
    """The numeric argument to add up. If empty, the calls are counted."""
    max: Annotated[float, SpecLimits(minimum=0, maximum=_MAX_AMOUNT)]
    """The maximum total, including the call to decide about."""
    per: Words
    """The value that selects the counter: `user`, `tenant`, a slot, or an argument as `args.NAME`."""
    window_s: Annotated[float, SpecLimits(above=0, maximum=_MAX_AMOUNT)] | None = None
    """The seconds for which a call is counted. If absent, it is counted forever."""
    over: Literal["deny", "allow_with_gate"] = "deny"
    """The verdict on a call that would exceed the limit."""
    gate: Name = BUILT_IN_GATE
    """The gate that must approve if `over` is `allow_with_gate`."""
    say: CustomerText = ""
    """The [text for the customer](pack.md#say) if a call would exceed the limit."""


class PolicyLayer(Spec):
    """The permissions, rules and approvers of a pack."""

    permissions: Annotated[dict[str, Permission], SpecLimits(unique="role")] = NOTHING
    """The capabilities that each role may call."""
    guardrails: Guardrails = Guardrails()
    """[Texts that end a request](#guardrails).
    Default: none"""
    gates: dict[str, PackGate] = NOTHING
    """Gates by name. `GATE_OPERATOR` always exists."""
    rules: Annotated[tuple[PolicyRule, ...], SpecLimits(maximum=10_000, unique="rule_id")] = ()
    """[Rules](#rules)."""
    limits: Annotated[tuple[CumulativeLimit, ...], SpecLimits(maximum=100, unique="id")] = ()
    """[Limits](limits.md) on the totals of calls."""
    read_only_actions: bool = False
    """Whether a `read_only` run may make calls with the mode `read_only`."""

    def gate(self, name: str) -> PackGate | None:
        """Return the gate with this name, which may be the built-in one; None for an unknown name."""
        return self.gates.get(name) or (PackGate() if name == BUILT_IN_GATE else None)


class PackTool(Spec):
    """The properties of a capability in a pack."""

    approval_mode: SafetyMode = ""
    """A stricter [mode](#modes)."""
    facts: Annotated[dict[str, Words], SpecLimits(foreign=True)] = NOTHING
    """Maps `slot.fact` to `output.path`."""


class ToolingLayer(Spec):
    """Capabilities and hosts."""

    hosts: tuple[Words, ...] | None = None
    """The hosts that calls may reach.
    Default: any"""
    capabilities: dict[ToolRef, PackTool] = NOTHING
    """Properties by capability id, or by `skill:` and a skill's id."""


class Slot(Spec):
    """An entity that an intent is about."""

    type: Name
    """The type of the entity, as in the knowledge."""
    param: Name = ""
    """The parameter that contains the id."""
    pattern: Words = ""
    """A regular expression that finds the id in the message."""


class PackIntent(Spec):
    """One entry of the intent catalog."""

    thing = "intent"
    id: Name
    """Unique."""
    risk: SafetyMode = "read_only"
    """The risk, which affects [escalation](#functional-state)."""
    phrases: tuple[Words, ...] = ()
    patterns: tuple[Words, ...] = ()
    """Phrases and patterns that [identify](#compiler) the intent in a message."""
    slots: dict[str, Slot] = NOTHING
    """The entities that the intent concerns."""
    capabilities: tuple[ToolRef, ...] = ()
    """The capabilities that a plan for the intent may call."""
    templates: tuple[Name, ...] = ()
    """Plan templates for the intent, in order of preference."""


class Objective(Spec):
    """A goal of the agent."""

    id: Name
    """Unique."""
    text: Words
    """The goal."""
    intents: tuple[Words, ...] = ()
    """The intents for which the goal is valid. If empty, all intents."""


class DecisionSpec(Spec):
    """A decision: the evidence that it requires, and its possible results."""

    key: Name
    """The id of an intent, or the decision of a template."""
    required_evidence: tuple[Words, ...] = ()
    """Required evidence as `slot.fact`. Without it, only `read_only` calls run."""
    outcomes: tuple[Words, ...] = ()
    """The possible outcomes."""
    success: Any = None
    """A [rule](agent-run.md#goal) over facts and outputs that decides whether the goal is met, also for a model's
    plan.
    """


class TaskTemplate(Spec):
    """A plan that code builds for an intent."""

    thing = "template"
    id: Name
    """Unique."""
    decision: Name = ""
    """The decision that the plan makes."""
    steps: Annotated[
        tuple[Annotated[Json, SpecLimits(keys=Step)], ...],
        SpecLimits(minimum=1, maximum=HIGHEST.steps, code="skill.steps"),
    ]
    """Steps, as in a skill."""
    success: Any = None
    """A rule over the results of the plan."""
    outcome: dict[OutcomeName, Name] = NOTHING
    """The names of the plan's outcomes.
    Each: the outcome where the rule is true, and where it is false"""
    reply: str = ""
    """The answer, which may contain `${inputs.x}` and `${outputs.x}`."""


class DecisionLayer(Spec):
    """Intents and plans."""

    objectives: Annotated[tuple[Objective, ...], SpecLimits(unique="id")] = ()
    """Goals of the agent."""
    intents: Annotated[dict[str, PackIntent], SpecLimits(unique="id")] = NOTHING
    """The intents that a message may have."""
    decisions: Annotated[dict[str, DecisionSpec], SpecLimits(unique="key")] = NOTHING
    """The evidence that each decision requires."""
    task_templates: Annotated[dict[str, TaskTemplate], SpecLimits(unique="id")] = NOTHING
    """[Templates](#templates)."""

    def required_evidence(self, intent_id: str) -> tuple[str, ...]:
        """Return the evidence that the decisions of an intent require. The decision named like the intent is first,
        followed by those of its templates.
        """
        intent = self.intents.get(intent_id)
        if intent is None:
            return ()
        templates = [
            self.task_templates[id] for id in intent.templates if id in self.task_templates
        ]
        keys = dict.fromkeys((intent.id, *(template.decision for template in templates)))
        named = [
            name
            for key in keys
            if key in self.decisions
            for name in self.decisions[key].required_evidence
        ]
        return tuple(dict.fromkeys(named))


class MemoryLayer(Spec):
    """The lifetime of memory, and the memory that may be promoted and recalled."""

    ttl_s: dict[Tier, AgeInSeconds] = NOTHING
    """The lifetime of memory, by tier.
    Each: seconds"""
    consent: Literal["required"] = "required"
    """Nothing without the user's consent."""
    confidence_floor: Share = 0.7
    """The minimum confidence for automatic promotion."""
    auto_promote: tuple[ProposalClass, ...] = ()
    """Classes that may promote themselves."""
    max_class: ClassName = "internal"
    """The highest class that is recalled."""
    top_k: Annotated[int, SpecLimits(minimum=0, maximum=100)] = 8
    """The number of memories that are recalled."""


class MetricTarget(Spec):
    """The bounds of a metric. One of them is declared."""

    intent: Name = ""
    """Of one intent; absent: of all."""
    metric: Metric
    """The metric."""
    min: float | None = None
    """Its least value."""
    max: float | None = None
    """Its greatest value."""

    def is_met(self, value: float) -> bool:
        """Return whether a value is within the bounds."""
        above = self.max is not None and value > self.max
        return not above and (self.min is None or value >= self.min)


class EvaluationLayer(Spec):
    """The targets that the metrics of runs are compared with."""

    targets: tuple[MetricTarget, ...] = ()
    """Targets that `metrics` compares runs with."""


class AgentVoice(Spec):
    """The persona that speaks."""

    role: Name = ""
    """The role whose permissions count."""
    voice: Name = ""
    """The agent's manner of speaking."""


class Tone(Spec):
    """The manner of speaking of the agent."""

    agent: AgentVoice = AgentVoice()
    """Who speaks.
    Default: none"""
    non_negotiables: tuple[Words, ...] = ()
    """Actions that the agent must never take."""


class Pack(Spec):
    """A pack as declared in its file."""

    contract: ContractMeta = key(name="contract_meta")
    """The format of this file."""
    meta: PackMeta = key(name="pack_meta")
    """[What the pack is](#pack-meta)."""
    knowledge: KnowledgeLimits = key(default=KnowledgeLimits(), name="intelligence_refs")
    """[What evidence counts](#intelligence-refs).
    Default: as its keys"""
    business: BusinessContext = key(default=BusinessContext(), name="business_context")
    """Texts about the business, for the context.
    Default: none"""
    policy: PolicyLayer = key(name="policy_layer")
    """[The permissions](#policy-layer)."""
    tooling: ToolingLayer = key(name="tooling_layer")
    """[Capabilities and hosts](#tooling-layer)."""
    decisions: DecisionLayer = key(name="decision_layer")
    """[Intents and plans](#decision-layer)."""
    memory: MemoryLayer = key(default=MemoryLayer(), name="memory_layer")
    """[What is remembered](#memory-layer).
    Default: as its keys"""
    evaluation: EvaluationLayer = key(default=EvaluationLayer(), name="evaluation_layer")
    """Targets for `cogcli metrics`.
    Default: none"""
    tone: Tone = key(default=Tone(), name="tone_and_comms")
    """The manner of speaking.
    Default: none"""
    hash: str = place(default="")
    """That of its canonical content."""
    file: str = place(default="")
    """The path shown to users."""
    parts: tuple[str, ...] = place(default=())
    """The references of the packs that it is composed of, the primary one first. Empty for a pack alone."""
    rule_packs: dict[str, str] = place(default=NOTHING)
    """Of a composed pack: by rule the reference of its pack."""

    @classmethod
    def of(cls, json: Json, **places: object) -> Self:
        """Return the pack of a checked mapping. Its hash is that of the mapping."""
        return super().of(json, hash=digest_of(json), **places)

    @property
    def pack_id(self) -> str:
        """Return the name without the version."""
        return self.meta.pack_id

    @property
    def version(self) -> str:
        """Return the version."""
        return self.meta.pack_version

    @property
    def tenant(self) -> str:
        """Return the tenant whose data the pack uses."""
        return self.meta.tenant

    @property
    def ref(self) -> str:
        """Return the reference that identifies exactly this pack: `id@version#hash`."""
        return f"{self.pack_id}@{self.version}#{self.hash}"

    @property
    def permitted(self) -> tuple[str, ...]:
        """Return the capabilities that the role of the agent may call."""
        permission = self.policy.permissions.get(self.tone.agent.role)
        return permission.allow if permission else ()

    @property
    def bucket_sizes(self) -> dict[str, int]:
        """Return the maximum tokens of each bucket that the metadata or the defaults limit."""
        return {**self.meta.buckets, **self.meta.defaults.buckets}
