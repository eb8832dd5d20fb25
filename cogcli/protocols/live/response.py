"""Strict conversion of a service's answer to a capability's outputs
(docs/reference/binding.md#response), and of a failed answer to one line of text
(docs/reference/command-line.md#errors)."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from itertools import islice
from typing import Final

from cogcli.base.canonical import compact
from cogcli.base.errors import ResponseMappingError
from cogcli.base.jsonvalue import NOTHING, copy_writable, deep_copy, kind_of
from cogcli.base.lazy_pattern import lazy_pattern
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import did_you_mean, suggestion_hint
from cogcli.base.refs import MISSING
from cogcli.base.terminal_text import visible
from cogcli.declarations.call_records import AttemptMade, RecordedMessage
from cogcli.declarations.field_spec import Fields, FieldSpec
from cogcli.declarations.reading import read_record
from cogcli.declarations.value_types import Json
from cogcli.protocols.secrets import Secrets
from cogcli.specs.fields import are_plain, find_plain_types, fit_values
from cogcli.specs.response_headers import header_of
from cogcli.state.namespaces import walk

_PATH: Final = lazy_pattern(r"response(?:\.[^.]+)*")
_VARIABLE: Final = lazy_pattern(r"\$\{service\.([A-Za-z_][A-Za-z0-9_]*)\}")
_SEGMENT: Final = lazy_pattern(r"[^.\s]+")
_LONGEST: Final = 120
_MASKED_LENGTH: Final = 64 * 1024
"""The most characters of a reply that is quoted. In a longer one, masking a part could leave half a
secret."""


class _OutputSource(NamedTuple):
    """The place of one output in a reply: a header, a path in the body, or a literal."""

    name: str
    written: object
    field: FieldSpec
    header: str
    """The name in lower case; empty for no header."""
    path: tuple[str, ...] | None
    """None for no path."""
    literal: object

    def value_in(self, body: object, headers: Mapping[str, str]) -> object:
        """Return the value, or MISSING."""
        if self.path is not None:
            value = walk(body, self.path)
            return value if value is MISSING else copy_writable(value)
        if self.header:
            return _header_value(headers.get(self.header), self.field)
        return deep_copy(self.literal)

    def missing_error(self, body: object) -> ResponseMappingError:
        """Return the error of an output that needs a value, and has none in this reply."""
        if self.header:
            return _missing_header_error(self.name, self.header)
        return _missing_output_error(self.name, str(self.written), body)


class ResponseMapping:
    """The `response` of a binding, compiled once for all its replies."""

    def __init__(
        self, response: Json, outputs: Fields, variables: Mapping[str, str] = NOTHING
    ) -> None:
        """Literals may name `variables`, those of the service."""
        self._outputs = outputs
        self._sources = [
            _source_of(name, written, outputs[name], variables)
            for name, written in response.items()
            if name in outputs  # any other is a warning of the checks
        ]
        self._plain_types = find_plain_types(outputs)

    def map_body(self, body: object, headers: Mapping[str, str] = NOTHING) -> Json:
        """Return the outputs in a body, checked and with defaults. They share elements of lists with `body`.

        `headers` are those of the reply that are mapped, by their names in lower case. Raise
        ResponseMappingError `response.missing` if the path of a required output finds no value,
        `response.type` if a value breaks the contract."""
        values = {}
        for source in self._sources:
            value = source.value_in(body, headers)
            if value is not MISSING:
                values[source.name] = value
            elif source.field.needs_value:
                raise source.missing_error(body)
        return (
            values if are_plain(values, self._plain_types) else _fit_outputs(self._outputs, values)
        )


def _source_of(
    name: str, written: object, field: FieldSpec, variables: Mapping[str, str]
) -> _OutputSource:
    """Return the place that a value of `response` names."""
    header, path, literal = header_of(written), None, written
    if isinstance(written, str) and not header:
        path = tuple(written.split(".")[1:]) if _PATH.fullmatch(written) else None
        literal = _VARIABLE.sub(lambda match: variables.get(match[1], match[0]), written)
    return _OutputSource(name, written, field, header, path, literal)


def _fit_outputs(outputs: Fields, values: Json) -> Json:
    """Return the values with defaults. Raise ResponseMappingError if they break the contract."""
    kept, violations = fit_values(outputs, values)
    if violations:
        first = violations[0]
        code = "response.missing" if first.kind == "missing" else "response.type"
        error = ResponseMappingError(
            code, "; ".join(f"output {v.message}" for v in violations), left=True
        )
        error.place = ("response", first.place.partition("/")[0])
        raise error
    return kept


def _header_value(text: str | None, field: FieldSpec) -> object:
    """Return the value of a header for an output: a number or a boolean if the output is one and the
    text is, else the text. MISSING if the reply lacks the header."""
    if text is None:
        return MISSING
    plain = text.strip()
    if field.type in ("integer", "number") and _NUMBER.fullmatch(plain):
        return float(plain) if "." in plain else int(plain)
    if field.type == "boolean" and plain in ("true", "false"):
        return plain == "true"
    return text


_NUMBER: Final = lazy_pattern(r"-?[0-9]{1,15}(?:\.[0-9]{1,15})?")


def _missing_header_error(name: str, header: str) -> ResponseMappingError:
    """Return the error of an output whose header the reply lacks."""
    text = f"the service answered, but without header `{header}`"
    error = ResponseMappingError("response.missing", text, left=True)
    error.place, error.lacking = ("response", name), header
    return error


def _missing_output_error(name: str, source: str, body: object) -> ResponseMappingError:
    """Return the error of an output without a value: the part of its path that exists, and the
    value there."""
    *_, last = source.split(".")
    reached, value = "response", body
    for segment in source.split(".")[1:]:
        below = walk(value, (segment,))
        if below is MISSING:
            last = segment
            break
        reached, value = f"{reached}.{segment}", below
    keys: tuple[str, ...] = ()
    present = kind_of(value)
    if isinstance(value, dict):
        keys = tuple(sorted(value)[:10])
        present = ", ".join(keys)
    meant = _similar_path(body, reached, value, source)
    error = ResponseMappingError(
        "response.missing",
        f"the service answered, but without `{source}`: `{reached}` holds {present or 'nothing'}",
        hint=suggestion_hint([meant] if meant else []),
        left=True,
    )
    error.place = ("response", name)
    error.expected, error.lacking, error.present = source, last, keys
    return error


def reply_line(record: Json | None, secrets: Secrets) -> str:
    """Return status, size and beginning of the reply in an attempt's record, masked; empty without
    a reply."""
    attempt = read_record(AttemptMade, record)
    if attempt.reply is None:
        return ""
    status, size = attempt.status_code, attempt.response_bytes
    head = [f"HTTP {status}"] if status else []
    head += [f"{size:,} bytes"] if size is not None else []
    body, line = read_record(RecordedMessage, attempt.reply).body, ""
    if body not in (None, "", {}):
        text = body if isinstance(body, str) else compact(secrets.mask_value(body)).decode()
        if len(text) <= _MASKED_LENGTH:
            line = visible(" ".join(secrets.mask_text(text).split()))
    line = line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
    return "  ".join(filter(None, [", ".join(head), line]))


_LOOKED_AT: Final = 200
"""The most members of a reply among which a name is searched."""


def _similar_path(body: object, reached: str, value: object, source: str) -> str:
    """Return a similar path with a value, for `source`; empty for none. `source` ends at `reached`, where the body has
    `value`.

    It tries another spelling of one segment, then the rest of the path below another member, then the last name
    elsewhere.
    """
    failed, *rest = source.removeprefix(f"{reached}.").split(".")
    if not isinstance(value, dict):
        return ""
    near = did_you_mean(failed, value)
    for key in (*near, *islice(value, _LOOKED_AT if rest else 0)):
        if _SEGMENT.fullmatch(key) and walk(value[key], tuple(rest)) is not MISSING:
            return ".".join((reached, key, *rest))
    elsewhere = _find_name(body, (rest or [failed])[-1])
    return elsewhere or (f"{reached}.{near[0]}" if near else "")


def _find_name(body: object, name: str) -> str:
    """Return the path of the first member with this name, the nearest to the root; empty without
    one."""
    waiting = deque([("response", body)])
    for _ in range(_LOOKED_AT):
        if not waiting:
            break
        path, value = waiting.popleft()
        members = islice(value.items(), _LOOKED_AT) if isinstance(value, dict) else ()
        for key, member in members:
            if key == name:
                return f"{path}.{key}"
            if isinstance(member, dict) and _SEGMENT.fullmatch(key):
                waiting.append((f"{path}.{key}", member))
    return ""
