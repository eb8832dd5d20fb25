"""The forms of an `InputRequiredResult`, for a run that waits for a person's answer (docs/reference/mcp.md#input).

Only forms are passed on, of a bounded size. A result that asks for anything else is a rejected call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cogcli.base.calls import Continuation
from cogcli.base.canonical import compact
from cogcli.base.errors import InputRequiredError
from cogcli.base.schema import validator
from cogcli.base.terminal_text import visible
from cogcli.declarations.governance_events import FormSchema, InputForm
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Json

MOST_FORMS: Final = 10
"""The most questions of one result."""
LONGEST_QUESTION: Final = 4000
"""The most characters of a question: a person has to read it whole."""
_MOST_FIELDS: Final = 50
_LARGEST: Final = 32 * 1024
"""Bytes of all forms of a result, and characters of its state."""
_LONGEST_ADDRESS: Final = 2000
_SHOWN: Final = 200
"""The characters of a question that the error of a waiting run has."""
ELICIT: Final = "elicitation/create"
SAMPLE: Final = "sampling/createMessage"


class FormParams(Record):
    """The parameters of a request for input on the wire."""

    mode: str = "form"
    message: str
    requestedSchema: FormSchema


class DemandedForm(Record):
    """A request for input inside a result on the wire."""

    method: str
    params: FormParams


class UnfinishedResult(Record):
    """A result that asks for input before the call can be completed, on the wire."""

    resultType: str
    inputRequests: dict[str, DemandedForm]
    requestState: str | None = None


def _asks_for_few_forms(asked: UnfinishedResult) -> bool:
    """Return whether a result asks for forms and for nothing else, and no more than the limits allow."""
    requests, written = asked.inputRequests, asked.json.get("inputRequests") or {}
    if len(requests) != len(written) or not 0 < len(requests) <= MOST_FORMS:
        return False
    return all(map(_is_form, requests.values())) and len(compact(written)) <= _LARGEST


def find_demand(
    result: Json, operation: str, mask: Callable[[Json], Json]
) -> InputRequiredError | None:
    """Return the error that leaves a call waiting for a person. None if the result is finished, or requests anything
    other than forms, or too many of them. `mask` removes the secrets from the server's data.
    """
    if read_record(UnfinishedResult, result).resultType != "input_required":
        return None
    asked = read_record(UnfinishedResult, mask(result))
    state = read_record(UnfinishedResult, result).requestState
    if not _asks_for_few_forms(asked) or len(state or "") > _LARGEST:
        return None
    forms = [_form_from(name, each.params) for name, each in asked.inputRequests.items()]
    if not all(validator.is_usable(form.schema) for form in forms):
        return None
    question = visible(" ".join(forms[0].message.split()))
    question = question if len(question) <= _SHOWN else f"{question[: _SHOWN - 1]}…"
    error = InputRequiredError("input.required", f"`{operation}` asks: {question}", left=True)
    error.forms, error.request_state = [form.json for form in forms], state
    return error


def find_form(name: str, params: Json) -> InputForm | None:
    """Return the form of one request for input, or None if a person cannot answer it."""
    asked = read_record(FormParams, params)
    if not _is_answerable(asked) or len(compact(params)) > _LARGEST:
        return None
    form = _form_from(name, asked)
    return form if validator.is_usable(form.schema) else None


def is_web_address(url: str) -> bool:
    """Return whether a person can be shown this address: of the web, in one line, and not too long."""
    has_scheme = url.startswith(("https://", "http://"))
    return has_scheme and len(url) <= _LONGEST_ADDRESS and visible(url) == url and " " not in url


def _is_form(asked: DemandedForm) -> bool:
    """Return whether a request for input is a form that a person can answer."""
    return asked.method == ELICIT and _is_answerable(asked.params)


def _is_answerable(params: FormParams) -> bool:
    fields, named = params.requestedSchema.properties, params.requestedSchema.required
    return (
        params.mode == "form"
        and 0 < len(params.message) <= LONGEST_QUESTION
        and len(fields) <= _MOST_FIELDS
        and fields.keys() >= set(named)
    )


def _form_from(name: str, params: FormParams) -> InputForm:
    fields = InputForm.fields_of_schema(params.requestedSchema.json)
    return InputForm(name=name, message=params.message, fields=fields)


def continuation_members(continuation: Continuation | None) -> Json:
    """Return the members of a request that continue an unfinished call. Empty for a call that begins."""
    if continuation is None:
        return {}
    members: Json = {"inputResponses": continuation.answers}
    if continuation.request_state is not None:
        members["requestState"] = continuation.request_state
    return members
