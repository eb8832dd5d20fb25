"""The two streams: stdout has the answer, stderr the messages (docs/reference/command-line.md#streams).

1. Both are UTF-8 in every locale; what cannot be encoded is escaped, so that no text makes printing fail.
2. A stream without a terminal has no colour, no width, no cursor control.
3. A closed pipe is not an error; a full disk behind stdout is one.
4. While skills run, only the command writes to stdout: what called functions and their children print is dropped.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from cogcli.base.errors import UnusableEnvironment
from cogcli.base.system_text import parse_whole_number
from cogcli.base.terminal_text import visible_block
from cogcli.report.styled_text import (
    ASCII,
    UNICODE,
    Glyphs,
    StyledLine,
    coloured_text,
    fold_prose,
    plain_text,
)

if sys.platform == "win32":
    from cogcli.cli.windows_console import enable_codes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TextIO

WIDEST = 120
_PLAIN_SIGNS = {0x2026: "~", 0x2192: ">"}
"""The ellipsis and arrow of rendered lines, in as many columns."""


class OutputStream:
    """An output stream with the abilities of its terminal. `width` is in columns; with None, text
    is never wrapped or truncated.
    """

    def __init__(self, file: TextIO | None, environ: Mapping[str, str], color: str) -> None:
        self.file = file
        self.real_tty = _is_tty(file)
        forced = environ.get("COGCLI_FORCE_TTY", "")
        self.tty = self.real_tty or parse_whole_number(forced) is not None
        self.width = _terminal_width(file, environ, forced) if self.tty else None
        self.color = _wants_color(color, environ, self.real_tty and _supports_color(file))
        self.glyphs = _choose_glyphs(file, environ)
        if file is not None and hasattr(file, "reconfigure"):
            file.reconfigure(encoding="utf-8", errors="backslashreplace", newline="\n")

    def write(self, text: str) -> None:
        """Write text and flush it. Raise BrokenPipeError if the reader closed the pipe, OSError if
        the disk is full.
        """
        if self.file is not None:
            self.file.write(text)
            self.file.flush()

    def line(self, line: StyledLine) -> str:
        """Return a styled line as text with its newline and visible control characters.

        It wraps between words on a terminal that is too narrow.
        """
        if not all(text.isprintable() for text, _ in line):
            line = [(visible_block(text).replace("\n", "\\n"), style) for text, style in line]
        lines = [line] if self.width is None or not line else fold_prose(line, self.width)
        rendered = coloured_text if self.color else plain_text
        text = "\n".join([rendered(each) for each in lines])
        return f"{text.translate(_PLAIN_SIGNS) if self.glyphs is ASCII else text}\n"


class Screen:
    """The two streams of a command, under `--json` and `-q`."""

    def __init__(
        self,
        environ: Mapping[str, str],
        *,
        color: str = "",
        json: bool = False,
        quiet: bool = False,
    ) -> None:
        color = color or environ.get("COGCLI_COLOR", "")
        self.out = OutputStream(sys.stdout, environ, color)
        self.err = OutputStream(sys.stderr, environ, color)
        self.json = json
        self.quiet = quiet
        self._claimed: TextIO | None = None
        ci = environ.get("CI", "")
        self.ci = ci not in ("", "0", "false")
        self.hints = (
            self.err.tty and not self.ci and not quiet and not environ.get("COGCLI_NO_HINTS")
        )

    def claim_stdout(self) -> None:
        """Write answers to a copy of descriptor 1 from now on, and redirect descriptor 1 itself to
        the null device (rule 4).
        """
        try:
            if self.out.file is None or self.out.file.fileno() != 1:
                return
            own = os.dup(1)
        except (OSError, ValueError):
            return
        self.out.file = os.fdopen(
            own, "w", encoding="utf-8", errors="backslashreplace", newline="\n"
        )
        self._claimed = self.out.file
        silence_stdout()

    def release_stdout(self) -> None:
        """Undo `claim_stdout` once no skill runs, because a prompt needs descriptor 1."""
        if self._claimed is not None:
            with suppress(OSError, ValueError):
                os.dup2(self._claimed.fileno(), 1)
            self.close()
            self._claimed, self.out.file = None, sys.stdout

    def close(self) -> None:
        """Close the copy of descriptor 1. Every answer has been flushed."""
        if self._claimed is not None:
            with suppress(OSError):
                self._claimed.close()

    def answer(self, text: str) -> None:
        """Write text to stdout.

        Raise BrokenPipeError if the reader closed the pipe, UnusableEnvironment `env.disk` for any
        other error.
        """
        try:
            self.out.write(text)
        except BrokenPipeError:
            raise
        except OSError as error:
            silence_stdout()
            self.out.file = None
            raise UnusableEnvironment(
                "env.disk",
                f"stdout cannot be written: {error.strerror or error}",
                hint="free some space",
            ) from error

    def answer_lines(self, lines: list[StyledLine]) -> None:
        """Write styled lines to stdout."""
        self.answer("".join([self.out.line(line) for line in lines]))

    def notify_line(self, line: StyledLine) -> None:
        """Write a line to stderr. A closed stderr is not an error."""
        self.notify(self.err.line(line))

    def notify(self, text: str) -> None:
        """Write text to stderr unchanged. A closed stderr is not an error."""
        try:
            self.err.write(text)
        except OSError:
            self.err.file = None


def silence_stdout() -> None:
    """Redirect descriptor 1 to the null device: after a closed pipe, Python's flush at exit would
    fail on it."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.close(null)
    except OSError:
        return


def _supports_color(file: TextIO | None) -> bool:
    """Return whether the terminal interprets color codes. On a Windows console this enables them."""
    if sys.platform == "win32":
        return file is not None and enable_codes(file.fileno())
    return True


def _is_tty(file: TextIO | None) -> bool:
    try:
        return file is not None and file.isatty()
    except ValueError:
        return False


def _terminal_width(file: TextIO | None, environ: Mapping[str, str], forced: str) -> int:
    """Return the width in columns, from 20 to `WIDEST`. A forced width wins over the terminal, and
    the terminal over `COLUMNS`; the default is 80."""
    columns = 0
    if (given := parse_whole_number(forced)) is not None:
        columns = given
    elif file is not None:
        try:
            columns = os.get_terminal_size(file.fileno()).columns
        except (OSError, ValueError):
            columns = 0
    columns = columns or parse_whole_number(environ.get("COLUMNS", "")) or 0
    return max(20, min(columns or 80, WIDEST))


def _wants_color(word: str, environ: Mapping[str, str], tty: bool) -> bool:
    """Return whether to write color codes, by the word of `--color` and the environment."""
    if word in ("always", "never"):
        return word == "always"
    if environ.get("NO_COLOR"):
        return False
    for name in ("FORCE_COLOR", "CLICOLOR_FORCE"):
        if environ.get(name, "") not in ("", "0"):
            return True
    return tty and environ.get("TERM") != "dumb"


def _choose_glyphs(file: TextIO | None, environ: Mapping[str, str]) -> Glyphs:
    """Return Unicode signs, or ASCII ones if the encoding or an explicit C locale cannot represent
    them.
    """
    encoding = (getattr(file, "encoding", None) or "utf-8").lower().replace("_", "-")
    if not encoding.startswith(("utf-8", "utf8", "utf-16", "cp65001")):
        return ASCII
    named = next((environ[n] for n in ("LC_ALL", "LC_CTYPE", "LANG") if environ.get(n)), "")
    return ASCII if named in ("C", "POSIX") else UNICODE
