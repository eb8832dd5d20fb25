"""Checks that the rules, goals and replies of a pack read only existing names (docs/reference/pack.md#check). Pure.

A rule with an unknown name would deny every call; with a default, or inside `missing`, it would never match.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from cogcli.base.problems import list_known, suggest_path
from cogcli.declarations.pack_spec import Pack, TaskTemplate
from cogcli.policy.evaluation import describe
from cogcli.policy.jsonlogic import compile_rule
from cogcli.policy.pack_policy import STATE_PARTS
from cogcli.specs.pack_skills import reply_template, template_skill
from cogcli.specs.plausible_syntax import placeholders
from cogcli.specs.problem_report import ProblemReport
from cogcli.specs.template import TemplateFault, TemplateSlot, parse_template

MAX_RULE_DEPTH: Final = 24
Members = Mapping[str, frozenset[str]]
"""The readable members by first word of a path. An empty set means any member."""
_ANY: Final[frozenset[str]] = frozenset()
_OF_RUN: Final[Members] = {"inputs": _ANY, "vars": _ANY, "outputs": _ANY}
_OF_RULE: Final[Members] = {
    **_OF_RUN,
    "request": frozenset(("intent", "message", "channel", "locale", "params")),
    "user": frozenset(("id", "role", "consent")),
    "agent": frozenset(("role", "voice")),
    "run": frozenset(("safety_mode", "turn", "now")),
    "call": frozenset(("capability", "approval_mode", "step")),
    "args": _ANY,
    "state": STATE_PARTS,
}


def check_reads(pack: Pack, report: ProblemReport) -> None:
    """Report invalid conditions, and unknown names in conditions and template replies."""
    slots = {name: _ANY for intent in pack.decisions.intents.values() for name in intent.slots}
    # Rules of a pack without intents apply to the slots of another pack.
    members = {**slots, **_OF_RULE} if pack.decisions.intents else {}
    for number, rule in enumerate(pack.policy.rules):
        about = report.part(f"rule `{rule.rule_id}`", "policy_layer", "rules", number)
        _check_condition(rule.condition, about, "if", members)
    for number, template in enumerate(pack.decisions.task_templates.values()):
        about = report.part(f"template `{template.id}`", "decision_layer", "task_templates", number)
        if template.success is not None:
            _check_condition(template.success, about, "success", _OF_RUN)
        _check_reply(pack, template, about)


def _check_condition(source: Any, report: ProblemReport, key: str, members: Members) -> None:
    compiled = compile_rule(source, depth=MAX_RULE_DEPTH)
    for fault in compiled.faults:
        report.error("policy.rule", (key, *fault.path), fault.message)
    if not isinstance(source, dict | bool):
        report.error(
            "policy.rule", (key,), f"found {describe(source)}, expected an operator, true or false"
        )
    for path in sorted(compiled.paths - {""}) if members else ():
        head, *rest = path.split(".")
        known, word = (
            (members, head) if head not in members else (members[head], rest[0] if rest else "")
        )
        if head not in members or "" in rest or (known and word and word not in known):
            text = f"reads `{path}`, which is never there"
            before, below = ("", rest) if head not in members else (f"{head}.", rest[1:])
            near = suggest_path(
                word, known, before=before, after="".join(f".{each}" for each in below)
            )
            report.error("pack.reference", (key,), text, hint=near or list_known(sorted(known)))


def _check_reply(pack: Pack, template: TaskTemplate, report: ProblemReport) -> None:
    try:
        pieces = parse_template(reply_template(template.reply))
    except TemplateFault as fault:
        report.error(
            "request.template", ("reply",), str(fault).replace("`input`", "`inputs` or `outputs`")
        )
        return
    for found in placeholders(template.reply, frozenset(), named=True):
        if found.found.startswith("${") and found.found[2] != "{":
            continue
        message, hint = f"`{found.found}` is not filled in", f"write ${{{found.path}}}"
        report.error("request.template", ("reply",), message, hint=hint)
    given = template_skill(pack, template)
    known = [f"{space}.{name}" for space in ("inputs", "outputs") for name in given[space]]
    # A step without declared outputs may write any output.
    unsaid = any("output" not in step for step in template.steps)
    for slot in pieces:
        if not isinstance(slot, TemplateSlot) or ".".join(slot.path[:2]) in known:
            continue
        if not (unsaid and slot.path[0] == "outputs"):
            text = f"reads `{'.'.join(slot.path)}`, which is never there"
            space, *word = slot.path[:2]
            after = "".join(f".{each}" for each in slot.path[2:])
            near = suggest_path(
                "".join(word), given.get(space) or (), before=f"{space}.", after=after
            )
            report.error("pack.reference", ("reply",), text, hint=near or list_known(known))
