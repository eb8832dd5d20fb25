"""The learning jobs, done after answers and by a command (docs/reference/user-memory.md#jobs)."""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import datetime, timedelta
from threading import Timer
from typing import Final

from cogcli.agent.job_prompts import ANSWER_TOKENS, build_extract_prompt, build_synthesis_prompt
from cogcli.agent.learning import LearnedStatements, fold_interactions, parse_learned
from cogcli.agent.models.port import LanguageModel, ModelError, ModelRequest, TokenUsage
from cogcli.agent.profile import UserProfile
from cogcli.agent.reply_text import ReplyProblem
from cogcli.agent.sections import Prompt
from cogcli.agent.stores.agent_store import AgentStore
from cogcli.agent.stores.interactions import Interaction
from cogcli.agent.stores.jobs import STATES, Job
from cogcli.agent.stores.learned import proposals_from
from cogcli.agent.use_cases.language_model import model_of
from cogcli.agent.use_cases.user_memory import open_agent_store
from cogcli.app.settings import Settings
from cogcli.app.stores import has_store
from cogcli.base.calls import Cancellation
from cogcli.base.errors import CogcliError
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.pack_spec import MemoryLayer
from cogcli.declarations.value_types import Json
from cogcli.stores import MEMORY

NEXT_JOBS: Final = 3
"""The number of jobs that a command of an agent does after its own work."""
_LEASE_SECONDS: Final = 120
_MODEL_SECONDS: Final = 60.0
_RECENT: Final = 100
"""The number of newest interactions in a synthesis without a model."""
_BY_MODEL, _BY_CODE = 0.5, 1.0
"""The confidence of statements from a model, and from a fold."""


class JobResult(NamedTuple):
    """The outcome of a job. `done`, `queued` (failed, to be repeated) or `failed` (finally).

    Also `given_back` (no time was left), `lost` (another process has the job) or `forgotten` (its user was forgotten).
    """

    job: Job
    outcome: str
    error: str = ""
    proposal_ids: tuple[str, ...] = ()

    def to_payload(self) -> Json:
        """Return the outcome as JSON."""
        return {
            **{
                name: getattr(self.job, name) for name in ("job_id", "tenant_id", "user_id", "kind")
            },
            "from_n": self.job.from_n,
            "to_n": self.job.to_n,
            "outcome": self.outcome,
            "error": self.error or None,
            "proposals": list(self.proposal_ids),
        }


class _UnusableReply(Exception):
    """Raised with the transcript if the model returned no usable reply."""

    def __init__(self, error: str, transcript: Json) -> None:
        super().__init__(error)
        self.transcript = transcript


def work_jobs(
    settings: Settings,
    model: LanguageModel | None = None,
    *,
    limit: int | None = None,
    grace_s: float | None = None,
) -> list[JobResult]:
    """Do jobs within these limits, the oldest first. Without a model, learn by folding. Other jobs remain queued. Raise
    the errors of `Database`.
    """
    if not has_store(settings, MEMORY):
        return []
    deadline = None if grace_s is None else time.monotonic() + grace_s
    worked: list[JobResult] = []
    with open_agent_store(settings) as store:
        worker = _Worker(settings, store, model, deadline)
        while (limit is None or len(worked) < limit) and not worker.is_late:
            now = settings.clock.now()
            passed = [each.job.job_id for each in worked]
            job = store.lease(now=now, until=_add_seconds(now, _LEASE_SECONDS), passed=passed)
            if job is None:
                break
            worked.append(worker.work(job))
    return worked


def work_after_answer(
    settings: Settings, model: str = "", *, limit: int | None = None
) -> list[JobResult]:
    """Do jobs after the answer of a command, with the given or the configured model, for at most `synthesis_grace_s`
    seconds. Never raise, since the exit code is already decided. A later command retries failed jobs.
    """
    with suppress(CogcliError):
        grace = settings.value("agent.synthesis_grace_s")
        if grace and any(job["state"] != "failed" for job in list_jobs(settings)):
            return work_jobs(settings, model_of(settings, model), limit=limit, grace_s=grace)
    return []


def run_jobs(settings: Settings, model: str, *, limit: int | None = None) -> list[JobResult]:
    """Do jobs with the given or the configured model. Raise the errors of `model_of` and `Database`."""
    return work_jobs(settings, model_of(settings, model), limit=limit)


def list_jobs(
    settings: Settings, tenant: str | None = None, user: str | None = None, *, all: bool = False
) -> list[Json]:
    """Return the waiting and failed jobs, the oldest first; with `all` also the done ones. Raise the errors of
    `Database`.
    """
    if not has_store(settings, MEMORY):
        return []
    states = STATES if all else tuple(state for state in STATES if state != "done")
    with open_agent_store(settings) as store:
        return [job.to_payload() for job in store.jobs(tenant, user, states)]


