"""The actions of `state.json`, kept as their text: a run of a million steps has as many, and they need not fit memory.

1. An action becomes the text that it has in the document as soon as it is known, and is not kept as an object.
2. Above `_IN_MEMORY` bytes the text goes to a temporary file without a name. It holds what the log holds, masked.
3. The text only grows: a document that was projected earlier has a prefix of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Final
from weakref import finalize

import orjson

from cogcli.base.lazy_pattern import lazy_pattern
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.value_types import Json
from cogcli.episode.folder import disk_refusal, read_at, write_all

_IN_MEMORY: Final = 4 * 1024 * 1024
_CHUNK: Final = 1024 * 1024
_INDENT: Final = b"\n      "
"""The indentation of an action, which is three levels deep in the document."""
_SEPARATOR: Final = b"," + _INDENT


class ActionLog:
    """The actions of a run, in order."""

    def __init__(self) -> None:
        self.count = 0
        self.size = 0
        """The bytes of the text so far."""
        self._parts: list[bytes] = []
        self._pending = 0
        """The bytes in `_parts`, which come after those in the file."""
        self._fd = -1

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Json]:
        return iter(self.objects())

    def append(self, action: Json) -> None:
        """Add an action. Raise UnusableEnvironment `env.disk`."""
        text = orjson.dumps(action, option=orjson.OPT_INDENT_2).replace(b"\n", _INDENT)
        if self.count:
            text = _SEPARATOR + text
        self.count += 1
        self.size += len(text)
        self._parts.append(text)
        self._pending += len(text)
        if self._pending > _IN_MEMORY:
            self._spill_to_file()

    def chunks(self, size: int) -> Iterator[bytes]:
        """Yield the first `size` bytes of the text. Raise UnusableEnvironment `env.disk`."""
        stored = self.size - self._pending
        for start in range(0, min(size, stored), _CHUNK):
            yield read_at(self._fd, min(_CHUNK, size - start, stored - start), start)
        if size > stored:
            yield b"".join(self._parts)[: size - stored]

    def objects(self) -> list[Json]:
        """Return all actions as objects."""
        found: list[Json] = orjson.loads(b"[%b]" % b"".join(self.chunks(self.size)))
        return found

    def _spill_to_file(self) -> None:
        from tempfile import gettempdir

        try:
            if self._fd < 0:
                self._fd = open_temporary()
                finalize(self, os.close, self._fd)
            os.lseek(self._fd, 0, os.SEEK_END)
            write_all(self._fd, b"".join(self._parts))
        except OSError as error:
            raise disk_refusal(gettempdir(), error) from error
        self._parts.clear()
        self._pending = 0


def open_temporary() -> int:
    """Return the descriptor of a new file that no one else can open."""
    from tempfile import TemporaryFile

    with TemporaryFile(prefix="cogcli-") as file:
        return os.dup(file.fileno())


def leave_out_actions(chunks: Iterable[bytes]) -> bytes:
    """Return the text of a `state.json` with an empty list of actions: it has as many as the run had calls.

    A text of another form is returned unchanged.
    """
    stream, kept = iter(chunks), list[bytes]()
    rest = _split_at(stream, b"", _OUTCOMES, kept)
    while rest and len(rest) < _HEAD and (chunk := next(stream, b"")):
        rest += chunk
    begin = _BEGIN.match(rest or b"")
    if rest is None or begin is None:
        return b"".join([*kept, rest or b"", *stream])
    kept.append(begin[0])
    rest = _split_at(stream, rest[begin.end() :], _END, None)
    return b"".join([*kept, rest or b"", *stream])


def iterate_actions(chunks: Iterable[bytes]) -> Iterator[Json]:
    """Yield the actions in the text of a `state.json`, one at a time. Raise ValueError as soon as the text differs from
    the form that cogcli writes.
    """
    for text in _action_texts(iter(chunks)):
        action: Json = orjson.loads(text)
        if orjson.dumps(action, option=orjson.OPT_INDENT_2).replace(b"\n", _INDENT) != text:
            raise ValueError("an action is not written as cogcli writes it")
        yield action


def has_our_actions(chunks: Iterable[bytes]) -> bool:
    """Return whether each action can be read alone: a text of another form has to be parsed as a whole."""
    try:
        for _ in iterate_actions(chunks):
            pass
    except ValueError:
        return False
    return True


def _action_texts(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the text of each action. Raise ValueError for a text of another form."""
    rest = _split_at(chunks, b"", _OUTCOMES, None) or b""
    while rest and len(rest) < _HEAD and (chunk := next(chunks, b"")):
        rest += chunk
    begin = _BEGIN.match(rest)
    if begin is None:
        raise ValueError("no list of actions at its place")
    at = begin.end() + len(_INDENT) - 1
    while True:
        end = rest.find(_CLOSE, at) + len(_CLOSE)
        if end < len(_CLOSE) or len(rest) < end + len(_SEPARATOR):
            chunk = next(chunks, b"")
            if not chunk:
                raise ValueError("the list of actions has no end")
            rest, at = rest[at:] + chunk, 0
            continue
        yield rest[at:end]
        if rest.startswith(_END, end):
            return
        if not rest.startswith(_SEPARATOR, end):
            raise ValueError("something else between two actions")
        at = end + len(_SEPARATOR)


