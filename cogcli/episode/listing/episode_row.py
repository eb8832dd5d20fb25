"""The row of an episode in a list, read without folding its log."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, BinaryIO, Final

from cogcli.base.canonical import text_from
from cogcli.base.files import UnreadableFile
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.strict_json import InvalidJson
from cogcli.declarations.agent_events import DecisionRecorded
from cogcli.declarations.checksum import Checksums
from cogcli.declarations.envelope import ActiveTime, Event, row_of
from cogcli.declarations.events import RunStarted, SkillRef, StateProjected
from cogcli.declarations.governance_events import ApprovalRequested
from cogcli.declarations.reading import read_record
from cogcli.declarations.run_start import RecordedPolicy, RecordedStart
from cogcli.declarations.shared_events import SharedEnd
from cogcli.declarations.shared_state import SharedState
from cogcli.declarations.summary_document import Summary
from cogcli.declarations.value_types import Json
from cogcli.episode.agreement import UNSEALED, LogScan, check_agreement, find_end
from cogcli.episode.blobs import parse
from cogcli.episode.document_bytes import duration_in, milliseconds_between, read_document
from cogcli.episode.folder import Folder
from cogcli.episode.foreign_words import is_foreign
from cogcli.episode.layout import (
    EVENTS,
    MANIFEST,
    OUTCOMES,
    STATE,
    SUMMARY,
    SUMMARY_SCHEMA,
    is_own_id,
    is_renamed,
)
from cogcli.episode.log_lines import is_foreign_line, parse_line
from cogcli.episode.log_reader import EventLog, event_of
from cogcli.episode.refusals import no_log_error, nothing_began_error, open_episode, unreadable

if TYPE_CHECKING:
    from pathlib import Path

_SUMMARY_LIMIT: Final = 64 * 1024 * 1024
_SHORT_TRACE: Final = re.compile(r"[0-9a-f]{8}")
_MISSING: Final = 3
"""The number of missing signs of life by which a run is stalled."""
_RESUMED: Final = b'"event_type":"run.resumed"'
_ENDS: Final = 256 * 1024
"""Bytes read from either end of a log; a longer first line is not parsed."""


class EpisodeRow(NamedTuple):
    """An episode in a list. `status` is the status that its log records: an outcome word, `running` or
    `interrupted`. `sealed` is whether it has a manifest.

    `duration_ms` is the summary's. Without a summary it is the active time from the first event to the last.
    """

    id: str
    place: str
    """Its directory as text."""
    skill: str | None
    status: str
    started_at: str | None
    duration_ms: int | float | None
    trace_id: str | None
    run_id: str | None
    task: str | None
    tags: Json
    sealed: bool
    log_id: str | None = None
    """The episode that summary or log name, if the folder bears the id of another one."""
    decision: str | None = None
    """The status of the decision of an agent's run; None of another run, and before there is one."""
    pack: str | None = None
    """The pack that an agent ran under, without its hash."""
    intent: str | None = None
    user: str | None = None
    heartbeat_ms: float | None = None
    """The heartbeat interval of a running agent in milliseconds. The index does not store it."""
    last_at: str | None = None
    """The time of the last event, with `heartbeat_ms`."""
    fault: str = ""
    """The first file that disagrees with the log or with the manifest, and how. Empty if all files agree."""

    @property
    def is_settled(self) -> bool:
        """Whether the row is valid until one of its files changes."""
        return False

    @property
    def directory(self) -> Path:
        """The directory of the episode, or its place in an archive."""
        from pathlib import Path  # a list of episodes never asks for it

        return Path(self.place)

    @property
    def shown_status(self) -> str:
        """The status for a screen: `altered` or `unsealed` if the files disagree, since `status` may then be false."""
        if not self.fault:
            return self.status
        return "unsealed" if self.fault == UNSEALED else "altered"

    def is_stalled(self, now: str) -> bool:
        """Return whether its process is alive, and three signs of life are missing."""
        if self.status != "running" or self.heartbeat_ms is None or self.last_at is None:
            return False
        return (milliseconds_between(self.last_at, now) or 0) > _MISSING * self.heartbeat_ms


class SealedRow(EpisodeRow):
    """The row of a sealed episode that cogcli wrote. It is valid until one of its files changes."""

    __slots__ = ()

    @property
    def is_settled(self) -> bool:
        return True


