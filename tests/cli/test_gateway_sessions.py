"""Sessions of `gateway serve` over several runs: limits, names, and calls that may have happened."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from fakes.serving import INITIALIZE, INITIALIZED, calling
from support.gateway_client import (
    GatewayProcess,
    events_of,
    server_entry,
    talk_to_gateway,
    text_of,
    write_host_file,
)

anyio = pytest.importorskip("anyio")
pytest.importorskip("mcp")
pytestmark = pytest.mark.sampled(6)

PACK = """
contract_meta: {contract_version: "1.0"}
pack_meta: {pack_id: desk, pack_version: 1.0.0, defaults: {safety_mode: destructive}}
policy_layer: {permissions: [{role: clerk, allow: [mcp.test.echo, mcp.test.dies, mcp.test.hangs]}]}
tooling_layer:
  capabilities:
    mcp.test.echo: {approval_mode: network}
    mcp.test.dies: {approval_mode: network}
    mcp.test.hangs: {approval_mode: network}
decision_layer:
  intents:
    - {id: help, phrases: [help], risk: network, capabilities: [mcp.test.echo, mcp.test.dies, mcp.test.hangs]}
tone_and_comms: {agent: {role: clerk}}
"""
GOVERNED = ("--pack", "desk@1.0.0", "--intent", "help", "--user", "ada")


@pytest.fixture
def ledger(project: Any) -> Path:
    """What the server of a project saw. A pack allows its tools, none of which is read-only."""
    ledger = Path(project.root) / "ledger"
    write_host_file(project, test=server_entry(f"ledger={ledger}"))
    project.write("packs/desk/1.0.0.yaml", PACK)
    return ledger


def calls_seen(ledger: Path, tool: str) -> int:
    """How often the server saw a call of a tool."""
    return ledger.read_text().split("\n").count(f"call {tool}")


def starts_of(project: Any) -> list[dict[str, Any]]:
    """The `gateway` of the first events of all sessions, oldest first."""
    episodes = sorted(Path(project.root).glob(".cogcli/runs/ep_*")) or sorted(
        project.episode.parent.glob("ep_*")
    )
    return [events_of(each)[0]["payload"]["gateway"] for each in episodes]


def test_a_session_is_sealed_after_its_calls_and_the_next_run_names_it(
    project: Any, ledger: Path
) -> None:
    async def talk(client: Any) -> None:
        episodes = []
        for number in range(5):
            said = await client.call_tool("test__echo", {"text": str(number)})
            assert text_of(said) == str(number)
            episodes.append(said.meta["cogcli/episode_id"])
        assert [episodes.index(each) for each in episodes] == [0, 0, 2, 2, 4]

    talk_to_gateway(project, talk, "--max-calls", "2", *GOVERNED)
    first, second, third = starts_of(project)
    assert first["client"].startswith("mcp ")
    assert "continues" not in first
    assert second["continues"] < third["continues"]
    for id in (second["continues"], third["continues"], "@last"):
        project.run("verify", id).assert_ok()
        project.run("replay", id).assert_ok()
    statuses = project.run("gateway", "status", "--json").assert_ok().json["sessions"]
    assert [each["continues"] for each in statuses] == [
        third["continues"],
        second["continues"],
        "",
    ]


@pytest.mark.sampled(12)
@pytest.mark.parametrize(("flag", "reason"), [("--idle", "idle"), ("--max-age", "age")])
def test_an_idle_or_old_session_is_sealed(
    project: Any, ledger: Path, flag: str, reason: str
) -> None:
    async def talk(client: Any) -> None:
        first = await client.call_tool("test__echo", {"text": "a"})
        for _ in range(200):
            status = await anyio.to_thread.run_sync(
                lambda: project.installed("gateway", "status", "--json").json["sessions"]
            )
            if status[0]["status"] == "ok":
                break
            await anyio.sleep(0.1)
        second = await client.call_tool("test__echo", {"text": "b"})
        assert first.meta["cogcli/episode_id"] != second.meta["cogcli/episode_id"]

    talk_to_gateway(project, talk, flag, "1s", *GOVERNED)
    assert starts_of(project)[1]["continues"]
    episode = starts_of(project)[1]["continues"]
    ended = [
        event["payload"]["reason"]
        for event in events_of(project.episode.parent / episode)
        if event["event_type"] == "session.ended"
    ]
    assert ended == [reason]


@pytest.mark.sampled(12)
def test_a_session_of_the_same_name_names_the_one_before(project: Any, ledger: Path) -> None:
    episodes = []

    async def talk(client: Any) -> None:
        meta = {"cogcli/idempotency-key": "k1"}
        said = await client.call_tool("test__echo", {"text": "x"}, meta=meta)
        assert text_of(said) == "x"
        episodes.append(said.meta["cogcli/episode_id"])
        other = await client.call_tool("test__echo", {"text": "y"}, meta=meta)
        assert "came with another call" in text_of(other)
        await client.call_tool("test__echo", {"text": "z"})

    for name in ("desk", "other", "desk"):
        talk_to_gateway(project, talk, "--session", name, *GOVERNED)
    desk, other, again = starts_of(project)
    assert "continues" not in desk
    assert "continues" not in other
    assert again["continues"] == episodes[0]
    assert episodes[2] == episodes[0], "the key has the result of the run before"
    assert calls_seen(ledger, "echo") == 5
    project.run("verify", "@last").assert_ok()


@pytest.mark.sampled(12)
def test_a_call_in_doubt_of_a_killed_session_is_not_made_again(project: Any, ledger: Path) -> None:
    gateway = GatewayProcess(project, "--session", "desk", *GOVERNED)
    try:
        gateway.send(INITIALIZE, INITIALIZED, calling("echo", "test__echo", {"text": "hi"}))
        gateway.wait_for_answer("echo")
        gateway.send(calling("hangs", "test__hangs", {"text": "x"}))
        gateway.wait_for_event("step.started", times=2)
        gateway.process.send_signal(signal.SIGKILL)
        gateway.process.wait(30)
    finally:
        gateway.close()
    killed = project.episode.name

    async def talk(client: Any) -> None:
        doubt = await client.call_tool("test__hangs", {"text": "x"})
        assert doubt.meta["cogcli/code"] == "effect.in-doubt"
        assert (doubt.meta["cogcli/episode_id"], doubt.meta["cogcli/step_id"]) == (killed, "c2")
        assert killed in text_of(doubt)
        words = ("resume", killed, "--in-doubt", "c2=fail", "--by", "ada")
        decided = await anyio.to_thread.run_sync(lambda: project.installed(*words))
        assert decided.code == 0, decided.err
        assert calls_seen(ledger, "hangs") <= 1
        with anyio.move_on_after(2):
            await client.call_tool("test__hangs", {"text": "x"})
            raise AssertionError("it hangs")

    talk_to_gateway(project, talk, "--session", "desk", *GOVERNED)
    assert calls_seen(ledger, "hangs") == 2, "a person said that it did not happen"


@pytest.mark.sampled(12)
@pytest.mark.parametrize("choice", ["fail", "skip", "done", "open"])
def test_a_person_decides_about_a_call_in_doubt_while_the_session_lives(
    project: Any, ledger: Path, choice: str
) -> None:
    def decide(*words: str) -> Any:
        return project.installed("resume", "@last", "--by", "ada", *words)

    async def talk(client: Any) -> None:
        doubt = await client.call_tool("test__dies", {"text": "x"})
        assert doubt.meta["cogcli/code"] == "effect.in-doubt"
        again = await client.call_tool("test__dies", {"text": "x"})
        assert again.meta["cogcli/step_id"] == "c1"
        assert "cogcli resume" in text_of(again)
        if choice == "open":
            rerun = await anyio.to_thread.run_sync(lambda: decide("--in-doubt", "c1=rerun"))
            assert rerun.code == 2
            assert "its client makes the calls" in rerun.err
            return
        words = ["--in-doubt", f"c1={choice}"]
        if choice == "done":
            words += ["--output", json.dumps({"structured": None, "text": "so", "content": []})]
        done = await anyio.to_thread.run_sync(lambda: decide(*words))
        assert done.code == 0, done.err
        collected = await client.call_tool("test__dies", {"text": "x"})
        assert collected.meta["cogcli/step_id"] == "c1"
        status = {"fail": "failed", "skip": "skipped", "done": "done"}[choice]
        assert collected.meta["cogcli/status"] == status
        assert text_of(await client.call_tool("test__echo", {"text": "on"})) == "on"

    talk_to_gateway(project, talk, *GOVERNED)
    assert calls_seen(ledger, "dies") == 1
    status = "pending" if choice == "open" else "ok"
    assert project.run("gateway", "status", "--json").json["sessions"][0]["status"] == status
    project.run("verify", "@last").assert_ok()
    project.run("replay", "@last").assert_ok()
    project.run("trace", "@last").assert_ok()
