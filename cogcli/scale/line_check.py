"""Whether an episode is the user's own run of a line: nothing was altered, and it belongs to this batch, line, try and
input.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from cogcli.app.verify_episodes import verify_episode
from cogcli.declarations.events import RunStarted
from cogcli.declarations.reading import read_record
from cogcli.declarations.value_types import Json
from cogcli.episode.log_reader import iterate_events
from cogcli.episode.refusals import altered_error
from cogcli.episode.verify.check import VOUCHED
from cogcli.episode.verify.trusted import TrustAnchors
from cogcli.run.log_index import LogIndex
from cogcli.scale.claim import collision_error

_SAME: Final = ("batch", "line", "try", "input")


def require_signed_episode(directory: Path, trusted: TrustAnchors) -> None:
    """Raise UnusableEnvironment unless an episode is whole, unaltered, and a key of the user vouches for it."""
    verified = verify_episode(directory, trusted)
    if verified.level not in VOUCHED:
        fault = next(
            (each.message for each in verified.findings if each.severity == "error"),
            "no key of yours vouches for it",
        )
        raise altered_error(directory, fault)


def require_same_run(expected: Json, directory: Path, found: Json) -> None:
    """Raise UnusableEnvironment `batch.collision` if an episode is the run of another line, try or input."""
    if any(found.get(name) != expected[name] for name in _SAME):
        raise collision_error(directory, expected, found)


def read_started_tags(directory: Path) -> Json:
    """Return the tags in the first event of an episode, sealed or not."""
    started = LogIndex(iterate_events(directory)).started
    return {} if started is None else read_record(RunStarted, started.payload).tags
