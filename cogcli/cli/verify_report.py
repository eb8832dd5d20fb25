"""The results of `verify` as lines and as reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from cogcli.app.check_reports import VerifyResult, episodes_report, place_of
from cogcli.core.terminal_text import visible
from cogcli.report.glyphs import style_of

if TYPE_CHECKING:
    from cogcli.episode.findings import Finding
    from cogcli.report.glyphs import Glyphs
    from cogcli.report.styled_text import StyledLine

_WORDS: Final = {"error": "failed", "warning": "warning", "info": "skipped"}
"""By severity: the status whose sign and colour a finding gets."""
KINDS: Final = ("junit", "json", "md")


def finding_object(name: str, finding: Finding) -> dict[str, Any]:
    """A finding as an object of the envelope."""
    return {"episode": name, **finding._asdict()}


def lines_of(result: VerifyResult, glyphs: Glyphs) -> list[StyledLine]:
    """A heading, a line per finding, and the level that is proven."""
    if not result.level:
        return [[(glyphs.sign("failed"), "red"), (f" {visible(result.findings[0]['message'])}", "")]]
    doubtful = result.level in ("unvouched", "unfinished")
    warned = doubtful or any(finding["severity"] == "warning" for finding in result.findings)
    status = "failed" if result.errors else "warning" if warned else "done"
    lines: list[StyledLine] = [
        [(f"{glyphs.sign(status)} ", style_of(status)), (f"{result.name}  {_summary(result)}", "")]
    ]
    for finding in result.findings:
        word = _WORDS[finding["severity"]]
        text = visible(f"{place_of(finding)}{finding['code']}: {finding['message']}")
        lines.append([(f"  {glyphs.sign(word)} ", style_of(word)), (text, "")])
    if not result.errors:
        lines.append([(f"  {result.level}: {result.proves}", "dim")])
    return lines


def _summary(result: VerifyResult) -> str:
    count = len(result.errors)
    intact = "nothing vouches for it" if result.level == "unvouched" else "nothing altered"
    text = f"{count} finding{'s' if count != 1 else ''}" if count else intact
    text += ", not sealed" if result.level == "unfinished" else ""
    repaired = ", mended now" if result.level == "unfinished" else ", sealed now"
    return text + (repaired if result.repaired else "")


def junit_of(results: Sequence[VerifyResult], *, seconds: float) -> str:
    """A case per episode; warnings and information are notes."""
    from cogcli.report.junit import junit

    return junit(episodes_report(results, seconds))


def markdown_of(results: Sequence[VerifyResult]) -> str:
    """A table with a row per episode, and one with a row per finding."""
    from cogcli.report.check_report import markdown

    return markdown(episodes_report(results, 0))
