"""Runs for code with an event loop: each runs in a thread of its own, and cancelling the task that waits for it stops
the run as Ctrl-C does (docs/reference/api.md#async).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Generator
from typing import Generic, TypeVar

from cogcli.declarations.envelope import Event
from cogcli.run.results import Control

_Result = TypeVar("_Result")


async def await_run(run: Callable[[], _Result], control: Control) -> _Result:
    """Call `run` in a thread and return its result.

    If the waiting task is cancelled, `control` cancels the run, and this function still waits for its end, so that no
    run continues unnoticed. After a second cancellation, the run gets no time to end its steps.
    """
    thread = asyncio.ensure_future(asyncio.to_thread(run))
    try:
        return await asyncio.shield(thread)
    except asyncio.CancelledError:
        control.cancel("SIGINT")
        await _await_end(thread, control)
        raise


async def _await_end(thread: asyncio.Future[_Result], control: Control) -> None:
    while not thread.done():
        try:
            await asyncio.wait([thread])
        except asyncio.CancelledError:
            control.cancel("SIGINT")
    thread.exception()  # read, so that the event loop does not report it: the caller has gone


class LiveRun(Generic[_Result]):
    """A run that has begun. `async for` yields its events in order, each once it is on disk; `await` returns its
    result.

    Events wait in memory until they are read. Each is yielded once, to the first reader.
    """

    def __init__(self, run: Callable[[Callable[[Event], None]], _Result], control: Control) -> None:
        """Start `run` in a thread. Its argument is the function that receives its events."""
        self._loop = asyncio.get_running_loop()
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()
        self._task = self._loop.create_task(await_run(lambda: run(self._queue_event), control))
        self._task.add_done_callback(lambda _: self._events.put_nowait(None))

    def _queue_event(self, event: Event) -> None:
        self._loop.call_soon_threadsafe(self._events.put_nowait, event)

    async def __aiter__(self) -> AsyncIterator[Event]:
        while (event := await self._events.get()) is not None:
            yield event
        self._events.put_nowait(None)  # a later reader also learns that it has ended

    def __await__(self) -> Generator[object, None, _Result]:
        return self._task.__await__()

    def cancel(self) -> None:
        """Stop the run as Ctrl-C does. Awaiting it then raises CancelledError, once the run has ended."""
        self._task.cancel()
