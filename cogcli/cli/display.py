"""What every display of a run does: it gets events one by one in the coordinator's thread. What it raises is caught by
`DisplayListener`."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from cogcli.cli.streams import Screen
from cogcli.declarations.envelope import Event


class Display:
    """Displays the events of a run; this one nothing. A `brief` one writes the outcome: only errors follow it."""

    brief = False
    on_response: Callable[[str], None] | None = None
    """Displays the response of an agent while its model writes it; None where there is no place for that."""

    def __init__(self, screen: Screen) -> None:
        self.screen = screen

    def __call__(self, event: Event) -> None:
        """Display one event."""

    def recall(self, events: Iterable[Event]) -> None:
        """Take the events before a resume, without displaying them."""

    def interrupt(self) -> None:
        """Leave the screen to a message: the run is being stopped, and the display goes on below it."""

    def close(self) -> None:
        """End the display; a second call does nothing."""
