"""`verify [EP...]`: findings with file and line; an unfinished episode is reported, but no failure."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Annotated, Any

from cogcli.app import episodes
from cogcli.app.check_reports import VerifyResult
from cogcli.cli import report_files, verify_report
from cogcli.cli.command import command
from cogcli.cli.context import CommandContext
from cogcli.cli.options import argument, switch, text
from cogcli.core.errors import ENVIRONMENT, NO, OK, CogcliError, UsageError
from cogcli.episode.findings import Finding, FindingSeverity
from cogcli.episode.layout import MANIFEST

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


_REPAIR = "first finish what a crash while sealing left, and move a damaged last line away"
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
    report: Annotated[list[str], text("--report", "KIND:PATH", "write junit:PATH, json:PATH or md:PATH")],
) -> int:
    """Verify the named episodes, all, or the newest."""
    started = time.monotonic()
    wanted = report_files.parse_reports(report, verify_report.KINDS)
    directories = _directories(context, names, all=all)
    trusted = {"key": _key(key), "head": _head(head, directories)}
    results: list[VerifyResult] = []
    seals: dict[str, tuple[Path, str]] = {}
    for directory in directories:
        one = _verify(context, directory, trusted, repair=repair, alone=len(directories) == 1)
        if len(directories) > 1:
            one = _add_duplicate(one, directory, seals)
        results.append(one)
        if not context.json:
            context.screen.answer_lines(verify_report.lines_of(one, context.screen.out.glyphs))
    code = _fill_envelope(context, results)
    _write_reports(context, results, wanted, code, time.monotonic() - started)
    return code


def _verify(
    context: CommandContext, directory: Path, trusted: dict[str, str | None], *, repair: bool, alone: bool
) -> VerifyResult:
    repaired, name = False, directory.name
    try:
        if repair:
            repaired = _repair(context, directory)
        found = episodes.verify_episode(directory, **trusted)
    except CogcliError as error:
        if alone:
            raise
        finding = {"episode": name, "code": error.code, "severity": "error", "message": error.message}
        return VerifyResult(name, (finding,))
    findings = tuple(verify_report.finding_object(name, finding) for finding in found.findings)
    return VerifyResult(name, findings, found.level, found.proves, repaired)


def _add_duplicate(one: VerifyResult, directory: Path, seals: dict[str, tuple[Path, str]]) -> VerifyResult:
    """The result, with a finding `episode.twice` where an earlier episode of this command is sealed under the same
    id."""
    seal = episodes.seal_of(directory)
    if seal is None:
        return one
    place, known = seals.setdefault(seal.episode_id, (directory, seal.sha256))
    if place == directory:
        return one
    same = seal.sha256 == known
    what = "a copy of" if same else "another episode than"
    severity: FindingSeverity = "info" if same else "error"
    message = f"{what} the one in `{place}`, both sealed as `{seal.episode_id:.80}`"
    found = verify_report.finding_object(one.name, Finding("episode.twice", severity, MANIFEST, 0, message))
    return one._replace(findings=(*one.findings, found), level=one.level if same else "altered")


def _repair(context: CommandContext, directory: Path) -> bool:
    """Repair the episode; False where nothing was to do, or it is impossible, which becomes a warning."""
    from cogcli.app.repair import repair

    try:
        return repair(context.settings, directory)
    except CogcliError as error:
        if error.code != "episode.unreadable":
            raise
        context.warn(error)
        return False


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
    context.error = _error(errors[0]) if errors else None
    if unreadable:
        return ENVIRONMENT
    return NO if errors else OK


def _error(finding: dict[str, Any]) -> dict[str, Any]:
    """The `error` object of the envelope for a finding."""
    places = {name: finding[name] for name in ("file", "line") if finding.get(name)}
    return {
        "code": finding["code"],
        "message": finding["message"],
        **places,
        "retryable": False,
        "hint": "",
        "next": [f"cogcli explain {finding['code']}"],
    }


def _write_reports(
    context: CommandContext,
    results: Sequence[VerifyResult],
    wanted: list[report_files.ReportFile],
    code: int,
    seconds: float,
) -> None:
    def whole() -> str:
        from cogcli.cli.envelope import envelope

        return envelope("verify", code, error=context.error, warnings=context.warnings, own=dict(context.own))

    texts = {
        "junit": lambda: verify_report.junit_of(results, seconds=seconds),
        "md": lambda: verify_report.markdown_of(results),
        "json": whole,
    }
    report_files.write(wanted, texts)


def _directories(context: CommandContext, names: Sequence[str], *, all: bool) -> list[Path]:
    settings = context.settings
    if all:
        if names:
            raise UsageError("usage.flag", "`--all` takes no episode", hint="leave one of them out")
        store = episodes.store_of(settings)
        return [store.runs_dir / episode_id for episode_id in store.ids()]
    return [episodes.find(settings, word) for word in names or ["@last"]]


def _key(path: str | None) -> str | None:
    if path is None:
        return None
    from cogcli.episode.signing import public_key

    return public_key(path)


def _head(given: str | None, directories: Sequence[Path]) -> str | None:
    if given is None:
        return None
    match = _HASH.fullmatch(given)
    if match is None:
        message = f"`--head`: found `{given[:80]}`"
        raise UsageError("usage.value", message, expected="sha256: and 64 hex digits, in lower case")
    if len(directories) != 1:
        raise UsageError("usage.flag", "`--head` is that of one episode", hint="name it")
    return f"sha256:{match[1]}"
