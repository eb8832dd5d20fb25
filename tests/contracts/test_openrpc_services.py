"""A skill that calls a JSON-RPC server of other people's making (docs/reference/protocols.md#counterparts)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes.surroundings import surroundings
from support.asgi import serving_app
from support.invoking import calling
from support.remote_project import attempts, remote

from cogcli.declarations.service_spec import Service

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
"""What these servers are built of has deprecations of its own."""


def sums_server() -> Any:
    """The methods, as the `openrpc` package serves them."""
    from openrpc import RPCServer

    rpc = RPCServer(title="Sums", version="1.0.0")

    @rpc.method(name="sum.add")
    async def add(a: int, b: int = 1) -> int:
        return a + b

    @rpc.method(name="sum.fail")
    async def fail() -> int:
        raise ValueError("not today")

    return rpc


def mounted(rpc: Any, seen: Callable[[Any], None] = lambda asked: None) -> Any:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    async def call(request: Request) -> Response:
        asked = await request.body()
        seen(json.loads(asked))
        answer = await rpc.process_request_async(asked)
        return (
            Response(answer, media_type="application/json")
            if answer is not None
            else Response(status_code=204)
        )

    return Starlette(routes=[Route("/rpc", call, methods=["POST"])])


@pytest.fixture(scope="module")
def sums() -> Iterator[tuple[str, dict[str, Any]]]:
    """The address of the running server, and its document."""
    rpc = sums_server()
    with serving_app(mounted(rpc)) as url:
        yield f"{url}/rpc", rpc.discover()


def test_a_skill_calls_a_method_through_the_servers_own_document(project: Any, sums: Any) -> None:
    url, document = sums
    project.write("docs/sums.json", json.dumps(document))
    command = remote(
        project, "openrpc", url, "sum.add", service="spec_ref: docs/sums.json\n",
        inputs="{a: {type: integer, required: true}, b: {type: integer}}",
        outputs="{total: {type: integer, required: true}}",
        request="{a: input.a, b: input.b}", response="{total: response}",
    )  # fmt: skip
    done = project.run(*command, "-p", "a:=2", "-p", "b:=40").assert_ok()
    assert done.json["outputs"] == {"total": 42}
    assert project.run(*command, "-p", "a:=2").assert_ok().json["outputs"] == {"total": 3}
    (attempt,) = attempts(project)
    assert attempt["request"]["body"]["method"] == "sum.add"
    project.run("verify", "--all").assert_ok()


def test_its_errors_are_ours(sums: Any) -> None:
    url, _ = sums
    with calling("openrpc", url) as call:
        assert call.failure("sum.add", {"a": "x"}).code == "call.rejected"
        assert call.failure("sum.nothing").hint == "cogcli services refresh svc"
        assert call.failure("sum.fail").code == "call.server-error"
        assert call("sum.add", {"a": 1}).body == 2


def test_a_notification_is_answered_by_nothing(sums: Any, tmp_path: Path) -> None:
    url, document = sums
    silent = [
        {name: method[name] for name in method if name != "result"}
        for method in document["methods"]
    ]
    told = json.dumps({**document, "methods": silent})
    with calling("openrpc", url, document=told, folder=tmp_path) as call:
        assert call("sum.add", {"a": 1}).body == {}


def test_the_service_gives_the_document_it_goes_by(sums: Any) -> None:
    from cogcli.protocols.live_document import fetch_document

    url, document = sums
    service = Service(
        id="sums", kind="openrpc", network="private", trusted=True, settings={"url": url}
    )
    assert fetch_document(service, surroundings(), 10) == json.loads(json.dumps(document))


def test_each_item_of_a_foreach_is_a_request_of_its_own(project: Any) -> None:
    rpc = sums_server()
    posted: list[Any] = []
    with serving_app(mounted(rpc, posted.append)) as url:
        project.write("docs/sums.json", json.dumps({**rpc.discover(), "x-batch": True}))
        command = remote(
            project, "openrpc", f"{url}/rpc", "sum.add", service="spec_ref: docs/sums.json\n",
            inputs="{a: {type: integer, required: true}}", outputs="{total: {type: integer, required: true}}",
            request="{a: input.a, b: 10}", response="{total: response}",
        )  # fmt: skip
        project.skill(
            "remote.asking",
            "- {id: add_all, uses: remote.thing.ask, input: {a: item}, output: {total: outputs.totals},"
            ' config: {foreach: {items: "inputs.numbers", max_parallel: 4}}}',
            inputs="{numbers: {type: array, required: true}}",
            outputs="{totals: {type: array}}",
        )
        done = project.run(*command, "-p", "numbers:=[1,2,3,4,5,6]").assert_ok()
        assert done.json["outputs"] == {"totals": [11, 12, 13, 14, 15, 16]}
        assert sorted(call["params"]["a"] for call in posted) == [1, 2, 3, 4, 5, 6]
        assert [each["status"] for each in attempts(project)] == ["success"] * 6
        project.run("verify", "--all").assert_ok()
