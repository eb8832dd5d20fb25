"""Text of PDF documents. What a stranger's document does to its reader, it does in a process of its own."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any

from cogcli.official.confined import confined
from cogcli.official.files import OPENED_AS as OPENED_AS
from cogcli.official.files import name_of, read_whole
from cogcli.sdk import Refused

if TYPE_CHECKING:
    from pypdf import PdfReader

_MAX_BYTES = 32 * 1024 * 1024
_MAX_TEXT = 8 * 1024 * 1024
_FACTS = ("title", "author", "subject", "creator", "producer")


def read_pdf(path: str, max_pages: int = 200, needs_text: bool = False) -> dict[str, object]:
    """Return the text of a PDF of at most 32 MiB, whole and page by page; `title` falls back to the first line.

    Scanned pages have no text: nothing is recognised from pictures, and `scanned` tells that no page has any.
    `truncated` tells that pages were left out. Raise Refused for what is not PDF, is encrypted, or takes more than 20
    seconds or 300 MB, and `no-evidence` for a document without text where one is needed.
    """
    name = name_of(path)
    about = f"{name}: not a readable PDF: "
    found = confined(
        "pdf:extract", content=read_whole(path, _MAX_BYTES), about=about, max_pages=max_pages
    )
    if needs_text and not found["text"]:
        hint = "pictures are not read: recognise their text first, as OCR programs do"
        raise Refused("no-evidence", f"{name}: no page that was read has any text", hint)
    return found | {"title": found["title"] or name}


def extract(max_pages: int, content: bytes = b"") -> dict[str, object]:
    """Return the text of a PDF's bytes, in a process that may break."""
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    try:
        reader = PdfReader(BytesIO(content))
        if reader.is_encrypted:
            raise Refused("unsupported", "it is encrypted", "save it without a password")
        count = len(reader.pages)
        texts: list[str] = []
        for page in reader.pages[:max_pages]:
            texts.append(_plain(page.extract_text()))
            if sum(map(len, texts)) > _MAX_TEXT:
                texts.pop()
                break
        metadata = _metadata(reader)
    except PyPdfError as error:
        raise Refused("bad-data", f"{error!s:.120}") from None
    return {
        "text": "\n\n".join(filter(None, texts)),
        "pages": [{"number": number, "text": text} for number, text in enumerate(texts, 1)],
        "page_count": count,
        "title": metadata.get("title") or _first_line(texts),
        "metadata": metadata,
        "truncated": count > len(texts),
        "scanned": bool(texts) and not any(texts),
    }


def _plain(text: object) -> str:
    """Return a text without what JSON does not hold."""
    return str(text).encode("utf-8", "replace").decode().strip()


def _metadata(reader: PdfReader) -> dict[str, Any]:
    declared = reader.metadata
    if not declared:
        return {}
    facts: dict[str, Any] = {name: _plain(getattr(declared, name) or "") for name in _FACTS}
    for name, field in (("created", "creation_date"), ("modified", "modification_date")):
        try:
            moment = getattr(declared, field)
        except ValueError:
            continue  # a date that is none says nothing
        facts[name] = moment.isoformat() if moment else ""
    return {name: value for name, value in facts.items() if value}


def _first_line(texts: list[str]) -> str:
    return next((line.strip() for text in texts for line in text.splitlines() if line.strip()), "")
