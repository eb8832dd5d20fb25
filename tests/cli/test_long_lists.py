"""Long lists on a terminal, and `verify -q` (docs/reference/command-line.md#lists)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.sampled(16)

TERMINAL = {"COGCLI_FORCE_TTY": "100"}


@pytest.fixture
def many(demo: Any) -> Any:
    """A project with 130 skills of its own."""
    file = demo.root / "skills/local/demo/greet/skill.yaml"
    for number in range(130):
        copy = demo.root / f"skills/local/many/one-{number:03}/skill.yaml"
        copy.parent.mkdir(parents=True)
        copy.write_text(file.read_text().replace("demo.greet", f"many.one-{number:03}"))
    demo.env["COGCLI_BUILTIN"] = "1"
    return demo


def test_a_long_list_on_a_terminal_is_cut_with_a_note_and_all_shows_all(many: Any) -> None:
    total = len(many.run("skills", "ls").assert_ok().out.splitlines())
    cut = many.run("skills", "ls", env=TERMINAL).assert_ok()
    assert len(cut.out.splitlines()) == 2 + 100
    assert cut.err == f"and {total - 100} more: --all shows all\n"
    whole = many.run("skills", "ls", "--all", env=TERMINAL).assert_ok()
    assert len(whole.out.splitlines()) == 2 + total + 1, (
        "a heading and its line, and the line above shipped ones"
    )
    assert whole.err == ""
    assert many.run("skills", "ls", "-q", env=TERMINAL).err == ""


def test_a_pipe_gets_all_of_a_list(many: Any) -> None:
    lists = [
        many.run("skills", "ls", "--format", name).assert_ok()
        for name in ("text", "tsv", "jsonl", "csv")
    ]
    lengths = {len(listed.out.splitlines()) for listed in lists}
    assert min(lengths) > 130
    assert [listed.err for listed in lists] == [""] * 4
    assert len(many.run("skills", "ls", "--json", env=TERMINAL).json["skills"]) in lengths


def test_a_state_is_never_cut(many: Any) -> None:
    text = json.dumps({"text": "\n".join("x" * 3 for _ in range(300))})
    many.run("run", "demo.greet", "--input", text, "-q").assert_ok()
    shown = many.run(
        "state", "show", "@last", "--path", "outcomes.outputs.text", env=TERMINAL
    ).assert_ok()
    assert len(shown.out.splitlines()) >= 300
    assert "more" not in shown.err


@pytest.fixture
def altered(demo: Any) -> Path:
    """Three episodes, the second of which was altered."""
    for text in ("a", "b", "c"):
        demo.run("run", "demo.greet", "-p", f"text={text}", "-q").assert_ok()
    middle: Path = demo.episodes[1]
    (middle / "summary.json").write_text("{}")
    return middle


def test_verify_with_q_prints_only_what_is_wrong(demo: Any, altered: Path) -> None:
    loud = demo.run("verify", "--all").assert_exit(1).out
    assert all(path.name in loud for path in demo.episodes)
    quiet = demo.run("verify", "--all", "-q").assert_exit(1).out
    assert [path.name for path in demo.episodes if path.name in quiet] == [altered.name]
    shutil.rmtree(altered)
    assert demo.run("verify", "--all", "-q").assert_ok().out == ""
