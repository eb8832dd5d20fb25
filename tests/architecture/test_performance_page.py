"""The page of measured figures says what was missed (tooling/generate_performance.py)."""

from __future__ import annotations

from typing import Any

from tooling.bench import Figure
from tooling.generate_performance import page


def figure(name: str, value: float | None, goal: float | None) -> dict[str, Any]:
    made = Figure(name, value, "us", goal, "of 5 | runs")
    return {**made._asdict(), "reached": made.reached}


MEASURED = {
    "machine": {"processor": "2 x A"},
    "figures": {
        "steps": [figure("fast", 40.0, 50.0), figure("slow", 61.5, 60.0), figure("odd", 9.0, 8.0)],
        "peers": [figure("peer", None, None)],
    },
}


def test_a_missed_goal_is_told_with_its_reason_or_as_unexplained() -> None:
    text = page(MEASURED, {"slow": "half of it is hashing."})
    assert "1 of 3 goals are reached." in text
    assert "| fast | 40.00 us | <= 50 | reached | of 5 \\| runs |" in text
    assert "| slow | 61.50 us | <= 60 | **missed** | of 5 \\| runs |" in text
    assert "- slow: half of it is hashing.\n- odd: missed; not explained yet." in text


def test_what_could_not_be_measured_is_no_figure() -> None:
    assert "| peer | not measured |  |  | of 5 \\| runs |" in page(MEASURED, {})
