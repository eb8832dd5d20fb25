"""Decompresses a reply piece by piece within a limit, so that a small reply cannot grow large."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Final

_GZIP: Final = 16 + zlib.MAX_WBITS
_WINDOWS: Final = {"gzip": _GZIP, "x-gzip": _GZIP, "deflate": zlib.MAX_WBITS}
_PLAIN: Final = ("", "identity")


class TooLarge(Exception):
    """The received or decompressed bytes exceed the limit."""


class Damaged(Exception):
    """The bytes do not match their content encoding, or that encoding was never requested."""


def decompress(chunks: Iterable[bytes], encoding: str, cap: int) -> bytes:
    """Return all decompressed bytes of a body.

    Raise TooLarge beyond `cap` bytes, received or decompressed, and Damaged. Both are raised before
    the rest is read.
    """
    name = encoding.strip().lower()
    if name in _PLAIN:
        body = bytearray()
        for chunk in chunks:
            body += chunk
            if len(body) > cap:
                raise TooLarge
        return bytes(body)
    if name not in _WINDOWS:
        raise Damaged(f"content encoding `{name[:40]}` was not asked for")
    try:
        return _inflate(chunks, _WINDOWS[name], cap)
    except zlib.error as error:
        raise Damaged(f"its {name} data is damaged") from error


def _inflate(chunks: Iterable[bytes], window: int, cap: int) -> bytes:
    body, read = bytearray(), 0
    inflater = zlib.decompressobj(window)
    for chunk in chunks:
        read += len(chunk)
        if read > cap:
            raise TooLarge
        data = chunk
        while data:
            if inflater.eof:  # gzip may hold several members, one after the other
                if window != _GZIP:
                    raise Damaged("bytes follow its deflate data")
                inflater = zlib.decompressobj(window)
            elif (
                window == zlib.MAX_WBITS and not body and read == len(chunk) and data[0] & 0x0F != 8
            ):
                window = -zlib.MAX_WBITS  # some servers send deflate without its wrapper
                inflater = zlib.decompressobj(window)
            body += inflater.decompress(data, cap + 1 - len(body))
            if len(body) > cap:
                raise TooLarge
            data = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
    if read and not inflater.eof:
        raise Damaged("its compressed data breaks off")
    return bytes(body)
