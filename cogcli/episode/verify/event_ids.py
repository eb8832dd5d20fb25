"""The ids of the events of a log, of any number: the older ones are in a temporary file, in order.

Ids that cogcli gives increase, so that a binary search in the file finds them. Any other id stays in memory: only logs
of other tools, or forged ones, have many.
"""

from __future__ import annotations

import os
from typing import Final
from weakref import finalize

from cogcli.episode.action_log import open_temporary
from cogcli.episode.folder import read_at, write_all

_RECENT: Final = 50_000
_WIDTH: Final = len("ev_") + 26


class EventIds:
    """A set of event ids. Its older ids are in a temporary file, so that a long log needs little memory."""

    def __init__(self) -> None:
        self._recent: dict[str, None] = {}
        """The latest increasing ids, in order."""
        self._others: set[str] = set()
        self._last = ""
        self._fd = -1
        self._stored = 0
        """The number of ids in the file."""

    def __contains__(self, event_id: str) -> bool:
        if event_id > self._last:  # as nearly every new id: no increasing one can be equal to it
            return event_id in self._others
        return event_id in self._recent or event_id in self._others or self._is_stored(event_id)

    def add(self, event_id: str) -> None:
        """Add an id. Raise OSError if the disk is full."""
        if len(event_id) != _WIDTH or not event_id.isascii() or not self.add_next(event_id):
            self._others.add(event_id)

    def add_next(self, event_id: str) -> bool:
        """Add an id in cogcli's form that is greater than all increasing ones, as nearly every new id is. Return False,
        without adding it, for any other id. Raise OSError if the disk is full.
        """
        if event_id <= self._last or (self._others and event_id in self._others):
            return False
        self._last = event_id
        self._recent[event_id] = None
        if len(self._recent) > _RECENT:
            self._store_ids()
        return True

    def _store_ids(self) -> None:
        if self._fd < 0:
            self._fd = open_temporary()
            finalize(self, os.close, self._fd)
        os.lseek(self._fd, 0, os.SEEK_END)
        write_all(self._fd, "".join(self._recent).encode())
        self._stored += len(self._recent)
        self._recent.clear()

    def _is_stored(self, event_id: str) -> bool:
        if not self._stored or len(event_id) != _WIDTH or not event_id.isascii():
            return False
        wanted, low, high = event_id.encode(), 0, self._stored
        while low < high:
            middle = (low + high) // 2
            found = read_at(self._fd, _WIDTH, middle * _WIDTH)
            if found == wanted:
                return True
            low, high = (middle + 1, high) if found < wanted else (low, middle)
        return False
