"""What a log tells of effects that must not happen twice, and how a rerun finds them again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sample_episode as sample

from cogcli.base.canonical import digest_of
from cogcli.base.errors import UsageError
from cogcli.episode.log_reader import EventLog
from cogcli.run.effects import Effect, find_effects
from cogcli.run.engine.doubt import EarlierCalls
from cogcli.run.log_index import LogIndex
from cogcli.run.rerun_effects import find_repeats, select_effects

ENDS: dict[str, tuple[dict[str, Any], str | None]] = {
    "nothing closed it": ({}, "in doubt"),
    "it was answered": ({"ending": "done", "output": {"id": 1}}, "done"),
    "it was answered with an error": (
        {"ending": "failed", "attempts": [{"status": "failed", "left": True}]},
        "failed",
    ),
    "nothing of it left": (
        {"ending": "failed", "attempts": [{"status": "failed", "left": False}]},
        None,
    ),
    "of one attempt something left": (
        {
            "ending": "failed",
            "attempts": [{"status": "failed", "left": True}, {"status": "failed", "left": False}],
        },
        "failed",
    ),
    "no attempt was made": ({"ending": "failed", "attempts": []}, None),
}


@pytest.mark.parametrize("end", ENDS)
def test_a_call_counts_unless_it_surely_did_not_leave(tmp_path: Path, end: str) -> None:
    told, state = ENDS[end]
    journal = sample.new_journal(tmp_path)
    sample.started(journal)
    sample.planned(journal, ("read", "act", "Read"))
    intent = sample.began(journal, "read", side_effects="effect")
    if told:
        sample.ended(journal, "read", intent, **told)
    found = find_effects(LogIndex(event for _, event in EventLog(journal.directory)))
    journal.close()
    assert {step: effect.state for step, effect in found.items()} == (
        {"read": state} if state else {}
    )


def effect(step: str, values: dict[str, Any], output: dict[str, Any] | None = None) -> Effect:
    return Effect(
        step,
        "c.pay",
        "effect",
        "done",
        digest_of(values),
        "k",
        {"episode": "ep", "event": f"ev_{step}"},
        output,
    )


def test_of_a_later_run_only_whole_entries_repeat_a_call(tmp_path: Path) -> None:
    origin, again = {"episode": "ep", "event": "ev_1"}, {"choice": "rerun"}
    journal = sample.new_journal(tmp_path)
    entries = {
        "whole": {"origin": origin, "resolution": again},
        "not an object": 3,
        "a resolution of another type": {"origin": origin, "resolution": "rerun"},
        "no origin": {"resolution": again},
    }
    sample.started(journal, effects=entries)
    journal.close()
    assert find_repeats(tmp_path, f"ep_{'0' * 26}") == {"ev_1": journal.episode_id}


def test_an_item_that_moved_is_known_by_its_input() -> None:
    known = {
        f"pay#{n}": effect(f"pay#{n}", {"to": name}, {"id": name}) for n, name in enumerate("ab")
    }
    calls = EarlierCalls(
        select_effects(known, ["pay"]).with_choices({"pay": "reuse"}).to_payload("ana")
    )
    here = [
        calls.find(f"pay#{n}", "c.pay", {"to": name}) for n, name in enumerate(("new", "a", "b"))
    ]
    assert [
        one.resolution.output["id"]
        for one in here[1:]
        if one and one.resolution and one.resolution.output
    ] == [
        "a",
        "b",
    ]
    assert [
        one and one.has_input({"to": name})
        for one, name in zip(here, ("new", "a", "b"), strict=True)
    ] == [
        False,
        True,
        True,
    ]
    assert calls.find("pay#7", "c.pay", {"to": "new"}) is None
    assert calls.find("pay#1", "c.other", {"to": "b"}) is None
    assert calls.find("other", "c.pay", {"to": "b"}) is None


def test_the_most_particular_word_counts() -> None:
    known = {step: effect(step, {}, {}) for step in ("a#0/b", "a#1/b", "c")}
    asked = select_effects(known, ["a"])
    assert [question.step for question in asked.questions] == ["a"]
    said = asked.with_choices({"a": "reuse", "a#1": "fail"})
    assert said.questions == []
    words = {
        step: entry.get("resolution", {}).get("choice")
        for step, entry in said.to_payload("ana").items()
    }
    assert words == {"a#0/b": "done", "a#1/b": "fail", "c": None}
    with pytest.raises(UsageError, match="would be made again"):
        asked.with_choices({"c": "reuse"})
