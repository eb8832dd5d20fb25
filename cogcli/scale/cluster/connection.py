"""The connection to a Dask scheduler, on a thread of its own with a loop of its own. The thread of the batch sends
commands and takes messages.

1. Dask's own detection of a lost scheduler may take forever, so the scheduler is polled for its workers all the time.
2. Each task is pinned to one worker: `workers=[address], allow_other_workers=False, pure=False, retries=0`.
3. A worker that gives no sign of life counts as gone, and is compared again when it gives one.
4. A future is released once its answer was read. What is given up is released, too, never cancelled (`read_result`).
5. Libraries are imported when a connection is made: other batches need neither Dask nor `asyncio`.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack, suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING, Final

import orjson

from cogcli.base import threads
from cogcli.base.errors import UnusableEnvironment
from cogcli.base.extras import missing_module
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Json
from cogcli.scale.cluster import tasks
from cogcli.scale.cluster.facts import UserIdentity

if TYPE_CHECKING:
    import asyncio

    from distributed import Client, Future

Work = Callable[..., Coroutine[object, object, None]]
"""A task on a worker, called with its address and the key of the task."""
PATIENCE: Final = 10.0
"""Seconds without an answer of the scheduler after which it is lost."""
SILENCE: Final = 20.0
"""Seconds without a heartbeat after which a worker counts as gone. Workers send two per second."""
_ASK_EVERY: Final = 0.25
_ADMISSION_SECONDS: Final = 60.0
_ENDING_SECONDS: Final = 5.0
_GOODBYE_SECONDS: Final = 2.0
_END: Final = "end-"
"""The beginning of the keys of tasks that end the stay at a worker."""
_LOGGERS: Final = ("distributed", "tornado", "asyncio")


class WorkerChecked(NamedTuple):
    """A worker of the scheduler was compared with the batch."""

    address: str
    id: str
    threads: int
    differences: list[str]
    nonce: str
    """The nonce of the locked file that the worker made in the batch folder; empty if the folder is not shared."""
    identity: UserIdentity


class WorkersListed(NamedTuple):
    """The scheduler has these workers. Each new one is compared, and then seen."""

    addresses: list[str]


class WorkerGone(NamedTuple):
    """A message: the scheduler has lost this worker, or (`is_silent`) has not heard from it for too long."""

    address: str
    is_silent: bool = False


class _Admission(Record):
    """The answer of a worker that compared itself with the batch, in addition to the differences."""

    nonce: str
    identity: list[str]
    """The hash of the user's key and that of the signing key."""
    worker: str


class TaskAnswer(NamedTuple):
    """The answer to a task: one frame for each line that the worker began. `frames` is None if the worker or the
    connection was lost.
    """

    key: str
    frames: list[Json] | None
    seconds: float = 0.0
    """The duration of the lines in seconds."""


class LastContact(NamedTuple):
    """The time of a worker's last message, by the scheduler's clock, and the local time at which that value was first
    seen.
    """

    id: str
    heard: float
    noted: float


class SchedulerLost(NamedTuple):
    """The scheduler does not answer."""

    reason: str


Message = WorkersListed | WorkerChecked | WorkerGone | TaskAnswer | SchedulerLost


