"""One line about an episode, without folding its log: for lists and for finding one among many."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

from cogcli.base.files import FileRefused
from cogcli.base.jsonvalue import object_of
from cogcli.base.strict_json import JsonRefused
from cogcli.declarations.checksum import Checksums
from cogcli.declarations.envelope import ActiveTime, Event
from cogcli.declarations.events import row_of
from cogcli.episode.agreement import UNSEALED, LogScan, check_agreement, find_end
from cogcli.episode.blobs import parse
from cogcli.episode.document_bytes import milliseconds_between, read_document
from cogcli.episode.folder import Folder, read_at
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

_SUMMARY_LIMIT: Final = 64 * 1024 * 1024
_SHORT_TRACE: Final = re.compile(r"[0-9a-f]{8}")
_OF_DECISION: Final = {
    "decision": "status",
    "pack": "pack_ref",
    "intent": "intent",
    "user": "user_id",
}
"""Members of a row -> those of the decision in a summary."""
_OF_START: Final = {"started_at": "timestamp", "trace_id": "trace_id", "run_id": "run_id"}
"""Members of a row -> those of the first event."""
_MISSING: Final = 3
"""So many signs of life are missing of a run that is stalled."""
_RESUMED: Final = b'"event_type":"run.resumed"'
_ENDS: Final = 256 * 1024
"""Bytes read from either end of a log; a longer first line is not looked into."""


class EpisodeRow(NamedTuple):
    """An episode in a list. `status` is the status that its log records: an outcome word, `running` or `interrupted`.
    `sealed`: it has a manifest.

    `duration_ms` is that of the summary; as long as there is none, from the first event to the last, without the time
    between the sittings of a run that was resumed.
    """

    id: str
    directory: Path
    skill: str | None
    status: str
    started_at: str | None
    duration_ms: int | float | None
    trace_id: str | None
    run_id: str | None
    task: str | None
    tags: dict[str, Any]
    sealed: bool
    log_id: str | None = None
    """The episode that summary or log say this is, where the folder bears another one's id."""
    decision: str | None = None
    """The status of the decision of an agent's run; None of another run, and before there is one."""
    pack: str | None = None
    """The pack that an agent ran under, without its hash."""
    intent: str | None = None
    user: str | None = None
    heartbeat_ms: int | None = None
    """Of an agent's run that goes on: how often it gives a sign of life. The index does not hold it."""
    last_at: str | None = None
    """With `heartbeat_ms`: when the last event was written."""
    fault: str = ""
    """The first file that disagrees with the log or with the manifest, and how; empty if all files agree."""

    @property
    def shown_status(self) -> str:
        """The status that a screen shows. If the files disagree it is `altered` or `unsealed`: then `status` is not
        known to be true."""
        if not self.fault:
            return self.status
        return "unsealed" if self.fault == UNSEALED else "altered"

    def is_stalled(self, now: str) -> bool:
        """Whether three signs of life are missing: its process is there, and nothing comes from it."""
        if self.status != "running" or self.heartbeat_ms is None or self.last_at is None:
            return False
        return (milliseconds_between(self.last_at, now) or 0) > _MISSING * self.heartbeat_ms


class SealedRow(EpisodeRow):
    """The row of a sealed episode of ours. It stays true as long as none of its files changes."""

    __slots__ = ()


class EpisodeFilter(NamedTuple):
    """What is wanted of a list of episodes; an absent filter passes all. `since` is a timestamp, `outcomes` are words
    of `EpisodeRow.shown_status`."""

    skill: str | None = None
    outcomes: tuple[str, ...] = ()
    trace_id: str | None = None
    tags: tuple[tuple[str, str], ...] = ()
    since: str | None = None

    @property
    def short_trace(self) -> bool:
        """Whether the trace id may be the first 8 hex digits of one."""
        return self.trace_id is not None and _SHORT_TRACE.fullmatch(self.trace_id) is not None

    def fits(self, row: EpisodeRow) -> bool:
        """Whether an episode passes all filters."""
        trace_id = row.trace_id[:8] if row.trace_id and self.short_trace else row.trace_id
        return (
            (self.skill is None or row.skill == self.skill)
            and (not self.outcomes or row.shown_status in self.outcomes)
            and (self.trace_id is None or self.trace_id in (row.trace_id, trace_id))
            and (self.since is None or (row.started_at or "") >= self.since)
            and all(
                name in row.tags and tag_text(row.tags[name]) == value for name, value in self.tags
            )
        )


