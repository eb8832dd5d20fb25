"""The key `page` of bindings through the installed command: one step collects all rows, within bounds."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from support.web_api import ApiProject, Reply, Seen, web_api

PAGES, SIZE = 4, 3
ALL = list(range(PAGES * SIZE))
REQUEST_OF_BODY = "metadata: {method: POST}\n"


def rows_of(page: int) -> list[int]:
    return ALL[page * SIZE : (page + 1) * SIZE]


def by_link(seen: Seen) -> Reply:
    page = int(seen.query.get("page", 0))
    link = f"/v1/rows?page={page + 1}&api_key=echoed" if page + 1 < PAGES else None
    return 200, {"rows": rows_of(page), "next": link}, {}


def by_header_link(seen: Seen) -> Reply:
    page = int(seen.query.get("page", 0))
    links = ['<https://rows.example/help>; rel="help"']
    if page + 1 < PAGES:
        links.append(f'</v1/rows?page={page + 1}>; title="more"; rel="last next"')
    return 200, {"rows": rows_of(page)}, {"Link": ", ".join(links)}


def by_cursor(seen: Seen) -> Reply:
    page = int((seen.query.get("cursor") or "c0")[1:])
    following = f"c{page + 1}" if page + 1 < PAGES else ""
    return 200, {"rows": rows_of(page), "meta": {"next": following}}, {"X-Next": following}


def by_cursor_in_body(seen: Seen) -> Reply:
    page = json.loads(seen.body).get("after", 0)
    return 200, {"rows": rows_of(page), "next": page + 1 if page + 1 < PAGES else None}, {}


def by_number(seen: Seen) -> Reply:
    page = int(seen.query["page"])
    return 200, {"rows": rows_of(page - 1), "has_more": page < PAGES}, {}


def by_offset(seen: Seen) -> Reply:
    offset = int(seen.query["offset"])
    return 200, {"rows": ALL[offset : offset + SIZE]}, {}


WAYS: dict[str, tuple[Callable[[Seen], Reply], str, str, int]] = {
    "link": (by_link, "link: response.next", "", PAGES),
    "link in a header": (by_header_link, "link: response_headers.Link", "", PAGES),
    "cursor": (by_cursor, "cursor: response.meta.next, send: cursor", "", PAGES),
    "cursor in a header": (by_cursor, "cursor: response_headers.x-next, send: cursor", "", PAGES),
    "cursor in the body": (
        by_cursor_in_body,
        "cursor: response.next, send: after",
        REQUEST_OF_BODY,
        PAGES,
    ),
    "number": (by_number, "by: number, send: page, more: response.has_more", "", PAGES),
    "offset until an empty page": (by_offset, "by: offset, send: offset", "", PAGES + 1),
    "offset until a page that is not full": (
        by_offset,
        f"by: offset, send: offset, size: {SIZE + 1}",
        "",
        1,
    ),
}


def paged(project: Any, url: str, page: str, more: str = "", **keys: str) -> ApiProject:
    rows = ApiProject(project, url)
    metadata = more or "metadata: {method: GET}\n"
    rows.bind(f"page: {{items: rows, {page}}}\n{metadata}", **keys)
    return rows


def events(project: Any) -> list[Any]:
    text = (project.episode / "events.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("way", WAYS)
def test_one_step_collects_the_rows_of_all_pages(project: Any, way: str) -> None:
    answer, page, more, pages = WAYS[way]
    with web_api(answer) as api:
        rows = paged(project, api.url, page, more)
        found = rows.run().json["outputs"]["rows"]
        assert found == (ALL if pages > 1 else ALL[:SIZE])
        assert len(api.seen) == pages
    log = events(project)
    told = [each["payload"] for each in log if each["event_type"] == "call.page"]
    assert [each["page"] for each in told] == list(range(1, pages + 1))
    assert told[-1]["total"] == len(found)
    (closing,) = [each["payload"] for each in log if each["event_type"] == "step.completed"]
    assert closing["attempts"][0]["pages"] == pages
    project.run("replay", "@last").assert_ok()
    project.run("verify", "@last").assert_ok()


def test_pages_are_checked_by_the_document_of_the_service(project: Any) -> None:
    with web_api(by_offset) as api:
        rows = paged(project, api.url, "by: offset, send: offset", operation="listRows")
        operation = {
            "operationId": "listRows",
            "parameters": [{"name": "offset", "in": "query", "required": True, "schema": {}}],
            "responses": {"200": {"description": "ok"}},
        }
        rows.document({"/rows": {"get": operation}})
        rows.service("spec_ref: docs/rows.json\n")
        assert rows.run().json["outputs"]["rows"] == ALL
        rows = paged(project, api.url, "by: offset, send: query.start", operation="listRows")
        rows.service("spec_ref: docs/rows.json\n")
        rows.run(code=3)
        problems = project.run("validate", "--json").assert_exit(1).json["problems"]
        assert any(each["code"] == "wire.parameter" for each in problems)


@pytest.mark.parametrize(
    ("bound", "message", "pages"),
    [
        ("max_pages: 2", "2 pages were read, and more are left", 2),
        (f"max_items: {SIZE + 1}", "6 items were read, and more are left", 2),
    ],
)
def test_a_bound_that_is_reached_while_pages_are_left_fails(
    project: Any, bound: str, message: str, pages: int
) -> None:
    with web_api(by_link) as api:
        rows = paged(project, api.url, f"link: response.next, {bound}")
        error = rows.run(code=1).json["error"]
        assert (error["code"], message in error["message"]) == ("response.pages", True)
        assert len(api.seen) == pages
    assert [each["event_type"] for each in events(project)].count("call.page") == pages
    project.run("replay", "@last").assert_ok()


def test_bounds_that_just_suffice_do_not_fail(project: Any) -> None:
    with web_api(by_link) as api:
        bounds = f"max_pages: {PAGES}, max_items: {len(ALL)}"
        paged(project, api.url, f"link: response.next, {bounds}").run()


def test_a_page_that_is_named_again_ends_the_call(project: Any) -> None:
    with web_api(lambda seen: (200, {"rows": [1], "next": "c1"}, {})) as api:
        rows = paged(project, api.url, "cursor: response.next, send: cursor")
        error = rows.run(code=1).json["error"]
        assert (error["code"], len(api.seen)) == ("response.pages", 2)


LINKS = [
    "{elsewhere}/v1/rows?page=1",
    "//{elsewhere_host}/v1/rows",
    "{origin}@{elsewhere_host}/v1/rows",
    "/other/rows?page=1",
    "/v1/../admin",
    "/v1/%2e%2e/admin",
    "/v1/%2e%2e%2fadmin",
    "/v1/..%5cadmin",
    "/v1evil/rows",
    "http://127.0.0.1:notaport/v1/rows",
    "ftp://127.0.0.1/v1/rows",
]


@pytest.mark.parametrize("link", LINKS)
def test_a_link_that_leaves_origin_or_base_path_gets_no_request_and_no_token(
    project: Any, link: str
) -> None:
    with web_api(lambda seen: (200, {"rows": []}, {})) as elsewhere:
        host = elsewhere.url.removeprefix("http://")

        def answer(seen: Seen) -> Reply:
            origin = f"http://{seen.headers['host']}"
            named = link.format(elsewhere=elsewhere.url, elsewhere_host=host, origin=origin)
            return 200, {"rows": [1], "next": named}, {}

        with web_api(answer) as api:
            rows = paged(project, api.url, "link: response.next")
            rows.service("auth_ref: ROWS_TOKEN\n")
            project.env["ROWS_TOKEN"] = "canary-8812ffa0"
            error = rows.run(code=1).json["error"]
            assert error["code"] == "response.pages"
            assert "leads out of" in error["message"]
            assert len(api.seen) == 1
        assert not elsewhere.seen


def test_a_key_in_the_query_is_added_to_each_link_and_never_taken_from_it(project: Any) -> None:
    with web_api(by_link) as api:
        rows = paged(project, api.url, "link: response.next")
        rows.service("auth: {k: {api_key: ROWS_KEY, in: query, name: api_key}}\n")
        project.env["ROWS_KEY"] = "canary-6ac1e0d7"
        rows.run()
        assert [seen.query["api_key"] for seen in api.seen] == ["canary-6ac1e0d7"] * PAGES
    data = (project.episode / "events.jsonl").read_text()
    assert "canary" not in data
    assert "api_key=[masked]" in data


def test_a_repeat_continues_with_the_page_that_failed(project: Any) -> None:
    failed: list[str] = []

    def answer(seen: Seen) -> Reply:
        if seen.query.get("page") == "2" and not failed:
            failed.append("2")
            return 500, {}, {}
        return by_link(seen)

    with web_api(answer) as api:
        retried = "metadata: {method: GET, retry_count: 1, retry_backoff_base: 0}\n"
        rows = paged(project, api.url, "link: response.next", retried)
        assert rows.run().json["outputs"]["rows"] == ALL
        assert [seen.query.get("page", "0") for seen in api.seen] == ["0", "1", "2", "2", "3"]
    assert [each["event_type"] for each in events(project)].count("call.page") == PAGES
    project.run("replay", "@last").assert_ok()


def test_a_reply_without_a_list_is_told_with_its_page(project: Any) -> None:
    def answer(seen: Seen) -> Reply:
        return by_link(seen) if "page" not in seen.query else (200, {"rows": "none"}, {})

    with web_api(answer) as api:
        error = paged(project, api.url, "link: response.next").run(code=1).json["error"]
        assert (error["code"], "page 2: `response.rows`" in error["message"]) == (
            "response.type",
            True,
        )


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("page", "message"),
    [
        ("link: response.next, cursor: response.next", "link and cursor"),
        ("max_pages: 2", "no way to the next page"),
        ("cursor: response.next", "`cursor` without `send`"),
        ("link: response.next, size: 3", "`size` has no meaning beside `link`"),
    ],
)
def test_keys_that_contradict_each_other_are_an_error_of_the_binding(
    project: Any, page: str, message: str
) -> None:
    paged(project, "https://rows.example", page)
    problems = project.run("validate", "--json").assert_exit(1).json["problems"]
    assert any(message in each["message"] for each in problems if each["code"] == "binding.page")


@pytest.mark.parametrize("properties", [{}, {"side_effects": True, "idempotent": True}])
def test_only_a_capability_without_effects_has_pages(project: Any, properties: Any) -> None:
    rows = paged(project, "https://rows.example", "link: response.next")
    rows.capability(properties=properties)
    problems = project.run("validate", "--json").assert_exit(1).json["problems"]
    (found,) = [each for each in problems if each["code"] == "binding.page"]
    assert "which may have effects" in found["message"]


def test_the_mock_of_a_document_gives_one_page(project: Any) -> None:
    rows = paged(project, "https://rows.example", "link: response.next", operation="listRows")
    schema = {"type": "object", "properties": {"rows": {"type": "array"}, "next": {}}}
    found = {"schema": schema, "example": {"rows": [1], "next": "/v1/rows?page=1"}}
    reply = {"description": "ok", "content": {"application/json": found}}
    rows.document({"/rows": {"get": {"operationId": "listRows", "responses": {"200": reply}}}})
    rows.service("spec_ref: docs/rows.json\n")
    value = {"id": "rows", "capability_id": "demo.row.read", "binding_id": "rows", "input": {}}
    text = json.dumps({**value, "expected_output": {"rows": [1]}})
    project.write("tooling/openapi_scenarios/rows.json", text.encode())
    project.run("openapi", "verify-bindings", "--all").assert_ok()


# -- pages by a loop of the skill -------------------------------------------------------------------------------------

LOOP = """\
- id: begin
  uses: demo.row.read
  input: {}
  output: {next: vars.next, rows: outputs.rows}
