"""Checks of a language model's JSON answer: it is complete and fits the schema of the request
(docs/reference/protocols.md#replies)."""

from __future__ import annotations

from typing import Final

from cogcli.base.errors import ResponseMappingError
from cogcli.base.json_pointer import NOWHERE, find_at
from cogcli.base.schema.validator import errors
from cogcli.declarations.value_types import Json
from cogcli.protocols.http.reply_body import content_indices, message_of

_CUT_OFF: Final = {
    "length": "it was cut off at its longest",
    "content_filter": "it was held back by a filter",
}
_SCHEMA: Final = ("response_format", "json_schema", "schema")


def require_finished_answer(body: object, response: Json) -> None:
    """Raise ResponseMappingError `response.missing` if an answer that is read as JSON is
    incomplete."""
    for index in content_indices(response):
        found = find_at(body, ("choices", str(index), "finish_reason"))
        if isinstance(found, str) and found in _CUT_OFF:
            text = (
                f"the answer of the model is not whole: {_CUT_OFF[found]} (finish_reason `{found}`)"
            )
            hint = "ask for less at a time, or let it answer at greater length (max_tokens)"
            raise ResponseMappingError(
                "response.missing", text, hint=hint if found == "length" else "", left=True
            )


def check_schema(sent: object, body: object, response: Json) -> None:
    """Raise ResponseMappingError `response.type` if an answer that is read as JSON breaks the
    requested schema."""
    schema = find_at(sent, _SCHEMA)
    if schema is NOWHERE or not isinstance(schema, dict):
        return
    for index in content_indices(response):
        message = message_of(body, index)
        if message is None or "content_json" not in message:
            continue
        if wrong := errors(schema, message["content_json"]):
            place, fault = wrong[0]
            where = f"`{place.replace('/', '.')}`: " if place else ""
            text = f"the answer of the model breaks the schema that it was given: {where}{fault}"
            raise ResponseMappingError("response.type", text, left=True)
