"""Expressions of a step: the faults of each by itself, and the references in it
(docs/reference/skill.md#expression-checks).

1. Loop names are known in `router.on`, not in `condition`, `while.condition` and `foreach.items`.
2. A path that the expression itself tests, `vars.x is not null and vars.x > 5`, needs no certain writer.
3. The condition of `while` is evaluated after an iteration: it may read what the step itself writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from cogcli.core.expressions import Expression, ExpressionFault, read_expression
from cogcli.core.problems import KeyPath, did_you_mean
from cogcli.core.refs import READABLE
from cogcli.specs.checks import references
from cogcli.specs.checks.step_facts import Read, Subject
from cogcli.specs.checks.step_inputs import note_reference
from cogcli.specs.fields import FieldSpec
from cogcli.specs.skill import Step, StepConfig

_NO_NAMES: frozenset[str] = frozenset()
_LIST = FieldSpec("array", required=True)
_LANGUAGE = "compare, combine with `and`, `or`, `not`, use `in` and `is null`; nothing is called"


class ExpressionSite(NamedTuple):
    """One expression of a step: its text, its path below the step, and the rules that differ for it."""

    text: str
    below: KeyPath
    loops: bool = False
    own: bool = False
    nulls: bool = False
    """Whether the expression as a whole may be a path without a value."""
    wanted: FieldSpec | None = None


def check_expressions(at: Subject) -> None:
    """Report the faults of the step's expressions, and note their references as reads."""
    for place in _sites(at.step.config):
        path = (*at.path, *place.below)
        try:
            expression = read_expression(place.text, at.loops if place.loops else _NO_NAMES)
        except ExpressionFault as fault:
            _report_fault(at, place, path, fault)
            continue
        _note_references(at, place, path, expression)


def _sites(config: StepConfig) -> Iterator[ExpressionSite]:
    if isinstance(config.condition, str):
        yield ExpressionSite(config.condition, ("config", "condition"))
    if config.while_ and isinstance(config.while_.condition, str):
        yield ExpressionSite(config.while_.condition, ("config", "while", "condition"), own=True)
    if config.foreach and isinstance(config.foreach.items, str):
        yield ExpressionSite(config.foreach.items, ("config", "foreach", "items"), wanted=_LIST)
    if config.router:
        nulls = config.router.default is not None
        yield ExpressionSite(config.router.on, ("config", "router", "on"), loops=True, nulls=nulls)


def _note_references(at: Subject, place: ExpressionSite, path: KeyPath, expression: Expression) -> None:
    whole = expression.path
    asked = {mention.reference for mention in expression.mentions if mention.lenient}
    for mention in expression.mentions:
        read = Read(
            mention.reference,
            path,
            ".".join(map(str, place.below[1:])),
            place.wanted if whole == mention.reference else None,
            text=place.text,
            offset=mention.offset,
            lenient=mention.reference in asked or (place.nulls and whole == mention.reference),
            own=place.own,
        )
        note_reference(at, read)
    if place.below == ("config", "condition"):
        at.facts.guards = expression.mentions


def _report_fault(at: Subject, place: ExpressionSite, path: KeyPath, fault: ExpressionFault) -> None:
    """`expr.name` for what looks like a name of a value, else `expr.syntax`."""
    named = fault.name.partition(".")[0].partition("[")[0]
    code = "expr.name" if named.isidentifier() and named not in READABLE else "expr.syntax"
    message, hint = str(fault), _LANGUAGE
    if code == "expr.name":
        message, hint = f"`{fault.name}` is no value", _suggest_meaning(at, fault.name, named)
        if named in at.loops:
            message = f"loop name `{named}` is known only in `input` and `router` of its step"
            hint = "read what the loop goes over"
    message = f"{at.subject}: `{'.'.join(map(str, place.below[1:]))}`: {message}"
    within = (place.text, fault.column - 1)
    at.report.error(code, path, message, hint=hint, within=within)


def _suggest_meaning(at: Subject, name: str, head: str) -> str:
    """A hint about a bare name: a value of the same name, a misspelt namespace, or text without quotes."""
    near = references.explain_near_miss(name, _NO_NAMES)
    if near and near.code == "ref.namespace":
        return near.hint.partition("?")[0] + "?"
    known = {text.partition(".")[2]: text for text in _known_names(at)}
    found = [name] if name in known else [head] if head in known else did_you_mean(name, known)
    text = f"text stands in quotes: '{name}'" if name.isidentifier() else ""
    hint = f"did you mean {' or '.join(f'`{known[word]}`' for word in found)}?" if found else ""
    return f"{hint} {text}".strip()


def _known_names(at: Subject) -> Iterator[str]:
    """The names of all values that the skill can read, those nearest to the step last."""
    steps: tuple[Step, ...] = at.skill.steps
    for step in steps:
        for target in (step.output or {}).values():
            if target.partition(".")[0] in ("vars", "outputs", "working"):
                yield target
    for name in at.skill.inputs:
        yield f"inputs.{name}"
