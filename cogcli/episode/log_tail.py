"""Reading a log while its run writes it: every committed event, the next one as soon as it is there."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

from cogcli.core.files import FileRefused
from cogcli.episode.blobs import BlobFolder
from cogcli.episode.folder import Folder
from cogcli.episode.layout import EVENTS
from cogcli.episode.log_reader import EventLog
from cogcli.episode.refusals import no_log_error, open_episode
from cogcli.events.envelope import Event

_CHUNK: Final = 1 << 20


class GrowingLog(EventLog):
    """The events of an episode, up to the moment when no run holds its lock.

    `wait` is called while there is nothing new. A run that pauses, ends or dies gives its lock back: then what is
    there is all there is.
    """

    def __init__(self, directory: Path, wait: Callable[[], None]) -> None:
        super().__init__(directory)
        self._directory = directory
        self._wait = wait

    def __iter__(self) -> Iterator[tuple[int, Event]]:
        with open_episode(self._directory) as folder, closing(BlobFolder(folder)) as kept:
            try:
                yield from self._events(self._growing(folder), kept.get)
            except FileRefused as error:
                raise no_log_error(folder, error) from error

    def _growing(self, folder: Folder) -> Iterator[bytes]:
        fd = folder.open_file(EVENTS)
        try:
            while True:
                alive = folder.is_locked(EVENTS)  # before reading: what the run wrote last is then still read
                while chunk := os.read(fd, _CHUNK):
                    yield chunk
                if not alive:
                    return
                self._wait()
        except OSError as error:
            raise FileRefused(
                str(folder.path / EVENTS), "unreadable", f"cannot be read: {error.strerror}"
            ) from error
        finally:
            os.close(fd)
