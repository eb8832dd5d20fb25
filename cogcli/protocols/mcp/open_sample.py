"""A request of a server to the model inside an open call (docs/reference/mcp.md#sampling)."""

from __future__ import annotations

import threading
from collections.abc import Callable

from cogcli.base.calls import Cancellation, SampleReply, SampleRequest


class OpenSample:
    """A request to the model, until its notice is made. Any thread may end it; the first end holds."""

    def __init__(self, note: Callable[[SampleReply | None, str, str], None]) -> None:
        """`note` makes the notice: with the answer, or with the code and message of a refusal."""
        self.cancel = Cancellation()
        self.request: SampleRequest | None = None
        """The request, once it has been read."""
        self._note = note
        self._lock, self._is_noted = threading.Lock(), threading.Event()

    def finish(self, reply: SampleReply | None, code: str = "", text: str = "") -> None:
        """Make the notice, unless there is one."""
        with self._lock:
            if not self._is_noted.is_set():
                self._note(reply, code, text)
                self._is_noted.set()

    def end_with_call(self, seconds: float) -> None:
        """Cancel the request. If it has no notice after `seconds`, its notice says that the call ended."""
        self.cancel.set()
        if not self._is_noted.wait(seconds):
            self.finish(None, "call.timeout", "the call ended before the answer")
