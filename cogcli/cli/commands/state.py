"""`state show [EP]`: a summary on a terminal, the file in a pipe, one value, or a check
(docs/reference/command-line.md#paths, docs/reference/episode.md#projection).
"""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from cogcli.app import episodes, state_document
from cogcli.app.state_document import StoredState
from cogcli.base.errors import OK, CogcliError, PathNotFoundError
from cogcli.base.jsonpath import InvalidPath, PathNotFound, parse
from cogcli.base.problems import suggest_path
from cogcli.base.terminal_text import truncate, visible, visible_block
from cogcli.cli.context import CommandContext
from cogcli.cli.envelope import StreamedList, dumps
from cogcli.cli.options import (
    OUTPUT,
    Flags,
    NewestEpisode,
    choice,
    command,
    switch,
    text,
    wrong_flag,
    wrong_value,
)
from cogcli.declarations.call_records import RunError
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Json
from cogcli.episode.action_log import (
    DocumentText,
    has_our_actions,
    iterate_actions,
    leave_out_actions,
)
from cogcli.episode.layout import EVENTS, STATE
from cogcli.episode.listing.episode_row import EpisodeRow
from cogcli.episode.log_reader import iterate_events
from cogcli.episode.refusals import renamed_folder_error
from cogcli.report.humanize import count_of, error_text, short_episode
from cogcli.report.styled_text import StyledLine


class StateFlags(Flags):
    """The flags that select a part of the document and its format."""

    path: str | None = text("--path", "P", "one value: outcomes.actions[0].tool", OUTPUT)
    default: str | None = text(
        "--default", "V", "print this for an absent path, with exit 0", OUTPUT
    )
    format: str | None = choice(
        "--format", "WORD", ("raw", "json"), "text bare, or as JSON", OUTPUT, default="raw"
    )
    check: bool = switch(
        "--check", help="compare it with the projection of its events, byte for byte"
    )
    project: bool = switch("--project", help="rebuild the document from the events")


@command(
    examples=(
        ("cogcli state show @last", "a summary"),
        ("cogcli state show @last --path outcomes.status", "one value"),
        ("cogcli state show @last --check", "compare it with its events"),
    ),
    exits=(0, 1, 2, 3),
)
def show(context: CommandContext, episode: NewestEpisode = None, *, flags: StateFlags) -> int:
    """Write the summary, the file, a value, or the result of the check."""
    _refuse_conflicts(flags)
    directory = episodes.find(context.settings, episode)
    context.own["episode_id"] = directory.name
    if flags.check:
        return _check_document(context, directory)
    row = episodes.read_status(context.settings, directory, context.warn)
    is_whole = flags.path is None and not context.json
    if is_whole and (flags.project or not context.screen.out.tty):
        _write_document(context, row, flags)
    else:
        _write_part(context, row, flags)
    if row.shown_status == "altered":
        return context.fail(
            {"code": "episode.altered", "message": f"`{directory.name}`: {row.fault}"}
        )
    return OK


_PARSED: Final = 8 * 1024 * 1024
"""Bytes of a `state.json` that is parsed before it is written. A longer one of a sealed episode has
the hash that its manifest names, and is written without being in memory."""


def _write_document(context: CommandContext, row: EpisodeRow, flags: StateFlags) -> None:
    """Write the whole document, a chunk at a time."""
    directory = row.directory
    decoder = getincrementaldecoder("utf-8")("backslashreplace")
    for chunk in _document_chunks(context, directory, row, flags):
        context.screen.answer(decoder.decode(chunk))
    context.screen.answer(decoder.decode(b"", final=True))


def _document_chunks(
    context: CommandContext, directory: Path, row: EpisodeRow, flags: StateFlags
) -> Iterable[bytes]:
    """Return the bytes of the document."""
    if _reads_file(row, flags):
        if row.sealed and state_document.state_size(directory) > _PARSED:
            if row.log_id is not None:
                context.warn(renamed_folder_error(directory, row.log_id))
            return state_document.stored_chunks(directory)
        data = state_document.read_stored_state(directory)
        if data is not None:
            document = state_document.parse_state(data, directory)
            state_document.warn_of_renamed_folder(document, directory, context.warn)
            return [data]
    return state_document.project_state(directory, context.warn).chunks()


