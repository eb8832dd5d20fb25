"""The memory of a project's agents about their users: profile, storing of ended runs, forgetting
(docs/reference/user-memory.md)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cogcli.agent.context.inputs import User
from cogcli.agent.context.memory import fault_of
from cogcli.agent.profile import UserProfile
from cogcli.agent.stores.agent_store import AgentStore, ConsolidationResult
from cogcli.agent.stores.interactions import Interaction
from cogcli.agent.stores.learned import ProfileEntry
from cogcli.agent.stores.sessions import SessionSnapshot
from cogcli.app.episodes import store_of
from cogcli.app.settings import Settings
from cogcli.app.stores import has_store, store_directory
from cogcli.base.errors import UsageError
from cogcli.declarations.pack_spec import MemoryLayer
from cogcli.declarations.value_types import Json
from cogcli.specs.id_grammar import USER_ID_WORDS, is_user_id
from cogcli.stores import MEMORY


def require_id(text: str, where: str) -> str:
    """Return the id of a user or a session. Raise UsageError for any other text."""
    if not is_user_id(text):
        raise UsageError("usage.value", f"{where}: found `{text[:60]}`", expected=USER_ID_WORDS)
    return text


def _require_user(settings: Settings, tenant: str, user: str) -> None:
    """Raise UsageError for an invalid id of a user, unless an earlier version stored data under it."""
    if is_user_id(user):
        return
    if has_store(settings, MEMORY):
        with open_agent_store(settings) as store:
            if any(store.export(tenant, user).values()):
                return
    require_id(user, "the user")


@contextmanager
def open_agent_store(settings: Settings) -> Iterator[AgentStore]:
    """Open the memory of the project or of the user, and create it if necessary. Raise the errors of `Database`."""
    store = AgentStore(store_directory(settings) / MEMORY)
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
) -> ConsolidationResult:
    """Store an ended run in one transaction. This is idempotent, also for a resumed run.

    The run becomes an interaction of its user with its jobs, unless `counts` is false (`read_only`). Its new
    messages follow those of the snapshot of `open_session`. Raise the errors of `Database`.
    """
    threshold = settings.value("agent.synthesis_threshold")
    with open_agent_store(settings) as store:
        return store.consolidate(
            tenant, user, made, counts=counts, session=session, threshold=threshold
        )


def profile_of(
    settings: Settings, tenant: str, user: User, layer: MemoryLayer
) -> UserProfile | None:
    """Return the user's profile for a request, from memory that the user consents to and the pack recalls. None for an
    unknown user. A missing store is not created. Raise the errors of `Database`.
    """
    if not has_store(settings, MEMORY):
        return None
    with open_agent_store(settings) as store:
        now = settings.clock.now()
        profile, entries = store.profile(
            tenant, user.user_id, lambda memory: not fault_of(memory, layer, user, tenant, now)
        )
    return profile if entries or profile.interaction_count else None


def profile_payload(settings: Settings, tenant: str, user: str) -> Json:
    """Return the profile of a user as JSON, with its `entries`: each member with its proposal, evidence, episodes
    and decision. Raise the errors of `_require_user`.
    """
    _require_user(settings, tenant, user)
    if not has_store(settings, MEMORY):
        return {**UserProfile(user).to_payload(), "tenant_id": tenant, "entries": []}
    with open_agent_store(settings) as store:
        profile, entries = store.profile(tenant, user)
        episodes = {each.run_id: each.episode_id for each in store.interactions(tenant, user)}
    rows = [_entry_payload(entry, episodes) for entry in entries]
    return {**profile.to_payload(), "tenant_id": tenant, "entries": rows}


def export_payload(settings: Settings, tenant: str, user: str) -> Json:
    """Return all data of a user: the profile, and the rows of each table. Raise UsageError; the errors of
    `Database`.
    """
    profile = profile_payload(settings, tenant, user)
    tables: dict[str, list[Json]] = {}
    if has_store(settings, MEMORY):
        with open_agent_store(settings) as store:
            tables = store.export(tenant, user)
    return {"tenant_id": tenant, "user_id": user, "profile": profile, "tables": tables}


def forget(settings: Settings, tenant: str, user: str) -> Json:
    """Delete all data of a user. Return the deleted rows by table, and the episodes that still name the user. Raise
    `memory.busy` while others read the old state, and the errors of `Database` and `_require_user`."""
    _require_user(settings, tenant, user)
    deleted: dict[str, int] = {}
    if has_store(settings, MEMORY):
        with open_agent_store(settings) as store:
            deleted = store.forget(tenant, user)
    episodes = [row.id for row in store_of(settings).episode_rows() if row.user == user]
    return {"tenant_id": tenant, "user_id": user, "deleted": deleted, "episodes": episodes}


def _entry_payload(entry: ProfileEntry, episodes: dict[str, str]) -> Json:
    """Return an entry with its proposal. `episodes` maps a run id to its episode id."""
    stored, refs = entry.stored, entry.stored.proposal.evidence_refs
    heads = (ref.partition("/")[0] for ref in refs)
    return {
        "field": entry.field,
        "name": entry.name,
        "value": entry.value,
        "proposal_id": stored.proposal_id,
        "evidence_refs": list(refs),
        "episodes": list(dict.fromkeys(episodes.get(head, head) for head in heads)),
        "decided_by": stored.decided_by,
        "decided_at": stored.decided_at,
    }
