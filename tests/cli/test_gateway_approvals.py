"""Approvals in a session of `gateway serve`: a person answers from another process while the client goes on."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes.serving import INITIALIZE, INITIALIZED, calling
from support.gateway_client import (
    GatewayProcess,
    events_of,
    mark,
    server_entry,
    talk_to_gateway,
    text_of,
    write_host_file,
)

anyio = pytest.importorskip("anyio")
pytest.importorskip("mcp")
pytestmark = pytest.mark.sampled(4)


@pytest.fixture
def asking(project: Any) -> Any:
    """A project with one server, whose tool `echo` is marked read-only. The others ask."""
    write_host_file(project, test=server_entry(f"ledger={Path(project.root) / 'ledger'}"))
    mark(project, "test", "echo")
    return project


@pytest.fixture
def gateway(asking: Any) -> Iterator[GatewayProcess]:
    """A gateway in that project, which is killed at the end of the test."""
    running = GatewayProcess(asking)
    yield running
    running.close()


def waiting_ids(project: Any) -> list[str]:
    """The ids of the open requests in the inbox."""
    found = project.installed("approvals", "ls", "--json").assert_ok().json["approvals"]
    return [each["approval_id"] for each in found]


async def wait_for_request(project: Any) -> str:
    """The id of the only open request, as soon as there is one."""
    for _ in range(300):
        if found := await anyio.to_thread.run_sync(waiting_ids, project):
            (id,) = found
            return str(id)
        await anyio.sleep(0.1)
    raise AssertionError("no request")


@pytest.mark.sampled(8)
def test_a_held_call_goes_on_when_a_person_approves_it(asking: Any) -> None:
    async def talk(client: Any) -> None:
        results: list[Any] = []

        async def call() -> None:
            results.append(await client.call_tool("test__structured", {"text": "x"}))

        async with anyio.create_task_group() as group:
            group.start_soon(call)
            id = await wait_for_request(asking)
            assert text_of(await client.call_tool("test__echo", {"text": "hi"})) == "hi"
            done = await anyio.to_thread.run_sync(asking.installed, "approvals", "approve", id)
            assert done.assert_ok().out.startswith(f"granted {id}")
        assert results[0].structured_content == {"said": "x", "n": 1}
        again = await anyio.to_thread.run_sync(asking.installed, "approvals", "approve", id)
        again.assert_exit(2)

    talk_to_gateway(asking, talk)
    types = [event["event_type"] for event in events_of(asking.episode)]
    assert types.count("approval.granted") == types.count("approval.requested") == 1
    asking.run("verify", "@last").assert_ok()
    asking.run("replay", "@last").assert_ok()
    asking.run("trace", "@last").assert_ok()


@pytest.mark.sampled(8)
def test_a_pending_call_is_collected_once_and_a_rejected_one_is_told(asking: Any) -> None:
    async def talk(client: Any) -> None:
        given = {"text": "x"}
        pending = await client.call_tool("test__structured", given)
        assert pending.meta["cogcli/status"] == "pending"
        id = pending.meta["cogcli/approval_id"]
        again = await client.call_tool("test__structured", given)
        assert again.meta["cogcli/approval_id"] == id, "an equal call joins the first"
        await anyio.to_thread.run_sync(asking.installed, "approvals", "approve", id)
        collected = await client.call_tool("test__structured", given)
        assert collected.structured_content == {"said": "x", "n": 1}
        assert collected.meta["cogcli/step_id"] == "c1"
        new = await client.call_tool("test__structured", given)
        assert new.meta["cogcli/status"] == "pending"
        assert new.meta["cogcli/step_id"] == "c2"
        words = ("approvals", "reject", new.meta["cogcli/approval_id"], "--reason", "not today")
        done = await anyio.to_thread.run_sync(lambda: asking.installed(*words))
        done.assert_ok()
        refused = await client.call_tool("test__structured", given)
        assert "not today" in text_of(refused)
        assert refused.meta["cogcli/code"] == "safety.rejected"
        await client.call_tool("test__structured", {"text": "open"})
        words = ("gateway", "status", "--json")
        shown = await anyio.to_thread.run_sync(lambda: asking.installed(*words))
        (session,) = shown.assert_ok().json["sessions"]
        counts = {name: session[name] for name in ("calls", "done", "denied", "pending")}
        assert counts == {"calls": 3, "done": 1, "denied": 1, "pending": 1}
        assert (session["session"], session["status"]) == ("desk", "running")

    talk_to_gateway(asking, talk, "--hold", "0", "--session", "desk")
    assert "3 calls  1 denied" in asking.run("gateway", "status").assert_ok().out
    asking.run("verify", "@last").assert_ok()
    asking.run("replay", "@last").assert_ok()


@pytest.mark.sampled(8)
def test_a_repeated_request_joins_the_first_and_a_key_names_one_call(asking: Any) -> None:
    mark(asking, "test", "waits", "echo")

    async def talk(client: Any) -> None:
        steps: list[str] = []

        async def call() -> None:
            result = await client.call_tool("test__waits", {"text": "0.5"})
            steps.append(result.meta["cogcli/step_id"])

        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(call)
        assert len(set(steps)) == 1
        meta = {"cogcli/idempotency-key": "k1"}
        first = await client.call_tool("test__echo", {"text": "a"}, meta=meta)
        second = await client.call_tool("test__echo", {"text": "a"}, meta=meta)
        assert first.meta["cogcli/step_id"] == second.meta["cogcli/step_id"]
        other = await client.call_tool("test__echo", {"text": "b"}, meta=meta)
        assert "came with another call" in text_of(other)
        new = await client.call_tool("test__echo", {"text": "a"})
        assert new.meta["cogcli/step_id"] != first.meta["cogcli/step_id"]

    talk_to_gateway(asking, talk)
    types = [event["event_type"] for event in events_of(asking.episode)]
    assert types.count("call.requested") == 3
    asking.run("replay", "@last").assert_ok()


@pytest.mark.sampled(8)
@pytest.mark.parametrize("moment", ["waiting", "calling"])
def test_a_killed_gateway_leaves_an_episode_that_everything_reads(
    asking: Any, gateway: GatewayProcess, moment: str
) -> None:
    gateway.send(INITIALIZE, INITIALIZED, calling("echo", "test__echo", {"text": "hi"}))
    gateway.wait_for_answer("echo")
    gateway.send(calling("hangs", "test__hangs", {"text": "x"}))
    id = anyio.run(wait_for_request, asking)
    if moment == "calling":
        asking.run("approvals", "approve", id).assert_ok()
        gateway.wait_for_event("step.started", times=2)
    gateway.process.send_signal(signal.SIGKILL)
    gateway.process.wait(30)
    asking.run("verify", "@last").assert_exit(0)
    asking.run("trace", "@last").assert_ok()
    asking.run("report", "@last", "-o", "page.html").assert_ok()
    asking.run("replay", "@last").assert_ok()
    assert "interrupted" in asking.run("ls").assert_ok().out
    resumed = asking.run("resume", "@last")
    if moment == "waiting":
        resumed.assert_ok()
    else:
        assert resumed.code == 5, resumed.err
        assert "effect.in-doubt" in resumed.err
        asking.run("resume", "@last", "--in-doubt", "c2=fail", "--by", "ada").assert_ok()
    asking.run("verify", "@last").assert_ok()
    asking.run("replay", "@last").assert_ok()
    assert json.loads((asking.episode / "state.json").read_text())["outcomes"]["status"] == "ok"


def test_an_effect_that_is_cut_off_at_the_end_waits_for_a_person(
    asking: Any, gateway: GatewayProcess
) -> None:
    gateway.send(INITIALIZE, INITIALIZED, calling("hangs", "test__hangs", {"text": "x"}))
    id = anyio.run(wait_for_request, asking)
    asking.run("approvals", "approve", id).assert_ok()
    gateway.wait_for_event("step.started")
    begun = time.monotonic()
    gateway.close_input()
    gateway.process.wait(60)
    assert time.monotonic() - begun < 55
    assert "pending" in asking.run("ls").assert_ok().out
    asking.run("verify", "@last").assert_ok()
    asking.run("replay", "@last").assert_ok()
