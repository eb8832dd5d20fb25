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
"""The phases of a turn, each of which may have a time limit."""
BUCKETS: Final = ("policy", "tool", "evidence", "business", "memory", "session")
"""The token buckets of a compiled context, in the order in which they are served."""
TRUST: Final = ("untrusted", "verified", "authoritative")
"""Trust of evidence, the lowest first."""
DATA_CLASSES: Final[tuple[str, ...]] = get_args(DataClass)
"""Data classifications, the lowest first."""
TIERS: Final = ("working", "episodic", "semantic", "durable")
PROPOSAL_CLASSES: Final = ("evidence_link", "preference", "decision_outcome", "correction")
BUILT_IN_GATE: Final = "GATE_OPERATOR"
"""The gate of every pack that any role may answer."""
BUILT_IN_PACK: Final = "builtin.read-only"
"""The pack of an agent that is given none. It is made for each run, and lies in no file."""
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
    """Who made the pack."""


class TokenBudget(Spec):
    """Limits on tokens of a model."""

    context: Count = 8000
    """Of one context."""
    output: Count = 2000
    """Of one reply."""
    workflow: Count = 80_000
    """Of the run."""


class CallBudget(Spec):
    """Limits on calls of tools."""

    per_turn: Count = 8
    """Attempts of a turn."""
    per_workflow: Count = 32
    """Attempts of the run."""


class PackBudget(Spec):
    """The budget of a run. Without a budget in the pack, the run has the defaults."""

    tokens: TokenBudget = TokenBudget()
    """Tokens of a model.
    Default: as its keys"""
    buckets: BucketSizes = NOTHING
    """The most tokens of a [bucket](#buckets); the first of the three that names one counts.
    Default: none
    Each: of that bucket"""
    tool_calls: CallBudget = CallBudget()
    """Calls of tools.
    Default: as its keys"""
    wall_clock_ms: Count = 300_000
    """Time of the run."""
    heartbeat_ms: Count = 10_000
    """Time between two signs of life."""
    stage_latency_ms: dict[Phase, Count] = NOTHING
    """Time of a [phase](#latency) that is not a reason to escalate.
    Default: none
    Each: of that phase"""
    replans: Count = 3
    """Plans after the first."""
    retries: Count = 2
    """Attempts of a call after its first."""
    turns: Count = 10
    """Turns of the run."""
    cost_microusd: Count | None = None
    """Millionths of a dollar for models, at the [prices](models.md#settings) of the settings."""
    soft: Share = 0.5
    """The share from which a budget [presses](#functional-state)."""


class PackDefaults(Spec):
    """The highest approval mode, and the budgets of a run. Flags can only lower them."""

    safety_mode: SafetyMode = "read_only"
    """The highest [mode](#modes) of a call; a flag may lower it."""
    budget: Annotated[Json, SpecLimits(keys=PackBudget)] = NOTHING
    """[Budgets](#budgets); flags may lower them."""
    buckets: BucketSizes = NOTHING
    """The most tokens of a [bucket](#buckets); the first of the three that names one counts.
    Default: none
    Each: of that bucket"""


class PackMeta(Spec):
    """The identity of a pack."""

    pack_id: PlainId
    """The name of its folder."""
    pack_version: Version
    """The name of its file."""
    tenant: Name = "local"
    """Whose data it works with."""
    data_classification: ClassName = "internal"
    """The class of its runs."""
    retention_days: dict[ClassName, Count] = NOTHING
    """How long [episodes are kept](#retention), by class.
    Default: none
    Each: days"""
    defaults: PackDefaults = PackDefaults()
    """What holds where flags say nothing.
    Default: none"""
    buckets: BucketSizes = NOTHING
    """The most tokens of a [bucket](#buckets); the first of the three that names one counts.
    Default: none
    Each: of that bucket"""


