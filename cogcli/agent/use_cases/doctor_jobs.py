"""The check of `doctor` for failed learning jobs (docs/reference/user-memory.md#jobs)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from cogcli.app.checks.doctor_services import DoctorCheck
from cogcli.app.settings import Settings
from cogcli.app.stores import has_store
from cogcli.base.errors import UnusableEnvironment
from cogcli.stores import MEMORY

_SHOWN: Final = 5
_check = partial(DoctorCheck, "project", "jobs")


def job_checks(settings: Settings, *, net: bool) -> Iterator[DoctorCheck]:
    """Yield a check for jobs that failed permanently. Yield nothing without jobs, or for an
    untrusted project."""
    if settings.bound or not has_store(settings, MEMORY):
        return
    from cogcli.agent.use_cases.jobs import list_jobs  # only where an agent has left a store

    try:
        jobs = list_jobs(settings, all=True)
    except UnusableEnvironment as refusal:
        yield _check("error", refusal.message, fix=refusal.hint)
        return
    failed = [job for job in jobs if job["state"] == "failed"]
    details = tuple(
        f"{job['kind']} of {job['user_id']}: {job['error']}" for job in failed[-_SHOWN:]
    )
    if failed:
        yield _check("warning", f"{len(failed)} failed for good", details, "cogcli agent jobs ls")
    elif jobs:
        yield _check("ok", f"{sum(job['state'] != 'done' for job in jobs)} waiting")
