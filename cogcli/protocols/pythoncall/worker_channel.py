"""Our end of a worker's channel and of its output. Nothing here blocks beyond a deadline."""

from __future__ import annotations

import os
import select
import socket
import time
from contextlib import suppress
from typing import Final

from cogcli.protocols.pythoncall.stdout_capture import CAP
from cogcli.protocols.pythoncall.worker_main import take_frame

_CHUNK: Final = 1 << 18


class Channel:
    """Sends and receives frames. It drains the worker's output meanwhile and keeps the last 64 KiB,
    in whole lines."""

    def __init__(self, channel: socket.socket, take_printed: int) -> None:
        channel.setblocking(False)
        os.set_blocking(take_printed, False)
        self._channel = channel
        self._printed = take_printed
        self._unsent = memoryview(b"")
        self._received = bytearray()
        self._output = bytearray()
        self._is_output_cut = False
        self._is_closed = False
        self._poll = select.poll()
        self._poll.register(take_printed, select.POLLIN)
        self._poll.register(channel, select.POLLIN)

    @property
    def is_quiet(self) -> bool:
        """Whether the worker's end is open and sent nothing unexpected."""
        return not self._received and not select.select((self._channel,), (), (), 0)[0]

    @property
    def printed(self) -> str:
        """Return the kept output, without a first line that is cut: half a secret cannot be masked."""
        text = bytes(self._output).decode(errors="replace")
        return text.partition("\n")[2] if self._is_output_cut else text

    def take_printed_lines(self) -> str:
        """Return the output since the last call of this method, at most the last 64 KiB, in whole
        lines."""
        with suppress(OSError):  # the run ended meanwhile
            if not self._is_closed:
                self._read_once()
        text = self.printed
        self._output.clear()
        self._is_output_cut = False
        return text

    def queue(self, data: bytes) -> None:
        """Queue bytes, to be sent while a frame is awaited."""
        self._unsent = memoryview(data)
        self._poll.modify(self._channel, select.POLLIN | select.POLLOUT)

    def read_frame(self, cap: int, deadline: float) -> bytes:
        """Return the next frame. Raise TimeoutError, EOFError at the end of the channel, or
        ValueError above `cap` bytes."""
        while (read_frame := take_frame(self._received, cap)) is None:
            self._wait_and_transfer(deadline)
        return read_frame

    def shut_down(self) -> None:
        """Shut the channel down in both directions, from any thread; this wakes a thread that waits
        here."""
        with suppress(OSError):  # the other side is gone already
            self._channel.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Read the remaining output and close the descriptors. Call it once."""
        self._read_once()
        self._is_closed = True
        self._channel.close()
        os.close(self._printed)

    def _wait_and_transfer(self, deadline: float) -> None:
        rest = deadline - time.monotonic()
        if rest <= 0:
            raise TimeoutError
        for descriptor, event in self._poll.poll(rest * 1000):
            if descriptor == self._printed:
                self._read_once()
            else:
                try:
                    self._transfer_once(event)
                except (BlockingIOError, InterruptedError):
                    continue
                except OSError as error:
                    raise EOFError from error

    def _transfer_once(self, event: int) -> None:
        """Receive or send once. Raise EOFError at the end of the channel, or OSError."""
        if event & (select.POLLIN | select.POLLHUP | select.POLLERR):
            data = self._channel.recv(_CHUNK)
            if not data:
                raise EOFError
            self._received += data
        elif event & select.POLLOUT:
            self._unsent = self._unsent[self._channel.send(self._unsent[:_CHUNK]) :]
            if not self._unsent:
                self._poll.modify(self._channel, select.POLLIN)

    def _read_once(self) -> None:
        """Read the available output once, not until it is empty, because endless output must not delay the deadline."""
        try:
            data = os.read(self._printed, _CHUNK)
        except (BlockingIOError, InterruptedError):
            return
        if not data:
            with suppress(KeyError):
                self._poll.unregister(self._printed)
        self._output += data
        self._is_output_cut |= len(self._output) > CAP
        del self._output[:-CAP]
