"""What a project's agents remember of their users: the profile, consolidation at the end of a run, forgetting
(docs/reference/user-memory.md)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from cogcli.agent.profile import UserProfile
from cogcli.app.knowledge import has_store, store_directory
from cogcli.app.settings import Settings
from cogcli.core.errors import UsageError
from cogcli.stores.agent_store import AgentStore, Consolidated
from cogcli.stores.interactions import Interaction
from cogcli.stores.learned import entries_of, profile_from
from cogcli.stores.memory_store import FILE
from cogcli.stores.sessions import SessionSnapshot

_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")


def require_id(text: str, where: str) -> str:
    """The id of a user or a session. Raises UsageError for what is none."""
    if not _ID.fullmatch(text):
        expected = "1 to 64 letters, digits, `.`, `_`, `@` or `-`, the first a letter or a digit"
        raise UsageError("usage.value", f"{where}: found `{text[:60]}`", expected=expected)
    return text


@contextmanager
def open_agent_store(settings: Settings) -> Iterator[AgentStore]:
    """The memory of the project, made where there is none. Raises as `Database`."""
    store = AgentStore(store_directory(settings) / FILE)
    try:
        yield store
    finally:
        store.close()


def consolidate(
    settings: Settings,
    tenant: str,
    user: str,
    made: Interaction,
    *,
    counts: bool = True,
    session: SessionSnapshot | None = None,
) -> Consolidated:
    """Keep a run that has ended, in one transaction and once, however often it is resumed: as an interaction of its
    user with the jobs that it gives, unless it does not count (`read_only`), and what it added to its conversation,
    with the snapshot of `open_session` and the new messages behind the old ones. Raises as `Database`."""
    threshold = settings.value("agent.synthesis_threshold")
    with open_agent_store(settings) as store:
        return store.consolidate(tenant, user, made, counts=counts, session=session, threshold=threshold)


def profile_of(settings: Settings, tenant: str, user: str) -> UserProfile | None:
    """What is known of a user; None where nothing is. No store is made for that."""
    if not has_store(settings, FILE):
        return None
    with open_agent_store(settings) as store:
        counters, promoted = store.learned(tenant, user)
    entries = entries_of(promoted)
    return profile_from(user, entries, counters) if entries or counters.interaction_count else None


def profile_payload(settings: Settings, tenant: str, user: str) -> dict[str, Any]:
    """The profile of a user as JSON, with its `entries`: each member with its proposal, evidence and episodes, and who
    promoted it."""
    with open_agent_store(settings) as store:
        counters, promoted = store.learned(tenant, user)
        episodes = {each.run_id: each.episode_id for each in store.interactions(tenant, user)}
    entries = entries_of(promoted)
    rows = []
    for entry in entries:
        heads = (ref.partition("/")[0] for ref in entry.evidence_refs)
        named = [episodes.get(head, head) for head in heads]
        rows.append({**entry.to_payload(), "episodes": list(dict.fromkeys(named))})
    return {**profile_from(user, entries, counters).to_payload(), "tenant_id": tenant, "entries": rows}
