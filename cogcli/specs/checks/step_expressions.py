"""Expressions of a step: their faults, and the references in them (docs/reference/skill.md#expression-checks).

1. Loop names are known in `router.on`, but not in `condition`, `while.condition` and `foreach.items`.
2. A path that the expression itself tests, as in `vars.x is not null and vars.x > 5`, may be unwritten.
3. The condition of `while` is evaluated after an iteration: it may read places that the step itself writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from cogcli.base.errors import ExpressionError
from cogcli.base.expression_hints import foreign_value
from cogcli.base.expressions import Expression, ExpressionFault, read_expression
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import KeyPath, did_you_mean, suggestion_hint
from cogcli.base.refs import READABLE, Reference
from cogcli.declarations.field_spec import FieldSpec
from cogcli.declarations.skill_spec import StepConfig
from cogcli.specs.checks.references import (
    collect_readable_names,
    explain_near_miss,
    guess_reference,
)
from cogcli.specs.checks.step_facts import StateRead, StepFacts
from cogcli.specs.checks.step_inputs import record_reference
from cogcli.specs.plausible_syntax import find_plausible
from cogcli.specs.step_values import parts_of, reference_of

_CONDITION = ("config", "condition")
_NO_NAMES: frozenset[str] = frozenset()
_OR_NONE: Final = re.compile(r"[\w\]]\s+or\s+\[\s*\]\s*$")
_LIST = FieldSpec(type="array", required=True)
_LANGUAGE = "compare, combine with `and`, `or`, `not`, use `in`, `is null` and functions: cogcli explain expr.syntax"


class ExpressionSite(NamedTuple):
    """An expression of a step: its text, its path in the step, and the rules that apply to it."""

    text: str
    path: KeyPath
    loops: bool = False
    own: bool = False
    nulls: bool = False
    """Whether the expression may be a single path whose value is missing."""
    wanted: FieldSpec | None = None

    @property
    def name(self) -> str:
        """The path of the expression in the step's config, joined by dots."""
        return ".".join(self.path[1:])


def check_expressions(step: StepFacts) -> None:
    """Report the faults of a step's expressions.

    Record their references as reads of the step, and the value of a constant condition.
    """
    _check_listed_items(step)
    for site in _find_sites(step.step.config):
        try:
            expression = read_expression(site.text, step.loops if site.loops else _NO_NAMES)
        except ExpressionFault as fault:
            _report_fault(step, site, fault)
            continue
        _note_references(step, site, expression)
        if site.wanted is _LIST:
            step.items = _find_items_reference(expression)
        if site.path == _CONDITION:
            step.guards = expression.mentions
            step.holds = constant(expression)


def _check_listed_items(step: StepFacts) -> None:
    """Report `ref.text` for apparent references in a literal list of items, which is data."""
    foreach = step.step.config.foreach
    if foreach is None or foreach.expression is not None:
        return
    for part in parts_of(foreach.items, ("config", "foreach", "items")):
        found = find_plausible(part.text, _NO_NAMES)
        if part.kind != "plain" or reference_of(part.text, _NO_NAMES) or found:
            shown = part.text[:60] if part.kind == "plain" else part.path[-1]
            hint = 'write the list as an expression: items: "[inputs.a, inputs.b]"; there text stands in quotes'
            step.report.error(
                "ref.text", part.path, f"`{shown}`: a written list of items is not read", hint=hint
            )


def _find_sites(config: StepConfig) -> Iterator[ExpressionSite]:
    if (text := config.expression) is not None:
        yield ExpressionSite(text, _CONDITION)
    if config.while_ and (text := config.while_.expression) is not None:
        yield ExpressionSite(text, ("config", "while", "condition"), own=True)
    if config.foreach and (text := config.foreach.expression) is not None:
        yield ExpressionSite(text, ("config", "foreach", "items"), wanted=_LIST)
    if config.router:
        nulls = config.router.default is not None
        yield ExpressionSite(config.router.on, ("config", "router", "on"), loops=True, nulls=nulls)


def _note_references(step: StepFacts, site: ExpressionSite, expression: Expression) -> None:
    whole = expression.path
    tested = {mention.reference for mention in expression.mentions if mention.lenient}
    for mention in expression.mentions:
        read = StateRead(
            mention.reference,
            site.path,
            site.name,
            site.wanted if whole == mention.reference else None,
            text=site.text,
            offset=mention.offset,
            lenient=mention.reference in tested or (site.nulls and whole == mention.reference),
            own=site.own,
        )
        record_reference(step, read)


def _find_items_reference(expression: Expression) -> Reference | None:
    """Return the reference to the items, if the expression is a reference, optionally followed by `or []`.

    Return None for any other expression.
    """
    alone = expression.references[0] if len(expression.references) == 1 else None
    return expression.path or (alone if _OR_NONE.search(expression.text) else None)


def _report_fault(step: StepFacts, site: ExpressionSite, fault: ExpressionFault) -> None:
    """Report `expr.name` if the fault is a name that looks like a value, otherwise `expr.syntax`."""
    named = fault.name.partition(".")[0].partition("[")[0]
    code, message, hint = "expr.syntax", str(fault), fault.hint or _LANGUAGE
    if named.isidentifier() and named not in READABLE:
        code, message = "expr.name", f"`{fault.name}` is not a value"
        hint = _suggest_meaning(step, fault.name, named)
        if named in step.loops:
            message = f"loop name `{named}` is known only in `input` and `router` of its step"
            hint = "read what the loop goes over"
    within = (site.text, fault.column - 1)
    step.report.error(code, site.path, f"`{site.name}`: {message}", hint=hint, within=within)


def _suggest_meaning(step: StepFacts, name: str, head: str) -> str:
    """Return a hint about a bare name: a value with this name, a misspelled namespace, or a string
    without quotes."""
    near = explain_near_miss(name, _NO_NAMES)
    if near and near.code == "ref.namespace":
        return near.hint.partition("?")[0] + "?"
    if head == "steps" and (meant := guess_reference(name, step.skill, _NO_NAMES)) != "inputs.NAME":
        return suggestion_hint([meant])
    known, below = collect_readable_names(step.skill), name[len(head) :]
    names = [head] if head in known else did_you_mean(head, known)
    found = [known[name]] if name in known else [known[word] + below for word in names]
    text = foreign_value(name) or (
        f"text stands in quotes: '{name}'" if name.isidentifier() else ""
    )
    return f"{suggestion_hint(found)} {text}".strip()


class _UnknownValue(Exception):
    """Raised when an evaluation needs the value of a reference."""


def constant(expression: Expression) -> bool | None:
    """Return the value of a condition that does not depend on state, such as `1 > 2` or `false and inputs.x`.

    Return None for any other condition.
    """
    try:
        return bool(expression.evaluate(_refuse_lookup))
    except (ExpressionError, _UnknownValue):
        return None


def _refuse_lookup(reference: Reference) -> Any:
    raise _UnknownValue
