"""Reports a path to a member that a value does not have (docs/reference/skill.md#flow-checks)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from cogcli.base.problems import KeyPath, Severity, list_known_words, suggest_path
from cogcli.specs.inner_shapes import PathResult
from cogcli.specs.problem_report import Details, ProblemReport


def report_absent_member(
    report: ProblemReport,
    place: KeyPath,
    path: Sequence[str],
    start: int,
    result: PathResult,
    severity: Severity = "E",
    **details: Unpack[Details],
) -> None:
    """Report `ref.field`, or `ref.walk` if the path leads into a value without members.

    The first `start` segments of the path exist. `result` is the result of following the other segments.
    """
    absent, failed = result.absent, start + result.failed
    if absent is None:
        return
    text, before = ".".join(path), ".".join(path[:failed])
    if absent.type:
        details["hint"] = "go over it with foreach" if absent.type == "a list" else ""
        message = f"`{text}`: `{before}` is {absent.type}, no path leads into it"
        report.error("ref.walk", place, message, **details)
        return
    after = "".join(f".{part}" for part in path[failed + 1 :])
    near = suggest_path(path[failed], absent.known, prefix=f"{before}.", suffix=after)
    details["hint"] = near or list_known_words(absent.known)
    message = f"`{text}`: `{before}` has no `{path[failed]}`"
    if not absent.certain:
        message, severity = f"{message} that is declared", "W"
    report.add("ref.field", severity, place, message, **details)
