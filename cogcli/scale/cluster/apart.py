"""Lines that a worker without the files of the batch runs in its own runs directory (docs/reference/batch.md#apart).

1. The claim of that directory decides, as everywhere. A line whose episode is there already is not run again.
2. A copy is removed once the batch has the episode. So this process keeps the numbers of the lines that were given
   back: Dask may run a task again long after that.
3. A client that was killed may leave tasks. The admission of another client for the same part of the batch ends them:
   a task looks under one lock whether its client is still admitted, and notes the episode that it runs.
"""

from __future__ import annotations

from base64 import b64encode
from contextlib import suppress
from pathlib import Path
from typing import Final

from cogcli.base.errors import CogcliError
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.value_types import Json
from cogcli.episode.archive.parcel import pack
from cogcli.episode.archive.writer import read_folder
from cogcli.episode.folder import Folder
from cogcli.episode.layout import is_own_id
from cogcli.episode.removal import remove
from cogcli.scale.frames import completion_to_frame
from cogcli.scale.identity import LineTask
from cogcli.scale.line_runner import LineRunner
from cogcli.scale.line_set import LineSet

GIVEN: Final = "given"
"""The kind of an answer to a line that was given back before."""


class ReturnedLine(NamedTuple):
    """A line whose episode the batch has."""

    line: int
    attempt: int
    episode: str


class UnsharedLines:
    """The lines that this process ran for batches whose files it does not share."""

    def __init__(self) -> None:
        self._running: set[str] = set()
        self._given: dict[tuple[str, int], LineSet] = {}

    def begin(self, batch: str, task: LineTask, episode: str) -> Json | None:
        """Record that a line runs. Return None, or the answer to send if the line may not run."""
        if task.line in self._given.get((batch, task.attempt), ()):
            return {"kind": GIVEN}
        if episode in self._running:
            return {"kind": "busy"}
        self._running.add(episode)
        return None

    def end(self, episode: str) -> None:
        """Record that a line has stopped running."""
        self._running.discard(episode)

    def give(self, batch: str, returned: list[ReturnedLine]) -> None:
        """Record the lines whose episodes the batch has received. Their copies may then be removed."""
        for each in returned:
            self._given.setdefault((batch, each.attempt), LineSet()).add(each.line)


def run_apart(runner: LineRunner, task: LineTask, batch: str) -> Json:
    """Run a line, and return its completion as a frame with its episode."""
    completion = runner.run(task)
    frame = completion_to_frame(completion)
    if completion.result is not None and completion.result.entry.episode is not None:
        directory = runner.directory_of(task)
        with suppress(FileNotFoundError), Folder.open(directory) as folder:
            parcel = pack(directory.name, read_folder(folder), batch=batch, line=task.line)
            frame["parcel"] = b64encode(parcel).decode()
    return frame


def remove_copies(runs_dir: Path, returned: list[ReturnedLine]) -> None:
    """Remove the episodes that the batch has received. An episode that cannot be removed is left for `gc`."""
    for each in filter(lambda each: is_own_id(each.episode), returned):
        with suppress(CogcliError):
            remove(runs_dir / each.episode, lambda row: True)
