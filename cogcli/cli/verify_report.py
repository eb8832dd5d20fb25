"""The results of `verify` as lines and as reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cogcli.core.terminal_text import visible
from cogcli.report.glyphs import style_of

if TYPE_CHECKING:
    from cogcli.episode.findings import Finding
    from cogcli.report.glyphs import Glyphs
    from cogcli.report.styled_text import StyledLine

_WORDS: Final = {"error": "failed", "warning": "warning", "info": "skipped"}
"""By severity: the status whose sign and colour a finding gets."""
KINDS: Final = ("junit", "json", "md")


class VerifyResult(NamedTuple):
    """The result for one episode. `findings` as in the envelope; `level` is empty where nothing could be read."""

    name: str
    findings: tuple[dict[str, Any], ...]
    level: str = ""
    proves: str = ""
    repaired: bool = False

    @property
    def errors(self) -> list[dict[str, Any]]:
        """The findings of severity error: altered, or unreadable."""
        return [finding for finding in self.findings if finding["severity"] == "error"]


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
        text = visible(f"{_place(finding)}{finding['code']}: {finding['message']}")
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


def _place(finding: dict[str, Any]) -> str:
    file, line = finding.get("file"), finding.get("line")
    if not file:
        return ""
    return f"{file}:{line}: " if line else f"{file}: "


def junit_of(results: Sequence[VerifyResult], *, seconds: float) -> str:
    """A case per episode; warnings and information are notes."""
    from cogcli.report.junit import Case, JunitFailure, junit

    def case(result: VerifyResult) -> Case:
        texts = [(finding, f"{_place(finding)}{finding['message']}") for finding in result.findings]
        failures = [
            JunitFailure(f["code"], f["message"], text) for f, text in texts if f["severity"] == "error"
        ]
        notes = [f"{f['code']}: {text}" for f, text in texts if f["severity"] != "error"]
        return Case("verify", result.name, tuple(failures), tuple(notes))

    return junit("cogcli verify", [case(result) for result in results], seconds=seconds)


def markdown_of(results: Sequence[VerifyResult]) -> str:
    """A table with a row per episode, and one with a row per finding."""
    rows = [f"| {_cell(one.name)} | {one.level or 'unreadable'} | {len(one.errors)} |" for one in results]
    found = [
        f"| {_cell(one.name)} | {_cell(_place(f).rstrip(': '))} | {f['code']} | {_cell(f['message'])} |"
        for one in results
        for f in one.findings
    ]
    text = ["# cogcli verify", "", "| episode | level | errors |", "|---|---|---|", *rows]
    if found:
        text += ["", "| episode | place | code | message |", "|---|---|---|---|", *found]
    return "\n".join(text) + "\n"


def _cell(text: str) -> str:
    for mark in "\\`*_[]<>|":
        text = text.replace(mark, f"\\{mark}")
    return visible(text)