class EpisodeFilter(NamedTuple):
    """The filters of a list; an absent filter passes every episode. `since` is a timestamp, `outcomes` are words of
    `EpisodeRow.shown_status`."""

    skill: str | None = None
    outcomes: tuple[str, ...] = ()
    trace_id: str | None = None
    tags: tuple[tuple[str, str], ...] = ()
    since: str | None = None

    @property
    def may_be_short_trace_id(self) -> bool:
        """Whether the trace id may be the first 8 hex digits of one."""
        return self.trace_id is not None and _SHORT_TRACE.fullmatch(self.trace_id) is not None

    def fits(self, row: EpisodeRow) -> bool:
        """Return whether an episode passes all filters."""
        return (
            (self.skill is None or row.skill == self.skill)
            and (not self.outcomes or row.shown_status in self.outcomes)
            and (self.since is None or (row.started_at or "") >= self.since)
            and self._fits_trace(row)
            and self._fits_tags(row)
        )

    def _fits_tags(self, row: EpisodeRow) -> bool:
        return all(
            name in row.tags and text_from(row.tags[name]) == value for name, value in self.tags
        )

    def _fits_trace(self, row: EpisodeRow) -> bool:
        if self.trace_id is None or row.trace_id == self.trace_id:
            return True
        return (
            self.may_be_short_trace_id
            and row.trace_id is not None
            and row.trace_id[:8] == self.trace_id
        )


def read_row(
    directory: Path | str, owner: bytes | None = None, *, thorough: bool = True
) -> EpisodeRow:
    """Return the row of the episode in a directory; without a log from its `state.json` alone.

    Its files are compared with each other and, with the key of the `owner`, with the user's checkpoint. Unless
    `thorough`, blobs and long logs of unfinished runs are left out.

    Raise UnusableEnvironment `episode.unreadable` if there is neither log nor `state.json`.
    """
    with open_episode(directory) as folder:
        names = folder.entries().keys()
        if EVENTS not in names:
            return _without_log(folder, names)
        try:
            fault, log = check_agreement(folder, owner, thorough=thorough)
        except UnreadableFile as error:
            raise no_log_error(folder, error) from error
        if log.foreign or MANIFEST not in names:
            return _row_from_log(folder)._replace(fault=fault)
        return _read_sealed_row(folder, log, fault)


def _read_sealed_row(folder: Folder, log: LogScan, fault: str) -> EpisodeRow:
    """Return the row of a sealed episode: from its summary if that agrees with the log, else from the log."""
    summary = _row_from_summary(folder)
    if summary is not None and not fault:
        fault = _summary_fault(summary, log)
        if not fault:
            return summary
    row = _row_from_log(folder)
    if row.started_at is None and summary is not None:  # no line of the log can be read
        row = summary
    return SealedRow._make(row)._replace(fault=fault or f"{SUMMARY} cannot be read")


def _without_log(folder: Folder, names: Collection[str]) -> EpisodeRow:
    """Return the row of a directory without a log. The log is missing if the id has the form of
    cogcli's ids or there is a manifest."""
    if STATE not in names:
        return _row_from_log(folder)
    row = _row_from_state(folder)
    missing = MANIFEST in names or is_own_id(os.path.basename(folder.place))
    return row._replace(fault=f"{EVENTS} does not exist" if missing else "")


def _summary_fault(summary: EpisodeRow, log: LogScan) -> str:
    """Describe how a summary differs from the log. Empty if it does not."""
    end = find_end(log)
    if end is None:
        return f"{SUMMARY} exists, and the log has no end"
    begun = event_of(parse_line(log.first))
    status = _outcome_word(read_record(SharedEnd, end.payload).status)
    if summary.status != status:
        return f"{SUMMARY} says `{summary.status}`, the log `{status}`"
    recorded = {
        "started_at": begun.timestamp,
        "trace_id": begun.trace_id,
        "run_id": begun.run_id,
    }
    for name, value in recorded.items():
        if getattr(summary, name) != value:
            return f"{SUMMARY} has another `{name}` than the log"
    return ""


