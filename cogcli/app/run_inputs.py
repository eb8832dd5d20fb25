"""Checks of the inputs and the frame of a run, before anything starts (docs/reference/execution.md#start)."""

from __future__ import annotations

from typing import Any

from cogcli.core.problems import Problem, suggestion
from cogcli.core.refs import FRAME_FIELDS
from cogcli.specs.fields import Fields, FieldSpec, fit_values

_TEXT = FieldSpec("string")
_OBJECT = FieldSpec("object")
FRAME: Fields = {
    "goal": _TEXT,
    "context": _OBJECT,
    "constraints": _OBJECT,
    "success_criteria": _OBJECT,
    "assumptions": FieldSpec("array", items=_TEXT),
    "priority": _TEXT,
}


def check_inputs(fields: Fields, given: dict[str, Any]) -> tuple[dict[str, Any], list[Problem]]:
    """The inputs with defaults, and all problems: unknown names first, then missing and wrong values."""
    problems = [
        _problem("input.unknown", f"inputs/{name}", f"no input `{name}`", _hint(name, fields))
        for name in given
        if name not in fields
    ]
    kept, violations = fit_values(fields, given)
    problems += [_problem(f"input.{v.kind}", f"inputs/{v.place}", f"input {v.message}") for v in violations]
    return kept, problems


def check_frame(given: dict[str, Any]) -> tuple[dict[str, Any], list[Problem]]:
    """The given fields of the frame, and all problems."""
    problems = [
        _problem("frame.field", f"frame/{name}", f"the frame has no `{name}`", suggestion(name, FRAME_FIELDS))
        for name in given
        if name not in FRAME
    ]
    kept, violations = fit_values(FRAME, given)
    problems += [_problem("frame.field", f"frame/{v.place}", f"frame {v.message}") for v in violations]
    return kept, problems


def _hint(name: str, fields: Fields) -> str:
    return (
        suggestion(name, fields) or f"this skill takes {', '.join(f'`{f}`' for f in fields) or 'no inputs'}"
    )


def _problem(code: str, path: str, message: str, hint: str = "") -> Problem:
    return Problem(code, "E", "", 0, 0, f"/{path}", message, hint)
