"""The interface of a run's display, which gets events one by one in the coordinator's thread.

`DisplayListener` catches its exceptions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar

from cogcli.cli.streams import Screen
from cogcli.declarations.envelope import Event


class Display:
    """A display of the events of a run. This base class displays nothing.

    A `brief` display writes the outcome itself, so that the command only adds errors.
    """

    brief = False
    ignored: ClassVar[frozenset[str]] = frozenset()
    """The types of events that it may not get, because it does nothing with them."""
    on_response: Callable[[str], None] | None = None
    """Displays the response of an agent as it grows; None if the display has no place for it."""

    def __init__(self, screen: Screen) -> None:
        self.screen = screen

    def __call__(self, event: Event) -> None:
        """Display an event."""

    def load_past_events(self, events: Iterable[Event]) -> None:
        """Apply the events before a resume without displaying them."""

    def interrupt(self) -> None:
        """Release the screen for a message: the run is being stopped. Display later events below
        the message.
        """

    def close(self) -> None:
        """End the display. A second call does nothing."""
