"""A list of the envelope that is written an item at a time is the text that it is in one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from cogcli.cli import main
from cogcli.cli.commands import state
from cogcli.cli.envelope import StreamedList, envelope, envelope_parts
from cogcli.declarations.value_types import Json

EPISODES = sorted(file.parent for file in Path(__file__).parents[2].glob("episodes/*/state.json"))
ITEMS: list[Json] = [{"a": 1}, {"b": "ü\u202e"}, {}]


@pytest.mark.parametrize("count", range(len(ITEMS) + 1))
def test_the_parts_are_the_envelope(count: int) -> None:
    own: Json = {"first": 1, "state": {"x": "\u200b", "outcomes": {"actions": [], "z": None}}}
    given: Json = {"error": None, "warnings": [{"code": "c", "message": "m"}]}
    streamed = StreamedList(("state", "outcomes", "actions"), lambda: ITEMS[:count])
    parts = "".join(envelope_parts("state show", 0, own=own, streamed=streamed, **given))
    own["state"]["outcomes"]["actions"] = ITEMS[:count]
    assert parts == envelope("state show", 0, own=own, **given)


FLAGS = {
    "file": ("--json",),
    "projected": ("--json", "--project"),
    "an action": ("--path", "outcomes.actions[0]"),
    "a member": ("--path", "outcomes.actions[00].tool", "--json"),
    "no such action": ("--path", "outcomes.actions[9999].tool", "--json"),
    "no number": ("--path", "outcomes.actions.tool"),
    "all actions": ("--path", "outcomes.actions"),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS)
@pytest.mark.parametrize("episode", EPISODES, ids=lambda episode: episode.name)
def test_a_streamed_document_is_that_of_a_parsed_one(
    episode: Path,
    flags: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = ["state", "show", str(episode), *flags]
    code = main.run(command)
    whole = capsys.readouterr()
    monkeypatch.setattr(state, "_PARSED", 0)
    assert main.run(command) == code
    assert capsys.readouterr() == whole


def test_a_text_of_another_form_is_parsed_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = next(
        each for each in EPISODES if b'"actions": [\n' in (each / "state.json").read_bytes()
    )
    (tmp_path / "ep").mkdir()
    document = json.loads((file / "state.json").read_bytes())
    shutil.copy(file / "state.json", tmp_path / "ep")
    broken = (tmp_path / "ep" / "state.json").read_bytes().replace(b"\n      }", b"\n     }", 1)
    (tmp_path / "ep" / "state.json").write_bytes(broken)
    monkeypatch.setattr(state, "_PARSED", 0)
    main.run(["state", "show", str(tmp_path / "ep"), "--json"])
    assert json.loads(capsys.readouterr().out)["state"] == document
