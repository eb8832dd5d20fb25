"""Frames between us and a worker process: four bytes of length, then that many bytes of JSON.

Of a call: an order (`n`, service, module, root, operation, seconds, cap) and its payload go out; `{n, entered}` comes
back once the function is entered, then either `{n, reply}` and the body, or `{n, error}`.
"""

from __future__ import annotations

from typing import Final

LENGTH: Final = 4


def to_frame(data: bytes) -> bytes:
    """The bytes of one frame."""
    return len(data).to_bytes(LENGTH, "big") + data


def take_frame(buffer: bytearray, cap: int) -> bytes | None:
    """Cut the first frame off a buffer; None while it is not whole. Raises ValueError above `cap` bytes."""
    if len(buffer) < LENGTH:
        return None
    size = int.from_bytes(buffer[:LENGTH], "big")
    if size > cap:
        raise ValueError(f"a frame of {size:,} bytes, at most {cap:,} are allowed")
    if len(buffer) < LENGTH + size:
        return None
    data = bytes(buffer[LENGTH : LENGTH + size])
    del buffer[: LENGTH + size]
    return data