_OUTCOMES: Final = b'\n  "outcomes": {'
_BEGIN: Final = lazy_pattern(rb'\n  "outcomes": \{\n    "status": "\w{1,40}",\n    "actions": \[\n')
_HEAD: Final = 200
"""More bytes than `_BEGIN` matches."""
_CLOSE: Final = _INDENT + b"}"
"""The end of an action. All its content is indented deeper."""
_END: Final = b"\n    ]"


def _split_at(
    chunks: Iterator[bytes], rest: bytes, mark: bytes, kept: list[bytes] | None
) -> bytes | None:
    """Return the bytes from a mark on, as far as they were read, and add those before it to `kept`. None without one.

    `rest` are the bytes that were read already.
    """
    while (at := rest.find(mark)) < 0:
        chunk = next(chunks, b"")
        at = max(0, len(rest) - len(mark) + 1) if chunk else len(rest)
        if kept is not None:
            kept.append(rest[:at])
        if not chunk:
            return None
        rest = rest[at:] + chunk
    if kept is not None:
        kept.append(rest[:at])
    return rest[at:]


class DocumentText(NamedTuple):
    """The bytes of a document. Of `state.json` the actions, in the middle, may be in a file."""

    head: bytes
    actions: ActionLog | None = None
    actions_size: int = 0
    tail: bytes = b""

    @property
    def size(self) -> int:
        """The number of bytes."""
        return len(self.head) + self.actions_size + len(self.tail)

    @property
    def sha256(self) -> str:
        """The hash of the bytes."""
        content = sha256()
        for chunk in self.chunks():
            content.update(chunk)
        return content.hexdigest()

    def chunks(self) -> Iterator[bytes]:
        """Yield the bytes, in order."""
        yield self.head
        if self.actions is not None:
            yield from self.actions.chunks(self.actions_size)
        yield self.tail

    def to_bytes(self) -> bytes:
        """Return all bytes."""
        return b"".join(self.chunks())

    def equals(self, chunks: Iterable[bytes]) -> bool:
        """Return whether these chunks are the same bytes."""
        mine, rest = self.chunks(), b""
        for theirs in chunks:
            while theirs:
                if not rest:
                    rest = next((chunk for chunk in mine if chunk), b"")
                    if not rest:
                        return False
                length = min(len(rest), len(theirs))
                if rest[:length] != theirs[:length]:
                    return False
                rest, theirs = rest[length:], theirs[length:]
        return not rest and not any(mine)
