"""What called functions print goes to a bounded buffer, per thread, never to our own output.

1. A thread inside a call writes to that call's buffer. Threads that called functions start write to a common one.
2. Only the thread that waits for the run reaches the standard streams; displays hold streams of their own.
3. A call that was abandoned may still print after the run: then the diversion stays in place.
"""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

CAP: Final = 64 * 1024

_calls = threading.local()
_inside: set[object] = set()
"""The buffers of calls that have not returned."""


class _Tail:
    """The last 64 KiB written."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> int:
        self.text = (self.text + text)[-CAP:]
        return len(text)


class _Bytes(io.RawIOBase):
    """The binary side of a buffer."""

    def __init__(self, tail: _Tail) -> None:
        self._tail = tail

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        taken = bytes(data)
        self._tail.write(taken.decode(errors="replace"))
        return len(taken)


class _Diverted(io.TextIOBase):
    """Stands in for a standard stream."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._owner = threading.get_ident()
        self._strays = _Tail()

    def _tail(self) -> _Tail | None:
        """Where this thread's text goes, None for the stream itself."""
        tail: _Tail | None = getattr(_calls, "tail", None)
        return self._strays if tail is None and threading.get_ident() != self._owner else tail

    @property
    def buffer(self) -> Any:
        tail = self._tail()
        return self._stream.buffer if tail is None else _Bytes(tail)

    def write(self, text: str, /) -> int:
        tail = self._tail()
        return tail.write(text) if tail is not None else self._stream.write(text)

    def flush(self) -> None:
        if self._tail() is None:
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def captured() -> Iterator[None]:
    """While inside, what this thread prints is kept away from the standard streams."""
    before = getattr(_calls, "tail", None)
    tail = _calls.tail = _Tail()
    _inside.add(tail)
    try:
        yield
    finally:
        _inside.discard(tail)
        _calls.tail = before


@contextmanager
def diverted() -> Iterator[None]:
    """While inside, the standard streams tell calls from our own output. One run at a time."""
    out, err = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _Diverted(out), _Diverted(err)
    try:
        yield
    finally:
        if not _inside:
            sys.stdout, sys.stderr = out, err
