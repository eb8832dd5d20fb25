"""What a worker returns is hostile until it is verified. Only the user's own episode of the line gets a place."""

from __future__ import annotations

import sys
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from cogcli.app.settings import Settings
from cogcli.app.verify_episodes import trusted_of
from cogcli.base.canonical import digest_of
from cogcli.base.errors import UnusableEnvironment
from cogcli.declarations.value_types import Json
from cogcli.episode.archive import format
from cogcli.episode.archive.format import ArchiveFault, Header
from cogcli.episode.archive.parcel import pack, unpack
from cogcli.episode.archive.writer import EpisodeBytes
from cogcli.scale.cluster.apart import ReturnedLine, UnsharedLines, remove_copies, run_apart
from cogcli.scale.cluster.arrivals import ReceivedAnswers
from cogcli.scale.executor import Completion, LineEnded
from cogcli.scale.identity import BatchKey, LineTask
from cogcli.scale.ledger import SentLine
from cogcli.scale.sent_lines import DispatchedLines
from cogcli.scale.worker import batch_from_frame, open_runner
from cogcli.specs.spec_snapshot import document_of

BATCH: Final = "ba_" + "0" * 26
OTHER: Final = "ba_" + "0" * 25 + "1"
KEY: Final = BatchKey(BATCH, 1)
TASK: Final = LineTask(1, 1, b'{"text": "a"}')


class Ends:
    """A worker with a directory of runs of its own, and the batch that takes what it returns."""

    def __init__(self, project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(project.root)
        for name, value in project.env.items():
            monkeypatch.setenv(name, value)
        self.there = project.root.parent / "there"
        self.here = project.root.parent / "here"
        self.here.mkdir()
        self.settings = Settings({"runs_dir": str(self.here)}, project.env, base=str(project.root))
        self._first: Json = {
            "flags": {"runs_dir": str(self.there)}, "base": str(project.root), "created_ms": 1, "batch": BATCH,
            "skill": "demo.counted", "options": {}, "in_doubt": "", "counts_calls": False, "specs": "",
            "archives": False,
        }  # fmt: skip
        self._first["specs"] = digest_of(document_of(batch_from_frame(self._first).catalog))

    def run(self, task: LineTask = TASK, batch: str = BATCH) -> Json:
        """The answer of the worker to a line of this or another batch."""
        return run_apart(open_runner({**self._first, "batch": batch}), task, batch)

    def take(self, frame: Json, task: LineTask = TASK) -> Completion:
        """The completion of a line."""
        sent = DispatchedLines(KEY, self.here, {}, lambda line: None, is_repeatable=False)
        return ReceivedAnswers(self.here, sent, trusted_of(self.settings)).take(task, frame)

    def files(self) -> list[str]:
        """The names of what is here."""
        return sorted(path.name for path in self.here.iterdir())


@pytest.fixture
def ends(counting: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ends]:
    yield Ends(counting, monkeypatch)
    # The line ran in this process, in which later tests have a module of this name.
    sys.modules.pop("demo_services", None)


def read_files(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}


def name_of(task: LineTask) -> str:
    return KEY.episode_id(task)


def changed(frame: Json, change: Callable[[EpisodeBytes], EpisodeBytes]) -> Json:
    """An answer whose episode was changed."""
    name = name_of(TASK)
    episode = change(unpack(b64decode(frame["parcel"]), name, batch=BATCH))
    return with_parcel(frame, pack(name, episode, batch=BATCH, line=1))


def with_parcel(frame: Json, parcel: bytes) -> Json:
    return {**frame, "parcel": b64encode(parcel).decode()}


def edit(name: str, old: bytes, new: bytes) -> Callable[[EpisodeBytes], EpisodeBytes]:
    def change(episode: EpisodeBytes) -> EpisodeBytes:
        assert old in episode.files[name]
        files = {**episode.files, name: episode.files[name].replace(old, new)}
        return EpisodeBytes(files, episode.blobs)

    return change


def without(name: str) -> Callable[[EpisodeBytes], EpisodeBytes]:
    def change(episode: EpisodeBytes) -> EpisodeBytes:
        files = {each: data for each, data in episode.files.items() if each != name}
        return EpisodeBytes(files, episode.blobs)

    return change


def test_an_episode_comes_back_byte_for_byte_and_its_copy_goes(ends: Ends) -> None:
    frame = ends.run()
    there = read_files(ends.there / name_of(TASK))
    completion = ends.take({**frame, "row": '{"line": 1, "outputs": "forged"}\n'})
    assert isinstance(completion, LineEnded)
    assert b'"outputs":{"text":"A"}' in completion.result.row
    assert read_files(ends.here / name_of(TASK)) == there
    assert ends.files() == [name_of(TASK)]
    remove_copies(ends.there, [ReturnedLine(1, 1, name_of(TASK)), ReturnedLine(1, 1, "../here")])
    assert not (ends.there / name_of(TASK)).exists()
    assert ends.files() == [name_of(TASK)]


def test_a_second_answer_replaces_nothing(ends: Ends) -> None:
    frame = ends.run()
    ends.take(frame)
    with pytest.raises(UnusableEnvironment) as refused:
        ends.take(frame)
    assert refused.value.code == "batch.answer-refused"


FORGED: Final[dict[str, Callable[[Ends, Json], Json]]] = {
    "the outputs were changed": lambda ends, frame: changed(
        frame, edit("summary.json", b'"A"', b'"B"')
    ),
    "an event was changed": lambda ends, frame: changed(frame, edit("events.jsonl", b'"A"', b'"B"')),
    "no key vouches for it": lambda ends, frame: changed(frame, without("checkpoint.jsonl")),
    "it is not sealed": lambda ends, frame: changed(frame, without("manifest.json")),
    "another line": lambda ends, frame: ends.run(LineTask(2, 1, TASK.data)),
    "another line under this number": lambda ends, frame: {
        **frame, "parcel": ends.run(LineTask(2, 1, TASK.data))["parcel"],
    },
    "another input": lambda ends, frame: ends.run(LineTask(1, 1, b'{"text": "b"}')),
    "another batch": lambda ends, frame: ends.run(batch=OTHER),
    "no episode": lambda ends, frame: {name: frame[name] for name in frame if name != "parcel"},
    "no parcel": lambda ends, frame: with_parcel(frame, b"nothing"),
    "no base64": lambda ends, frame: {**frame, "parcel": "?"},
    "a cut parcel": lambda ends, frame: with_parcel(frame, b64decode(frame["parcel"])[:-1]),
    "a result that waits": lambda ends, frame: {
        **frame, "entry": {**frame["entry"], "status": "pending", "error": {"code": "x"}},
    },
    "no entry": lambda ends, frame: {"kind": "ended"},
    "no kind": lambda ends, frame: {},
}  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", FORGED)
def test_an_answer_that_is_not_the_users_own_episode_of_the_line_is_refused(
    ends: Ends, case: str
) -> None:
    frame = FORGED[case](ends, ends.run())
    with pytest.raises(UnusableEnvironment) as refused:
        ends.take(frame)
    assert refused.value.code == "batch.answer-refused"
    assert ends.files() == []


def test_an_episode_of_another_users_key_is_refused(
    ends: Ends, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "other"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "other"))
    frame = ends.run()
    with pytest.raises(UnusableEnvironment, match="no key of yours vouches for it"):
        ends.take(frame)
    assert ends.files() == []


