"""The installed command on a pseudo-terminal, drawn on a screen."""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path
from typing import Any

import pexpect
import pyte

COGCLI = str(Path(sys.executable).parent / "cogcli")


class Terminal:
    """A command on a pseudo-terminal of a given size, drawn on a screen."""

    def __init__(self, project: Any, *arguments: str, rows: int = 24, columns: int = 80) -> None:
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self.process = pexpect.spawn(COGCLI, list(arguments), cwd=str(project.root), env=project.env,
                                     dimensions=(rows, columns), timeout=30, preexec_fn=_heed_sighup)  # fmt: skip

    def until(self, text: str) -> None:
        """Draw until the screen shows a text."""
        end = time.monotonic() + 60
        while text not in "\n".join(self.screen.display):
            assert time.monotonic() < end, "\n".join(self.screen.display)
            self.draw()

    def finish(self) -> str:
        """Draw to the end, a minute at most; the final screen."""
        end = time.monotonic() + 60
        while self.draw():
            assert time.monotonic() < end, "\n".join(self.screen.display)
        self.process.close()
        return "\n".join(line.rstrip() for line in self.screen.display).rstrip()

    def draw(self) -> bool:
        """Draw what has come, waiting a second at most; False at the end."""
        try:
            data = self.process.read_nonblocking(4096, timeout=1)
        except pexpect.EOF:
            return False
        except pexpect.TIMEOUT:
            return True
        self.raw += data
        self.stream.feed(data)
        return True

    def send(self, line: str, prompt: str = "") -> None:
        """Type a line, once the line of the cursor begins with the prompt and nothing is typed there."""
        if prompt:
            self.until_asked(prompt)
        self.process.sendline(line)

    def leave(self, prompt: str) -> str:
        """End the input at the prompt; the final screen."""
        self.until_asked(prompt)
        self.process.sendeof()
        return self.finish()

    def until_asked(self, prompt: str) -> None:
        """Draw until the line of the cursor is the prompt and nothing else."""
        end = time.monotonic() + 60
        while self.screen.display[self.screen.cursor.y].strip() != prompt:
            assert time.monotonic() < end, "\n".join(self.screen.display)
            self.draw()


def _heed_sighup() -> None:
    # A run of the tests under `nohup` would hand its deaf ear down.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
