"""Frames of videos that are made here."""

from __future__ import annotations

import base64
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from cogcli.official.video import extract_frames
from cogcli.sdk import Refused

pytestmark = pytest.mark.sampled(4)

av = pytest.importorskip("av")


def video(
    path: Path, seconds: int = 2, width: int = 64, height: int = 48, codec: str = "mpeg4"
) -> str:
    """A video of 10 frames a second that becomes brighter."""
    with av.open(str(path), "w") as out:
        stream = out.add_stream(codec, rate=10)
        stream.width, stream.height, stream.pix_fmt, stream.time_base = (
            width,
            height,
            "yuv420p",
            Fraction(1, 10),
        )
        for n in range(seconds * 10):
            frame = av.VideoFrame(width, height, "rgb24")
            frame.planes[0].update(bytes([n * 255 // (seconds * 10)]) * frame.planes[0].buffer_size)
            frame.pts, frame.time_base = n, Fraction(1, 10)
            for packet in stream.encode(frame.reformat(format="yuv420p")):
                out.mux(packet)
        for packet in stream.encode(None):
            out.mux(packet)
    return str(path)


def frames(*args: Any, **named: Any) -> list[dict[str, Any]]:
    found = extract_frames(*args, **named)["frames"]
    assert isinstance(found, list)
    return found


@pytest.mark.parametrize("name", ["a.mp4", "a.mkv", "a.avi"])
def test_frames_lie_at_even_distances_and_are_pictures(tmp_path: Path, name: str) -> None:
    found = frames(video(tmp_path / name), 4)
    assert [frame["time"] for frame in found] == pytest.approx([0, 0.5, 1, 1.5], abs=0.11)
    assert {(frame["width"], frame["height"]) for frame in found} == {(64, 48)}
    pictures = [base64.b64decode(frame["png"]) for frame in found]
    assert all(picture.startswith(b"\x89PNG\r\n\x1a\n") for picture in pictures)
    assert len(set(pictures)) == 4


def test_pictures_are_made_smaller_and_never_larger(tmp_path: Path) -> None:
    path = video(tmp_path / "a.mp4", 1)
    assert {(frame["width"], frame["height"]) for frame in frames(path, 2, 32)} == {(32, 24)}
    assert {(frame["width"], frame["height"]) for frame in frames(path, 2, 1920)} == {(64, 48)}


@pytest.mark.parametrize(("count", "width"), [(0, 480), (65, 480), (8, 15), (8, 1921)])
def test_at_most_64_frames(tmp_path: Path, count: int, width: int) -> None:
    with pytest.raises(Refused, match="1 to 64 frames"):
        extract_frames(video(tmp_path / "a.mp4", 1), count, width)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"GIF89a" + b"\0" * 99,
        b"\x89PNG\r\n\x1a\n" + b"\0" * 99,
        b"#EXTM3U\nfile:///etc/passwd",
        b"ffconcat version 1.0\nfile /etc/passwd\n",
    ],
)
def test_what_is_no_video_is_refused_before_it_is_opened(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.mp4"
    path.write_bytes(content)
    with pytest.raises(Refused) as caught:
        extract_frames(str(path))
    assert caught.value.reason == "unsupported"


@pytest.mark.sampled(8)
def test_a_cut_video_gives_what_is_there_or_is_refused(tmp_path: Path) -> None:
    path = Path(video(tmp_path / "a.mkv"))
    whole = path.read_bytes()
    reasons = set()
    for part in (1, 4, 7):
        path.write_bytes(whole[: len(whole) * part // 8])
        try:
            assert frames(str(path))
        except Refused as error:
            reasons.add(error.reason)
    assert reasons <= {"bad-data"}


def test_a_video_of_too_many_pixels_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.avi"
    with av.open(str(path), "w") as out:
        stream = out.add_stream("png", rate=1)
        stream.width, stream.height, stream.pix_fmt = 8000, 6300, "gray"
        frame = av.VideoFrame(8000, 6300, "gray")
        frame.planes[0].update(bytes(frame.planes[0].buffer_size))
        for packet in (*stream.encode(frame), *stream.encode(None)):
            out.mux(packet)
    assert path.stat().st_size < 1_000_000
    with pytest.raises(Refused, match="8000 x 6300") as caught:
        extract_frames(str(path))
    assert caught.value.reason == "too-large"


@pytest.mark.parametrize("place", ["missing.mp4", "/dev/zero", "a\0b", ""])
def test_what_is_no_file_is_refused(place: str) -> None:
    with pytest.raises(Refused):
        extract_frames(place)
