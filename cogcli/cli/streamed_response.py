"""The response of an agent on a terminal while its model writes it
(docs/reference/agent-run.md#streaming).
"""

from __future__ import annotations

from cogcli.base.terminal_text import visible_block
from cogcli.cli.streams import Screen


class StreamedResponse:
    """A writer of the readable part of a growing response to stderr."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._shown = ""

    def __call__(self, response: str) -> None:
        """Write the new part of the response. An empty response begins another reply, below an
        earlier draft.
        """
        if self._shown and not response:
            self.close("")
        if len(response) > len(self._shown) and response.startswith(self._shown):
            self._screen.notify(visible_block(response[len(self._shown) :]))
            self._shown = response

    def close(self, response: str) -> bool:
        """End the line, and return whether the whole response was written."""
        shown, self._shown = self._shown, ""
        if shown:
            self._screen.notify("\n")
        return (
            bool(shown) and shown.strip() == response.strip()
        )  # a reply loses the blanks around it
