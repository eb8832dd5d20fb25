"""`verify [EP...]`: findings with file and line; an unfinished episode is reported, but no failure."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cogcli.app import episodes
from cogcli.app.verify_episodes import EpisodeVerifier, VerifyResult, episodes_report, place_of
from cogcli.cli.context import CommandContext
from cogcli.cli.options import argument, command, switch, text, wrong_flag, wrong_value
from cogcli.cli.report_files import parse_reports
from cogcli.core.errors import ENVIRONMENT, OK
from cogcli.core.terminal_text import visible
from cogcli.episode.signing import public_key
from cogcli.report.humanize import count_of
from cogcli.report.styled_text import Glyphs, StyledLine, style_of

_REPAIR = "first finish what a crash while sealing left, and move a damaged last line away"
_SIGNS = {"error": "failed", "warning": "warning", "info": "skipped"}
"""By severity: the status whose sign and colour a finding gets."""
_HASH = re.compile(r"(?:sha256:)?([0-9a-f]{64})")


@command(
    examples=(
        ("cogcli verify @last", "the newest episode"),
        ("cogcli verify @last --key team.pub.pem", "signed by this key?"),
        ("cogcli verify ./mailed/ep_01M7XJNZDYM9 --json", "a copy, for scripts"),
    ),
    exits=(0, 1, 2, 3),
    most=1000,
)
def verify(
    context: CommandContext,
    names: Annotated[list[str], argument("[EP...]", "episodes")],
    *,
    all: Annotated[bool, switch("--all", help="every episode of the runs directory")] = False,
    key: Annotated[str | None, text("--key", "FILE", "the key that must have signed it")] = None,
    head: Annotated[str | None, text("--head", "HASH", "the hash that its log must end with")] = None,
    repair: Annotated[bool, switch("--repair", help=_REPAIR)] = False,
    report: Annotated[
        list[str],
        text(
            "--report",
            "KIND:PATH",
            "write junit:PATH, json:PATH or md:PATH",
            completes=("junit:", "json:", "md:"),
        ),
    ],
) -> int:
    """Verify the named episodes, all, or the newest."""
    started = time.monotonic()
    wanted = parse_reports(report, without=("sarif", "github"))
    directories = _directories(context, names, all=all)
    verifier = EpisodeVerifier(
        context.settings,
        None if key is None else public_key(key),
        _head(head, directories),
        repair,
        context.warn,
    )
    results: list[VerifyResult] = []
    for one in verifier.verify(directories):
        results.append(one)
        context.answer(_lines(one, context.screen.out.glyphs))
    code = _fill_envelope(context, results)
    wanted.write(context, lambda: episodes_report(results, time.monotonic() - started), code)
    return code


def _lines(result: VerifyResult, glyphs: Glyphs) -> list[StyledLine]:
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
        word = _SIGNS[finding["severity"]]
        text = visible(f"{place_of(finding)}{finding['code']}: {finding['message']}")
        lines.append([(f"  {glyphs.sign(word)} ", style_of(word)), (text, "")])
    if not result.errors:
        lines.append([(f"  {result.level}: {result.proves}", "dim")])
    return lines


def _summary(result: VerifyResult) -> str:
    intact = "nothing vouches for it" if result.level == "unvouched" else "nothing altered"
    text = count_of(len(result.errors), "finding") if result.errors else intact
    text += ", not sealed" if result.level == "unfinished" else ""
    repaired = ", mended now" if result.level == "unfinished" else ", sealed now"
    return text + (repaired if result.repaired else "")


def _fill_envelope(context: CommandContext, results: Sequence[VerifyResult]) -> int:
    """Fill the envelope; returns the exit code."""
    findings = [finding for one in results for finding in one.findings]
    context.own["findings"] = findings
    context.own["episodes"] = [
        {"episode_id": one.name, "level": one.level or None, "repaired": one.repaired} for one in results
    ]
    if len(results) == 1:
        context.own["episode_id"] = results[0].name
    unreadable = [one for one in results if not one.level]
    errors = [finding for one in unreadable or results for finding in one.errors]
    if not errors:
        return ENVIRONMENT if unreadable else OK
    known = ("code", "message", *(name for name in ("file", "line") if errors[0].get(name)))
    no = context.fail({name: errors[0][name] for name in known})
    return ENVIRONMENT if unreadable else no


def _directories(context: CommandContext, names: Sequence[str], *, all: bool) -> list[Path]:
    settings = context.settings
    if all and names:
        raise wrong_flag("`--all` takes no episode", "leave one of them out")
    if all:
        store = episodes.store_of(settings)
        return [store.runs_dir / episode_id for episode_id in store.ids()]
    return [episodes.find(settings, word) for word in names or ["@last"]]


def _head(given: str | None, directories: Sequence[Path]) -> str | None:
    if given is None:
        return None
    match = _HASH.fullmatch(given)
    if match is None:
        expected = "sha256: and 64 hex digits, in lower case"
        raise wrong_value(f"`--head`: found `{given[:80]}`", expected=expected)
    if len(directories) != 1:
        raise wrong_flag("`--head` is that of one episode", "name it")
    return f"sha256:{match[1]}"
