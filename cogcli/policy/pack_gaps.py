"""Parts of a pack that cannot work, or are not governed, although each name in them exists
(docs/reference/pack.md#gaps). Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from cogcli.base.problems import suggest_path
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.pack_spec import Pack, PolicyRule, TaskTemplate
from cogcli.policy.jsonlogic import compile_rule
from cogcli.policy.limits import ARGUMENT
from cogcli.policy.pack_policy import applies
from cogcli.policy.verdict import is_above, mode_under
from cogcli.specs.problem_report import ProblemReport

_GAP: Final = "pack.gap"
_LANE: Final = "lane:"
_DECISIONS: Final = "decision_layer"

Capabilities = Mapping[str, Capability | None]


def check_gaps(pack: Pack, report: ProblemReport, capabilities: Capabilities) -> None:
    """Warn of templates and intents that cannot be fulfilled, and of rules over facts that no capability outputs or
    arguments that no call has. Also warn of effects without a rule or a limit.

    `capabilities` maps each name in the registry to its capability, and each skill to None.
    """
    used = _find_used_templates(pack)
    for number, template in enumerate(pack.decisions.task_templates.values()):
        about = report.part(f"template `{template.id}`", _DECISIONS, "task_templates", number)
        if template.id not in used:
            about.warn(_GAP, (), "no intent lists it", key=True)
        for text in _find_template_gaps(pack, template, capabilities):
            about.warn(_GAP, ("steps",), text)
    _check_intents(pack, report)
    for number, rule in enumerate(pack.policy.rules):
        about = report.part(f"rule `{rule.rule_id}`", "policy_layer", "rules", number)
        for fact in _find_unknown_facts(pack, rule):
            hint = "declare it in `facts` of a capability; what calls add up to is a limit"
            about.warn(_GAP, ("if",), f"no capability gives `{fact}`", hint=hint)
        for argument, near in _find_unknown_arguments(rule, capabilities):
            message = f"no call in its scope has the argument `{argument}`"
            about.warn(_GAP, ("if",), message, hint=near)
    _check_effects(pack, report, capabilities)


def _find_used_templates(pack: Pack) -> set[str]:
    """Return the ids of the templates that an intent lists or that another template runs."""
    used = {id for intent in pack.decisions.intents.values() for id in intent.templates}
    for template in pack.decisions.task_templates.values():
        used |= {use.removeprefix(_LANE) for use in _list_uses(template) if use.startswith(_LANE)}
    return used


def _list_uses(template: TaskTemplate) -> list[str]:
    return [str(step.get("uses") or "") for step in template.steps]


def _find_template_gaps(
    pack: Pack, template: TaskTemplate, capabilities: Capabilities
) -> Iterator[str]:
    """Yield the reasons why calls of a template would be denied for all possible facts."""
    ceiling = pack.meta.defaults.safety_mode
    intents = [
        intent for intent in pack.decisions.intents.values() if template.id in intent.templates
    ]
    for use in dict.fromkeys(_list_uses(template)):
        capability = capabilities.get(use)
        if capability is not None:
            mode = mode_under(pack.tooling.capabilities, capability)
            if is_above(mode, ceiling):
                yield f"`{use}` is {mode}, above the ceiling {ceiling}"
        for intent in intents:
            if use in capabilities and use not in intent.capabilities:
                yield f"`{use}` is not among the capabilities of intent `{intent.id}`"


def _check_intents(pack: Pack, report: ProblemReport) -> None:
    permitted = {id for each in pack.policy.permissions.values() for id in each.allow}
    for number, intent in enumerate(pack.decisions.intents.values()):
        about = report.part(f"intent `{intent.id}`", _DECISIONS, "intents", number)
        if not permitted.intersection(intent.capabilities):
            about.warn(_GAP, (), "nothing can fulfil it: no role may call what it lists", key=True)


def _find_given_facts(pack: Pack) -> set[str]:
    """Return the facts that capabilities return and those that decisions require as evidence."""
    given: set[str] = set()
    for tool in pack.tooling.capabilities.values():
        given.update(tool.facts)
    for decision in pack.decisions.decisions.values():
        given.update(decision.required_evidence)
    return given


def _find_unknown_facts(pack: Pack, rule: PolicyRule) -> Iterator[str]:
    """Yield the slot facts that a rule reads although neither capabilities nor required evidence provide them."""
    slots = {slot for intent in pack.decisions.intents.values() for slot in intent.slots}
    given = _find_given_facts(pack)
    for path in sorted(compile_rule(rule.condition).paths):
        slot, _, fact = path.partition(".")
        name = f"{slot}.{fact.partition('.')[0]}"
        if slot in slots and fact and fact != "id" and not {name, path} & given:
            yield path


def _find_unknown_arguments(
    rule: PolicyRule, capabilities: Capabilities
) -> Iterator[tuple[str, str]]:
    """Yield each argument that a rule reads and that no capability in its scope has, and a hint with similar names.

    Nothing is yielded if the scope has a skill, whose arguments are not known here.
    """
    scope = rule.scope.capabilities
    governed = [each for id, each in capabilities.items() if applies(scope, id)]
    if None in governed or not governed:
        return
    known = {name for each in filter(None, governed) for name in each.inputs}
    for argument in sorted(_find_read_arguments(rule) - known):
        yield argument, suggest_path(argument, known, prefix=ARGUMENT)


def _find_read_arguments(rule: PolicyRule) -> set[str]:
    """Return the names of the arguments that a rule reads."""
    paths = [path for path in compile_rule(rule.condition).paths if path.startswith(ARGUMENT)]
    return {path.removeprefix(ARGUMENT).partition(".")[0] for path in paths}


def _check_effects(pack: Pack, report: ProblemReport, capabilities: Capabilities) -> None:
    """Warn of capabilities with effects that a role may call, and that no enforced rule and no limit is about."""
    layer = pack.policy
    scopes = [rule.scope.capabilities for rule in layer.rules if rule.is_enforced]
    scopes += [limit.scope.capabilities for limit in layer.limits]
    for number, permission in enumerate(layer.permissions.values()):
        for place, id in enumerate(permission.allow):
            capability = capabilities.get(id)
            has_effect = capability is not None and capability.effect in ("effect", "unknown")
            if has_effect and not any(applies(scope, id) for scope in scopes):
                path = ("policy_layer", "permissions", number, "allow", place)
                report.warn(_GAP, path, f"`{id}` has an effect, and no rule or limit is about it")
