"""A Dask scheduler and workers on the loopback interface, as a user starts them."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from counted import make_counted
from support.waiting import wait_until


class DaskCluster:
    """The processes of a cluster. Each has a process group of its own, which its end kills."""

    def __init__(self, folder: Path, env: Mapping[str, str], cwd: Path) -> None:
        self._folder = folder
        self._env = dict(env)
        self._cwd = cwd
        self._started: list[subprocess.Popen[bytes]] = []
        self.workers: list[subprocess.Popen[bytes]] = []

    def start_scheduler(self) -> None:
        """Start the scheduler, and wait for its address."""
        file = self._folder / "scheduler.json"
        file.unlink(missing_ok=True)
        scheme = "tls://" if "DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION" in self._env else ""
        self.scheduler = self._start(
            "scheduler", "--host", f"{scheme}127.0.0.1", "--port", "0", "--no-dashboard", "--no-show",
            "--scheduler-file", str(file),
        )  # fmt: skip
        wait_until(lambda: file.exists() and file.read_text().endswith("}"))  # written in steps
        self.address = str(json.loads(file.read_text())["address"])

    def add_worker(
        self, env: Mapping[str, str] | None = None, before: Sequence[str] = ()
    ) -> subprocess.Popen[bytes]:
        """Start a worker, whose nanny replaces it when it dies. `before` is a program that starts it."""
        worker = self._start(
            "worker", self.address, "--nthreads", "1", "--no-dashboard", "--local-directory",
            str(self._folder), env=env, before=before,
        )  # fmt: skip
        self.workers.append(worker)
        return worker

    def start_command(self, words: list[str]) -> None:
        """Start a `dask` command as a page shows it."""
        self._start(*words[1:])

    def _start(
        self, *arguments: str, env: Mapping[str, str] | None = None, before: Sequence[str] = ()
    ) -> Any:
        process = subprocess.Popen(
            [*before, sys.executable, "-m", "dask", *arguments],
            cwd=self._cwd, env={**self._env, **(env or {})}, start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self._started.append(process)
        return process

    def kill_node(self, worker: subprocess.Popen[bytes]) -> None:
        """Kill a worker together with its nanny."""
        with suppress(ProcessLookupError):
            os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()

    def close(self) -> None:
        """End all processes."""
        for process in reversed(self._started):
            self.kill_node(process)


def on(cluster: DaskCluster) -> tuple[str, str]:
    """The flags of a batch that runs on a cluster."""
    return "--executor", f"dask:{cluster.address}"


@contextmanager
def dask_cluster(project: Any, workers: int = 2) -> Iterator[DaskCluster]:
    """A cluster whose processes have the environment of a project."""
    folder = project.root.parent / "dask"
    folder.mkdir(exist_ok=True)
    cluster = DaskCluster(folder, project.env, project.root)
    try:
        cluster.start_scheduler()
        for _ in range(workers):
            cluster.add_worker()
        yield cluster
    finally:
        cluster.close()


def make_counted_anywhere(project: Any, *, idempotent: bool = False) -> Any:
    """Give a project the skill `demo.counted`, whose effect is in its root wherever its process runs."""
    make_counted(project, "idempotent" if idempotent else "effect")
    source = project.root / "demo_services.py"
    source.write_text(source.read_text().replace("open(", f"open({str(project.root)!r} + '/' + "))
    return project


def children_of(pid: int) -> list[int]:
    """The processes below a process, at any depth, whichever of its threads started them; none if it is gone."""
    found: list[int] = []
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # the thread has ended
            found += map(int, file.read_text().split())
    return [*found, *(each for child in found for each in children_of(child))]


def kill(
    victim: str, cluster: DaskCluster, client: subprocess.Popen[bytes], chance: random.Random
) -> None:
    """Kill a process of a running batch."""
    match victim:
        case "worker":
            for pid in children_of(chance.choice(cluster.workers).pid):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        case "node":
            cluster.kill_node(chance.choice(cluster.workers))
        case "client":
            client.kill()
        case _:
            cluster.scheduler.kill()
