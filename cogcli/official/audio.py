"""Checks sound files before they are sent to a model: format by the first bytes, and size."""

from __future__ import annotations

from cogcli.official.files import OPENED_AS, read_whole
from cogcli.sdk import Refused

__all__ = ["OPENED_AS", "check_file"]

_BYTES = 25 * 1024 * 1024
_WAV = 44
"""Bytes of the shortest head."""


def check_file(audio: str) -> dict[str, object]:
    """Return whether a file is sound that may be sent: WAV or MP3 by its first bytes, at most 25 MiB."""
    try:
        content = read_whole(audio, _BYTES)
    except Refused as error:
        return {"allowed": False, "reason": error.message}
    form = _detect_format(content)
    if not form:
        return {"allowed": False, "reason": "no wav or mp3 by its first bytes"}
    return {
        "allowed": True,
        "reason": "sound that may be sent",
        "format": form,
        "bytes": len(content),
    }


def _detect_format(content: bytes) -> str:
    if content[:4] == b"RIFF" and content[8:12] == b"WAVE" and len(content) >= _WAV:
        return "wav"
    tagged = content[:3] == b"ID3" and len(content) > 10
    frame = len(content) > 3 and content[0] == 0xFF and content[1] in (0xFB, 0xF3, 0xF2)
    return "mp3" if tagged or frame else ""
