"""What the first event of an agent's run holds is used again only where it has the form that a run writes."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from sealed import chained, events
from support.examples import LONG

pytestmark = pytest.mark.sampled(12)

Place = tuple[str | int, ...]
OTHERS = (None, "text", 7, [None], {"a": 1}, [{"a": 1}], True, ["a"])
TRIED = 40
"""Changes that a run which is not long tries of each episode."""
PARTS = 16 if LONG else 1
"""A long run tries all changes, in as many tests: one alone would take too long where commands are installed."""
FREE = {"params", "value", "subjects"}
"""Members that hold any JSON, and one that nothing reads."""
HELLO = {"response": "It is 12 days old.", "context_updates": {"facts": {"mood": "calm"}}}


def places(value: Any, place: Place = ()) -> Iterator[Place]:
    """The place of every member of a JSON value."""
    if place:
        yield place
    if isinstance(value, dict):
        for key, member in value.items():
            yield from places(member, (*place, key))
    if isinstance(value, list):
        for number, member in enumerate(value):
            yield from places(member, (*place, number))


def replaced(payload: dict[str, Any], place: Place, other: Any) -> Any:
    """Put another value at a place; returns the one that stood there."""
    around: Any = payload
    for part in place[:-1]:
        around = around[part]
    before, around[place[-1]] = around[place[-1]], other
    return before


@pytest.fixture(params=["templates", "a model"])
def asked(desk: Any, request: Any) -> Any:
    """A desk where an agent answered; with a model in a conversation that it continues."""
    desk.run("knowledge", "import", "knowledge/orders.jsonl", "--tenant", "acme").assert_ok()
    invoke = ("agent", "invoke", "requests/allowed.json")
    if request.param == "templates":
        desk.run(*invoke).assert_ok()
        return desk
    desk.write("models/hello.yaml", json.dumps({"replies": [{"json": HELLO}]}))
    for _ in range(2):
        desk.run(*invoke, "--session", "s1", "--model", "scripted:models/hello.yaml").assert_ok()
    return desk


@pytest.mark.parametrize("part", range(PARTS))
def test_a_forged_first_event_of_an_agent_is_refused_or_used(asked: Any, part: int) -> None:
    folder = asked.episode
    log = events(folder)
    started = log[0]["payload"]
    held = {"agent": started["agent"], "pins": {"model": started["pins"]["model"]}}
    tries = [(place, other) for place in places(held) for other in OTHERS][part::PARTS]
    if not LONG:
        tries = random.sample(tries, TRIED)
    wrong = []
    for place, other in tries:
        before = replaced(started, place, other)
        chained(folder, log)
        code = asked.run("replay", "@last").code
        if code not in (0, 1, 3):
            wrong.append((place, other, code))
        replaced(started, place, before)
    assert not wrong


def test_a_forged_first_event_of_an_agent_stops_its_resumption(asked: Any) -> None:
    folder = asked.episode
    log = events(folder)[:-2]
    started = log[0]["payload"]
    for document in ("state.json", "summary.json", "manifest.json", "checkpoint.jsonl"):
        (folder / document).unlink()
    typed = [
        place
        for place in places({"agent": started["agent"]})
        if len(place) > 2 and not FREE & {*place}
    ]
    if not LONG:
        typed = random.sample(typed, TRIED // 4)
    wrong = []
    for place in typed:
        before = replaced(started, place, {"a": [1]})
        chained(folder, log)
        size = (folder / "events.jsonl").stat().st_size
        code = asked.run("resume", "@last").code
        if code != 3 or (folder / "events.jsonl").stat().st_size != size:
            wrong.append((place, code))
        replaced(started, place, before)
    assert not wrong
