"""`verify [EP...]`: findings with file and line; an unfinished episode is reported, but is not a
failure.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import Annotated, Final

from cogcli.app import episodes
from cogcli.app.anchors import Head, read_anchor, read_heads
from cogcli.app.state_document import iterate_shown_events
from cogcli.app.verify_episodes import (
    EpisodeVerifier,
    VerifyResult,
    episodes_report,
    is_repairable,
    place_of,
    trusted_of,
)
from cogcli.app.wings import WingFunction, is_batch_word
from cogcli.base.errors import ENVIRONMENT, OK, CogcliError
from cogcli.base.terminal_text import visible
from cogcli.cli.context import CommandContext
from cogcli.cli.empty_checks import conclude, find_refusal
from cogcli.cli.inputs import parse_hash
from cogcli.cli.options import argument, command, switch, text, wrong_flag
from cogcli.cli.render_error import next_lines
from cogcli.cli.report_files import parse_reports
from cogcli.cli.trace_tree import TracedEpisode, next_commands
from cogcli.declarations.value_types import Json
from cogcli.episode.foreign_log import for_reports
from cogcli.episode.history import history_of
from cogcli.episode.listing.episode_row import read_row
from cogcli.episode.signing import public_key
from cogcli.episode.verify.check import VOUCHED
from cogcli.report.humanize import count_of, short_episode
from cogcli.report.styled_text import Glyphs, StyledLine, style_of
from cogcli.report.unfinished_runs import unfinished_state

_REPAIR = "first finish an unsealed run, and move a damaged last line away"
_PARTIAL_CODES: Final = frozenset(("checkpoint.partial", "signature.partial"))
_UNCHECKED_CODES: Final = frozenset(("signature.unknown", "signature.unchecked"))
_SIGNS = {"error": "failed", "warning": "warning", "info": "skipped"}
"""By severity: the status whose sign and colour a finding gets."""
_ANCHOR = "with --all: find episodes that were deleted, shortened or replaced since `verify --heads` wrote FILE"

_VERIFY_BATCH: Final = WingFunction("cogcli.cli.batch_verify", "verify_batch")


@command(
    examples=(
        ("cogcli verify @last", "the newest episode"),
        ("cogcli verify @last --key team.pub.pem", "signed by this key?"),
        ("cogcli verify --all --anchor heads.txt", "what was deleted or rolled back since?"),
    ),
    exits=(0, 1, 2, 3),
    maximum=1000,
)
def verify(
    context: CommandContext,
    names: Annotated[list[str], argument("[EP...]", "episodes")],
    *,
    all: Annotated[bool, switch("--all", help="every episode of the runs directory")] = False,
    key: Annotated[str | None, text("--key", "FILE", "the key that must have signed it")] = None,
    head: Annotated[
        str | None, text("--head", "HASH", "the hash that the log must end with")
    ] = None,
    require_signature: Annotated[
        bool, switch("--require-signature", help="exit 1 unless a trusted key signed all of it")
    ] = False,
    heads: Annotated[
        bool, switch("--heads", help="print id, events and head of every episode")
    ] = False,
    anchor: Annotated[str | None, text("--anchor", "FILE", _ANCHOR)] = None,
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
    """Verify the named episodes, all of them, or the newest."""
    if any(map(is_batch_word, names)):
        return int(_VERIFY_BATCH(context, names))
    started = time.monotonic()
    wanted = parse_reports(report, without=("sarif", "github"))
    if heads:
        _require_alone(names, all, key, head, anchor, require_signature, repair, report)
        return _print_heads(context)
    anchored = {} if anchor is None else _read_anchor_for(context, anchor, all=all)
    directories = _find_directories(context, names, all=all)
    if head is not None and len(directories) != 1:
        raise wrong_flag("`--head` is that of one episode", "name it")
    trusted = trusted_of(
        context.settings, key=None if key is None else public_key(key), signature=require_signature
    )
    if head is not None:
        trusted = trusted._replace(head=parse_hash(head, "--head"))
    verifier = EpisodeVerifier(context.settings, trusted, anchored, repair, context.warn)
    results: list[VerifyResult] = []
    for one in verifier.verify(directories):
        one = one._replace(next=tuple(_next_commands(context, one)))
        results.append(one)
        _show_result(context, one, is_only=len(directories) == 1)
    code = _fill_envelope(context, results)
    refusal = find_refusal(
        checked=len(results),
        total=len(results),
        empty=f"there is no episode in {context.settings.display_path(context.settings.runs_dir)}",
        hint="name the directory that holds them: --runs-dir DIR",
    )
    return conclude(
        context, wanted, lambda: episodes_report(results, time.monotonic() - started), code, refusal
    )


def _require_alone(*given: object) -> None:
    """Raise UsageError if anything else is given with `--heads`."""
    if any(given):
        what = "`--heads` takes no other flag and no episode"
        raise wrong_flag(what, "it prints the heads of all episodes")


def _show_result(context: CommandContext, result: VerifyResult, *, is_only: bool) -> None:
    """Write the findings of an episode; with `-q` only for a failed one."""
    if not context.screen.quiet or result.errors or not result.level:
        context.answer(_result_lines(result, context.screen.out.glyphs))
    if is_only and not context.json and not context.screen.quiet:
        for line in next_lines(result.next):
            context.screen.notify_line(line)


def _next_commands(context: CommandContext, result: VerifyResult) -> list[str]:
    """Return the commands that finish an unsealed run; empty for a sealed or altered episode."""
    directory = result.directory
    if directory is None or not result.is_unsealed:
        return []
    is_here = directory.parent == Path(context.settings.runs_dir)
    episode = short_episode(directory.name) if is_here else quote(str(directory))
    if any(finding["code"] != "episode.unsealed" for finding in result.errors):
        return (
            [f"cogcli verify {episode} --repair{context.again}"] if is_repairable(directory) else []
        )
    events = tuple(for_reports(iterate_shown_events(directory)).events)
    folded, row = history_of(events), read_row(directory)
    if row.status == "running":
        return [f"cogcli trace {episode} --follow{context.again}"]
    shown = TracedEpisode(
        folded, row.status, directory=directory, unfinished=unfinished_state(folded, row.status),
        unsealed=bool(result.errors),
    )  # fmt: skip
    return next_commands(context, shown)


def _result_lines(result: VerifyResult, glyphs: Glyphs) -> list[StyledLine]:
    """Return a heading, a line per finding, and the proven level."""
    if not result.level:
        return [
            [(glyphs.sign("failed"), "red"), (f" {visible(result.findings[0]['message'])}", "")]
        ]
    doubtful = result.level in ("unvouched", "unfinished", "missing")
    warned = doubtful or any(finding["severity"] == "warning" for finding in result.findings)
    status = "failed" if result.errors else "warning" if warned else "done"
    lines: list[StyledLine] = [
        [
            (f"{glyphs.sign(status)} ", style_of(status)),
            (f"{result.name}  {_summary_text(result)}", ""),
        ]
    ]
    for finding in result.findings:
        word = _SIGNS[finding["severity"]]
        text = visible(f"{place_of(finding)}{finding['code']}: {finding['message']}")
        lines.append([(f"  {glyphs.sign(word)} ", style_of(word)), (text, "")])
        lines += [
            [(f"      {name + ':':<10}", "dim"), (visible(finding[name]), "")]
            for name in ("expected", "found")
            if finding.get(name)
        ]
    if not result.errors:
        lines.append([(f"  {result.level}: {result.proves}", "dim")])
    return lines


def _read_anchor_for(context: CommandContext, anchor: str, *, all: bool) -> dict[str, Head]:
    """Return the heads in a file of the project. Raise UsageError unless all episodes are verified."""
    if not all:
        raise wrong_flag("`--anchor` is for all episodes", "add --all")
    context.settings.require_inside(anchor)
    return read_anchor(anchor)


def _summary_text(result: VerifyResult) -> str:
    """Return the result of an episode in a few words."""
    text = _describe_level(result)
    if result.is_unsealed:
        return f"{text}, not sealed{', mended now' if result.repaired else ''}"
    return f"{text}, sealed now" if result.repaired else text


def _describe_level(result: VerifyResult) -> str:
    """Return the guarantee that the content of an episode is unaltered, as text."""
    if result.errors:
        return count_of(len(result.errors), "finding")
    if result.level in VOUCHED:
        return "nothing altered"
    if result.level == "unvouched":
        return "nothing vouches for it"
    codes = {finding["code"] for finding in result.findings}
    if codes & _PARTIAL_CODES:
        return "consistent, vouched for in part"
    if codes & _UNCHECKED_CODES:
        return "consistent, its signature was not checked"
    return "consistent, unsigned"


def _print_heads(context: CommandContext) -> int:
    """Print the head of each episode: the lines of an anchor file."""
    store = episodes.store_of(context.settings)
    unread: list[CogcliError] = []
    found = list(read_heads([store.runs_dir / name for name in store.ids()], unread.append))
    context.own["heads"] = [head._asdict() for head in found]
    context.answer("".join(f"{head.to_line()}\n" for head in found))
    for error in unread[1:]:
        context.warn(error)
    if unread:
        raise unread[0]
    return OK


def _fill_envelope(context: CommandContext, results: Sequence[VerifyResult]) -> int:
    """Fill the envelope, and return the exit code."""
    context.own["findings"] = [finding for one in results for finding in one.findings]
    context.own["episodes"] = [_episode_row(one) for one in results]
    if len(results) == 1:
        context.own["episode_id"] = results[0].name
    unreadable = [one for one in results if not one.level]
    # An episode that cannot be read is reported before one with findings.
    code = _report_first_error(context, unreadable or results)
    return ENVIRONMENT if unreadable else code


def _report_first_error(context: CommandContext, results: Sequence[VerifyResult]) -> int:
    """Put the first error of these episodes into the envelope, and return the exit code."""
    for one in results:
        if one.errors:
            return context.fail(_error_members(one.errors[0]))
    return OK


def _error_members(finding: Json) -> Json:
    """Return the members of a finding that the error of the envelope contains."""
    places = [name for name in ("file", "line") if finding.get(name)]
    return {name: finding[name] for name in ("code", "message", *places)}


def _episode_row(result: VerifyResult) -> Json:
    row = {
        "episode_id": result.name,
        "level": result.level or None,
        "repaired": result.repaired,
    }
    return {**row, "next": list(result.next)} if result.next else row


def _find_directories(context: CommandContext, names: Sequence[str], *, all: bool) -> list[Path]:
    """Return the directories of the episodes to verify. Raise UsageError."""
    settings = context.settings
    if all and names:
        raise wrong_flag("`--all` takes no episode", "leave one of them out")
    if all:
        store = episodes.store_of(settings)
        return [store.runs_dir / episode_id for episode_id in store.ids()]
    return [episodes.find(settings, word) for word in names or ["@last"]]