def tag_text(value: Any) -> str:
    """A tag's value as filters compare it: text as it is, another tool's other value as JSON."""
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def read_row(directory: Path, owner: bytes | None = None, *, thorough: bool = True) -> EpisodeRow:
    """The row of the episode in a directory; without a log from its `state.json` alone.

    Its files are compared with each other and, with the key of the `owner`, with what the user's checkpoint vouches
    for. Unless `thorough`, blobs and long logs of unfinished runs are not.

    Raises EnvironmentRefusal `episode.unreadable` where there is neither log nor `state.json`.
    """
    with open_episode(directory) as folder:
        names = folder.entries().keys()
        if EVENTS not in names:
            return _without_log(folder, names)
        try:
            fault, log = check_agreement(folder, owner, thorough=thorough)
        except FileRefused as error:
            raise no_log_error(folder, error) from error
        if MANIFEST not in names:
            return _from_log(folder)._replace(fault=fault)
        summary = None if log.foreign else _from_summary(folder)
        if summary is not None and not fault:
            fault = _summary_fault(summary, log)
            if not fault:
                return summary
        row = _from_log(folder)
        if log.foreign:
            return row._replace(fault=fault)
        if row.started_at is None and summary is not None:  # nothing of the log can be read
            row = summary
        return SealedRow._make(row)._replace(fault=fault or f"{SUMMARY} cannot be read")


def _without_log(folder: Folder, names: Collection[str]) -> EpisodeRow:
    """The row of a directory without a log. One of ours always has a log, and so has one whose manifest names it."""
    if STATE not in names:
        return _from_log(folder)
    row = _from_state(folder)
    missing = MANIFEST in names or is_own_id(folder.path.name)
    return row._replace(fault=f"{EVENTS} does not exist" if missing else "")


def _summary_fault(summary: EpisodeRow, log: LogScan) -> str:
    """What a summary says otherwise than the log."""
    end = find_end(log)
    if end is None:
        return f"{SUMMARY} exists, and the log has no end"
    begun = parse_line(log.first)
    status = _outcome(object_of(end.get("payload")).get("status"))
    if summary.status != status:
        return f"{SUMMARY} says `{summary.status}`, the log `{status}`"
    recorded = {name: begun.get(key) for name, key in _OF_START.items()}
    for name, value in recorded.items():
        if getattr(summary, name) != value:
            return f"{SUMMARY} has another `{name}` than the log"
    return ""


def _from_summary(folder: Folder) -> EpisodeRow | None:
    try:
        summary = parse(folder.read(SUMMARY, limit=_SUMMARY_LIMIT))
    except (FileRefused, JsonRefused):
        return None
    if type(summary) is not dict or summary.get("schema_version") != SUMMARY_SCHEMA:
        return None  # another tool's: the projection of its log counts, here as everywhere
    if summary.get("status") not in OUTCOMES:
        return None
    summary["skill"] = object_of(summary.get("skill"))
    return SealedRow(**_members(folder, summary.get("episode_id"), summary["status"], summary))


def _from_log(folder: Folder) -> EpisodeRow:
    first, last, resumed = _ends_of_log(folder)
    if not first:
        return EpisodeRow(**_members(folder, None, _status(folder, (), last), {}))
    begun = first[0]
    if is_foreign(begun):
        return _from_foreign_log(folder, begun.episode_id)
    facts = {
        **object_of(begun.payload),
        "started_at": begun.timestamp,
        "duration_ms": _active_ms(folder, begun, last, resumed=resumed),
        "trace_id": begun.trace_id,
        "run_id": begun.run_id,
    }
    facts["skill"] = object_of(facts.get("skill"))
    status = _status(folder, (None, begun.run_id), last)
    if facts.get("using") == "agent":
        facts["decision"] = _open_decision(object_of(facts.get("policy")), status, last)
        limits = object_of(object_of(facts.get("agent")).get("limits"))
        if last and not _is_pause(last[0]):  # else it waits for a person
            facts["heartbeat_ms"], facts["last_at"] = limits.get("heartbeat_ms"), last[0].timestamp
    return EpisodeRow(**_members(folder, begun.episode_id, status, facts))


def _active_ms(folder: Folder, begun: Event, last: list[Event], *, resumed: bool) -> int | None:
    """How long a run took so far; one that was resumed the sum of its sittings, as far as its log can be read."""
    if not last or not resumed:
        return milliseconds_between(begun.timestamp, last[0].timestamp) if last else None
    sittings = ActiveTime()
    for _, event in EventLog(folder):
        sittings.apply(event)
    return sittings.milliseconds


def _from_foreign_log(folder: Folder, episode_id: str) -> EpisodeRow:
    """Another tool's log is folded: what the row needs may be anywhere in it."""
    from cogcli.episode.projection import Projection

    projection = Projection()
    for _, event in EventLog(folder):
        projection.apply(event)
    is_running = not projection.terminated and folder.is_locked(EVENTS)
    facts = {
        **projection.start_payload,
        "started_at": projection.started_at,
        "duration_ms": projection.duration_ms(),
        "trace_id": projection.last.trace_id if projection.last else None,
        "run_id": projection.root,
        "task": projection.task(),
    }
    return EpisodeRow(
        **_members(folder, episode_id, "running" if is_running else projection.status, facts)
    )


