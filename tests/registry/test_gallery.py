"""The gallery says what there is (docs/reference/gallery.md)."""

from __future__ import annotations

from cogcli.app.registry import open_registry
from cogcli.app.settings import Settings
from tooling.generate_gallery import FILE, ROOT, page


def test_the_gallery_is_that_of_the_registry() -> None:
    catalog = open_registry(Settings({}, {}, base=str(ROOT))).everything()
    assert FILE.read_text(encoding="utf-8") == page(catalog), "python tooling/generate.py"
    assert all(f"**{id}**" in FILE.read_text(encoding="utf-8") for id in catalog.skills)
