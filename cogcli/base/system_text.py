"""Text from the system: arguments, environment variables, directory names; and words for a shell.

Python represents bytes that are not UTF-8 as lone surrogates. No log, document or database can
store them, so they are refused at the entry, before any work begins.
"""

from __future__ import annotations

from cogcli.base.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_LONGEST = 40


def bad_byte(text: str) -> str:
    """Return the first byte of a string that is not UTF-8, as `byte 0xFF at 3`; empty for valid text."""
    if text.isascii():
        return ""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        code = ord(text[error.start])
        what = f"byte 0x{code - 0xDC00:02X}" if 0xDC80 <= code <= 0xDCFF else f"U+{code:04X}"
        return f"{what} at {error.start}"
    return ""


def require_text(text: str, label: str, hint: str = "write it in UTF-8") -> str:
    """Return the text. Raise UsageError `input.encoding` if it is not UTF-8; `label` names it."""
    if found := bad_byte(text):
        raise UsageError("input.encoding", f"{label} is not UTF-8: {found}", hint=hint)
    return text


def require_argument(argv: list[str], number: int) -> None:
    """Raise UsageError `input.encoding` if a word of a command line is not UTF-8."""
    word, before = argv[number], argv[number - 1] if number else ""
    name = word.partition("=")[0]
    if name.startswith("--") and not bad_byte(name):
        what = f"`{name[:_LONGEST]}`"
    elif before.startswith("-") and "=" not in before:
        what = f"the word after `{before[:_LONGEST]}`"
    else:
        what = f"word {number + 1} of the command line"
    require_text(word, what)


def variable(environ: Mapping[str, str], name: str) -> str:
    """Return an environment variable; empty if it is not set. Raise UsageError `input.encoding`."""
    text = environ.get(name, "")
    return text if text.isascii() else require_text(text, f"environment variable `{name}`")


def parse_whole_number(text: str, digits: int = 18) -> int | None:
    """Return the number written in ASCII digits; None for other text, or more than `digits` digits."""
    return int(text) if len(text) <= digits and text.isascii() and text.isdigit() else None


def shell_word(text: object) -> str:
    """Return the text of a value as one word of a command for a POSIX shell."""
    from shlex import quote  # few commands name one, and it takes longer to load than this module

    return quote(str(text))
