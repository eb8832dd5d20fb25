"""Whether declared types fit each other, and literals their field (docs/reference/skill.md#flow-checks)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from cogcli.core.jsonvalue import preview
from cogcli.core.refs import Reference
from cogcli.specs.fields import FieldSpec, fit_values
from cogcli.specs.template import LITERAL, is_literal

FITS: Final = "fits"
NARROWS: Final = "narrows"
MISFIT: Final = ""

_FRAME: Final = {
    "goal": "string",
    "priority": "string",
    "context": "object",
    "constraints": "object",
    "success_criteria": "object",
    "assumptions": "array",
}


def fits(source: str, wanted: str) -> str:
    """FITS, NARROWS (a number where an integer is wanted) or MISFIT."""
    if source == wanted or "any" in (source, wanted) or (source, wanted) == ("integer", "number"):
        return FITS
    return NARROWS if (source, wanted) == ("number", "integer") else MISFIT


def best_fit(sources: Iterable[str], wanted: str) -> str:
    """The fit of the best of several possible types."""
    found = {fits(source, wanted) for source in sources}
    return next((verdict for verdict in (FITS, NARROWS) if verdict in found), MISFIT)


def slot_type(reference: Reference) -> str:
    """The type of a whole slot of frame, working or output; `any` for paths below one."""
    if len(reference.segments) != 1:
        return "any"
    name = reference.segments[0]
    if reference.namespace == "frame":
        return _FRAME.get(name, "any")
    if reference.namespace == "working":
        return "object" if name == "artifacts" else "array"
    if reference.namespace == "output" and name in ("summary", "result_type", "status_reason"):
        return "string"
    return "any"


def literal_misfit(value: Any, wanted: FieldSpec, *, whole: bool) -> str:
    """Why a written value cannot fit a field, empty if it may. Unless `whole`, it holds references, so that only its
    kind
    is known."""
    if value is None:
        return ""
    if is_literal(value):
        value, whole = value[LITERAL], True
        if value is None:
            return ""
    if not whole:
        kind = "object" if isinstance(value, dict) else "array" if isinstance(value, list) else "any"
        return "" if fits(kind, wanted.type) else f"expected {wanted.type}, found {preview(value)}"
    if _holds_literal(value):
        return ""
    _, violations = fit_values({"": wanted._replace(schema=None)}, {"": value})
    return violations[0].message.partition("`: ")[2] if violations else ""


def _holds_literal(value: Any) -> bool:
    if isinstance(value, dict):
        return is_literal(value) or any(map(_holds_literal, value.values()))
    return isinstance(value, list) and any(map(_holds_literal, value))
