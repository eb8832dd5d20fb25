"""The inputs of hooks as hosts document them, and the answers in the words of each host."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML
from support.examples import examples

from cogcli.app.settings.user_dirs import state_home
from cogcli.base.errors import UsageError
from cogcli.gateway.hook_client import session_key
from cogcli.gateway.hook_marks import find_host
from cogcli.gateway.hook_wire import SECONDS, SESSION_MEMBERS, render_decision, state_folder
from cogcli.gateway.host_specs import capability_id, with_host_tools
from cogcli.gateway.hosts import HOSTS, UnusableInput, read_event
from cogcli.specs.catalog import Catalog

CASES = YAML(typ="safe").load(Path(__file__).with_name("host_inputs.yaml"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['host']}-{case.get('kind')}")
def test_inputs_as_the_hosts_document_them(case: dict[str, Any]) -> None:
    host, data = HOSTS[case["host"]], json.dumps(case["input"]).encode()
    if "fault" in case:
        with pytest.raises(UnusableInput, match=case["fault"]):
            read_event(host, data)
        return
    event = read_event(host, data)
    assert event.kind == case["kind"]
    if event.kind == "end":
        assert event.call is None
        return
    call = event.call
    assert call is not None
    assert (call.tool, call.call_id, call.cwd) == (case["tool"], case["id"], case["cwd"])
    assert call.arguments == case["arguments"]
    assert event.response == case.get("response")
    assert capability_id(host, call.tool) == case["capability"]


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b'{"a": 1, "a": 2}', b"\xff", b"[" * 100_000])
def test_other_inputs_are_faults(data: bytes) -> None:
    for host in HOSTS.values():
        with pytest.raises(UnusableInput):
            read_event(host, data)


def test_every_host_is_in_every_table() -> None:
    assert set(HOSTS) == set(SECONDS) == set(SESSION_MEMBERS)
    with pytest.raises(UsageError):
        find_host("nothing")


@pytest.mark.parametrize("host", HOSTS)
def test_a_denial_is_one_for_each_host(host: str) -> None:
    allowed, code = render_decision(host, True, "yes")
    assert code == 0
    assert "deny" not in allowed
    denied, code = render_decision(host, False, "no")
    assert "deny" in denied
    assert "ask" not in denied
    assert code == (0 if host == "copilot" else 2)
    if host == "codex":
        assert allowed == "{}"  # a member that it does not know would let another call run


@examples(200)
@given(st.sampled_from(sorted(HOSTS)), st.lists(st.text(max_size=20), min_size=2, unique=True))
def test_no_two_tools_share_a_capability(name: str, tools: list[str]) -> None:
    host = HOSTS[name]
    more = [capability_id(host, tool).removeprefix("host.tool.") for tool in tools]
    every = {*tools, *more, *(f"mcp__a__{tool}" for tool in (*tools, *more)), *host.tools}
    ids = [capability_id(host, tool) for tool in sorted(every)]
    assert len(set(ids)) == len(ids)


def test_a_shell_is_never_read_only() -> None:
    for host in HOSTS.values():
        catalog, tools = with_host_tools(
            Catalog(), host, [*host.shells, "mcp__a__b"], is_governed=False
        )
        for shell in host.shells:
            assert catalog.capabilities[tools.capability_for(shell)].effect == "effect"
        assert catalog.capabilities[tools.capability_for("mcp__a__b")].effect == "none"
        assert tools.capability_for("mcp__a__c") == "host.other"


@pytest.mark.skipif(sys.platform == "win32", reason="hooks need sockets of files")
@pytest.mark.parametrize(
    "environ",
    [
        {"HOME": "/h"},
        {"HOME": "/h", "XDG_STATE_HOME": "/s"},
        {"HOME": "/h", "XDG_STATE_HOME": "s"},
        {"HOME": ""},
        {},
    ],
)
def test_the_folder_of_sockets_is_in_the_state_directory(environ: dict[str, str]) -> None:
    assert state_folder(environ) == f"{state_home(environ)}/hooks"


def test_names_of_sessions_are_names_of_files() -> None:
    assert session_key("codex", "0a-1_b") == "codex.0a-1_b"
    for session in ("../a", "A", "a" * 65, "é", "-", "a b", "."):
        assert len(session_key("codex", session)) == 32
