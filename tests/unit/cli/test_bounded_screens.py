"""What is shown is bounded, whole only where it was asked for, and hides nothing of what it is made of."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogcli.base.terminal_text import truncate_bytes
from cogcli.cli import main
from cogcli.cli.code_frame import Sources, frame
from cogcli.cli.streams import OutputStream
from cogcli.declarations.envelope import Event
from cogcli.report.styled_text import plain_text
from cogcli.report.table import sections

pytestmark = pytest.mark.sampled(2)

VALUES = st.recursive(
    st.text(max_size=30) | st.integers() | st.just("x" * 5000) | st.just("ü" * 3000),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(st.text(max_size=200), st.integers(1, 300))
def test_a_beginning_and_what_is_left_are_the_whole(text: str, most: int) -> None:
    head, more = truncate_bytes(text, most)
    left = int(more.removeprefix("… ").removesuffix(" bytes more").replace(",", "")) if more else 0
    assert text.startswith(head)
    assert len(head.encode()) + left == len(text.encode())
    assert len(head.encode()) <= most
    assert bool(more) == (len(text.encode()) > most)
    assert truncate_bytes(text, None) == (text, "")


@given(st.dictionaries(st.sampled_from("abc"), VALUES))
def test_no_member_of_an_event_fills_the_screen(payload: dict[str, Any]) -> None:
    event = Event(0, "ev", "t", "ep", "run", None, "act", "x.y", payload)
    whole, shown = sections(event), sections(event, 1000)
    for member in "abc":
        mine = [
            line
            for line in shown
            if line.startswith((f"  payload.{member}:", f"  payload.{member}."))
        ]
        assert sum(len(line.encode()) for line in mine) < 4 * 1000 + 200
    if len("\n".join(whole).encode()) < 1000:
        assert shown == whole
    assert len([line for line in shown if "bytes more" in line]) or shown == whole


@given(
    st.lists(
        st.tuples(
            st.text(alphabet="ab \x1b\n\t\u202e\x9b\udcff", max_size=8),
            st.sampled_from(["", "bold"]),
        )
    )
)
def test_no_line_holds_anything_hidden(spans: list[tuple[str, str]]) -> None:
    file = io.StringIO()
    shown = OutputStream(file, {}, "never").line(spans)
    assert shown.endswith("\n")
    assert all(char.isprintable() or char == "\t" for char in shown[:-1])


@pytest.mark.parametrize("text", ["[" * 20_000, "k: " + "x" * 20_000, "a " * 10_000, "\x1b" * 5000])
@pytest.mark.parametrize("column", [1, 4, 4000, 5000])
@pytest.mark.parametrize("width", [None, 20, 80, 120])
def test_a_frame_is_no_wider_than_a_screen(text: str, column: int, width: int | None) -> None:
    for line in frame(
        "f.yaml",
        1,
        column,
        width=width,
        sources=Sources(contents={"f.yaml": text.encode()}),
        note="why",
    ):
        assert len(plain_text(line)) <= (width or 400) + 10


def test_a_line_that_people_write_is_framed_whole_where_nobody_looks() -> None:
    text = "key: " + "word " * 60 + "end"
    lines = frame("f.yaml", 1, 1, sources=Sources(contents={"f.yaml": text.encode()}))
    assert f" 1 | {text}" in map(plain_text, lines)


def told(argv: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    code = main.run(argv)
    streams = capsys.readouterr()
    return code, streams.out, streams.err


def test_long_values_are_cut_on_a_screen_and_whole_in_a_file(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "Guten Tag. " * 20_000
    (place / "t.txt").write_text(text)
    assert told(["run", "text.normalize_all", "-q"], capsys)[0] == 2
    assert told(["run", "text.language", "-p", "text=@t.txt", "-q"], capsys)[0] == 0
    for number, flags in enumerate((["--io"], ["--view", "events", "--full"])):
        code, shown, _ = told(["trace", *flags], capsys)
        assert code == 0
        assert len(shown) < 100_000
        assert " bytes more" in shown
        file = f"whole{number}.txt"
        assert told(["trace", *flags, "-o", file], capsys)[:2] == (0, f"{file}\n")
        whole = (place / file).read_text()
        assert text[:-1] in whole
        assert "bytes more" not in whole
        code, answer, _ = told(["trace", *flags, "-o", file, "--json"], capsys)
        assert (code, json.loads(answer)["error"]["code"]) == (2, "output.exists")
        assert (place / file).read_text() == whole
    assert json.loads(told(["trace", "-o", "new", "--json"], capsys)[1])["file"] == "new"
    for wrong, expected in (
        (["trace", "-o", ""], 2),
        (["trace", "--follow", "-o", "x"], 2),
        (["trace", "text.language", "-o", "x", "-p", "text=a"], 2),
        (["trace", "-o", "nowhere/x"], 3),
        (["trace", "--why", "vars.nothing", "-o", "x"], 2),
    ):
        assert told(wrong, capsys)[0] == expected, wrong
    assert not (place / "x").exists()


KEYS = ('"\\u001b[31mred"', '"a\\u202eb"', '"l1\\nl2"', '"\\u009b2J"')


@pytest.mark.parametrize("key", KEYS)
def test_a_key_of_the_configuration_cannot_write_to_the_terminal(
    key: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "cogcli.toml").write_text(f"{key} = 1\nregistry = [{key}]\ntrust_level = {key}\n")
    for command in (
        ["config", "show"], ["config", "show", "--origin"], ["config", "show", "registry"], ["config", "trust"],
        ["doctor"], ["validate"], ["ls"], ["skills", "ls"], ["run", "text.language", "-p", "text=x"],
        ["trace", "--json"], ["config", "show", "--json"],
    ):  # fmt: skip
        _, out, err = told(command, capsys)
        for char in out + err:
            assert char.isprintable() or char in "\n\t", (command, char)
        assert not any(line.startswith("l2") for line in (out + err).splitlines()), command


def test_a_file_of_an_episode_is_asked_for_its_size_before_it_is_read(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each file grows to half a terabyte that takes no room; whoever reads that does not come back."""
    (place / "t.txt").write_text("Guten Tag. " * 20_000)
    assert told(["run", "text.language", "-p", "text=@t.txt", "-q"], capsys)[0] == 0
    (episode,) = (place / ".cogcli/episodes").iterdir()
    blob = next((episode / "blobs").iterdir())
    for file in (
        blob,
        *(
            episode / f"{name}"
            for name in ("learn.jsonl", "state.json", "summary.json", "manifest.json")
        ),
    ):
        size = file.stat().st_size
        os.truncate(file, 1 << 39)
        for command in (
            ["verify"],
            ["verify", "--repair"],
            ["trace"],
            ["state", "show"],
            ["ls"],
            ["replay"],
            ["resume"],
        ):
            assert told(command, capsys)[0] in (0, 1, 2, 3), (file.name, command)
        assert told(["verify", "--json"], capsys)[0] == 1, file.name
        os.truncate(file, size)
    assert told(["verify"], capsys)[0] == 0
