"""Frames of videos. A confined process decodes them, so that a malicious file can only break that
process.
"""

from __future__ import annotations

import base64
import io
from typing import TYPE_CHECKING

from cogcli.official.confined import run_confined_function
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
    """Return frames at even distances over a video of at most 128 MiB: time in seconds, size, and
    PNG in base64.

    At most 64 frames, and fewer if their pictures would exceed 6 MiB. Raise Refused for a file that
    is not a video, has frames of more than 50 million pixels, or takes more than 40 seconds or 900
    MB.
    """
    if not 1 <= max_frames <= _MAX_FRAMES or not 16 <= width <= 1920:
        raise Refused("bad-data", f"1 to {_MAX_FRAMES} frames, 16 to 1920 pixels wide")
    content = read_whole(video, _MAX_BYTES)
    if not any(mark in content[:12] for mark in _MARKS):
        raise Refused("unsupported", f"{name_of(video)}: no video of a kind that is read")
    about = f"{name_of(video)}: "
    return run_confined_function(
        "video:extract", content=content, about=about, count=max_frames, width=width
    )


def extract(count: int, width: int, content: bytes = b"") -> dict[str, object]:
    """Return the frames of a video's bytes. Runs in a confined process."""
    import av

    try:
        with av.open(io.BytesIO(content), mode="r") as container:
            return {"frames": _select_frames(container, count, width)}
    except (av.FFmpegError, ValueError, EOFError) as error:
        raise Refused("bad-data", f"not a readable video ({error!s:.120})") from None


def _select_frames(container: InputContainer, count: int, width: int) -> list[dict[str, object]]:
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
    times = [start + length * n / count for n in range(count)] if length else []
    rows: list[dict[str, object]] = []
    bytes_left = _MAX_ENCODED
    for frame in container.decode(stream):
        time = float(frame.time or 0.0)
        if times and time < times[len(rows)]:
            continue
        row = _frame_entry(frame, time - start, width)
        bytes_left -= len(str(row["png"]))
        if bytes_left < 0:
            break
        rows.append(row)
        if len(rows) == (len(times) or count):
            break
    if not rows:
        raise Refused("bad-data", "no frame can be decoded")
    return rows


def _frame_entry(frame: VideoFrame, time: float, width: int) -> dict[str, object]:
    if frame.width * frame.height > _MAX_PIXELS:
        raise Refused("too-large", f"a frame of {frame.width} x {frame.height} pixels")
    narrow = min(width, frame.width)
    height = max(1, round(frame.height * narrow / frame.width))
    png = base64.b64encode(_encode_png(frame, narrow, height)).decode()
    return {"time": round(time, 3), "width": narrow, "height": height, "png": png}


def _encode_png(frame: VideoFrame, width: int, height: int) -> bytes:
    from fractions import Fraction

    import av

    codec = av.CodecContext.create("png", "w")
    codec.width, codec.height, codec.pix_fmt, codec.time_base = width, height, "rgb24", Fraction(1)
    small = frame.reformat(width=width, height=height, format="rgb24")
    small.pts = 0
    return b"".join(bytes(packet) for packet in (*codec.encode(small), *codec.encode(None)))
