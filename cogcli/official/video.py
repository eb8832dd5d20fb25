"""Frames of videos. What a stranger's file does to its reader, it does in a process of its own."""

from __future__ import annotations

import base64
import io
from typing import TYPE_CHECKING

from cogcli.official.confined import confined
from cogcli.official.files import OPENED_AS as OPENED_AS
from cogcli.official.files import name_of, read_whole
from cogcli.sdk import Refused

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.video.frame import VideoFrame

_MAX_BYTES = 128 * 1024 * 1024
_MAX_PIXELS = 50_000_000
_MAX_FRAMES = 64
_MAX_ENCODED = 6 * 1024 * 1024
_MARKS = (
    b"ftyp",
    b"\x1aE\xdf\xa3",
    b"RIFF",
    b"OggS",
    b"FLV",
    b"\x00\x00\x01\xba",
    b"\x30\x26\xb2\x75",
)


def extract_frames(video: str, max_frames: int = 8, width: int = 480) -> dict[str, object]:
    """Return frames at even distances over a video of at most 128 MiB: time in seconds, size, the picture as PNG in
    base64.

    At most 64 frames, and fewer where their pictures would be more than 6 MiB. Raise Refused for what is not a video,
    has frames of more than 50 million pixels, or takes more than 40 seconds or 900 MB.
    """
    if not 1 <= max_frames <= _MAX_FRAMES or not 16 <= width <= 1920:
        raise Refused("bad-data", f"1 to {_MAX_FRAMES} frames, 16 to 1920 pixels wide")
    content = read_whole(video, _MAX_BYTES)
    if not any(mark in content[:12] for mark in _MARKS):
        raise Refused("unsupported", f"{name_of(video)}: no video of a kind that is read")
    about = f"{name_of(video)}: "
    return confined("video:extract", content=content, about=about, count=max_frames, width=width)


def extract(count: int, width: int, content: bytes = b"") -> dict[str, object]:
    """Return the frames of a video's bytes, in a process that may break."""
    import av

    try:
        with av.open(io.BytesIO(content), mode="r") as container:
            return {"frames": _frames(container, count, width)}
    except (av.FFmpegError, ValueError, EOFError) as error:
        raise Refused("bad-data", f"not a readable video ({error!s:.120})") from None


def _frames(container: InputContainer, count: int, width: int) -> list[dict[str, object]]:
    if not container.streams.video:
        raise Refused("unsupported", "it has no pictures")
    stream = container.streams.video[0]
    if stream.width * stream.height > _MAX_PIXELS:
        raise Refused("too-large", f"frames of {stream.width} x {stream.height} pixels")
    start = float((stream.start_time or 0) * (stream.time_base or 0))
    length = (
        float(stream.duration * stream.time_base) if stream.duration and stream.time_base else None
    )
    if length is None and container.duration:
        length = container.duration / 1_000_000
    wanted = [start + length * n / count for n in range(count)] if length else []
    found: list[dict[str, object]] = []
    left = _MAX_ENCODED
    for frame in container.decode(stream):
        at = float(frame.time or 0.0)
        if wanted and at < wanted[len(found)]:
            continue
        row = _picture(frame, at - start, width)
        left -= len(str(row["png"]))
        if left < 0:
            break
        found.append(row)
        if len(found) == (len(wanted) or count):
            break
    if not found:
        raise Refused("bad-data", "no frame can be decoded")
    return found


def _picture(frame: VideoFrame, at: float, width: int) -> dict[str, object]:
    if frame.width * frame.height > _MAX_PIXELS:
        raise Refused("too-large", f"a frame of {frame.width} x {frame.height} pixels")
    narrow = min(width, frame.width)
    height = max(1, round(frame.height * narrow / frame.width))
    png = base64.b64encode(_png(frame, narrow, height)).decode()
    return {"time": round(at, 3), "width": narrow, "height": height, "png": png}


def _png(frame: VideoFrame, width: int, height: int) -> bytes:
    from fractions import Fraction

    import av

    codec = av.CodecContext.create("png", "w")
    codec.width, codec.height, codec.pix_fmt, codec.time_base = width, height, "rgb24", Fraction(1)
    small = frame.reformat(width=width, height=height, format="rgb24")
    small.pts = 0
    return b"".join(bytes(packet) for packet in (*codec.encode(small), *codec.encode(None)))
