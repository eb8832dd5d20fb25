"""Waypoints: a resume that passes over rounds that are done, and one that may not."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

import pytest
from support.checkpoints import vouch
from support.examples import LONG

from cogcli.app.settings.owner_key import read_key
from cogcli.base.redact import Redactor
from cogcli.base.system import SystemClock, SystemIds
from cogcli.episode import waypoint_writer
from cogcli.episode.log_reader import EventLog
from cogcli.episode.projection import project_bytes
from cogcli.episode.reopen import reopen
from cogcli.episode.waypoint import Waypoint, WaypointFold, parse_waypoint
from cogcli.run.engine import tasks

SOURCE = """
    import time

    def count(n):
        with open("calls", "a") as calls:
            calls.write(f"{n}\\n")
        time.sleep(0.001)
        return {"n": n + 1}
"""
INNER = """
- {id: start, uses: w.count, input: {n: inputs.n}, output: {n: vars.n}}
- id: each
  uses: w.count
  input: {n: vars.n}
  output: {n: vars.n}
  config: {while: {condition: true, max_iterations: 4}}
- {id: end, uses: w.count, input: {n: vars.n}, output: {n: outputs.n}}
"""
OUTER = """
- {id: start, uses: w.count, input: {n: inputs.n}, output: {n: vars.n}}
- id: rounds
  uses: skill:w.inner
  input: {n: vars.n}
  output: {n: vars.n, $iterations: outputs.rounds}
  config: {while: {condition: vars.n < 40, max_iterations: 9}}
- id: items
  uses: skill:w.inner
  input: {n: vars.x}
  output: {n: outputs.items}
  config: {foreach: {items: [10, 20, 30], as: x}}
- {id: end, uses: w.count, input: {n: vars.n}, output: {n: outputs.n}}
""".replace("vars.x", "x.n").replace("[10, 20, 30]", "[{n: 10}, {n: 20}, {n: 30}]")


@pytest.fixture
def looping(project: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A finished run of nested loops that set a waypoint as often as it could."""
    monkeypatch.setattr(waypoint_writer, "STEP", 1)
    monkeypatch.setattr(waypoint_writer, "_SPARE", 0)
    monkeypatch.setattr(tasks, "_WATCH_SECONDS", 0.001)
    project.services(SOURCE)
    number = "{n: {type: integer, required: true}}"
    project.capability(
        "w.count", "count", inputs=number, outputs=number,
        request="{n: input.n}", response="{n: response.n}",
    )  # fmt: skip
    project.skill("w.inner", INNER, inputs=number, outputs=number)
    project.skill(
        "w.outer", OUTER, inputs=number,
        outputs="{n: {type: integer}, rounds: {type: integer}, items: {type: array}}",
    )  # fmt: skip
    project.run("run", "w.outer", "-p", "n:=1", "-q").assert_ok()
    return project


def lines_of(episode: Path) -> list[bytes]:
    return (episode / "events.jsonl").read_bytes().splitlines()


def fold_before(lines: list[bytes]) -> tuple[int, bytes]:
    """The place of the last waypoint of a log, and the file that it names."""
    place = max(
        (n for n, line in enumerate(lines) if b'"event_type":"run.waypoint"' in line), default=0
    )
    fold = WaypointFold()
    for line in lines[:place]:
        fold.apply(line)
    if not place:
        return 0, b""
    event = json.loads(lines[place])
    found = fold.result(event["episode_id"], event["prev"])
    assert found is not None
    data = found.to_bytes()
    assert event["payload"] == {"sha256": sha256(data).hexdigest(), "size_bytes": len(data)}
    return place, data


def kill_after(episode: Path, lines: list[bytes], home: Path, torn: bytes = b"") -> None:
    """Leave an episode as a run that was killed after these lines."""
    for name in ("state.json", "summary.json", "manifest.json", "waypoint.json", "events.torn"):
        (episode / name).unlink(missing_ok=True)
    (episode / "learn.jsonl").write_bytes(b"")
    (episode / "events.jsonl").write_bytes(b"\n".join(lines) + b"\n" + torn)
    place, data = fold_before(lines)
    if place:
        (episode / "waypoint.json").write_bytes(data)
    events = [event for _, event in EventLog(episode)]
    shown = max(n for n, event in enumerate(events) if event.event_type == "run.state_projection")
    (episode / "state.json").write_bytes(project_bytes(events[:shown]))
    vouch(episode, home)