class SchedulerConnection:
    """A client of the scheduler at `address`, or of one that is started here with `jobs` workers."""

    def __init__(self, address: str, jobs: int, first: Json, silence: float = SILENCE) -> None:
        """Start the thread. Workers are compared with `first`. A worker that sends nothing for `silence` seconds counts
        as gone. Raise UnusableEnvironment `env.threads`.
        """
        import asyncio

        self.messages: SimpleQueue[Message] = SimpleQueue()
        self.answered = time.monotonic()
        """The time of the scheduler's last answer."""
        self.is_connected = False
        self._address = address
        self._jobs = jobs
        self._nonce = str(first["nonce"])
        self._first = orjson.dumps(first)
        self._loop = asyncio.new_event_loop()
        self._closing = asyncio.Event()
        self._ended = threading.Event()
        self._client: Client | None = None
        self._silence = silence
        self._workers: dict[str, str] = {}
        """The names of the workers by their addresses."""
        self._signs: dict[str, LastContact] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        try:
            threads.start(self._run_thread, name="dask")
        except threads.NoThread as error:
            text = "the system gave no thread for the connection to the scheduler"
            raise UnusableEnvironment("env.threads", text) from error

    # -- on the thread of the batch ------------------------------------------------------------------------------------

    def send(self, worker: str, key: str, work: Json) -> None:
        """Run lines on a worker. The answer has the same key."""
        self._call_in_loop(self._start_work, self._run_lines, worker, key, orjson.dumps(work))

    def end_meeting(self, worker: str) -> None:
        """Tell a worker to remove the file that it created in the batch folder."""
        key = f"meet-{self._nonce}-{worker}"
        self._call_in_loop(
            self._start_work, self._run_without_result, worker, key, tasks.end_meeting
        )

    def end_stay(self, worker: str, returned: list[tuple[int, int, str]]) -> None:
        """Tell a worker to forget the batch and to remove the episodes that it returned."""
        key = f"{_END}{self._nonce}-{worker}"
        self._call_in_loop(
            self._start_work,
            self._run_without_result,
            worker,
            key,
            tasks.end_stay,
            orjson.dumps(returned),
        )

    def admit_again(self, worker: str) -> None:
        """Compare a worker with the batch once more."""
        self._call_in_loop(self._workers.pop, worker, None)

    def drop(self, keys: list[str]) -> None:
        """Cancel tasks by key."""
        self._call_in_loop(self._cancel_tasks, keys)

    def close(self) -> None:
        """End the connection, within seconds."""
        self._call_in_loop(self._closing.set)
        self._ended.wait(2 * _ENDING_SECONDS)

    def _call_in_loop(self, function: object, *arguments: object) -> None:
        """Schedule a call on the thread of the connection."""
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(function, *arguments)  # type: ignore[arg-type]

    # -- on its own thread ---------------------------------------------------------------------------------------------

    def _run_thread(self) -> None:
        import asyncio

        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._keep_connected())
        except Exception as error:
            self.messages.put(SchedulerLost(_describe_error(error)))
        finally:
            self._ended.set()

    async def _keep_connected(self) -> None:
        """Keep the connection open until it is closed or lost."""
        import asyncio

        async with AsyncExitStack() as opened:
            client = await self._open_client(opened)
            self._client = client
            self.is_connected = True
            self.answered = time.monotonic()
            await self._poll_workers(client)
            if ends := [task for key, task in self._tasks.items() if key.startswith(_END)]:
                await asyncio.wait(ends, timeout=_GOODBYE_SECONDS)
            self._cancel_tasks(list(self._tasks))
            with suppress(Exception):
                await asyncio.wait_for(opened.pop_all().aclose(), _ENDING_SECONDS)

    async def _open_client(self, opened: AsyncExitStack) -> Client:
        from distributed import Client, LocalCluster, Security

        _silence_loggers()
        address: object = self._address
        security = None
        if not address:
            _shield_children()
            # Other users of this machine reach its ports, too.
            security = None if missing_module("sign") else Security.temporary()
            cluster = LocalCluster(
                n_workers=self._jobs, threads_per_worker=1, host="127.0.0.1", security=security,
                dashboard_address="127.0.0.1:0", scheduler_kwargs={"dashboard": False},
                silence_logs=logging.CRITICAL, asynchronous=True,
            )  # fmt: skip
            address = await opened.enter_async_context(cluster)
        client = Client(
            address, security=security, asynchronous=True, set_as_default=False, timeout=PATIENCE
        )
        found: Client = await opened.enter_async_context(client)
        return found

    async def _poll_workers(self, client: Client) -> None:
        """Poll the scheduler for its workers until the connection ends. Return if the scheduler does not answer."""
        import asyncio

        while not self._closing.is_set():
            try:
                left = self.answered + PATIENCE - time.monotonic()
                found = await asyncio.wait_for(client.scheduler.identity(n_workers=-1), left)
            except Exception as error:
                if time.monotonic() - self.answered >= PATIENCE:
                    self.messages.put(SchedulerLost(_describe_error(error)))
                    return
            else:
                self.answered = time.monotonic()
                self._note_workers(found["workers"])
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), _ASK_EVERY)

    def _find_living(self, found: dict[str, Json]) -> dict[str, Json]:
        """Return the workers that sent a message recently. A stopped worker keeps its connection for minutes."""
        now = time.monotonic()
        signs = {}
        for address, worker in found.items():
            sign = LastContact(str(worker["id"]), float(worker["last_seen"]), now)
            before = self._signs.get(address)
            is_new = before is None or before[:2] != sign[:2]
            signs[address] = sign if is_new or before is None else before
        self._signs = signs
        return {
            address: worker
            for address, worker in found.items()
            if now - signs[address].noted < self._silence
        }

    def _note_workers(self, everyone: dict[str, Json]) -> None:
        """Compare the workers of the scheduler with those before."""
        found = self._find_living(everyone)
        if any(address not in self._workers for address in found):
            self.messages.put(WorkersListed(list(found)))
        for address, id in list(self._workers.items()):
            if address not in found or str(found[address]["id"]) != id:
                del self._workers[address]
                self.messages.put(WorkerGone(address, is_silent=address in everyone))
        for address, worker in found.items():
            if address not in self._workers:
                self._workers[address] = str(worker["id"])
                key = f"admit-{self._nonce}-{worker['id']}"
                self._start_work(self._compare_worker, address, key, int(worker["nthreads"]))

    def _start_work(self, work: Work, worker: str, key: str, *arguments: object) -> None:
        self._tasks[key] = self._loop.create_task(work(worker, key, *arguments))
        self._tasks[key].add_done_callback(lambda _: self._tasks.pop(key, None))

    def _cancel_tasks(self, keys: list[str]) -> None:
        for key in keys:
            if (task := self._tasks.get(key)) is not None:
                task.cancel()

    async def _compare_worker(self, address: str, key: str, threads: int) -> None:
        """Compare a worker with the batch."""
        import asyncio

        try:
            call = self._run_on_worker(address, key, tasks.admit, self._first)
            answer: Json = orjson.loads(await asyncio.wait_for(call, _ADMISSION_SECONDS))
        except Exception as error:
            answer = {"differences": [_describe_error(error)]}
        differences, found = list(answer["differences"]), read_record(_Admission, answer)
        owner, signer = found.identity or ("", "")
        identity = UserIdentity(owner, signer)
        self.messages.put(
            WorkerChecked(address, found.worker, threads, differences, found.nonce, identity)
        )

    async def _run_without_result(
        self, address: str, key: str, function: object, *arguments: object
    ) -> None:
        """Run a function on a worker, and ignore its result."""
        with suppress(Exception):
            await self._run_on_worker(address, key, function, self._nonce, *arguments)

    async def _run_lines(self, address: str, key: str, data: bytes) -> None:
        frames, seconds = None, 0.0
        try:
            data = await self._run_on_worker(address, key, tasks.run_lines, self._nonce, data)
            answer = orjson.loads(data)
            frames, seconds = list(answer["frames"]), float(answer["seconds"])
        except Exception:  # noqa: S110  # of Dask: the task itself answers whatever happens
            pass
        self.messages.put(TaskAnswer(key, frames, seconds))

    async def _run_on_worker(
        self, address: str, key: str, function: object, *arguments: object
    ) -> bytes:
        """Run a function on one worker, and return its result. Raise an error of Dask."""
        assert self._client is not None  # noqa: S101  # for the type: a worker was seen through it
        future = self._client.submit(
            function, *arguments, key=key, workers=[address], allow_other_workers=False, pure=False, retries=0,
        )  # fmt: skip
        try:
            return await read_result(future)
        finally:
            future.release()


async def read_result(future: Future) -> bytes:
    """Return the result of a task. Raise an error of Dask.

    Dask fetches the results of several tasks by one call. A task that is given up must not cancel that call: the other
    results, and under Dask 2026.8 all later ones, would never arrive.
    """
    import asyncio

    data: bytes = await asyncio.shield(future)
    return data


def _shield_children() -> None:
    """Block terminal signals for the processes that this thread starts, because the batch handles signals."""
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # its start would lift the block
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGHUP))


def _silence_loggers() -> None:
    """Stop Dask from writing to stderr. Important events become messages of this connection."""
    names = [name for name in logging.root.manager.loggerDict if name.partition(".")[0] in _LOGGERS]
    for name in {*names, *_LOGGERS}:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def _describe_error(error: Exception) -> str:
    text = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {text:.200}" if text else type(error).__name__
