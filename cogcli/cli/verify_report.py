"""What `verify` found, on a screen and in the formats of its reports."""

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
"""By severity the status whose sign and colour a finding has."""
KINDS: Final = ("junit", "json", "md")


class Looked(NamedTuple):
    """One episode that was looked at. `findings` as in the envelope; `level` is empty where nothing could be read."""

    name: str
    findings: tuple[dict[str, Any], ...]
    level: str = ""
    proves: str = ""
    repaired: bool = False

    @property
    def errors(self) -> list[dict[str, Any]]:
        """The findings that say it was altered, or could not be read."""
        return [finding for finding in self.findings if finding["severity"] == "error"]


def finding_object(name: str, finding: Finding) -> dict[str, Any]:
    """A finding as the envelope has it."""
    return {"episode": name, **finding._asdict()}


def lines_of(looked: Looked, glyphs: Glyphs) -> list[StyledLine]:
    """A heading, a line per finding, and what the whole proves."""
    if not looked.level:
        return [[(glyphs.sign("failed"), "red"), (f" {visible(looked.findings[0]['message'])}", "")]]
    doubtful = looked.level in ("unvouched", "unfinished")
    warned = doubtful or any(finding["severity"] == "warning" for finding in looked.findings)
    status = "failed" if looked.errors else "warning" if warned else "done"
    lines: list[StyledLine] = [
        [(f"{glyphs.sign(status)} ", style_of(status)), (f"{looked.name}  {_said(looked)}", "")]
    ]
    for finding in looked.findings:
        word = _WORDS[finding["severity"]]
        text = visible(f"{_place(finding)}{finding['code']}: {finding['message']}")
        lines.append([(f"  {glyphs.sign(word)} ", style_of(word)), (text, "")])
    if not looked.errors:
        lines.append([(f"  {looked.level}: {looked.proves}", "dim")])
    return lines


def _said(looked: Looked) -> str:
    count = len(looked.errors)
    intact = "nothing vouches for it" if looked.level == "unvouched" else "nothing altered"
    said = f"{count} finding{'s' if count != 1 else ''}" if count else intact
    said += ", not sealed" if looked.level == "unfinished" else ""
    mended = ", mended now" if looked.level == "unfinished" else ", sealed now"
    return said + (mended if looked.repaired else "")


def _place(finding: dict[str, Any]) -> str:
    file, line = finding.get("file"), finding.get("line")
    if not file:
        return ""
    return f"{file}:{line}: " if line else f"{file}: "


def junit_of(all_looked: Sequence[Looked], *, seconds: float) -> str:
    """A case per episode; what is information is a note."""
    from cogcli.report.junit import Case, JunitFailure, junit

    def case(looked: Looked) -> Case:
        texts = [(finding, f"{_place(finding)}{finding['message']}") for finding in looked.findings]
        failures = [
            JunitFailure(f["code"], f["message"], text) for f, text in texts if f["severity"] == "error"
        ]
        notes = [f"{f['code']}: {text}" for f, text in texts if f["severity"] != "error"]
        return Case("verify", looked.name, tuple(failures), tuple(notes))

    return junit("cogcli verify", [case(looked) for looked in all_looked], seconds=seconds)


def markdown_of(all_looked: Sequence[Looked]) -> str:
    """A table with a row per episode, and one with a row per finding."""
    rows = [f"| {_cell(one.name)} | {one.level or 'unreadable'} | {len(one.errors)} |" for one in all_looked]
    found = [
        f"| {_cell(one.name)} | {_cell(_place(f).rstrip(': '))} | {f['code']} | {_cell(f['message'])} |"
        for one in all_looked
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
