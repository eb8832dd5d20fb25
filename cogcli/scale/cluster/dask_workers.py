"""The executor with the workers of a Dask cluster that share the files of the batch (docs/reference/batch.md#dask).

1. A worker gets lines only after it was compared with the batch, and showed that it shares folder and locks. The
   claim then makes each line run once, wherever it is sent.
2. Each thread of a worker has one line to run and one that waits. Of a worker that is gone, lines that may have
   begun are lost; those that waited go to another worker.
3. A line that runs when the executor closes goes on: Dask ends no function. The same command finds its episode.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from queue import Empty
from typing import Final

from cogcli.base.errors import CogcliError, EnvironmentRefusal
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.value_types import Json
from cogcli.run.prepare import PreparedRun
from cogcli.scale.cluster.connection import (
    PATIENCE,
    LineAnswer,
    Message,
    SchedulerConnection,
    SchedulerLost,
    WorkerGone,
    WorkerSeen,
)
from cogcli.scale.cluster.facts import find_facts, find_versions
from cogcli.scale.cluster.meeting import MeetingFile, sees_locked_file
from cogcli.scale.cluster.tasks import UNKNOWN
from cogcli.scale.executor import Completion, LineLost
from cogcli.scale.frames import task_to_frame
from cogcli.scale.identity import LineTask
from cogcli.scale.local_workers import lost_error, read_completion

_WINDOW: Final = 2
_WORKER_SECONDS: Final = 30.0
"""Seconds to wait for a worker that may run lines, at the start and after the last one is gone."""
_OTHER_SECONDS: Final = 3.0
"""Seconds to wait for another worker after one was refused."""
_HANGING: Final = PATIENCE + 5.0
"""Seconds after which the connection itself counts as hanging."""
_SHOWN: Final = 5
Note = Callable[[str], None]


class ClusterRequest(NamedTuple):
    """Where the lines of a batch run."""

    address: str
    """The address of the scheduler. Empty for one that is started here."""
    jobs: int
    """The number of workers of one that is started here."""
    folder: str
    """The folder of the batch."""
    continues: str
    """The command that continues the batch."""
    is_stopping: Callable[[], bool] = lambda: False
    """Whether the batch was stopped while it waits for a worker."""


class ClusterWorker:
    """A worker that may run lines."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.tasks: dict[str, LineTask] = {}
        """Its lines by key, in the order in which they were sent."""

    @property
    def free(self) -> int:
        return _WINDOW * self.threads - len(self.tasks)


