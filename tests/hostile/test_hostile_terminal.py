"""Data on a screen, in an envelope and in a table: shown, never obeyed. Names follow the list of hostile cases."""

from __future__ import annotations

import csv
import io
import shlex
import subprocess
from typing import Any

import pytest
from attack import COGCLI, attack, hold_all_episodes

pytestmark = pytest.mark.sampled(10)

EVIL = {
    "X01": "\x1b]0;pwn\x07\x1b[2J\x9b31m\x7f",
    "X02": "\x1b]8;;http://evil\x1b\\click\x1b]8;;\x1b\\ \x1b]52;c;cHdu\x07",
    "X03": "safe\u202eevil\u2066\u200b\u2028\ufeff",
    "X04": "one\rtwo\x08\x08\x0b\x0cthree\x00".replace("\x00", ""),
    "X05": "[bold red]markup[/] \\x1b [link=http://evil]click[/link]",
}
HIDDEN = frozenset(
    chr(point)
    for point in (
        *range(0x0A),
        *range(0x0B, 0x20),
        *range(0x7F, 0xA0),
        0x200B,
        0x2028,
        0x202E,
        0x2066,
        0xFEFF,
    )
)
"""Everything that moves a cursor or hides, but the line feed that ends our own lines."""
SCREENS = (
    ("trace",), ("trace", "--io"), ("trace", "--view", "table", "--header"), ("trace", "--view", "events", "--full"),
    ("state", "show"), ("state", "show", "--path", "goal.task"), ("ls",), ("ls", "--format", "md"),
)  # fmt: skip


def clean(*streams: bytes) -> None:
    for stream in streams:
        assert not HIDDEN & set(stream.decode()), stream


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", EVIL)
def test_control_characters_from_data_reach_no_terminal_and_no_envelope(
    demo: Any, name: str
) -> None:
    evil = EVIL[name]
    run = ("run", "demo.review", "-p", f"text={evil}", "--goal", evil, "--tag", f"a={evil}")
    for terminal in ({"COGCLI_FORCE_TTY": "100", "NO_COLOR": "1"}, {}):
        outcome = attack(demo, *run, env=terminal)
        assert outcome.code == 1
        clean(outcome.out, outcome.err)
    for command in SCREENS:
        shown = attack(demo, *command, env={"COGCLI_FORCE_TTY": "100", "NO_COLOR": "1"})
        clean(shown.out, shown.err)
        told = attack(demo, *command, "--json")
        clean(told.out, told.err)
    hold_all_episodes(demo)


@pytest.mark.parametrize("name", EVIL)
def test_what_was_typed_is_shown_not_obeyed(demo: Any, name: str) -> None:
    evil = EVIL[name]
    demo.run("run", "demo.greet", "-p", "text=hi").assert_ok()
    for command in (
        (evil,), ("run", evil), (f"--{evil}",), ("trace", evil), ("run", "demo.greet", "-p", f"{evil}=1"),
        ("run", "demo.greet", "--input", evil), ("run", "demo.greet", "--input-file", evil), ("explain", evil),
        ("run", "demo.greet", "-p", "text=x", "--runs-dir", f"/dev/null/{evil}"), ("state", "show", "--path", evil),
        ("skills", "show", evil), ("-C", evil, "ls"), ("validate", evil), ("config", "show", evil),
    ):  # fmt: skip
        outcome = attack(demo, "--json", *command)
        assert outcome.code in (1, 2, 3)
        clean(outcome.out, outcome.err)


def test_names_of_files_are_data_too(demo: Any) -> None:
    demo.run("run", "demo.greet", "-p", "text=hi").assert_ok()
    (demo.episode / EVIL["X01"].replace("/", "")).write_text("x")
    for more in (("--json",), ()):
        outcome = attack(demo, "verify", *more)
        assert outcome.code == 1
        clean(outcome.out, outcome.err)


@pytest.mark.parametrize(
    "command",
    [
        ("trace", "--view", "events"),
        ("ls",),
        ("state", "show"),
        ("explain", "--list"),
        ("verify", "--json"),
    ],
    ids=" ".join,
)
def test_X07_a_reader_that_has_seen_enough_is_no_error(demo: Any, command: tuple[str, ...]) -> None:
    demo.run("run", "demo.greet", "-p", "text=hi").assert_ok()
    line = f"{shlex.join([COGCLI, *command])} | head -1 >/dev/null; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", line], cwd=demo.root, env=demo.env, capture_output=True, check=True
    )
    assert (done.stdout, done.stderr) == (b"0\n", b"")


@pytest.mark.parametrize("begin", ["=", "+", "-", "@", "\t="])
def test_X09_a_cell_that_a_spreadsheet_would_compute_is_text(demo: Any, begin: str) -> None:
    formula = f"{begin}HYPERLINK(1)"
    skill = demo.root / "skills/local/demo/greet/skill.yaml"
    text = skill.read_text().replace("The skill demo.greet.", formula.replace("\t", "\\t"))
    skill.write_text(
        text.replace("description: ", 'description: "').replace("HYPERLINK(1)", 'HYPERLINK(1)"')
    )
    outcome = attack(demo, "skills", "ls", "--format", "csv", "--domain", "demo")
    cells = [cell for row in csv.reader(io.StringIO(outcome.out.decode())) for cell in row]
    assert any("HYPERLINK" in cell for cell in cells)
    assert not [cell for cell in cells if cell[:1] in ("=", "+", "-", "@", "\t", "\r")]


@pytest.mark.sampled(20)
@pytest.mark.parametrize(
    "env", [{"LC_ALL": "C"}, {"LC_ALL": "POSIX", "PYTHONIOENCODING": "ascii"}, {"TERM": "dumb"}]
)
@pytest.mark.parametrize("columns", ["1", "20", "40"])
@pytest.mark.parametrize(
    "command",
    [*SCREENS, ("doctor",), ("skills", "ls"), ("validate",), ("verify",)],
    ids=" ".join,
)
def test_narrow_and_plain_terminals_break_nothing(
    demo: Any, command: tuple[str, ...], env: dict[str, str], columns: str
) -> None:
    demo.run("run", "demo.review", "-p", "text=h\u00e9 \u4e2d\u6587")
    # An interpreter reads its encoding when it starts.
    attack(
        demo,
        *command,
        env={**env, "COGCLI_FORCE_TTY": columns},
        installed="PYTHONIOENCODING" in env,
    )
