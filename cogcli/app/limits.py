"""The counters of cumulative limits of a project, and what the logs of other episodes say of their reservations
(docs/reference/limits.md#store)."""

from __future__ import annotations

import hashlib
import os
from functools import partial
from pathlib import Path

from cogcli.app.settings import Settings
from cogcli.app.settings.user_dirs import state_home
from cogcli.app.stores import store_directory
from cogcli.base.errors import CogcliError
from cogcli.episode.folder import Folder
from cogcli.episode.layout import EVENTS, is_own_id
from cogcli.policy.limits import CallAttempt
from cogcli.run.log_index_reading import read_log_index
from cogcli.specs.catalog import Catalog
from cogcli.stores import LIMITS
from cogcli.stores.limit_store import LimitStore


def open_limits(settings: Settings) -> LimitStore:
    """Return the counters of the project if it is trusted, otherwise of the user."""
    return limits_in(store_directory(settings), state_home(settings.environ), settings.runs_dir)


def limits_in(directory: Path, state_dir: str, runs_dir: str) -> LimitStore:
    """Return the counters of a directory of stores. One anchor is next to them, one in the state directory."""
    path = directory / LIMITS
    name = hashlib.sha256(os.fsencode(path)).hexdigest()[:32]
    anchors = (path.with_suffix("") / "anchor", Path(state_dir, "limits", name))
    return LimitStore(path, anchors, partial(_is_unsent, runs_dir))


def _is_unsent(runs_dir: str, attempt: CallAttempt) -> bool:
    """Return whether the log of an episode shows that an attempt was not made, and never will be.

    An episode that runs, is elsewhere or cannot be read shows nothing.
    """
    if not is_own_id(attempt.episode_id):
        return False
    directory = Path(runs_dir, attempt.episode_id)
    try:
        with Folder.open(directory) as folder:
            if not folder.holds(EVENTS) or folder.is_locked(EVENTS):
                return False
        _, log = read_log_index(directory)
    except (CogcliError, OSError):
        return False
    return log.did_not_leave(attempt)


def find_ledger_id(settings: Settings, catalog: Catalog) -> str:
    """Return the id of the counters that runs over a catalog use. Empty if its packs have no limits."""
    if not any(pack.policy.limits for pack in catalog.packs.values()):
        return ""
    return open_limits(settings).read_id()