def waypoint_used(episode: Path, home: str) -> Waypoint | None:
    """The waypoint from which a resume reads, None if it reads the whole log."""
    opened = reopen(
        episode, by_waypoint=True, clock=SystemClock(), ids=SystemIds(), redactor=Redactor(()),
        owner=read_key({"HOME": home}).key,
    )  # fmt: skip
    opened.journal.close()
    return opened.from_waypoint.waypoint if opened.from_waypoint else None


def meaning(lines: list[bytes]) -> Iterator[object]:
    """What a log says, without ids, times and what only its processes do."""
    names: dict[str, str] = {}
    for line in lines:
        event = json.loads(line)
        if event["phase"] == "runtime" or event["payload"].get("reason") == "resumed":
            continue
        run = names.setdefault(event["run_id"], f"run {len(names)}")
        payload = event["payload"]
        kept = {
            name: value
            for name, value in payload.items()
            if name not in ("action_id", "latency_ms", "idempotency_key", "parent_run_id", "pins")
        }
        yield run, event["event_type"], event.get("step_id"), kept


def answered(lines: list[bytes]) -> int:
    """The number of calls that a log answers."""
    return sum(b'"step.completed"' in line and b'"attempts":[{' in line for line in lines)


def points(lines: list[bytes]) -> list[int]:
    """Where the run is killed: after some lines, the first of them after a waypoint."""
    first = next(n for n, line in enumerate(lines) if b"run.waypoint" in line) + 1
    last = len(lines) - 3
    drawn = Random(26)
    return sorted({first, last, *drawn.sample(range(first, last), 40 if LONG else 3)})


@pytest.mark.sampled(6)
def test_a_run_killed_anywhere_continues_from_its_waypoint(looping: Any) -> None:
    episode, home = looping.episode, looping.env["HOME"]
    whole = lines_of(episode)
    expected, calls = list(meaning(whole)), looping.root / "calls"
    looping.run("verify").assert_ok()
    looping.run("replay").assert_ok()
    for point in points(whole):
        kill_after(episode, whole[:point], home, torn=b'{"seq":' if point % 2 else b"")
        used = waypoint_used(episode, home)
        assert used is not None
        folded = [line for line in used.lines if line.folded]
        assert len(used.lines) < used.events or not folded
        calls.unlink()
        looping.run("resume", "@last", "-q").assert_ok()
        lines = lines_of(episode)
        assert list(meaning(lines)) == expected, point
        made = len(calls.read_text().splitlines()) if calls.exists() else 0
        done, every = answered(whole[:point]), answered(whole)
        assert done + made == every, "no call is made again that the log answers"
        assert not (episode / "waypoint.json").exists()
        looping.run("verify").assert_ok()
        if LONG or point == points(whole)[0]:
            looping.run("replay").assert_ok()
            looping.run("state", "show", "--check").assert_ok()
        calls.write_text("")


def test_rounds_that_are_done_are_left_out(looping: Any) -> None:
    lines = lines_of(looping.episode)
    _, data = fold_before(lines)
    found = parse_waypoint(data)
    assert found is not None
    paths = {line.sequence: json.loads(lines[line.sequence]).get("step_id") for line in found.lines}
    assert len(found.lines) < found.events / 2
    for line in found.lines:
        assert sha256(lines[line.sequence]).hexdigest() == line.digest.removeprefix("sha256:")
    assert not any(str(path).startswith("rounds#0/") for path in paths.values())
    folded = [paths[line.sequence] for line in found.lines if line.folded]
    assert "rounds#0" in folded


def damaged(data: bytes, how: str, episode: Path) -> bytes | None:
    """The file after someone or something changed it."""
    if how == "missing":
        return None
    if how == "cut":
        return data[:-20]
    value = json.loads(data)
    if how == "another round":
        value["lines"] = [line for line in value["lines"] if not line[4]]
    elif how == "no JSON":
        return b"\0" * len(data)
    elif how == "another place":
        value["events"] -= 1
    elif how == "another episode":
        value["episode_id"] = "ep_01M8D778K9FYQPK687RYJW55X5"
    return json.dumps(value, separators=(",", ":")).encode()


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    "how", ["missing", "cut", "no JSON", "another round", "another place", "another episode"]
)
def test_a_waypoint_that_is_not_the_one_of_the_log_is_not_used(looping: Any, how: str) -> None:
    episode, home = looping.episode, looping.env["HOME"]
    whole = lines_of(episode)
    kill_after(episode, whole[:-3], home)
    file = episode / "waypoint.json"
    data = damaged(file.read_bytes(), how, episode)
    file.unlink()
    if data is not None:
        file.write_bytes(data)
        found = looping.run("verify").assert_ok().out
        assert "waypoint.unused" in found
    assert waypoint_used(episode, home) is None
    looping.run("resume", "@last", "-q").assert_ok()
    assert list(meaning(lines_of(episode))) == list(meaning(whole))
    looping.run("verify").assert_ok()


