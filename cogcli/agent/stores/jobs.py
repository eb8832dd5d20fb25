"""The queue of learning jobs: leased to one worker, done once (docs/reference/user-memory.md#jobs)."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Final

import orjson

from cogcli.base.canonical import compact, digest_of
from cogcli.base.jsonvalue import object_of
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.value_types import Json

if TYPE_CHECKING:
    import sqlite3

KINDS: Final = ("extract", "synthesize")
STATES: Final = ("queued", "leased", "done", "failed")
MAX_FAILURES: Final = 5
"""The number of attempts after which a job has failed for good."""
_COLUMNS: Final = (
    "job_id", "tenant_id", "user_id", "kind", "from_n", "to_n", "state", "attempts", "lease_until", "error",
    "transcript", "created_at", "version",
)  # fmt: skip
_SELECT: Final = f"SELECT {', '.join(_COLUMNS)} FROM job"  # noqa: S608  # names of ours
_OPEN: Final = (
    _SELECT  # noqa: S608
    + " WHERE (state = 'queued' OR (state = 'leased' AND lease_until <= ?)) AND NOT EXISTS (SELECT 1 FROM job AS"
    " earlier WHERE earlier.tenant_id = job.tenant_id AND earlier.user_id = job.user_id AND earlier.state IN ('queued',"
    " 'leased') AND (earlier.to_n, earlier.kind) < (job.to_n, job.kind)) ORDER BY created_at, to_n, kind, job_id"
)


class Job(NamedTuple):
    """A learning job over a user's interactions number `from_n` to `to_n`.

    `state` is one of STATES. `error` is the error of the last attempt. `transcript` contains the request and the reply
    of a model.
    """

    job_id: str
    tenant_id: str
    user_id: str
    kind: str
    from_n: int
    to_n: int
    state: str
    attempts: int
    lease_until: str
    error: str
    transcript: Json
    created_at: str
    version: int

    def to_payload(self) -> Json:
        """Return the job as JSON."""
        members = self._asdict()
        del members["version"]
        return members


def job_id_of(tenant_id: str, user_id: str, kind: str, from_n: int, to_n: int) -> str:
    """Return the id of a job, which is equal for equal work."""
    named = [tenant_id, user_id, kind, from_n, to_n]
    return f"jb_{digest_of(named).removeprefix('sha256:')[:16]}"


def enqueue(
    connection: sqlite3.Connection,
    tenant_id: str,
    user_id: str,
    n: int,
    *,
    at: str,
    extract: bool,
    synthesize: bool,
) -> list[str]:
    """Queue the jobs of interaction number `n` and return their ids. A synthesis covers all interactions since the
    last one."""
    (last,) = connection.execute(
        "SELECT coalesce(max(to_n), 0) FROM job WHERE tenant_id = ? AND user_id = ? AND kind = 'synthesize'",
        (tenant_id, user_id),
    ).fetchone()
    wanted = [("extract", n)] if extract else []
    wanted += [("synthesize", last + 1)] if synthesize else []
    ids = []
    for kind, from_n in wanted:
        ids.append(job_id_of(tenant_id, user_id, kind, from_n, n))
        connection.execute(
            "INSERT OR IGNORE INTO job VALUES (?, ?, ?, ?, ?, ?, 'queued', 0, '', '', '{}', ?, 1)",
            (ids[-1], tenant_id, user_id, kind, from_n, n, at),
        )
    return ids


def lease(
    connection: sqlite3.Connection, *, now: str, until: str, passed: Collection[str] = ()
) -> Job | None:
    """Lease the oldest job that has no lease and no earlier open job of its user, or return None.

    Jobs in `passed` are skipped. A job whose workers died five times has failed.
    """
    for row in connection.execute(_OPEN, (now,)).fetchall():
        job = _parse_job(row)
        if job.job_id in passed:
            continue
        if job.attempts >= MAX_FAILURES:
            _update_if_unchanged(
                connection,
                job,
                state="failed",
                lease_until="",
                error=job.error or "its workers ended",
            )
            continue
        taken = job._replace(state="leased", attempts=job.attempts + 1, lease_until=until)
        if _update_if_unchanged(
            connection, job, state=taken.state, attempts=taken.attempts, lease_until=until
        ):
            return taken._replace(version=job.version + 1)
    return None


def close(
    connection: sqlite3.Connection,
    job: Job,
    state: str,
    *,
    error: str = "",
    transcript: Json,
) -> bool:
    """End the lease of a job. Return False if another worker has it now."""
    text = compact(transcript).decode()
    return _update_if_unchanged(
        connection, job, state=state, lease_until="", error=error, transcript=text
    )


def requeue(connection: sqlite3.Connection, job: Job) -> None:
    """Return an interrupted job to the queue by ending its lease."""
    _update_if_unchanged(connection, job, state="queued", lease_until="", attempts=job.attempts - 1)


def job_exists(connection: sqlite3.Connection, job: Job) -> bool:
    """Return whether the job still exists, since its user may have been forgotten."""
    row = connection.execute(
        "SELECT 1 FROM job WHERE tenant_id = ? AND user_id = ? AND job_id = ?",
        (job.tenant_id, job.user_id, job.job_id),
    ).fetchone()
    return row is not None


def list_jobs(
    connection: sqlite3.Connection,
    tenant_id: str | None = None,
    user_id: str | None = None,
    states: Collection[str] = STATES,
) -> list[Job]:
    """Return the jobs in these states, the oldest first. Without a tenant or a user, return the
    jobs of all."""
    rows = connection.execute(
        f"{_SELECT} WHERE (? IS NULL OR tenant_id = ?) AND (? IS NULL OR user_id = ?) AND state IN"
        f" ({', '.join('?' * len(states))}) ORDER BY created_at, to_n, kind, job_id",
        (tenant_id, tenant_id, user_id, user_id, *states),
    )
    return [_parse_job(row) for row in rows]


def _update_if_unchanged(connection: sqlite3.Connection, job: Job, **values: object) -> bool:
    """Change a job if its version is still the one that was read. Return whether it was changed."""
    names = ", ".join(f"{name} = ?" for name in values)
    done = connection.execute(
        f"UPDATE job SET {names}, version = version + 1 WHERE tenant_id = ? AND user_id = ? AND job_id = ?"  # noqa: S608
        " AND version = ? AND lease_until = ?",
        (*values.values(), job.tenant_id, job.user_id, job.job_id, job.version, job.lease_until),
    )
    return bool(done.rowcount)


def _parse_job(row: tuple[Any, ...]) -> Job:
    members = dict(zip(_COLUMNS, row, strict=True))
    return Job(**{**members, "transcript": object_of(orjson.loads(members["transcript"]))})
