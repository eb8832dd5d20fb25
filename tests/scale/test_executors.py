"""What holds for every executor: each submitted line has one completion, and a closed one leaves no process."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from counted import effects
from dask_cluster import DaskCluster, children_of, dask_cluster, make_counted_anywhere
from support.waiting import PATIENCE, wait_until

from cogcli.app.registry import open_registry
from cogcli.app.settings import Settings
from cogcli.app.verify_episodes import trusted_of
from cogcli.base.canonical import digest_of
from cogcli.base.errors import CogcliError, UnusableEnvironment
from cogcli.base.extras import missing_module
from cogcli.scale.cluster.arrivals import ReceivedAnswers
from cogcli.scale.cluster.dask_workers import ClusterSettings, DaskWorkers
from cogcli.scale.cluster.facts import find_identity
from cogcli.scale.executor import (
    BatchStopped,
    Completion,
    Executor,
    LineBusy,
    LineEnded,
    LineLost,
)
from cogcli.scale.identity import BatchKey, LineTask
from cogcli.scale.in_process import InProcessExecutor
from cogcli.scale.line_result import unsealed_result
from cogcli.scale.local_workers import LocalWorkers
from cogcli.scale.sent_lines import DispatchedLines
from cogcli.scale.worker import batch_from_frame, open_runner, settings_from_frame
from cogcli.specs.spec_snapshot import document_of

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def run_line(task: LineTask) -> Completion:
    """Stands for the runner of a batch: what a line says happens."""
    word = task.data.decode()
    if "busy" in word:
        return LineBusy(task)
    if "stop" in word:
        return BatchStopped(task, UnusableEnvironment("env.disk", "the disk is full"))
    if "bug" in word:
        raise ZeroDivisionError
    return LineEnded(task, unsealed_result(task, None, "ok", 0, None))


DASK = pytest.mark.skipif(
    bool(missing_module("scale")), reason="the extra `scale` is not installed"
)


@pytest.fixture(params=["in process", "workers", pytest.param("dask", marks=DASK)])
def executor(request: Any, counting: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Executor]:
    """Each executor, ready for lines of the counting skill."""
    monkeypatch.chdir(counting.root)
    if request.param == "in process":
        made: Executor = InProcessExecutor(run_line)
    elif request.param == "workers":
        made = LocalWorkers(first_frame(counting), counting.env, 2)
    else:
        made = on_dask(counting, monkeypatch)
    yield made
    made.close()
    gc.collect()  # Dask leaves closed sockets to the collector


def on_dask(project: Any, monkeypatch: pytest.MonkeyPatch) -> Executor:
    """The executor with a cluster of its own. Its workers take the environment of this process."""
    for name, value in project.env.items():
        monkeypatch.setenv(name, value)
    first = first_frame(project)
    where = cluster_request(project, first)
    return DaskWorkers(where, first, batch_from_frame(first).prepare(), lambda text: None)


def cluster_request(project: Any, first: dict[str, Any]) -> ClusterSettings:
    """The request of a batch whose folder is made here."""
    runs_dir = Path(first["flags"]["runs_dir"])
    folder = runs_dir / ".batches" / first["batch"]
    folder.mkdir(parents=True)
    settings = settings_from_frame(first)
    key = BatchKey(first["batch"], first["created_ms"])
    sent = DispatchedLines(key, runs_dir, {}, lambda line: None, is_repeatable=False)
    return ClusterSettings(
        address="", jobs=1, folder=str(folder), continues="", identity=partial(find_identity, settings),
        sent=sent, arrivals=ReceivedAnswers(folder, sent, trusted_of(settings)), run_here=run_line,
    )  # fmt: skip


def first_frame(project: Any) -> dict[str, Any]:
    settings = Settings({}, project.env, base=str(project.root))
    catalog = open_registry(settings).reach("demo.counted")
    return {
        "flags": {"runs_dir": str(project.root / "runs")}, "base": str(project.root), "created_ms": 1,
        "batch": "ba_" + "0" * 26, "skill": "demo.counted", "options": {}, "in_doubt": "", "counts_calls": True,
        "archives": False, "ledger": "",
        "specs": digest_of(document_of(catalog)),
    }  # fmt: skip


def run_all(executor: Executor, tasks: list[LineTask]) -> list[Completion]:
    left = list(tasks)
    found: list[Completion] = []
    while left:
        while left and executor.free > 0:
            executor.submit(left.pop(0))
        found += take(executor, 1)
    return [*found, *take(executor, len(tasks) - len(found))]


def take(executor: Executor, count: int) -> list[Completion]:
    """At least so many completions."""
    found: list[Completion] = []
    while len(found) < count:
        done = executor.completed(PATIENCE)
        assert done, "no completion in time"
        found += done
    return found


@pytest.mark.sampled(3)
def test_each_line_completes_once_and_names_its_task(executor: Executor) -> None:
    tasks = [LineTask(line, 1, b'{"text": "t%d"}' % line) for line in range(1, 7)]
    found = run_all(executor, tasks)
    assert sorted(each.task for each in found) == tasks
    assert all(isinstance(each, LineEnded) and each.result.entry.status == "ok" for each in found)
    assert executor.running == 0
    assert executor.completed(0.01) == []
    assert executor.free > 0
    assert executor.cancel() == []


@pytest.mark.sampled(3)
def test_what_has_not_begun_can_be_taken_back(executor: Executor) -> None:
    tasks = [LineTask(line, 1, b'{"text": "t%d"}' % line) for line in range(1, 3)]
    for task in tasks:
        executor.submit(task)
    back = executor.cancel()
    found = take(executor, len(tasks) - len(back))
    assert sorted([*(each.task for each in found), *back]) == tasks
    assert executor.running == 0


def with_runner(make: Callable[[], Executor], text: bytes) -> list[Completion]:
    made = make()
    try:
        return run_all(made, [LineTask(1, 1, text)])
    finally:
        made.close()


def test_a_busy_line_and_an_error_of_the_batch_are_completions() -> None:
    (busy,) = with_runner(lambda: InProcessExecutor(run_line), b"busy")
    assert isinstance(busy, LineBusy)
    (stopped,) = with_runner(lambda: InProcessExecutor(run_line), b"stop")
    assert isinstance(stopped, BatchStopped)
    assert stopped.error.code == "env.disk"
    with pytest.raises(ZeroDivisionError):
        with_runner(lambda: InProcessExecutor(run_line), b"bug")


def test_a_killed_worker_loses_its_line_only(
    counting: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(counting.root)
    workers = LocalWorkers(first_frame(counting), counting.env, 1)
    try:
        counting.write("die-before", "x")
        (lost,) = run_all(workers, [LineTask(1, 1, b'{"text": "x"}')])
        assert isinstance(lost, LineLost)
        (ended,) = run_all(workers, [LineTask(2, 1, b'{"text": "y"}')])
        assert isinstance(ended, LineEnded)
    finally:
        workers.close()
    assert effects(counting) == ["y"]


@pytest.mark.sampled(6)
def test_a_stopped_dask_worker_gets_no_line_and_its_line_runs_once(
    counting: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if missing_module("scale"):
        pytest.skip("the extra `scale` is not installed")
    make_counted_anywhere(counting)
    monkeypatch.chdir(counting.root)
    for name, value in counting.env.items():
        monkeypatch.setenv(name, value)
    first = first_frame(counting)
    with dask_cluster(counting) as cluster:
        where = cluster_request(counting, first)
        where = where._replace(address=cluster.address, silence_seconds=3.0, held_seconds=1.0)
        notes: list[str] = []
        made = DaskWorkers(where, first, batch_from_frame(first).prepare(), notes.append)
        with closing(made):
            wait_until(lambda: made.completed(0.1) == [] and made.workers == 2)
            made.submit(LineTask(1, 1, b'{"text": "sleep:8"}'))
            made.completed(0.01)
            wait_until(lambda: made.completed(0.01) == [] and bool(counting_runs(first)))
            stopped = find_holder(cluster, counting_runs(first)[0])
            os.kill(stopped, signal.SIGSTOP)
            try:
                (lost,) = take(made, 1)
                assert isinstance(lost, LineLost)
                assert "gives no sign of life" in notes[-1]
                made.submit(lost.task)
                (busy,) = take(made, 1)
                assert isinstance(busy, LineBusy)
                with pytest.raises(CogcliError, match="held by workers") as held:
                    wait_until(lambda: made.completed(0.1) != [])
                assert held.value.code == "batch.executor-lost"
            finally:
                os.kill(stopped, signal.SIGCONT)
            wait_until(lambda: bool(effects(counting)))
    runner = open_runner(first)
    found: list[Completion] = []
    wait_until(lambda: found.append(runner.run(lost.task)) or isinstance(found[-1], LineEnded))
    assert isinstance(found[-1], LineEnded)
    assert found[-1].result.entry.status == "ok"
    assert effects(counting) == ["sleep:8"]


def counting_runs(first: dict[str, Any]) -> list[Path]:
    return list(Path(first["flags"]["runs_dir"]).glob("ep_*/events.jsonl"))


def find_holder(cluster: DaskCluster, log: Path) -> int:
    """The worker process that has a log open."""
    for pid in (each for worker in cluster.workers for each in children_of(worker.pid)):
        for file in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                if file.readlink() == log:
                    return pid
    raise AssertionError("no worker has the log open")
