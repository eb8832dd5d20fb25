"""Checks that the rules, goals and replies of a pack read only existing names (docs/reference/pack.md#check). Pure.

A rule that reads an unknown name would deny every call. If it has a default or uses `missing`, it would never match.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from cogcli.base.problems import list_known_words, suggest_path
from cogcli.declarations.pack_spec import Pack, TaskTemplate
from cogcli.policy.evaluation import describe
from cogcli.policy.jsonlogic import compile_rule
from cogcli.policy.pack_policy import STATE_PARTS
from cogcli.specs.pack_skills import reply_template, template_skill
from cogcli.specs.plausible_syntax import placeholders
from cogcli.specs.problem_report import ProblemReport
from cogcli.specs.template import TemplateFault, TemplateSlot, slots_of

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
    """Report invalid conditions, and unknown names in conditions and in template replies."""
    slots = {name: _ANY for intent in pack.decisions.intents.values() for name in intent.slots}
    # Rules of a pack without intents apply to the slots of another pack.
    members = {**slots, **_OF_RULE} if pack.decisions.intents else {}
    for number, rule in enumerate(pack.policy.rules):
        about = report.part(f"rule `{rule.rule_id}`", "policy_layer", "rules", number)
        _check_condition(rule.condition, about, "if", members)
    for number, decision in enumerate(pack.decisions.decisions.values()):
        about = report.part(f"decision `{decision.key}`", "decision_layer", "decisions", number)
        if decision.success is not None:
            _check_condition(decision.success, about, "success", {**slots, **_OF_RUN})
    for number, template in enumerate(pack.decisions.task_templates.values()):
        about = report.part(f"template `{template.id}`", "decision_layer", "task_templates", number)
        if template.success is not None:
            _check_condition(template.success, about, "success", _OF_RUN)
        _check_reply(pack, template, about)


def _check_condition(source: object, report: ProblemReport, key: str, members: Members) -> None:
    compiled = compile_rule(source, depth=MAX_RULE_DEPTH)
    for fault in compiled.faults:
        report.error("policy.rule", (key, *fault.path), fault.message)
    if not isinstance(source, dict | bool):
        report.error(
            "policy.rule", (key,), f"found {describe(source)}, expected an operator, true or false"
        )
    for path in sorted(compiled.paths - {""}) if members else ():
        _check_path(path, report, key, members)


def _check_path(path: str, report: ProblemReport, key: str, members: Members) -> None:
    """Report a path whose first word is unknown, or that leads to an unknown member of a known word."""
    head, *rest = path.split(".")
    known: Collection[str] = members
    word, before, below = head, "", rest
    if head in members:
        known = members[head]
        word, before, below = rest[0] if rest else "", f"{head}.", rest[1:]
        is_unknown = bool(known and word) and word not in known
        if "" not in rest and not is_unknown:
            return
    near = suggest_path(word, known, prefix=before, suffix=_join_path(below))
    _report_unknown_path(report, key, path, near or list_known_words(sorted(known)))


def _report_unknown_path(report: ProblemReport, key: str, path: str, hint: str) -> None:
    report.error("pack.reference", (key,), f"reads `{path}`, which is never there", hint=hint)


def _join_path(words: Iterable[str]) -> str:
    return "".join(f".{each}" for each in words)


def _check_reply(pack: Pack, template: TaskTemplate, report: ProblemReport) -> None:
    slots = _parse_reply(template.reply, report)
    given = template_skill(pack, template)
    known = [f"{space}.{name}" for space in ("inputs", "outputs") for name in given[space]]
    # A step without declared outputs may write any output.
    writes_any = any("output" not in step for step in template.steps)
    for slot in slots:
        if ".".join(slot.path[:2]) in known:
            continue
        space, *word = slot.path[:2]
        if writes_any and space == "outputs":
            continue
        names, after = given.get(space) or (), _join_path(slot.path[2:])
        near = suggest_path("".join(word), names, prefix=f"{space}.", suffix=after)
        _report_unknown_path(report, "reply", ".".join(slot.path), near or list_known_words(known))


def _parse_reply(reply: str, report: ProblemReport) -> Sequence[TemplateSlot]:
    """Return the slots of a reply; empty if the reply is not a template. Report placeholders that would remain in the
    text.
    """
    try:
        slots = slots_of(reply_template(reply))
    except TemplateFault as fault:
        text = str(fault).replace("`input`", "`inputs` or `outputs`")
        report.error("request.template", ("reply",), text)
        return ()
    for found in placeholders(reply, frozenset(), known_only=True):
        if found.found.startswith("${") and found.found[2] != "{":
            continue
        message, hint = f"`{found.found}` is not filled in", f"write ${{{found.path}}}"
        report.error("request.template", ("reply",), message, hint=hint)
    return slots
