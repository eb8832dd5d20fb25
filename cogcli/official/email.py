"""Mail in files: an mbox, a maildir, a folder of .eml files, or one message."""

from __future__ import annotations

import os
import re
from email import message_from_bytes, policy
from email.errors import MessageError
from email.header import decode_header, make_header
from email.utils import getaddresses, parsedate_to_datetime
from typing import TYPE_CHECKING

from cogcli.official.confined import run_confined_function
from cogcli.official.files import OPENED_AS as OPENED_AS
from cogcli.official.files import name_of, read_whole, resolve_folder
from cogcli.sdk import Refused

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from email.message import EmailMessage, MIMEPart

_MAX_BYTES = 64 * 1024 * 1024
_MAX_MESSAGES = 10_000
_MAX_TEXT = 200_000
_MAX_PARTS = 1_000
_MAX_PAGE = 1024 * 1024
_MAX_ADDRESSES = 64 * 1024
_MAX_HEADERS = 32 * 1024
_MAX_PARSED = 4 * 1024
_MAX_NAME = 1024
_ADDRESSES = ("from", "to", "cc")
_TEXTS = ("message-id", "subject", "date")
_PART_HEADER = re.compile(
    rb"(?:^|[\r\n])content-[a-z-]+[ \t]*:([^\r\n]*(?:(?:\r\n|\r|\n)[ \t][^\r\n]*)*)", re.IGNORECASE
)
"""A header that describes a part. The parser of messages reads it at once, wherever it stands."""
_BROKEN = frozenset(
    (
        "NoBoundaryInMultipartDefect", "StartBoundaryNotFoundDefect", "CloseBoundaryNotFoundDefect",
        "MultipartInvariantViolationDefect", "MissingHeaderBodySeparatorDefect", "InvalidBase64CharactersDefect",
        "InvalidBase64LengthDefect", "UndecodableBytesDefect", "FirstHeaderLineIsContinuationDefect",
    )
)  # fmt: skip
"""What the parser says of a message whose parts cannot be told apart or decoded."""
_ENVELOPE = re.compile(rb"From (?:.*\d\d:\d\d|\S+\s*\n|[^\n]*\n[!-9;-~]+:)")
"""The line before a message of an mbox: with a time, of a sender alone, or before a header; no other sentence."""


def read_mailbox(mailbox: str) -> dict[str, object]:
    """Return the messages of a mailbox of at most 64 MiB, in the order in which it stores them.

    Each has `id`, `from`, `to`, `cc`, `subject`, `date`, `text`, and `attachments` by name, kind
    and size. `truncated` is true if the text had more than 200,000 characters. Messages with broken
    MIME or too long headers, and attachments with a path in their name, are only counted in
    `skipped`.
    """
    about = f"{name_of(mailbox)}: "
    if mailbox and "\0" not in mailbox and os.path.isdir(mailbox):
        folder = resolve_folder(mailbox)
        return run_confined_function(
            "email:messages_of_folder", read=[folder], about=about, folder=folder
        )
    return run_confined_function(
        "email:messages_of_file", content=read_whole(mailbox, _MAX_BYTES), about=about
    )


def messages_of_file(content: bytes) -> dict[str, object]:
    """Return the result of `read_mailbox` for the bytes of an mbox or of one message. Runs in a
    confined process.
    """
    if content.startswith(b"From "):
        return _read_messages(_raw_messages_in_mbox(content))
    return _read_messages([content] if content.strip() else [])


def messages_of_folder(folder: str) -> dict[str, object]:
    """Return the result of `read_mailbox` for a maildir or a folder of .eml files. Runs in a
    confined process.
    """
    return _read_messages(_raw_messages_in_folder(folder))


def _read_messages(raw_messages: Iterable[bytes]) -> dict[str, object]:
    """Return the messages, and how many messages and attachments were skipped. Raise Refused for
    too many.
    """
    messages: list[dict[str, object]] = []
    skipped = 0
    for number, raw in enumerate(raw_messages):
        if number == _MAX_MESSAGES:
            raise Refused("too-large", f"more than {_MAX_MESSAGES:,} messages")
        message, skipped_parts = _read_message(raw)
        skipped += skipped_parts
        if message is not None:
            messages.append(message)
    return {"messages": messages, "skipped": skipped}


def _raw_messages_in_folder(folder: str) -> Iterator[bytes]:
    """Yield the messages of a maildir (`cur` and `new`), else the .eml files of a folder. Links are
    not followed.
    """
    inner = [
        place
        for place in (os.path.join(folder, part) for part in ("cur", "new"))
        if os.path.isdir(place) and not os.path.islink(place)
    ]
    files = [
        entry.path
        for place in inner or [folder]
        for entry in sorted(os.scandir(place), key=lambda entry: entry.name)
        if entry.is_file(follow_symlinks=False) and (inner or entry.name.lower().endswith(".eml"))
    ]
    if not files and not inner:
        raise Refused("unsupported", "neither a maildir nor a folder with .eml files")
    bytes_left = _MAX_BYTES
    for file in files:
        content = read_whole(file, _MAX_BYTES)
        bytes_left -= len(content)
        if bytes_left < 0:
            raise Refused("too-large", f"larger than {_MAX_BYTES // 1024 // 1024} MiB")
        yield content


