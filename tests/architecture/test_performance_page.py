"""The page of measured figures says what was missed (tooling/generate_performance.py)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tooling.bench import Figure, describe_machine
from tooling.generate_performance import MEASURED, REASONS, UNEXPLAINED, page

BENCH = Path(__file__).parents[2] / "tooling/bench.py"


def figure(name: str, value: float | None, goal: float | None) -> dict[str, Any]:
    made = Figure(name, value, "us", goal, "of 5 | runs")
    return {**made._asdict(), "reached": made.reached}


def bench(*figures: dict[str, Any]) -> dict[str, Any]:
    return {"minutes": 0.5, "load": 1.2, "figures": list(figures)}


MEASURED_HERE = {
    "machine": {"processor": "2 x A"},
    "benches": {
        "steps": bench(
            figure("fast", 40.0, 50.0), figure("slow", 61.5, 60.0), figure("odd", 9.0, 8.0)
        ),
        "peers": bench(figure("peer", None, None)),
    },
    "not_run": ["million"],
}


def test_a_missed_goal_is_told_with_its_reason_or_as_unexplained() -> None:
    text = page(MEASURED_HERE, {"slow": "half of it is hashing."})
    assert "1 of 3 goals are reached." in text
    assert "| fast | 40.00 us | <= 50 | reached | of 5 \\| runs |" in text
    assert "| slow | 61.50 us | <= 60 | **missed** | of 5 \\| runs |" in text
    assert f"- slow: half of it is hashing.\n- odd: {UNEXPLAINED}" in text


def test_what_was_not_measured_is_no_figure() -> None:
    text = page(MEASURED_HERE, {})
    assert "| peer | not measured |  |  | of 5 \\| runs |" in text
    assert "These were not measured on this occasion: `million`." in text


def test_each_missed_goal_of_the_page_has_a_reason_and_each_reason_a_figure() -> None:
    measured = json.loads(MEASURED.read_text("utf-8"))
    assert UNEXPLAINED not in page(measured, REASONS)
    figures = [each for bench in measured["benches"].values() for each in bench["figures"]]
    assert set(REASONS) <= {each["name"] for each in figures}


def test_the_machine_is_described() -> None:
    machine = describe_machine()
    assert machine["cores"] == str(os.cpu_count())
    assert set(machine) > {"date", "commit", "processor", "memory", "disk", "python", "load before"}
    assert all(machine.values())


def test_a_chosen_bench_that_does_not_exist_is_a_usage_error() -> None:
    command = [sys.executable, str(BENCH), "all", "--only", "steps,stops"]
    done = subprocess.run(command, capture_output=True, check=False, text=True)
    assert done.returncode == 2
    assert "--only: found stops" in done.stderr
