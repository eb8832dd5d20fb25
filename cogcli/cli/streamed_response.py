"""The response of an agent as its model writes it, on a terminal (docs/reference/agent-run.md#streaming)."""

from __future__ import annotations

from cogcli.base.terminal_text import visible_block
from cogcli.cli.streams import Screen


class StreamedResponse:
    """Writes what can be read of a response to stderr while it grows."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._shown = ""

    def __call__(self, response: str) -> None:
        """The response so far; an empty one begins another reply, below what was a draft."""
        if self._shown and not response:
            self.close("")
        if len(response) > len(self._shown) and response.startswith(self._shown):
            self._screen.notify(visible_block(response[len(self._shown) :]))
            self._shown = response

    def close(self, response: str) -> bool:
        """End the line; whether the whole response stands there."""
        shown, self._shown = self._shown, ""
        if shown:
            self._screen.notify("\n")
        return (
            bool(shown) and shown.strip() == response.strip()
        )  # a reply loses the blanks around it
