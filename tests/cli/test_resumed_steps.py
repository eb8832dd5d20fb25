"""A resumed run that has passed its log continues as a new run does, with plain steps."""

from __future__ import annotations

from typing import Any

import pytest

from cogcli.cli.live_run import DisplayListener
from cogcli.declarations.envelope import Event
from cogcli.episode.journal import Journal

SOURCE = """
    def count(n):
        return {"n": n + 1}
"""
NUMBER = "{n: {type: integer, required: true}}"
COUNT = 8


@pytest.fixture
def plain_events(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The events that are written as lines of plain steps, from now on."""
    append = Journal.append_line
    written: list[object] = []

    def append_line(journal: Journal, *given: Any) -> Any:
        placed = append(journal, *given)
        if placed is not None:
            written.append(placed)
        return placed

    monkeypatch.setattr(Journal, "append_line", append_line)
    return written


def _add_chain(project: Any, *, guarded: bool = False) -> None:
    project.services(SOURCE)
    fields = {"inputs": NUMBER, "outputs": NUMBER}
    maps = {"request": "{n: input.n}", "response": "{n: response.n}"}
    project.capability("r.count", "count", **fields, **maps)
    ask = "safety: {requires_confirmation: true}"
    project.capability("r.ask", "count", extra=ask, **fields, **maps)
    steps = []
    for n in range(COUNT):
        uses = "r.ask" if guarded and n == 1 else "r.count"
        source = f"vars.n{n - 1}" if n else "inputs.n"
        target = f"vars.n{n}" if n < COUNT - 1 else "outputs.n"
        steps.append(
            f"- {{id: s{n}, uses: {uses}, input: {{n: {source}}}, output: {{n: {target}}}}}"
        )
    project.skill("r.chain", "\n".join(steps), **fields)


def _cut_in_step(project: Any, number: int) -> None:
    """Leave the newest episode as a run that was killed during the call of this step."""
    log = project.episode / "events.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    starts = [n for n, line in enumerate(lines) if b'"event_type":"step.started"' in line]
    log.write_bytes(b"".join(lines[: starts[number] + 1]))
    project.cut_after("step.started")


def test_a_resumed_run_takes_plain_steps_after_its_log(
    project: Any, plain_events: list[object]
) -> None:
    _add_chain(project)
    run = ("run", "r.chain", "-p", "n:=1")
    whole = project.run(*run).assert_ok().out
    _cut_in_step(project, 3)
    plain_events.clear()
    assert project.run("resume", "@last").assert_ok().out == whole
    # The call that was begun is repeated, and the first call of a session is never plain.
    assert len(plain_events) == 2 * (COUNT - 5)
    project.run("verify", "@last").assert_ok()
    project.run("replay", "@last").assert_ok()
    _cut_in_step(project, COUNT - 2)  # a log with plain steps of two processes
    assert project.run("resume", "@last").assert_ok().out == whole
    project.run("replay", "@last").assert_ok()


def test_a_run_in_which_a_person_decided_follows_its_log_to_the_end(
    project: Any, plain_events: list[object]
) -> None:
    _add_chain(project, guarded=True)
    project.run("run", "r.chain", "-p", "n:=1").assert_exit(5)
    plain_events.clear()
    project.run("resume", "@last", "--approve", "r.ask", "--by", "ann").assert_ok()
    assert plain_events == []
    project.run("replay", "@last").assert_ok()


def test_the_display_of_a_quiet_resumed_run_gets_no_plain_steps(
    project: Any, plain_events: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A resumed run gives its listener what a new run does, and no recorded event."""
    displayed: list[Event] = []
    monkeypatch.setattr(DisplayListener, "__call__", lambda _, event: displayed.append(event))
    _add_chain(project)
    project.run("run", "r.chain", "-p", "n:=1", "-q").assert_ok()
    _cut_in_step(project, 3)
    recorded = (project.episode / "events.jsonl").read_bytes().count(b"\n")
    displayed.clear()
    plain_events.clear()
    project.run("resume", "@last", "-q").assert_ok()
    assert plain_events
    assert not {event.id for event in displayed} & {placed[0] for placed in plain_events}
    assert all(event.seq >= recorded for event in displayed)
    assert displayed[-1].event_type == "run.terminated"
