"""Conversations with a project's agents (docs/reference/user-memory.md#sessions)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from cogcli.agent.stores.agent_store import unknown_session
from cogcli.agent.stores.session_lock import session_lock
from cogcli.agent.stores.sessions import SessionSnapshot
from cogcli.agent.use_cases.user_memory import open_agent_store, require_id
from cogcli.app.settings import Settings
from cogcli.app.stores import has_store, store_directory
from cogcli.declarations.value_types import Json
from cogcli.stores import MEMORY


@contextmanager
def open_session(
    settings: Settings, tenant: str, user: str, session_id: str
) -> Iterator[SessionSnapshot]:
    """Lock a conversation for one run that continues it, and yield its stored snapshot.
    `consolidate` stores the new
    messages.

    Raise UsageError for an invalid id, UnusableEnvironment `session.busy` if another run holds the lock for ten
    seconds, and the errors of `Database`.
    """
    with hold_session(settings, tenant, user, session_id):
        with open_agent_store(settings) as store:
            snapshot = store.session(tenant, user, session_id)
        yield snapshot


def hold_session(
    settings: Settings, tenant: str, user: str, session_id: str
) -> AbstractContextManager[None]:
    """Return a context manager that holds the lock of a conversation. Raise the errors of `open_session`."""
    require_id(user, "the user")
    require_id(session_id, "the session")
    return session_lock(store_directory(settings) / MEMORY, tenant, user, session_id)


def list_sessions(
    settings: Settings, tenant: str | None = None, user: str | None = None
) -> list[Json]:
    """Return the conversations of one tenant and user, or of all, the last used first. Raise the errors of
    `Database`.
    """
    if not has_store(settings, MEMORY):
        return []
    with open_agent_store(settings) as store:
        return store.sessions(tenant, user)


def session_payload(settings: Settings, tenant: str, user: str, session_id: str) -> Json:
    """Return a conversation as JSON, each message with its number and episode. Raise UsageError
    `session.unknown`; the errors of `Database`.
    """
    _require_store(settings, tenant, user, session_id)
    with open_agent_store(settings) as store:
        found = store.session(tenant, user, session_id)
        messages = store.messages(tenant, user, session_id)
    if not found.version:
        raise unknown_session(tenant, user, session_id)
    named = {"session_id": session_id, "tenant_id": tenant, "user_id": user}
    members = {
        name: member
        for name, member in found.to_payload().items()
        if name not in ("kept", "version")
    }
    return {**named, **members, "messages": messages}


def forget_session(settings: Settings, tenant: str, user: str, session_id: str) -> int:
    """Delete a conversation without a live run, and return the number of its messages. Raise UsageError
    `session.unknown`, UnusableEnvironment `session.busy`; the errors of `Database`."""
    _require_store(settings, tenant, user, session_id)
    with hold_session(settings, tenant, user, session_id), open_agent_store(settings) as store:
        return store.forget_session(tenant, user, session_id)


def _require_store(settings: Settings, tenant: str, user: str, session_id: str) -> None:
    """Raise UsageError for a bad id, and `session.unknown` if no conversation was ever stored."""
    require_id(user, "the user")
    require_id(session_id, "the session")
    if not has_store(settings, MEMORY):
        raise unknown_session(tenant, user, session_id)
