"""The interface of a run's display, which gets events one by one in the coordinator's thread.

`DisplayListener` catches its exceptions."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from cogcli.cli.streams import Screen
from cogcli.declarations.envelope import Event


class Display:
    """Displays the events of a run; this base class displays nothing. A `brief` display writes the
    outcome itself, so that only errors follow."""

    brief = False
    on_response: Callable[[str], None] | None = None
    """Displays the response of an agent as it grows; None if the display has no place for it."""

    def __init__(self, screen: Screen) -> None:
        self.screen = screen

    def __call__(self, event: Event) -> None:
        """Display one event."""

    def recall(self, events: Iterable[Event]) -> None:
        """Read the events before a resume without displaying them."""

    def interrupt(self) -> None:
        """Free the screen for a message: the run is being stopped, and the display continues below
        it."""

    def close(self) -> None:
        """End the display; a second call does nothing."""
