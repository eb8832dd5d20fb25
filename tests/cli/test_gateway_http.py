"""`gateway serve --http`: a token for each request, and the session that a request belongs to."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fakes.serving import INITIALIZE, Server, serving
from support.gateway_client import events_of, mark, server_entry, text_of, write_host_file

anyio = pytest.importorskip("anyio")
pytest.importorskip("mcp")
pytestmark = pytest.mark.sampled(6)

TOKEN = "a-token-of-24-characters"


@pytest.fixture
def ledger(project: Any) -> Path:
    """What the server of a project saw."""
    ledger = Path(project.root) / "ledger"
    write_host_file(project, test=server_entry(f"ledger={ledger}"))
    mark(project, "test", "echo", "waits")
    project.env["COGCLI_GATEWAY_TOKEN"] = TOKEN
    return ledger


@contextmanager
def listening(project: Any, *arguments: str) -> Iterator[tuple[Server, str]]:
    """A gateway over HTTP, and its URL."""
    words = ("--from", ".mcp.json", "--http", "0", *arguments)
    with serving(project, *words, command=("gateway", "serve")) as server:
        yield server, server.said("listening on").split()[-1]


def talk(url: str, what: Callable[[Any], Awaitable[None]], **headers: str) -> None:
    """Have the SDK's client talk to a gateway with the token and these headers."""
    import httpx2
    import mcp
    from mcp.client.streamable_http import streamable_http_client

    given = {"Authorization": f"Bearer {TOKEN}"} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }

    async def main() -> None:
        with anyio.fail_after(90):
            async with httpx2.AsyncClient(headers=given, timeout=90) as http:
                transport = streamable_http_client(url, http_client=http)
                async with mcp.Client(transport) as client:
                    await what(client)

    anyio.run(main)


def status_of(url: str, **headers: str) -> int:
    """The status of a handshake with these headers."""
    request = urllib.request.Request(
        url,
        json.dumps(INITIALIZE).encode(),
        {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            **headers,
        },
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return int(reply.status)
    except urllib.error.HTTPError as error:
        return error.code


@pytest.mark.sampled(12)
def test_each_request_needs_the_token_and_a_host_of_this_machine(
    project: Any, ledger: Path
) -> None:
    good = {"Authorization": f"Bearer {TOKEN}"}
    with listening(project) as (server, url):
        assert status_of(url) == 401
        assert status_of(url, Authorization=f"Bearer {TOKEN[:-1]}x") == 401
        assert status_of(url, Host="evil.example", **good) == 421
        assert status_of(url, Origin="https://evil.example", **good) == 403
        assert status_of(url, **good) == 200
        assert server.stop() == 143
        said = b"".join(server.err)
    assert TOKEN.encode() not in said


def test_a_token_is_required_and_is_read_from_a_file_of_its_owner(
    project: Any, ledger: Path
) -> None:
    file = project.write("token", TOKEN)
    file.chmod(0o644)
    serve = ("gateway", "serve", "--from", ".mcp.json", "--http", "0")
    assert "chmod 600" in project.run(*serve, "--token-file", "token").assert_exit(2).err
    del project.env["COGCLI_GATEWAY_TOKEN"]
    assert "COGCLI_GATEWAY_TOKEN" in project.run(*serve).assert_exit(2).err
    project.env["COGCLI_GATEWAY_TOKEN"] = "short"
    project.run(*serve).assert_exit(2)
    project.run("gateway", "serve", "--token-file", "token").assert_exit(2)
    project.run("gateway", "serve", "--session-from", "header:X-Run").assert_exit(2)
    project.run(*serve, "--session-from", "cookie:x").assert_exit(2)
    project.run(*serve, "--session-from", "meta:x", "--session", "desk").assert_exit(2)
    file.chmod(0o600)
    with listening(project, "--token-file", "token") as (_, url):
        assert status_of(url, Authorization=f"Bearer {TOKEN}") == 200


def test_a_header_names_the_session_and_a_call_without_it_is_refused(
    project: Any, ledger: Path
) -> None:
    async def say(client: Any) -> None:
        assert text_of(await client.call_tool("test__echo", {"text": "hi"})) == "hi"

    async def refused(client: Any) -> None:
        assert (await client.list_tools()).tools
        answer = await client.call_tool("test__echo", {"text": "no"})
        assert answer.is_error
        assert "names no session" in text_of(answer)

    with listening(project, "--session-from", "header:X-Run") as (server, url):
        for name in ("one", "two", "one"):
            talk(url, say, X_Run=name)
        talk(url, refused)
        talk(url, refused, X_Run="../etc")
        assert server.stop() == 143
    sessions = project.run("gateway", "status", "--json").assert_ok().json["sessions"]
    found = sorted((each["session"], each["calls"], each["status"]) for each in sessions)
    assert found == [("one", 2, "ok"), ("two", 1, "ok")]
    for each in sessions:
        project.run("verify", each["episode_id"]).assert_ok()
        events = (project.episode.parent / each["episode_id"] / "events.jsonl").read_text()
        assert TOKEN not in events


def test_an_unresolved_call_may_have_a_session_of_its_own(project: Any, ledger: Path) -> None:
    async def say(client: Any) -> None:
        for text in ("a", "b"):
            assert text_of(await client.call_tool("test__echo", {"text": text})) == text

    flags = ("--session-from", "meta:run", "--on-unresolved", "new")
    with listening(project, *flags) as (server, url):
        talk(url, say)
        server.stop()
    sessions = project.run("gateway", "status", "--json").assert_ok().json["sessions"]
    assert {each["session"] for each in sessions} == {""}
    assert sum(each["calls"] for each in sessions) == 2


def test_a_client_that_connects_again_joins_its_call(project: Any, ledger: Path) -> None:
    async def give_up(client: Any) -> None:
        with anyio.move_on_after(2):
            await client.call_tool("test__waits", {"text": "6"})
            raise AssertionError("it waits for six seconds")

    async def again(client: Any) -> None:
        waited = await client.call_tool("test__waits", {"text": "6"})
        assert text_of(waited) == "waited"

    with listening(project) as (server, url):
        talk(url, give_up)
        talk(url, again)
        assert server.stop() == 143
    types = [event["event_type"] for event in events_of(project.episode)]
    assert types.count("call.requested") == 1
    assert ledger.read_text().split("\n").count("call waits") == 1
    project.run("verify", "@last").assert_ok()
