"""Write the page of measured figures from what `bench.py all --json` printed, or with `--check` report whether it is
stale.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
MEASURED: Final = ROOT / "docs" / "performance.json"
PAGE: Final = ROOT / "docs" / "performance.md"
UNEXPLAINED: Final = "missed; not explained yet."
_LINEAR: Final = (
    "linear, 1000 steps, per step",
    "fan-out, 1000 steps, per step",
    "linear, 1000 steps with a quiet display, per step",
    "1000 steps with a condition, per step",
    "1000 steps with a retry, per step",
    "a loop of 1000 rounds, per step",
    "linear, 1000 steps with ten secrets, per step",
    "linear 1000 over the bare loop",
    "linear 10000 over 1000, whole run",
)
"""Figures of which most is the work of a plain step."""
_IMPORTS: Final = (
    "ls",
    "state show @last",
    "trace @last",
    "completion of `cogcli run `",
    "completion of `cogcli trace `",
    "completion of `cogcli run bench.two --bind `",
)
"""Figures of which most is the import of modules."""
_PACK: Final = (
    "a step under a pack without rules",
    "a pack of 100 rules, added to a step",
    "a pack of 10,000 rules, added to a step",
)
REASONS: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        _LINEAR,
        "the goal was set on a faster machine. There commit 9107d888 took 109 to 127 us of CPU a linear step. Here it"
        " takes 328, and commit 95c9d50c, measured in turn with it, 93. A step of a fan-out takes 360 and 94. By"
        " samples, 41 % of a linear step append its two lines (hash 9 %, write 7 %). Building and ending it take"
        " another third, the event of the plan a tenth, and the call itself a tenth.",
    ),
    **dict.fromkeys(
        _IMPORTS,
        "most is imports: of some 290 million instructions of `ls`, a bare interpreter takes 41, and more than half are"
        " the standard library, the part of typer that parses, and orjson.",
    ),
    **dict.fromkeys(
        _PACK,
        "a judged call writes a third line, its decision. By samples, half of what is added judges the call, and two"
        " fifths record the decision. The goals were set on a faster machine, as those of a step were.",
    ),
    "run, warm cache": (
        "of its 499 million instructions a bare interpreter takes 42. Another 197 import orjson, the part of typer that"
        " parses, and modules of the standard library. 241 import some 245 modules of ours. The run itself takes 19."
        " The goal allows some 370."
    ),
    "linear, 1000 steps with a display of lines, per step": (
        "besides the step itself, two lines are formatted: 11 us each alone, 37 while the run goes on beside it."
    ),
    "a loop through a skill that appends: 20,000 rows over 5,000": (
        "each event of the nested call passes the whole list on: its elements are not copied, but pointers to them are."
    ),
    "ten secrets: search a text of 1 MB": (
        "each form of each secret is looked for by samples; before that it took three times as long."
    ),
    "gateway: decision, 100 rules": (
        "each of the 100 rules is evaluated for 1 to 2 us, in five calls of Python functions."
    ),
    **dict.fromkeys(
        ("gateway: adds to a call on stdio", "gateway: calls"),
        "by a profile two thirds of the CPU time of a call are those of the SDK, which reads and writes two protocols;"
        " the journal with the engine takes a fifth, the checks of arguments and reply a sixth.",
    ),
    "validate 500 skills with 3,000 expressions": (
        "the goal was set on a faster machine, as that of a step was."
    ),
    "a turn without calls": "the goal was set on a faster machine, as that of a step was.",
    "verify 100,000 events": (
        "here commit 9107d888 takes 36.6 s. By samples, half of the time checks the members of the events and folds"
        " them, a fifth checks chain, checksums and forms of the lines, a sixth reads them, and an eighth checks their"
        " order."
    ),
    "project 100,000 events": (
        "here commit 9107d888 takes 14.3 s. By samples, a third of the time reads the events, a third folds them, and"
        " most of the rest checks before that the log agrees with its manifest."
    ),
    "resume, until a step of its own": "measured beside other work, at a load above 6.",
}
"""Why a goal is missed, by the name of its figure, in words that a profile backs."""


def main() -> int:
    """Exit code 0, or 1 where `--check` found the page to differ."""
    if not MEASURED.exists():
        name = MEASURED.relative_to(ROOT)
        print(f"no figures: python tooling/bench.py all --json > {name}", file=sys.stderr)
        return 1
    text = page(json.loads(MEASURED.read_text("utf-8")), REASONS)
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


def page(measured: dict[str, Any], reasons: Mapping[str, str]) -> str:
    """Return the page."""
    benches = measured["benches"]
    figures = [figure for bench in benches.values() for figure in bench["figures"]]
    with_goal = [figure for figure in figures if figure["reached"] is not None]
    reached = sum(figure["reached"] for figure in with_goal)
    lines = [
        "# Performance",
        "",
        "Measured by `python tooling/bench.py all --json` on one machine: medians, and ratios to something that ran in",
        "turn with it. Other machines differ, ratios less so. `tooling/generate_performance.py` wrote this page.",
        "",
        f"{reached} of {len(with_goal)} goals are reached. If a goal is missed, the reason is below its table.",
        "",
        "| where | |",
        "|---|---|",
        *(f"| {name} | {_cell(value)} |" for name, value in measured["machine"].items()),
    ]
    for name, bench in benches.items():
        lines += ["", f"## {name}", "", _summarize_bench(bench), ""]
        lines += [*_table(bench["figures"]), *_missed(bench["figures"], reasons)]
    if measured["not_run"]:
        names = ", ".join(f"`{name}`" for name in measured["not_run"])
        lines += ["", "## Not run", "", f"These were not measured on this occasion: {names}."]
    return "\n".join(lines) + "\n"


def _summarize_bench(bench: dict[str, Any]) -> str:
    """Return how long a bench took, and how busy the machine was at its end.

    A bench that was measured again later names its own commit.
    """
    again = f"Measured again at commit {bench['commit']}. " if "commit" in bench else ""
    return f"{again}Took {bench['minutes']:g} minutes; load of the last 5 minutes at its end: {bench['load']:g}."


def _table(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield "| figure | measured | goal | | note |"
    yield "|---|---|---|---|---|"
    for row in rows:
        goal = "" if row["goal"] is None else f"{'>=' if row['at_least'] else '<='} {row['goal']:g}"
        verdict = {True: "reached", False: "**missed**", None: ""}[row["reached"]]
        value = "not measured" if row["value"] is None else f"{row['value']:.2f} {row['unit']}"
        yield f"| {_cell(row['name'])} | {value.strip()} | {goal} | {verdict} | {_cell(row['note'])} |"


def _missed(rows: list[dict[str, Any]], reasons: Mapping[str, str]) -> Iterator[str]:
    """Yield each reason with the missed goals that it explains. A goal without a reason is said to be unexplained."""
    by_reason: dict[str, list[str]] = {}
    for row in rows:
        if row["reached"] is False:
            names = by_reason.setdefault(reasons.get(row["name"], UNEXPLAINED), [])
            names.append(_cell(row["name"]))
    if by_reason:
        yield ""
    for reason, names in by_reason.items():
        yield f"- {'; '.join(names)}: {reason}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main())
