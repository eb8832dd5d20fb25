"""The queue of what is to be learned of users, worked on after answers and by hand
(docs/reference/user-memory.md#jobs)."""

from __future__ import annotations

from typing import Any, NamedTuple

from cogcli.app.settings import Settings
from cogcli.models.port import LanguageModel


class WorkedJob(NamedTuple):
    """What became of a job: `done`, `queued` (it failed and is tried again), `failed` for good, `given_back` (no time
    was left), `lost` (another process took it over) or `forgotten` (its user was)."""

    job: dict[str, Any]
    outcome: str
    error: str = ""
    proposal_ids: tuple[str, ...] = ()


def work_jobs(
    settings: Settings,
    model: LanguageModel | None = None,
    *,
    limit: int | None = None,
    grace_s: float | None = None,
) -> list[WorkedJob]:
    """Work on jobs, the oldest first, at most so many and so long; without a model by folding. What is not done then
    stays in the queue. Raises as `Database`."""
    return []
