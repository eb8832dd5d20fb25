"""Checks pictures before they are sent to a model: format, size, number of frames."""

from __future__ import annotations

from cogcli.official.confined import run_confined_function
from cogcli.official.files import OPENED_AS, read_whole
from cogcli.sdk import Refused

__all__ = ["OPENED_AS", "check_file"]

_BYTES = 25 * 1024 * 1024
_PIXELS = 50_000_000
_FRAMES = 64
_FORMATS = ("PNG", "JPEG", "GIF", "WEBP")


def check_file(image: str) -> dict[str, object]:
    """Return whether a file is a picture that may be sent: a complete PNG, JPEG, GIF or WebP.

    At most 25 MiB, 50 million pixels and 64 frames. Nothing is decoded before its size is known.
    """
    try:
        content = read_whole(image, _BYTES)
        return run_confined_function("image:look_at", content=content)
    except Refused as error:
        return _refusal_result(error.message)


def look_at(content: bytes) -> dict[str, object]:
    """Return the result of `check_file` for a picture's bytes. Runs in a confined process."""
    import warnings
    from io import BytesIO

    from PIL import Image, UnidentifiedImageError

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the library's own bound, which is higher
        try:
            with Image.open(BytesIO(content), formats=_FORMATS) as picture:
                facts = {
                    "format": picture.format or "",
                    "width": picture.width,
                    "height": picture.height,
                }
                if picture.width * picture.height > _PIXELS:
                    return _refusal_result(
                        f"{picture.width} x {picture.height} pixels are more than 50 million", facts
                    )
                if _has_frame(picture, _FRAMES):
                    return _refusal_result(f"more than {_FRAMES} frames", facts)
            with Image.open(BytesIO(content), formats=_FORMATS) as picture:
                picture.verify()
        except UnidentifiedImageError:
            return _refusal_result("no whole png, jpeg, gif or webp")
        except Image.DecompressionBombError:
            return _refusal_result("more than 50 million pixels")
        except (
            OSError,
            ValueError,
            SyntaxError,
            EOFError,
            KeyError,
            IndexError,
            OverflowError,
        ) as error:
            # Damaged files of each format raise what their decoder meets.
            return _refusal_result(f"no whole png, jpeg, gif or webp ({str(error)[:120]})")
    return {"allowed": True, "reason": "a picture that may be sent", **facts}


def _has_frame(image: object, index: int) -> bool:
    """Return whether a picture has a frame of this index, without counting all of them."""
    try:
        image.seek(index)  # type: ignore[attr-defined]
    except EOFError:
        return False
    return True


def _refusal_result(reason: str, facts: dict[str, object] | None = None) -> dict[str, object]:
    return {"allowed": False, "reason": reason, **(facts or {})}
