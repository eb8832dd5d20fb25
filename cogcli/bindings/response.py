"""From a service's answer to a capability's outputs, strictly (docs/reference/binding.md#response), and that of a
failed call to one line of text (docs/reference/command-line.md#errors)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from cogcli.core.canonical import compact
from cogcli.core.errors import ResponseMappingError
from cogcli.core.jsonvalue import deep_copy, kind_of
from cogcli.core.refs import MISSING
from cogcli.core.terminal_text import visible
from cogcli.mapping.namespaces import walk
from cogcli.protocols.secrets import Secrets
from cogcli.specs.fields import Fields, fit_values

_PATH: Final = re.compile(r"response(?:\.[^.]+)*")
_LONGEST: Final = 120
_MASKED_LENGTH: Final = 64 * 1024
"""Characters. Longer replies are not excerpted: masking a part could leave half a secret."""


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
        first = violations[0]
        code = "response.missing" if first.kind == "missing" else "response.type"
        error = ResponseMappingError(code, "; ".join(f"output {v.message}" for v in violations), left=True)
        error.place = ("response", first.place.partition("/")[0])
        raise error
    return kept


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


def reply_line(record: Mapping[str, Any] | None, secrets: Secrets) -> str:
    """Status, size and beginning of the reply in an attempt's record (`CallMeta.to_payload`), masked; empty without
    one."""
    reply = (record or {}).get("reply")
    if record is None or not isinstance(reply, Mapping):
        return ""
    status, size = record.get("status_code"), record.get("response_bytes")
    head = [f"HTTP {status}"] if status else []
    head += [f"{size:,} bytes"] if size is not None else []
    body, line = reply.get("body"), ""
    if body not in (None, "", {}):
        text = body if isinstance(body, str) else compact(secrets.mask_value(body)).decode()
        if len(text) <= _MASKED_LENGTH:
            line = visible(" ".join(secrets.mask_text(text).split()))
    line = line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
    return "  ".join(filter(None, [", ".join(head), line]))
