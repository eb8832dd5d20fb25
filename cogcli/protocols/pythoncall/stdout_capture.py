"""What called functions print goes to a bounded buffer, per thread, never to our own output.

1. A thread inside a call writes to that call's buffer. Threads that called functions start write to a common one.
2. Only threads that wait for a run reach the standard streams; displays hold streams of their own.
3. Runs at once share one diversion, which ends with the last of them.
4. A call that was abandoned may still print after the run: then the diversion stays in place.
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
_waiting: dict[int, int] = {}
"""How many runs each thread waits for."""
_reaching: set[int] = set()
"""Threads that reach the standard streams: those that wait, and the last that did where the diversion stays."""
_lock = threading.Lock()


class OutputTail:
    """The last 64 KiB written, as `text`."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> int:
        self.text = (self.text + text)[-CAP:]
        return len(text)


class _Bytes(io.RawIOBase):
    """The binary side of a buffer."""

    def __init__(self, tail: OutputTail) -> None:
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
        self._strays = OutputTail()

    def _tail(self) -> OutputTail | None:
        """Where this thread's text goes, None for the stream itself."""
        tail: OutputTail | None = getattr(_calls, "tail", None)
        return self._strays if tail is None and threading.get_ident() not in _reaching else tail

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
def capture_output() -> Iterator[OutputTail]:
    """While inside, what this thread prints is kept away from the standard streams, and given here."""
    before = getattr(_calls, "tail", None)
    tail = _calls.tail = OutputTail()
    _inside.add(tail)
    try:
        yield tail
    finally:
        _inside.discard(tail)
        _calls.tail = before


@contextmanager
def divert_streams() -> Iterator[None]:
    """While inside, the standard streams tell calls from our own output."""
    own = threading.get_ident()
    with _lock:
        _waiting[own] = _waiting.get(own, 0) + 1
        _reaching.add(own)
        sys.stdout, sys.stderr = _wrapped(sys.stdout), _wrapped(sys.stderr)
    try:
        yield
    finally:
        with _lock:
            _waiting[own] -= 1
            if not _waiting[own]:
                del _waiting[own]
            if _waiting:
                _reaching.intersection_update(_waiting)
            elif not _inside:
                _reaching.clear()
                sys.stdout, sys.stderr = _bare(sys.stdout), _bare(sys.stderr)


def _wrapped(stream: Any) -> Any:
    return stream if isinstance(stream, _Diverted) else _Diverted(stream)


def _bare(stream: Any) -> Any:
    return stream._stream if isinstance(stream, _Diverted) else stream
