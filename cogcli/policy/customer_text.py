"""The texts of a pack for its customers, with the values that they may show (docs/reference/pack.md#say). Pure.

A text is data: one paragraph without control characters. No model reads it. A value that a customer may not see, or
that is not known, is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Final
from unicodedata import category

from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import list_known_words, suggestion
from cogcli.base.redact import BY_NAME, MASK
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.pack_spec import CumulativeLimit, Pack, PolicyLayer, PolicyRule
from cogcli.declarations.reading import read_record
from cogcli.declarations.value_types import Json
from cogcli.policy.limits import READS, CounterRead, decimal_of, difference_of
from cogcli.policy.pack_policy import applies, breaks_limits, paths_overlap
from cogcli.policy.verdict import MASK as MASKS
from cogcli.specs.problem_report import ProblemReport
from cogcli.specs.template import Piece, TemplateFault, split_placeholders
from cogcli.specs.unchecked import object_at, value_at

SAFE_CLASSES: Final = ("public", "internal")
"""The classifications of facts that a customer may see."""
LIMIT_VALUES: Final = ("limit.max", "limit.left")
PER_USER: Final = "user"
"""The owner of the counters that `limit.left` may show: others use any other counter, too."""
_LONGEST_VALUE: Final = 200
_GUARDRAILS: Final = ("policy_layer", "guardrails")
_NAME: Final = re.compile(r"[A-Za-z_][\w-]*(?:\.[A-Za-z_][\w-]*)+")
_JOINERS: Final = "\u200c\u200d"
"""The invisible characters that words of some languages need."""


class CustomerText(NamedTuple):
    """A text of a pack, and its limit. The limit is None for the text of a rule or a guardrail."""

    text: str
    limit: CumulativeLimit | None = None


def find_text(layer: PolicyLayer, reason: str) -> CustomerText | None:
    """Return the text for the reason of a decision: the id of a rule, `limit_exceeded:ID`, or the name of a guardrail.
    None if the pack has no text for the reason.
    """
    kind, _, id = reason.partition(":")
    guardrails = {
        "must_refuse": layer.guardrails.must_refuse,
        "must_escalate": layer.guardrails.must_escalate,
    }
    if kind == "limit_exceeded":
        found = [CustomerText(each.say, each) for each in layer.limits if each.id == id]
    elif kind in guardrails:
        found = [CustomerText(each.say) for each in guardrails[kind] if each.id == id]
    else:
        found = [CustomerText(rule.say) for rule in layer.rules if rule.rule_id == reason]
    return next((each for each in found if each.text), None)


def _parse_text(text: str) -> list[Piece[str]]:
    """Return the literal strings of a text and the names of values, such as `order.age_days`.

    Raise TemplateFault for a placeholder that is not the name of a value.
    """
    return list(split_placeholders(text, _parse_name))


def _parse_name(inner: str, offset: int) -> str:
    if _NAME.fullmatch(inner) is None:
        raise TemplateFault(f"`${{{inner}}}` is not the name of a value", offset)
    return inner


def render_text(text: str, values: Mapping[str, object]) -> str:
    """Return a text with these values by name, as one paragraph. Empty if a placeholder cannot be read."""
    try:
        parts = _parse_text(text)
    except TemplateFault:
        return ""
    filled = [literal if name is None else _render_value(name, values) for literal, name in parts]
    return " ".join(_to_printable("".join(filled)).split())


def render_rule_text(rule: PolicyRule, data: Json, names: Iterable[str]) -> str:
    """Return the text for the customer if this rule matches the data and decides. Empty if it allows the call.

    `names` are those of the values that a customer may see.
    """
    broken = breaks_limits(rule.then.limits, object_at(data, "args"))
    if rule.then.verdict == "allow" and not broken:
        return ""
    return render_text(rule.say, {name: value_at(data, *name.split(".")) for name in names})


def _render_value(name: str, values: Mapping[str, object]) -> str:
    """Return a text or a number as text for a customer. Empty for any other value, and for a secret."""
    value = values.get(name)
    member = name.rpartition(".")[2]
    if MASK in str(value) or BY_NAME.mask({member: value}) != {member: value}:
        return ""
    if isinstance(value, str):
        text = " ".join(_to_printable(value).split())
        return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 1]}…"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return show_number(Decimal(repr(value)))
    return ""


def show_number(number: Decimal) -> str:
    """Return a number in digits, without zeros after its last decimal place. Empty for an infinite one."""
    if not number.is_finite():
        return ""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _to_printable(text: str) -> str:
    """Return a text without invisible characters. Line ends and tabs become spaces."""
    if text.isascii() and text.isprintable():
        return text
    spaced = (" " if character.isspace() else character for character in text)
    return "".join(c for c in spaced if c in _JOINERS or not category(c).startswith("C"))


# -- the values that a customer may see ----------------------------------------------------------------------------


def list_limit_values(limit: CumulativeLimit, reads: Json) -> Json:
    """Return the values of a limit that a customer may see, by name. `reads` are those of the decision."""
    values: Json = {"limit.max": limit.max}
    if limit.per != PER_USER:
        return values
    read = read_record(CounterRead, value_at(reads, f"{READS}{limit.id}"))
    try:
        left = difference_of(Decimal(str(limit.max)), decimal_of(read.used))
    except ValueError:  # absent or masked
        return values
    return {**values, "limit.left": show_number(max(left, Decimal(0)))}


def list_rule_values(pack: Pack, capabilities: Mapping[str, Capability]) -> frozenset[str]:
    """Return the names of the values that the text of a rule may show: ids of entities, and safe facts."""
    slots = {slot for intent in pack.decisions.intents.values() for slot in intent.slots}
    return frozenset(f"{slot}.id" for slot in slots) | list_safe_facts(pack, capabilities)


def list_safe_facts(pack: Pack, capabilities: Mapping[str, Capability]) -> frozenset[str]:
    """Return the facts that a customer may see, as `slot.fact`."""
    named = {name for tool in pack.tooling.capabilities.values() for name in tool.facts}
    return frozenset(name for name in named if not find_fact_fault(pack, name, capabilities))


def find_fact_fault(pack: Pack, name: str, capabilities: Mapping[str, Capability]) -> str:
    """Return why a customer may not see a fact. Empty if every source classifies the fact as public or internal. A fact
    that no call outputs has no classification here.
    """
    sources = {
        id: tool.facts[name] for id, tool in pack.tooling.capabilities.items() if name in tool.facts
    }
    if not sources:
        return "no call gives it"
    member = name.rpartition(".")[2]
    if BY_NAME.mask({member: "a value"}) != {member: "a value"}:
        return "its name is that of a secret"
    faults = (_find_source_fault(pack, id, source, capabilities) for id, source in sources.items())
    return next(filter(None, faults), "")


def _find_source_fault(
    pack: Pack, id: str, source: str, capabilities: Mapping[str, Capability]
) -> str:
    """Return why a customer may not see the value at a path of a capability's output; empty if the value is visible."""
    capability = capabilities.get(id)
    if capability is None:
        return f"the classification of `{id}` is not known"
    if capability.data_class not in SAFE_CLASSES:
        return f"what `{id}` gives is {capability.data_class}"
    path = source.removeprefix("output.")
    if any(paths_overlap(path, masked) for masked in _list_masked_paths(pack, id)):
        return f"a rule masks it in what `{id}` gives"
    names = path.split(".")
    secret = dict.fromkeys(names, "a value")
    return "its path names a secret" if BY_NAME.mask(secret) != secret else ""


