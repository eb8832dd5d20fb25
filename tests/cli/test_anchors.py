"""`verify --heads` and `verify --all --anchor` as scripts meet them."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest


@pytest.fixture
def anchored(demo: Any) -> Any:
    """A project with two episodes and their anchor."""
    for text in ("one", "two"):
        demo.run("run", "demo.greet", "-p", f"text={text}").assert_ok()
    demo.write("heads.txt", demo.run("verify", "--heads").assert_ok().out_bytes)
    return demo


def codes(result: Any) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for finding in result.json["findings"]:
        found.setdefault(finding["episode"], set()).add(finding["code"])
    return found


def check(project: Any, code: int, file: str = "heads.txt") -> Any:
    return project.run("verify", "--all", "--anchor", file, "--json").assert_exit(code)


def test_the_heads_are_those_of_the_manifests(anchored: Any) -> None:
    lines = (anchored.root / "heads.txt").read_text().splitlines()
    for line, episode in zip(lines, anchored.episodes, strict=True):
        chain = json.loads((episode / "manifest.json").read_bytes())["chain"]
        assert line == f"{episode.name} {chain['events']} {chain['head']}"
    heads = anchored.run("verify", "--heads", "--json").assert_ok().json["heads"]
    assert [f"{each['episode_id']} {each['events']} {each['head']}" for each in heads] == lines


def test_what_was_not_touched_is_anchored_in_either_form(anchored: Any) -> None:
    anchored.write("heads.json", anchored.run("verify", "--heads", "--json").assert_ok().out_bytes)
    anchored.run("run", "demo.greet", "-p", "text=new").assert_ok()
    for file in ("heads.txt", "heads.json"):
        levels = [row["level"] for row in check(anchored, 0, file).json["episodes"]]
        assert levels == ["own", "anchored", "anchored"]


def test_a_deleted_and_a_replaced_episode_are_found(anchored: Any) -> None:
    second, first = anchored.episodes
    shutil.rmtree(second)
    log = first / "events.jsonl"
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:2]))
    for name in ("manifest.json", "summary.json", "state.json", "checkpoint.jsonl"):
        (first / name).unlink()
    (first / "learn.jsonl").write_bytes(b"")
    anchored.run("verify", "--all").assert_ok()
    found = codes(check(anchored, 1))
    assert found[second.name] == {"anchor.missing"}
    assert "head.other" in found[first.name]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# nothing\n",
        "ep_01M85BQSJW192W9BY56KY38P88 x sha256:00\n",
        "{}",
        '{"heads": [{}]}',
        "not a head\n",
    ],
)
def test_an_anchor_that_holds_no_heads_is_refused(anchored: Any, text: str) -> None:
    anchored.write("heads.txt", text)
    refused = check(anchored, 2).json["error"]
    assert refused["code"] == "usage.value"
    assert "cogcli verify --heads" in refused["hint"]


def test_flags_that_do_not_go_together_are_refused(anchored: Any) -> None:
    anchored.run("verify", "@last", "--anchor", "heads.txt").assert_exit(2)
    anchored.run("verify", "--heads", "--all").assert_exit(2)
    anchored.run("verify", "--all", "--anchor", "none.txt").assert_exit(2)
    anchored.run("resume", "@last", "--head", "x").assert_exit(2)


def test_an_episode_that_cannot_be_read_has_no_head_and_is_reported(anchored: Any) -> None:
    (anchored.episode / "events.jsonl").unlink()
    shown = anchored.run("verify", "--heads").assert_exit(3)
    assert shown.out.count("\n") == 1
    assert anchored.episode.name in shown.err
