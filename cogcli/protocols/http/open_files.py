"""The files of one request, opened when it is sent (docs/reference/protocols.md#files).

1. Only a file that the run pinned is opened. A value of the same form from a step, a model or a reply is no file.
2. What is sent is a private copy whose size and SHA-256 were checked. A file that changes meanwhile changes nothing.
"""

from __future__ import annotations

import hashlib
import io
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from typing import BinaryIO, Final, Self, cast

from cogcli.base.errors import RequestMappingError
from cogcli.base.files import UnreadableFile, open_regular
from cogcli.base.jsonvalue import preview
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.pinned_file import PinnedFile, read_pinned_file
from cogcli.base.terminal_text import visible

_CHUNK: Final = 1 << 16
_IN_MEMORY: Final = 1 << 20
"""Copies up to this size are kept in memory, larger ones in a temporary file."""
_SHOWN: Final = 200


class OpenFile(NamedTuple):
    """A file that is sent: how it was pinned, and its content from the first byte on."""

    pinned: PinnedFile
    content: BinaryIO

    def chunks(self) -> Iterator[bytes]:
        """Yield the content in pieces, from its beginning."""
        self.content.seek(0)
        while chunk := self.content.read(_CHUNK):
            yield chunk


class OpenFiles:
    """Opens the files of one request, and closes them at the end of its context."""

    def __init__(self, allowed: frozenset[PinnedFile], limit: int) -> None:
        """`allowed` are the files that the run pinned, `limit` the most bytes of a request."""
        self._allowed = allowed
        self._limit = limit
        self._opened = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *what: object) -> None:
        self._opened.close()

    def open(self, value: object, name: str) -> OpenFile:
        """Return the content of the file that a value names. `name` is its place in the request.

        Raise RequestMappingError `request.value` for a value that is no file of the run, and for a
        file that was changed or removed; `request.size` for one that is too large."""
        pinned = read_pinned_file(value)
        if pinned is None:
            raise _file_error(f"{name} is a file, found {preview(value)}", _HINT)
        if pinned not in self._allowed:
            text = f"{name} names `{visible(pinned.path[:_SHOWN])}`, which is no file that an input of this run gave"
            raise _file_error(text, _HINT)
        if pinned.size > self._limit:
            text = f"{name} has {pinned.size:,} bytes, a request has at most {self._limit:,}"
            raise RequestMappingError(
                "request.size", text, hint="set max_request_bytes of the binding", left=False
            )
        return OpenFile(pinned, self._private_copy(pinned))

    def _private_copy(self, pinned: PinnedFile) -> BinaryIO:
        """Return a private copy of a file. Raise RequestMappingError if its content differs from the pinned content."""
        digest, size = hashlib.sha256(), 0
        shown = visible(pinned.path[:_SHOWN])
        try:
            copy = self._opened.enter_context(_new_copy(pinned.size))
            with open_regular(pinned.path, limit=pinned.size) as file:
                while size <= pinned.size and (chunk := file.read(_CHUNK)):
                    digest.update(chunk)
                    size += len(chunk)
                    copy.write(chunk)
            copy.flush()
        except UnreadableFile as refused:
            changed = refused.reason == "too-large"
            said = "has changed since the run began" if changed else refused.message
            raise _file_error(f"`{shown}` {said}", _AGAIN) from refused
        except OSError as error:
            text = f"`{shown}` cannot be copied: {error.strerror or error}"
            raise _file_error(text, "free some space for temporary files") from error
        if (size, digest.hexdigest()) != (pinned.size, pinned.sha256):
            raise _file_error(f"`{shown}` has changed since the run began", _AGAIN)
        return copy


def _new_copy(size: int) -> BinaryIO:
    if size <= _IN_MEMORY:
        return io.BytesIO()
    return cast("BinaryIO", tempfile.TemporaryFile())


def _file_error(text: str, hint: str) -> RequestMappingError:
    return RequestMappingError("request.value", text, hint=hint, left=False)


_HINT: Final = "map an input of the type file, which the caller of the run gives"
_AGAIN: Final = "put the file back as it was, or begin a new run with it"