def _write_part(context: CommandContext, row: EpisodeRow, flags: StateFlags) -> None:
    """Write a value of the document, its summary, or the document as a member of the envelope."""
    directory = row.directory
    segments = None if flags.path is None else _parse_path(flags.path)
    text = _text_of(context, row, flags)
    is_streamed = _has_parts_of_actions(context, segments) and _may_stream(text)
    if is_streamed and segments is not None:
        document = _read_action(text, directory, segments[2])
    else:
        leaves_out = is_streamed or (segments is not None and segments[:2] not in _TO_ACTIONS)
        document = _read_part(text, directory, leaves_out=leaves_out)
    if not flags.project:
        state_document.warn_of_renamed_folder(document, directory, context.warn)
    if segments is not None:
        _write_value(context, document, segments, row, flags)
    elif context.json:
        context.own["state"] = document
        if is_streamed:
            context.streamed = _streamed_actions(text)
    else:
        context.screen.answer_lines(_summary_lines(context, document, row))


def _text_of(
    context: CommandContext, row: EpisodeRow, flags: StateFlags
) -> DocumentText | StoredState:
    """Return the text of the document: the file, or the projection of the log."""
    directory = row.directory
    if _reads_file(row, flags) and state_document.has_file(directory, STATE):
        return StoredState(directory)
    return state_document.project_state(directory, context.warn)


def _has_parts_of_actions(context: CommandContext, segments: list[str] | None) -> bool:
    """Return whether the answer needs one action at a time: all in an envelope, or a part of one."""
    if segments is None:
        return context.json
    return len(segments) > 2 and segments[:2] == _ACTIONS


def _may_stream(text: DocumentText | StoredState) -> bool:
    """Return whether the document has so many actions that they are read one at a time, and its form allows that."""
    return text.size > _PARSED and has_our_actions(text.chunks())


def _streamed_actions(text: DocumentText | StoredState) -> StreamedList:
    """Return the actions of a document as a list that is read while it is written."""
    return StreamedList(("state", "outcomes", "actions"), lambda: iterate_actions(text.chunks()))


def _read_part(text: DocumentText | StoredState, directory: Path, *, leaves_out: bool) -> Json:
    """Return the document, without the actions of a long run if they are left out."""
    if leaves_out and text.size > _PARSED:
        return state_document.parse_state(leave_out_actions(text.chunks()), directory)
    return state_document.parse_state(text.to_bytes(), directory)


def _read_action(text: DocumentText | StoredState, directory: Path, segment: str) -> Json:
    """Return the document with one of its actions, and None instead of each other one."""
    document = _read_part(text, directory, leaves_out=True)
    is_number = segment.isascii() and segment.isdigit() and len(segment) < _LONGEST_NUMBER
    wanted = int(segment) if is_number else -1
    document["outcomes"]["actions"] = [
        action if number == wanted else None
        for number, action in enumerate(iterate_actions(text.chunks()))
    ]
    return document


_LONGEST_NUMBER: Final = 10
"""More digits than the number of an action has."""
_ACTIONS: Final = ["outcomes", "actions"]
_TO_ACTIONS: Final[tuple[list[str], ...]] = ([], ["outcomes"], _ACTIONS)
"""The beginnings of paths whose value contains actions."""


def _reads_file(row: EpisodeRow, flags: StateFlags) -> bool:
    """Return whether `state.json` is the document to show: it is the projection of the log.

    It is not if the run is alive or was interrupted (the file is a snapshot), or if a file was
    altered.
    """
    has_log = state_document.has_file(row.directory, EVENTS)
    is_other = has_log and (bool(row.fault) or row.status in ("running", "interrupted"))
    return not flags.project and not is_other


def _refuse_conflicts(flags: StateFlags) -> None:
    """Raise UsageError for flags that exclude each other."""
    if flags.check and (flags.project or flags.path is not None):
        raise wrong_flag("`--check` compares the whole file", "leave --path and --project out")
    if flags.default is not None and flags.path is None:
        raise wrong_flag("`--default` belongs to `--path`")