def _row_from_summary(folder: Folder) -> EpisodeRow | None:
    """Return the row from `summary.json`; None without a summary. A log of another tool is folded, regardless of its
    summary.
    """
    try:
        summary = read_record(Summary, parse(folder.read(SUMMARY, limit=_SUMMARY_LIMIT)))
    except (UnreadableFile, InvalidJson):
        return None
    if summary.schema_version != SUMMARY_SCHEMA or summary.status not in OUTCOMES:
        return None
    row = _first_row(folder, summary.episode_id, summary.status)._replace(
        skill=summary.skill.id if summary.skill else None,
        started_at=summary.started_at or None,
        duration_ms=summary.duration_ms,
        trace_id=summary.trace_id,
        run_id=summary.run_id,
        task=summary.task,
        tags=summary.tags,
    )
    if (decision := summary.decision) is not None:
        row = row._replace(
            decision=str(decision.status) or None,
            pack=_without_hash(decision.pack_ref),
            intent=decision.intent,
            user=decision.user_id,
        )
    return SealedRow._make(row)


def _row_from_log(folder: Folder) -> EpisodeRow:
    first, last, resumed = _ends_of_log(folder)
    if not first:
        return _first_row(folder, None, _status_from_events(folder, (), last))
    begun = first[0]
    if is_foreign(begun):
        return _row_from_foreign_log(folder, begun.episode_id)
    start = read_record(RunStarted, begun.payload)
    status = _status_from_events(folder, (None, begun.run_id), last)
    row = _first_row(folder, begun.episode_id, status)._replace(
        skill=start.skill.id or None,
        started_at=begun.timestamp,
        duration_ms=_active_ms(folder, begun, last, resumed=resumed),
        trace_id=begun.trace_id,
        run_id=begun.run_id,
        task=start.task,
        tags=start.tags,
    )
    return _add_agent(row, begun, last) if start.using == "agent" else row


def _active_ms(folder: Folder, begun: Event, last: list[Event], *, resumed: bool) -> int | None:
    """Return the active time of a run so far, in milliseconds. For a resumed run the whole log is read."""
    if not last or not resumed:
        return milliseconds_between(begun.timestamp, last[0].timestamp) if last else None
    active_time = ActiveTime()
    for _, event in EventLog(folder):
        active_time.apply(event)
    return active_time.milliseconds


def _row_from_foreign_log(folder: Folder, episode_id: str) -> EpisodeRow:
    """Return the row of another tool's log. The whole log is folded, since the members may be in any line."""
    from cogcli.episode.projection import Projection

    projection = Projection()
    for _, event in EventLog(folder):
        projection.apply(event)
    is_running = not projection.terminated and folder.is_locked(EVENTS)
    start, status = projection.start, "running" if is_running else projection.status
    return _first_row(folder, episode_id, status)._replace(
        skill=read_record(SkillRef, start.skill).id or None,
        started_at=projection.started_at,
        duration_ms=projection.duration_ms(),
        trace_id=projection.last.trace_id if projection.last else None,
        run_id=projection.root,
        task=projection.task(),
        tags=start.tags or {},
    )


def _row_from_state(folder: Folder) -> EpisodeRow:
    try:
        state = read_record(SharedState, read_document(folder, STATE))
    except (UnreadableFile, InvalidJson) as error:
        raise unreadable(folder.place, error.message, file=STATE) from error
    episode, outcomes = state.episode, state.outcomes
    skill = episode.skill
    return _first_row(folder, episode.id, _outcome_word(outcomes.status))._replace(
        skill=skill if isinstance(skill, str) else read_record(SkillRef, skill).id or None,
        started_at=episode.started_at or None,
        duration_ms=duration_in(outcomes.metrics),
        trace_id=episode.trace_id,
        run_id=episode.run_id,
        task=state.goal.task or None,
        tags=episode.tags or {},
    )


def _first_row(folder: Folder, episode_id: str | None, status: str) -> EpisodeRow:
    """Return the row of a folder before the members of its files. `episode_id` is the episode that its files name."""
    name = os.path.basename(folder.place)
    return EpisodeRow(
        id=name,
        place=folder.place,
        skill=None,
        status=status,
        started_at=None,
        duration_ms=None,
        trace_id=None,
        run_id=None,
        task=None,
        tags={},
        sealed=folder.holds(MANIFEST),
        log_id=episode_id if is_renamed(name, episode_id) else None,
    )