def _from_state(folder: Folder) -> EpisodeRow:
    try:
        state = object_of(read_document(folder, STATE))
    except (FileRefused, JsonRefused) as error:
        raise unreadable(folder.path, error.message, file=STATE) from error
    episode, goal, outcomes = (object_of(state.get(key)) for key in ("episode", "goal", "outcomes"))
    duration = object_of(outcomes.get("metrics")).get("duration_ms")
    facts = {**episode, "duration_ms": duration, "task": goal.get("task")}
    return EpisodeRow(
        **_members(folder, episode.get("id"), _outcome(outcomes.get("status")), facts)
    )


def _members(folder: Folder, episode_id: Any, status: str, facts: dict[str, Any]) -> dict[str, Any]:
    """The members of a row, by what one of the files says; `episode_id`: the episode that it names."""
    skill, duration = facts.get("skill"), facts.get("duration_ms")
    if type(skill) is dict:
        skill = skill.get("id")
    decision, heartbeat = object_of(facts.get("decision")), facts.get("heartbeat_ms")
    texts = {name: facts.get(name) for name in ("started_at", "trace_id", "run_id", "task")}
    texts |= {name: decision.get(key) for name, key in _OF_DECISION.items()}
    if type(texts["pack"]) is str:
        texts["pack"] = texts["pack"].partition("#sha256:")[0]
    return {
        "id": folder.path.name,
        "directory": folder.path,
        "skill": skill if type(skill) is str else None,
        "status": status,
        **{name: text if type(text) is str else None for name, text in texts.items()},
        "duration_ms": duration if type(duration) in (int, float) else None,
        "tags": object_of(facts.get("tags")),
        "sealed": folder.holds(MANIFEST),
        "heartbeat_ms": heartbeat if type(heartbeat) is int and status == "running" else None,
        "last_at": facts.get("last_at"),
        "log_id": episode_id if is_renamed(folder.path.name, episode_id) else None,
    }


def _open_decision(policy: dict[str, Any], status: str, last: list[Event]) -> dict[str, Any]:
    """The decision of an agent's run that is not sealed, as its summary will have it."""
    recorded = next((event for event in last if event.event_type == "decision.recorded"), None)
    word = object_of(recorded.payload).get("status") if recorded else None
    if recorded is None and status == "pending":
        asked = next(
            (object_of(event.payload) for event in last if row_of(event.event_type).asks), {}
        )
        word = "escalated" if asked.get("kind") == "escalation" else "pending_approval"
    return {
        "status": word,
        "pack_ref": policy.get("pack"),
        "intent": policy.get("intent"),
        "user_id": policy.get("user"),
    }


def _outcome(word: Any) -> str:
    return word if type(word) is str and word in OUTCOMES else "error"


def _status(folder: Folder, root: tuple[str | None, ...], last: list[Event]) -> str:
    """The status by the last events, of which the newest end counts; of any run where `root` is empty."""
    for event in last:
        if event.phase == "terminate" and (not root or event.run_id in root):
            return _outcome(object_of(event.payload).get("status"))
    if folder.is_locked(EVENTS):
        return "running"
    return "pending" if last and _is_pause(last[0]) else "interrupted"


def _is_pause(last: Event) -> bool:
    """Whether a log that ends with this event is that of a run that waits: its `state.json` is no snapshot."""
    return row_of(last.event_type).projected and object_of(last.payload).get("snapshot") is not True


class _Ends(NamedTuple):
    """What a row needs of a log: its first event, the last ones with the newest first, and whether any resumes it.
    Lines that cannot be read are passed over."""

    first: list[Event]
    last: list[Event]
    resumed: bool


def _ends_of_log(folder: Folder) -> _Ends:
    """The ends of a log. Raises EnvironmentRefusal for one that cannot be read."""
    try:
        fd = folder.open_file(EVENTS)
    except FileRefused as error:
        if error.reason == "missing" and nothing_began_error(folder):
            return _Ends([], [], resumed=False)
        raise no_log_error(folder, error) from error
    try:
        size = os.fstat(fd).st_size
        start = read_at(fd, _ENDS, 0)
        offset = max(0, size - _ENDS)
        end = read_at(fd, _ENDS, offset) if offset else start
        resumed = _RESUMED in end or any(
            _RESUMED in read_at(fd, _ENDS + len(_RESUMED), at) for at in range(0, offset, _ENDS)
        )
    except OSError as error:
        raise unreadable(folder.path, f"cannot be read: {error.strerror}", file=EVENTS) from error
    finally:
        os.close(fd)
    lines = end.split(b"\n")[1 if offset else 0 :]
    # Without a line end, what was read is a part of one long line.
    rest = lines.pop() if lines else b""
    first, newline, _ = start.partition(b"\n")
    if rest and is_foreign_line(first) and is_foreign_line(rest):
        lines.append(rest)
        newline = b"\n"
    return _Ends(_events([first] if newline else []), _events(reversed(lines)), resumed)


def _events(lines: Iterable[bytes]) -> list[Event]:
    events = []
    for line in lines:
        with suppress(JsonRefused):
            value = parse_line(line)
            if Checksums().problem(line, value) is None:
                events.append(event_of(value))
    return events
