"""Calls that the host makes itself, at a session in this process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cogcli.app.settings import Settings
from cogcli.declarations.options import RunOptions
from cogcli.episode.log_reader import iterate_events
from cogcli.episode.verify.check import level_of, verify
from cogcli.gateway import host_calls
from cogcli.gateway.host_calls import HostDecision, HostSession, call_names
from cogcli.gateway.host_specs import with_host_tools
from cogcli.gateway.hosts import HOSTS, AgentHost, HostCall, HostEvent
from cogcli.gateway.session import MAX_WORKERS, SessionPlan
from cogcli.specs.catalog import Catalog

HOST = HOSTS["claude-code"]


@pytest.fixture
def session(tmp_path: Path) -> Iterator[HostSession]:
    """A session in which `Read` is marked read-only."""
    bugs: list[BaseException] = []
    found = open_session(tmp_path, bugs)
    yield found
    found.close("client")
    assert not bugs


def open_session(
    folder: Path,
    bugs: list[BaseException],
    earlier: frozenset[str] = frozenset(),
    host: AgentHost = HOST,
) -> HostSession:
    settings = Settings({"runs_dir": str(folder / "runs")}, {"HOME": str(folder)}, base=str(folder))
    catalog, tools = with_host_tools(Catalog(), host, ["Read", "read_file"], is_governed=False)
    plan = SessionPlan(catalog, RunOptions(max_workers=MAX_WORKERS))
    return HostSession(settings, plan, tools, bugs.append, earlier)


def ask(
    session: HostSession, tool: str, id: str = "", *, hold: float = 0, **arguments: Any
) -> HostDecision:
    return session.decide(HostCall(tool, arguments, "/w", id), hold=hold, seconds=60)


def tell(
    session: HostSession, tool: str, id: str = "", *, kind: Any = "report", **arguments: Any
) -> None:
    session.report(HostEvent(kind, HostCall(tool, arguments, "/w", id), "done"))


def test_one_id_is_one_call(session: HostSession) -> None:
    first = ask(session, "Read", "t1", path="a")
    assert first.allowed
    assert ask(session, "Read", "t1", path="a") == first
    assert ask(session, "Read", "t1", path="b") == HostDecision(
        False, "another call has the same id"
    )
    tell(session, "Read", "t1", path="a")
    tell(session, "Read", "t1", path="a")
    assert ask(session, "Read", "t1", path="a") == HostDecision(False, "this call has ended")


def test_equal_calls_without_ids_are_calls_of_their_own(session: HostSession) -> None:
    steps = {ask(session, "Read", path="a").reason for _ in range(3)}
    assert len(steps) == 3
    for _ in range(3):
        tell(session, "Read", path="a")


def test_a_call_that_waits_is_asked_for_once(session: HostSession) -> None:
    first = ask(session, "Bash", "t1", command="ls")
    assert not first.allowed
    assert ask(session, "Bash", "t2", command="ls") == first
    assert ask(session, "Bash", "t2", command="ls") == first
    assert ask(session, "Bash", "t3", command="pwd") != first


def test_equal_calls_that_wait_at_the_same_time_are_two(session: HostSession) -> None:
    found: list[HostDecision] = []
    workers = [
        threading.Thread(
            target=lambda n=n: found.append(ask(session, "Bash", f"t{n}", hold=2, command="ls"))
        )
        for n in range(2)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert len({each.reason for each in found}) == 2


def test_calls_at_the_same_time(session: HostSession) -> None:
    found: list[HostDecision] = []
    workers = [
        threading.Thread(target=lambda n=n: found.append(ask(session, "Read", f"t{n}", path="a")))
        for n in range(8)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert len({each.reason for each in found if each.allowed}) == 8


def test_calls_that_are_never_reported_leave_room_for_others(
    session: HostSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_calls, "MOST_ENDED", 10)
    for number in range(3 * MAX_WORKERS):
        assert ask(session, "Read", f"t{number}", path="a").allowed
    tell(session, "Read", "t95", kind="failure", path="a")


def test_a_log_that_cannot_be_written_is_a_denial(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file")
    bugs: list[BaseException] = []
    session = open_session(tmp_path, bugs)
    decision = ask(session, "Read", "t1", path="a")
    assert not decision.allowed
    assert decision.reason.startswith("error[env.")
    session.close("client")
    assert not bugs
    assert not ask(session, "Read", "t2", path="a").allowed


def alarms(folder: Path) -> list[tuple[str, str]]:
    """The alarms in the logs of a folder: tool and decision."""
    return [
        (event.payload["tool"], event.payload["decision"])
        for episode in sorted((folder / "runs").glob("ep_*"))
        for event in iterate_events(episode)
        if event.event_type == "call.witnessed"
    ]


def test_a_call_that_ran_against_its_decision_is_an_alarm(
    session: HostSession, tmp_path: Path
) -> None:
    assert not ask(session, "Bash", "t1", command="ls").allowed
    tell(session, "Bash", "t1", command="ls")
    tell(session, "Read", "t2", path="a")
    assert ask(session, "Read", "t3", path="a").allowed
    tell(session, "Read", "t3", path="a")
    tell(session, "Read", path="a")  # another event of the same call, without its id
    session.close("client")
    assert alarms(tmp_path) == [("Bash", "denied"), ("Read", "none")]
    (episode,) = (tmp_path / "runs").glob("ep_*")
    findings = verify(episode)
    assert [each.code for each in findings if each.severity == "error"] == ["call.witnessed"] * 2
    assert level_of(findings) == "alarm"


def test_calls_of_an_earlier_server_are_no_alarm(tmp_path: Path) -> None:
    call = HostCall("Read", {"path": "a"}, "/w", "t1")
    bugs: list[BaseException] = []
    session = open_session(tmp_path, bugs, frozenset(call_names(call)))
    session.report(HostEvent("report", call, "done"))
    assert not session.is_live
    session.close("client")
    assert not bugs


def test_a_host_without_ids_is_compared_by_its_arguments(tmp_path: Path) -> None:
    bugs: list[BaseException] = []
    session = open_session(tmp_path, bugs, host=HOSTS["gemini-cli"])
    assert ask(session, "read_file", path="a").allowed
    tell(session, "read_file", path="a")
    tell(session, "read_file", path="b")
    assert not ask(session, "run_shell_command", command="ls").allowed
    tell(session, "run_shell_command", command="ls")
    session.close("client")
    assert alarms(tmp_path) == [("read_file", "none"), ("run_shell_command", "denied")]
    assert not bugs


def test_a_large_response_is_recorded_as_its_digest() -> None:
    assert host_calls._limit_response("a") == "a"
    assert host_calls._limit_response("a" * 2_000_000)["bytes"] == 2_000_002  # type: ignore[index]
