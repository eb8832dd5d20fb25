"""From a service's answer to a capability's outputs, strictly (docs/reference/binding.md#response)."""

from __future__ import annotations

import re
from typing import Any, Final

from cogcli.core.errors import ResponseMappingError
from cogcli.core.jsonvalue import deep_copy, kind_of
from cogcli.core.refs import MISSING
from cogcli.mapping.namespaces import walk
from cogcli.specs.fields import Fields, Violation, fit_values

_PATH: Final = re.compile(r"response(?:\.[^.]+)*")


def map_response(response: dict[str, Any], body: Any, outputs: Fields) -> dict[str, Any]:
    """The outputs that a body gives, checked and with defaults; shares nothing with `body`.

    Raises ResponseMappingError `response.missing` where a required output's path leads nowhere, `response.type` where
    a value breaks the contract.
    """
    values = {}
    for name, source in response.items():
        value = _value(source, body)
        if value is MISSING:
            field = outputs.get(name)
            if field is not None and field.required and field.default is None:
                raise _missing(name, source, body)
        else:
            values[name] = value
    kept, violations = fit_values(outputs, values)
    if violations:
        raise _refused(violations)
    return kept


def _refused(violations: list[Violation]) -> ResponseMappingError:
    """The error of outputs that break the contract, at the first of them."""
    first = violations[0]
    code = "response.missing" if first.kind == "missing" else "response.type"
    error = ResponseMappingError(code, "; ".join(f"output {v.message}" for v in violations), left=True)
    error.place = ("response", first.place.partition("/")[0])
    return error


def _value(source: Any, body: Any) -> Any:
    if not isinstance(source, str) or not _PATH.fullmatch(source):
        return deep_copy(source)
    value = walk(body, tuple(source.split(".")[1:]))
    return value if value is MISSING else deep_copy(value)


def _missing(name: str, source: str, body: Any) -> ResponseMappingError:
    """The error of an output whose path leads nowhere: how far it led, and what stands there instead."""
    *_, last = source.split(".")
    reached, value = "response", body
    for segment in source.split(".")[1:]:
        below = walk(value, (segment,))
        if below is MISSING:
            last = segment
            break
        reached, value = f"{reached}.{segment}", below
    keys = tuple(sorted(value)[:10]) if isinstance(value, dict) else ()
    present = ", ".join(keys) if isinstance(value, dict) else kind_of(value)
    from difflib import get_close_matches

    near = get_close_matches(last, list(value), n=1) if isinstance(value, dict) else []
    error = ResponseMappingError(
        "response.missing",
        f"the service answered, but without `{source}`: `{reached}` holds {present or 'nothing'}",
        hint=f"did you mean `{reached}.{near[0]}`?" if near else "",
        left=True,
    )
    error.place = ("response", name)
    error.expected, error.lacking, error.present = source, last, keys
    return error
