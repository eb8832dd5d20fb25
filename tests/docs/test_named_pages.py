"""Pages that other documents name by these paths: short, and they lead to the reference."""

from __future__ import annotations

from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize(
    ("page", "anchors"),
    [
        ("COGNITIVE_STATE_V1.md", ("state", "trace", "reading", "writing", "merge")),
        ("SCHEDULER.md", ("scheduling", "statuses", "limits", "control-flow")),
    ],
)
def test_a_page_that_others_name_is_short_and_leads_to_the_reference(
    page: str, anchors: tuple[str, ...]
) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 40
    assert all(f"reference/execution.md#{anchor})" in text for anchor in anchors)
