"""Capture of the output of called functions: it goes to a bounded buffer per call, never to our own
output.

1. A thread inside a call writes to that call's buffer. Threads that called functions start write to
   a common one.
2. Only threads that wait for a run reach the standard streams; displays hold streams of their own. In a program that
   holds sessions next to its own work, all its threads do.
3. Concurrent runs share one diversion, which ends with the last of them.
4. An abandoned call may still print after the run: then the diversion stays in place."""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

CAP: Final = 64 * 1024

_calls = threading.local()
_active: set[object] = set()
"""The buffers of calls that have not returned."""
_diverting: dict[int, int] = {}
"""The number of runs that each thread waits for."""
_passing: set[int] = set()
"""Threads that write to the standard streams: those that wait for a run, and the last one if the
diversion stays."""
_programs: set[int] = set()
"""The sessions that a program keeps open during its own work, by identity."""
_lock = threading.Lock()


class OutputTail:
    """The last 64 Ki characters written, in whole lines."""

    def __init__(self) -> None:
        self._kept = ""
        self._is_cut = False

    @property
    def text(self) -> str:
        """Return the kept output, without a first line that is cut: half a secret cannot be masked."""
        return self._kept.partition("\n")[2] if self._is_cut else self._kept

    def write(self, text: str) -> int:
        whole = self._kept + text
        self._is_cut |= len(whole) > CAP
        self._kept = whole[-CAP:]
        return len(text)


class _ByteSink(io.RawIOBase):
    """The binary side of a buffer."""

    def __init__(self, tail: OutputTail) -> None:
        self._tail = tail

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        taken = bytes(data)
        self._tail.write(taken.decode(errors="replace"))
        return len(taken)


class _DivertedStream(io.TextIOBase):
    """A replacement of a standard stream that sends each thread's text to its buffer."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._stray_output = OutputTail()

    def _thread_buffer(self) -> OutputTail | None:
        """Return the buffer for this thread's text; None if the text goes to the stream itself."""
        tail: OutputTail | None = getattr(_calls, "tail", None)
        passes = bool(_programs) or threading.get_ident() in _passing
        return self._stray_output if tail is None and not passes else tail

    @property
    def buffer(self) -> Any:
        tail = self._thread_buffer()
        return self._stream.buffer if tail is None else _ByteSink(tail)

    def write(self, text: str, /) -> int:
        tail = self._thread_buffer()
        return tail.write(text) if tail is not None else self._stream.write(text)

    def flush(self) -> None:
        if self._thread_buffer() is None:
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def capture_output() -> OutputCapture:
    """Return a context manager that redirects this thread's output to a buffer instead of the standard streams."""
    return OutputCapture()


class OutputCapture:
    """The context of `capture_output`. Each call enters one, and a generator would cost it twice as much."""

    __slots__ = ("_before", "_tail")

    def __enter__(self) -> OutputTail:
        self._before: OutputTail | None = getattr(_calls, "tail", None)
        self._tail = _calls.tail = OutputTail()
        _active.add(self._tail)
        return self._tail

    def __exit__(self, *raised: object) -> None:
        _active.discard(self._tail)
        _calls.tail = self._before


@contextmanager
def divert_streams() -> Iterator[None]:
    """Divert the standard streams within the `with` block, for every thread that does not wait for a run."""
    own = threading.get_ident()
    with _lock:
        if not _diverting:
            _passing.clear()  # a function's thread may reuse the identifier of an ended thread
        _diverting[own] = _diverting.get(own, 0) + 1
        _passing.add(own)
        sys.stdout, sys.stderr = _divert_stream(sys.stdout), _divert_stream(sys.stderr)
    try:
        yield
    finally:
        with _lock:
            _diverting[own] -= 1
            if not _diverting[own]:
                del _diverting[own]
            if _diverting:
                _passing.intersection_update(_diverting)
            elif not _active:
                _passing.clear()
                sys.stdout, sys.stderr = _restore_stream(sys.stdout), _restore_stream(sys.stderr)


def leave_streams(holder: object) -> None:
    """Leave the standard streams to all threads outside calls, until `holder` releases them."""
    _programs.add(id(holder))


def give_back_streams(holder: object) -> None:
    """End `leave_streams` of a holder."""
    _programs.discard(id(holder))


def _divert_stream(stream: Any) -> Any:
    return stream if isinstance(stream, _DivertedStream) else _DivertedStream(stream)


def _restore_stream(stream: Any) -> Any:
    return stream._stream if isinstance(stream, _DivertedStream) else stream
