"""Whose an episode is: the folder's name, another one of the same id, and who may write where it lies."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.sampled(12)

GREET = ("run", "demo.greet", "-q")


@pytest.fixture
def two(demo: Any) -> tuple[Path, Path]:
    """Two sealed episodes that bear one another's names."""
    for text in ("one", "two"):
        demo.run(*GREET, "-p", f"text={text}").assert_ok()
    one, other = demo.episodes
    away = one.with_name("away")
    one.rename(away)
    other.rename(one)
    away.rename(other)
    return one, other


def told(result: Any) -> set[str]:
    return {each["code"] for each in result.json["warnings"]}


def test_swapped_folders_are_told_by_every_command(demo: Any, two: tuple[Path, Path]) -> None:
    name = two[0].name
    for command in (
        ("ls",),
        ("trace", name),
        ("state", "show", name),
        ("state", "show", name, "--check"),
    ):
        assert "episode.renamed" in told(demo.run(*command, "--json")), command
    found = demo.run("verify", name, "--json").assert_exit(1).json["findings"]
    assert [each["code"] for each in found if each["severity"] == "error"] == ["episode.renamed"]
    assert "cogcli verify" in demo.run("ls").assert_ok().err


def test_swapped_folders_are_told_of_a_full_runs_directory_too(
    demo: Any, two: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through the index: what it remembers is what was seen."""
    from cogcli.episode.listing.episode_listing import list_rows
    from cogcli.episode.listing.episode_row import EpisodeFilter

    runs = two[0].parent
    for _ in range(2):
        rows = list(
            list_rows(
                runs, EpisodeFilter(), lambda: sorted((p.name for p in two), reverse=True), worth=1
            )
        )
        assert {row.id: row.log_id for row in rows} == {
            two[0].name: two[1].name,
            two[1].name: two[0].name,
        }


def test_an_interrupted_run_is_not_gone_on_with_under_another_name(
    demo: Any, two: tuple[Path, Path]
) -> None:
    for name in ("manifest.json", "summary.json", "state.json"):
        (two[0] / name).unlink()
    (two[0] / "learn.jsonl").write_bytes(b"")
    log = two[0] / "events.jsonl"
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:3]))
    before = log.read_bytes()
    result = demo.run("resume", two[0].name, "--json").assert_exit(3).json
    assert result["error"]["code"] == "episode.renamed"
    assert log.read_bytes() == before


def test_a_name_that_is_no_id_is_free(demo: Any) -> None:
    demo.run(*GREET, "-p", "text=one").assert_ok()
    mailed = Path(shutil.copytree(demo.episode, demo.root / "mailed"))
    assert demo.run("verify", "./mailed", "--json").assert_ok().json["warnings"] == []
    assert demo.run("trace", str(mailed), "--json").assert_ok().json["warnings"] == []


def test_two_sealed_episodes_of_one_id_are_told(demo: Any) -> None:
    demo.run(*GREET, "-p", "text=one").assert_ok()
    copy = Path(shutil.copytree(demo.episode, demo.root / "copy"))
    same = demo.run("verify", demo.episode.name, "./copy", "--json").assert_ok().json["findings"]
    assert [each["severity"] for each in same if each["code"] == "episode.twice"] == ["info"]
    manifest = json.loads((copy / "manifest.json").read_bytes())
    manifest["created_at"] = "2020-01-01T00:00:00.000000Z"
    (copy / "manifest.json").write_text(json.dumps(manifest))
    other = demo.run("verify", demo.episode.name, "./copy", "--json").assert_exit(1).json
    assert "episode.twice" in {
        each["code"] for each in other["findings"] if each["severity"] == "error"
    }
    demo.run("verify", demo.episode.name, demo.episode.name).assert_ok()


@pytest.mark.sampled(24)
@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o1777])
def test_a_runs_directory_that_others_may_write_to_is_warned_of(demo: Any, mode: int) -> None:
    assert told(demo.run(*GREET, "-p", "text=one", "--json").assert_ok()) <= {"service.isolation"}
    runs = demo.episode.parent
    runs.chmod(mode)
    for command in ((*GREET, "-p", "text=two"), ("rerun", "@last", "-q")):
        assert "env.runs-shared" in told(demo.run(*command, "--json").assert_ok())
    checks = demo.run("doctor", "--json").json["checks"]
    (check,) = (each for each in checks if each["name"] == "runs directory")
    assert check["status"] == "warning"
    assert "chmod go-w" in check["fix"]
    runs.chmod(0o755)
    assert told(demo.run(*GREET, "-p", "text=two", "--json").assert_ok()) <= {"service.isolation"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_runs_directory_of_another_user_is_warned_of(demo: Any) -> None:
    demo.run(*GREET, "-p", "text=one").assert_ok()
    os.chown(demo.episode.parent, 12345, -1)
    assert "another user" in demo.run("run", "demo.greet", "-p", "text=two").assert_ok().err