def _parse_path(path: str) -> list[str]:
    """Return the segments of a path. Raise UsageError."""
    try:
        return parse(path)
    except InvalidPath as error:
        what = f"`--path {path}`: {error.reason} at {error.position + 1}"
        raise wrong_value(what, expected='like outcomes.actions[0].tool or vars["a.b"]') from error


def _write_value(
    context: CommandContext, document: Json, segments: list[str], row: EpisodeRow, flags: StateFlags
) -> None:
    """Write the value at a path. Raise PathNotFoundError for a missing one."""
    try:
        value = state_document.find_value(document, segments, row.directory)
    except PathNotFound as error:
        if flags.default is None:
            raise _absent_path_error(error) from error
        value = flags.default
    context.own["value"] = value
    shown = (
        value if isinstance(value, str) and flags.format != "json" else dumps(value, indent=True)
    )
    context.answer((visible_block(shown) if context.screen.out.tty else shown) + "\n")


def _absent_path_error(error: Any) -> PathNotFoundError:
    """Return the error for a missing path, with similar names."""
    where = f"in `{error.before}`" if error.before else "in state.json"
    kind = "" if error.kind == "object" else f", a {error.kind}"
    what = f"no `{error.segment[:60]}` {where[:200]}{kind}"
    hint = suggest_path(
        error.segment, error.known, prefix=f"{error.before}." if error.before else ""
    )
    if not hint and error.known:
        hint = f"there is {', '.join(error.known[:12])}"
    return PathNotFoundError("path.absent", what, hint=hint)


def _check_document(context: CommandContext, directory: Path) -> int:
    """Compare `state.json` with the projection of the log, and return the exit code."""
    has_state = state_document.has_file(directory, STATE)
    if has_state and state_document.is_foreign(directory):
        return _check_foreign(context, directory)
    projected = state_document.project_state(directory, context.warn)
    count = sum(1 for _ in iterate_events(directory, context.warn))
    its_events = f"its {count_of(count, 'event')} {'projects' if count == 1 else 'project'}"
    if has_state and projected.equals(state_document.stored_chunks(directory)):
        good = f"state.json is what {its_events}, byte for byte"
        return _report_findings(context, [], good)
    stored = state_document.read_stored_state(directory)
    if stored is not None and (held := state_document.count_snapshot_events(directory, stored)):
        good = f"state.json is a snapshot: what the first {held} of {its_events}, byte for byte"
        return _report_findings(context, [], good)
    if stored is None:
        message = "there is no state.json yet: the run was not finalised"
    else:
        place = _first_difference(stored, projected.to_bytes(), directory)
        message = f"state.json is not what {its_events}: first difference at `{place}`"
    return _report_findings(
        context, [{"code": "state.differs", "file": "state.json", "message": message}]
    )


def _check_foreign(context: CommandContext, directory: Path) -> int:
    """Check a document of another tool, and return the exit code.

    Its bytes may differ from ours, so only the findings of `verify` make it fail.
    """
    from cogcli.app.verify_episodes import verify_episode

    found = [
        {"code": finding.code, "file": finding.file, "message": f"state.json: {finding.message}"}
        for finding in verify_episode(directory).findings
        if finding.file == "state.json" and finding.severity == "error"
    ]
    good = "state.json is another tool's: nothing that can be checked speaks against it"
    return _report_findings(context, found, good)


def _report_findings(
    context: CommandContext, findings: list[dict[str, str]], message: str = ""
) -> int:
    """Write the findings, or `message` without findings. The first finding becomes the error of the command."""
    context.own["findings"] = findings
    context.answer(
        visible_block("\n".join(finding["message"] for finding in findings) or message) + "\n"
    )
    return context.fail(findings[0]) if findings else OK


def _first_difference(stored: bytes, projected: bytes, directory: Path) -> str:
    """Return the path of the first difference between two documents."""
    try:
        left = state_document.parse_state(stored, directory)
    except CogcliError:
        return "its JSON"
    right = state_document.parse_state(projected, directory)
    return state_document.first_difference(left, right) or "its bytes, not its values"


