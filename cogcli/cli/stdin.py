"""Standard input, read only where `-` asks for it (docs/reference/command-line.md#stdin)."""

from __future__ import annotations

import sys

from cogcli.core.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cogcli.cli.streams import Screen


def read_stdin(screen: Screen, limit: int) -> bytes:
    """All of stdin, at most `limit` + 1 bytes. At a terminal a message says how to end. Raises UsageError."""
    if sys.stdin is None:
        raise UsageError("input.empty", "stdin is closed")
    if sys.stdin.isatty() and not screen.quiet:
        screen.notify("reading from the terminal; end with Ctrl-D\n")
    return sys.stdin.buffer.read(limit + 1)
