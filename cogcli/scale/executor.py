"""Executors: where the lines of a batch run. One conformance suite holds for each (`tests/scale/test_executors.py`)."""

from __future__ import annotations

from typing import Protocol

from cogcli.base.errors import CogcliError
from cogcli.base.named_tuple import NamedTuple
from cogcli.scale.identity import LineTask
from cogcli.scale.line_result import LineResult


class LineEnded(NamedTuple):
    """The end of a submitted line."""

    task: LineTask
    result: LineResult


class LineBusy(NamedTuple):
    """A submitted line whose episode is locked by another process. The line may be submitted again later."""

    task: LineTask

    @property
    def result(self) -> None:
        """None: the line has not ended."""


class LineLost(NamedTuple):
    """A submitted line whose worker died. What it did is in its episode; submit it again to claim that."""

    task: LineTask

    @property
    def result(self) -> None:
        """None: the line has not ended."""


class BatchStopped(NamedTuple):
    """An error that concerns the whole batch. No further line should be submitted."""

    task: LineTask
    error: CogcliError

    @property
    def result(self) -> None:
        """None: the line has not ended."""


Completion = LineEnded | LineBusy | LineLost | BatchStopped


class Executor(Protocol):
    """Runs lines. All methods are called on one thread."""

    name: str
    workers: int

    @property
    def free(self) -> int:
        """The number of lines that can be submitted now."""
        ...

    @property
    def running(self) -> int:
        """The number of submitted lines without a completion."""
        ...

    def submit(self, task: LineTask) -> None:
        """Queue a line. Call this only while `free` is above 0."""
        ...

    def completed(self, seconds: float) -> list[Completion]:
        """Return the completions since the last call. Without any, wait at most `seconds` for the first."""
        ...

    def cancel(self) -> list[LineTask]:
        """Remove and return the submitted lines that no worker has begun."""
        ...

    def close(self) -> None:
        """Stop all workers immediately. Running lines are left unfinished, to be resumed later; none is aborted."""
        ...
