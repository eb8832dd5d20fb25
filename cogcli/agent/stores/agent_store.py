"""The data of agents about their users in `memory.db`, except proposals: interactions, conversations, jobs
(docs/reference/user-memory.md).

1. Each change is one transaction. A row that was read outside of it is written only over the same version, in at most
   three tries.
2. Each statement names tenant and user. Only the queue of jobs is shared.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from cogcli.agent.context.inputs import PromotedMemory
from cogcli.agent.context.memory import session_entity
from cogcli.agent.learning import THRESHOLD, is_synthesis_due
from cogcli.agent.profile import UserProfile
from cogcli.agent.stores import jobs, sessions
from cogcli.agent.stores.interactions import (
    Interaction,
    insert_interaction,
    read_counters,
    read_interactions,
)
from cogcli.agent.stores.learned import ProfileEntry, fold_learned
from cogcli.agent.stores.memory_rows import VERSIONS, StoredProposal
from cogcli.agent.stores.memory_store import read_proposals, store_proposal
from cogcli.agent.stores.sessions import SessionSnapshot, VersionChanged
from cogcli.agent.stores.user_data import all_rows, forget_about, forget_in, forget_in_copies
from cogcli.base.errors import UnusableEnvironment, UsageError
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.pack_spec import MemoryLayer
from cogcli.declarations.value_types import Json
from cogcli.policy.proposals import MemoryProposal
from cogcli.stores.database import Database

_TRIES: Final = 3


class ConsolidationResult(NamedTuple):
    """The result of storing a run. `n` is its number among the user's interactions, or 0 if it is not an
    interaction. `is_new` is whether it was not stored before.
    """

    n: int = 0
    job_ids: tuple[str, ...] = ()
    is_new: bool = True


class AgentStore:
    """The memory of a project, as agents use it. `Database` documents the errors of opening and using it."""

    def __init__(self, path: Path) -> None:
        self._database = Database(path, VERSIONS)

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    # -- the end of a run ----------------------------------------------------------------------------------------------

    def consolidate(
        self,
        tenant_id: str,
        user_id: str,
        made: Interaction,
        *,
        counts: bool = True,
        session: SessionSnapshot | None = None,
        threshold: int = THRESHOLD,
    ) -> ConsolidationResult:
        """Store a run in one transaction: an interaction with its jobs, if `counts`, and its messages. This is
        idempotent.

        Raise UnusableEnvironment `memory.busy` if other processes keep writing or changing the conversation.
        """
        for _ in range(_TRIES):
            with suppress(VersionChanged):
                return self._consolidate_interaction(
                    tenant_id, user_id, made, counts, session, threshold
                )
            if session is not None:
                session = session.rebased_on(self.session(tenant_id, user_id, session.session_id))
        text = f"{self._database.path}: a conversation was changed by others {_TRIES} times"
        raise UnusableEnvironment("memory.busy", text, hint="try again")

    def _consolidate_interaction(
        self,
        tenant_id: str,
        user_id: str,
        made: Interaction,
        counts: bool,
        session: SessionSnapshot | None,
        threshold: int,
    ) -> ConsolidationResult:
        at = made.at
        with self._database.writing() as connection:
            known = connection.execute(
                "SELECT n FROM interaction WHERE tenant_id = ? AND user_id = ? AND run_id = ? UNION ALL SELECT 0 FROM"
                " message WHERE tenant_id = ? AND user_id = ? AND run_id = ?",
                (tenant_id, user_id, made.run_id) * 2,
            ).fetchone()
            if known:
                return ConsolidationResult(known[0], is_new=False)
            if session is not None:
                named = {"run_id": made.run_id, "episode_id": made.episode_id, "at": at}
                sessions.write_session(connection, tenant_id, user_id, session, **named)
            if not counts:
                return ConsolidationResult()
            n = insert_interaction(connection, tenant_id, user_id, made).n
            due = is_synthesis_due(
                n, made.iterations, made.calls, read_only=not counts, threshold=threshold
            )
            extract = made.may_be_learned_from
            ids = jobs.enqueue(
                connection, tenant_id, user_id, n, at=at, extract=extract, synthesize=due
            )
            return ConsolidationResult(n, tuple(ids))

    # -- a user --------------------------------------------------------------------------------------------------------

    def profile(
        self,
        tenant_id: str,
        user_id: str,
        counts: Callable[[PromotedMemory], bool] = lambda memory: True,
    ) -> tuple[UserProfile, list[ProfileEntry]]:
        """Return the profile of a user from the promoted memory that `counts` accepts, and the proposal of each
        entry.
        """
        with self._database.reading() as connection:
            found = read_proposals(connection, tenant_id, states=("promoted",), user_id=user_id)
            counters = read_counters(connection, tenant_id, user_id)
        return fold_learned(user_id, (each for each in found if counts(each.to_memory())), counters)

    def interactions(
        self, tenant_id: str, user_id: str, from_n: int = 1, to_n: int = 2**53
    ) -> list[Interaction]:
        """Return the interactions of a user with these numbers, in order."""
        with self._database.reading() as connection:
            return list(read_interactions(connection, tenant_id, user_id, from_n, to_n))

    def export(self, tenant_id: str, user_id: str) -> dict[str, list[Json]]:
        """Return all rows of a user by table."""
        with self._database.reading() as connection:
            return all_rows(connection, tenant_id, user_id)

    def forget(self, tenant_id: str, user_id: str) -> dict[str, int]:
        """Delete all data of a user in one transaction, from the file, its log and its copies. Return the row
        counts by table.
        """
        forget_in_copies(self._database.path, tenant_id, user_id)
        return forget_in(self._database, tenant_id, user_id)

    # -- conversations -------------------------------------------------------------------------------------------------

    def session(self, tenant_id: str, user_id: str, session_id: str) -> SessionSnapshot:
        """Return a conversation; an empty one if none is stored."""
        with self._database.reading() as connection:
            return sessions.read_session(connection, tenant_id, user_id, session_id)

    def messages(self, tenant_id: str, user_id: str, session_id: str) -> list[Json]:
        """Return the messages of a conversation with their numbers, runs and episodes."""
        with self._database.reading() as connection:
            return sessions.read_messages(connection, tenant_id, user_id, session_id)

    def sessions(self, tenant_id: str | None = None, user_id: str | None = None) -> list[Json]:
        """Return the conversations of a tenant, or of all, the last used first."""
        with self._database.reading() as connection:
            return sessions.list_sessions(connection, tenant_id, user_id)

    def forget_session(self, tenant_id: str, user_id: str, session_id: str) -> int:
        """Delete a conversation and its working memory from this file, and return the number of its messages. Raise
        UsageError `session.unknown`."""
        with self._database.writing() as connection:
            count = sessions.delete_session(connection, tenant_id, user_id, session_id)
            forget_about(connection, tenant_id, user_id, session_entity(session_id))
        if count < 0:
            raise unknown_session(tenant_id, user_id, session_id)
        self._database.rewrite()
        return count

    # -- jobs ----------------------------------------------------------------------------------------------------------

    def lease(self, *, now: str, until: str, passed: Collection[str] = ()) -> jobs.Job | None:
        """Lease the next job; None if the queue has no job."""
        with self._database.writing() as connection:
            return jobs.lease(connection, now=now, until=until, passed=passed)

    def finish(
        self,
        job: jobs.Job,
        proposals: Iterable[MemoryProposal],
        layer: MemoryLayer,
        *,
        at: str,
        transcript: Json,
    ) -> str:
        """Store the result of a job once, and return `done`.

        Store nothing and return `lost` if another worker took the job over, or `forgotten` if its user was
        forgotten.
        """
        with self._database.writing() as connection:
            if not jobs.close(connection, job, "done", transcript=transcript):
                return "lost" if jobs.job_exists(connection, job) else "forgotten"
            for proposal in proposals:
                id = proposal.id_for(job.tenant_id, job.user_id)
                stored = StoredProposal(id, job.tenant_id, job.user_id, proposal)
                store_proposal(connection, stored, layer, again=job.kind == "extract")
            connection.execute(
                "UPDATE profile SET last_updated = max(last_updated, ?), synthesis_version = synthesis_version + ?,"
                " version = version + 1 WHERE tenant_id = ? AND user_id = ?",
                (at, job.kind == "synthesize", job.tenant_id, job.user_id),
            )
        return "done"

    def fail(self, job: jobs.Job, error: str, transcript: Json) -> str:
        """Record a failed attempt. Return the new state of the job, or `lost`."""
        state = "failed" if job.attempts >= jobs.MAX_FAILURES else "queued"
        with self._database.writing() as connection:
            done = jobs.close(connection, job, state, error=error, transcript=transcript)
        return state if done else "lost"

    def requeue(self, job: jobs.Job) -> None:
        """Return a job to the queue."""
        with self._database.writing() as connection:
            jobs.requeue(connection, job)

    def jobs(
        self,
        tenant_id: str | None,
        user_id: str | None = None,
        states: Collection[str] = jobs.STATES,
    ) -> list[jobs.Job]:
        """Return the jobs in these states, the oldest first. Without a tenant, return the jobs of
        all tenants."""
        with self._database.reading() as connection:
            return jobs.list_jobs(connection, tenant_id, user_id, states)


def unknown_session(tenant_id: str, user_id: str, session_id: str) -> UsageError:
    """Return the error for an unknown conversation."""
    tenant = "" if tenant_id == "local" else f" --tenant={tenant_id}"
    return UsageError(
        "session.unknown",
        f"no session `{session_id}` of user `{user_id}` in tenant `{tenant_id}`",
        next=(f"cogcli agent sessions ls{tenant}",),
    )