def _add_agent(row: EpisodeRow, begun: Event, last: list[Event]) -> EpisodeRow:
    """Return the row of an unsealed agent's run, with its decision as the summary will have it and its last sign
    of life.
    """
    start = read_record(RecordedStart, begun.payload)
    policy = start.policy or RecordedPolicy()
    row = row._replace(
        decision=_decision_status(row.status, last),
        pack=_without_hash(policy.pack or None),
        intent=policy.intent or None,
        user=policy.user or None,
    )
    if not last or _is_pause(last[0]):  # it waits for a person
        return row
    heartbeat = start.agent.limits.get("heartbeat_ms") if start.agent else None
    return row._replace(
        heartbeat_ms=heartbeat if row.status == "running" else None, last_at=last[0].timestamp
    )


def _decision_status(status: str, last: list[Event]) -> str | None:
    """Return the status of the decision that the last events record, or that they wait for."""
    for event in last:
        if event.event_type == DecisionRecorded.event.name:
            return read_record(DecisionRecorded, event.payload).status or None
    if status != "pending":
        return None
    for event in last:
        if row_of(event.event_type).asks:
            kind = read_record(ApprovalRequested, event.payload).kind
            return "escalated" if kind == "escalation" else "pending_approval"
    return "pending_approval"


def _without_hash(pack: str | None) -> str | None:
    return None if pack is None else pack.partition("#sha256:")[0]


def _outcome_word(word: object) -> str:
    return word if type(word) is str and word in OUTCOMES else "error"


def _status_from_events(folder: Folder, root: tuple[str | None, ...], last: list[Event]) -> str:
    """Return the status according to the last events, newest first. An empty `root` means any run."""
    for event in last:
        if event.phase == "terminate" and (not root or event.run_id in root):
            return _outcome_word(read_record(SharedEnd, event.payload).status)
    if folder.is_locked(EVENTS):
        return "running"
    return "pending" if last and _is_pause(last[0]) else "interrupted"


def _is_pause(last: Event) -> bool:
    """Return whether this last event pauses a waiting run, so that its `state.json` is not a snapshot."""
    if not row_of(last.event_type).projected:
        return False
    return not read_record(StateProjected, last.payload).snapshot


class _Ends(NamedTuple):
    """The ends of a log: its first event, its last events with the newest first, and whether any event resumes
    the run.

    Unreadable lines are skipped.
    """

    first: list[Event]
    last: list[Event]
    resumed: bool


def _ends_of_log(folder: Folder) -> _Ends:
    """Read the ends of a log. Raise UnusableEnvironment if it cannot be read."""
    try:
        file = folder.open_reader(EVENTS)
    except UnreadableFile as error:
        if error.reason == "missing" and nothing_began_error(folder):
            return _Ends([], [], resumed=False)
        raise no_log_error(folder, error) from error
    try:
        with file:
            size = file.seek(0, os.SEEK_END)
            start = _read_part(file, _ENDS, 0)
            offset = max(0, size - _ENDS)
            end = _read_part(file, _ENDS, offset) if offset else start
            resumed = _RESUMED in end or any(
                _RESUMED in _read_part(file, _ENDS + len(_RESUMED), at)
                for at in range(0, offset, _ENDS)
            )
    except OSError as error:
        raise unreadable(folder.place, f"cannot be read: {error.strerror}", file=EVENTS) from error
    return _parse_ends(start, end, resumed=resumed, whole=not offset)


def _read_part(file: BinaryIO, size: int, offset: int) -> bytes:
    file.seek(offset)
    return file.read(size)


def _parse_ends(start: bytes, end: bytes, *, resumed: bool, whole: bool) -> _Ends:
    """Parse the first and the last bytes of a log. `whole`: both are the entire log."""
    lines = end.split(b"\n")[0 if whole else 1 :]
    # Without a line end, these bytes are a part of one long line.
    rest = lines.pop() if lines else b""
    first, newline, _ = start.partition(b"\n")
    if rest and is_foreign_line(first) and is_foreign_line(rest):
        lines.append(rest)
        newline = b"\n"
    return _Ends(_parse_events([first] if newline else []), _parse_events(reversed(lines)), resumed)


def _parse_events(lines: Iterable[bytes]) -> list[Event]:
    events = []
    for line in lines:
        with suppress(InvalidJson):
            value = parse_line(line)
            if Checksums().problem(line, value) is None:
                events.append(event_of(value))
    return events
