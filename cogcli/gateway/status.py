"""`gateway status`: the sessions of gateways, with counts of their calls, from their logs."""

from __future__ import annotations

from collections.abc import Callable

from cogcli.app.episodes import list_episodes
from cogcli.app.settings import Settings
from cogcli.base.errors import CogcliError
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.envelope import Event, row_of
from cogcli.declarations.events import StepFinished
from cogcli.declarations.reading import read_record
from cogcli.declarations.run_start import start_of
from cogcli.declarations.session_events import CallRequested
from cogcli.declarations.value_types import Json
from cogcli.episode.listing.episode_row import EpisodeFilter, EpisodeRow
from cogcli.episode.log_reader import iterate_events
from cogcli.gateway.tool_specs import SKILL
from cogcli.run.log_index import LogIndex

_SESSIONS = EpisodeFilter(skill=SKILL)


class SessionStatus(NamedTuple):
    """One session: its episode, its name, and the counts of its calls."""

    episode_id: str
    session: str
    status: str
    started_at: str
    calls: int
    done: int
    denied: int
    """Calls that a rule, a gate, a budget or a person vetoed."""
    failed: int
    pending: int
    """Open requests for approval."""
    in_doubt: int
    continues: str = ""
    """The episode of the sealed run that it continues."""
    shadow: bool = False
    """Whether no rule of its pack was enforced."""

    def to_payload(self) -> Json:
        """Return the entry in the envelope."""
        return self._asdict()


def list_sessions(
    settings: Settings, limit: int | None, warn: Callable[[CogcliError], None]
) -> list[SessionStatus]:
    """Return the sessions of the runs directory, newest first. `warn` gets the errors of unreadable logs."""
    found = []
    for row in list_episodes(settings, _SESSIONS, limit):
        try:
            found.append(_read_status(row))
        except CogcliError as error:
            warn(error)
    return found


def _read_status(row: EpisodeRow) -> SessionStatus:
    events = list(iterate_events(row.directory))
    log = LogIndex(events)
    endings = [_ending_of(event) for event in events if row_of(event.event_type).closes]
    start = start_of(log.started) if log.started else None
    gateway = start.gateway if start else None
    is_open = row.shown_status in ("running", "pending", "interrupted")
    return SessionStatus(
        row.id,
        gateway.session if gateway else "",
        row.shown_status,
        row.started_at or "",
        sum(event.event_type == CallRequested.event.name for event in events),
        endings.count("done"),
        endings.count("vetoed"),
        endings.count("failed"),
        len(log.open_requests) if is_open else 0,
        len(log.open_doubts) if row.shown_status != "running" else 0,
        gateway.continues if gateway else "",
        bool(start and start.policy and start.policy.shadow),
    )


def _ending_of(event: Event) -> str:
    """Return the status of a call that an event ends. Empty for a gate inside of a call."""
    return (
        "" if "@" in (event.step_id or "") else read_record(StepFinished, event.payload).step_status
    )
