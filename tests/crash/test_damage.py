"""What a crash of the machine or a bad disk leaves: torn tails are recovered, changed bits are found, every one.

`COGCLI_LONG_TESTS=1` tries every byte and every bit; else a sample spread over every file.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from crash_flows import FLOWS, Flow, Sandbox
from crash_invariants import CALLS, broken, key_of
from crash_points import Range, finished
from crash_verdicts import LONG, Tell
from fakes.logged import is_clean
from support.checkpoints import vouch

from cogcli.base.errors import CogcliError
from cogcli.base.redact import Redactor
from cogcli.base.system import SystemClock, SystemIds
from cogcli.episode.layout import CHECKPOINT
from cogcli.episode.log_fold import decision_files, fold_log
from cogcli.episode.log_reader import EventLog
from cogcli.episode.projection import project_bytes
from cogcli.episode.store import Store
from cogcli.episode.verify.check import verify

pytestmark = pytest.mark.sampled(4)

LARGE = 20_000
"""From how many bytes on a long run, too, flips one bit of some bytes only, outside the log."""


@pytest.fixture(params=FLOWS, ids=lambda flow: flow.name)
def flow(request: pytest.FixtureRequest) -> Flow:
    found: Flow = request.param
    return found


@pytest.fixture
def whole(shooting_range: Range, flow: Flow, request: pytest.FixtureRequest) -> Sandbox:
    """A run of a flow, finished and sealed."""
    sandbox = shooting_range.sandbox(request.node.name.replace("[", "-").replace("]", ""))
    finished(sandbox, flow, sandbox.command(*sandbox.asked(flow)))
    assert broken(sandbox, finished=True) == []
    return sandbox


def spread(count: int, few: int) -> Iterable[int]:
    """All positions in a long run, else a few, the first and the last among them."""
    return (
        range(count)
        if LONG or count <= few
        else sorted({n * (count - 1) // (few - 1) for n in range(few)})
    )


@pytest.mark.sampled(8)
def test_a_tail_torn_at_any_byte_is_cut_kept_and_told(
    whole: Sandbox, flow: Flow, tell: Tell
) -> None:
    """Torn behind the middle of the log and at its last line, with and without NULs where a file system left them."""
    episode = whole.episodes[0]
    log = (episode / "events.jsonl").read_bytes()
    for name in ("summary.json", "manifest.json"):
        (episode / name).unlink()
    lines = log.splitlines(keepends=True)
    tried = 0
    for last in sorted({len(lines) // 2, len(lines) - 1}):
        kept, line = b"".join(lines[:last]), lines[last]
        _persist(episode, kept)
        for cut in spread(len(line), 8):
            for tail in (line[:cut], line[:cut] + b"\0" * 512, line[:cut] + b"\0\0\n"):
                _recovered(episode, kept, tail)
                tried += 1
    tell("a torn tail", flow.name, tried, 0)


def _persist(episode: Path, kept: bytes) -> None:
    """The documents that the log tells of, if it does."""
    (episode / "events.jsonl").write_bytes(kept)
    for name in ("state.json", "decision.json", "context.json"):
        (episode / name).unlink(missing_ok=True)
    events = [event for _, event in EventLog(episode)]
    told = [n for n, event in enumerate(events) if event.event_type == "run.state_projection"]
    if told:
        (episode / "state.json").write_bytes(project_bytes(events[: told[-1] + 1]))
        for name, data in decision_files(fold_log(enumerate(events[: told[-1] + 1]))).items():
            (episode / name).write_bytes(data)


def _recovered(episode: Path, kept: bytes, tail: bytes) -> None:
    (episode / "events.torn").unlink(missing_ok=True)
    (episode / "learn.jsonl").write_bytes(b"")
    (episode / "events.jsonl").write_bytes(kept + tail)
    assert [event.seq for _, event in EventLog(episode)] == list(range(kept.count(b"\n")))
    clock, ids = SystemClock(), SystemIds()
    reopened = Store(episode.parent).reopen(episode, clock=clock, ids=ids, redactor=Redactor())
    reopened.journal.close()
    assert (episode / "events.jsonl").read_bytes().startswith(kept)
    assert reopened.dropped_bytes == len(tail)
    if tail:
        assert (episode / "events.torn").read_bytes() == tail
        assert reopened.events[-1].event_type == "run.recovered"
        assert reopened.events[-1].payload["dropped_bytes"] == len(tail)
    wrong = [found for found in verify(episode) if found.severity == "error"]
    assert {found.code for found in wrong} <= {"episode.unsealed"}, (tail, wrong)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("tail", [b"", b'{"seq":', b"\0" * 4096, b'{"seq":9}\0\0\n'])
def test_a_run_with_a_torn_tail_is_gone_on_with_to_its_end(
    shooting_range: Range, tail: bytes, request: pytest.FixtureRequest
) -> None:
    sandbox = shooting_range.sandbox(f"torn {len(tail)}")
    sandbox.launch(*sandbox.asked(FLOWS[0]), at=40)
    with open(sandbox.episodes[0] / "events.jsonl", "ab") as log:
        log.write(tail)
    last = finished(sandbox, FLOWS[0], sandbox.command("ls", *sandbox.flags()))
    assert broken(sandbox, finished=True) == []
    assert last.code in (0, 1)
    once = [key for key in sandbox.ledger if key != "c"]  # whose capability may be called again
    assert len(once) == len(set(once))


@pytest.mark.sampled(8)
def test_any_flipped_bit_of_a_finished_episode_is_found(
    whole: Sandbox, flow: Flow, tell: Tell
) -> None:
    episode = whole.episodes[0]
    missed = []
    tried = 0
    for path in sorted(
        path for path in episode.rglob("*") if path.is_file() and path.name != CHECKPOINT
    ):
        with open(path, "r+b") as file:
            for byte, bit in _bits(path, flow):
                tried += 1
                if not _is_found(episode, file.fileno(), byte, 1 << bit):
                    missed.append(f"{path.name}: bit {bit} of byte {byte}")
    tell("a flipped bit", flow.name, tried, len(missed))
    assert is_clean(verify(episode))
    assert missed == []


def _bits(path: Path, flow: Flow) -> Iterator[tuple[int, int]]:
    """Every bit of the first flow's files, one bit of every byte of the others', some of large files."""
    size = path.stat().st_size
    if LONG and flow is FLOWS[0] and size < LARGE:
        yield from ((byte, bit) for byte in range(size) for bit in range(8))
        return
    step = 997 if size >= LARGE and path.suffix != ".jsonl" else 1
    places = range(0, size, step) if LONG else spread(size, 6)
    yield from ((byte, (byte * 5 + 3) % 8) for byte in places)


def _is_found(episode: Path, file: int, byte: int, mask: int) -> bool:
    old = os.pread(file, 1, byte)
    os.pwrite(file, bytes([old[0] ^ mask]), byte)
    try:
        return not is_clean(verify(episode))
    except CogcliError:
        return True  # refused to open it
    finally:
        os.pwrite(file, old, byte)


@pytest.mark.sampled(4)
def test_any_flipped_bit_of_an_unfinished_log_is_refused(
    whole: Sandbox, flow: Flow, tell: Tell
) -> None:
    """The newest line, too, which no later one vouches for: nothing of it is read, and nothing goes on from it."""
    episode = whole.episodes[0]
    log = (episode / "events.jsonl").read_bytes()
    for name in ("summary.json", "manifest.json", "state.json"):
        (episode / name).unlink()
    (episode / "learn.jsonl").write_bytes(b"")
    lines = log.splitlines(keepends=True)
    tried, wrong = 0, []
    for count in [count for count in spread(len(lines) + 1, 5) if count]:
        text = b"".join(lines[:count])
        newest = len(text) - len(lines[count - 1])
        for bit in spread(8 * (len(text) - newest), 12):
            place, mask = newest + bit // 8, 1 << bit % 8
            changed = text[:place] + bytes([text[place] ^ mask]) + text[place + 1 :]
            tried += 1
            if not _is_refused(episode, changed, sound=count - 1):
                wrong.append(f"bit {bit} of line {count}")
    tell("a flipped bit of the newest line", flow.name, tried, len(wrong))
    assert wrong == []


def _is_refused(episode: Path, log: bytes, *, sound: int) -> bool:
    (episode / "events.jsonl").write_bytes(log)
    if len(list(EventLog(episode))) != sound:
        return False
    try:
        clock, ids = SystemClock(), SystemIds()
        Store(episode.parent).reopen(
            episode, clock=clock, ids=ids, redactor=Redactor()
        ).journal.close()
    except CogcliError as error:
        return error.exit_code == 3 and (episode / "events.jsonl").read_bytes() == log
    return False


@pytest.mark.sampled(8)
@pytest.mark.parametrize("where", ["intent", "result"])
def test_a_run_whose_newest_line_was_damaged_is_mended_and_ends(
    shooting_range: Range, flow: Flow, where: str, tell: Tell
) -> None:
    """No effect happens twice, though the line that told of it is gone."""
    whole = shooting_range.sandbox(f"mended {flow.name} {where}")
    finished(whole, flow, whole.command(*whole.asked(flow)))
    lines = (whole.episodes[0] / "events.jsonl").read_bytes().splitlines(keepends=True)
    wanted = {"intent": b'"step.started"', "result": b'"step.completed"'}[where]
    places = [number for number, line in enumerate(lines, 1) if wanted in line]
    places = places if LONG else places[-1:]
    for count in places:
        sandbox = shooting_range.sandbox(f"mended {flow.name} {where} {count}")
        _damaged(whole, sandbox, lines[:count])
        assert sandbox.command("resume", "@last", *sandbox.flags()).code == 3
        mended = sandbox.command("verify", "@last", "--repair", *sandbox.flags())
        assert mended.code == 0, mended
        finished(sandbox, flow, sandbox.command("ls", *sandbox.flags()))
        assert broken(sandbox, finished=True) == []
    tell(f"a damaged {where}", flow.name, len(places), 0)


def _damaged(whole: Sandbox, sandbox: Sandbox, lines: list[bytes]) -> None:
    """The episode as it was after these lines, every call that had begun having happened, one bit altered."""
    events = [json.loads(line) for line in lines]
    begun = {
        key_of(e)
        for e in events
        if e["event_type"] == "step.started" and e["payload"].get("capability") in CALLS
    }
    happened = [key for key in whole.ledger if key in begun]
    sandbox.ledger_file.write_text("".join(f'{{"key": "{key}"}}\n' for key in happened))
    sandbox.environment["CRASH_SOON"] = "1"
    episode = sandbox.runs / whole.episodes[0].name
    shutil.copytree(whole.episodes[0], episode)
    for name in ("summary.json", "manifest.json", "state.json"):
        (episode / name).unlink(missing_ok=True)
    (episode / "learn.jsonl").write_bytes(b"")
    last = bytearray(lines[-1])
    last[last.index(b'"payload"') + 3] ^= 4
    (episode / "events.jsonl").write_bytes(b"".join(lines[:-1]) + last)
    vouch(episode, sandbox.environment["HOME"], events=len(lines) - 1)


def test_a_missing_or_another_file_is_found(whole: Sandbox, tell: Tell, flow: Flow) -> None:
    episode = whole.episodes[0]
    files = sorted(
        path for path in episode.rglob("*") if path.is_file() and path.name != CHECKPOINT
    )
    away = episode.parent.parent / "away"
    for path in files:
        shutil.move(path, away)
        try:
            assert not _clean(episode), path.name
        finally:
            shutil.move(away, path)
    (episode / "more.txt").write_text("more")
    assert not _clean(episode)
    tell("a missing file", flow.name, len(files), 0)


def _clean(episode: Path) -> bool:
    try:
        return is_clean(verify(episode))
    except CogcliError:
        return False
