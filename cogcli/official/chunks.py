"""Texts cut into pieces that join to the text again."""

from __future__ import annotations

import re

from cogcli.sdk import Refused

_MAX_CHUNKS = 20_000
_MAX_CHARACTERS = 32_000_000
_PARAGRAPH = re.compile(r"\n[ \t\r]*\n\s*")
_SENTENCE = re.compile(r"[.!?…。！？｡।؟۔][\"'”’»)\]」』）]{0,3}\s+|[。！？｡]")
_BLANK = re.compile(r"\s+")


def cut_text(text: str, chunk_size: float = 1000, overlap: float = 0) -> dict[str, object]:
    """Return pieces of at most `chunk_size` characters, cut at a paragraph, else a sentence, else a word, else
    anywhere.

    Each piece begins with the last `overlap` characters of the one before; without these they join to the text.
    `spans` tells where each stands.
    """
    size, shared = (
        _require_whole_number(chunk_size, "chunk_size", 1),
        _require_whole_number(overlap, "overlap", 0),
    )
    if shared >= size:
        raise Refused("bad-data", f"overlap {shared} must be less than chunk_size {size}")
    count = max(0, len(text) - shared) // max(1, (size - shared + 1) // 2)
    if count > _MAX_CHUNKS or count * size > _MAX_CHARACTERS:
        raise Refused(
            "too-large", f"that may be {count:,} pieces of {size:,} characters", "take larger ones"
        )
    spans: list[tuple[int, int]] = []
    start = 0
    while start < len(text):
        end = _chunk_end(text, start, size, shared)
        spans.append((start, end))
        if end == len(text):
            break
        start = end - shared
    return {
        "chunks": [text[start:end] for start, end in spans],
        "spans": [{"start": start, "end": end} for start, end in spans],
    }


def _require_whole_number(value: float, name: str, least: int) -> int:
    """Return a value as an integer. Raise Refused if it is not a whole number of at least `least`."""
    if value != int(value) or value < least:
        raise Refused(
            "bad-data", f"{name} must be a whole number of {least} or more, found {value:g}"
        )
    return int(value)


def _chunk_end(text: str, start: int, size: int, overlap: int) -> int:
    """Return where a chunk ends: at a paragraph, sentence or blank in its second half, else at its
    full size.
    """
    limit = start + size
    if limit >= len(text):
        return len(text)
    least = start + max(size // 2, overlap) + 1
    for pattern in (_PARAGRAPH, _SENTENCE, _BLANK):
        last = 0
        for match in pattern.finditer(text, least - 1, limit):
            last = match.end() if match.end() >= least else last
        if last:
            return last
    # Not between a letter and its marks, nor inside a line end.
    end = limit
    while end > least and (text[end - 1 : end + 1] == "\r\n" or _is_mark(text[end])):
        end -= 1
    return end


def _is_mark(char: str) -> bool:
    import unicodedata

    return unicodedata.combining(char) != 0 or char in "\u200d\ufe0f"
