"""The shape of packs (docs/reference/pack.md#keys)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from cogcli.core.jsonvalue import list_of, object_of
from cogcli.schema.patterns import search_pattern
from cogcli.specs.common_shape import CAPABILITY_REF, FREE, PLAIN_REF, VERSION
from cogcli.specs.pack import (
    BUCKETS,
    DATA_CLASSES,
    MODES,
    PROPOSAL_CLASSES,
    TIERS,
    TRUST,
    VERDICTS,
)
from cogcli.specs.problem_report import ProblemReport
from cogcli.specs.shape import Boolean, Data, ListOf, MapOf, NumberShape, Record, Text, may, required_key

_NAME: Final = Text(empty=False, longest=64, expected="text of 1 to 64 characters")
_WORDS: Final = ListOf(Text(empty=False))
_MODE: Final = Text(choices=MODES)
_CLASS: Final = Text(choices=DATA_CLASSES)
_COUNT: Final = NumberShape(least=0, most=1_000_000_000, whole=True)
_SECONDS: Final = NumberShape(least=0, most=1_000_000_000)
_SHARE: Final = NumberShape(least=0, most=1)
_BUCKET_SIZES: Final = Record({bucket: may(_COUNT) for bucket in BUCKETS})
BUDGET: Final = Record(
    {
        "tokens": may(Record({"context": may(_COUNT), "output": may(_COUNT), "workflow": may(_COUNT)})),
        "buckets": may(_BUCKET_SIZES),
        "tool_calls": may(Record({"per_turn": may(_COUNT), "per_workflow": may(_COUNT)})),
        "wall_clock_ms": may(_COUNT),
        "heartbeat_ms": may(_COUNT),
        "stage_latency_ms": may(MapOf(_COUNT)),
        "replans": may(_COUNT),
        "retries": may(_COUNT),
        "turns": may(_COUNT),
        "cost_microusd": may(_COUNT),
        "soft": may(_SHARE),
    }
)
_GUARDRAIL: Final = Record(
    {
        "id": required_key(_NAME),
        "pattern": may(Text(empty=False)),
        "phrases": may(_WORDS),
        "reason": may(Text()),
        "gate": may(_NAME),
    },
    thing="guardrail",
)
_RULE: Final = Record(
    {
        "rule_id": required_key(_NAME),
        "mode": required_key(Text(choices=("enforce", "shadow"))),
        "applies_to": may(Record({"intents": may(_WORDS), "capabilities": may(_WORDS)})),
        "if": required_key(Data()),
        "then": required_key(
            Record(
                {
                    "verdict": required_key(Text(choices=VERDICTS)),
                    "gate": may(_NAME),
                    "obligations": may(_WORDS),
                    "args": may(
                        MapOf(
                            Record(
                                {
                                    "max": may(NumberShape()),
                                    "min": may(NumberShape()),
                                    "enum": may(ListOf(Data(), least=1)),
                                }
                            ),
                            foreign=True,
                        )
                    ),
                }
            )
        ),
        "rationale": may(Text()),
        "tests": may(
            ListOf(
                Record(
                    {
                        "data": required_key(FREE),
                        "expect": required_key(Text(choices=("match", "no_match", "error"))),
                    }
                )
            )
        ),
    },
    thing="rule",
)
_POLICY: Final = Record(
    {
        "permissions": may(
            ListOf(Record({"role": required_key(_NAME), "allow": required_key(ListOf(CAPABILITY_REF))}))
        ),
        "guardrails": may(
            Record({"must_refuse": may(ListOf(_GUARDRAIL)), "must_escalate": may(ListOf(_GUARDRAIL))})
        ),
        "gates": may(
            MapOf(
                Record(
                    {
                        "approver_roles": may(ListOf(_NAME)),
                        "ttl_s": may(NumberShape(above=0, most=1_000_000_000)),
                        "allow_self": may(Boolean()),
                    }
                )
            )
        ),
        "rules": may(ListOf(_RULE, most=10_000)),
        "read_only_actions": may(Boolean()),
    }
)
_TOOLING: Final = Record(
    {
        "hosts": may(_WORDS),
        "capabilities": may(
            MapOf(
                Record({"approval_mode": may(_MODE), "facts": may(MapOf(Text(empty=False), foreign=True))}),
                name=CAPABILITY_REF,
            )
        ),
    }
)
_INTENT: Final = Record(
    {
        "id": required_key(_NAME),
        "risk": may(_MODE),
        "phrases": may(_WORDS),
        "patterns": may(_WORDS),
        "slots": may(
            MapOf(
                Record({"type": required_key(_NAME), "param": may(_NAME), "pattern": may(Text(empty=False))})
            )
        ),
        "capabilities": may(ListOf(CAPABILITY_REF)),
        "templates": may(ListOf(_NAME)),
    },
    thing="intent",
)
_DECISIONS: Final = Record(
    {
        "objectives": may(
            ListOf(
                Record(
                    {
                        "id": required_key(_NAME),
                        "text": required_key(Text(empty=False)),
                        "intents": may(_WORDS),
                    }
                )
            )
        ),
        "intents": may(ListOf(_INTENT)),
        "decisions": may(
            ListOf(
                Record(
                    {
                        "key": required_key(_NAME),
                        "required_evidence": may(_WORDS),
                        "outcomes": may(_WORDS),
                    }
                )
            )
        ),
        "task_templates": may(
            ListOf(
                Record(
                    {
                        "id": required_key(_NAME),
                        "decision": may(_NAME),
                        "steps": required_key(ListOf(FREE, least=1)),
                        "success": may(Data()),
                        "outcome": may(Record({"met": may(_NAME), "unmet": may(_NAME)})),
                        "reply": may(Text()),
                    },
                    thing="template",
                )
            )
        ),
    }
)
_META: Final = Record(
    {
        "pack_id": required_key(PLAIN_REF),
        "pack_version": required_key(VERSION),
        "tenant": may(_NAME),
        "data_classification": may(_CLASS),
        "retention_days": may(Record({name: may(_COUNT) for name in DATA_CLASSES})),
        "defaults": may(
            Record({"safety_mode": may(_MODE), "budget": may(BUDGET), "buckets": may(_BUCKET_SIZES)})
        ),
        "buckets": may(_BUCKET_SIZES),
    }
)
PACK: Final = Record(
    {
        "contract_meta": required_key(
            Record({"contract_version": required_key(Text(choices=("1.0",))), "issuer": may(Text())})
        ),
        "pack_meta": required_key(_META),
        "intelligence_refs": may(
            Record(
                {
                    "max_hops": may(NumberShape(least=0, most=8, whole=True)),
                    "max_edges": may(NumberShape(least=0, most=10_000, whole=True)),
                    "min_trust": may(Text(choices=TRUST)),
                    "freshness_s": may(MapOf(_SECONDS, foreign=True)),
                    "single_valued": may(_WORDS),
                }
            )
        ),
        "business_context": may(
            Record(
                {
                    "blocks": may(
                        ListOf(
                            Record(
                                {
                                    "id": required_key(_NAME),
                                    "text": required_key(Text(empty=False)),
                                    "priority": may(NumberShape(least=0, most=100, whole=True)),
                                    "cuttable": may(Boolean()),
                                }
                            )
                        )
                    )
                }
            )
        ),
        "policy_layer": required_key(_POLICY),
        "tooling_layer": required_key(_TOOLING),
        "decision_layer": required_key(_DECISIONS),
        "memory_layer": may(
            Record(
                {
                    "ttl_s": may(Record({tier: may(_SECONDS) for tier in TIERS})),
                    "consent": may(Text(choices=("required",))),
                    "confidence_floor": may(_SHARE),
                    "auto_promote": may(ListOf(Text(choices=PROPOSAL_CLASSES))),
                    "max_class": may(_CLASS),
                    "top_k": may(NumberShape(least=0, most=100, whole=True)),
                }
            )
        ),
        "evaluation_layer": may(
            Record(
                {
                    "targets": may(
                        ListOf(
                            Record(
                                {
                                    "intent": may(_NAME),
                                    "metric": required_key(_NAME),
                                    "min": required_key(NumberShape()),
                                }
                            )
                        )
                    )
                }
            )
        ),
        "tone_and_comms": may(
            Record(
                {
                    "agent": may(Record({"role": may(_NAME), "voice": may(_NAME)})),
                    "non_negotiables": may(_WORDS),
                }
            )
        ),
    }
)


_NAMED: Final = (
    ("policy_layer", "rules", "rule_id"),
    ("decision_layer", "objectives", "id"),
    ("decision_layer", "intents", "id"),
    ("decision_layer", "decisions", "key"),
    ("decision_layer", "task_templates", "id"),
)
"""Lists whose entries have unique names, as (section, list, key of the name)."""


def check_pack(raw: dict[str, Any], report: ProblemReport) -> None:
    """Report the faults of a pack by itself that its shape cannot express: patterns without a bound of time,
    and names that are given twice."""
    for path, pattern in _patterns(raw):
        found = search_pattern(pattern) if isinstance(pattern, str) else None
        if isinstance(found, str):
            report.error("pack.pattern", path, f"pattern `{pattern}`: {found}")
    for section, name, key in _NAMED:
        seen = set()
        for index, entry in enumerate(_entries(raw, section, name)):
            id = entry.get(key)
            if id in seen:
                report.error(
                    "pack.duplicate", (section, name, index, key), f"`{id}` is given twice in `{name}`"
                )
            seen.add(id)


def _patterns(raw: dict[str, Any]) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Every pattern of a pack with its path."""
    guardrails = object_of(object_of(raw.get("policy_layer")).get("guardrails"))
    for kind in ("must_refuse", "must_escalate"):
        for index, entry in enumerate(list_of(guardrails.get(kind))):
            yield ("policy_layer", "guardrails", kind, index, "pattern"), object_of(entry).get("pattern")
    for index, intent in enumerate(_entries(raw, "decision_layer", "intents")):
        path = ("decision_layer", "intents", index)
        for number, pattern in enumerate(list_of(intent.get("patterns"))):
            yield (*path, "patterns", number), pattern
        for name, slot in object_of(intent.get("slots")).items():
            yield (*path, "slots", name, "pattern"), object_of(slot).get("pattern")


def _entries(raw: dict[str, Any], section: str, name: str) -> list[dict[str, Any]]:
    return [object_of(entry) for entry in list_of(object_of(raw.get(section)).get(name))]