class KnowledgeLimits(Spec):
    """How far evidence is searched for, the trust that it needs, and its maximum age."""

    max_hops: Annotated[int, SpecLimits(minimum=0, maximum=8)] = 2
    """How far from the entities of a request."""
    max_edges: Annotated[int, SpecLimits(minimum=0, maximum=10_000)] = 200
    """How many statements."""
    min_trust: Trust = "verified"
    """The least trust."""
    freshness_s: Annotated[dict[str, AgeInSeconds], SpecLimits(foreign=True)] = NOTHING
    """How old it may be, by predicate or `default`."""
    single_valued: tuple[Words, ...] = ()
    """Predicates with one value at a time: two are a conflict."""


class BusinessBlock(Spec):
    """A text of the business for the context."""

    id: Name
    """Unique."""
    text: Words
    """What the agent is told."""
    priority: Annotated[int, SpecLimits(minimum=0, maximum=100)] = 50
    """The lowest leaves first."""
    cuttable: bool = False
    """Whether it may be shortened at a sentence."""


class BusinessContext(Spec):
    """Texts about the business, for the context."""

    blocks: Annotated[tuple[BusinessBlock, ...], SpecLimits(unique="id")] = ()
    """Texts of the business for the [context](#buckets)."""


class Permission(Spec):
    """The capabilities that a role may call."""

    role: Name
    """Unique."""
    allow: tuple[ToolRef, ...]
    """Ids of capabilities, or `skill:` and a skill's."""


class Guardrail(Spec):
    """Text that causes a refusal or an escalation wherever it occurs: a pattern, or phrases."""

    thing = "guardrail"
    id: Name
    """Unique."""
    pattern: Words = ""
    """A regular expression."""
    phrases: tuple[Words, ...] = ()
    """Whole words."""
    reason: str = ""
    """Why the pack has it; the error of a run that it ends says so."""
    say: CustomerText = ""
    """[What the customer reads](#say)."""
    gate: Name = BUILT_IN_GATE
    """Who is asked where it escalates."""


class Guardrails(Spec):
    """Texts that end a request."""

    must_refuse: Annotated[tuple[Guardrail, ...], SpecLimits(unique="id")] = ()
    must_escalate: Annotated[tuple[Guardrail, ...], SpecLimits(unique="id")] = ()
    """Texts that are refused, or shown to a person first."""


class PackGate(Spec):
    """The people who may approve a call, and how long a request waits."""

    approver_roles: tuple[Name, ...] = ()
    """Who may answer; none: anybody."""
    ttl_s: Annotated[float, SpecLimits(above=0, maximum=_MAX_AMOUNT)] = 604_800
    """How long a question waits: 7 days."""
    allow_self: bool = False
    """Whether the user whose request it is may answer."""
    signed: bool = False
    """Whether only [signed answers](execution.md#signed) count."""


class RuleScope(Spec):
    """The calls that a rule applies to."""

    intents: tuple[Words, ...] = ()
    capabilities: tuple[Words, ...] = ()
    """Names, in which `*` is any text; none: all."""


class ArgumentLimit(Spec):
    """A condition on an argument."""

    max: float | None = None
    min: float | None = None
    """Its bounds."""
    enum: Annotated[list[Any], SpecLimits(minimum=1)] | None = None
    """Its values."""


class RuleOutcome(Spec):
    """The consequence if the condition of a rule is true."""

    verdict: RuleVerdict
    """[Verdicts](#verdicts)."""
    gate: Name = ""
    """Who is asked."""
    obligations: tuple[Words, ...] = ()
    """`idempotency_key`, `named_user`, `evidence`, `mask:PATH`."""
    limits: Annotated[dict[str, ArgumentLimit], SpecLimits(foreign=True)] = key(
        default=NOTHING, name="args"
    )
    """Limits by argument."""
    without_gate: Name = ""
    """The [limit](limits.md#without-gate) within which the built-in gate of destructive calls does not ask."""


class ExpectedText(Spec):
    """The expected text for the customer. The rule has to match, too."""

    say: CustomerText
    """The text, with its values filled in."""


class RuleExample(Spec):
    """A test of a rule."""

    data: Annotated[Json, SpecLimits(foreign=True)]
    """What the rule sees."""
    expect: Literal["match", "no_match", "error"] | ExpectedText
    """What comes of it; `{say: TEXT}`: a match, and [what the customer reads](#say-tests)."""


