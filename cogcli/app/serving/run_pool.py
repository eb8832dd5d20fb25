"""The runs of a server. At most `AT_ONCE` run at a time. A run is aborted when its caller stops
waiting."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from anyio import CancelScope

from cogcli.app.run_skill import environment_of
from cogcli.app.settings import Settings
from cogcli.base import threads
from cogcli.base.errors import OverloadedError
from cogcli.base.step_path import StepPath
from cogcli.declarations.envelope import Event, row_of
from cogcli.run.launch import launch
from cogcli.run.prepare import PreparedRun
from cogcli.run.results import Control, RunResult

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    ClientRequest = ServerRequestContext[Any, Any]

AT_ONCE: Final = 8
MAX_WAITING: Final = 256
"""The most waiting calls. More are refused, so that a client cannot fill the memory."""


class ProgressNotifier:
    """Sends the number of ended root steps as progress notifications, if the client sent a progress
    token.

    It also writes the end of the run to `report`. All methods run on the event loop."""

    def __init__(self, client: ClientRequest, total: int, report: dict[str, str]) -> None:
        self._session = client.session
        self._total = total
        self._report = report
        self._ended = 0
        self._root: str | None = None
        self._wanted = bool(client.meta and client.meta.get("progress_token") is not None)
        self._tasks: list[Any] = []

    def on_event(self, event: Event) -> None:
        """Send a notification if the event ends a root step."""
        self._root = self._root or event.run_id
        step = event.step_id or ""
        if not self._wanted or not row_of(event.event_type).closes or event.run_id != self._root:
            return
        if not StepPath(step).is_step:
            return
        self._ended += 1
        notification = self._session.report_progress(
            self._ended, self._total, f"{step} {event.payload['step_status']}"
        )
        self._tasks.append(asyncio.ensure_future(notification))

    def on_cancel(self) -> None:
        """Stop sending notifications, because the client cancelled the call or disconnected."""
        self._wanted = False
        for task in self._tasks:
            task.cancel()

    def on_end(self, result: RunResult) -> None:
        """Write status, error code and episode id to the report of the call. It may be called after
        `on_cancel`.

        It is not called if the run raised an exception."""
        code = result.error["code"] if result.error else ""
        self._report.update(status=result.status, error=code, episode=result.episode_id)

    async def close(self) -> None:
        """Wait until every notification is sent. The protocol requires this before the result."""
        await asyncio.gather(*self._tasks, return_exceptions=True)


class RunPool:
    """Runs skills for an event loop, each on a separate thread, so that a blocking run does not delay others."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._waiting = 0
        self._ending = False
        self._controls: set[Control] = set()

    async def run(self, loaded: PreparedRun, listener: ProgressNotifier) -> RunResult:
        """Run one skill and return its result.

        If the caller is cancelled, the run is aborted, and this method waits until the episode is
        sealed. Raise OverloadedError if `MAX_WAITING` calls wait, if the pool is shutting down, or
        if no thread can be started."""
        self._require_open()
        if self._waiting >= MAX_WAITING:
            waiting = "1 call waits" if self._waiting == 1 else f"{self._waiting} calls wait"
            raise OverloadedError(
                "call.overloaded", f"{waiting} already", hint="try again later", left=False
            )
        self._waiting += 1
        try:
            await self._slots.acquire()
        finally:
            self._waiting -= 1
        try:
            self._require_open()
            return await self._run_in_thread(loaded, listener)
        finally:
            self._slots.release()

    def end_all(self, signal: str) -> None:
        """Cancel every run and refuse new ones. A second call ends the grace period of the runs."""
        self._ending = True
        for control in list(self._controls):
            control.cancel(signal)

    def _require_open(self) -> None:
        """Raise OverloadedError if the pool is shutting down."""
        if self._ending:
            raise OverloadedError(
                "call.overloaded", "the server is ending", hint="start it again", left=False
            )

    @property
    def running(self) -> int:
        """Return the number of runs that have not ended."""
        return len(self._controls)

    async def _run_in_thread(self, loaded: PreparedRun, listener: ProgressNotifier) -> RunResult:
        """Run the skill on a new thread and wait for its end."""
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[RunResult] = loop.create_future()
        control = Control()

        def forward(event: Event) -> None:
            loop.call_soon_threadsafe(listener.on_event, event)

        def work() -> None:
            try:
                environment = environment_of(self._settings.copy_for_run())
                result = launch(environment, loaded, listener=forward, control=control)
            except BaseException as error:
                loop.call_soon_threadsafe(_complete_future, ended, None, error)
            else:
                loop.call_soon_threadsafe(_complete_future, ended, result, None)

        try:
            threads.start(work, name="run")
        except threads.NoThread as error:
            text = "the system gives no thread for another run"
            raise OverloadedError("call.overloaded", text, left=False) from error
        self._controls.add(control)
        try:
            await asyncio.wait([ended])
        except asyncio.CancelledError:
            # The caller left. Abort the run and wait for its end, so that no run outlives the server.
            listener.on_cancel()
            control.cancel("SIGINT")
            with CancelScope(shield=True):
                await asyncio.wait([ended])
            raise
        finally:
            self._controls.discard(control)
            if ended.done() and ended.exception() is None:
                listener.on_end(ended.result())
        return ended.result()


def _complete_future(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    """Set the result or the error of a future."""
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)
