"""Text of PDF documents: there and back, and documents that want to hurt their reader."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from fpdf import FPDF
from hypothesis import given
from hypothesis import strategies as st

from cogcli.official.pdf import extract, read_pdf
from cogcli.sdk import Refused

pytestmark = pytest.mark.sampled(5)

SAMPLES = Path(__file__).parents[3] / "docs" / "samples"
WORDS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=12)
PAGES = st.lists(
    st.lists(st.lists(WORDS, min_size=1, max_size=6).map(" ".join), max_size=5),
    min_size=1,
    max_size=4,
)


@pytest.fixture
def tmp_path(ordinary_path: Path) -> Path:
    """Where these tests write."""
    return ordinary_path


def written(pages: list[list[str]], **metadata: str) -> FPDF:
    """A document with these lines on its pages."""
    made = FPDF()
    made.set_font("helvetica", size=12)
    for name, value in metadata.items():
        getattr(made, f"set_{name}")(value)
    for lines in pages:
        made.add_page()
        for line in lines:
            made.text(20, made.get_y(), line)
            made.set_y(made.get_y() + 8)
    return made


@given(pages=PAGES)
def test_what_is_written_is_read_page_by_page(pages: list[list[str]]) -> None:
    found: Any = extract(200, bytes(written(pages).output()))
    assert ["".join(page["text"].split()) for page in found["pages"]] == [
        "".join("".join(lines).split()) for lines in pages
    ]
    assert found["page_count"] == len(pages)
    assert found["scanned"] is not any(pages)


def test_what_a_document_declares_of_itself_comes_along(tmp_path: Path) -> None:
    written([["Hello"]], title="A report", author="Ada").output(str(tmp_path / "a.pdf"))
    found: Any = read_pdf(str(tmp_path / "a.pdf"))
    assert (found["title"], found["metadata"]["author"]) == ("A report", "Ada")
    assert found["metadata"]["created"]


def test_a_document_of_pictures_has_no_text_and_it_is_told(tmp_path: Path) -> None:
    from PIL import Image

    made = FPDF()
    made.add_page()
    made.image(Image.new("RGB", (40, 40), "red"))
    made.output(str(tmp_path / "scan.pdf"))
    found = read_pdf(str(tmp_path / "scan.pdf"))
    assert (found["text"], found["scanned"], found["title"]) == ("", True, "scan.pdf")
    with pytest.raises(Refused, match="has any text") as refused:
        read_pdf(str(tmp_path / "scan.pdf"), needs_text=True)
    assert refused.value.reason == "no-evidence"


def object_file(*objects: bytes) -> bytes:
    """A document of these objects, the first one its catalogue."""
    body, places = b"%PDF-1.7\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(objects) + 1
    return (
        body
        + b"xref\n0 %d\n0000000000 65535 f \n%strailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF"
        % (
            size,
            table,
            size,
            len(body),
        )
    )


def stream(content: bytes) -> bytes:
    return b"<</Length %d/Filter/FlateDecode>>stream\n%s\nendstream" % (len(content), content)


def page_with(content: bytes) -> bytes:
    return object_file(
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 300]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>",
        content,
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    )


def bomb() -> bytes:
    return zlib.compress(bytes(400_000_000), 1)


def in_two_layers() -> bytes:
    twice = zlib.compress(bomb(), 9)
    return page_with(
        b"<</Length %d/Filter[/FlateDecode/FlateDecode]>>stream\n%s\nendstream"
        % (len(twice), twice)
    )


CATALOG, KIDS = b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[3 0 R]/Count 1>>"
FORM = b"<</Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</X 5 0 R>>>>/Length 12>>"
DRAWN = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R/Resources<</XObject<</X 5 0 R>>>>>>"
BACK = b"xref\n0 1\n0000000000 65535 f \ntrailer<</Size 1/Root 1 0 R/Prev 9>>\nstartxref\n9\n%%EOF"
HARMFUL: dict[str, Callable[[], bytes]] = {
    "a bomb": lambda: page_with(stream(bomb())),
    "a bomb in a bomb": in_two_layers,
    "pages that hold themselves": lambda: object_file(
        CATALOG, b"<</Type/Pages/Kids[2 0 R 2 0 R]/Count 9>>"
    ),
    "a form that draws itself": lambda: object_file(
        CATALOG,
        KIDS,
        DRAWN,
        b"<</Length 5>>stream\n/X Do\nendstream",
        FORM + b"stream\n/X Do /X Do \nendstream",
    ),
    "a table that leads back": lambda: b"%PDF-1.4\n" + BACK,
    "a length that refers to itself": lambda: page_with(
        b"<</Length 4 0 R>>stream\nBT ET\nendstream"
    ),
    "brackets without end": lambda: page_with(b"[" * 1_000_000),
}


@pytest.mark.parametrize("name", list(HARMFUL)[2:])
def test_what_would_never_end_or_take_all_memory_is_refused_or_read(
    name: str, tmp_path: Path
) -> None:
    (tmp_path / "harm.pdf").write_bytes(HARMFUL[name]())
    with suppress(Refused):
        assert isinstance(read_pdf(str(tmp_path / "harm.pdf"))["text"], str)


@pytest.mark.sampled(40)
@pytest.mark.slow
@pytest.mark.parametrize("name", list(HARMFUL)[:2])
def test_a_bomb_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "bomb.pdf").write_bytes(HARMFUL[name]())
    with pytest.raises(Refused, match=r"bomb\.pdf: not a readable PDF"):
        read_pdf(str(tmp_path / "bomb.pdf"))


@pytest.mark.sampled(10)
def test_an_encrypted_document_is_refused(tmp_path: Path) -> None:
    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter(clone_from=PdfReader(SAMPLES / "trial-report.pdf"))
    writer.encrypt("secret", algorithm="RC4-128")
    writer.write(tmp_path / "locked.pdf")
    with pytest.raises(Refused, match="it is encrypted") as refused:
        read_pdf(str(tmp_path / "locked.pdf"))
    assert refused.value.reason == "unsupported"


def test_a_pdf_gives_its_title_and_each_page() -> None:
    found: Any = read_pdf(str(SAMPLES / "trial-report.pdf"))
    assert found["title"] == "Shared berth planning: report on the trial"
    assert found["page_count"] == 3
    assert [page["number"] for page in found["pages"]] == [1, 2, 3]
    assert "Cancelled tug orders fell from 31 to 12." in found["pages"][1]["text"]
    assert found["truncated"] is False


def test_pages_over_the_limit_are_left_out_and_told() -> None:
    found = read_pdf(str(SAMPLES / "trial-report.pdf"), max_pages=1)
    assert len(found["pages"]) == 1  # type: ignore[arg-type]
    assert found["truncated"] is True


@pytest.mark.parametrize(
    "content", [b"", b"%PDF-1.4\n%%EOF", b"hello", b"%PDF-1.7\n" + b"\x00" * 1000]
)
def test_what_is_no_pdf_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "broken.pdf").write_bytes(content)
    with pytest.raises(Refused, match=r"broken\.pdf: not a readable PDF"):
        read_pdf(str(tmp_path / "broken.pdf"))


@pytest.mark.parametrize("cut", [200, 900, 1700, 2500])
def test_a_torn_pdf_is_read_or_refused_but_never_crashes(tmp_path: Path, cut: int) -> None:
    whole = (SAMPLES / "trial-report.pdf").read_bytes()
    (tmp_path / "torn.pdf").write_bytes(whole[:cut])
    with suppress(Refused):
        assert isinstance(read_pdf(str(tmp_path / "torn.pdf"))["text"], str)
