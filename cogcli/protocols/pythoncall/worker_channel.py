"""Our end of a worker's channel, and of what the worker prints: nothing here blocks beyond a deadline."""

from __future__ import annotations

import os
import select
import socket
import time
from contextlib import suppress
from typing import Final

from cogcli.protocols.pythoncall.pipe_frames import take_frame
from cogcli.protocols.pythoncall.stdout_capture import CAP

_CHUNK: Final = 1 << 18
_READABLE: Final = select.POLLIN | select.POLLHUP | select.POLLERR


class Channel:
    """Frames out and in. What is printed is drained on the way; its last 64 KiB are kept."""

    def __init__(self, channel: socket.socket, printed: int) -> None:
        channel.setblocking(False)
        os.set_blocking(printed, False)
        self._channel = channel
        self._printed = printed
        self._unsent = memoryview(b"")
        self._received = bytearray()
        self._output = bytearray()
        self._is_closed = False
        self._poll = select.poll()
        self._poll.register(printed, select.POLLIN)
        self._poll.register(channel, select.POLLIN)

    @property
    def is_quiet(self) -> bool:
        """Whether the other side is there and has said nothing that was not asked for."""
        return not self._received and not select.select((self._channel,), (), (), 0)[0]

    @property
    def last_line(self) -> str:
        """The last line that was printed, empty if none was."""
        lines = bytes(self._output).decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""

    def printed(self) -> str:
        """What was printed since this was last asked, as far as it is kept."""
        with suppress(OSError):  # the run ended meanwhile
            if not self._is_closed:
                self._drain()
        text = bytes(self._output).decode(errors="replace")
        self._output.clear()
        return text

    def put(self, data: bytes) -> None:
        """Give bytes to be sent while a frame is waited for."""
        self._unsent = memoryview(data)
        self._poll.modify(self._channel, select.POLLIN | select.POLLOUT)

    def frame(self, cap: int, deadline: float) -> bytes:
        """The next frame. Raises TimeoutError, EOFError where the other side is gone, ValueError above the cap."""
        while (frame := take_frame(self._received, cap)) is None:
            self._pump(deadline)
        return frame

    def cut(self) -> None:
        """Make both sides see the end, from any thread; whoever waits here is woken."""
        with suppress(OSError):  # the other side is gone already
            self._channel.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Take what was still printed and give the descriptors back. Once."""
        self._drain()
        self._is_closed = True
        self._channel.close()
        os.close(self._printed)

    def _pump(self, deadline: float) -> None:
        rest = deadline - time.monotonic()
        if rest <= 0:
            raise TimeoutError
        for descriptor, event in self._poll.poll(rest * 1000):
            if descriptor == self._printed:
                self._drain()
            elif event & _READABLE:
                self._receive()
            elif event & select.POLLOUT:
                self._send()

    def _receive(self) -> None:
        try:
            data = self._channel.recv(_CHUNK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            raise EOFError from error
        if not data:
            raise EOFError
        self._received += data

    def _send(self) -> None:
        try:
            sent = self._channel.send(self._unsent[:_CHUNK])
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            raise EOFError from error
        self._unsent = self._unsent[sent:]
        if not self._unsent:
            self._poll.modify(self._channel, select.POLLIN)

    def _drain(self) -> None:
        """Take what is there, once: an endless printer must not keep us from the clock."""
        try:
            data = os.read(self._printed, _CHUNK)
        except (BlockingIOError, InterruptedError):
            return
        if not data:
            with suppress(KeyError):
                self._poll.unregister(self._printed)
        self._output += data
        del self._output[:-CAP]
