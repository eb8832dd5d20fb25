"""Many at once: writers beside writers, readers beside a writer, two who continue with one run, clocks that jump."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from crash_flows import FLOWS, Sandbox
from crash_points import Range
from crash_verdicts import LONG, Tell
from fakes.logged import is_clean
from fakes.runner import ScriptedRunner, gives
from fakes.runs import RUN_ID, engine_for, request
from fakes.specs import capability, skill, step

from cogcli.base.errors import CogcliError
from cogcli.base.redact import Redactor
from cogcli.base.system import FakeClock, FakeIds
from cogcli.declarations.envelope import draft_of
from cogcli.declarations.events import RunPaused
from cogcli.episode.listing.episode_row import read_row
from cogcli.episode.log_reader import EventLog
from cogcli.episode.projection import project
from cogcli.episode.store import Store
from cogcli.episode.verify.check import verify
from cogcli.run.engine.run import execute

pytestmark = pytest.mark.sampled(6)

LINEAR = FLOWS[0]


@pytest.fixture
def sandbox(shooting_range: Range, request: pytest.FixtureRequest) -> Sandbox:
    return shooting_range.sandbox(request.node.name)


@pytest.mark.sampled(24)
def test_many_processes_in_one_runs_directory_each_get_a_whole_episode(
    sandbox: Sandbox, tell: Tell
) -> None:
    at_once, rounds = (100, 3) if LONG else (8, 1)
    with ThreadPoolExecutor(at_once) as pool:
        codes = list(
            pool.map(
                lambda _: sandbox.installed(*sandbox.asked(LINEAR)).code, range(at_once * rounds)
            )
        )
    tell(f"{at_once} processes at once", "linear", at_once * rounds, len(codes) - codes.count(0))
    assert set(codes) == {0}
    assert len(sandbox.episodes) == at_once * rounds
    assert [path for path in sandbox.episodes if not is_clean(verify(path))] == []
    assert len(sandbox.ledger) == 5 * at_once * rounds


def test_a_reader_beside_a_writer_never_sees_a_broken_line(sandbox: Sandbox) -> None:
    writer = threading.Thread(target=sandbox.installed, args=sandbox.asked(LINEAR))
    writer.start()
    seen: list[str] = []
    while writer.is_alive():
        for episode in sandbox.episodes:
            seen += _looked_at(episode)
    writer.join()
    assert set(seen) == set()


def _looked_at(episode: Path) -> list[str]:
    """What a reader may never meet, whenever it looks."""
    try:
        log = EventLog(episode)
        numbers = [event.seq for _, event in log]
        wrong = [finding.code for finding in verify(episode) if finding.severity == "error"]
        if numbers:
            project(event for _, event in EventLog(episode))
            read_row(episode)
    except CogcliError as error:
        return [] if "does not exist" in error.message else [error.message]
    # Files may be replaced between two looks at them: then the log, too, has gone on.
    raced = len(list(EventLog(episode))) > len(numbers) or (episode / "manifest.json").exists()
    broken = [] if log.stopped is None else [log.stopped.message]
    return (
        broken
        + ([] if numbers == list(range(len(numbers))) else ["gaps"])
        + ([] if raced else wrong)
    )


def test_of_two_who_reopen_an_episode_one_wins_and_the_other_is_told_who_holds_it(
    sandbox: Sandbox,
) -> None:
    sandbox.launch(*sandbox.asked(LINEAR), at=40)
    (episode,) = sandbox.episodes
    script = (
        "import sys, time; from pathlib import Path; from cogcli.base.redact import Redactor\n"
        "from cogcli.base.system import SystemClock, SystemIds; from cogcli.episode.store import Store\n"
        "path = Path(sys.argv[1])\n"
        "Store(path.parent).reopen(path, clock=SystemClock(), ids=SystemIds(), redactor=Redactor())\n"
        "print('held', flush=True); sys.stdin.read()\n"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", script, str(episode)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    before = (episode / "events.jsonl").read_bytes()
    told = sandbox.command("resume", "@last", *sandbox.flags())
    assert told.code == 3
    assert f"process {holder.pid} on " in told.out
    assert '"code":"episode.busy"' in told.out
    assert (episode / "events.jsonl").read_bytes() == before
    holder.communicate("")
    assert sandbox.command("resume", "@last", "--in-doubt", "skip", *sandbox.flags()).code in (0, 1)
    assert is_clean(verify(episode))


def test_two_resumes_at_once_end_one_run_once(sandbox: Sandbox) -> None:
    sandbox.launch(*sandbox.asked(FLOWS[-1]))
    words = ("resume", "@last", "--approve", "crash.approved", *sandbox.flags())
    with ThreadPoolExecutor(4) as pool:
        done = sorted(pool.map(lambda _: sandbox.command(*words), range(4)))
    assert done[0].code == 0
    for other in done[1:]:
        assert '"code":"episode.busy"' in other.out or '"code":"episode.sealed"' in other.out, other
    assert sandbox.ledger == ["a", "b"]
    assert is_clean(verify(sandbox.episodes[0]))


class Jumping(FakeClock):
    """A clock that somebody sets again and again."""

    def __init__(self, *seconds: int) -> None:
        super().__init__(0)
        self._clocks = [FakeClock(second) for second in seconds]
        self._looked = 0

    def now(self) -> str:
        self._looked += 1
        return self._clocks[self._looked % len(self._clocks)].now()


def test_clocks_that_jump_change_no_order(tmp_path: Path) -> None:
    ids = FakeIds(0)
    journal = Store(tmp_path).create(
        f"ep_{ids.ulid()}",
        trace_id=ids.trace_id(),
        clock=Jumping(1_700_000_000, 2_147_483_650, 86_400, 253_402_300_000),
        ids=ids,
        redactor=Redactor(),
    )
    for number in range(12):
        journal.append(draft_of(RunPaused(reason=str(number)), "run_00000000000000aa"))
    journal.close()
    events = [event for _, event in EventLog(journal.directory)]
    assert [event.payload["reason"] for event in events] == [str(number) for number in range(12)]
    times = [event.timestamp for event in events]
    assert times == sorted(times)
    assert [event.clock for event in events].count("clamped") >= 6


def test_durations_come_from_the_clock_that_never_jumps() -> None:
    plan = skill(step("a", "c.a"), step("b", "c.a"))
    engine = engine_for(ScriptedRunner({"c.a": gives(y=1)}), [capability("c.a")], [plan])
    engine.clock = Jumping(1_700_000_000, 86_400)
    execute(engine, engine.plan_of(plan.id), request(), RUN_ID)
    timed = [event.metrics for event in engine.sink.events if event.metrics]
    assert len(timed) == 3
    assert all(0 <= each["duration_ms"] < 1_000 for each in timed)
    assert any(each["completed_at"] < each["started_at"] for each in timed)


@pytest.mark.parametrize("second", [0, 2_147_483_647, 253_402_300_799 - 3_600])
def test_a_run_at_the_ends_of_time_is_sound(sandbox: Sandbox, second: int) -> None:
    sandbox.environment["COGCLI_FAKE_CLOCK"] = str(second)
    assert sandbox.command(*sandbox.asked(LINEAR)).code == 0
    assert is_clean(verify(sandbox.episodes[0]))