class _Worker:
    """Works on one job at a time, until a deadline of the monotonic clock."""

    def __init__(
        self,
        settings: Settings,
        store: AgentStore,
        model: LanguageModel | None,
        deadline: float | None,
    ) -> None:
        self._settings, self._store, self._model, self._deadline = settings, store, model, deadline

    @property
    def is_late(self) -> bool:
        """Whether no time remains."""
        return self._deadline is not None and time.monotonic() >= self._deadline

    def work(self, job: Job) -> JobResult:
        """Do a job. If it is interrupted, return it to the queue."""
        is_closed = False
        try:
            made = self._do_job(job)
            is_closed = made.outcome != "given_back"
            return made
        finally:
            if not is_closed:
                self._store.requeue(job)

    def _do_job(self, job: Job) -> JobResult:
        profile, _ = self._store.profile(job.tenant_id, job.user_id)
        of = self._readable_interactions(job, job.from_n)
        if not of:  # all were forgotten or refused
            return JobResult(job, self._store.finish(job, [], MemoryLayer(), at="", transcript={}))
        try:
            learned, transcript = self._learn_statements(job, profile, of)
        except _UnusableReply as error:
            if self.is_late and "reply" not in error.transcript:
                return JobResult(job, "given_back")
            return JobResult(job, self._store.fail(job, str(error), error.transcript), str(error))
        confidence = _BY_MODEL if self._model else _BY_CODE
        at = self._settings.clock.now()
        proposals = proposals_from(
            learned.statements, job.user_id, of, confidence=confidence, at=at
        )
        is_auto = self._settings.value("agent.profile") == "auto"
        layer = of[-1].rules if is_auto else MemoryLayer()
        outcome = self._store.finish(job, proposals, layer, at=at, transcript=transcript)
        ids = (
            [each.id_for(job.tenant_id, job.user_id) for each in proposals]
            if outcome == "done"
            else []
        )
        return JobResult(job, outcome, proposal_ids=tuple(ids))

    def _readable_interactions(self, job: Job, from_n: int) -> list[Interaction]:
        """Return the interactions of a job's user that a model may read, from this number on."""
        found = self._store.interactions(job.tenant_id, job.user_id, from_n, job.to_n)
        return [each for each in found if each.may_be_learned_from]

    def _learn_statements(
        self, job: Job, profile: UserProfile, of: list[Interaction]
    ) -> tuple[LearnedStatements, Json]:
        """Return the statements of a job about its user, and the transcript. Raise _UnusableReply."""
        if self._model is None:
            if job.kind == "synthesize":
                from_n = max(1, job.to_n - _RECENT + 1)
                of = self._readable_interactions(job, from_n)
            learned = fold_interactions(profile, map(_interaction_payload, of))
            asked_before = {
                name: job.transcript[name] for name in ("usage",) if name in job.transcript
            }
            return learned, {"model": "template", "notes": list(learned.notes), **asked_before}
        seen = [_interaction_payload(each) for each in of]
        prompt = (
            build_extract_prompt(seen[0])
            if job.kind == "extract"
            else build_synthesis_prompt(profile, seen)
        )
        return self._ask_model(self._model, job, profile, prompt)

    def _ask_model(
        self,
        model: LanguageModel,
        job: Job,
        profile: UserProfile,
        prompt: Prompt,
    ) -> tuple[LearnedStatements, Json]:
        """Return the statements of a model after one request."""
        left = _MODEL_SECONDS
        if self._deadline is not None:
            left = max(0.001, min(left, self._deadline - time.monotonic()))
        request = ModelRequest(
            prompt.messages,
            max_tokens=ANSWER_TOKENS,
            timeout_ms=max(1, round(left * 1000)),
            call_id=job.job_id,
        )
        used = job.transcript.get("usage") or TokenUsage(0, 0)._asdict()
        transcript = {
            "model": model.describe().to_payload(),
            "request": request.to_payload(),
            "usage": used,
        }
        cancel = Cancellation()
        timer = Timer(left, cancel.set)
        timer.daemon = True
        timer.start()
        try:
            reply = model.generate(request, cancel)
        except ModelError as error:
            raise _UnusableReply(
                f"{error.code}: {error.message}", {**transcript, "error": error.to_payload()}
            ) from error
        finally:
            timer.cancel()
        transcript["reply"] = reply.to_payload()
        transcript["usage"] = _sum_of(used, reply.usage)
        learned = parse_learned(reply.text, job.kind, profile, sees_all=not prompt.truncated)
        if isinstance(learned, ReplyProblem):
            raise _UnusableReply(f"{learned.code}: {learned.message}", transcript)
        return learned, {**transcript, "notes": list(learned.notes)}


def _interaction_payload(made: Interaction) -> Json:
    """Return an interaction for learning."""
    return {**made.to_payload(), "code": made.failure_code}


def _sum_of(used: Json, usage: TokenUsage) -> Json:
    """Return the tokens of all attempts of a job, with one more answer."""
    return TokenUsage(
        used["tokens_in"] + usage.tokens_in,
        used["tokens_out"] + usage.tokens_out,
        used["estimated"] or usage.estimated,
    )._asdict()


def _add_seconds(now: str, seconds: int) -> str:
    """Return the timestamp `seconds` later, in the same form."""
    time = datetime.fromisoformat(now) + timedelta(seconds=seconds)
    return time.isoformat(timespec="microseconds").replace("+00:00", "Z")