def chained(lines: list[bytes], event: dict[str, Any]) -> bytes:
    """A line that anyone can add to a log."""
    from cogcli.declarations.checksum import add_sum

    last = json.loads(lines[-1])
    event |= {"seq": last["seq"] + 1, "prev": f"sha256:{sha256(lines[-1]).hexdigest()}"}
    event.pop("sum")
    return add_sum(json.dumps(event, separators=(",", ":")).encode())


def test_a_waypoint_that_nothing_vouches_for_is_not_used(looping: Any) -> None:
    """Whoever can write to the folder can add a waypoint and its event, but not the user's record of that event."""
    episode, home = looping.episode, looping.env["HOME"]
    whole = lines_of(episode)
    point = len(whole) - 3
    kill_after(episode, whole[:point], home)
    assert waypoint_used(episode, home) is not None
    fold = WaypointFold()
    for line in whole[:point]:
        fold.apply(line)
    head = f"sha256:{sha256(whole[point - 1]).hexdigest()}"
    forged = fold.result(episode.name, head)
    assert forged is not None
    kept = tuple(line for line in forged.lines if line.sequence == 0 or line.folded)
    data = forged._replace(lines=kept).to_bytes()
    place, _ = fold_before(whole[:point])
    event = json.loads(whole[place])
    event["id"] = f"ev_{SystemIds().ulid()}"
    event["timestamp"] = json.loads(whole[point - 1])["timestamp"]
    event["payload"] = {"sha256": sha256(data).hexdigest(), "size_bytes": len(data)}
    line = chained(whole[:point], event)
    with (episode / "events.jsonl").open("ab") as log:
        log.write(line + b"\n")
    (episode / "waypoint.json").write_bytes(data)
    assert waypoint_used(episode, home) is None
    found = looping.run("verify")
    assert "waypoint.wrong" in found.out + found.err
    (episode / "checkpoint.jsonl").unlink()
    assert waypoint_used(episode, home) is None


def test_a_changed_line_before_the_waypoint_is_not_passed_over(looping: Any) -> None:
    """Of the lines before a waypoint those that it keeps are read again, each with its hash."""
    episode, home = looping.episode, looping.env["HOME"]
    whole = lines_of(episode)
    kill_after(episode, whole[:-3], home)
    used = waypoint_used(episode, home)
    assert used is not None
    line = next(line for line in used.lines if line.folded)
    with (episode / "events.jsonl").open("r+b") as log:
        log.seek(line.offset + line.size // 2)
        byte = log.read(1)
        log.seek(-1, os.SEEK_CUR)
        log.write(b"x" if byte != b"x" else b"y")
    with pytest.raises(Exception, match="was damaged"):
        waypoint_used(episode, home)
    assert looping.run("resume", "@last", "-q").code == 3


def test_a_router_in_a_loop_has_no_waypoints(looping: Any) -> None:
    looping.skill(
        "w.routed",
        """
- id: each
  input: {n: inputs.n}
  output: {n: outputs.n}
  config: {while: {condition: true, max_iterations: 5}, router: {on: inputs.n, cases: {"1": w.count}}}
""",
        inputs="{n: {type: integer, required: true}}",
        outputs="{n: {type: integer}}",
    )
    looping.run("run", "w.routed", "-p", "n:=1", "-q").assert_ok()
    assert not any(b"run.waypoint" in line for line in lines_of(looping.episode))


def test_a_killed_run_that_is_closed_needs_no_more_than_its_waypoint(looping: Any) -> None:
    episode, home = looping.episode, looping.env["HOME"]
    whole = lines_of(episode)
    point = points(whole)[1]
    kill_after(episode, whole[:point], home)
    shutil.copy(episode / "waypoint.json", episode.parent / "kept")
    looping.run("resume", "@last", "--abort", "-q")
    assert json.loads((episode / "summary.json").read_bytes())["status"] == "aborted"
    looping.run("verify").assert_ok()
