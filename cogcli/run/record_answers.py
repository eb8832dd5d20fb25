"""Answers to requests of waiting runs that are recorded without continuing the runs
(docs/reference/execution.md#approvals).

1. All logs are locked, and all answers are checked, before the first event is appended. An answer that is refused
   leaves every log unchanged.
2. The answers of all runs are on disk before the first run is put back to waiting. The space for them is freed before:
   a full disk does not come between two answers.
3. Nothing is called, and no spec, service or secret is read.
4. In the episode of another user the checkpoint stays theirs. It does not cover the answers of this user: only a
   signature vouches for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from cogcli.base.errors import PolicyApprovalError, UnusableEnvironment, UsageError
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.redact import Redactor
from cogcli.declarations.envelope import Event, draft_of
from cogcli.declarations.events import RunPaused, RunResumed
from cogcli.declarations.governance_events import ApprovalRequested, InputRequested
from cogcli.episode.checkpoint import has_only_foreign_records
from cogcli.episode.journal import Journal, has_standing_permissions
from cogcli.episode.refusals import altered_error, open_episode
from cogcli.episode.seal import persist_pending
from cogcli.episode.store import Store
from cogcli.run.answers import Approver, RequestAnswer, append_answer, require_approvers
from cogcli.run.log_index import LogIndex
from cogcli.run.log_index_reading import index_events
from cogcli.run.prepare import RunEnvironment


class LockedRun(NamedTuple):
    """A waiting run whose log this process has locked, and the answers to its requests."""

    journal: Journal
    log: LogIndex
    started: Event
    answers: tuple[RequestAnswer, ...]

    def record(self, approver: Approver) -> None:
        """Append the answers. The run waits until `pause` is called."""
        last = self.log.last or self.started
        payload = RunResumed(reason="answered", checkpoint={"offset": last.seq, "event": last.id})
        self.journal.append(draft_of(payload, self.log.root or "", caused_by=last.id))
        for answer in self.answers:
            event = append_answer(self.journal, answer, approver, deferred=True)
            self.log.index_answer(event)

    def pause(self) -> None:
        """Put the run back to waiting: for the other requests, or for `resume`."""
        payload = RunPaused(reason=self._pause_reason())
        self.journal.append(draft_of(payload, self.log.root or ""), durable=True)
        persist_pending(self.journal)

    def _pause_reason(self) -> str:
        if self.log.open_doubts:
            return "effect.in-doubt: a call may have happened"
        waiting = [ApprovalRequested.of(each.payload) for each in self.log.open_requests]
        if waiting:
            return (
                f"policy.approval: `{waiting[0].capability or waiting[0].gate}` waits for an answer"
            )
        if self.log.open_inputs:
            asked = InputRequested.of(self.log.open_inputs[0].payload)
            return f"input.required: {asked.reason}"
        return "answered: `resume` continues the run"


def record_answers(
    environment: RunEnvironment,
    requests: Mapping[Path, Sequence[str]],
    approver: Approver,
    *,
    granted: bool,
) -> None:
    """Record one answer to each of these requests, named by their ids, or none at all.

    Raise UsageError `episode.unknown-approval`, PolicyApprovalError `policy.approval`; UnusableEnvironment
    `episode.busy`, `episode.unreadable`, `episode.altered`.
    """
    with ExitStack() as opened:
        runs = []
        for directory in sorted(requests):
            journal, log = _lock_log(environment, directory, opened)
            runs.append(_require_open_requests(journal, log, requests[directory], granted=granted))
        now = environment.clock.now()
        for run in runs:
            require_approvers(run.started, run.answers, approver, environment.signatures, now)
            if granted:
                _require_unexpired(run.answers, now)
        for run in runs:
            run.journal.free_reserve()
        for run in runs:
            run.record(approver)
        for run in runs:
            run.pause()


def _lock_log(
    environment: RunEnvironment, directory: Path, opened: ExitStack
) -> tuple[Journal, LogIndex]:
    """Return the journal of a waiting run and the index of its log. `opened` closes the journal."""
    sign, owner = environment.signer(), environment.owner()
    with open_episode(directory) as folder:
        if has_only_foreign_records(folder, owner, sign):
            sign = owner = None  # what the other user vouches for stays vouched for
    store = Store(environment.runs_dir, sign=sign, owner=owner, shared=environment.shared)
    journal, events, _, _ = store.reopen(
        directory, clock=environment.clock, ids=environment.ids, redactor=Redactor()
    )
    opened.callback(journal.close)
    if journal.vouched.differs:  # a new record would hide it
        raise altered_error(directory, journal.vouched.differs)
    foreign = (event for event in events if not journal.is_allowed(event.seq))
    log = index_events(directory, events, foreign)
    if log.started is not None and has_standing_permissions(log.started.payload):
        journal.announce_each()
    return journal, log


def _require_open_requests(
    journal: Journal, log: LogIndex, ids: Iterable[str], *, granted: bool
) -> LockedRun:
    """Return the run with an answer to each of these requests. Raise an error unless all of them are open."""
    if log.started is None:
        raise UnusableEnvironment("episode.unreadable", "this log has no beginning")
    asked = {ApprovalRequested.of(each.payload).approval_id: each for each in log.open_requests}
    for id in ids:
        if id not in asked:
            raise UsageError(
                "episode.unknown-approval",
                f"`{id}` waits for no answer",
                hint="it was answered, or the run has made another request since",
                next=("cogcli approvals ls",),
            )
    return LockedRun(
        journal, log, log.started, tuple(RequestAnswer(asked[id], granted) for id in ids)
    )


def _require_unexpired(answers: Iterable[RequestAnswer], now: str) -> None:
    """Raise PolicyApprovalError for a request that has expired: only a new one can be approved."""
    for answer in answers:
        request = ApprovalRequested.of(answer.asked.payload)
        if now >= (request.expires_at or now):
            error = PolicyApprovalError(
                "policy.approval",
                f"the request `{request.approval_id}` expired at {request.expires_at}",
                hint="resume the run: it asks again, and that can be approved",
            )
            error.next = (f"cogcli resume {answer.asked.episode_id}",)
            raise error
