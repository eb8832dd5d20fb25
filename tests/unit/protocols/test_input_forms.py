"""Which unfinished results leave a run waiting, and which answers fit them (docs/reference/mcp.md#input)."""

from __future__ import annotations

from typing import Any

import pytest

from cogcli.base.calls import Continuation
from cogcli.base.errors import UsageError
from cogcli.declarations.call_records import AttemptMade
from cogcli.declarations.governance_events import InputForm, InputRequested
from cogcli.episode.history import input_flags
from cogcli.protocols.mcp.input_forms import continuation_members, find_demand
from cogcli.run.form_answers import fit_answer

TEXT = {"type": "string"}


def form(fields: dict[str, Any] | None = None, **params: Any) -> dict[str, Any]:
    """A request for input with a form."""
    schema = {"type": "object", "properties": fields or {"name": TEXT}, "required": []}
    given = {"mode": "form", "message": "Who?", "requestedSchema": schema, **params}
    return {"method": "elicitation/create", "params": given}


def unfinished(*requests: dict[str, Any], **members: Any) -> dict[str, Any]:
    """An unfinished result with these requests, named by number."""
    asked = {str(number): each for number, each in enumerate(requests)}
    return {"resultType": "input_required", "inputRequests": asked, **members}


def demand_of(result: dict[str, Any]) -> Any:
    """The error of a run that waits; None for a result that leaves none waiting."""
    return find_demand(result, "book", lambda value: value)


def test_forms_leave_the_call_waiting() -> None:
    error = demand_of(unfinished(form(message="Who\nis \x1b[1mit?"), requestState="s"))
    assert (error.code, error.exit_code, error.left) == ("input.required", 5, True)
    assert error.message.startswith("`book` asks: Who is ")
    assert "\x1b" not in error.message
    assert error.request_state == "s"
    (asked,) = [InputForm.of(each) for each in error.forms]
    assert (asked.name, asked.fields[0].name) == ("0", "name")


@pytest.mark.parametrize(
    "result",
    [
        {"resultType": "complete"},
        unfinished(),
        unfinished(requestState="s"),
        unfinished(form(), {"method": "roots/list"}),
        unfinished({"method": "sampling/createMessage", "params": {"messages": []}}),
        unfinished(form(mode="url", url="https://example.org")),
        unfinished(form(message="")),
        unfinished(form(message="a" * 4001)),
        unfinished(*[form()] * 11),
        unfinished(form({f"f{number}": TEXT for number in range(51)})),
        unfinished(form({"name": {"type": "string", "description": "a" * 33_000}})),
        unfinished(form({"name": {"type": "no such type"}})),
        unfinished(form(requestedSchema={"properties": {}, "required": ["name"]})),
        unfinished(form(), requestState="s" * 33_000),
        {"resultType": "input_required", "inputRequests": {"a": 5}},
    ],
)
def test_anything_else_does_not(result: dict[str, Any]) -> None:
    assert demand_of(result) is None


def forms_of(*requests: dict[str, Any]) -> list[InputForm]:
    """The forms of an unfinished result."""
    return [InputForm.of(each) for each in demand_of(unfinished(*requests)).forms]


def test_an_answer_gets_the_defaults_and_the_names_of_the_forms() -> None:
    forms = forms_of(form({"name": TEXT, "count": {"type": "integer", "default": 2}}))
    assert fit_answer(forms, {"name": "Ada"}) == {"0": {"name": "Ada", "count": 2}}
    two = forms_of(form(), form({"ok": {"type": "boolean"}}))
    answer = {"0": {"name": "Ada"}, "1": {"ok": True}}
    assert fit_answer(two, answer) == answer


@pytest.mark.parametrize(
    "content", [{"name": 5}, {"other": "a"}, {}, {"name": "a", "size": "XL"}], ids=str
)
def test_an_answer_that_does_not_fit_is_refused(content: dict[str, Any]) -> None:
    schema = {
        "type": "object",
        "properties": {"name": TEXT, "size": {"type": "string", "enum": ["S", "M"]}},
        "required": ["name"],
    }
    with pytest.raises(UsageError) as caught:
        fit_answer(forms_of(form(requestedSchema=schema)), content)
    assert "name: string, size?: S | M" in caught.value.expected


def test_of_several_forms_each_needs_an_answer() -> None:
    with pytest.raises(UsageError, match="2 forms"):
        fit_answer(forms_of(form(), form()), {"0": {"name": "Ada"}})


def test_the_example_of_an_answer_fits() -> None:
    fields = {
        "name": TEXT,
        "count": {"type": "integer"},
        "sure": {"type": "boolean"},
        "size": {"type": "string", "enum": ["S", "M"]},
        "color": {"type": "string", "oneOf": [{"const": "red", "title": "Red"}]},
        "tags": {"type": "array", "items": {"type": "string", "enum": ["a"]}},
    }
    text = '{"name":"TEXT","count":1,"sure":true,"size":"S","color":"red","tags":[]}'
    made = AttemptMade(binding_id="b", service_id="s", status="input_required")
    forms = forms_of(form(fields))
    asked = InputRequested(
        input_id="in_1",
        step_id="a",
        capability="c",
        binding="b",
        service="s",
        attempt=1,
        forms=forms,
        made=made,
    )
    assert input_flags([asked]) == [f"--answer '{text}'", "--answer decline"]
    assert input_flags([asked, asked])[1] == "--answer a=decline"
    sample: Any = asked.sample
    assert fit_answer(forms, sample) == {"0": sample}


def test_a_continued_call_sends_what_the_server_gave() -> None:
    answers = {"0": {"action": "decline"}}
    assert continuation_members(None) == {}
    assert continuation_members(Continuation(answers)) == {"inputResponses": answers}
    members = continuation_members(Continuation(answers, ""))
    assert members == {"inputResponses": answers, "requestState": ""}
