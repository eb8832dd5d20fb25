"""Text of PDF documents. A confined process reads them, so that a malicious file can only break
that process.
"""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any

from cogcli.official.confined import run_confined_function
from cogcli.official.files import OPENED_AS as OPENED_AS
from cogcli.official.files import name_of, read_whole
from cogcli.sdk import Refused

if TYPE_CHECKING:
    from pypdf import PdfReader

_MAX_BYTES = 32 * 1024 * 1024
_MAX_TEXT = 8 * 1024 * 1024
_FACTS = ("title", "author", "subject", "creator", "producer")


def read_pdf(path: str, max_pages: int = 200, needs_text: bool = False) -> dict[str, object]:
    """Return the text of a PDF of at most 32 MiB, as a whole and by page. `title` falls back to the
    first line.

    Pictures are not recognized: `scanned` is true if no page has text. `truncated` is true if pages
    were left out. Raise Refused if it is not a PDF, is encrypted, or needs more than 20 seconds or
    300 MB, and `no-evidence` if `needs_text` and it has none.
    """
    name = name_of(path)
    about = f"{name}: not a readable PDF: "
    document = run_confined_function(
        "pdf:extract", content=read_whole(path, _MAX_BYTES), about=about, max_pages=max_pages
    )
    if needs_text and not document["text"]:
        hint = "pictures are not read: recognise their text first, as OCR programs do"
        raise Refused("no-evidence", f"{name}: no page that was read has any text", hint)
    return document | {"title": document["title"] or name}


def extract(max_pages: int, content: bytes = b"") -> dict[str, object]:
    """Return the text of a PDF's bytes. Runs in a confined process."""
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    try:
        reader = PdfReader(BytesIO(content))
        if reader.is_encrypted:
            raise Refused("unsupported", "it is encrypted", "save it without a password")
        count = len(reader.pages)
        texts: list[str] = []
        for page in reader.pages[:max_pages]:
            texts.append(_valid_text(page.extract_text()))
            if sum(map(len, texts)) > _MAX_TEXT:
                texts.pop()
                break
        metadata = _read_metadata(reader)
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


def _valid_text(text: object) -> str:
    """Return a text without lone surrogates, which JSON cannot represent, and without surrounding white space."""
    return str(text).encode("utf-8", "replace").decode().strip()


def _read_metadata(reader: PdfReader) -> dict[str, Any]:
    declared = reader.metadata
    if not declared:
        return {}
    facts: dict[str, Any] = {name: _valid_text(getattr(declared, name) or "") for name in _FACTS}
    for name, field in (("created", "creation_date"), ("modified", "modification_date")):
        try:
            moment = getattr(declared, field)
        except ValueError:
            continue  # a date that is none says nothing
        facts[name] = moment.isoformat() if moment else ""
    return {name: value for name, value in facts.items() if value}


def _first_line(texts: list[str]) -> str:
    return next((line.strip() for text in texts for line in text.splitlines() if line.strip()), "")
