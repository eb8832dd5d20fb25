"""Writes the text of a skill for an intent: a capability for each clause, inputs connected by name
and type.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from cogcli.official.agent import SKILL_WORTH, RouteOption, best_unless_tied, rank
from cogcli.official.analysis import clauses
from cogcli.sdk import CatalogItem, Refused, capabilities, skill_problems

_CHANNEL = re.compile(r"[a-z][a-z0-9-]{0,31}")
_LEAST = 0.15
_MAX_STEPS = 20
_MAX_TEXT = 5_000
_HERE = ("", ".")


class _Step(NamedTuple):
    id: str
    item: CatalogItem
    clause: str
    inputs: dict[str, str]


def create_plan(
    intent_description: str, registry_root: str | None = None, target_channel: str | None = None
) -> dict[str, object]:
    """Return the text of a skill with a step for each clause of the intent.

    Each step uses the capability that shares most words with its clause. A required input takes the
    output of an earlier step with the same name and type, else the only output of the previous step
    with that type. Other inputs become inputs of the skill. The outputs of the last step, and
    unused ones, are the skill's outputs. `validation_errors` are those of `cogcli validate`;
    `unmatched` are clauses with no capability or two equal ones. Raise Refused `no-evidence` if no
    clause leads to a capability, `unsupported` for another registry than the run's.
    """
    if (registry_root or "") not in _HERE:
        hint = f"cogcli run agent.plan-and-route --registry {registry_root:.60}"
        raise Refused("unsupported", "only the registry of the run is known", hint)
    if target_channel and not _CHANNEL.fullmatch(target_channel):
        raise Refused(
            "bad-data",
            f"target_channel: expected a label such as local, found {target_channel!r:.40}",
        )
    if len(intent_description) > _MAX_TEXT:
        raise Refused("too-large", f"over {_MAX_TEXT} characters")
    steps, skill_inputs, unmatched = _plan_steps(intent_description)
    name = "-".join(
        re.findall(
            r"[a-z0-9]+", " ".join(steps[0].item.id.split(".")[1:] + [s.id for s in steps[1:]])
        )
    )
    suggested = f"draft.{name[:60].strip('-')}"
    text = _skill_text(
        suggested, " ".join(intent_description.split()), target_channel, steps, skill_inputs
    )
    problems = [problem for problem in skill_problems(text) if problem.severity == "E"]
    errors = [
        {"code": p.code, "line": p.line, "message": p.message, "hint": p.hint} for p in problems
    ]
    return {
        "skill_yaml": text,
        "suggested_id": suggested,
        "capabilities_used": list(dict.fromkeys(step.item.id for step in steps)),
        "validation_errors": errors,
        "unmatched": unmatched,
        "method": "rules:wired-by-type",
    }


def _plan_steps(intent: str) -> tuple[list[_Step], dict[str, str], list[dict[str, object]]]:
    """Return the steps, the inputs of the skill with their types, and the clauses that lead to no
    capability.
    """
    items = {item.id: item for item in capabilities()}
    choices = [
        RouteOption(i.id, f"{i.name} {' '.join(i.tags)}", i.description) for i in items.values()
    ]
    steps: list[_Step] = []
    skill_inputs: dict[str, str] = {}
    unmatched: list[dict[str, object]] = []
    for clause in clauses(intent)[:_MAX_STEPS]:
        ranked = rank(clause.text, choices, SKILL_WORTH)
        best = best_unless_tied(ranked)
        if best is None or best.score < _LEAST:
            unmatched.append(clause.quote(candidates=[one.id for one in ranked[:3]]))
            continue
        item = items[best.id]
        steps.append(
            _Step(
                _step_id(item, steps), item, clause.text, _connect_inputs(item, steps, skill_inputs)
            )
        )
    if not steps:
        raise Refused(
            "no-evidence",
            "no part of the intent leads to a capability of the registry",
            "cogcli capabilities ls",
        )
    return steps, skill_inputs, unmatched


def _step_id(item: CatalogItem, steps: list[_Step]) -> str:
    base = item.id.split(".")[-1]
    same_base = [step.id for step in steps if step.id.split("-")[0] == base]
    return f"{base}-{len(same_base) + 1}" if same_base else base


def _connect_inputs(
    item: CatalogItem, steps: list[_Step], skill_inputs: dict[str, str]
) -> dict[str, str]:
    """Return the source of each required input. New inputs of the skill are added to
    `skill_inputs`.
    """
    sources: dict[str, str] = {}
    for name, field in item.inputs.items():
        if not field.required or field.has_default:
            continue
        source = _find_source(name, field.type, steps, set(sources.values()))
        if source is None:
            source = (
                name
                if skill_inputs.get(name, field.type) == field.type
                else f"{name}_{len(skill_inputs) + 1}"
            )
            skill_inputs[source] = field.type
            source = f"inputs.{source}"
        sources[name] = source
    return sources


def _find_source(name: str, kind: str, steps: list[_Step], used_sources: set[str]) -> str | None:
    """Return the earlier output for an input, or None: by name, latest first, else the only one of
    its type.
    """
    for step in reversed(steps):
        field = step.item.outputs.get(name)
        if field and field.required and _is_assignable(field.type, kind):
            return f"vars.{step.id}_{name}"
    last = steps[-1] if steps else None
    fitting = (
        [n for n, f in last.item.outputs.items() if f.required and f.type == kind] if last else []
    )
    by_type = f"vars.{last.id}_{fitting[0]}" if last and len(fitting) == 1 else None
    return None if by_type in used_sources else by_type


def _is_assignable(actual: str, expected: str) -> bool:
    return actual == expected or expected == "any" or (actual, expected) == ("integer", "number")


def _skill_text(
    skill_id: str, description: str, channel: str | None, steps: list[_Step], inputs: dict[str, str]
) -> str:
    used_sources = {source for step in steps for source in step.inputs.values()}
    targets = {step.id: _output_targets(step, used_sources, step is steps[-1]) for step in steps}
    outputs = {
        target.removeprefix("outputs."): step.item.outputs[name]
        for step in steps
        for name, target in targets[step.id].items()
        if target.startswith("outputs.")
    }
    lines = [
        f"id: {skill_id}",
        'version: "0.1.0"',
        f"name: {_quote_value(description[:60])}",
        f"description: {_quote_value(description)}",
    ]
    lines += [f"channel: {channel}"] if channel else []
    lines += ["inputs:" if inputs else "inputs: {}"]
    lines += [f"  {name}: {{type: {kind}, required: true}}" for name, kind in inputs.items()]
    lines += ["outputs:"] + [
        f"  {name}: {{type: {field.type}, required: true}}" for name, field in outputs.items()
    ]
    lines += ["steps:"]
    for step in steps:
        lines += [
            f"  - id: {step.id}",
            f"    description: {_quote_value(step.clause)}",
            f"    uses: {step.item.id}",
        ]
        lines += ["    input:" if step.inputs else "    input: {}"]
        lines += [f"      {name}: {source}" for name, source in step.inputs.items()]
        lines += ["    output:"] + [
            f"      {name}: {target}" for name, target in targets[step.id].items()
        ]
    return "\n".join(lines) + "\n"


def _output_targets(step: _Step, used_sources: set[str], is_last: bool) -> dict[str, str]:
    """Return the targets of a step's required outputs: variables if later steps use them, else
    outputs of the skill.
    """
    required = [name for name, field in step.item.outputs.items() if field.required]
    used = {
        name: f"vars.{step.id}_{name}"
        for name in required
        if f"vars.{step.id}_{name}" in used_sources
    }
    if used and not is_last:
        return used
    return {name: f"outputs.{step.id}_{name}" for name in required}


def _quote_value(value: str) -> str:
    return json.dumps(" ".join(value.split()), ensure_ascii=False)
