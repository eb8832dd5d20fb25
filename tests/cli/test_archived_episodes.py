"""Each command that reads an episode reads it from an archive as from its folder."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from support.project import Project, Result

from cogcli import api
from cogcli.episode.archive.writer import ArchiveSeries
from cogcli.episode.folder import Folder

VIEWS = (
    ("ls",),
    ("ls", "--outcome", "ok"),
    ("ls", "--limit", "1"),
    ("trace", "@last"),
    ("trace", "@last", "--view", "events"),
    ("trace", "@failed", "--json"),
    ("state", "show", "@last", "--path", "outputs"),
    ("state", "show", "@last", "--json"),
    ("state", "show", "@last", "--check"),
    ("state", "show", "@last", "--project"),
    ("graph", "@last"),
    ("diff", "@last", "@last~1"),
    ("replay", "@last"),
    ("verify", "--heads"),
    ("registry", "stats"),
)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Two runs that ended well, and one that failed."""
    made = Project(tmp_path).demo()
    made.run("run", "demo.review", "-p", "text=a").assert_exit(1)
    for text in ("one", "two"):
        made.run("run", "demo.greet", "-p", f"text={text}").assert_ok()
    return made


def archive_all(project: Project) -> list[str]:
    """Move all episodes into an archive, and return their ids, newest first."""
    directories = project.episodes
    with ArchiveSeries(directories[0].parent / ".archives") as series:
        for directory in directories:
            with Folder.open(directory) as folder:
                series.append_folder(folder)
            shutil.rmtree(directory)
    return [directory.name for directory in directories]


def answers(project: Project) -> list[Result]:
    return [project.run(*words) for words in VIEWS]


@pytest.mark.sampled(6)
def test_every_view_is_that_of_the_folder(project: Project) -> None:
    before = answers(project)
    archive_all(project)
    for view, old in zip(answers(project), before, strict=True):
        assert (view.arguments, view.code, view.out) == (old.arguments, old.code, old.out)
        assert view.err == old.err


def test_the_report_page_is_that_of_the_folder(project: Project) -> None:
    """But for the line that says what was checked."""
    project.run("report", "@last", "-o", "folder.html").assert_ok()
    archive_all(project)
    project.run("report", "@last", "-o", "archive.html").assert_ok()
    folder, archive = (
        (project.root / name).read_text(encoding="utf-8")
        for name in ("folder.html", "archive.html")
    )
    row = re.search(r"<tr[^>]*>(?:(?!</tr>).)*archive\.record.*?</tr>", archive)
    assert row is not None
    assert archive.replace(row[0], "") == folder


def test_an_archived_episode_is_named_as_any_other(project: Project) -> None:
    ids = archive_all(project)
    archive = next((project.root / ".cogcli/episodes/.archives").iterdir())
    trace_id = project.run("ls", "--json").assert_ok().json["episodes"][0]["trace_id"]
    shown = project.run("trace", ids[0]).assert_ok().out
    for name in ("@last", "@last~0", ids[0][:28], trace_id, trace_id[:8], f"{archive}/{ids[0]}"):
        assert project.run("trace", name).assert_ok().out == shown
    places = [row["dir"] for row in project.run("ls", "--json").json["episodes"]]
    assert places == [f".cogcli/episodes/.archives/{archive.name}/{id}" for id in ids]
    for place in places:
        project.run("trace", place)
    project.run("trace", str(archive)).assert_exit(2)  # it has several
    project.run("trace", f"{archive}/ep_01HF7YAT00000000000000000A").assert_exit(2)


def test_python_reads_archived_episodes(project: Project) -> None:
    ids = archive_all(project)
    opened = api.Project(project.root, environ=project.env)
    assert [row.id for row in opened.episodes()] == ids
    episode = opened.episode(ids[0])
    assert episode.state["outcomes"]["status"] == "ok"
    assert next(iter(episode.events())).event_type == "run.started"
    assert not [finding for finding in episode.findings() if finding["severity"] == "error"]


def test_verify_reports_that_it_read_an_archive(project: Project) -> None:
    archive_all(project)
    found = project.run("verify", "@last", "--json").assert_ok().json
    assert "archive.record" in [finding["code"] for finding in found["findings"]]
    assert found["episodes"][0]["level"] == "own"
    project.run("verify", "--all").assert_ok()
    project.run("verify", "@last", "--repair").assert_ok()


def test_a_rerun_and_a_replay_start_from_an_archive(project: Project) -> None:
    ids = archive_all(project)
    project.run("rerun", ids[0], "--from", "second").assert_ok()
    assert len(project.episodes) == 1
    project.run("verify", "--all").assert_ok()


@pytest.mark.parametrize("flags", [(), ("--abort",), ("--approve", "x.y")])
def test_what_writes_names_the_command_that_extracts(
    project: Project, flags: tuple[str, ...]
) -> None:
    ids = archive_all(project)
    refused = project.run("resume", ids[0], *flags, "--json").assert_exit(2)
    assert refused.json["error"]["code"] == "episode.archived"
    assert f"cogcli episodes extract {ids[0]}" in refused.json["error"]["next"]


def test_a_damaged_archive_is_reported_and_hides_nothing_else(project: Project) -> None:
    ids = archive_all(project)
    project.run("run", "demo.greet", "-p", "text=three").assert_ok()
    archive = next((project.root / ".cogcli/episodes/.archives").iterdir())
    archive.write_bytes(archive.read_bytes()[:300])
    listed = project.run("ls", "--json").assert_ok().json
    assert [warning["code"] for warning in listed["warnings"]] == ["archive.unreadable"]
    assert len(listed["episodes"]) == 1
    unknown = project.run("trace", ids[0], "--json").assert_exit(2).json
    assert unknown["error"]["code"] == "episode.unknown"
    assert archive.name in unknown["error"]["hint"]
    project.run("trace", f"{archive}/{'ep_01HF7YAT00000000000000000A'}").assert_exit(3)


def test_an_altered_record_is_refused(project: Project) -> None:
    ids = archive_all(project)
    archive = next((project.root / ".cogcli/episodes/.archives").iterdir())
    data = bytearray(archive.read_bytes())
    data[data.index(b"EPIS" + ids[0].encode()) + 200] ^= 1
    archive.write_bytes(data)
    refused = project.run("trace", ids[0], "--json").assert_exit(3).json
    assert refused["error"]["code"] == "archive.unreadable"
    project.run("trace", ids[1]).assert_ok()


def test_links_do_not_lead_to_an_archive(project: Project, tmp_path: Path) -> None:
    archive_all(project)
    place = project.root / ".cogcli/episodes/.archives"
    place.rename(tmp_path / "elsewhere")
    place.symlink_to(tmp_path / "elsewhere")
    assert project.run("ls", "--json").assert_ok().json["episodes"] == []
