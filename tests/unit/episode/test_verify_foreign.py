"""Another tool's episode is compared with its own manifest; nothing sound is complained of, nothing altered passes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakes.logged import is_clean
from support import foreign_tool as tool

from cogcli.app.state_document import file_marks
from cogcli.app.verify_episodes import verify_episode
from cogcli.episode.layout import Finding
from cogcli.episode.verify.check import verify

FILES = (
    "events.jsonl",
    "learn.jsonl",
    "state.json",
    "summary.json",
    "release_notes.md",
    "artifacts/raw.bin",
)


@pytest.fixture
def episode(tmp_path: Path) -> Path:
    return tool.write(tmp_path / "ep_2024_abc123_s0", tool.release_notes())


def errors(directory: Path) -> list[tuple[str, str]]:
    return [(found.code, found.file) for found in verify(directory) if found.severity == "error"]


def told(directory: Path, code: str) -> list[Finding]:
    return [found for found in verify(directory) if found.code == code]


def bad_marks(directory: Path) -> set[str]:
    return {mark.name for mark in file_marks(directory) if not mark.good}


def manifest_of(directory: Path) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads((directory / "manifest.json").read_bytes())
    return manifest


def edit(directory: Path, change: Callable[[dict[str, Any]], object]) -> None:
    manifest = manifest_of(directory)
    change(manifest)
    (directory / "manifest.json").write_text(json.dumps(manifest))


# -- what is sound -----------------------------------------------------------------------------------------------------


def _upper(manifest: dict[str, Any]) -> None:
    for file in manifest["files"]:
        file["sha256"] = file["sha256"].upper()


SOUND: dict[str, Callable[[Path], object]] = {
    "plain hashes": lambda d: None,
    "hashes with their algorithm": lambda d: tool.write_manifest(d, prefix="sha256:"),
    "upper case": lambda d: edit(d, _upper),
    "upper case with its algorithm": lambda d: (
        tool.write_manifest(d, prefix="sha256:"),
        edit(d, _upper),
    ),
    "no sizes": lambda d: edit(d, lambda m: [file.pop("size_bytes") for file in m["files"]]),
    "no kinds": lambda d: edit(d, lambda m: [file.pop("kind") for file in m["files"]]),
    "no episode id": lambda d: edit(d, lambda m: m.pop("episode_id")),
    "it names itself": lambda d: edit(
        d,
        lambda m: m["files"].append({"name": "manifest.json", "sha256": "0" * 64, "size_bytes": 1}),
    ),
    "a signature of its own": lambda d: edit(d, lambda m: m.update(signature={"by": "somebody"})),
    "state.json not named": lambda d: edit(
        d, lambda m: m.update(files=[file for file in m["files"] if file["name"] != "state.json"])
    ),
}


@pytest.mark.parametrize("form", SOUND)
def test_an_authentic_episode_is_clean_whatever_the_form_of_its_manifest(
    episode: Path, form: str
) -> None:
    SOUND[form](episode)
    assert errors(episode) == []
    assert bad_marks(episode) == set()
    assert verify_episode(episode).level == "consistent"


@pytest.mark.parametrize(
    ("events", "status"),
    [(tool.release_notes, "ok"), (tool.labelled, "error")],
    ids=["records", "labels"],
)
def test_every_authentic_episode_is_clean(
    tmp_path: Path, events: Callable[[], Any], status: str
) -> None:
    log = events()
    assert errors(tool.write(tmp_path / log[0]["episode_id"], log, status=status)) == []


def test_a_last_line_needs_no_newline(episode: Path) -> None:
    log = episode / "events.jsonl"
    log.write_bytes(log.read_bytes().rstrip(b"\n"))
    tool.write_manifest(episode)
    assert errors(episode) == []
    assert not told(episode, "line.torn")


def test_lines_need_not_repeat_episode_and_trace(tmp_path: Path) -> None:
    events = tool.release_notes()
    events[0]["trace_id"] = "not one of ours/"
    for one in events[2:]:
        one.pop("episode_id")
    assert errors(tool.write(tmp_path / "ep_2024_abc123_s0", events)) == []
    events[3]["trace_id"] = "another"
    tool.write_log(tmp_path / "ep_2024_abc123_s0", events)
    assert ("trace.other", "events.jsonl") in errors(tmp_path / "ep_2024_abc123_s0")


# -- what was altered --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prefix", ["", "sha256:"])
@pytest.mark.parametrize("name", FILES)
def test_every_altered_file_is_told_by_name(episode: Path, name: str, prefix: str) -> None:
    """Bytes of the same number that leave sound JSON: only the hash tells."""
    tool.write_manifest(episode, prefix=prefix)
    data = bytearray((episode / name).read_bytes())
    place = max(data.find(byte) for byte in b"12")
    data[place] ^= 1
    (episode / name).write_bytes(data)
    assert ("file.altered", name) in errors(episode)
    assert name in bad_marks(episode)
    assert verify_episode(episode).level == "altered"


def test_every_altered_byte_is_told_and_marked(episode: Path) -> None:
    for name in (*FILES, "manifest.json"):
        data = (episode / name).read_bytes()
        for offset in range(0, len(data), 29):
            changed = bytearray(data)
            changed[offset] ^= 1 << offset % 8
            (episode / name).write_bytes(changed)
            found, marked = {file for _, file in errors(episode)}, bad_marks(episode)
            if (
                name == "manifest.json"
            ):  # nothing vouches for it: what a bit of it changes may say nothing
                assert bool(found) == bool(marked), (offset, found, marked)
            else:
                assert name in found & marked, (name, offset, found, marked)
        (episode / name).write_bytes(data)


@pytest.mark.parametrize("name", FILES[1:])
def test_every_missing_file_is_told_by_name(episode: Path, name: str) -> None:
    (episode / name).unlink()
    assert errors(episode) == [("file.missing", name)]
    assert bad_marks(episode) == {name}


def test_an_extra_file_is_a_warning(episode: Path) -> None:
    (episode / "notes.txt").write_text("mine")
    (episode / "artifacts" / "more.txt").write_text("mine")
    assert is_clean(verify(episode))
    assert [(found.severity, found.file) for found in told(episode, "file.extra")] == [
        ("warning", "artifacts/more.txt"),
        ("warning", "notes.txt"),
    ]


def test_all_that_is_wrong_is_listed(episode: Path) -> None:
    (episode / "learn.jsonl").write_text("{}\n")
    (episode / "summary.json").unlink()
    (episode / "more").write_text("")
    assert sorted(errors(episode)) == [
        ("file.altered", "learn.jsonl"),
        ("file.missing", "summary.json"),
    ]
    assert [found.file for found in told(episode, "file.extra")] == ["more"]


def test_a_size_tells_without_reading(episode: Path) -> None:
    """A file that holds nothing but a size beyond any disk is judged at once."""
    os.truncate(episode / "release_notes.md", 1 << 42)
    assert errors(episode) == [("file.altered", "release_notes.md")]
    assert "4,398,046,511,104 bytes" in told(episode, "file.altered")[0].message
    assert bad_marks(episode) == {"release_notes.md"}


def test_lines_swapped_cut_or_appended_are_told(episode: Path) -> None:
    log = episode / "events.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    for changed in (
        [*lines[:3], lines[4], lines[3], *lines[5:]],
        lines[:-1],
        lines[1:],
        [*lines, lines[-1]],
        [],
    ):
        log.write_bytes(b"".join(changed))
        assert ("file.altered", "events.jsonl") in errors(episode)


def test_a_broken_log_does_not_hide_what_else_was_altered(episode: Path) -> None:
    for broken in (b"\xff", b"["):
        log = episode / "events.jsonl"
        log.write_bytes(broken + log.read_bytes()[1:])
        (episode / "learn.jsonl").write_text("{}\n")
        found = errors(episode)
        assert {("file.altered", "events.jsonl"), ("file.altered", "learn.jsonl")} <= set(found), (
            found
        )


def test_files_of_another_episode_are_told(episode: Path, tmp_path: Path) -> None:
    other = tool.write(tmp_path / "ep_other", tool.release_notes("ep_other"))
    (episode / "state.json").write_bytes((other / "state.json").read_bytes())
    assert set(errors(episode)) >= {("file.altered", "state.json"), ("episode.other", "state.json")}
    (episode / "manifest.json").write_bytes((other / "manifest.json").read_bytes())
    assert ("episode.other", "manifest.json") in errors(episode)


def test_state_that_another_tool_altered_with_its_manifest_still_contradicts_the_log(
    episode: Path,
) -> None:
    state = json.loads((episode / "state.json").read_bytes())
    state["outcomes"]["metrics"]["task_score"] = 1
    (episode / "state.json").write_text(json.dumps(state))
    tool.write_manifest(episode)
    assert errors(episode) == [("state.evidence", "state.json")]


# -- manifests that are none -------------------------------------------------------------------------------------------


TRICKS = [
    "../x",
    "/etc/passwd",
    "a/../../x",
    "./events.jsonl",
    "a//b",
    "",
    "a/",
    "a\\b",
    "a\0b",
    "a\nb",
    "x" * 2000,
]


@pytest.mark.parametrize("name", TRICKS)
def test_a_name_that_leads_elsewhere_is_refused_and_not_opened(
    episode: Path, tmp_path: Path, name: str
) -> None:
    (tmp_path / "x").write_text("outside")
    edit(episode, lambda m: m["files"].append({**tool.entry(tmp_path / "x", name)}))
    assert errors(episode) == [("manifest.files", "manifest.json")]
    assert bad_marks(episode) == {"manifest.json"}


@pytest.mark.parametrize(
    "name", ["events.jsonl", "learn.jsonl", "release_notes.md", "artifacts/raw.bin", "artifacts"]
)
def test_a_link_is_refused_and_not_followed(episode: Path, tmp_path: Path, name: str) -> None:
    (episode / name).rename(tmp_path / "moved")
    (episode / name).symlink_to(tmp_path / "moved")
    if name == "events.jsonl":
        with pytest.raises(Exception, match="symbolic link"):
            verify(episode)
    else:
        assert errors(episode) == [("file.kind", name)]
    assert {"artifacts/raw.bin" if name == "artifacts" else name} == bad_marks(episode)


def test_pipes_and_second_names_are_refused(episode: Path) -> None:
    os.mkfifo(episode / "pipe")
    os.link(episode / "learn.jsonl", episode / "artifacts" / "again")
    assert sorted(errors(episode)) == [
        ("file.hard-link", "artifacts/again"),
        ("file.hard-link", "learn.jsonl"),
        ("file.kind", "pipe"),
    ]


BROKEN: dict[str, tuple[str, str]] = {
    "no JSON": ("{", "manifest.syntax"),
    "empty": ("", "manifest.syntax"),
    "a list": ("[]", "manifest.syntax"),
    "a key twice": ('{"files": [], "files": []}', "manifest.syntax"),
    "no files": ("{}", "manifest.files"),
    "files is an object": ('{"files": {}}', "manifest.files"),
    "a file is a text": ('{"files": ["events.jsonl"]}', "manifest.files"),
    "a name is a number": ('{"files": [{"name": 7}]}', "manifest.files"),
    "a hash is none": ('{"files": [{"name": "state.json", "sha256": "abc"}]}', "manifest.files"),
    "another algorithm": (
        '{"files": [{"name": "state.json", "sha256": "md5:abc"}]}',
        "manifest.files",
    ),
    "a size is none": ('{"files": [{"name": "state.json", "size_bytes": -1}]}', "manifest.files"),
    "a size is true": ('{"files": [{"name": "state.json", "size_bytes": true}]}', "manifest.files"),
    "twice": ('{"files": [{"name": "state.json"}, {"name": "state.json"}]}', "manifest.files"),
}


@pytest.mark.parametrize("form", BROKEN)
def test_a_broken_manifest_is_an_error_and_marked(episode: Path, form: str) -> None:
    text, code = BROKEN[form]
    (episode / "manifest.json").write_text(text)
    assert errors(episode) == [(code, "manifest.json")]
    assert bad_marks(episode) == {"manifest.json"}


def test_without_hashes_sizes_are_compared_and_nothing_is_vouched_for(episode: Path) -> None:
    edit(episode, lambda m: [file.pop("sha256") for file in m["files"]])
    assert errors(episode) == []
    assert verify_episode(episode).level == "unvouched"
    assert "`events.jsonl`" in told(episode, "manifest.unhashed")[0].message
    (episode / "learn.jsonl").write_text("{}\n")
    assert errors(episode) == [("file.altered", "learn.jsonl")]


@pytest.mark.parametrize("files", [[], [{"name": "state.json"}]])
def test_a_manifest_that_does_not_name_the_log_vouches_for_nothing(
    episode: Path, files: list[Any]
) -> None:
    edit(episode, lambda m: m.update(files=files))
    assert errors(episode) == []
    assert verify_episode(episode).level == "unvouched"


def test_without_a_manifest_it_is_said_that_nothing_vouches_for_it(tmp_path: Path) -> None:
    directory = tool.write(tmp_path / "ep_paused", tool.paused(), sealed=False)
    findings = verify(directory)
    assert [(found.code, found.severity) for found in findings] == [
        ("chain.unchained", "info"),
        ("episode.unsealed", "info"),
        ("signature.none", "info"),
    ]
    assert verify_episode(directory).level == "unvouched"
    assert bad_marks(directory) == set()


def test_a_manifest_that_is_linked_and_gone_is_a_warning(episode: Path) -> None:
    state = json.loads((episode / "state.json").read_bytes())
    (episode / "state.json").write_text(json.dumps({**state, "links": tool.LINKS}))
    (episode / "manifest.json").unlink()
    assert [(found.severity, found.file) for found in told(episode, "file.missing")] == [
        ("warning", "manifest.json")
    ]


def test_a_log_of_ours_is_held_to_a_manifest_of_ours(tmp_path: Path) -> None:
    """Nobody gets an altered episode of ours through as another tool's by putting such a manifest beside it."""
    import sample_episode as sample

    directory = sample.sealed_episode(tmp_path)
    tool.write_manifest(directory)
    assert "manifest.differs" in {code for code, _ in errors(directory)}


def test_a_log_of_ours_that_lost_its_chain_is_no_other_tools(tmp_path: Path) -> None:
    import sample_episode as sample

    directory = sample.sealed_episode(tmp_path)
    lines = [json.loads(line) for line in (directory / "events.jsonl").read_text().splitlines()]
    tool.write_log(
        directory,
        [{k: v for k, v in line.items() if k not in ("seq", "prev", "sum")} for line in lines],
    )
    tool.write_manifest(directory, schema_version="manifest/1")
    assert errors(directory) == [("manifest.differs", "manifest.json")]
