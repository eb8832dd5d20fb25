"""Gateways that are killed while many sessions make calls: no effect happens twice, and each episode verifies."""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fakes.serving import INITIALIZE, INITIALIZED, calling
from support.examples import LONG
from support.gateway_client import GatewayProcess, server_entry, write_host_file

pytest.importorskip("mcp")

pytestmark = pytest.mark.slow

SESSIONS, KILLS = (20, 5) if LONG else (2, 2)
CALLS = int(os.environ.get("COGCLI_KILL_CALLS", "500")) if LONG else 12
"""The calls of each session."""
PART = CALLS // (KILLS + 1)
"""The most calls that a gateway answers before it is killed, so that the last one has some left."""
PACK = """
contract_meta: {contract_version: "1.0"}
pack_meta:
  pack_id: desk
  pack_version: 1.0.0
  defaults:
    safety_mode: destructive
    budget: {tool_calls: {per_turn: 100000, per_workflow: 100000}, wall_clock_ms: 100000000}
policy_layer: {permissions: [{role: clerk, allow: [mcp.test.writes]}]}
tooling_layer: {capabilities: {mcp.test.writes: {approval_mode: network}}}
decision_layer:
  intents: [{id: help, phrases: [help], risk: network, capabilities: [mcp.test.writes]}]
tone_and_comms: {agent: {role: clerk}}
"""
GOVERNED = ("--pack", "desk@1.0.0", "--intent", "help", "--user", "ada")


class Client:
    """One session: it makes its calls in order, and makes a call again whose reply it did not get."""

    def __init__(self, project: Any, name: str) -> None:
        self._project = project
        self.name = name
        self.doubts: set[str] = set()
        self.done: set[str] = set()
        self.kills = 0

    def run(self, seed: int) -> None:
        """Make all calls. The gateway is killed a few times, each at another moment."""
        drawn = random.Random(seed)
        waiting = [f"{self.name}-{number}" for number in range(CALLS)]
        while waiting:
            gateway = GatewayProcess(self._project, "--session", self.name, *GOVERNED)
            try:
                gateway.send(INITIALIZE, INITIALIZED)
                if self.kills < KILLS:
                    self.kills += 1
                    self._make_calls(gateway, waiting, drawn.randrange(2, PART + 1))
                    self._kill_in_call(gateway, waiting[0], drawn.random())
                else:
                    self._make_calls(gateway, waiting, len(waiting))
                    gateway.close_input()
                    gateway.process.wait(600)
            finally:
                gateway.close()

    def _make_calls(self, gateway: GatewayProcess, waiting: list[str], calls: int) -> None:
        """Make this many calls, and wait for each answer."""
        for _ in range(calls):
            self._send(gateway, waiting[0])
            self._note(waiting[0], gateway.wait_for_answer(waiting[0])["result"])
            del waiting[0]

    def _kill_in_call(self, gateway: GatewayProcess, text: str, moment: float) -> None:
        """Make one more call, and kill the gateway while it is on its way."""
        self._send(gateway, text)
        time.sleep(moment * 0.03)
        gateway.process.kill()

    def _send(self, gateway: GatewayProcess, text: str) -> None:
        key = {"cogcli/idempotency-key": text}
        gateway.send(calling(text, "test__writes", {"text": text}, **key))

    def _note(self, text: str, result: dict[str, Any]) -> None:
        if result.get("isError"):
            assert result["_meta"]["cogcli/code"] == "effect.in-doubt", result
            self.doubts.add(text)
        else:
            assert result["content"][0]["text"] == text
            self.done.add(text)


@pytest.mark.sampled(6)
@pytest.mark.usefixtures("hours_in_a_long_run")
def test_no_effect_happens_twice_and_each_episode_verifies(project: Any) -> None:
    ledger = Path(project.root) / "ledger"
    write_host_file(project, test=server_entry(f"ledger={ledger}"))
    project.write("packs/desk/1.0.0.yaml", PACK)
    project.installed("gateway", "accept", "test", "--from", ".mcp.json").assert_ok()
    clients = [Client(project, f"s{number}") for number in range(SESSIONS)]
    with ThreadPoolExecutor(SESSIONS) as pool:
        for future in [pool.submit(client.run, number) for number, client in enumerate(clients)]:
            future.result()
    written = Counter(
        line.removeprefix("wrote ")
        for line in ledger.read_text().splitlines()
        if line.startswith("wrote ")
    )
    assert set(written.values()) == {1}, "an effect happened twice"
    for client in clients:
        assert client.kills == KILLS
        assert client.done <= set(written), "a result was recorded without a call"
        assert len(client.done | client.doubts) == CALLS
    found = project.run("gateway", "status", "--json", "--limit", "1000").assert_ok().json
    assert len(found["sessions"]) == SESSIONS * (KILLS + 1), "a gateway had no run"
    for session in found["sessions"]:
        project.run("verify", session["episode_id"]).assert_ok()
        project.run("replay", session["episode_id"]).assert_ok()