- id: rest
  uses: demo.row.read
  input: {cursor: vars.next}
  config:
    condition: "vars.next != ''"
    while: {condition: "vars.next != ''", max_iterations: 100}
    merge_strategy: STRATEGY
  output: {rows: outputs.rows, next: vars.next}
"""


def looped(project: Any, url: str, strategy: str) -> ApiProject:
    rows = ApiProject(project, url)
    rows.bind(
        request="{cursor: input.cursor}", response="{rows: response.rows, next: response.meta.next}"
    )
    rows.capability(
        {"rows": {"type": "array", "required": True}, "next": {"type": "string"}},
        inputs={"cursor": {"type": "string"}},
    )
    steps = LOOP.replace("STRATEGY", strategy)
    project.skill("demo.reads", steps, outputs="{rows: {type: array}}")
    return rows


def test_a_strategy_for_each_target_lets_a_loop_append_rows_and_overwrite_its_cursor(
    project: Any,
) -> None:
    with web_api(by_cursor) as api:
        rows = looped(project, api.url, "{outputs.rows: append, vars.next: replace}")
        assert rows.run().json["outputs"]["rows"] == ALL
    project.run("replay", "@last").assert_ok()
    closings = [each["payload"] for each in events(project) if each["phase"] == "act"]
    written = [
        write["value"]
        for each in closings
        for write in each.get("writes", ())
        if write["target"] == "outputs.rows" and write["strategy"] == "append"
    ]
    assert max(map(len, written)) <= len(ALL) - SIZE, "a round writes its own rows"


@pytest.mark.parametrize(
    ("strategy", "code", "message"),
    [
        ("{outputs.row: append}", "step.output-unknown", "did you mean `outputs.rows`"),
        ("{outputs.rows: prepend}", "value.choice", "prepend"),
    ],
)
def test_strategies_of_targets_are_checked(
    project: Any, strategy: str, code: str, message: str
) -> None:
    looped(project, "https://rows.example", strategy)
    problems = project.run("validate", "--json").assert_exit(1).json["problems"]
    assert any(
        each["code"] == code and message in f"{each['message']} {each['hint']}" for each in problems
    )
