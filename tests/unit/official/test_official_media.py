"""What is sent to a model as a picture or as sound is looked at first (image.file.check, audio.file.check)."""

from __future__ import annotations

import io
import os
import struct
import wave
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from cogcli.official import audio, image
from cogcli.official.document import OPENED_AS

pytestmark = pytest.mark.sampled(2)


def picture(form: str, size: tuple[int, int] = (6, 4), frames: int = 1) -> bytes:
    out = io.BytesIO()
    first, *rest = [Image.new("RGB", size, (n * 97 % 256, n * 53 % 256, 0)) for n in range(frames)]
    first.save(out, form, **({"save_all": True, "append_images": rest} if rest else {}))
    return out.getvalue()


def look(folder: Path, content: bytes, name: str = "picture.png") -> dict[str, Any]:
    path = folder / name
    path.write_bytes(content)
    return image.check_file(str(path))


@pytest.mark.parametrize("form", ["PNG", "JPEG", "GIF", "WEBP"])
def test_a_whole_picture_may_be_sent_whatever_its_name_is(tmp_path: Path, form: str) -> None:
    found = look(tmp_path, picture(form), "picture.txt")
    assert found["allowed"], found
    assert (found["format"], found["width"], found["height"]) == (form, 6, 4)


def png_of(width: int, height: int) -> bytes:
    """A PNG that says this size and holds no pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(b""))
        + chunk(b"IEND", b"")
    )


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "no whole"),
        (b"%PDF-1.7\n%%EOF", "no whole"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "no whole"),
        (picture("BMP"), "no whole"),
        (picture("TIFF"), "no whole"),
        (picture("PNG")[:-20], "no whole"),
        (png_of(8000, 6251), "pixels"),
        (png_of(30_000, 30_000), "pixels"),
        (png_of(2**31 - 1, 2**31 - 1), "pixels"),
        (picture("GIF", frames=65), "more than 64 frames"),
        (picture("WEBP", frames=65), "more than 64 frames"),
    ],
)
def test_what_is_no_picture_or_too_much_of_one_is_refused(
    tmp_path: Path, content: bytes, reason: str
) -> None:
    found = look(tmp_path, content)
    assert not found["allowed"]
    assert reason in found["reason"], found


def test_64_frames_are_allowed(tmp_path: Path) -> None:
    assert look(tmp_path, picture("GIF", frames=64))["allowed"]


@pytest.mark.sampled(4)
@settings(max_examples=60, deadline=None)
@given(
    form=st.sampled_from(["PNG", "JPEG", "GIF", "WEBP"]),
    where=st.floats(0, 1),
    bits=st.integers(1, 255),
)
def test_a_damaged_picture_never_raises(
    tmp_path_factory: Any, form: str, where: float, bits: int
) -> None:
    content = bytearray(picture(form, (20, 20)))
    content[int(where * (len(content) - 1))] ^= bits
    found = look(tmp_path_factory.mktemp("damaged"), bytes(content))
    assert isinstance(found["allowed"], bool)


def wav() -> bytes:
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(b"\0\0" * 10)
    return out.getvalue()


@pytest.mark.parametrize(
    ("content", "form"),
    [(wav(), "wav"), (b"ID3\x04" + bytes(40), "mp3"), (b"\xff\xfb\x90\x64" + bytes(40), "mp3")],
)
def test_sound_may_be_sent(tmp_path: Path, content: bytes, form: str) -> None:
    (tmp_path / "speech").write_bytes(content)
    found = audio.check_file(str(tmp_path / "speech"))
    assert (found["allowed"], found["format"]) == (True, form)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"RIFF",
        b"RIFF\0\0\0\0AVI " + bytes(60),
        b"OggS" + bytes(60),
        picture("PNG"),
        b"\xff\xfb",
    ],
)
def test_what_is_no_sound_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "speech.wav").write_bytes(content)
    found = audio.check_file(str(tmp_path / "speech.wav"))
    assert (found["allowed"], found["reason"]) == (False, "no wav or mp3 by its first bytes")


@pytest.mark.parametrize("check", [image.check_file, audio.check_file])
def test_what_cannot_be_read_is_refused_and_nothing_waits(tmp_path: Path, check: Any) -> None:
    os.mkfifo(tmp_path / "pipe")
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(25 * 1024 * 1024 + 1)
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "id_rsa").write_bytes(picture("PNG"))
    (tmp_path / "link.png").symlink_to(tmp_path / ".ssh" / "id_rsa")
    for path in (
        tmp_path / "pipe",
        large,
        tmp_path,
        "/dev/zero",
        tmp_path / "link.png",
        tmp_path / "absent",
        "a\0b",
        "",
    ):
        found = check(str(path))
        assert found["allowed"] is False, path
        assert found["reason"]


@pytest.mark.parametrize("module", [image, audio])
def test_only_files_that_a_project_may_read_are_looked_at(tmp_path: Path, module: Any) -> None:
    def refuse(path: str) -> str:
        raise PermissionError(path)

    token = OPENED_AS.set(refuse)
    try:
        with pytest.raises(PermissionError):
            module.check_file(str(tmp_path / "any"))
    finally:
        OPENED_AS.reset(token)
    assert module.OPENED_AS is OPENED_AS
