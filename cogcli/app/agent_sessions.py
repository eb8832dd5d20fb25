"""Conversations with a project's agents (docs/reference/user-memory.md#sessions)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cogcli.app.agent_memory import open_agent_store, require_id
from cogcli.app.knowledge import store_directory
from cogcli.app.settings import Settings
from cogcli.stores.memory_store import FILE
from cogcli.stores.session_lock import session_lock
from cogcli.stores.sessions import SessionSnapshot


@contextmanager
def open_session(settings: Settings, tenant: str, user: str, session_id: str) -> Iterator[SessionSnapshot]:
    """A conversation as it is stored, for one run that goes on with it: nobody else is inside meanwhile. What the run
    adds is stored by `consolidate`. Raises UsageError for an id that is none; EnvironmentRefusal `session.busy` where
    another run is alive for ten seconds; as `Database`."""
    require_id(user, "the user")
    require_id(session_id, "the session")
    with session_lock(store_directory(settings) / FILE, tenant, user, session_id):
        with open_agent_store(settings) as store:
            snapshot = store.session(tenant, user, session_id)
        yield snapshot
