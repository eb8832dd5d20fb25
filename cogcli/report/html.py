"""The HTML page: one file without scripts, network access or style attributes
(docs/reference/command-line.md#page).

The template escapes every text once and makes control characters visible. The functions that make
drawings escape the texts in them."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from typing import Final

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup, escape

from cogcli.base.terminal_text import LONGEST_SHOWN, visible_block
from cogcli.report.batch_page import BatchPage
from cogcli.report.humanize import count_of
from cogcli.report.page import Page
from cogcli.report.page_comparison import PageComparison
from cogcli.report.page_values import ValueLimit
from cogcli.report.styled_text import style_of
from cogcli.report.svg import page_file, style_sheet

LARGEST: Final = 2_000_000
"""The largest page in bytes. Values are cut shorter until the page fits."""
_MIN_SHOWN: Final = 64
_ROOM: Final = 8_000_000
"""Bytes available for values in the first attempt."""


def html_page(
    build: Callable[[ValueLimit], list[Page]],
    *,
    version: str,
    events: int,
    comparison: PageComparison | None = None,
) -> bytes:
    """Return the page. `build` returns its data for a limit on values.

    The limit is 4 KB per value, or less if the page would be too large. The first estimate uses the
    number of `events`."""
    template = _template_environment().get_template("page.html.j2")
    common = {**_style_members(), "version": version, "comparison": comparison}
    maximum = min(LONGEST_SHOWN, max(_MIN_SHOWN, _ROOM // max(1, events)))
    while True:
        pages = build(ValueLimit(maximum))
        title = "; ".join(f"{page.title}: {page.outcome.lower()}" for page in pages)
        data = template.render(common, pages=pages, title=title).encode("utf-8")
        if len(data) <= LARGEST or maximum <= _MIN_SHOWN:
            return data
        maximum = max(_MIN_SHOWN, min(maximum // 2, maximum * LARGEST // len(data)))


def batch_html(page: BatchPage, *, version: str) -> bytes:
    """Return the page about a batch."""
    template = _template_environment().get_template("batch.html.j2")
    return template.render(_style_members(), page=page, version=version).encode("utf-8")


def _style_members() -> dict[str, str]:
    """Return the style of a page, and the hash that permits it."""
    style = style_sheet("colours", "page", "drawing")
    return {"style": style, "style_hash": b64encode(sha256(style.encode()).digest()).decode()}


@cache
def _template_environment() -> Environment:
    """Return the template environment. It compiles each template only once, because compiling takes longer than
    rendering most pages.
    """
    environment = Environment(
        autoescape=True,
        loader=FunctionLoader(page_file),
        undefined=StrictUndefined,
        finalize=_make_visible,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"drawn": Markup, "words": _mark_code}
    environment.globals |= {"tone_of": style_of, "count_of": count_of}
    return environment


def _mark_code(text: str) -> Markup:
    """Return a sentence as markup, with text in backticks as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(visible_block(text)))))  # noqa: S704


def _make_visible(value: object) -> object:
    """Return a string in which control and bidi characters are visible, such as `\\x1b`. Other values
    are unchanged."""
    return visible_block(value) if type(value) is str else value
