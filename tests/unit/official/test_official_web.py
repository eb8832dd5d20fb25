"""The readable part of pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from cogcli.official.web import extract_content

SAMPLES = Path(__file__).parents[3] / "docs" / "samples"


def test_a_page_becomes_headings_paragraphs_and_lists() -> None:
    found = extract_content((SAMPLES / "notice.html").read_text())
    assert str(found["text"]).startswith("# Night works at quay 3\n\nFrom 2 June 2026")
    assert "\n- Daytime arrivals at quay 3 stay as planned.\n" in str(found["text"])
    assert found["title"] == "Notice to skippers: night works at quay 3"
    assert found["language"] == "en"


def test_scripts_styles_comments_and_navigation_are_left_out() -> None:
    page = "<nav>menu</nav><script>x=1</script><style>p{}</style><!-- note --><p>Text</p><form>Name</form>"
    assert extract_content(page)["text"] == "Text"


def test_only_links_that_can_be_followed_are_listed_once() -> None:
    page = (
        '<a href="/a">A</a><a href="/a">again</a><a href="javascript:x()">J</a><a href="data:x">D</a>'
        '<a href="https://b.example">B</a><a>none</a><a href=" MAILTO:c@d.example ">C</a>'
    )
    assert extract_content(page)["links"] == [
        {"href": "/a", "text": "A"},
        {"href": "https://b.example", "text": "B"},
        {"href": "MAILTO:c@d.example", "text": "C"},
    ]


def test_without_a_title_the_first_heading_stands_in() -> None:
    assert extract_content("<p>x</p><h2>Tides <i>today</i></h2>")["title"] == "Tides today"


@pytest.mark.parametrize(
    "html", ["", "just text", "notes.html", "http://a.example", "<", "<p", "a\x00b", "</p></p>"]
)
def test_text_that_is_hardly_html_is_read_without_complaint(html: str) -> None:
    assert isinstance(extract_content(html)["text"], str)


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece", ["<div>", "<p>x", "<a ", "<!--", "<a href='x'>", "&#", "<", "<table><tr><td>"]
)
def test_deep_and_broken_nesting_is_read_to_the_end(piece: str) -> None:
    assert isinstance(extract_content(piece * (40_000 // len(piece)))["text"], str)


def test_a_page_over_the_limit_is_refused() -> None:
    with pytest.raises(ValueError, match="at most 1048576"):
        extract_content("a" * 1_048_577)
