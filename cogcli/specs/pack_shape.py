"""The shape of packs (docs/reference/pack.md#keys)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from cogcli.base.jsonvalue import list_of, object_of
from cogcli.base.schema.patterns import refusal
from cogcli.declarations.skill_spec import MAX_STEPS
from cogcli.declarations.spec_types import LONGEST_ID, NESTED
from cogcli.specs.common_shape import FREE, PLAIN_REF, VERSION
from cogcli.specs.id_grammar import CAPABILITY_ID, SKILL_ID
from cogcli.specs.pack import (
    BUCKETS,
    DATA_CLASSES,
    METRIC_NAMES,
    MODES,
    PHASES,
    PROPOSAL_CLASSES,
    TIERS,
    TRUST,
    VERDICTS,
)
from cogcli.specs.problem_report import ProblemReport
from cogcli.specs.shape import Boolean, Data, ListOf, MapOf, NumberShape, Text, record, required
from cogcli.specs.skill_shape import STEP, check_steps

_NAME: Final = Text(empty=False, longest=64, expected="text of 1 to 64 characters")
_WORDS: Final = ListOf(Text(empty=False))
_MODE: Final = Text(choices=MODES)
_CLASS: Final = Text(choices=DATA_CLASSES)
_COUNT: Final = NumberShape(least=0, most=1_000_000_000, whole=True)
_SECONDS: Final = NumberShape(least=0, most=1_000_000_000)
_SHARE: Final = NumberShape(least=0, most=1)
_TOOL_REF: Final = Text(
    pattern=re.compile(f"{CAPABILITY_ID.pattern}|{NESTED}{SKILL_ID.pattern}"),
    longest=len(NESTED) + LONGEST_ID,
    code="id.format",
    expected="a capability's id, or `skill:` and a skill's",
)
_BUCKET_SIZES: Final = record(dict.fromkeys(BUCKETS, _COUNT))
BUDGET: Final = record(
    {
        "tokens": record({"context": _COUNT, "output": _COUNT, "workflow": _COUNT}),
        "buckets": _BUCKET_SIZES,
        "tool_calls": record({"per_turn": _COUNT, "per_workflow": _COUNT}),
        "wall_clock_ms": _COUNT,
        "heartbeat_ms": _COUNT,
        "stage_latency_ms": record(dict.fromkeys(PHASES, _COUNT)),
        "replans": _COUNT,
        "retries": _COUNT,
        "turns": _COUNT,
        "cost_microusd": _COUNT,
        "soft": _SHARE,
    }
)
_GUARDRAIL: Final = record(
    {
        "id": required(_NAME),
        "pattern": Text(empty=False),
        "phrases": _WORDS,
        "reason": Text(),
        "gate": _NAME,
    },
    thing="guardrail",
)
_RULE: Final = record(
    {
        "rule_id": required(_NAME),
        "mode": required(Text(choices=("enforce", "shadow"))),
        "applies_to": record({"intents": _WORDS, "capabilities": _WORDS}),
        "if": required(Data()),
        "then": required(
            record(
                {
                    "verdict": required(Text(choices=VERDICTS)),
                    "gate": _NAME,
                    "obligations": _WORDS,
                    "args": MapOf(
                        record(
                            {
                                "max": NumberShape(),
                                "min": NumberShape(),
                                "enum": ListOf(Data(), least=1),
                            }
                        ),
                        foreign=True,
                    ),
                }
            )
        ),
        "rationale": Text(),
        "tests": ListOf(
            record(
                {
                    "data": required(FREE),
                    "expect": required(Text(choices=("match", "no_match", "error"))),
                }
            )
        ),
    },
    thing="rule",
)
_POLICY: Final = record(
    {
        "permissions": ListOf(
            record({"role": required(_NAME), "allow": required(ListOf(_TOOL_REF))})
        ),
        "guardrails": record(
            {"must_refuse": ListOf(_GUARDRAIL), "must_escalate": ListOf(_GUARDRAIL)}
        ),
        "gates": MapOf(
            record(
                {
                    "approver_roles": ListOf(_NAME),
                    "ttl_s": NumberShape(above=0, most=1_000_000_000),
                    "allow_self": Boolean(),
                }
            )
        ),
        "rules": ListOf(_RULE, most=10_000),
        "read_only_actions": Boolean(),
    }
)
_TOOLING: Final = record(
    {
        "hosts": _WORDS,
        "capabilities": MapOf(
            record({"approval_mode": _MODE, "facts": MapOf(Text(empty=False), foreign=True)}),
            name=_TOOL_REF,
        ),
    }
)
_INTENT: Final = record(
    {
        "id": required(_NAME),
        "risk": _MODE,
        "phrases": _WORDS,
        "patterns": _WORDS,
        "slots": MapOf(
            record({"type": required(_NAME), "param": _NAME, "pattern": Text(empty=False)})
        ),
        "capabilities": ListOf(_TOOL_REF),
        "templates": ListOf(_NAME),
    },
    thing="intent",
)
_DECISIONS: Final = record(
    {
        "objectives": ListOf(
            record(
                {
                    "id": required(_NAME),
                    "text": required(Text(empty=False)),
                    "intents": _WORDS,
                }
            )
        ),
        "intents": ListOf(_INTENT),
        "decisions": ListOf(
            record(
                {
                    "key": required(_NAME),
                    "required_evidence": _WORDS,
                    "outcomes": _WORDS,
                }
            )
        ),
        "task_templates": ListOf(
            record(
                {
                    "id": required(_NAME),
                    "decision": _NAME,
                    "steps": required(ListOf(STEP, least=1, most=MAX_STEPS, code="skill.steps")),
                    "success": Data(),
                    "outcome": record({"met": _NAME, "unmet": _NAME}),
                    "reply": Text(),
                },
                thing="template",
            )
        ),
    }
)
_META: Final = record(
    {
        "pack_id": required(PLAIN_REF),
        "pack_version": required(VERSION),
        "tenant": _NAME,
        "data_classification": _CLASS,
        "retention_days": record(dict.fromkeys(DATA_CLASSES, _COUNT)),
        "defaults": record({"safety_mode": _MODE, "budget": BUDGET, "buckets": _BUCKET_SIZES}),
        "buckets": _BUCKET_SIZES,
    }
)
PACK: Final = record(
    {
        "contract_meta": required(
            record({"contract_version": required(Text(choices=("1.0",))), "issuer": Text()})
        ),
        "pack_meta": required(_META),
        "intelligence_refs": record(
            {
                "max_hops": NumberShape(least=0, most=8, whole=True),
                "max_edges": NumberShape(least=0, most=10_000, whole=True),
                "min_trust": Text(choices=TRUST),
                "freshness_s": MapOf(_SECONDS, foreign=True),
                "single_valued": _WORDS,
            }
        ),
        "business_context": record(
            {
                "blocks": ListOf(
                    record(
                        {
                            "id": required(_NAME),
                            "text": required(Text(empty=False)),
                            "priority": NumberShape(least=0, most=100, whole=True),
                            "cuttable": Boolean(),
                        }
                    )
                )
            }
        ),
        "policy_layer": required(_POLICY),
        "tooling_layer": required(_TOOLING),
        "decision_layer": required(_DECISIONS),
        "memory_layer": record(
            {
                "ttl_s": record(dict.fromkeys(TIERS, _SECONDS)),
                "consent": Text(choices=("required",)),
                "confidence_floor": _SHARE,
                "auto_promote": ListOf(Text(choices=PROPOSAL_CLASSES)),
                "max_class": _CLASS,
                "top_k": NumberShape(least=0, most=100, whole=True),
            }
        ),
        "evaluation_layer": record(
            {
                "targets": ListOf(
                    record(
                        {
                            "intent": _NAME,
                            "metric": required(Text(choices=METRIC_NAMES)),
                            "min": required(NumberShape()),
                        }
                    )
                )
            }
        ),
        "tone_and_comms": record(
            {
                "agent": record({"role": _NAME, "voice": _NAME}),
                "non_negotiables": _WORDS,
            }
        ),
    }
)


_GUARDRAILS: Final = tuple(
    ("policy_layer", "guardrails", kind) for kind in ("must_refuse", "must_escalate")
)
_NAMED: Final[tuple[tuple[tuple[str, ...], str], ...]] = (
    (("policy_layer", "permissions"), "role"),
    *((path, "id") for path in _GUARDRAILS),
    (("policy_layer", "rules"), "rule_id"),
    (("business_context", "blocks"), "id"),
    (("decision_layer", "objectives"), "id"),
    (("decision_layer", "intents"), "id"),
    (("decision_layer", "decisions"), "key"),
    (("decision_layer", "task_templates"), "id"),
)
"""Lists whose entries have unique names, as (path of the list, key of the name)."""


def check_pack(raw: dict[str, Any], report: ProblemReport) -> None:
    """Report the faults of a pack by itself that its shape cannot express: patterns without a bound of time,
    guardrails that look for nothing, names that are given twice, and the steps of templates."""
    for index, template in enumerate(_entries(raw, "decision_layer", "task_templates")):
        check_steps(template, report, "decision_layer", "task_templates", index)
    for path, pattern in _patterns(raw):
        if isinstance(pattern, str) and (why := refusal(pattern)):
            report.error("pack.pattern", path, f"pattern `{pattern}`: {why}")
    for kind in _GUARDRAILS:
        for index, guardrail in enumerate(_entries(raw, *kind)):
            if not guardrail.get("pattern") and not guardrail.get("phrases"):
                about = report.part(f"guardrail `{guardrail.get('id')}`", *kind, index)
                about.error(
                    "key.missing",
                    (),
                    "neither `pattern` nor `phrases`",
                    hint="no text would meet it",
                )
    for names, key in _NAMED:
        _check_names(_entries(raw, *names), key, report, names)


def _check_names(
    entries: list[dict[str, Any]], key: str, report: ProblemReport, path: tuple[str, ...]
) -> None:
    names = [entry.get(key) for entry in entries]
    for index, name in enumerate(names):
        if isinstance(name, str) and name in names[:index]:
            report.error(
                "pack.duplicate", (*path, index, key), f"`{name}` is given twice in `{path[-1]}`"
            )


def _patterns(raw: dict[str, Any]) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Every pattern of a pack with its path."""
    for kind in _GUARDRAILS:
        for index, entry in enumerate(_entries(raw, *kind)):
            yield (*kind, index, "pattern"), entry.get("pattern")
    for index, intent in enumerate(_entries(raw, "decision_layer", "intents")):
        path = ("decision_layer", "intents", index)
        for number, pattern in enumerate(list_of(intent.get("patterns"))):
            yield (*path, "patterns", number), pattern
        for name, slot in object_of(intent.get("slots")).items():
            yield (*path, "slots", name, "pattern"), object_of(slot).get("pattern")


def _entries(raw: dict[str, Any], *path: str) -> list[dict[str, Any]]:
    """The entries of a list below sections that may be anything; what is not an object is an empty one."""
    for name in path[:-1]:
        raw = object_of(raw.get(name))
    return [object_of(entry) for entry in list_of(raw.get(path[-1]))]
