"""Decompresses a reply piece by piece within a limit, so that a small reply cannot grow large."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Final

_GZIP: Final = 16 + zlib.MAX_WBITS
_WINDOWS: Final = {"gzip": _GZIP, "x-gzip": _GZIP, "deflate": zlib.MAX_WBITS}
_PLAIN: Final = ("", "identity")


class ContentTooLarge(Exception):
    """The received or decompressed bytes exceed the limit."""


class DamagedContent(Exception):
    """The bytes do not match their content encoding, or that encoding was never requested."""


def decompress(chunks: Iterable[bytes], encoding: str, cap: int) -> bytes:
    """Return all decompressed bytes of a body.

    Raise ContentTooLarge beyond `cap` bytes, received or decompressed, and DamagedContent. Both are raised before
    the rest is read.
    """
    name = encoding.strip().lower()
    if name in _PLAIN:
        body = bytearray()
        for chunk in chunks:
            body += chunk
            if len(body) > cap:
                raise ContentTooLarge
        return bytes(body)
    if name not in _WINDOWS:
        raise DamagedContent(f"content encoding `{name[:40]}` was not asked for")
    try:
        return _inflate_bounded(chunks, _WINDOWS[name], cap)
    except zlib.error as error:
        raise DamagedContent(f"its {name} data is damaged") from error


def _inflate_bounded(chunks: Iterable[bytes], window: int, cap: int) -> bytes:
    body, read = bytearray(), 0
    inflater = zlib.decompressobj(window)
    for chunk in chunks:
        read += len(chunk)
        if read > cap:
            raise ContentTooLarge
        data = chunk
        if read == len(chunk) and window == zlib.MAX_WBITS and not _has_wrapper(chunk):
            inflater = zlib.decompressobj(-zlib.MAX_WBITS)
        while data:
            if inflater.eof:  # gzip may hold several members, one after the other
                if window != _GZIP:
                    raise DamagedContent("bytes follow its deflate data")
                inflater = zlib.decompressobj(window)
            body += inflater.decompress(data, cap + 1 - len(body))
            if len(body) > cap:
                raise ContentTooLarge
            data = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
    if read and not inflater.eof:
        raise DamagedContent("its compressed data breaks off")
    return bytes(body)


def _has_wrapper(data: bytes) -> bool:
    """Return whether deflate data begins with the header of its wrapper, which some servers leave out."""
    return not data or data[0] & 0x0F == 8
