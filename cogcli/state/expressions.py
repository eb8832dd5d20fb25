"""The evaluation of expressions in a scope (docs/reference/execution.md#expressions)."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from cogcli.base.canonical import text_from
from cogcli.base.errors import ExpressionError
from cogcli.base.jsonvalue import copy_writable, kind_of
from cogcli.base.refs import MISSING, Reference
from cogcli.declarations.field_spec import Fields
from cogcli.state.inputs import Scope
from cogcli.state.namespaces import look_up_through_lists, members_of, suggest_existing_path, walk

if TYPE_CHECKING:  # imported on use: most runs have no expression, and start-up counts
    from cogcli.base.expressions import Expression


def compile_expression(value: object, loop_names: frozenset[str] = frozenset()) -> object:
    """Parse a string to an expression. Return any other value unchanged.

    The static checks have accepted every expression, so that parsing succeeds.
    """
    if not isinstance(value, str):
        return value
    from cogcli.base.expressions import read_expression

    return read_expression(value, loop_names)


def value_of(
    expression: object,
    scope: Scope,
    inputs: Fields,
    reads: dict[str, None],
    *,
    missing_is_null: bool = False,
) -> object:
    """Evaluate an expression, and return a copy of its value. A value that is not an expression is copied.

    The references in the expression are added to `reads`. Raise ExpressionError.
    """
    kind, evaluate = _load_language()
    if not isinstance(expression, kind):
        return copy_writable(expression)
    for reference in expression.references:
        reads[reference.text] = None

    missing: list[Reference] = []

    def resolve_and_note(reference: Reference) -> object:
        value = resolve(reference)
        if value is MISSING:
            missing.append(reference)
        return value

    def resolve(reference: Reference) -> object:
        if reference.namespace in scope.loop:
            return walk(scope.loop[reference.namespace], reference.segments)
        value = look_up_through_lists(scope.state, reference)
        if value is MISSING and reference.namespace == "inputs" and reference.segments[0] in inputs:
            # An optional input that was not given is null. A path into it is still missing.
            return None if len(reference.segments) == 1 else MISSING
        return value

    try:
        return copy_writable(
            evaluate(expression, resolve_and_note, missing_is_null=missing_is_null)
        )
    except ExpressionError as error:
        if error.code == "expr.missing" and missing:
            near = _suggest_near(missing[-1], scope)
            error.hint = f"{near} Else {error.hint}" if near else error.hint
        raise


@lru_cache(maxsize=1)
def _load_language() -> tuple[type[Expression], Callable[..., Any]]:
    """Return the type of expressions and `evaluate`. An import for each evaluation would take as long as evaluating."""
    from cogcli.base.expressions import Expression, evaluate

    return Expression, evaluate


def _suggest_near(reference: Reference, scope: Scope) -> str:
    """Return a hint with existing names that are similar to a reference without a value, or an empty string."""
    name = reference.namespace
    root = scope.loop[name] if name in scope.loop else members_of(scope.state, name)
    return suggest_existing_path((name, *reference.segments), {name: root})


def holds(expression: object, scope: Scope, inputs: Fields, reads: dict[str, None]) -> bool:
    """Return whether a condition is true. JSON values have the same truth as in Python."""
    return bool(value_of(expression, scope, inputs, reads))


def case_text(value: Any) -> str:
    """Return the value of a router as text, to be compared with the names of its cases.

    Raise ExpressionError `expr.type`.
    """
    kind = kind_of(value)
    if kind in ("list", "object"):
        raise ExpressionError(
            "expr.type", f"router: `on` gave {kind}, expected a text, number, boolean or null"
        )
    if kind == "number":
        return str(int(value) if float(value).is_integer() else value)
    return text_from(value)
