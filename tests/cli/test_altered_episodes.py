"""What screens show of an episode whose files do not agree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.sampled(8)


@pytest.fixture
def altered(demo: Any) -> Any:
    """A project with one episode whose summary says another status than its log."""
    demo.run("run", "demo.greet", "-p", "text=hello").assert_ok()
    change(demo.episode / "summary.json", '"status": "ok"', '"status": "partial"')
    return demo


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


VIEWS = (
    ("ls",),
    ("trace",),
    ("state", "show"),
    ("report", "-o", "page.html"),
    ("diff", "@last", "@last"),
)


@pytest.mark.parametrize("command", VIEWS, ids=lambda command: command[0])
def test_the_first_line_says_so_and_names_verify(altered: Any, command: tuple[str, ...]) -> None:
    shown = altered.run(*command)
    assert shown.code == (1 if command[0] == "state" else 0)
    first, then = shown.err.splitlines()[:2]
    assert first.startswith(
        f"warning[episode.altered]: `{altered.episode.name}`: summary.json has "
    )
    assert then.startswith("next: cogcli verify ")
    assert "✓ ok" not in shown.out
    told = altered.run(*command, *(("--force",) if command[0] == "report" else ()), "--json").json
    assert told["warnings"][0]["code"] == "episode.altered"


def test_no_view_shows_a_good_status(altered: Any) -> None:
    assert altered.run("ls").out.split("\t")[1] == "altered"
    assert altered.run("ls", "--outcome", "ok").out == ""
    assert (
        altered.run("ls", "--outcome", "altered", "--json").json["episodes"][0]["status"]
        == "altered"
    )
    assert "✗ altered, the log says ok" in altered.run("trace").out.splitlines()[0]
    assert altered.run("trace", "--json").json["trace"]["status"] == "altered"
    assert altered.run("report", "--json").json["episodes"][0]["status"] == "altered"
    page = (altered.root / f"report-{altered.episode.name}.html").read_text()
    assert "Altered" in page
    assert "summary.json has " in page
    assert "Finished" not in page
    state = altered.run("state", "show", "--json").assert_exit(1).json
    assert state["error"]["code"] == "episode.altered"


def test_state_show_answers_from_the_log(demo: Any) -> None:
    demo.run("run", "demo.greet", "-p", "text=hello").assert_ok()
    whole = demo.run("state", "show").assert_ok().out
    change(demo.episode / "state.json", '"status": "ok"', '"status": "error"')
    shown = demo.run("state", "show").assert_exit(1)
    assert shown.out == whole
    assert demo.run("state", "show", "--path", "outcomes.status").assert_exit(1).out == "ok\n"


def test_verify_prints_expected_and_found_for_each_file(altered: Any) -> None:
    change(altered.episode / "learn.jsonl", '"success":true', '"success":null')
    log = altered.episode / "events.jsonl"
    shown = altered.run("verify").assert_exit(1)
    lines = [line.strip() for line in shown.out.splitlines()]
    place = next(n for n, line in enumerate(lines) if "summary.json:" in line)
    assert lines[place + 1].endswith('"status": "ok",')
    assert lines[place + 1].startswith("expected: ")
    assert lines[place + 2].endswith('"status": "partial",')
    assert lines[place + 2].startswith("found: ")
    assert sum(line.startswith("expected: ") for line in lines) == 2
    change(log, '"text":"hello"', '"text":"howdy"')
    told = altered.run("verify", "--json").assert_exit(1).json["findings"]
    broken = next(finding for finding in told if finding["code"] == "chain.broken")
    assert broken["expected"].startswith("sha256:")
    assert broken["found"].startswith("sha256:")
    assert broken["expected"] != broken["found"]
    assert [
        finding
        for finding in told
        if finding["code"].endswith(".differs") and "expected" not in finding
    ] == []


def test_verify_says_how_to_finish_an_unsealed_run(demo: Any) -> None:
    """The commands run as printed: the first continues the run, the second seals it."""
    demo.run("run", "demo.greet", "-p", "text=hello").assert_ok()
    (demo.episode / "manifest.json").unlink()
    shown = demo.run("verify").assert_exit(1)
    assert demo.run("ls").out.split("\t")[1] == "unsealed"
    command = _next(shown.err)
    assert command[0] == "verify"
    assert command[-1] == "--repair"
    demo.run(*command).assert_ok()
    log = demo.episode / "events.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:3]))
    for name in ("manifest.json", "summary.json", "state.json", "checkpoint.jsonl"):
        (demo.episode / name).unlink()
    (demo.episode / "learn.jsonl").write_bytes(b"")
    shown = demo.run("verify").assert_ok()
    command = _next(shown.err)
    assert command[0] == "resume"
    demo.run(*command).assert_ok()
    assert demo.run("verify").assert_ok().err == ""


def _next(err: str) -> list[str]:
    line = next(line for line in err.splitlines() if line.startswith("next: "))
    return line.removeprefix("next: cogcli ").split()
