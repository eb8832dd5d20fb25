"""The executor with the workers of a Dask cluster (docs/reference/batch.md#dask).

1. A worker gets lines only after it was compared with the batch. If a worker shows that it shares the folder of the
   batch and its locks, only such workers run lines: the claim makes each line run once, wherever it is sent.
2. If no worker shares them, each line is noted as sent before it leaves, runs in the runs directory of its worker, and
   its episode comes back (`sent_lines`, `apart`, `arrivals`).
3. A task has several lines where files are shared. Each thread of a worker has one task that runs and one that waits.
   Of a worker that is gone, lines that may have begun are lost; the others go to another worker. A line that was lost
   once goes alone, so that it ends no worker of others.
4. A line that runs when the executor closes goes on: Dask ends no function. The same command finds its episode.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from queue import Empty
from typing import Final

from cogcli.base.errors import CogcliError, UnusableEnvironment
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.reading import read_record
from cogcli.declarations.value_types import Json
from cogcli.run.prepare import PreparedRun
from cogcli.scale.cluster.apart import GIVEN
from cogcli.scale.cluster.arrivals import REFUSED, ReceivedAnswers
from cogcli.scale.cluster.connection import (
    PATIENCE,
    SILENCE,
    Message,
    SchedulerConnection,
    SchedulerLost,
    TaskAnswer,
    WorkerChecked,
    WorkerGone,
    WorkersListed,
)
from cogcli.scale.cluster.facts import UserIdentity, find_facts, find_versions
from cogcli.scale.cluster.groups import GroupSize
from cogcli.scale.cluster.meeting import RendezvousFile, sees_locked_file
from cogcli.scale.cluster.tasks import MOVED, UNKNOWN
from cogcli.scale.executor import Completion, LineBusy, LineLost
from cogcli.scale.frames import WorkerFrame, task_to_frame
from cogcli.scale.identity import LineTask
from cogcli.scale.in_process import InProcessExecutor, RunLine
from cogcli.scale.local_workers import lost_error, read_completion
from cogcli.scale.sent_lines import DispatchedLines

_WINDOW: Final = 2
_WORKER_SECONDS: Final = 30.0
"""Seconds to wait for a worker that may run lines, at the start and after the last one is gone."""
_OTHER_SECONDS: Final = 3.0
"""Seconds to wait for other workers after the first one was compared."""
_HANGING: Final = PATIENCE + 5.0
"""Seconds after which the connection itself counts as hanging."""
_HELD_SECONDS: Final = 60.0
"""Seconds to wait for lines that only a silent worker can end."""
_REAL_SECONDS: Final = 5.0
"""Seconds after which a line that is not ended runs, and is not just found busy."""
_LOCAL_TICK: Final = 0.02
_SHOWN: Final = 5
Note = Callable[[str], None]


class ClusterSettings(NamedTuple):
    """The cluster on which the lines of a batch run, and how this process uses it."""

    address: str
    """The address of the scheduler. Empty to start a local scheduler."""
    jobs: int
    """The number of workers of a local scheduler."""
    folder: str
    """The folder of the batch."""
    continues: str
    """The command that continues the batch."""
    identity: Callable[[str], UserIdentity]
    """Returns the identity of the user for a nonce."""
    sent: DispatchedLines
    arrivals: ReceivedAnswers
    run_here: RunLine
    """Runs a line in this process."""
    is_stopping: Callable[[], bool] = lambda: False
    """Whether the batch was stopped while it waits for a worker."""
    silence_seconds: float = SILENCE
    """Seconds without a sign of life after which a worker counts as gone."""
    held_seconds: float = _HELD_SECONDS
    """Seconds to wait for lines that only a silent worker can end."""


class ClusterWorker:
    """A worker that is allowed to run lines."""

    def __init__(self, seen: WorkerChecked, *, is_apart: bool) -> None:
        self.id = seen.id
        self.threads = seen.threads
        self.is_apart = is_apart
        self.groups: dict[str, list[LineTask]] = {}
        """The lines of its tasks by key, in the order in which they were sent."""
        self.returned: list[tuple[int, int, str]] = []
        """Line, try and episode of the results that it returned and still has a copy of."""

    @property
    def free(self) -> int:
        """The number of tasks that can be submitted to the worker now."""
        return _WINDOW * self.threads - len(self.groups)

    @property
    def lines(self) -> int:
        return sum(map(len, self.groups.values()))


_COUNTS_TOGETHER: Final = (
    "it does not share the runs directory, and the limits of the pack count all calls together"
)


class DaskWorkers:
    """Runs lines on the workers of a Dask cluster. `first` is the frame that describes the batch."""

    name = "dask"

    def __init__(
        self, request: ClusterSettings, first: Json, prepared: PreparedRun, note: Note
    ) -> None:
        """Connect, and wait for a worker, unless the batch is stopped.

        Raise CogcliError `batch.executor-lost`, UnusableEnvironment `batch.worker-differs` if no worker may run lines.
        """
        self._request = request
        self._sent_lines = request.sent
        self._note = note
        self._nonce = os.urandom(16).hex()
        self._identity = request.identity(self._nonce)
        self._batch = str(first["batch"])
        self._has_limits = bool(first["ledger"])
        self._tasks = 0
        self._size = GroupSize()
        self._workers: dict[str, ClusterWorker] = {}
        self._waiting: list[LineTask] = []
        """Queued lines that no worker has received."""
        self._lost_once: set[int] = set()
        """Lines that were lost, and go alone."""
        self._completions: list[Completion] = []
        """Completions that need no worker."""
        self._local: InProcessExecutor | None = None
        """Runs lines whose episodes came back unfinished."""
        self._refused: dict[str, str] = {}
        """The reason why a worker gets no line, by address."""
        self._comparing: set[str] = set()
        """The workers that are being compared."""
        self._silent: set[str] = set()
        """Workers that may still run lines, although they send no heartbeat."""
        self._busy_since: float | None = None
        """The time since which lines are busy and none has ended."""
        self._is_apart: bool | None = None
        """Whether no worker shares the files of the batch. None until that is decided."""
        self.workers = 0
        """The most threads that ran lines at a time."""
        self._polled_at = self._served_at = self._sent_at = time.monotonic()
        self._meeting = self._open_meeting()
        first = {
            "part": "",
            **first,
            "nonce": self._nonce,
            "versions": list(find_versions()),
            "facts": list(find_facts(prepared)),
        }
        self._connection = SchedulerConnection(
            request.address, request.jobs, first, request.silence_seconds
        )
        with ExitStack() as opened:
            opened.callback(self.close)
            self._meet_workers()
            opened.pop_all()

    def _open_meeting(self) -> RendezvousFile:
        try:
            return RendezvousFile(self._request.folder, self._nonce)
        except OSError as error:
            text = f"no lock can be taken in `{self._request.folder}`: {error.strerror or error}"
            raise UnusableEnvironment("env.runs-dir", text) from error

    def _meet_workers(self) -> None:
        """Wait for the workers that the scheduler has at first, then decide how lines run."""
        self._served_at = time.monotonic()
        while not self._request.is_stopping():
            self._receive(0.25)
            if self._workers and (not self._comparing or self._is_late()):
                break
        self._choose_workers()

    def _is_late(self) -> bool:
        return time.monotonic() - self._served_at > _OTHER_SECONDS

    def _choose_workers(self) -> None:
        """Choose between workers that share the files of the batch and workers that do not."""
        self._is_apart = all(worker.is_apart for worker in self._workers.values())
        for address, worker in list(self._workers.items()):
            if worker.is_apart != self._is_apart:
                del self._workers[address]
                self._note_refusal(address, self._explain_other_files())
        self._count_threads()

    def _explain_other_files(self) -> str:
        if self._is_apart:
            return "it shares the runs directory, and the other workers do not"
        return "it does not share the runs directory and its locks, as other workers do"

    # -- the port ------------------------------------------------------------------------------------------------------

    @property
    def free(self) -> int:
        """The number of lines that can be submitted now."""
        room = sum(worker.free for worker in self._workers.values())
        here = self._local.running if self._local else 0
        return max(room * self._group_size - len(self._waiting) - here, 0)

    @property
    def running(self) -> int:
        """The number of submitted lines without a completion."""
        here = self._local.running if self._local else 0
        sent = sum(worker.lines for worker in self._workers.values())
        return len(self._waiting) + len(self._completions) + sent + here

    @property
    def _group_size(self) -> int:
        return 1 if self._is_apart else self._size.lines

    def submit(self, task: LineTask) -> None:
        """Queue a line."""
        if self._is_apart:
            self._submit_apart(task)
        elif (judged := self._sent_lines.judge(task)) is not None:
            self._completions.append(judged)
        else:
            self._waiting.append(task)
            self._send_waiting(whole=True)

    def _submit_apart(self, task: LineTask) -> None:
        """Queue a line whose episode may exist here or on the worker that received the line before."""
        if self._sent_lines.is_here(task):
            if self._local is None:
                self._local = InProcessExecutor(self._request.run_here)
            self._local.submit(task)
        elif (sent := self._sent_lines.find(task)) is None:
            self._waiting.append(task)
            self._send_waiting()
        else:
            address = self._find_worker(sent.worker)
            if address:
                self._send_group(address, [task])
            else:
                self._completions.append(self._sent_lines.end_in_doubt(task, sent))

    def _find_worker(self, id: str) -> str:
        """Return the address of a worker. Empty if it is not there."""
        found = (address for address, worker in self._workers.items() if worker.id == id)
        return next(found, "")

    def completed(self, seconds: float) -> list[Completion]:
        """Return the completions since the last call, or wait for the first. Raise CogcliError `batch.executor-lost`,
        UnusableEnvironment `batch.worker-differs`.
        """
        found, self._completions = self._completions, []
        end = time.monotonic() + seconds
        self._send_waiting()
        while not found and (left := end - time.monotonic()) > 0:
            found = self._receive(min(left, _LOCAL_TICK if self._local else 0.25))
        for completion in found:
            self._note_completion(completion)
        return found

    def _note_completion(self, completion: Completion) -> None:
        if isinstance(completion, LineBusy):
            self._busy_since = self._busy_since or time.monotonic()
        elif completion.result is not None:
            self._busy_since = None
            self._lost_once.discard(completion.task.line)

    def cancel(self) -> list[LineTask]:
        """Remove and return the submitted lines that no worker has received."""
        found, self._waiting = self._waiting, []
        return found

    def close(self) -> None:
        """Close the connection. Running lines continue to their ends."""
        for address, worker in self._workers.items():
            if worker.is_apart:
                self._connection.end_stay(address, worker.returned)
        self._connection.close()
        self._meeting.close()
        if self._local is not None:
            self._local.close()

    # -- lines ---------------------------------------------------------------------------------------------------------

    def _send_waiting(self, *, whole: bool = False) -> None:
        """Send the waiting lines to the workers with the most room; with `whole` only tasks with all their lines."""
        while len(self._waiting) >= (self._group_size if whole else 1):
            address = max(self._workers, key=lambda each: self._workers[each].free, default="")
            if not address or self._workers[address].free <= 0:
                return
            self._send_group(address, self._take_group())

    def _take_group(self) -> list[LineTask]:
        """Return the lines of the next task."""
        group = [self._waiting.pop(0)]
        if group[0].line in self._lost_once:
            return group
        while self._waiting and len(group) < self._group_size:
            if self._waiting[0].line in self._lost_once:
                break
            group.append(self._waiting.pop(0))
        return group

    def _send_group(self, address: str, group: list[LineTask]) -> None:
        self._tasks += 1
        worker = self._workers[address]
        key = f"{self._batch}-{group[0].line}-{group[0].attempt}-{self._nonce}-{self._tasks}"
        work: Json = {"lines": [task_to_frame(task) for task in group], "worker": ""}
        if worker.is_apart:
            self._sent_lines.note(group[0], worker.id)
            batch = self._sent_lines.key_of(group[0]).id
            work |= {"worker": worker.id, "batch": batch, "returned": worker.returned}
            worker.returned = []
        worker.groups[key] = group
        self._sent_at = time.monotonic()
        self._connection.send(address, key, work)

    def _receive(self, seconds: float) -> list[Completion]:
        """Return the completions in the messages that have arrived, or wait for the first message."""
        self._require_answers()
        found: list[Completion] = []
        try:
            found += self._apply_message(self._connection.messages.get(timeout=seconds))
            while True:
                found += self._apply_message(self._connection.messages.get_nowait())
        except Empty:
            self._send_waiting()
        if self._local is not None and self._local.running:
            found += self._local.completed(0)
        self._require_worker()
        self._require_progress()
        return found

    def _apply_message(self, message: Message) -> list[Completion]:
        match message:
            case WorkersListed(addresses):
                self._comparing |= {each for each in addresses if each not in self._workers}
            case WorkerChecked():
                self._admit_or_reject(message)
            case WorkerGone(address, is_silent):
                return self._remove_worker(address, is_silent=is_silent)
            case TaskAnswer():
                return self._take_answer(message)
            case SchedulerLost(reason):
                raise self._lost_error(f"the scheduler cannot be reached: {reason}")
        return []

    def _take_answer(self, answer: TaskAnswer) -> list[Completion]:
        """Return the completions of a task. Its worker may have been removed before."""
        for address, worker in self._workers.items():
            if (group := worker.groups.pop(answer.key, None)) is not None:
                if worker.is_apart:
                    return self._receive_unshared(address, group[0], answer.frames or [])
                return self._take_group_answer(address, group, answer)
        return []

    def _take_group_answer(
        self, address: str, group: list[LineTask], answer: TaskAnswer
    ) -> list[Completion]:
        """Return the completions of a task. Lines that were not begun wait for another task."""
        if answer.frames is None:
            return self._complete_lost(group)
        frames = answer.frames
        if frames and read_record(WorkerFrame, frames[-1]).kind == UNKNOWN:
            frames = frames[:-1]
            self._connection.admit_again(address)
        self._size.note(len(frames), answer.seconds)
        self._waiting = [*group[len(frames) :], *self._waiting]
        pairs = zip(group, frames, strict=False)
        return [read_completion(frame, task) for task, frame in pairs]

    def _receive_unshared(
        self, address: str, task: LineTask, frames: list[Json]
    ) -> list[Completion]:
        """Return the completion of a line that returned from a worker without the files of the batch."""
        kind = read_record(WorkerFrame, frames[0]).kind if frames else ""
        if kind == UNKNOWN:
            self._connection.admit_again(address)
        if kind in ("", UNKNOWN, MOVED, GIVEN):
            return self._complete_lost([task])
        try:
            completion = self._request.arrivals.take(task, frames[0])
        except UnusableEnvironment as error:
            if error.code != REFUSED:
                raise
            return [*self._refuse_answer(address, error), *self._complete_lost([task], error)]
        if completion.result is not None:
            self._sent_lines.forget(task)
            episode = self._sent_lines.directory_of(task).name
            self._workers[address].returned.append((task.line, task.attempt, episode))
        return [completion]

    def _refuse_answer(self, address: str, error: UnusableEnvironment) -> list[Completion]:
        """Send no more lines to a worker whose answer is not accepted. Return the completions of its other lines."""
        found = self._remove_worker(address)
        self._note_refusal(address, error.message)
        return found

    def _complete_lost(
        self, group: list[LineTask], error: CogcliError | None = None
    ) -> list[Completion]:
        """Return the completions of lines that may have begun and have no answer."""
        found: list[Completion] = []
        for task in group:
            sent = self._sent_lines.find(task) if self._is_apart else None
            if sent is None:
                self._lost_once.add(task.line)
                found.append(LineLost(task))
            else:
                found.append(self._sent_lines.end_in_doubt(task, sent, error))
        return found

    # -- workers -------------------------------------------------------------------------------------------------------

    def _admit_or_reject(self, seen: WorkerChecked) -> None:
        """Allow a worker to run lines, or record why it may not."""
        is_shared = bool(seen.nonce) and sees_locked_file(self._request.folder, seen.nonce)
        self._comparing.discard(seen.address)
        self._silent.discard(seen.address)
        if seen.nonce:
            self._connection.end_meeting(seen.address)
        if seen.differences:
            self._note_refusal(seen.address, "; ".join(seen.differences[:_SHOWN]))
        elif not self._identity.is_same(seen.identity):
            self._note_refusal(seen.address, "its user has another key for episodes")
        elif self._has_limits and not is_shared:
            self._note_refusal(seen.address, _COUNTS_TOGETHER)
        elif self._is_apart == is_shared:  # never while nothing is decided
            self._note_refusal(seen.address, self._explain_other_files())
        else:
            self._refused.pop(seen.address, None)
            before = self._workers.get(seen.address)
            worker = ClusterWorker(seen, is_apart=not is_shared)
            if before is not None:
                worker.groups = before.groups
            self._workers[seen.address] = worker
            self._count_threads()

    def _count_threads(self) -> None:
        threads = sum(each.threads for each in self._workers.values())
        self.workers = max(self.workers, threads)

    def _note_refusal(self, address: str, reason: str) -> None:
        if self._refused.get(address) != reason:
            self._refused[address] = reason
            self._served_at = time.monotonic()
            self._note(f"worker {address} gets no line: {reason}")

    def _remove_worker(self, address: str, *, is_silent: bool = False) -> list[Completion]:
        """Forget a worker. Return the completions of its lines that may have begun, and queue its other lines again."""
        self._refused.pop(address, None)
        self._comparing.discard(address)
        worker = self._workers.pop(address, None)
        if worker is None:
            return []
        if is_silent and worker.groups:
            self._silent.add(address)
            self._note(f"worker {address} gives no sign of life: it gets no line")
        self._connection.drop(list(worker.groups))
        groups = list(worker.groups.values())
        begun = len(groups) if worker.is_apart else worker.threads
        self._waiting = [*(task for group in groups[begun:] for task in group), *self._waiting]
        return self._complete_lost([task for group in groups[:begun] for task in group])

    # -- the watchdog --------------------------------------------------------------------------------------------------

    def _require_answers(self) -> None:
        """Raise CogcliError if the connection itself hangs. A pause of this whole process does not count."""
        now = time.monotonic()
        if now - self._polled_at > PATIENCE:
            self._connection.answered = now
        self._polled_at = now
        if self.workers and now - self._connection.answered > _HANGING:
            raise self._lost_error("the connection to the scheduler hangs")

    def _require_worker(self) -> None:
        """Raise an error if no worker may run lines and the time limit has passed."""
        now = time.monotonic()
        if self._is_comparing():
            self._served_at = now
        elif self._workers:
            self._served_at = now if self._is_apart is not None else self._served_at
        elif now - self._served_at > (_OTHER_SECONDS if self._refused else _WORKER_SECONDS):
            raise self._no_worker_error()

    def _is_comparing(self) -> bool:
        """Return whether workers are being started or compared. Both have their own time limits."""
        is_connecting = not self._connection.is_connected
        return not self._workers and (is_connecting or bool(self._comparing))

    def _require_progress(self) -> None:
        """Raise CogcliError if all remaining lines wait for a worker that has stopped sending messages."""
        if not self._silent or self._busy_since is None:
            return
        now = time.monotonic()
        is_running = any(worker.groups for worker in self._workers.values())
        if is_running and now - self._sent_at > _REAL_SECONDS:
            self._busy_since = now
        if now - self._busy_since > self._request.held_seconds:
            names = ", ".join(sorted(self._silent)[:_SHOWN])
            raise self._lost_error(f"lines are held by workers that give no sign of life: {names}")

    def _no_worker_error(self) -> CogcliError:
        if not self._refused:
            return self._lost_error("the scheduler has no worker")
        names = [f"{address}: {reason}" for address, reason in sorted(self._refused.items())]
        return UnusableEnvironment(
            "batch.worker-differs",
            f"none of {len(names)} workers can run the lines",
            found="\n".join(names[:_SHOWN]),
            expected="versions, specs, modules, variables, trust and key as here",
            hint="start the workers in the same environment, then run the same command again",
            next=(self._request.continues,),
        )

    def _lost_error(self, text: str) -> CogcliError:
        error = lost_error(text)
        error.next = (self._request.continues,)
        return error
