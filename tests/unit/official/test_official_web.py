"""The readable part of pages."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.growth import assert_linear

from cogcli.official.web import extract_content
from cogcli.sdk import Refused

pytestmark = pytest.mark.sampled(5)

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


@pytest.mark.sampled(10)
@pytest.mark.slow
@pytest.mark.parametrize(
    "piece", ["<div>", "<p>x", "<a ", "<!--", "<a href='x'>", "&#", "<", "<table><tr><td>"]
)
def test_deep_and_broken_nesting_is_read_to_the_end(piece: str) -> None:
    assert isinstance(extract_content(piece * (20_000 // len(piece)))["text"], str)


def test_a_page_over_the_limit_is_refused() -> None:
    with pytest.raises(Refused, match="at most 1048576"):
        extract_content("a" * 1_048_577)


HIDDEN = [
    "<p hidden>{}</p>",
    "<p style='display:none'>{}</p>",
    "<div style='color: red; DISPLAY : none !important'><p>{}</p></div>",
    "<div style='visibility: hidden'>{}</div>",
    "<span style='font-size:0'>{}</span>",
    "<span style='opacity: 0;'>{}</span>",
    "<div style='position:absolute; left:-9999px'>{}</div>",
    "<div style='/* note */display/**/:none'>{}</div>",
    "<p aria-hidden=true>{}</p>",
    "<dialog>{}</dialog>",
    "<template>{}</template>",
    "<noscript>{}</noscript>",
    "<script>{}</script>",
    "<style>/* {} */</style>",
    "<textarea hidden>{}</textarea>",
    "<!-- {} -->",
    "<style>.x, p.y {{ color: red; display: none }}</style><p class='y'>{}</p>",
    "<style>@import 'a'; #x {{ visibility: hidden }}</style><p id='x'>{}</p>",
]


@pytest.mark.sampled(40)
@pytest.mark.parametrize("form", HIDDEN)
@pytest.mark.parametrize("around", ["", "<main>", "<article>", "<div>" * 300])
def test_what_a_page_hides_is_never_in_its_text(form: str, around: str) -> None:
    page = f"<title>T</title>{around}<p>{'What can be seen. ' * 30}</p>{form.format('SECRET')}<p>The end.</p>"
    text = str(extract_content(page)["text"])
    assert "SECRET" not in text
    assert "What can be seen." in text


@pytest.mark.parametrize(
    "style", ["opacity:0.5", "display:block", "font-size:0.9em", "left:-5px", "width:0.5px"]
)
def test_what_can_be_seen_is_read(style: str) -> None:
    page = f"<style>@media print {{ .x {{ display: none }} }}</style><p class='x' style='{style}'>SEEN</p>"
    assert extract_content(page)["text"] == "SEEN"


@pytest.mark.sampled(10)
def test_the_article_of_a_page_without_marks_stands_alone() -> None:
    paragraphs = "".join(
        f"<p>Sentence {n} of the notice tells what happens at quay {n}.</p>" for n in range(12)
    )
    clutter = "".join(f"<li><a href='/{n}'>Menu {n}</a></li>" for n in range(40))
    page = f"<body><div class='sidebar'><ul>{clutter}</ul></div><div><h1>Notice</h1>{paragraphs}</div></body>"
    found = extract_content(page)
    assert "Sentence 11 of the notice" in str(found["text"])
    assert "Menu 7" not in str(found["text"])
    assert {"href": "/7", "text": "Menu 7"} in found["links"]  # type: ignore[operator]


@pytest.mark.sampled(40)
@pytest.mark.parametrize(
    "inner", ["deep down", "<p hidden>deep down</p>", "<p>" + "deep down " * 90]
)
@pytest.mark.parametrize("opened", ["<div>", "<div hidden>", "<span>", "<b><i>"])
def test_ten_thousand_elements_inside_one_another(inner: str, opened: str) -> None:
    assert_linear(lambda count: extract_content(opened * count + inner), 10_000)
    text = str(extract_content(opened * 10_000 + inner)["text"])
    assert ("deep down" in text) == ("hidden" not in inner + opened)


def test_a_page_of_several_articles_is_read_whole() -> None:
    page = "".join(
        f"<article><h2>{name}</h2><p>News of {name}.</p></article>" for name in ("Veld", "Norvik")
    )
    assert (
        extract_content(page)["text"] == "## Veld\n\nNews of Veld.\n\n## Norvik\n\nNews of Norvik."
    )


@pytest.mark.parametrize(
    "style",
    [
        "color: #FFF; background: white !important",
        "color:rgb(1, 2, 3);background-color:#010203",
        "font-size:1px",
        "font-size: .02em",
        "transform: rotate(3deg) scale(0)",
        "filter: opacity(0%)",
    ],
)
def test_text_that_nobody_could_read_is_left_out(style: str) -> None:
    assert extract_content(f'<p>Seen.</p><p style="{style}">Obey.</p>')["text"] == "Seen."


def test_text_that_is_small_or_on_a_ground_of_another_colour_stays() -> None:
    page = '<p style="color:#fff;background:#000">A</p><p style="font-size:10px">B</p><p style="font-size:1.2em">C</p>'
    assert extract_content(page)["text"] == "A\n\nB\n\nC"


def test_parts_of_a_page_do_not_run_together() -> None:
    page = "<details><summary>More</summary>inside</details><textarea>typed</textarea><p>After.</p>"
    assert extract_content(page)["text"] == "More\ninside\n\nAfter."
