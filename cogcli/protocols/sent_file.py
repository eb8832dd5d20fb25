"""Files in a request: their sent form, and the record that replaces their content
(docs/reference/binding.md#files)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from cogcli.base.errors import RequestMappingError
from cogcli.base.files import UnreadableFile, read_regular
from cogcli.base.terminal_text import visible
from cogcli.declarations.value_types import Json

if TYPE_CHECKING:
    from cogcli.protocols.pythoncall.readable_files import ReadableFiles

MAX_FILE: Final = 25 * 1024 * 1024
_SHOWN: Final = 200
_MEDIA: Final = (
    (b"\x89PNG\r\n\x1a\n", 0, "image/png", "png"),
    (b"\xff\xd8\xff", 0, "image/jpeg", "jpeg"),
    (b"GIF87a", 0, "image/gif", "gif"),
    (b"GIF89a", 0, "image/gif", "gif"),
    (b"WEBP", 8, "image/webp", "webp"),
    (b"WAVE", 8, "audio/wav", "wav"),
    (b"ID3", 0, "audio/mpeg", "mp3"),
    (b"\xff\xfb", 0, "audio/mpeg", "mp3"),
    (b"\xff\xf3", 0, "audio/mpeg", "mp3"),
    (b"\xff\xf2", 0, "audio/mpeg", "mp3"),
)
"""First bytes, their offset, media type and short name of files that a model accepts."""


class FileText(str):
    """The sent text of a file. `about` replaces it in the record: path, size, hash, form."""

    __slots__ = ("about",)
    about: Json


def read_file(path: str, form: str, reads: ReadableFiles | None) -> str:
    """Return the sent form of a regular file of at most 25 MB: `base64`, a `data_url`, or the name
    of its `format`.

    `reads` are the readable files, None for any. Raise RequestMappingError `request.value` or
    `request.size`, or UnreadablePath."""
    shown = visible(path[:_SHOWN])
    try:
        data = read_regular(reads.checked_path(path) if reads else path, limit=MAX_FILE)
    except UnreadableFile as refused:
        code = "request.size" if refused.reason == "too-large" else "request.value"
        raise RequestMappingError(code, f"`{shown}` {refused.message}", left=False) from refused
    media, name = _detect_media(data)
    if form == "format":
        if not name:
            text = f"`{shown}` is no png, jpeg, gif, webp, wav or mp3 by its first bytes"
            raise RequestMappingError("request.value", text, left=False)
        return name
    from base64 import b64encode  # few runs send a file

    encoded = b64encode(data).decode()
    sent = FileText(f"data:{media};base64,{encoded}" if form == "data_url" else encoded)
    sent.about = {
        "$file": path,
        "as": form,
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
    }
    return sent


def _detect_media(data: bytes) -> tuple[str, str]:
    """Return media type and short name by the first bytes; the name is empty for other files."""
    fits = (row for row in _MEDIA if data[row[1] :].startswith(row[0]))
    return next(((media, name) for _, _, media, name in fits), ("application/octet-stream", ""))


def sent_value(value: object) -> object:
    """Return a payload in the form that is sent."""
    return _replace_files(value, str)


def recorded_value(value: object) -> object:
    """Return a payload in the form that is recorded: a file becomes its path, size and hash."""
    return _replace_files(value, lambda file: dict(file.about))


def _replace_files(value: object, replace: Callable[[FileText], object]) -> object:
    match value:
        case FileText():
            return replace(value)
        case dict():
            return {key: _replace_files(item, replace) for key, item in value.items()}
        case list():
            return [_replace_files(item, replace) for item in value]
    return value
