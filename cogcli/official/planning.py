"""A skill's text out of what it is to do: capabilities by the words of each clause, inputs wired by name and type."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from cogcli.official.agent import SKILL_WORTH, RouteOption, rank, unambiguous
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
    """Return the text of a skill with a step for each clause of the intent: the capability that answers most of its
    words.

    A required input takes the output of an earlier step of the same name and type, else the only output of the step
    before of that type; what is left becomes an input of the skill. The outputs of the last step, and of those that
    nobody reads, are the skill's. `validation_errors` are those of `cogcli validate`; `unmatched` are clauses that no
    capability answers, or two equally. Refused: no clause leads to one (`no-evidence`); another registry than the
    run's (`unsupported`): give it to the run with `--registry`.
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
    steps, given, unmatched = _matched(intent_description)
    name = "-".join(
        re.findall(
            r"[a-z0-9]+", " ".join(steps[0].item.id.split(".")[1:] + [s.id for s in steps[1:]])
        )
    )
    suggested = f"draft.{name[:60].strip('-')}"
    text = _skill_text(
        suggested, " ".join(intent_description.split()), target_channel, steps, given
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


def _matched(intent: str) -> tuple[list[_Step], dict[str, str], list[dict[str, object]]]:
    """(steps, inputs of the skill with their types, clauses that lead to no capability)."""
    known = {item.id: item for item in capabilities()}
    choices = [
        RouteOption(i.id, f"{i.name} {' '.join(i.tags)}", i.description) for i in known.values()
    ]
    steps: list[_Step] = []
    given: dict[str, str] = {}
    unmatched: list[dict[str, object]] = []
    for clause in clauses(intent)[:_MAX_STEPS]:
        ranked = rank(clause.text, choices, SKILL_WORTH)
        best = unambiguous(ranked)
        if best is None or best.score < _LEAST:
            unmatched.append(clause.quote(candidates=[one.id for one in ranked[:3]]))
            continue
        item = known[best.id]
        steps.append(_Step(_step_id(item, steps), item, clause.text, _wired(item, steps, given)))
    if not steps:
        raise Refused(
            "no-evidence",
            "no part of the intent leads to a capability of the registry",
            "cogcli capabilities ls",
        )
    return steps, given, unmatched


def _step_id(item: CatalogItem, steps: list[_Step]) -> str:
    base = item.id.split(".")[-1]
    taken = [step.id for step in steps if step.id.split("-")[0] == base]
    return f"{base}-{len(taken) + 1}" if taken else base


def _wired(item: CatalogItem, steps: list[_Step], given: dict[str, str]) -> dict[str, str]:
    """Return where each required input comes from; inputs of the skill are added to `given`."""
    found: dict[str, str] = {}
    for name, field in item.inputs.items():
        if not field.required or field.has_default:
            continue
        source = _source(name, field.type, steps, set(found.values()))
        if source is None:
            source = (
                name if given.get(name, field.type) == field.type else f"{name}_{len(given) + 1}"
            )
            given[source] = field.type
            source = f"inputs.{source}"
        found[name] = source
    return found


def _source(name: str, kind: str, steps: list[_Step], taken: set[str]) -> str | None:
    """Return the output of an earlier step that an input takes: by name, latest first, else the only one of its
    type.
    """
    for step in reversed(steps):
        field = step.item.outputs.get(name)
        if field and field.required and _fits(field.type, kind):
            return f"vars.{step.id}_{name}"
    last = steps[-1] if steps else None
    fitting = (
        [n for n, f in last.item.outputs.items() if f.required and f.type == kind] if last else []
    )
    by_type = f"vars.{last.id}_{fitting[0]}" if last and len(fitting) == 1 else None
    return None if by_type in taken else by_type


def _fits(given: str, wanted: str) -> bool:
    return given == wanted or wanted == "any" or (given, wanted) == ("integer", "number")


def _skill_text(
    skill_id: str, description: str, channel: str | None, steps: list[_Step], given: dict[str, str]
) -> str:
    read = {source for step in steps for source in step.inputs.values()}
    targets = {step.id: _targets(step, read, step is steps[-1]) for step in steps}
    outputs = {
        target.removeprefix("outputs."): step.item.outputs[name]
        for step in steps
        for name, target in targets[step.id].items()
        if target.startswith("outputs.")
    }
    lines = [
        f"id: {skill_id}",
        'version: "0.1.0"',
        f"name: {_text(description[:60])}",
        f"description: {_text(description)}",
    ]
    lines += [f"channel: {channel}"] if channel else []
    lines += ["inputs:" if given else "inputs: {}"]
    lines += [f"  {name}: {{type: {kind}, required: true}}" for name, kind in given.items()]
    lines += ["outputs:"] + [
        f"  {name}: {{type: {field.type}, required: true}}" for name, field in outputs.items()
    ]
    lines += ["steps:"]
    for step in steps:
        lines += [
            f"  - id: {step.id}",
            f"    description: {_text(step.clause)}",
            f"    uses: {step.item.id}",
        ]
        lines += ["    input:" if step.inputs else "    input: {}"]
        lines += [f"      {name}: {source}" for name, source in step.inputs.items()]
        lines += ["    output:"] + [
            f"      {name}: {target}" for name, target in targets[step.id].items()
        ]
    return "\n".join(lines) + "\n"


def _targets(step: _Step, read: set[str], is_last: bool) -> dict[str, str]:
    """Return where a step's required outputs go: to those who read them, else to the outputs of the skill."""
    required = [name for name, field in step.item.outputs.items() if field.required]
    wired = {
        name: f"vars.{step.id}_{name}" for name in required if f"vars.{step.id}_{name}" in read
    }
    if wired and not is_last:
        return wired
    return {name: f"outputs.{step.id}_{name}" for name in required}


def _text(value: str) -> str:
    return json.dumps(" ".join(value.split()), ensure_ascii=False)
