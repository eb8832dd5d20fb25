"""Runs on behalf of others, at most so many at a time, each ended when nobody waits for it any more."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, Protocol

from anyio import CancelScope

from cogcli.app import run_skill
from cogcli.core import threads
from cogcli.core.errors import OverloadedError

if TYPE_CHECKING:
    from cogcli.app.run_skill import CheckedSkill, RunRequest, RunResult
    from cogcli.app.settings import Settings
    from cogcli.events.envelope import Event

AT_ONCE: Final = 8
MOST_WAITING: Final = 256


class Listener(Protocol):
    """Who is told of one run, always on the event loop."""

    def heard(self, event: Event) -> None:
        """An event of the run."""
        ...

    def given_up(self) -> None:
        """Nobody waits for the run any more; it is about to end."""
        ...

    def ended(self, result: RunResult) -> None:
        """How the run ended, whoever still waits."""
        ...


class RunsAtOnce:
    """Blocking runs behind an event loop: every run has a thread of its own, so that none can hold up the end."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._waiting = 0
        self._ending = False
        self._controls: set[run_skill.Control] = set()

    async def run(self, loaded: CheckedSkill, request: RunRequest, listener: Listener) -> RunResult:
        """How it ended. Cancelling aborts the run and waits until its episode is finalised.

        Raises OverloadedError where too many wait already.
        """
        self._require_open()
        if self._waiting >= MOST_WAITING:
            raise OverloadedError(
                "call.overloaded", f"{self._waiting} calls wait already", hint="try again later", left=False
            )
        self._waiting += 1
        try:
            await self._slots.acquire()
        finally:
            self._waiting -= 1
        try:
            self._require_open()
            return await self._run(loaded, request, listener)
        finally:
            self._slots.release()

    def end_all(self, signal: str) -> None:
        """Ask every run to end and begin none any more; a second time leaves no grace."""
        self._ending = True
        for control in list(self._controls):
            control.cancel(signal)

    def _require_open(self) -> None:
        if self._ending:
            raise OverloadedError(
                "call.overloaded", "the server is ending", hint="start it again", left=False
            )

    @property
    def running(self) -> int:
        """How many runs go on."""
        return len(self._controls)

    async def _run(self, loaded: CheckedSkill, request: RunRequest, listener: Listener) -> RunResult:
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[RunResult] = loop.create_future()
        control = run_skill.Control()

        def tell(event: Event) -> None:
            loop.call_soon_threadsafe(listener.heard, event)

        def work() -> None:
            try:
                result = run_skill.run(
                    self._settings.apart(), loaded, request, listener=tell, control=control
                )
            except BaseException as error:
                loop.call_soon_threadsafe(_settle, ended, None, error)
            else:
                loop.call_soon_threadsafe(_settle, ended, result, None)

        try:
            threads.start(work, name="run")
        except threads.NoThread as error:
            text = "the system gives no thread for another run"
            raise OverloadedError("call.overloaded", text, left=False) from error
        self._controls.add(control)
        try:
            await asyncio.wait([ended])
        except asyncio.CancelledError:
            # Nobody waits any more: the run is told, and nothing is left behind.
            listener.given_up()
            control.cancel("SIGINT")
            with CancelScope(shield=True):
                await asyncio.wait([ended])
            raise
        finally:
            self._controls.discard(control)
            if ended.done() and ended.exception() is None:
                listener.ended(ended.result())
        return ended.result()


def _settle(ended: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if error is not None:
        ended.set_exception(error)
    else:
        ended.set_result(result)
