"""The key `auth` of services through the installed command: what is sent where, and what is written nowhere."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs

import pytest
from support.web_api import ApiProject, Reply, Seen, WebApi, web_api

KEY = "canary-9d2f7a61c3-key"
SECRET = "canary-51b0d8e2aa-secret"
TOKEN = "canary-77aa01f3c9-token"
ENV = {"ROWS_KEY": KEY, "ROWS_USER": "ann", "ROWS_SECRET": SECRET}
GET = {"get": {"operationId": "listRows", "responses": {"200": {"description": "ok"}}}}
SCHEMES = {
    "inQuery": {"type": "apiKey", "in": "query", "name": "api_key"},
    "inCookie": {"type": "apiKey", "in": "cookie", "name": "sid"},
    "worded": {"type": "http", "scheme": "Token"},
    "basic": {"type": "http", "scheme": "basic"},
    "oauth": {
        "type": "oauth2",
        "flows": {
            "clientCredentials": {"tokenUrl": "https://elsewhere.example/token", "scopes": {}}
        },
    },
}
ENTRIES = {
    "inQuery": "{api_key: ROWS_KEY, in: query, name: api_key}",
    "inCookie": "{api_key: ROWS_KEY, in: cookie, name: sid}",
    "worded": "{bearer: ROWS_KEY, word: Token}",
    "basic": "{user: ROWS_USER, password: ROWS_SECRET}",
}


class Tokens:
    """An API behind a token server of its own; `valid` is the token that it takes."""

    def __init__(self, lifetime: Any = 3600) -> None:
        self.lifetime = lifetime
        self.given = 0
        self.valid = ""

    def __call__(self, seen: Seen) -> Reply:
        if seen.path == "/token":
            self.given += 1
            self.valid = f"{TOKEN}-{self.given}"
            reply = {"access_token": self.valid, "token_type": "Bearer"}
            return 200, {**reply, "expires_in": self.lifetime}, {}
        if seen.headers.get("authorization") != f"Bearer {self.valid}":
            return 401, {"message": f"not {seen.headers.get('authorization')}"}, {}
        return 200, {"rows": [self.given]}, {}


def require_no_secret(project: Any, *texts: str) -> None:
    """No canary stands in an output or in a file of the episodes, in no form."""
    secrets = [KEY, SECRET, TOKEN, base64.b64encode(f"ann:{SECRET}".encode()).decode()]
    files = [path.read_bytes() for path in project.root.rglob("*") if path.is_file()]
    for secret in secrets:
        assert not any(secret in text for text in texts)
        assert not any(secret.encode() in data for data in files)


@pytest.fixture
def api() -> Iterator[WebApi]:
    with web_api(lambda seen: (200, {"rows": [dict(seen.headers)]}, {})) as served:
        yield served


def secured(project: Any, url: str, *alternatives: dict[str, list[str]], auth: str = "") -> Any:
    """A project whose document asks for these alternatives."""
    rows = ApiProject(project, url)
    rows.document({"/rows": GET}, SCHEMES, security=list(alternatives))
    rows.service(f"spec_ref: docs/rows.json\n{auth}")
    rows.bind("", operation="listRows")
    project.env.update(ENV)
    return rows


@pytest.mark.parametrize(
    ("scheme", "place", "value"),
    [
        ("inQuery", "query", KEY),
        ("inCookie", "cookie", f"sid={KEY}"),
        ("worded", "authorization", f"Token {KEY}"),
        ("basic", "authorization", "Basic " + base64.b64encode(f"ann:{SECRET}".encode()).decode()),
    ],
)
def test_credentials_go_where_the_service_file_says_and_into_no_file(
    project: Any, api: WebApi, scheme: str, place: str, value: str
) -> None:
    auth = f"auth: {{{scheme}: {ENTRIES[scheme]}}}\n"
    rows = secured(project, api.url, {scheme: []}, auth=auth)
    result = rows.run()
    (seen,) = api.seen
    assert (seen.query.get("api_key") if place == "query" else seen.headers[place]) == value
    shown = project.run("trace", "@last", "--step", "read", "--io").assert_ok().out
    if place == "query":
        assert "/v1/rows?api_key=[masked]" in shown
    require_no_secret(project, result.out, result.err, shown)


def test_the_first_alternative_that_can_be_met_counts(project: Any, api: WebApi) -> None:
    both = f"auth: {{basic: {ENTRIES['basic']}, inQuery: {ENTRIES['inQuery']}}}\n"
    rows = secured(project, api.url, {"oauth": []}, {"basic": []}, {"inQuery": []}, auth=both)
    rows.run()
    assert "authorization" in api.seen[-1].headers
    assert not api.seen[-1].query
    project.env["ROWS_SECRET"] = ""
    rows.run()
    assert api.seen[-1].query == {"api_key": KEY}
    assert "authorization" not in api.seen[-1].headers
    project.env["ROWS_KEY"] = ""
    error = rows.run(code=3).json["error"]
    assert (error["code"], "`ROWS_SECRET` is empty" in error["message"]) == ("env.missing", True)


def test_what_is_required_together_is_sent_together(project: Any, api: WebApi) -> None:
    both = f"auth: {{basic: {ENTRIES['basic']}, inQuery: {ENTRIES['inQuery']}}}\n"
    secured(project, api.url, {"basic": [], "inQuery": []}, auth=both).run()
    assert "authorization" in api.seen[-1].headers
    assert api.seen[-1].query == {"api_key": KEY}


@pytest.mark.parametrize(
    ("alternative", "auth", "message", "hint"),
    [
        (
            "inQuery",
            "",
            "asks for `inQuery`, which nothing gives",
            "add auth.inQuery: {api_key: NAME, in: query, name: api_key} to the service",
        ),
        (
            "inQuery",
            "auth: {inQuery: {api_key: ROWS_KEY, in: header, name: X-Key}}\n",
            "asks for `inQuery`, which nothing gives",
            "auth.inQuery: it is sent in header `X-Key`, the document asks for query `api_key`",
        ),
        (
            "worded",
            "auth: {worded: {bearer: ROWS_KEY}}\n",
            "asks for `worded`",
            "auth.worded: the document asks for the word `Token` before the token",
        ),
    ],
)
def test_a_document_decides_what_is_required_but_not_where_it_is_sent(
    project: Any, api: WebApi, alternative: str, auth: str, message: str, hint: str
) -> None:
    rows = secured(project, api.url, {alternative: []}, auth=auth)
    rows.run(code=3)
    (problem,) = [
        each
        for each in project.run("validate", "--json").assert_exit(1).json["problems"]
        if each["code"] == "wire.security"
    ]
    assert message in problem["message"]
    assert problem["hint"] == hint
    assert not api.seen


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("auth: {a: {bearer: X, user: Y, password: Z}}\n", "`auth.a` has bearer and user"),
        ("auth: {a: {user: X}}\n", "`auth.a` has `user` without `password`"),
        ("auth: {a: {bearer: X, in: query}}\n", "`auth.a.in` has no meaning beside `bearer`"),
        ("auth_ref: T\nauth: {a: {bearer: X}}\n", "`auth` stands beside `auth_ref`"),
        ("auth: {a: {bearer: hunter2-hunter2}}\n", "expected `NAME`, `env:NAME`"),
        (
            "auth: {a: {bearer: X}}\nmetadata: {headers: {authorization: 'Basic ${B}'}}\n",
            "`auth.a` and `metadata.headers` both set `Authorization`",
        ),
        (
            "auth: {a: {client_id: A, client_secret: B, token_url: 'https://u:p@x.example/t'}}\n",
            "expected an http or https URL without user info",
        ),
    ],
)
def test_auth_is_checked_at_its_place(project: Any, more: str, message: str) -> None:
    ApiProject(project, "https://rows.example").service(more)
    problems = project.run("validate", "--json").assert_exit(1).json["problems"]
    found = [each for each in problems if message in each["message"]]
    assert found
    assert found[0]["file"] == "services/local/rows.yaml"
    assert "hunter2" not in str(problems)


def test_auth_needs_an_address_of_the_service_file(project: Any) -> None:
    rows = ApiProject(project, "https://rows.example")
    rows.document({"/rows": GET}, servers=[{"url": "https://elsewhere.example"}])
    project.write(
        "services/local/rows.yaml",
        "id: rows\nkind: openapi\nspec_ref: docs/rows.json\nauth: {a: {bearer: X}}\n",
    )
    problems = project.run("validate", "--json").assert_exit(1).json["problems"]
    assert any("`auth` needs `base_url`" in each["message"] for each in problems)


# -- OAuth 2 ----------------------------------------------------------------------------------------------------------


def with_client(project: Any, url: str, more: str = "", token_url: str = "") -> ApiProject:
    address = token_url or f"{url}/token"
    entry = f"{{client_id: ROWS_USER, client_secret: ROWS_SECRET, token_url: '{address}'{more}}}"
    return secured(project, url, {"oauth": []}, auth=f"auth: {{oauth: {entry}}}\n")


@pytest.mark.parametrize("how", ["basic", "body"])
def test_a_client_gets_its_token_by_one_post_to_the_address_of_the_service_file(
    project: Any, how: str
) -> None:
    with web_api(Tokens()) as api:
        more = f", scopes: [rows.read, rows.list], client_auth: {how}"
        rows = with_client(project, api.url, more)
        result = rows.run()
        asked, called = api.seen
        form = {name: value[0] for name, value in parse_qs(asked.body.decode()).items()}
        assert (asked.method, asked.path, called.path) == ("POST", "/token", "/v1/rows")
        assert form.pop("grant_type") == "client_credentials"
        assert form.pop("scope") == "rows.read rows.list"
        if how == "basic":
            pair = base64.b64encode(f"ann:{SECRET}".encode()).decode()
            assert asked.headers["authorization"] == f"Basic {pair}"
        else:
            assert form == {"client_id": "ann", "client_secret": SECRET}
        shown = project.run("trace", "@last", "--step", "read", "--io").assert_ok().out
        require_no_secret(project, result.out, result.err, shown)


LOOP = """\
- id: read
  uses: demo.row.read
  config: {while: {condition: "true", max_iterations: 3}}
  output: {rows: outputs.rows}