def _list_masked_paths(pack: Pack, id: str) -> Iterator[str]:
    """Yield the paths of the output of a capability that rules of the pack mask."""
    for rule in pack.policy.rules:
        if applies(rule.scope.capabilities, id):
            for each in rule.then.obligations:
                if each.startswith(MASKS):
                    yield each.removeprefix(MASKS)


# -- the check of a pack -------------------------------------------------------------------------------------------


def check_texts(pack: Pack, report: ProblemReport, capabilities: Mapping[str, Capability]) -> None:
    """Report placeholders that are not the name of a value, and values that a customer may not see.

    `capabilities` are those of the registry by name, the skills that are tools of the pack among them.
    """
    layer, guardrails = pack.policy, pack.policy.guardrails
    for kind, listed in (
        ("must_refuse", guardrails.must_refuse),
        ("must_escalate", guardrails.must_escalate),
    ):
        for number, guardrail in enumerate(listed):
            about = report.part(f"guardrail `{guardrail.id}`", *_GUARDRAILS, kind, number)
            _check_text(pack, about, guardrail.say, capabilities)
    for number, rule in enumerate(layer.rules):
        about = report.part(f"rule `{rule.rule_id}`", "policy_layer", "rules", number)
        _check_text(pack, about, rule.say, capabilities)
    for number, limit in enumerate(layer.limits):
        about = report.part(f"limit `{limit.id}`", "policy_layer", "limits", number)
        known = LIMIT_VALUES if limit.per == PER_USER else LIMIT_VALUES[:1]
        _check_text(pack, about, limit.say, capabilities, known)


def _check_text(
    pack: Pack,
    report: ProblemReport,
    text: str,
    capabilities: Mapping[str, Capability],
    allowed_names: Sequence[str] = (),
) -> None:
    try:
        names = [name for _, name in _parse_text(text) if name is not None]
    except TemplateFault as fault:
        report.error("request.template", ("say",), str(fault))
        return
    allowed = {*allowed_names, *list_rule_values(pack, capabilities)}
    for name in names:
        if name not in allowed:
            reason = find_fact_fault(pack, name, capabilities)
            message = f"shows `{name}`, which a customer may not see: {reason}"
            hint = suggestion(name, allowed) or list_known_words(sorted(allowed))
            report.error("pack.reference", ("say",), message, hint=hint)
