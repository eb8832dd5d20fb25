"""The one thread of a run whose event loop runs all MCP sessions; other threads submit work and wait
(docs/reference/protocols.md#mcp)."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import ExitStack
from typing import Any, Final, TypeVar

from cogcli.core.errors import CallTimeoutError
from cogcli.protocols.invoker import CallLimits

_SLACK_SECONDS: Final = 1.0
"""How long after its deadline a call may still end by itself."""
_T = TypeVar("_T")


class Portal:
    """An event loop on a thread of its own."""

    def __init__(self) -> None:
        from anyio.from_thread import start_blocking_portal

        self._stack = ExitStack()
        self._portal = self._stack.enter_context(start_blocking_portal(name="mcp"))

    def wait(self, limits: CallLimits, action: Callable[..., Awaitable[_T]], *arguments: Any) -> _T:
        """The result of a coroutine function, which is cancelled together with the call.

        Raises what it raises, or CallTimeoutError where it was cancelled or exceeded the deadline by a second.
        """
        if limits.cancel.is_set:
            raise CallTimeoutError("call.timeout", "given up", left=None)
        future: Future[_T] = self._portal.start_task_soon(action, *arguments)

        def give_up() -> None:
            future.cancel()

        with limits.cancel.on_cancel(give_up):
            try:
                return future.result(max(0.0, limits.deadline - time.monotonic()) + _SLACK_SECONDS)
            except (CancelledError, FutureTimeout) as error:
                if isinstance(error, FutureTimeout) and future.done():
                    raise
                future.cancel()
                raise CallTimeoutError("call.timeout", "given up", left=None) from error

    def gather(self, actions: list[Callable[[], Awaitable[_T]]]) -> list[_T]:
        """The results of several coroutine functions, which run concurrently."""
        futures: list[Future[_T]] = [self._portal.start_task_soon(action) for action in actions]
        return [future.result() for future in futures]

    def close(self) -> None:
        """End the thread."""
        self._stack.close()