"""


@pytest.mark.parametrize(("lifetime", "given"), [(3600, 1), ("3600", 1), (None, 1), (0, 3)])
def test_a_token_is_kept_until_it_expires(project: Any, lifetime: Any, given: int) -> None:
    server = Tokens(lifetime)
    with web_api(server) as api:
        rows = with_client(project, api.url)
        project.skill("demo.reads", LOOP, outputs="{rows: {type: array}}")
        rows.run()
    assert server.given == given


def test_a_token_that_the_service_refuses_is_renewed_once(project: Any) -> None:
    server = Tokens()
    with web_api(server) as api:
        rows = with_client(project, api.url)
        project.skill("demo.reads", LOOP, outputs="{rows: {type: array}}")
        answer, calls = server.__call__, []

        def revoke(seen: Seen) -> Reply:
            calls.append(seen.path)
            if len(calls) == 3:
                server.valid = "revoked"
            return answer(seen)

        with web_api(revoke) as revoking:
            rows = with_client(project, revoking.url)
            project.skill("demo.reads", LOOP, outputs="{rows: {type: array}}")
            result = rows.run()
        assert calls == ["/token", "/v1/rows", "/v1/rows", "/token", "/v1/rows", "/v1/rows"]
        shown = project.run("trace", "@last", "--step", "read", "--io").assert_ok().out
        require_no_secret(project, result.out, shown)


@pytest.mark.parametrize(
    ("reply", "code", "message"),
    [
        (
            (401, {"error": "invalid_client", "error_description": f"who is {SECRET}?"}, {}),
            "call.rejected",
            "HTTP 401: invalid_client: who is [masked]?",
        ),
        ((302, {}, {"Location": "https://elsewhere.example/token"}), "call.rejected", "HTTP 302"),
        ((200, {"token": TOKEN}, {}), "call.server-error", "the reply holds no bearer token"),
        ((503, {"trace": TOKEN}, {}), "call.overloaded", "HTTP 503"),
    ],
)
def test_a_token_server_that_gives_no_token_fails_the_call_before_it_leaves(
    project: Any, reply: Reply, code: str, message: str
) -> None:
    with web_api(lambda seen: reply) as api:
        rows = with_client(project, api.url)
        rows.capability(properties={"side_effects": True})
        result = project.run("run", "demo.reads", "--json")
        error = result.json["error"]
        assert error["code"] == code
        assert message in error["message"]
        assert [seen.path for seen in api.seen] == ["/token"]
        require_no_secret(project, result.out, result.err)


def test_no_token_goes_where_a_reply_redirects(project: Any) -> None:
    stolen = WebApi("")
    with web_api(lambda seen: (200, {}, {})) as elsewhere:
        stolen = elsewhere
        server = Tokens()

        def answer(seen: Seen) -> Reply:
            if seen.path == "/token":
                return server(seen)
            return 307, {}, {"Location": f"{elsewhere.url}/v1/rows"}

        with web_api(answer) as api:
            error = with_client(project, api.url).run(code=1).json["error"]
    assert "which is not followed" in error["message"]
    assert not stolen.seen


@pytest.mark.sampled(3)
def test_scenarios_use_a_token_of_their_own_and_no_token_server(project: Any) -> None:
    rows = with_client(project, "https://rows.example", token_url="https://id.example/token")
    schema = {"type": "object", "properties": {"rows": {"type": "array"}}, "required": ["rows"]}
    found = {"description": "ok", "content": {"application/json": {"schema": schema}}}
    operation = {"operationId": "listRows", "responses": {"200": found}}
    rows.document({"/rows": {"get": operation}}, SCHEMES, security=[{"oauth": []}])
    project.write(
        "tooling/openapi_scenarios/rows.json",
        '{"id": "rows", "capability_id": "demo.row.read", "binding_id": "rows", "input": {},'
        ' "expected_output": {"rows": []}}',
    )
    project.run("openapi", "verify-bindings", "--all", env={"ROWS_SECRET": ""}).assert_ok()


# -- files made from a document ---------------------------------------------------------------------------------------


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("scheme", "entry"),
    [
        ("inQuery", "{api_key: WEB_ROW_API_KEY, in: query, name: api_key}"),
        ("inCookie", "{api_key: WEB_ROW_API_KEY, in: cookie, name: sid}"),
        ("worded", "{bearer: WEB_ROW_TOKEN, word: Token}"),
    ],
)
def test_new_binding_writes_the_credentials_that_a_document_asks_for(
    project: Any, api: WebApi, scheme: str, entry: str
) -> None:
    rows = ApiProject(project, api.url)
    schema = {"type": "object", "properties": {"rows": {"type": "array"}}, "required": ["rows"]}
    reply = {"description": "ok", "content": {"application/json": {"schema": schema}}}
    operation = {"operationId": "listRows", "responses": {"200": reply}}
    rows.document({"/rows": {"get": operation}}, SCHEMES, security=[{scheme: []}, {"oauth": []}])
    made = ("new", "binding", "web.row.list", "--from-openapi", "docs/rows.json")
    project.run(*made, "--base-url", f"{api.url}/v1").assert_ok()
    service = (project.root / "services/local/web-row.yaml").read_text()
    assert "elsewhere.example" not in service, "a document names no token server"
    from ruamel.yaml import YAML

    written = YAML(typ="safe").load(service)["auth"][scheme]
    assert written == YAML(typ="safe").load(entry)


DETAIL = {
    "type": "object",
    "required": ["id", "owner"],
    "properties": {
        "id": {"type": "integer"},
        "title": {"type": "string"},
        "owner": {"type": "object", "required": ["login"], "properties": {"login": {}}},
    },
}


def test_new_binding_declares_only_the_outputs_that_are_named(project: Any) -> None:
    reply = {"description": "ok", "content": {"application/json": {"schema": DETAIL}}}
    operation = {"operationId": "getRow", "responses": {"200": reply}}
    made = ("new", "binding", "row.item.get", "--from-openapi", "docs/rows.json")
    with web_api(lambda seen: (200, {"id": 7, "owner": None}, {})) as api:
        rows = ApiProject(project, api.url)
        rows.document({"/row": {"get": operation}})
        address = ("--base-url", f"{api.url}/v1")
        wrong = project.run(*made, *address, "--outputs", "id,titel").assert_exit(2)
        assert "it has no output `titel`; did you mean `title`?" in wrong.err
        project.run(*made, *address, "--outputs", "id,title").assert_ok()
        project.skill(
            "demo.gets",
            "- {id: get, uses: row.item.get, output: {id: outputs.id}}",
            outputs="{id: {type: integer}}",
        )
        assert project.run("run", "demo.gets", "--json").assert_ok().json["outputs"] == {"id": 7}
    project.run(
        "new", "binding", "r", "--from-openapi", "x", "--all", "--outputs", "a"
    ).assert_exit(2)