def test_a_parcel_names_only_files_of_its_episode_and_bounds_every_size() -> None:
    name = name_of(TASK)
    blob = b"large" * 100
    digest = "0" * 64
    episode = EpisodeBytes({"events.jsonl": b"{}\n"}, {})
    whole = pack(name, episode, batch=BATCH, line=1)
    assert unpack(whole, name, batch=BATCH) == episode
    bomb = pack(name, EpisodeBytes({"events.jsonl": bytes(1 << 20)}, {}), batch=BATCH, line=1)
    assert len(bomb) < 4096
    bad = {
        "at most": bytes(format.LIMIT + 1),
        "another batch": pack(name, episode, batch=OTHER, line=1),
        "another episode": pack(name_of(LineTask(2, 1, b"")), episode, batch=BATCH, line=2),
        "bytes follow": whole + whole[Header(BATCH, b"").size :],
        "no episode": Header(BATCH, b"").line,
        "is not the content": pack(name, EpisodeBytes({}, {digest: blob}), batch=BATCH, line=1),
        "SHA-256": whole[:-1] + bytes([whole[-1] ^ 1]),
        "no file of an episode": _pack_names(name, {"../x": b""}),
        "does not inflate": _pack_size(bomb, 1000),
    }
    for why, parcel in bad.items():
        with pytest.raises(ArchiveFault, match=why):
            unpack(parcel, name, batch=BATCH)


def _pack_names(name: str, files: dict[str, bytes]) -> bytes:
    """A parcel whose table names these files."""
    table = b'{"files":{"%s":0},"blobs":{}}\n' % next(iter(files)).encode()
    header = Header(BATCH, b"")
    record = format.encode_record(
        format.sum_base(header), format.EPISODE, format.key_of_episode(name)[1:],
        format.Deflater(b"").deflate(table), len(table),
    )  # fmt: skip
    return header.line + record


def _pack_size(parcel: bytes, size: int) -> bytes:
    """The parcel with one record, which names a smaller size than it inflates to."""
    header = Header(BATCH, b"")
    head = format.parse_head(parcel[header.size :])
    stored = parcel[header.size + format.HEAD :]
    base = format.sum_base(header)
    return header.line + format.encode_record(base, head.kind, head.name, stored, size)


def test_a_line_that_was_given_back_does_not_run_again() -> None:
    lines = UnsharedLines()
    assert lines.begin(BATCH, TASK, "ep_1") is None
    assert lines.begin(BATCH, TASK, "ep_1") == {"kind": "busy"}
    lines.end("ep_1")
    assert lines.begin(BATCH, TASK, "ep_1") is None
    lines.end("ep_1")
    lines.give(BATCH, [ReturnedLine(1, 1, "ep_1")])
    assert lines.begin(BATCH, TASK, "ep_1") == {"kind": "given"}
    assert lines.begin(OTHER, TASK, "ep_1") is None


def test_a_line_that_left_runs_elsewhere_only_if_its_calls_may_be_repeated(tmp_path: Path) -> None:
    before = {1: SentLine(1, 1, name_of(TASK), "Worker-1")}

    def judge(*, is_repeatable: bool, in_doubt: str = "", task: LineTask = TASK) -> str:
        sent = DispatchedLines(
            KEY, tmp_path, before, lambda line: None, is_repeatable=is_repeatable, in_doubt=in_doubt
        )
        found = sent.judge(task)
        return found.result.entry.status if isinstance(found, LineEnded) else "runs"

    assert judge(is_repeatable=True) == "runs"
    assert judge(is_repeatable=False) == "pending"
    assert judge(is_repeatable=False, in_doubt="rerun") == "runs"
    assert judge(is_repeatable=False, in_doubt="fail") == "error"
    assert judge(is_repeatable=False, task=TASK._replace(line=2)) == "runs"
    assert judge(is_repeatable=False, task=TASK._replace(line=2, origin=KEY)) == "pending"
    (tmp_path / name_of(TASK)).mkdir()
    assert judge(is_repeatable=False) == "runs"
