"""The `error` object of a failed run: place, expected and actual values, and causes
(docs/reference/command-line.md#errors).

Line numbers are looked up only here, so a successful run does not pay for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cogcli.base.errors import (
    CogcliError,
    RejectedError,
    RequestMappingError,
    ResponseMappingError,
    RuntimeErrorBase,
)
from cogcli.base.resolved_secrets import resolved_secrets
from cogcli.declarations.call_records import AttemptMade
from cogcli.declarations.reading import read_record
from cogcli.declarations.value_types import Json
from cogcli.specs.catalog import Catalog

_OF_A_BINDING: Final = (RequestMappingError, ResponseMappingError, RejectedError)
"""Errors that a change of the binding may fix. They get a place in its file, unless a function refused its input."""
_DEEPEST: Final = 20
_LONGEST: Final = 400


def error_payload(error: CogcliError, catalog: Catalog | None = None) -> Json:
    """Return the `error` object. `causes` has one line per causing exception, from the nearest to the root, then
    one per attempt.
    """
    body: Json = {"code": error.code, "message": error.message, "hint": error.hint}
    if not isinstance(error, RuntimeErrorBase):
        return body
    body |= {
        "step": error.step_id,
        "capability": error.capability_id,
        "binding": error.binding_id,
        "service": error.service_id,
    }
    inner = _original_error(error)
    if inner.reason:
        body["reason"] = inner.reason
    if inner.say:
        body["say"] = inner.say
    if catalog is not None and isinstance(inner, _OF_A_BINDING) and not inner.reason:
        body |= _find_place(inner, catalog)
    if inner.expected:
        body |= {"expected": inner.expected, "lacking": inner.lacking, "found": list(inner.present)}
    if inner.reply:
        body["reply"] = inner.reply
    return body | {"retryable": error.retryable, "causes": list(_render_causes(error))}


def _original_error(error: RuntimeErrorBase) -> RuntimeErrorBase:
    """Return the original error of a step if the given error was raised from it with the same code, otherwise the
    given error.
    """
    cause = error.__cause__
    return cause if isinstance(cause, RuntimeErrorBase) and cause.code == error.code else error


def _find_place(error: RuntimeErrorBase, catalog: Catalog) -> Json:
    """Return `file`, `line` and `column` in the binding, by default of its `operation`. Empty if the file
    is unknown.
    """
    binding = catalog.bindings.get(error.binding_id or "")
    places = catalog.places.of(binding.file) if binding else None
    if binding is None or places is None:
        return {}
    line, column = places.position(error.place or ("operation",), key=False)
    return {"file": binding.file, "line": line, "column": column}


def _render_causes(error: RuntimeErrorBase) -> Iterator[str]:
    cause = _original_error(error).__cause__
    for _ in range(_DEEPEST):
        if cause is None:
            break
        yield _render_cause(cause)
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    attempts = error.attempts if len(error.attempts) > 1 else []
    for number, made in enumerate(attempts, 1):
        attempt = read_record(AttemptMade, made)
        words = f"{attempt.binding_id} → {attempt.service_id}: {attempt.code or attempt.status}"
        yield f"attempt {number}: {words}: {attempt.message or ''}".rstrip(": ")


def _render_cause(cause: BaseException) -> str:
    """Return a cause as one masked line, truncated to _LONGEST. If the exception's `str` fails, return the name
    of its class.
    """
    try:
        text = cause.message if isinstance(cause, CogcliError) else str(cause)
    except Exception:
        text = ""
    name = cause.code if isinstance(cause, CogcliError) else type(cause).__name__
    return f"{name}: {' '.join(resolved_secrets().mask_text(text).split())[:_LONGEST]}".rstrip(": ")
