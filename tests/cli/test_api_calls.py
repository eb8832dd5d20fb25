"""Calls of web APIs through the installed command: repeats, live verification."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from support.web_api import ApiProject, Reply, Seen, WebApi, web_api


def failing_first(status: int) -> Any:
    """An API that fails once, then replies."""

    def answer(seen: Seen) -> Reply:
        calls.append(1)
        return (status, {}, {}) if len(calls) == 1 else (200, {"rows": [1]}, {})

    calls: list[int] = []
    return answer


RETRIED = "metadata: {method: GET, retry_count: 1, retry_backoff_base: 0}\n"


@pytest.mark.parametrize(
    ("effects", "status", "exit_code", "sent"),
    [
        ({"side_effects": False}, 500, 0, 2),
        ({"side_effects": True, "idempotent": True}, 501, 0, 2),
        ({"side_effects": False}, 503, 0, 2),
        ({"side_effects": True}, 500, 1, 1),
        ({"side_effects": False}, 404, 1, 1),
    ],
)
def test_retry_count_repeats_every_retryable_failure_that_may_be_repeated(
    project: Any, effects: dict[str, bool], status: int, exit_code: int, sent: int
) -> None:
    with web_api(failing_first(status)) as api:
        rows = ApiProject(project, api.url)
        rows.bind(RETRIED)
        rows.capability(properties=effects)
        rows.run(code=exit_code)
        assert len(api.seen) == sent
    project.run("replay", "@last").assert_ok()


@pytest.fixture
def rows() -> Iterator[WebApi]:
    with web_api(lambda seen: (200, {"rows": [1]}, {})) as api:
        yield api


def scenario(project: Any, name: str, **more: Any) -> None:
    value = {
        "id": name,
        "capability_id": "demo.row.read",
        "binding_id": "rows",
        "input": {},
        "expected_output": {"rows": [1]},
        **more,
    }
    project.write(f"tooling/openapi_scenarios/{name}.json", json.dumps(value).encode())


@pytest.mark.sampled(6)
def test_live_verification_names_what_answered_and_needs_a_live_service(
    project: Any, rows: WebApi
) -> None:
    ApiProject(project, rows.url)
    mock = {"replies": [{"body": {"rows": [1]}}]}
    scenario(project, "mocked", mock_server=mock)
    verify = ("openapi", "verify-bindings", "--all", "--live")
    none = project.run(*verify).assert_exit(3)
    assert "mock server" in none.out
    assert "error[check.nothing]: --live: no live service was called" in none.err
    assert not rows.seen
    scenario(project, "real")
    both = project.run(*verify, "--json").assert_ok().json["scenarios"]
    assert [(each["id"], each["called"]) for each in both] == [
        ("mocked", "mock server"),
        ("real", "live service"),
    ]
    assert len(rows.seen) == 1


# -- headers of replies -----------------------------------------------------------------------------------------------

MAPPED = "{rows: response.rows, total: response_headers.X-Total-Count, link: response_headers.link}"
OUTPUTS = {"rows": {"type": "array"}, "total": {"type": "integer"}, "link": {"type": "string"}}


def test_a_header_of_the_reply_is_an_output_and_only_mapped_ones_are_recorded(project: Any) -> None:
    sent = {"X-Total-Count": "42", "Set-Cookie": "sid=canary-31c7", "X-Other": "canary-88aa"}
    with web_api(lambda seen: (200, {"rows": []}, sent)) as api:
        rows = ApiProject(project, api.url)
        rows.bind(response=MAPPED)
        rows.capability(OUTPUTS)
        assert rows.run().json["outputs"] == {"rows": [], "total": 42}
        recorded = (project.episode / "events.jsonl").read_text()
        assert '"response_headers":{"x-total-count":"42"}' in recorded
        assert "canary" not in recorded
        project.run("replay", "@last").assert_ok()
        rows.capability({**OUTPUTS, "link": {"type": "string", "required": True}})
        error = rows.run(code=1).json["error"]
        assert (error["code"], "without header `link`" in error["message"]) == (
            "response.missing",
            True,
        )


@pytest.mark.parametrize("text", ["many", "4 2", "1e3"])
def test_a_header_that_is_not_of_the_outputs_type_breaks_the_contract(
    project: Any, text: str
) -> None:
    with web_api(lambda seen: (200, {"rows": []}, {"X-Total-Count": text})) as api:
        rows = ApiProject(project, api.url)
        rows.bind(response=MAPPED)
        rows.capability(OUTPUTS)
        assert rows.run(code=1).json["error"]["code"] == "response.type"


def test_headers_of_a_session_are_never_mapped(project: Any) -> None:
    rows = ApiProject(project, "https://rows.example")
    rows.bind(response="{rows: response.rows, link: response_headers.Set-Cookie}")
    rows.capability(OUTPUTS)
    problems = project.run("validate", "--json").assert_exit(1).json["problems"]
    found = [each["message"] for each in problems if each["code"] == "header.name"]
    assert found == ["binding `rows`: `response.link`: header `set-cookie` is never read"]


# -- replies that differ from their schema ----------------------------------------------------------------------------

SCHEMA = {
    "type": "object",
    "required": ["rows", "owner"],
    "properties": {
        "rows": {"type": "array", "items": {"type": "integer"}},
        "owner": {"type": "object"},
        "count": {"type": "integer"},
    },
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("body", "passes", "message"),
    [
        ({"rows": [1]}, True, "no output reads what differs: "),
        ({"rows": [1], "owner": None, "count": "many"}, True, "no output reads what differs: "),
        ({"rows": ["one"], "owner": {}}, False, "rows.0: "),
    ],
)
def test_a_field_that_no_output_reads_may_differ_unless_verification_is_strict(
    project: Any, body: Any, passes: bool, message: str
) -> None:
    rows = ApiProject(project, "https://rows.example")
    reply = {"description": "ok", "content": {"application/json": {"schema": SCHEMA}}}
    rows.document({"/rows": {"get": {"operationId": "listRows", "responses": {"200": reply}}}})
    rows.service("spec_ref: docs/rows.json\n")
    rows.bind("", operation="listRows")
    expected = {"rows": body["rows"]}
    scenario(project, "rows", expected_output=expected, mock_server={"replies": [{"body": body}]})
    verify = ("openapi", "verify-bindings", "--all", "--json")
    (found,) = project.run(*verify).assert_exit(0 if passes else 1).json["scenarios"]
    (check,) = [each for each in found["checks"] if each["name"] == "reply matches its schema"]
    assert (check["passed"], message in check["detail"]) == (passes, True)
    project.run(*verify, "--strict").assert_exit(1)
