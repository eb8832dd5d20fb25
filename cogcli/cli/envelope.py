"""The JSON envelope of `--json`: one object on success and on each failure
(docs/reference/command-line.md#envelope)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from cogcli.base.errors import CogcliError
from cogcli.base.jsonvalue import object_of
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.terminal_text import visible_json
from cogcli.declarations.value_types import Json

SCHEMA = "cogcli.result/1"
_STATUS = {0: "ok", 4: "vetoed", 5: "pending", 130: "aborted", 143: "aborted"}


class StreamedList(NamedTuple):
    """A list in the envelope that is written an item at a time, because it need not fit memory."""

    path: tuple[str, ...]
    """The members that lead to the list. The body has an empty list there."""
    items: Callable[[], Iterable[object]]


def envelope(
    command: str,
    exit_code: int,
    *,
    error: Json | None = None,
    warnings: list[Json] | None = None,
    own: Json | None = None,
) -> str:
    """Return the envelope as one line. `own` may override `status`, for a partial run."""
    return dumps(_envelope_members(command, exit_code, error, warnings, own)) + "\n"


def envelope_parts(
    command: str,
    exit_code: int,
    *,
    error: Json | None,
    warnings: list[Json],
    own: Json,
    streamed: StreamedList,
) -> Iterator[str]:
    """Yield the same text in parts: the items of the streamed list are read one at a time."""
    body = _envelope_members(command, exit_code, error, warnings, own)
    yield from _text_parts(body, streamed.path, streamed.items)
    yield "\n"


def _text_parts(
    value: object, path: Sequence[str], items: Callable[[], Iterable[object]]
) -> Iterator[str]:
    """Yield the text of a value in parts, with `items` in the list at `path`."""
    if not path:
        yield "["
        for number, item in enumerate(items()):
            yield f"{',' if number else ''}{dumps(item)}"
        yield "]"
        return
    yield "{"
    for number, (name, member) in enumerate(object_of(value).items()):
        yield f"{',' if number else ''}{dumps(name)}:"
        if name == path[0]:
            yield from _text_parts(member, path[1:], items)
        else:
            yield dumps(member)
    yield "}"


def _envelope_members(
    command: str,
    exit_code: int,
    error: Json | None,
    warnings: list[Json] | None,
    own: Json | None,
) -> Json:
    """Return the members of the envelope."""
    return {
        "schema": SCHEMA,
        "command": command,
        "status": _STATUS.get(exit_code, "error"),
        "exit_code": exit_code,
        "warnings": warnings or [],
        "error": error,
        **(own or {}),
    }


def dumps(value: object, *, indent: bool = False) -> str:
    """Return JSON text with keys in declared order, non-ASCII characters unescaped, and invisible
    characters escaped.
    """
    import orjson

    option = orjson.OPT_INDENT_2 if indent else 0
    try:
        text = orjson.dumps(value, option=option).decode()
    except (TypeError, ValueError):
        # Handles lone surrogates, as in file names, and integers beyond 64 bits.
        import json

        text = json.dumps(
            _replace_surrogates(value), indent=2 if indent else None, ensure_ascii=True, default=str
        )
    return visible_json(text)


def _replace_surrogates(value: object) -> object:
    """Return the value with each lone surrogate replaced by its escape as text, because JSON
    readers reject it.
    """
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {
            _replace_surrogates(key): _replace_surrogates(member) for key, member in value.items()
        }
    return (
        [_replace_surrogates(member) for member in value]
        if isinstance(value, list | tuple)
        else value
    )


def error_object(error: CogcliError) -> Json:
    """Return the `error` object of the envelope, without unknown members."""
    body: Json = {"code": error.code, "message": error.message}
    places = {
        "step": error.step_id,
        "capability": error.capability_id,
        "binding": error.binding_id,
        "service": error.service_id,
    }
    body.update({key: value for key, value in places.items() if value})
    for key in ("file", "line", "column", "expected", "found"):
        if value := getattr(error, key):
            body[key] = value
    body["retryable"] = error.retryable
    body["hint"] = error.hint
    body["next"] = list(error.next)
    return body