class DaskWorkers:
    """Runs lines on the workers of a Dask cluster. `first` is the frame that describes the batch."""

    name = "dask"

    def __init__(
        self, request: ClusterRequest, first: Json, prepared: PreparedRun, note: Note
    ) -> None:
        """Connect, and wait for a worker, unless the batch is stopped.

        Raise CogcliError `batch.executor-lost`, EnvironmentRefusal `batch.worker-differs` if no worker may run lines.
        """
        self._request = request
        self._note = note
        self._nonce = os.urandom(16).hex()
        self._batch = str(first["batch"])
        self._sent = 0
        self._workers: dict[str, ClusterWorker] = {}
        self._waiting: list[LineTask] = []
        """Lines that were taken, and that no worker has."""
        self._refused: dict[str, str] = {}
        """Why a worker gets no line, by address."""
        self.workers = 0
        """The most threads that ran lines at a time."""
        self._looked = self._served = time.monotonic()
        self._meeting = self._open_meeting()
        first = {
            **first,
            "nonce": self._nonce,
            "folder": request.folder,
            "versions": list(find_versions()),
            "facts": list(find_facts(prepared)),
        }
        self._connection = SchedulerConnection(request.address, request.jobs, first)
        with ExitStack() as opened:
            opened.callback(self.close)
            self._wait_for_worker()
            opened.pop_all()

    def _open_meeting(self) -> MeetingFile:
        try:
            return MeetingFile(self._request.folder, self._nonce)
        except OSError as error:
            text = f"no lock can be taken in `{self._request.folder}`: {error.strerror or error}"
            raise EnvironmentRefusal("env.runs-dir", text) from error

    def _wait_for_worker(self) -> None:
        self._served = time.monotonic()
        while not self._workers and not self._request.is_stopping():
            self._read(0.25)

    # -- the port ------------------------------------------------------------------------------------------------------

    @property
    def free(self) -> int:
        """How many more lines it takes now."""
        room = sum(worker.free for worker in self._workers.values())
        return max(room - len(self._waiting), 0)

    @property
    def running(self) -> int:
        """How many submitted lines have no completion yet."""
        return len(self._waiting) + sum(len(each.tasks) for each in self._workers.values())

    def submit(self, task: LineTask) -> None:
        """Take a line."""
        self._waiting.append(task)
        self._send_waiting()

    def completed(self, seconds: float) -> list[Completion]:
        """Return the completions since the last call, or wait for the first. Raise CogcliError `batch.executor-lost`,
        EnvironmentRefusal `batch.worker-differs`.
        """
        found: list[Completion] = []
        end = time.monotonic() + seconds
        while not found and (left := end - time.monotonic()) > 0:
            found = self._read(min(left, 0.25))
        return found

    def cancel(self) -> list[LineTask]:
        """Take back the lines that no worker has."""
        found, self._waiting = self._waiting, []
        return found

    def close(self) -> None:
        """End the connection. Lines that run go on to their ends."""
        self._connection.close()
        self._meeting.close()

    # -- lines ---------------------------------------------------------------------------------------------------------

    def _send_waiting(self) -> None:
        """Send the waiting lines to the workers with the most room."""
        while self._waiting:
            address = max(self._workers, key=lambda each: self._workers[each].free, default="")
            if not address or self._workers[address].free <= 0:
                return
            self._send(address, self._waiting.pop(0))

    def _send(self, address: str, task: LineTask) -> None:
        self._sent += 1
        key = f"{self._batch}-{task.line}-{task.attempt}-{self._nonce}-{self._sent}"
        self._workers[address].tasks[key] = task
        self._connection.send(address, key, task_to_frame(task))

    def _read(self, seconds: float) -> list[Completion]:
        """Return the completions in the messages that arrived, or wait for the first message."""
        self._require_answers()
        found: list[Completion] = []
        try:
            found += self._apply(self._connection.messages.get(timeout=seconds))
            while True:
                found += self._apply(self._connection.messages.get_nowait())
        except Empty:
            self._send_waiting()
        self._require_worker()
        return found

    def _apply(self, message: Message) -> list[Completion]:
        match message:
            case WorkerSeen():
                self._admit(message)
            case WorkerGone(address):
                return self._remove(address)
            case LineAnswer(key, frame):
                return self._take_answer(key, frame)
            case SchedulerLost(reason):
                raise self._lost(f"the scheduler cannot be reached: {reason}")
        return []

    def _take_answer(self, key: str, frame: Json | None) -> list[Completion]:
        """Return the completion of a line. Its worker may have been removed before."""
        for worker in self._workers.values():
            if (task := worker.tasks.pop(key, None)) is not None:
                is_lost = frame is None or frame.get("kind") == UNKNOWN
                return [LineLost(task) if is_lost else read_completion(frame or {}, task)]
        return []

    # -- workers -------------------------------------------------------------------------------------------------------

    def _admit(self, seen: WorkerSeen) -> None:
        """Let a worker run lines, or note why it does not."""
        is_shared = bool(seen.nonce) and sees_locked_file(self._request.folder, seen.nonce)
        if seen.nonce:
            self._connection.end_meeting(seen.address)
        if seen.differences:
            self._note_refusal(seen.address, "; ".join(seen.differences[:_SHOWN]))
        elif not is_shared:
            self._note_refusal(seen.address, "it does not share the runs directory and its locks")
        else:
            self._refused.pop(seen.address, None)
            self._workers[seen.address] = ClusterWorker(seen.threads)
            threads = sum(each.threads for each in self._workers.values())
            self.workers = max(self.workers, threads)

    def _note_refusal(self, address: str, reason: str) -> None:
        if self._refused.get(address) != reason:
            self._refused[address] = reason
            self._served = time.monotonic()
            self._note(f"worker {address} gets no line: {reason}")

    def _remove(self, address: str) -> list[Completion]:
        """Forget a worker. Return its lines that may have begun; the others wait for another worker."""
        self._refused.pop(address, None)
        worker = self._workers.pop(address, None)
        if worker is None:
            return []
        self._connection.drop(list(worker.tasks))
        tasks = list(worker.tasks.values())
        self._waiting = [*tasks[worker.threads :], *self._waiting]
        return [LineLost(task) for task in tasks[: worker.threads]]

    # -- the watchdog --------------------------------------------------------------------------------------------------

    def _require_answers(self) -> None:
        """Raise CogcliError if the connection itself hangs. A pause of this whole process does not count."""
        now = time.monotonic()
        if now - self._looked > PATIENCE:
            self._connection.answered = now
        self._looked = now
        if self.workers and now - self._connection.answered > _HANGING:
            raise self._lost("the connection to the scheduler hangs")

    def _require_worker(self) -> None:
        """Raise an error if no worker may run lines, and none came in time."""
        now = time.monotonic()
        if self._workers:
            self._served = now
        elif now - self._served > (_OTHER_SECONDS if self._refused else _WORKER_SECONDS):
            raise self._no_worker_error()

    def _no_worker_error(self) -> CogcliError:
        if not self._refused:
            return self._lost("the scheduler has no worker")
        names = [f"{address}: {reason}" for address, reason in sorted(self._refused.items())]
        return EnvironmentRefusal(
            "batch.worker-differs",
            f"none of {len(names)} workers can run the lines",
            found="\n".join(names[:_SHOWN]),
            expected="versions, specs, modules, variables, trust and files as here",
            hint="start the workers in the same environment, then run the same command again",
            next=(self._request.continues,),
        )

    def _lost(self, text: str) -> CogcliError:
        error = lost_error(text)
        error.next = (self._request.continues,)
        return error
