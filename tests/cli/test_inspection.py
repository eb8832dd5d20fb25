"""Looking into many episodes, comparing, following, clearing away: through the installed command."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fakes.slow_run import slow_run

pytestmark = pytest.mark.sampled(8)

COGCLI = str(Path(sys.executable).parent / "cogcli")
GREET = ("run", "demo.greet", "-p", "text=hi", "-q")
REVIEW = ("run", "demo.review", "-p", "text=hi", "-q")


def listed(project: Any, *flags: str) -> list[str]:
    rows = project.run("ls", *flags, "--format", "jsonl").assert_ok().out.splitlines()
    return [json.loads(row)["episode_id"] for row in rows]


def copies(episode: Path, count: int) -> None:
    """So many finished episodes like this one, older than it."""
    for number in range(count):
        id = f"ep_01HF7YAT{number:018d}"
        copy = episode.parent / id
        shutil.copytree(episode, copy)
        for name in ("events.jsonl", "summary.json", "manifest.json"):
            text = (copy / name).read_text().replace(episode.name, id)
            (copy / name).write_text(text)


# -- ls ----------------------------------------------------------------------------------------------------------------


def test_every_filter_of_ls_keeps_what_fits(demo: Any) -> None:
    demo.run(*GREET, "--tag", "team=search", "--trace-id", "trace-001").assert_ok()
    demo.run(*REVIEW, "--tag", "team=platform").assert_exit(1)
    demo.run(*GREET, "--tag", "team=search", "--tag", "n=2").assert_ok()
    newest, review, oldest = [episode.name for episode in demo.episodes]
    assert listed(demo) == [newest, review, oldest]
    assert listed(demo, "--limit", "1") == [newest]
    assert listed(demo, "--limit", "1", "--all") == [newest, review, oldest]
    assert listed(demo, "--skill", "demo.review") == [review]
    assert listed(demo, "--outcome", "error") == [review]
    assert listed(demo, "--tag", "team=search") == [newest, oldest]
    assert listed(demo, "--tag", "team=search", "--tag", "n=2") == [newest]
    assert listed(demo, "--tag", "missing=None") == []
    assert listed(demo, "--trace-id", "trace-001") == [oldest]
    assert listed(demo, "--since", "1h") == [newest, review, oldest]
    assert listed(demo, "--since", "0s") == []
    assert "did you mean `error`" in demo.run("ls", "--outcome", "eror").assert_exit(2).err


def test_many_episodes_are_indexed_and_found_by_every_name(demo: Any) -> None:
    demo.run(*REVIEW, "--trace-id", "trace-001").assert_exit(1)
    demo.run(*GREET).assert_ok()
    copies(demo.episode, 80)
    newest, failed = demo.episodes[:2]
    for _ in range(2):
        assert listed(demo, "--all") == [episode.name for episode in demo.episodes]
        assert listed(demo, "--outcome", "error") == [failed.name]
        assert (
            demo.run("state", "show", "@failed", "--path", "episode.id").assert_ok().out.strip()
            == failed.name
        )
        assert "demo.review" in demo.run("trace", "--trace-id", "trace-001").assert_ok().out
        assert (
            demo.run("state", "show", "@last", "--path", "episode.id").assert_ok().out.strip()
            == newest.name
        )
        assert demo.run("trace", newest.name[:28]).assert_ok().out
        assert "fits 80 episodes" in demo.run("trace", "ep_01HF7YAT").assert_exit(2).err
    index = demo.root / ".cogcli/episodes/.index.db"
    assert index.is_file()
    index.write_bytes(b"no database at all")
    assert len(listed(demo, "--all")) == 82
    shutil.rmtree(newest)
    assert newest.name not in listed(demo)


# -- trace -------------------------------------------------------------------------------------------------------------


def test_a_run_is_followed_until_it_dies(project: Any) -> None:
    run = slow_run(project)
    follower = subprocess.Popen(
        [COGCLI, "trace", "--follow", "--format", "jsonl"], cwd=project.root, env=project.env,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert follower.stdout
    kinds = [json.loads(follower.stdout.readline())["event_type"] for _ in range(4)]
    assert kinds == ["run.started", "plan.created", "run.state_projection", "step.started"]
    assert follower.poll() is None
    run.kill()
    run.communicate()
    out, err = follower.communicate(timeout=60)
    assert (follower.returncode, err) == (0, b"")
    # A step that takes a second is followed by a snapshot of the state.
    later = {json.loads(line)["event_type"] for line in out.splitlines()}
    assert later <= {"run.state_projection"}


def test_following_tells_events_on_stderr_and_ends_with_the_view(demo: Any) -> None:
    demo.run(*GREET).assert_ok()
    result = demo.run("trace", "--follow").assert_ok()
    assert "step.completed step=second" in result.err
    assert result.out == demo.run("trace").assert_ok().out
    assert json.loads(demo.run("trace", "--follow", "--json").out)["trace"]["status"] == "ok"
    assert (
        "usage.flag"
        in demo.run("trace", "demo.greet", "--follow", "-p", "text=x").assert_exit(2).err
    )


@pytest.mark.parametrize("damage", ["random", "headless", "empty", "broken"])
def test_a_damaged_log_is_never_shown_as_if_it_were_whole(demo: Any, damage: str) -> None:
    demo.run(*GREET).assert_ok()
    copy = demo.root / "mailed"
    shutil.copytree(demo.episode, copy)
    log = copy / "events.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    first = b"\xf3\x9d\x00\xff\n" * 40
    log.write_bytes({
        "random": first, "headless": b"".join(lines[1:]), "empty": b"",
        "broken": b"".join([*lines[:3], b"garbage\n", *lines[3:]]),
    }[damage])  # fmt: skip
    code = 0 if damage in ("headless", "broken") else 3
    result = demo.run("trace", "./mailed").assert_exit(code)
    assert ("warning" if code == 0 else "error") + "[episode.unreadable]" in result.err
    assert f"next: cogcli verify {copy}\n" in result.err
    assert bool(result.out) is (code == 0)
    assert "run.started" in demo.run("replay", "./mailed").err if damage == "headless" else True


def test_views_are_rows_for_programs(demo: Any) -> None:
    demo.run(*REVIEW).assert_exit(1)
    rows = [
        json.loads(line)
        for line in demo.run("trace", "--view", "timeline", "--format", "jsonl").out.splitlines()
    ]
    assert [(row["step_id"], row["status"]) for row in rows] == [
        ("inner", "done"),
        ("score", "failed"),
    ]
    header = (
        demo.run("trace", "--view", "lineage", "--format", "tsv", "--header")
        .assert_ok()
        .out.splitlines()[0]
    )
    assert header == "target\twritten_by\tnever\tread_by\trequired"
    assert (
        len(demo.run("trace", "--view", "events", "--format", "csv").assert_ok().out.splitlines())
        == 17
    )
    trace = json.loads(demo.run("trace", "--view", "lineage", "--json").out)["trace"]
    assert [row["target"] for row in trace["lineage"]] == [
        "vars.text",
        "vars.score",
        "outputs.text",
    ]
    trace = json.loads(demo.run("trace", "--why", "outputs.text", "--json").out)["trace"]
    assert trace["why"] == [
        ["outputs.text", "report (skipped)", "score (failed)", "vars.text", "inner"]
    ]


def test_one_step_shows_what_is_inside_it_and_what_went_through(demo: Any) -> None:
    demo.run(*REVIEW).assert_exit(1)
    out = demo.run("trace", "--step", "inner", "--io").assert_ok().out
    assert "inner/second" in out
    assert '"text": "HI"' in out
    assert "score" not in out
    assert (
        demo.run("trace", "--view", "lineage", "--step", "score")
        .assert_ok()
        .out.startswith("vars.text")
    )
    assert "did you mean `inner`" in demo.run("trace", "--step", "iner").assert_exit(2).err


# -- diff --------------------------------------------------------------------------------------------------------------


def test_diff_tells_by_its_exit_code_only_when_asked(demo: Any) -> None:
    demo.run(*GREET).assert_ok()
    demo.run(*GREET).assert_ok()
    assert (
        demo.run("diff", "--exit-code")
        .assert_ok()
        .out.endswith("nothing differs but ids and times\n")
    )
    demo.run(*REVIEW).assert_exit(1)
    demo.run("diff").assert_ok()
    body = demo.run("diff", "--exit-code", "--json").assert_exit(1).json
    assert (body["exit_code"], body["diff"]["same"]) == (1, False)
    assert body["diff"]["skills"] == ["demo.greet 1.0.0", "demo.review 1.0.0"]


# -- gc ----------------------------------------------------------------------------------------------------------------


def removed(project: Any, *flags: str) -> Any:
    return project.run("gc", *flags, "--json").assert_ok().json["removed"]


def test_gc_removes_what_fits_all_criteria(demo: Any) -> None:
    for command, code in ((GREET, 0), (REVIEW, 1), (GREET, 0), (REVIEW, 1)):
        demo.run(*command).assert_exit(code)
    ids = [episode.name for episode in demo.episodes]
    assert removed(demo, "--keep", "1", "--outcome", "error", "--dry-run")["episodes"] == [ids[2]]
    assert removed(demo, "--older-than", "1h", "--yes")["episodes"] == []
    assert [episode.name for episode in demo.episodes] == ids
    gone = removed(demo, "--keep", "1", "--outcome", "error", "--yes")
    assert (gone["episodes"], gone["kept"]) == ([ids[2]], {"newest": 1})
    assert listed(demo) == [ids[0], ids[1], ids[3]]
    assert removed(demo, "--older-than", "0s", "--keep", "2", "--yes")["episodes"] == [ids[3]]


def test_gc_never_removes_what_runs_or_is_pinned(project: Any) -> None:
    run = slow_run(project)
    assert removed(project, "--keep", "0", "--yes")["kept"] == {"running": 1}
    run.kill()
    run.communicate()
    project.run("gc", "--pin", "@last").assert_ok()
    assert removed(project, "--keep", "0", "--yes")["kept"] == {"pinned": 1}
    id = project.episode.name
    assert project.run("gc", "--unpin", "@last").assert_ok().out == f"unpinned {id}\n"
    assert removed(project, "--outcome", "ok", "--yes")["episodes"] == []
    assert removed(project, "--outcome", "interrupted", "--yes")["episodes"] == [id]
    assert project.episodes == []


def test_gc_never_removes_what_waits_for_a_person(demo: Any) -> None:
    paused = Path(__file__).parents[1] / "episodes" / "paused"
    runs = demo.root / ".cogcli/episodes"
    id = json.loads((paused / "events.jsonl").read_text().splitlines()[0])["episode_id"]
    runs.mkdir(parents=True)
    shutil.copytree(paused, runs / id)
    assert removed(demo, "--keep", "0", "--yes") == {
        "dry_run": False, "episodes": [], "bytes": 0, "kept": {"pending": 1}
    }  # fmt: skip


def test_gc_does_nothing_unasked(demo: Any) -> None:
    demo.run(*GREET).assert_ok()
    demo.run("gc", "--yes").assert_exit(2)
    for more in ((), ("-q",), ("--json",)):
        demo.run("gc", "--keep", "0", *more).assert_exit(2)
    demo.run("gc", "--keep", "0", "--pin", "@last").assert_exit(2)
    assert len(demo.episodes) == 1


def test_pins_outlive_their_episode_and_stay_in_the_runs_directory(demo: Any) -> None:
    demo.run(*GREET).assert_ok()
    episode = demo.episode
    demo.run("gc", "--pin", episode.name).assert_ok()
    demo.run("verify").assert_ok()
    mailed = demo.root / "mailed"
    shutil.copytree(episode, mailed)
    assert "usage.value" in demo.run("gc", "--pin", "./mailed").assert_exit(2).err
    shutil.rmtree(episode)
    demo.run("gc", "--unpin", episode.name).assert_ok()
    assert list((demo.root / ".cogcli/episodes/.pins").iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="needs a shell")
def test_two_at_once_remove_each_episode_once(demo: Any) -> None:
    demo.run(*GREET).assert_ok()
    copies(demo.episode, 40)
    command = [COGCLI, "gc", "--keep", "0", "--yes", "--json"]
    both = [
        subprocess.Popen(
            command, cwd=demo.root, env=demo.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for _ in range(3)
    ]
    answers = [process.communicate(timeout=60) for process in both]
    assert [process.returncode for process in both] == [0, 0, 0], answers
    gone = [id for out, _ in answers for id in json.loads(out)["removed"]["episodes"]]
    assert len(gone) == len(set(gone)) == 41
    assert [
        path.name
        for path in (demo.root / ".cogcli/episodes").iterdir()
        if not path.name.startswith(".index")
    ] == []


# -- graph -------------------------------------------------------------------------------------------------------------


def test_a_graph_of_a_skill_and_of_its_run_have_the_same_edges(demo: Any) -> None:
    demo.run(*REVIEW).assert_exit(1)
    skill = demo.run("graph", "demo.review", "--json").assert_ok().json["graph"]
    episode = demo.run("graph", "@last", "--json").assert_ok().json["graph"]
    assert (
        skill["edges"]
        == episode["edges"]
        == [{"from": "inner", "to": "score"}, {"from": "score", "to": "report"}]
    )
    assert [node["status"] for node in episode["nodes"]] == ["done", "failed", "skipped"]
    assert {node["status"] for node in skill["nodes"]} == {None}
    assert (
        demo.run("graph", "@last", "--format", "mermaid").out
        == demo.run("trace", "--format", "mermaid").out
    )
