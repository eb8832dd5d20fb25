"""Write the page of measured figures from what `bench.py all --json` printed, or with `--check` report whether it is
stale."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
MEASURED: Final = ROOT / "docs" / "performance.json"
PAGE: Final = ROOT / "docs" / "performance.md"
REASONS: Final = ROOT / "docs" / "performance-reasons.json"
"""Why a goal is missed, by the name of the figure, with what a profile shows."""


def main() -> int:
    """Exit code 0, or 1 where `--check` found the page to differ."""
    if not MEASURED.exists():
        name = MEASURED.relative_to(ROOT)
        print(f"no figures: python tooling/bench.py all --json > {name}", file=sys.stderr)
        return 1
    reasons = json.loads(REASONS.read_text("utf-8")) if REASONS.exists() else {}
    text = page(json.loads(MEASURED.read_text("utf-8")), reasons)
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == text:
        return 0
    if "--check" in sys.argv[1:]:
        print(
            f"stale: {PAGE.relative_to(ROOT)} (python tooling/generate_performance.py)",
            file=sys.stderr,
        )
        return 1
    PAGE.write_text(text, encoding="utf-8")
    print(PAGE)
    return 0


def page(measured: dict[str, Any], reasons: dict[str, str]) -> str:
    """Return the page."""
    figures = [figure for each in measured["figures"].values() for figure in each]
    with_goal = [figure for figure in figures if figure["reached"] is not None]
    reached = sum(figure["reached"] for figure in with_goal)
    lines = [
        "# Performance",
        "",
        "Medians of `python tooling/bench.py all --json` on one machine. Other machines differ, ratios less so.",
        "",
        f"{reached} of {len(with_goal)} goals are reached. Where one is missed, the reason is below its table.",
        "",
        "| what | |",
        "|---|---|",
        *(f"| {name} | {_cell(value)} |" for name, value in measured["machine"].items()),
    ]
    for bench, rows in measured["figures"].items():
        lines += ["", f"## {bench}", "", *_table(rows), *_missed(rows, reasons)]
    return "\n".join(lines) + "\n"


def _table(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield "| figure | measured | goal | | note |"
    yield "|---|---|---|---|---|"
    for row in rows:
        goal = "" if row["goal"] is None else f"{'>=' if row['at_least'] else '<='} {row['goal']:g}"
        verdict = {True: "reached", False: "**missed**", None: ""}[row["reached"]]
        value = "not measured" if row["value"] is None else f"{row['value']:.2f} {row['unit']}"
        yield f"| {_cell(row['name'])} | {value.strip()} | {goal} | {verdict} | {_cell(row['note'])} |"


def _missed(rows: list[dict[str, Any]], reasons: dict[str, str]) -> Iterator[str]:
    """Yield the reason of each missed goal. A goal that is missed without a reason is said to be so."""
    missed = [row["name"] for row in rows if row["reached"] is False]
    if missed:
        yield ""
    for name in missed:
        yield f"- {name}: {reasons.get(name, 'missed; not explained yet.')}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main())