def _summary_lines(context: CommandContext, document: Json, row: EpisodeRow) -> list[StyledLine]:
    """Return the lines of the summary."""
    glyphs, width = context.screen.out.glyphs, context.screen.out.width or 80
    state = read_record(_SummarizedState, document)
    decision = read_record(_DecisionPart, document.get("x-decision"))
    rows = {
        "episode": _episode_parts(state.episode),
        "plan": _plan_parts(state.plan),
        "outcomes": _outcome_parts(state.outcomes, _displayed_status(context, row)),
        "decision": _decision_parts(decision),
    }
    texts = {name: f" {glyphs.dot} ".join(parts) for name, parts in rows.items() if parts}
    marks = sorted(state_document.file_marks(row.directory), key=lambda mark: mark.good)
    texts["files"] = "  ".join(
        f"{name} {lines if name.endswith('l') else ''}".rstrip()
        + f" {glyphs.sign('done' if good else 'failed')}"
        for name, lines, good in marks
    )
    return [
        [(f"{name:<10}", "dim"), (truncate(visible(text), width - 10), "")]
        for name, text in texts.items()
    ]


class _SkillPart(Record):
    """The skill in `episode` of `state.json`."""

    id: object = None
    version: object = None


class _EpisodePart(Record):
    """The member `episode` of `state.json`."""

    id: object = None
    skill: _SkillPart | None = None
    seed: object = None
    tags: Json


class _StepPart(Record):
    """A step in `plan` of `state.json`."""

    status: object = None


class _PlanPart(Record):
    """The member `plan` of `state.json`."""

    source: object = None
    steps: list[_StepPart]


class _OutcomesPart(Record):
    """The member `outcomes` of `state.json`."""

    status: object = None
    actions: list[object]
    outputs: Json
    error: RunError


class _SummarizedState(Record):
    """The members of `state.json`, of any tool, that the summary displays."""

    episode: _EpisodePart
    plan: _PlanPart
    outcomes: _OutcomesPart


class _DecisionPart(Record):
    """The member `x-decision` of `state.json`."""

    status: object = None
    status_reason: object = None
    decision_key: object = None
    decision_id: object = None


def _episode_parts(episode: _EpisodePart) -> list[str]:
    parts = [short_episode(str(episode.id or ""))]
    if episode.skill is not None and episode.skill.json:
        parts.append(f"{episode.skill.id} {episode.skill.version}")
    parts.append(f"seed {episode.seed}")
    if episode.tags:
        parts.append(f"tags {' '.join(f'{name}={value}' for name, value in episode.tags.items())}")
    return parts


def _decision_parts(decision: _DecisionPart) -> list[str]:
    words = (
        decision.status,
        decision.status_reason,
        decision.decision_key,
        decision.decision_id,
    )
    return [str(word) for word in words if word]


def _plan_parts(plan: _PlanPart) -> list[str]:
    statuses = Counter(str(step.status) for step in plan.steps)
    words = ", ".join(f"{count} {status}" for status, count in statuses.items())
    total = count_of(statuses.total(), "step") + (f": {words}" if words else "")
    return [str(plan.source), total] if plan.source else [total]


_UNFINISHED = {
    "interrupted": "interrupted, not finalised",
    "stalled": "stalled, no sign of life",
    "altered": "altered",
    "unsealed": "ended, not sealed",
}


def _displayed_status(context: CommandContext, row: EpisodeRow) -> str:
    return "stalled" if row.is_stalled(context.settings.clock.now()) else row.shown_status


def _outcome_parts(outcomes: _OutcomesPart, status: str) -> list[str]:
    word = _UNFINISHED.get(status) or str(outcomes.status)
    parts = [word, count_of(len(outcomes.actions), "action")]
    if outcomes.outputs:
        parts.append(f"outputs {', '.join(outcomes.outputs)}")
    if error := error_text(outcomes.error):
        parts.append(error)
    return parts
