"""Skills that call web APIs of other people's making: FastAPI and connexion, as they come
(docs/reference/protocols.md#counterparts)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from fakes.surroundings import surroundings
from support.asgi import serving_app
from support.invoking import calling
from support.raw_server import serving
from support.remote_project import SECRET, attempts, hits, remote

from cogcli.base.errors import RuntimeErrorBase
from cogcli.declarations.service_spec import Service

pytestmark = [pytest.mark.filterwarnings("ignore::DeprecationWarning"), pytest.mark.sampled(6)]
"""What these servers are built of has deprecations of its own."""


@pytest.fixture(scope="module")
def notes() -> Iterator[tuple[str, dict[str, Any]]]:
    """The address of the running API, and its document."""
    from support.notes_app import app

    with serving_app(app) as url:
        yield url, app.openapi()


def test_a_skill_reads_through_the_services_own_document(project: Any, notes: Any) -> None:
    url, document = notes
    project.write("docs/notes.json", json.dumps(document))
    command = remote(
        project, "openapi", url, "getNote", service="spec_ref: docs/notes.json\n",
        inputs="{id: {type: string, required: true}, tags: {type: array}}",
        outputs="{id: {type: string, required: true}, tags: {type: array}, mode: {type: string}}",
        request="{path.id: input.id, query.tag: input.tags, header.x-mode: quiet}",
        response="{id: response.id, tags: response.tags, mode: response.mode}",
    )  # fmt: skip
    done = project.run(*command, "-p", "id=a/b c", "-p", 'tags:=["x","y"]')
    # A path parameter of FastAPI holds no slash, however it is encoded: its own answer is 404.
    assert done.json["error"]["code"] == "call.rejected"
    done = project.run(*command, "-p", "id=ä b?", "-p", 'tags:=["x","y"]').assert_ok()
    assert done.json["outputs"] == {"id": "ä b?", "tags": ["x", "y"], "mode": "quiet"}
    (attempt,) = attempts(project)
    assert (attempt["status_code"], attempt["method"]) == (200, "GET")
    project.run("verify", "--all").assert_ok()


def test_a_skill_writes_with_a_token_and_meets_the_services_own_validation(
    project: Any, notes: Any
) -> None:
    url, document = notes
    project.write("docs/notes.json", json.dumps(document))
    command = remote(
        project, "openapi", url, "addNote", service="spec_ref: docs/notes.json\nauth_ref: A_KEY\n",
        inputs="{text: {type: any, required: true}}",
        outputs="{text: {type: string, required: true}, stars: {type: integer}}",
        response="{text: response.text, stars: response.stars}", properties="{side_effects: true, idempotent: true}",
    )  # fmt: skip
    env = {"A_KEY": SECRET}
    done = project.run(*command, "-p", "text=hi", env=env).assert_ok()
    assert done.json["outputs"] == {"text": "HI", "stars": 1}
    refused = project.run(*command, "-p", "text:=3", env=env).assert_exit(1)
    assert refused.json["error"]["code"] == "call.rejected"
    assert "HTTP 422" in refused.json["error"]["message"]
    assert hits(project) == []
    project.run("verify", "--all").assert_ok()


def test_text_and_nothing_are_replies_too(notes: Any, tmp_path: Path) -> None:
    url, document = notes
    with calling("openapi", url, document=json.dumps(document), folder=tmp_path) as call:
        assert call("plain", response_mode="text").body == {"text": "some text"}
        assert call("dropNote", {"id": 3}).body == {}
        assert call.failure("dropNote", {"id": "x"}).code == "call.rejected"
        assert "no such note" in call.failure("getNote", {"id": "none"}).message


def test_the_service_gives_the_document_it_goes_by(notes: Any) -> None:
    from cogcli.protocols.live_document import fetch_document

    url, document = notes
    service = Service(
        id="notes",
        kind="openapi",
        network="private",
        trusted=True,
        settings={"base_url": f"{url}/v1"},
    )
    assert fetch_document(service, surroundings(), 10) == json.loads(json.dumps(document))


def test_calls_go_through_the_environments_proxy_where_that_is_asked_for(project: Any) -> None:
    with serving(lambda c: c.reply(b'{"text": "by proxy"}')) as proxy:
        command = remote(
            project, "openapi", "http://nobody.example/api", "ask", network="public",
            outputs="{text: {type: string, required: true}}",
        )  # fmt: skip
        env = {
            "http_proxy": f"http://me:{SECRET}@127.0.0.1:{proxy.port}",
            "COGCLI_USE_ENV_PROXY": "1",
        }
        done = project.run(*command, env=env).assert_ok()
        assert done.json["outputs"] == {"text": "by proxy"}
        assert proxy.requests[0].line == "POST http://nobody.example/api/ask HTTP/1.1"
        (attempt,) = attempts(project)
        assert attempt["proxy"] == proxy.url
        assert hits(project) == []


CONNEXION = """
openapi: "3.0.3"
info: {title: Sums, version: "1"}
paths:
  /sum:
    post:
      operationId: connexion_sums.total
      requestBody:
        required: true
        content:
          application/json:
            schema:
              type: object
              required: [numbers]
              properties: {numbers: {type: array, items: {type: number}}, break: {type: boolean}}
      responses:
        "200":
          description: The sum.
          content:
            application/json:
              schema: {type: object, required: [total], properties: {total: {type: number}}}