def _raw_messages_in_mbox(content: bytes) -> Iterator[bytes]:
    """Yield the messages of an mbox. They begin at an envelope line after an empty line; `>From `
    loses its mark.
    """
    lines: list[bytes] = []
    is_after_empty_line = True
    place = 0
    for line in content.splitlines(keepends=True):
        if is_after_empty_line and (
            _ENVELOPE.match(content, place) or (place == 0 and line.startswith(b"From "))
        ):
            if lines:
                yield b"".join(lines)
            lines = []
        else:
            lines.append(
                line[1:]
                if line.lstrip(b">").startswith(b"From ") and line.startswith(b">")
                else line
            )
        is_after_empty_line = not line.strip()
        place += len(line)
    if lines:
        yield b"".join(lines)


def _read_message(raw: bytes) -> tuple[dict[str, object] | None, int]:
    """Return a message, or None for a broken one, and how many messages or attachments were
    skipped.
    """
    if sum(len(header[1]) for header in _PART_HEADER.finditer(raw)) > _MAX_HEADERS:
        return None, 1
    try:
        message = message_from_bytes(raw, policy=policy.default)
        if (
            _length_of(message, _TEXTS) > _MAX_HEADERS
            or _length_of(message, _ADDRESSES) > _MAX_ADDRESSES
        ):
            return None, 1
        parts = [part for part, _ in zip(message.walk(), range(_MAX_PARTS + 1), strict=False)]
        if len(parts) > _MAX_PARTS or not message.keys():
            return None, 1
        body = message.get_body(preferencelist=("plain", "html"))
        text = _text_of(body) if body is not None else ""
        attachments, skipped_attachments = _list_attachments(message)
        if any(type(defect).__name__ in _BROKEN for part in parts for defect in part.defects):
            return None, 1
        truncation: dict[str, object] = {"truncated": True} if len(text) > _MAX_TEXT else {}
        return {
            **_header_members(message),
            "text": text[:_MAX_TEXT],
            "attachments": attachments,
            **truncation,
        }, skipped_attachments
    except (MessageError, ValueError, LookupError, AttributeError, TypeError, RecursionError):
        return None, 1  # the parser raises these for what it cannot make sense of


def _header_members(message: EmailMessage) -> dict[str, object]:
    head: dict[str, object] = {
        "id": _header_line(message, "message-id"),
        "subject": _header_line(message, "subject"),
    }
    is_long = _length_of(message, _ADDRESSES) > _MAX_PARSED
    for name in _ADDRESSES:
        addresses = (
            _parse_long_addresses(message, name) if is_long else _parse_addresses(message, name)
        )
        head[name] = [
            {"name": _one_line(name_part), "address": _one_line(address)}
            for name_part, address in addresses
            if address
        ]
    try:
        head["date"] = parsedate_to_datetime(str(message.get("date", ""))).isoformat()
    except (ValueError, TypeError, OverflowError):
        head["date"] = ""
    return head


def _parse_addresses(message: EmailMessage, name: str) -> list[tuple[str, str]]:
    """Return the names and addresses of a header."""
    return getaddresses([str(value) for value in message.get_all(name, [])])


def _parse_long_addresses(message: EmailMessage, name: str) -> list[tuple[str, str]]:
    """Return the names and addresses of long headers, in linear time, which the library's parser
    does not keep.
    """
    values = [" ".join(value.split()) for value in _raw_values(message, (name,))]
    return [(_decode_name(shown), address) for shown, address in getaddresses(values)]


def _decode_name(name: str) -> str:
    is_encoded = "=?" in name and len(name) <= _MAX_NAME
    return str(make_header(decode_header(name))) if is_encoded else name


def _raw_values(message: EmailMessage, names: tuple[str, ...]) -> list[str]:
    """Return the values of headers, unparsed."""
    return [str(value) for name, value in message.raw_items() if name.lower() in names]


def _length_of(message: EmailMessage, names: tuple[str, ...]) -> int:
    return sum(map(len, _raw_values(message, names)))


def _text_of(body: MIMEPart) -> str:
    content = str(body.get_content())
    if body.get_content_subtype() == "html":
        from cogcli.official.web import read_text_of_page

        content = str(read_text_of_page(content[:_MAX_PAGE])["text"])
    return content.replace("\r\n", "\n").strip()


def _list_attachments(message: EmailMessage) -> tuple[list[dict[str, object]], int]:
    """Return the attachments by name, type and size, and how many were skipped because their name
    has a path.
    """
    attachments, skipped = [], 0
    is_attachment = (
        not message.is_multipart() and message.get_body(preferencelist=("plain", "html")) is None
    )
    for part in [message] if is_attachment else message.iter_attachments():
        name = str(part.get_filename() or "")
        if (
            name != os.path.basename(name)
            or "\\" in name
            or name in (".", "..")
            or not name.isprintable()
        ):
            skipped += 1
            continue
        data = part.get_payload(decode=True)
        size = len(data) if isinstance(data, bytes) else len(part.as_bytes())
        attachments.append({"name": name, "type": part.get_content_type(), "bytes": size})
    return attachments, skipped


def _header_line(message: EmailMessage, name: str) -> str:
    return _one_line(str(message.get(name, "")))


def _one_line(text: str) -> str:
    return " ".join(text.encode("utf-8", "replace").decode().split())
