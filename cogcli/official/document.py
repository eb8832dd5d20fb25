"""Documents on disk: the only shipped functions that read files."""

from __future__ import annotations

import hashlib
import os
import stat
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pypdf import PdfReader

_TEXT_BYTES = 8 * 1024 * 1024
_PDF_BYTES = 32 * 1024 * 1024
_SYSTEM_PLACES = ("/dev", "/proc", "/sys", "/run")
_SECRET_FOLDERS = frozenset((".ssh", ".aws", ".gnupg", ".kube", ".docker", ".azure", ".password-store"))
_SECRET_FILES = frozenset(
    (".env", ".netrc", ".pgpass", ".npmrc", ".pypirc", ".git-credentials", "credentials.json")
)
_SECRET_ENDINGS = (".pem", ".key", ".p12", ".pfx", ".kdbx", ".keystore")
_SECRET_STARTS = ("id_rsa", "id_ed25519", "id_ecdsa", "id_dsa", ".env.")

OPENED_AS: ContextVar[Callable[[str], str] | None] = ContextVar("OPENED_AS", default=None)
"""Asked for each path before anything is opened: what to open, where only some files may be read. It raises for others.

Whoever calls these functions sets it; a project that calls them cannot.
"""


def check_path(path: str) -> dict[str, object]:
    """Whether a document may be read: not from system folders, not where credentials usually lie.

    Links are followed first. A guard against accidents and misled callers, not a sandbox.
    """
    reason = _objection(path)
    return {"allowed": not reason, "reason": reason or "an ordinary place for a document"}


def _objection(path: str) -> str:
    if not path or "\0" in path:
        return "the path is empty or holds a NUL character"
    return _off_limits(path)


def _off_limits(path: str) -> str:
    """Why nothing is read from a place, whoever asks; empty if it may be."""
    real = os.path.realpath(path)
    *folders, name = real.lower().split(os.sep)
    if any(real == place or real.startswith(place + os.sep) for place in _SYSTEM_PLACES):
        return "system folders hold no documents"
    if _SECRET_FOLDERS.intersection((*folders, name)):
        return "the folder usually holds credentials"
    if name in _SECRET_FILES or name.endswith(_SECRET_ENDINGS) or name.startswith(_SECRET_STARTS):
        return "files of this name usually hold credentials"
    return ""


def read_text(path: str) -> dict[str, object]:
    """The text of a UTF-8 file of at most 8 MiB, with its name, size in bytes and SHA-256."""
    content = _content(path, _TEXT_BYTES)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{_name(path)}: byte {error.start} is not UTF-8 text") from None
    return {
        "text": text,
        "name": _name(path),
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }


def read_pdf(path: str, max_pages: int = 200) -> dict[str, object]:
    """The text of a PDF of at most 32 MiB, whole and page by page; `title` falls back to the first line.

    Scanned pages have no text: nothing is recognised from pictures. `truncated` tells that pages were left out.
    """
    from io import BytesIO

    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    content = _content(path, _PDF_BYTES)
    try:
        reader = PdfReader(BytesIO(content))
        count = len(reader.pages)
        texts = [page.extract_text().strip() for page in reader.pages[:max_pages]]
        title = _title(reader, texts)
    except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        raise ValueError(f"{_name(path)}: not a readable PDF ({error!s:.120})") from None
    return {
        "text": "\n\n".join(filter(None, texts)),
        "pages": [{"number": number, "text": text} for number, text in enumerate(texts, 1)],
        "page_count": count,
        "title": title or _name(path),
        "truncated": count > len(texts),
    }


def _title(reader: PdfReader, texts: Iterable[str]) -> str:
    declared = reader.metadata.title if reader.metadata else None
    lines = (line.strip() for text in texts for line in text.splitlines())
    return str(declared or "").strip() or next(filter(None, lines), "")


def _name(path: str) -> str:
    return os.path.basename(path)


def _content(path: str, limit: int) -> bytes:
    """The bytes of a regular file; never waits for a pipe or a device.

    Raises ValueError for what the gate refuses. The gate belongs to a capability, and a project can write another one
    that calls these functions without it: `/proc` holds the environment of this process.
    """
    if (opened_as := OPENED_AS.get()) is not None:
        path = opened_as(path)
    if path and "\0" not in path and (reason := _off_limits(path)):
        raise ValueError(f"{_name(path)}: {reason}")
    with open(path, "rb", opener=_without_waiting) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError(f"{_name(path)}: not a regular file")
        content = file.read(limit + 1)
    if len(content) > limit:
        raise ValueError(f"{_name(path)}: larger than {limit // 1024 // 1024} MiB")
    return content


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