"""
HANDLER = """
def total(body):
    return {"sum": 1} if body.get("break") else {"total": sum(body["numbers"])}
"""


def test_a_service_that_validates_both_ways(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from connexion import AsyncApp

    (tmp_path / "api.yaml").write_text(CONNEXION)
    (tmp_path / "connexion_sums.py").write_text(HANDLER)
    monkeypatch.syspath_prepend(str(tmp_path))
    app = AsyncApp("sums", specification_dir=str(tmp_path))
    app.add_api("api.yaml", strict_validation=True, validate_responses=True)
    operation = "connexion_sums.total"
    with (
        serving_app(app) as url,
        calling("openapi", url, document=CONNEXION, folder=tmp_path) as call,
    ):
        assert call(operation, {"numbers": [1, 2.5]}).body == {"total": 3.5}
        refused = call.failure(operation, {"numbers": ["x"]})
        assert (refused.code, "HTTP 400" in refused.message) == ("call.rejected", True)
        assert call.failure(operation, {"numbers": [], "break": True}).code == "call.server-error"


def payload_of(case: Any) -> dict[str, Any]:
    """A generated request as the payload of a binding."""
    places = {
        "path": case.path_parameters,
        "query": case.query,
        "header": case.headers,
        "body": case.body,
    }
    return {
        f"{place}.{name}": value
        for place, values in places.items()
        if isinstance(values, Mapping)
        for name, value in values.items()
        if name != "Authorization"  # made up for the security scheme: that header is the service's
    }


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("operation", ["getNote", "addNote", "dropNote"])
def test_generated_inputs_find_no_crash(notes: Any, tmp_path: Path, operation: str) -> None:
    """Whatever the service's own document allows goes out and is understood, or is refused by name."""
    import schemathesis
    from hypothesis import HealthCheck, given, settings

    url, document = notes
    generated = (
        schemathesis.openapi.from_dict(document).find_operation_by_id(operation).as_strategy()
    )
    ends: set[str] = set()
    described = {"document": json.dumps(document), "folder": tmp_path}
    with calling("openapi", url, **described, auth_ref="KEY", environ={"KEY": SECRET}) as call:

        @settings(max_examples=25, suppress_health_check=list(HealthCheck), database=None)
        @given(case=generated)
        def send(case: Any) -> None:
            try:
                call(operation, payload_of(case))
                ends.add("ok")
            except RuntimeErrorBase as error:
                ends.add(error.code)

        send()
    assert "ok" in ends
    assert ends <= {"ok", "call.rejected", "request.value", "request.missing", "wire.parameter"}