class PolicyRule(Spec):
    """One rule. If its condition is true, its verdict takes effect."""

    thing = "rule"
    rule_id: Name
    """Unique."""
    mode: Literal["enforce", "shadow"]
    """Whether its verdict counts, or is only recorded."""
    scope: RuleScope = key(default=RuleScope(), name="applies_to")
    """What the rule is for.
    Default: everything"""
    condition: Any = key(name="if")
    """JsonLogic."""
    then: RuleOutcome
    """What follows where `if` holds."""
    rationale: str = ""
    """Why there is the rule."""
    say: CustomerText = ""
    """[What the customer reads](#say) if the rule decides."""
    tests: tuple[RuleExample, ...] = ()
    """An enforced rule needs one that matches and one that does not."""

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
    """The calls that count; `capabilities` names at least one."""
    sum: Words = ""
    """The argument that is added up, a number; none: the calls are counted."""
    max: Annotated[float, SpecLimits(minimum=0, maximum=_MAX_AMOUNT)]
    """The most that they may add up to, with the call that is decided about."""
    per: Words
    """What has a counter of its own: `user`, `tenant`, a slot, or an argument as `args.NAME`."""
    window_s: Annotated[float, SpecLimits(above=0, maximum=_MAX_AMOUNT)] | None = None
    """Seconds that a call counts; none: for good."""
    over: Literal["deny", "allow_with_gate"] = "deny"
    """The verdict on a call that would exceed it."""
    gate: Name = BUILT_IN_GATE
    """Who is asked if `over` is `allow_with_gate`."""
    say: CustomerText = ""
    """[What the customer reads](pack.md#say) if a call would exceed it."""


class PolicyLayer(Spec):
    """The permissions, rules and approvers of a pack."""

    permissions: Annotated[dict[str, Permission], SpecLimits(unique="role")] = NOTHING
    """What roles may call."""
    guardrails: Guardrails = Guardrails()
    """[Texts that end a request](#guardrails).
    Default: none"""
    gates: dict[str, PackGate] = NOTHING
    """Gates by name; `GATE_OPERATOR` is always there."""
    rules: Annotated[tuple[PolicyRule, ...], SpecLimits(maximum=10_000, unique="rule_id")] = ()
    """[Rules](#rules)."""
    limits: Annotated[tuple[CumulativeLimit, ...], SpecLimits(maximum=100, unique="id")] = ()
    """[Limits](limits.md) on what calls add up to."""
    read_only_actions: bool = False
    """Whether a `read_only` run may make calls of that mode."""

    def gate(self, name: str) -> PackGate | None:
        """Return the gate with this name, which may be built in; None if there is none."""
        return self.gates.get(name) or (PackGate() if name == BUILT_IN_GATE else None)


class PackTool(Spec):
    """The properties of a capability in a pack."""

    approval_mode: SafetyMode = ""
    """A stricter [mode](#modes)."""
    facts: Annotated[dict[str, Words], SpecLimits(foreign=True)] = NOTHING
    """`slot.fact` to `output.path`."""


class ToolingLayer(Spec):
    """Capabilities and hosts."""

    hosts: tuple[Words, ...] | None = None
    """Where calls may go.
    Default: any"""
    capabilities: dict[ToolRef, PackTool] = NOTHING
    """Capability, or `skill:` and a skill's id, to what the pack says of it."""


class Slot(Spec):
    """An entity that an intent is about."""

    type: Name
    """Their type, as in the knowledge."""
    param: Name = ""
    """The parameter that gives the id."""
    pattern: Words = ""
    """Finds the id in the message."""


class PackIntent(Spec):
    """One entry of the intent catalog."""

    thing = "intent"
    id: Name
    """Unique."""
    risk: SafetyMode = "read_only"
    """Weighs in [escalation](#functional-state)."""
    phrases: tuple[Words, ...] = ()
    patterns: tuple[Words, ...] = ()
    """By which a message is [known](#compiler)."""
    slots: dict[str, Slot] = NOTHING
    """The entities that it is about."""
    capabilities: tuple[ToolRef, ...] = ()
    """What may be called for it."""
    templates: tuple[Name, ...] = ()
    """Plans for it, the first first."""


