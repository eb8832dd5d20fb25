"""The earlier runs of a session, and what they know of a call (docs/reference/gateway.md#repeats).

1. A call that may have happened in an earlier run is not made again in a later one, until a person has decided.
2. A call with an idempotency key has the result that the last run recorded for the key.
3. Secrets are masked in a log. A masked argument may stand for any value, so it equals every value.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from cogcli.app.episodes import find, list_episodes
from cogcli.app.settings import Settings
from cogcli.base.errors import (
    CogcliError,
    EffectInDoubtError,
    RejectedError,
)
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.redact import MASK
from cogcli.base.step_path import StepPath
from cogcli.declarations.call_records import error_from_payload
from cogcli.declarations.envelope import Event, row_of
from cogcli.declarations.events import StepFinished
from cogcli.declarations.session_events import CallRequested
from cogcli.episode.layout import EVENTS
from cogcli.episode.listing.episode_row import EpisodeFilter, EpisodeRow
from cogcli.episode.log_reader import iterate_events
from cogcli.gateway.calls import CallResult, CallTicket
from cogcli.gateway.tool_specs import SKILL
from cogcli.run.log_index import LogIndex

_SESSIONS: Final = EpisodeFilter(skill=SKILL)
_UNDECIDED: Final = ("pending", "interrupted", "running")
"""The states of runs whose calls may be in doubt, or in flight."""


def task_of_session(name: str) -> str:
    """Return the task of the runs of a session, by which a list of episodes finds them."""
    return f"session {name}" if name else "session of a gateway"


class _RecordedRun(NamedTuple):
    """The calls in the log of an earlier run."""

    episode_id: str
    directory: Path
    size: int
    """The size of the log when it was read."""
    doubts: dict[str, CallRequested]
    """The calls that may have happened, by step."""
    keyed: dict[str, tuple[CallRequested, CallResult]]
    """The calls that have ended, by idempotency key."""


class EarlierRuns:
    """The earlier runs of one session, oldest first."""

    def __init__(self, settings: Settings, name: str) -> None:
        """`name` is the name of the session. Without one it has only the runs of this process."""
        self._settings = settings
        self._name = name
        self._runs: dict[str, _RecordedRun] = {}
        self._was_searched = False

    def load(self, last_episode: str) -> str:
        """Read the runs that are not yet read, and return the id of the run that the next one continues. `last_episode`
        is the last run of this process, or empty. Raise UnusableEnvironment `episode.unreadable`, because unknown calls
        must not be repeated.
        """
        if last_episode:
            self._read_run(last_episode, find(self._settings, last_episode))
            return last_episode
        if self._was_searched or not self._name:
            return ""
        rows = self._find_rows()
        last = next((row for row in rows if row.shown_status != "running"), None)
        for row in reversed(rows):
            if row is last or row.shown_status in _UNDECIDED:
                self._read_run(row.id, row.directory)
        self._was_searched = True
        return last.id if last else ""

    def _find_rows(self) -> list[EpisodeRow]:
        """Return the runs with the name of the session, newest first."""
        task = task_of_session(self._name)
        return [row for row in list_episodes(self._settings, _SESSIONS, None) if row.task == task]

    def _read_run(self, episode_id: str, directory: Path) -> None:
        size = _size_of_log(directory)
        events = list(iterate_events(directory))
        self._runs[episode_id] = _RecordedRun(
            episode_id, directory, size, _find_doubts(events), _find_keyed(events)
        )

    def find_ticket(self, call: CallRequested) -> CallTicket | None:
        """Return a ticket with the result of an equal call in an earlier run. Return None if the call may be made.
        Raise RejectedError for a key that another call has used.
        """
        for run in list(self._runs.values()):
            known = self._find_doubt(run, call) or _find_result(run, call)
            if known is not None:
                ticket = CallTicket(f"earlier:{run.episode_id}:{known.step_id}")
                ticket.episode_id, ticket.step_id = run.episode_id, known.step_id
                ticket.on_end(known)
                return ticket
        return None

    def _find_doubt(self, run: _RecordedRun, call: CallRequested) -> CallResult | None:
        """Return the result in doubt of an equal call of a run. Read the log again if it has grown since."""
        if not _find_equal(run.doubts, call):
            return None
        if _size_of_log(run.directory) != run.size:
            self._read_run(run.episode_id, run.directory)
            run = self._runs[run.episode_id]
        step = _find_equal(run.doubts, call)
        if not step:
            return None
        text = f"`{call.tool}` may have happened: it was cut off in {run.episode_id}"
        return CallResult(step, "pending", error=EffectInDoubtError("effect.in-doubt", text))


def _size_of_log(directory: Path) -> int:
    """Return the size of a log; -1 if it is not there as a file."""
    try:
        return os.stat(directory / EVENTS).st_size
    except OSError:
        return -1


def _find_doubts(events: list[Event]) -> dict[str, CallRequested]:
    """Return the calls whose effect may have happened, and about which no person has decided."""
    log = LogIndex(events)
    steps = {StepPath(each.step_id or "").first().partition("@")[0] for each in log.open_doubts}
    return {step: call for step, call in _find_calls(events).items() if step in steps}


def _find_keyed(events: list[Event]) -> dict[str, tuple[CallRequested, CallResult]]:
    """Return the calls with an idempotency key that have ended, by key. A call that was cut off before it was made
    is left out: it may be made.
    """
    calls = {step: call for step, call in _find_calls(events).items() if call.key is not None}
    found = {}
    for event in events:
        call = calls.get(event.step_id or "")
        if call is None or not row_of(event.event_type).closes:
            continue
        result = _result_from_closing_event(event)
        if result.status != "skipped":
            found[call.key or ""] = (call, result)
    return found


def _find_calls(events: list[Event]) -> dict[str, CallRequested]:
    """Return the calls of a log by step."""
    found = (
        CallRequested.of(event.payload)
        for event in events
        if event.event_type == CallRequested.event.name
    )
    return {call.step_id: call for call in found}


def _result_from_closing_event(event: Event) -> CallResult:
    """Return the end of a call as its closing event records it."""
    ended = StepFinished.of(event.payload)
    error: CogcliError | None = error_from_payload(ended.error.json) if ended.error else None
    return CallResult(
        ended.step_id, ended.step_status, ended.output, error, ended.detail or ended.reason or ""
    )


def _find_result(run: _RecordedRun, call: CallRequested) -> CallResult | None:
    """Return the result that a run recorded for the key of a call."""
    known = run.keyed.get(call.key) if call.key is not None else None
    if known is None:
        return None
    if not _is_same(known[0], call):
        text = "this idempotency key came with another call"
        raise RejectedError("call.rejected", text, left=False)
    return known[1]


def _find_equal(calls: dict[str, CallRequested], call: CallRequested) -> str:
    """Return the step of an equal call; empty if no call is equal."""
    return next((step for step, each in calls.items() if _is_same(each, call)), "")


def _is_same(recorded_call: CallRequested, call: CallRequested) -> bool:
    return recorded_call.tool == call.tool and may_equal(recorded_call.input, call.input)


def may_equal(recorded_value: object, given: object) -> bool:
    """Return whether a recorded value may equal a value. A masked text may be any value."""
    if isinstance(recorded_value, str) and MASK in recorded_value:
        return True
    if isinstance(recorded_value, dict) and isinstance(given, dict):
        return recorded_value.keys() == given.keys() and all(
            may_equal(value, given[name]) for name, value in recorded_value.items()
        )
    if isinstance(recorded_value, list) and isinstance(given, list):
        return len(recorded_value) == len(given) and all(map(may_equal, recorded_value, given))
    return type(recorded_value) is type(given) and recorded_value == given
