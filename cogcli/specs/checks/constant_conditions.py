"""Conditions whose value does not depend on state: `false`, `1 > 2`, `false and inputs.x`."""

from __future__ import annotations

from typing import Any

from cogcli.core.refs import Reference


class _Unknown(Exception):
    """Evaluation needs the value of a reference."""


def constant(condition: Any) -> bool | None:
    """The value of a condition that is constant, else None."""
    if not isinstance(condition, str):
        return None if condition is None else bool(condition)
    from cogcli.core.errors import ExpressionError
    from cogcli.core.expressions import ExpressionFault, read_expression

    try:
        return bool(read_expression(condition, frozenset()).evaluate(_unknown))
    except (ExpressionFault, ExpressionError, _Unknown):
        return None


def _unknown(reference: Reference) -> Any:
    raise _Unknown
