"""The frames between a batch and its workers: a length, then JSON. Bytes are base64 in them."""

from __future__ import annotations

import os
from base64 import b64decode, b64encode
from collections.abc import Iterator
from struct import Struct
from typing import Final

import orjson

from cogcli.base.errors import CogcliError
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Json
from cogcli.episode.folder import write_all
from cogcli.scale.executor import (
    BatchStopped,
    Completion,
    LineBusy,
    LineEnded,
)
from cogcli.scale.identity import BatchKey, LineTask
from cogcli.scale.ledger import parse_entry
from cogcli.scale.line_result import LineResult

_LENGTH: Final = Struct(">I")
_LARGEST: Final = 1 << 30
_CHUNK: Final = 1 << 16


def write_frame(fd: int, json: Json) -> None:
    """Write one frame. Raise OSError."""
    data = orjson.dumps(json)
    write_all(fd, _LENGTH.pack(len(data)) + data)


class WorkerFrame(Record):
    """The members of a frame of a worker by which it is sorted."""

    kind: str = ""
    parcel: str | None = None
    """The files of an episode, as base64."""


class FrameBuffer:
    """A buffer for the bytes of a pipe that yields whole frames."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> None:
        """Add bytes."""
        self._data += data

    def frames(self) -> Iterator[Json]:
        """Yield and remove the whole frames. Raise ValueError for anything else."""
        while len(self._data) >= _LENGTH.size:
            (size,) = _LENGTH.unpack_from(self._data)
            end = _LENGTH.size + size
            if size > _LARGEST:
                raise ValueError("the frame is too long")
            if len(self._data) < end:
                return
            value = orjson.loads(bytes(self._data[_LENGTH.size : end]))
            del self._data[:end]
            if not isinstance(value, dict):
                raise ValueError("the frame is no object")
            yield value


def read_frames(fd: int) -> Iterator[Json]:
    """Yield the frames of a pipe until its end."""
    buffer = FrameBuffer()
    while data := os.read(fd, _CHUNK):
        buffer.feed(data)
        yield from buffer.frames()


def task_to_frame(task: LineTask) -> Json:
    """Return a line as a frame."""
    data = b64encode(task.data).decode()
    origin = task.origin and [task.origin.id, task.origin.created_ms]
    return {
        "line": task.line,
        "try": task.attempt,
        "data": data,
        "retry_of": task.retry_of,
        "origin": origin,
        "at": task.at,
    }


def task_from_frame(frame: Json) -> LineTask:
    """Return the line in a frame."""
    origin = frame["origin"] and BatchKey(*frame["origin"])
    data = b64decode(frame["data"])
    return LineTask(frame["line"], frame["try"], data, frame["retry_of"], origin, frame["at"])


def error_to_frame(error: CogcliError) -> Json:
    """Return an error as a frame."""
    return {
        "kind": "stopped",
        "code": error.code,
        "message": error.message,
        "hint": error.hint,
        "next": list(error.next),
        "expected": error.expected,
        "found": error.found,
    }


def error_from_frame(frame: Json) -> CogcliError:
    """Return the error in a frame."""
    return CogcliError(
        frame["code"],
        frame["message"],
        hint=frame["hint"],
        next=tuple(frame["next"]),
        expected=frame["expected"],
        found=frame["found"],
    )


def completion_to_frame(completion: Completion) -> Json:
    """Return the completion of a line as a frame."""
    match completion:
        case LineEnded(_, result):
            entry = result.entry.to_payload()
            row = result.row.decode()
            return {
                "kind": "ended",
                "entry": entry,
                "row": row,
                "service": result.service,
                "calls": dict(result.calls),
                "held": dict(result.held),
            }
        case BatchStopped(_, error):
            return error_to_frame(error)
        case _:
            return {"kind": "busy"}


def completion_from_frame(frame: Json, task: LineTask) -> Completion:
    """Return the completion of a line in a frame. Raise ValueError or KeyError for anything else."""
    match frame["kind"]:
        case "ended":
            entry = parse_entry(frame["entry"])
            if entry is None or (entry.line, entry.attempt) != (task.line, task.attempt):
                raise ValueError("the frame is for another line")
            result = LineResult(
                entry,
                str(frame["row"]).encode(),
                str(frame["service"]),
                frame["calls"],
                frame["held"],
            )
            return LineEnded(task, result)
        case "stopped":
            return BatchStopped(task, error_from_frame(frame))
        case "busy":
            return LineBusy(task)
    raise ValueError("the frame has no known kind")
