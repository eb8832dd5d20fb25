"""The page of `report` in a browser: one request, an empty console, no page that scrolls sideways. Its pictures stay in
`build/report/`: light, dark, narrow, and as it is printed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.project import Project

ROOT = Path(__file__).resolve().parents[2]
PICTURES = ROOT / "build/report"
LOOKS = {"light": (1180, "light"), "dark": (1180, "dark"), "narrow": (400, "light")}
BROWSERS = ("chromium", "chromium-browser", "google-chrome")

pytestmark = pytest.mark.slow


@pytest.fixture
def browser() -> Iterator[Any]:
    """A browser that is installed here; `COGCLI_CHROMIUM` names another."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = os.environ.get("COGCLI_CHROMIUM") or next(
        filter(None, map(shutil.which, BROWSERS)), None
    )
    if found is None:
        pytest.skip(f"no browser: none of {', '.join(BROWSERS)} is installed")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield opened
        opened.close()


def test_the_page_in_a_browser(demo: Project, browser: Any) -> None:
    demo.run("run", "demo.review", "-p", "text=</pre><script>alert(1)</script>").assert_exit(1)
    demo.run("report", "-o", "page.html").assert_ok()
    PICTURES.mkdir(parents=True, exist_ok=True)
    for look, (width, scheme) in LOOKS.items():
        requests, told = [], []
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page = context.new_page()
        page.on("request", lambda request, found=requests: found.append(request.url))
        page.on("console", lambda message, found=told: found.append(message.text))
        page.on("pageerror", lambda error, found=told: found.append(str(error)))
        page.on("dialog", lambda dialog, found=told: found.append(dialog.message))
        page.goto((demo.root / "page.html").as_uri())
        page.screenshot(path=PICTURES / f"{look}.png", full_page=True)
        for closed in page.query_selector_all("details:not([open]) > summary"):
            if closed.is_visible():
                closed.click()
        assert requests == [(demo.root / "page.html").as_uri()]
        assert told == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        if look == "light":
            page.pdf(path=PICTURES / "print.pdf", format="A4")
        context.close()