class Objective(Spec):
    """A goal of the agent."""

    id: Name
    """Unique."""
    text: Words
    """The goal."""
    intents: tuple[Words, ...] = ()
    """For these intents; none: for all."""


class DecisionSpec(Spec):
    """A decision: the evidence that it requires, and its possible results."""

    key: Name
    """An intent's id, or what a template names."""
    required_evidence: tuple[Words, ...] = ()
    """`slot.fact`, without which nothing above `read_only` runs."""
    outcomes: tuple[Words, ...] = ()
    """How it may end."""
    success: Any = None
    """A [rule](agent-run.md#goal) over facts and outputs: whether the goal is met, also by a model's plan."""


class TaskTemplate(Spec):
    """A plan that code builds for an intent."""

    thing = "template"
    id: Name
    """Unique."""
    decision: Name = ""
    """Its decision."""
    steps: Annotated[
        tuple[Annotated[Json, SpecLimits(keys=Step)], ...],
        SpecLimits(minimum=1, maximum=HIGHEST.steps, code="skill.steps"),
    ]
    """As of a skill."""
    success: Any = None
    """A rule on what the plan gave."""
    outcome: dict[OutcomeName, Name] = NOTHING
    """The words for how it ended.
    Each: the outcome where the rule holds, and where not"""
    reply: str = ""
    """The answer, with `${inputs.x}` and `${outputs.x}`."""


class DecisionLayer(Spec):
    """Intents and plans."""

    objectives: Annotated[tuple[Objective, ...], SpecLimits(unique="id")] = ()
    """Goals of the agent."""
    intents: Annotated[dict[str, PackIntent], SpecLimits(unique="id")] = NOTHING
    """What may be asked for."""
    decisions: Annotated[dict[str, DecisionSpec], SpecLimits(unique="key")] = NOTHING
    """What must be known before something is done."""
    task_templates: Annotated[dict[str, TaskTemplate], SpecLimits(unique="id")] = NOTHING
    """[Templates](#templates)."""

    def required_evidence(self, intent_id: str) -> tuple[str, ...]:
        """Return the evidence that the decisions of an intent require.

        The decision with the name of the intent comes first, then those of its templates.
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
    """How long memory lives, and which memory may be promoted and recalled."""

    ttl_s: dict[Tier, AgeInSeconds] = NOTHING
    """How long, by tier.
    Each: seconds"""
    consent: Literal["required"] = "required"
    """Nothing without the user's consent."""
    confidence_floor: Share = 0.7
    """The least for what promotes itself."""
    auto_promote: tuple[ProposalClass, ...] = ()
    """Classes that may promote themselves."""
    max_class: ClassName = "internal"
    """The highest class that is recalled."""
    top_k: Annotated[int, SpecLimits(minimum=0, maximum=100)] = 8
    """How many are recalled."""


class MetricTarget(Spec):
    """The bounds of a metric. One of them is declared."""

    intent: Name = ""
    """Of one intent; absent: of all."""
    metric: Metric
    """What is measured."""
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
    """What `metrics` measures runs against."""


class AgentVoice(Spec):
    """The persona that speaks."""

    role: Name = ""
    """The role whose permissions count."""
    voice: Name = ""
    """How it speaks."""


class Tone(Spec):
    """How the agent speaks."""

    agent: AgentVoice = AgentVoice()
    """Who speaks.
    Default: none"""
    non_negotiables: tuple[Words, ...] = ()
    """What it never does."""


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
    """[Who may do what](#policy-layer)."""
    tooling: ToolingLayer = key(name="tooling_layer")
    """[Capabilities and hosts](#tooling-layer)."""
    decisions: DecisionLayer = key(name="decision_layer")
    """[Intents and plans](#decision-layer)."""
    memory: MemoryLayer = key(default=MemoryLayer(), name="memory_layer")
    """[What is remembered](#memory-layer).
    Default: as its keys"""
    evaluation: EvaluationLayer = key(default=EvaluationLayer(), name="evaluation_layer")
    """What `cogcli metrics` is held against.
    Default: none"""
    tone: Tone = key(default=Tone(), name="tone_and_comms")
    """How the agent speaks.
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
