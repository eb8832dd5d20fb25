"""The check of `doctor` for what agents could not learn (docs/reference/user-memory.md#jobs)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from cogcli.app.agent_jobs import list_jobs
from cogcli.app.checks.doctor_services import DoctorCheck
from cogcli.app.settings import Settings
from cogcli.core.errors import EnvironmentRefusal

_SHOWN: Final = 5
_check = partial(DoctorCheck, "project", "jobs")


def job_checks(settings: Settings) -> Iterator[DoctorCheck]:
    """The jobs that failed for good; nothing where no agent left any."""
    try:
        jobs = list_jobs(settings, all=True)
    except EnvironmentRefusal as refusal:
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
