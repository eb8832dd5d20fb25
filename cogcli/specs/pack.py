"""Packs: what an agent may do, knows and says, and how its requests become plans (docs/reference/pack.md#keys)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from cogcli.base.canonical import digest_of
from cogcli.base.jsonvalue import NOTHING
from cogcli.declarations.options import SAFETY_MODES
from cogcli.specs.fields import value_from

MODES: Final = SAFETY_MODES
METRIC_NAMES: Final = (
    "plan_verification_pass_rate", "tool_success_rate", "recovery_rate", "evidence_backed_rate",
    "policy_compliance_rate", "mean_time_to_safe_completion_ms", "loop_guard_trip_rate",
)  # fmt: skip
VERDICTS: Final = ("deny", "refuse", "escalate", "allow_with_gate", "allow")
"""What a rule may say of a call, the strictest first."""
PHASES: Final = ("compile", "plan", "verify", "execute", "consolidate")
"""The phases of a turn, each of which may have a time limit."""
BUCKETS: Final = ("policy", "tool", "evidence", "business", "memory", "session")
"""The token buckets of a compiled context, in the order in which they are served."""
TRUST: Final = ("untrusted", "verified", "authoritative")
"""Trust of evidence, the lowest first."""
DATA_CLASSES: Final = ("public", "internal", "pii", "confidential", "restricted")
"""Data classifications, the lowest first."""
TIERS: Final = ("working", "episodic", "semantic", "durable")
PROPOSAL_CLASSES: Final = ("evidence_link", "preference", "decision_outcome", "correction")
BUILT_IN_GATE: Final = "GATE_OPERATOR"
"""The gate of every pack that any role may answer."""
BUILT_IN_PACK: Final = "builtin.read-only"
"""The pack of an agent that is given none. It is made for each run, and lies in no file."""
DAY: Final = 86_400


class PackGate(NamedTuple):
    """Who may answer for a call, and for how long a request waits, in seconds."""

    approver_roles: tuple[str, ...] = ()
    """The roles of which an approver needs one; empty: any."""
    ttl_s: float = DAY
    allow_self: bool = False
    """Whether the user whose request it is may approve."""


class RuleScope(NamedTuple):
    """What a rule applies to: patterns of names in which `*` stands for any text; empty: all."""

    intents: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()


class PolicyRule(NamedTuple):
    """One rule: where its condition matches, its verdict counts. `limits` maps an argument to `max`, `min`, `enum`."""

    rule_id: str
    mode: str
    condition: Any
    verdict: str
    scope: RuleScope = RuleScope()
    gate: str = ""
    obligations: tuple[str, ...] = ()
    limits: dict[str, dict[str, Any]] = NOTHING
    rationale: str = ""
    tests: tuple[dict[str, Any], ...] = ()

    @property
    def is_enforced(self) -> bool:
        """Whether its verdict counts; one of a shadow rule is only recorded."""
        return self.mode == "enforce"


class Guardrail(NamedTuple):
    """Text that is refused or escalated wherever it is said: a pattern, or phrases as whole words."""

    id: str
    pattern: str = ""
    phrases: tuple[str, ...] = ()
    reason: str = ""
    gate: str = BUILT_IN_GATE


class PolicyLayer(NamedTuple):
    """Permissions by role, guardrails, gates by name and rules."""

    permissions: dict[str, tuple[str, ...]] = NOTHING
    must_refuse: tuple[Guardrail, ...] = ()
    must_escalate: tuple[Guardrail, ...] = ()
    gates: dict[str, PackGate] = NOTHING
    rules: tuple[PolicyRule, ...] = ()
    read_only_actions: bool = False
    """Whether a `read_only` run may make calls of that mode."""

    def gate(self, name: str) -> PackGate | None:
        """The gate of a name, the built-in one included."""
        return self.gates.get(name) or (PackGate() if name == BUILT_IN_GATE else None)


class PackTool(NamedTuple):
    """What a pack says of a capability: a stricter mode, and facts that its outputs become."""

    approval_mode: str = ""
    facts: dict[str, str] = NOTHING


class ToolingLayer(NamedTuple):
    """Capabilities by id, and the hosts that calls may reach, None for any."""

    capabilities: dict[str, PackTool] = NOTHING
    hosts: tuple[str, ...] | None = None


class Slot(NamedTuple):
    """An entity that an intent is about: the type of its id, the parameter that gives it, and a pattern to find it."""

    type: str
    param: str = ""
    pattern: str = ""


class PackIntent(NamedTuple):
    """One entry of the intent catalog."""

    id: str
    risk: str = "read_only"
    phrases: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    slots: dict[str, Slot] = NOTHING
    capabilities: tuple[str, ...] = ()
    templates: tuple[str, ...] = ()


class DecisionSpec(NamedTuple):
    """A decision: the evidence that it requires, and how it may end."""

    key: str
    required_evidence: tuple[str, ...] = ()
    outcomes: tuple[str, ...] = ()


class TaskTemplate(NamedTuple):
    """A plan that code makes of an intent. `steps` are those of a skill, as written."""

    id: str
    steps: tuple[dict[str, Any], ...]
    decision: str = ""
    success: Any = None
    outcome: dict[str, str] = NOTHING
    reply: str = ""


class Objective(NamedTuple):
    """A goal of the agent, for some intents or for all."""

    id: str
    text: str
    intents: tuple[str, ...] = ()


class DecisionLayer(NamedTuple):
    """Intents, decisions and templates by id, and objectives in order."""

    intents: dict[str, PackIntent] = NOTHING
    decisions: dict[str, DecisionSpec] = NOTHING
    task_templates: dict[str, TaskTemplate] = NOTHING
    objectives: tuple[Objective, ...] = ()

    def required_evidence(self, intent_id: str) -> tuple[str, ...]:
        """The evidence that the decisions of an intent require: that of its own name, then those of its templates."""
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


class BusinessBlock(NamedTuple):
    """A text of the business for the context; one that is `cuttable` may be shortened at a sentence."""

    id: str
    text: str
    priority: int = 50
    cuttable: bool = False


class KnowledgeLimits(NamedTuple):
    """How far evidence is looked for, what trust it needs, and how old it may be, in seconds by predicate."""

    max_hops: int = 2
    max_edges: int = 200
    min_trust: str = "verified"
    freshness_s: dict[str, float] = NOTHING
    single_valued: tuple[str, ...] = ()


class MemoryLayer(NamedTuple):
    """How long memory lives, in seconds by tier, and what of it may be promoted and recalled."""

    ttl_s: dict[str, float] = NOTHING
    consent: str = "required"
    confidence_floor: float = 0.7
    auto_promote: tuple[str, ...] = ()
    max_class: str = "internal"
    top_k: int = 8


class MetricTarget(NamedTuple):
    """The least value of a metric, of one intent or of all."""

    metric: str
    min: float
    intent: str = ""


class Tone(NamedTuple):
    """Who the agent is: its role and voice, and what it never does."""

    role: str = ""
    voice: str = ""
    non_negotiables: tuple[str, ...] = ()


class PackDefaults(NamedTuple):
    """The ceiling of approval modes and the budgets of a run, which flags may only lower."""

    safety_mode: str = "read_only"
    budget: dict[str, Any] = NOTHING
    buckets: dict[str, int] = NOTHING


class Pack(NamedTuple):
    """A pack as its file declares it. `hash` is that of its canonical content, `file` the path shown to users."""

    pack_id: str
    version: str
    policy: PolicyLayer
    tooling: ToolingLayer
    decisions: DecisionLayer
    tenant: str = "local"
    data_classification: str = "internal"
    retention_days: dict[str, float] = NOTHING
    defaults: PackDefaults = PackDefaults()
    knowledge: KnowledgeLimits = KnowledgeLimits()
    business: tuple[BusinessBlock, ...] = ()
    memory: MemoryLayer = MemoryLayer()
    targets: tuple[MetricTarget, ...] = ()
    tone: Tone = Tone()
    hash: str = ""
    file: str = ""

    @property
    def ref(self) -> str:
        """The reference that names exactly this pack: `id@version#hash`."""
        return f"{self.pack_id}@{self.version}#{self.hash}"

    @property
    def permitted(self) -> tuple[str, ...]:
        """What the role of the agent may call."""
        return self.policy.permissions.get(self.tone.role, ())


def pack_from(raw: dict[str, Any], file: str = "") -> Pack:
    """A pack from its checked mapping; its hash is that of the mapping."""
    meta = raw["pack_meta"]
    defaults, tone = meta.get("defaults") or {}, raw.get("tone_and_comms") or {}
    blocks = (raw.get("business_context") or {}).get("blocks") or ()
    targets = (raw.get("evaluation_layer") or {}).get("targets") or ()
    return value_from(
        Pack,
        meta,
        version=meta["pack_version"],
        policy=_policy_from(raw["policy_layer"]),
        tooling=_tooling_from(raw["tooling_layer"]),
        decisions=_decisions_from(raw["decision_layer"]),
        defaults=value_from(
            PackDefaults,
            defaults,
            buckets={**(meta.get("buckets") or {}), **(defaults.get("buckets") or {})},
        ),
        knowledge=value_from(
            KnowledgeLimits, _with_tuples(raw.get("intelligence_refs"), "single_valued")
        ),
        business=tuple(value_from(BusinessBlock, block) for block in blocks),
        memory=value_from(MemoryLayer, _with_tuples(raw.get("memory_layer"), "auto_promote")),
        targets=tuple(value_from(MetricTarget, target) for target in targets),
        tone=value_from(
            Tone, tone.get("agent") or {}, non_negotiables=tuple(tone.get("non_negotiables") or ())
        ),
        hash=digest_of(raw),
        file=file,
    )


def _policy_from(raw: dict[str, Any]) -> PolicyLayer:
    guardrails = raw.get("guardrails") or {}
    return value_from(
        PolicyLayer,
        raw,
        permissions={
            entry["role"]: tuple(entry["allow"]) for entry in raw.get("permissions") or ()
        },
        must_refuse=_guardrails_from(guardrails.get("must_refuse")),
        must_escalate=_guardrails_from(guardrails.get("must_escalate")),
        gates={
            name: value_from(PackGate, _with_tuples(gate, "approver_roles"))
            for name, gate in (raw.get("gates") or {}).items()
        },
        rules=tuple(map(_rule_from, raw.get("rules") or ())),
    )


def _guardrails_from(raw: list[dict[str, Any]] | None) -> tuple[Guardrail, ...]:
    return tuple(value_from(Guardrail, _with_tuples(entry, "phrases")) for entry in raw or ())


def _rule_from(raw: dict[str, Any]) -> PolicyRule:
    then = raw["then"]
    return value_from(
        PolicyRule,
        raw,
        condition=raw["if"],
        verdict=then["verdict"],
        gate=then.get("gate") or "",
        obligations=tuple(then.get("obligations") or ()),
        limits=then.get("args") or NOTHING,
        scope=value_from(RuleScope, _with_tuples(raw.get("applies_to"), "intents", "capabilities")),
        tests=tuple(raw.get("tests") or ()),
    )


def _tooling_from(raw: dict[str, Any]) -> ToolingLayer:
    hosts, tools = raw.get("hosts"), raw.get("capabilities") or {}
    return ToolingLayer(
        {id: value_from(PackTool, tool or {}) for id, tool in tools.items()},
        None if hosts is None else tuple(hosts),
    )


def _decisions_from(raw: dict[str, Any]) -> DecisionLayer:
    decisions = [
        value_from(DecisionSpec, _with_tuples(entry, "required_evidence", "outcomes"))
        for entry in raw.get("decisions") or ()
    ]
    templates = [
        value_from(TaskTemplate, entry, steps=tuple(entry["steps"]))
        for entry in raw.get("task_templates") or ()
    ]
    return DecisionLayer(
        {entry["id"]: _intent_from(entry) for entry in raw.get("intents") or ()},
        {decision.key: decision for decision in decisions},
        {template.id: template for template in templates},
        tuple(
            value_from(Objective, _with_tuples(entry, "intents"))
            for entry in raw.get("objectives") or ()
        ),
    )


def _intent_from(raw: dict[str, Any]) -> PackIntent:
    slots = {name: value_from(Slot, slot) for name, slot in (raw.get("slots") or {}).items()}
    lists = _with_tuples(raw, "phrases", "patterns", "capabilities", "templates")
    return value_from(PackIntent, lists, slots=slots)


def _with_tuples(raw: Mapping[str, Any] | None, *names: str) -> dict[str, Any]:
    """A mapping whose lists of these names are tuples."""
    return {
        name: tuple(value) if name in names and value else value
        for name, value in (raw or {}).items()
    }
