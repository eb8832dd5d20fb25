"""The executor with worker processes on this machine, a line at a time each.

1. A worker whose pipe ends has died. Its line is lost, and another worker takes its place.
2. A worker that dies before it was ready means that none can be started: the batch stops.
3. `close` kills the workers: their lines are left as they are, to be resumed.
"""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from cogcli.base.errors import CogcliError
from cogcli.base.search_path import NAME as SEARCH_PATH
from cogcli.base.search_path import absolute_entries
from cogcli.declarations.reading import read_record
from cogcli.declarations.value_types import Json
from cogcli.scale.executor import BatchStopped, Completion, LineLost
from cogcli.scale.frames import (
    FrameBuffer,
    WorkerFrame,
    completion_from_frame,
    error_from_frame,
    task_to_frame,
    write_frame,
)
from cogcli.scale.identity import LineTask

PROGRAM: Final = ("-P", "-X", "utf8", "-m", "cogcli.scale.worker")
_CHUNK: Final = 1 << 16
_ENDING_SECONDS: Final = 10.0
_READY: Final = "ready"


class BatchWorker:
    """One worker process, and the line that it runs."""

    def __init__(self, first: Json, environ: Mapping[str, str]) -> None:
        """Start the process. Raise OSError."""
        environment = dict(environ)
        if SEARCH_PATH in environment:
            environment[SEARCH_PATH] = absolute_entries(environment[SEARCH_PATH])
        self._process = subprocess.Popen(  # noqa: S603  # our own program
            [sys.executable, *PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            process_group=0,  # Ctrl-C reaches the batch alone, which decides what happens to its lines
        )
        assert self._process.stdin is not None  # noqa: S101  # for the type: both are pipes
        assert self._process.stdout is not None  # noqa: S101
        self._sink = self._process.stdin.fileno()
        self.source = self._process.stdout.fileno()
        self._buffer = FrameBuffer()
        self.task: LineTask | None = None
        self.is_ready = False
        with suppress(BrokenPipeError):  # its end is seen at the other pipe
            write_frame(self._sink, first)

    def send(self, task: LineTask) -> None:
        """Hand a line to the worker."""
        self.task = task
        with suppress(BrokenPipeError):
            write_frame(self._sink, task_to_frame(task))

    def read(self) -> list[Json] | None:
        """Return the frames that arrived. Return None if the worker is gone or wrote invalid data."""
        data = os.read(self.source, _CHUNK)
        if not data:
            return None
        self._buffer.feed(data)
        try:
            return list(self._buffer.frames())
        except ValueError:
            return None

    def kill(self) -> None:
        """End the process now."""
        self._process.kill()
        self._close_pipes()

    def hang_up(self) -> None:
        """End the input of an idle process, which then ends by itself."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    def end(self) -> None:
        """Wait for the end of an idle process; kill it if it does not end."""
        try:
            self._process.wait(_ENDING_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._close_pipes()

    def _close_pipes(self) -> None:
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()


class LocalWorkers:
    """Runs lines in worker processes. `first` is the frame that each of them begins with."""

    name = "local"

    def __init__(self, first: Json, environ: Mapping[str, str], workers: int) -> None:
        """Start the workers. Raise CogcliError `batch.executor-lost`."""
        self.workers = workers
        self._first = first
        self._environ = environ
        self._selector = selectors.DefaultSelector()
        self._workers: list[BatchWorker] = []
        try:
            for _ in range(workers):
                self._start_worker()
        except OSError as error:
            self.close()
            raise lost_error(f"no worker can be started: {error.strerror or error}") from error

    def _start_worker(self) -> None:
        worker = BatchWorker(self._first, self._environ)
        self._workers.append(worker)
        self._selector.register(worker.source, selectors.EVENT_READ, worker)

    @property
    def free(self) -> int:
        """The number of lines that can be submitted now."""
        return sum(worker.task is None for worker in self._workers)

    @property
    def running(self) -> int:
        """The number of submitted lines without a completion."""
        return sum(worker.task is not None for worker in self._workers)

    def submit(self, task: LineTask) -> None:
        """Queue a line."""
        idle = [worker for worker in self._workers if worker.task is None]
        ready = [worker for worker in idle if worker.is_ready]
        (ready or idle)[0].send(task)

    def completed(self, seconds: float) -> list[Completion]:
        """Return the completions since the last call, or wait at most `seconds` for the first one. Raise CogcliError if
        a worker failed before its first line, or cannot be replaced.
        """
        found: list[Completion] = []
        end = time.monotonic() + seconds
        while not found and (left := end - time.monotonic()) > 0:
            for key, _ in self._selector.select(left):
                found += self._read_completions(key.data)
        return found

    def _read_completions(self, worker: BatchWorker) -> list[Completion]:
        frames = worker.read()
        if frames is None:
            return self._replace_worker(worker)
        found: list[Completion] = []
        for frame in frames:
            task = worker.task
            if read_record(WorkerFrame, frame).kind == _READY:
                worker.is_ready = True
            elif task is None or not worker.is_ready:
                raise error_from_frame(frame)
            else:
                worker.task = None
                found.append(read_completion(frame, task))
        return found

    def _replace_worker(self, worker: BatchWorker) -> list[Completion]:
        """Replace a dead worker with a new one, and return the completion of the line that was lost."""
        self._remove_worker(worker)
        worker.kill()
        if not worker.is_ready:
            raise lost_error("a worker process ended before its first line")
        try:
            self._start_worker()
        except OSError as error:
            raise lost_error(f"no worker can be started: {error.strerror or error}") from error
        return [] if worker.task is None else [LineLost(worker.task)]

    def _remove_worker(self, worker: BatchWorker) -> None:
        self._selector.unregister(worker.source)
        self._workers.remove(worker)

    def cancel(self) -> list[LineTask]:
        """Return no line: each submitted line has begun."""
        return []

    def close(self) -> None:
        """End all workers now."""
        for worker in self._workers:
            if worker.task is None:
                worker.hang_up()
        for worker in list(self._workers):
            self._remove_worker(worker)
            if worker.task is None:
                worker.end()
            else:
                worker.kill()
        self._selector.close()


def read_completion(frame: Json, task: LineTask) -> Completion:
    """Return the completion in a frame of a worker. A frame without a completion stops the batch."""
    try:
        return completion_from_frame(frame, task)
    except (ValueError, KeyError, TypeError) as error:
        return BatchStopped(task, lost_error(f"a worker answered with no result: {error}"))


def lost_error(message: str) -> CogcliError:
    """Return the error `batch.executor-lost`."""
    hint = "the same command continues the batch"
    return CogcliError("batch.executor-lost", message, hint=hint)
