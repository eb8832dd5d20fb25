"""Answers of people to a run that is alive, a session of a gateway: about its requests for approval, and about its
calls in doubt (docs/reference/gateway.md#pending).

1. The process of the run holds its log, so that no other process can record an answer there.
2. So the answer is a file in the user's state directory, one per request, which only this user can write. The run takes
   it, checks it again, and records it.
3. The command that leaves an answer waits until the log has it, and takes back an answer that no session took.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from cogcli.app.run_skill import signatures_of
from cogcli.app.settings import Settings
from cogcli.app.settings.user_dirs import state_home
from cogcli.base.canonical import canonical
from cogcli.base.errors import PolicyApprovalError, UnusableEnvironment, UsageError
from cogcli.base.files import UnreadableFile, read_regular, write_atomic
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.strict_json import InvalidJson, loads
from cogcli.base.system import current_user, owner_of
from cogcli.declarations.governance_events import AnswerSignature, ApprovalRequested
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Json
from cogcli.episode.listing.episode_row import EpisodeRow
from cogcli.episode.log_reader import iterate_events
from cogcli.run.answers import Approver, RequestAnswer, require_approvers
from cogcli.run.doubt_decisions import DoubtAnswer, resolutions_from
from cogcli.run.log_index import LogIndex
from cogcli.run.replay import read_pinned_catalog

SESSION_SKILL: Final = "gateway.session"
"""The skill of runs that take answers while they are alive."""
_DECISION: Final = "doubt-"
"""The beginning of the names of files with decisions about calls in doubt."""
_LIMIT: Final = 1024 * 1024
_SECONDS: Final = 10.0
_TICK: Final = 0.05


class AnswerFile(Record):
    """The file of one answer."""

    approval_id: str
    granted: bool
    by: str
    reason: str = ""
    signature: AnswerSignature | None = None

    @property
    def approver(self) -> Approver:
        """The person who answers."""
        signatures = {} if self.signature is None else {self.approval_id: self.signature}
        return Approver(self.by, self.reason, signatures)


class DoubtAnswerFile(Record):
    """The file of one decision about a call in doubt."""

    step_id: str
    choice: str
    by: str
    reason: str = ""
    output: Json | None = None


class LiveRequests(NamedTuple):
    """Requests of one run that is alive, by their ids."""

    directory: Path
    episode_id: str
    ids: Sequence[str]


def answers_folder(environ: Mapping[str, str], episode_id: str) -> str:
    """Return the folder with the answers for a run that is alive."""
    return os.path.join(state_home(environ), "answers", episode_id)


def check_answers(
    settings: Settings, requests: LiveRequests, approver: Approver, *, is_granted: bool
) -> None:
    """Raise the error of the first answer that is not allowed: UsageError, PolicyApprovalError."""
    log = LogIndex(iterate_events(requests.directory))
    asked = {ApprovalRequested.of(each.payload).approval_id: each for each in log.open_requests}
    for id in requests.ids:
        if log.started is None or id not in asked:
            raise UsageError(
                "episode.unknown-approval",
                f"`{id}` waits for no answer",
                next=("cogcli approvals ls",),
            )
        answer = RequestAnswer(asked[id], is_granted)
        signatures, now = signatures_of(settings), settings.clock.now()
        require_approvers(log.started, [answer], approver, signatures, now)
        expires_at = ApprovalRequested.of(asked[id].payload).expires_at or ""
        if is_granted and settings.clock.now() >= expires_at:
            raise PolicyApprovalError(
                "policy.approval",
                f"the request `{id}` expired at {expires_at}",
                hint="reject it: the agent can make the call again, which asks again",
            )


def deliver_answers(
    settings: Settings, requests: LiveRequests, approver: Approver, *, is_granted: bool
) -> None:
    """Write the same answer to each of these requests for a live run, and wait until the run has recorded all of them.
    Raise UnusableEnvironment `env.disk`, or `episode.busy` if the run records none in time or belongs to another user.
    """
    files = {
        id: AnswerFile(
            approval_id=id,
            granted=is_granted,
            by=approver.by,
            reason=approver.reason,
            signature=approver.signatures.get(id),
        )
        for id in requests.ids
    }
    _require_same_user(requests.directory)
    _leave_files(settings, requests.episode_id, files, lambda: _are_open(requests))


def _require_same_user(directory: Path) -> None:
    """Raise UnusableEnvironment `episode.busy` for the run of another user, which reads no answers
    of this user.
    """
    owner = owner_of(directory)
    if owner.uid != current_user().uid:
        raise UnusableEnvironment(
            "episode.busy",
            f"the run of {directory.name} is alive and belongs to `{owner.text}`",
            hint="it takes answers of that user alone; answer again when it waits",
        )


def is_live_session(row: EpisodeRow) -> bool:
    """Return whether an episode is a session of a gateway whose process is alive."""
    return row.shown_status == "running" and row.skill == SESSION_SKILL


def deliver_decisions(
    settings: Settings,
    directory: Path,
    answers: Sequence[DoubtAnswer],
    approver: Approver,
) -> list[str]:
    """Write a person's decisions about calls in doubt for a live session. Wait until the session has recorded all of
    them, and return their steps. Raise UsageError for a forbidden decision, and the errors of `deliver_answers`.
    """
    _require_same_user(directory)
    log = LogIndex(iterate_events(directory))
    if log.started is None:
        raise UsageError("step.unknown", "this run has made no call")
    capabilities = read_pinned_catalog(log.started, directory).capabilities
    found = resolutions_from(
        log,
        answers,
        capabilities.get,
        by=approver.by,
        reason=approver.reason,
        episode=directory.name,
    )
    files: dict[str, Record] = {}
    for step, each in found.items():
        if each.choice == "rerun":
            raise UsageError(
                "usage.value",
                "`--in-doubt rerun`: the session is alive, and its client makes the calls",
                hint="if the call did not happen, decide `fail`: the client can make it again",
            )
        files[f"{_DECISION}{step}"] = DoubtAnswerFile(
            step_id=step or "", choice=each.choice, by=approver.by,
            reason=approver.reason, output=each.output,
        )  # fmt: skip
    steps = [str(step) for step in found]

    def is_open() -> bool:
        doubts = LogIndex(iterate_events(directory)).open_doubts
        return any(event.step_id in steps for event in doubts)

    _leave_files(settings, log.started.episode_id or "", files, is_open)
    return steps


def _leave_files(
    settings: Settings,
    episode_id: str,
    files: Mapping[str, Record],
    is_open: Callable[[], bool],
) -> None:
    """Write files by name into the folder of a live run, and wait until the run has recorded all of them."""
    folder = answers_folder(settings.environ, episode_id)
    paths = [os.path.join(folder, f"{name}.json") for name in files]
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        for record, path in zip(files.values(), paths, strict=True):
            write_atomic(path, canonical(record.json))
    except OSError as error:
        raise UnusableEnvironment("env.disk", f"{folder} cannot be written: {error}") from error
    until = time.monotonic() + _SECONDS
    while any(map(os.path.exists, paths)) or is_open():
        if time.monotonic() > until:
            for path in paths:
                with suppress(OSError):
                    os.unlink(path)
            raise UnusableEnvironment(
                "episode.busy",
                f"the run of {episode_id} did not take the answer",
                hint="look whether it is still alive, and whether the call still runs: cogcli ls",
            )
        time.sleep(_TICK)


def _are_open(requests: LiveRequests) -> bool:
    """Return whether the log lacks an answer to one of these requests."""
    log = LogIndex(iterate_events(requests.directory))
    waiting = {ApprovalRequested.of(each.payload).approval_id for each in log.open_requests}
    return not waiting.isdisjoint(requests.ids)


def collect_answers(
    environ: Mapping[str, str], episode_id: str
) -> Iterator[AnswerFile | DoubtAnswerFile]:
    """Yield the answers for a run that is alive, and remove their files. An unreadable file is removed, too."""
    folder = answers_folder(environ, episode_id)
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return
    for name in names:
        path = os.path.join(folder, name)
        if not name.endswith(".json"):
            continue  # a file that is being written
        with suppress(UnreadableFile, InvalidJson, ValueError):
            value = loads(read_regular(path, limit=_LIMIT))
            if name.startswith(_DECISION):
                yield read_record(DoubtAnswerFile, value, whole=True)
            else:
                yield read_record(AnswerFile, value, whole=True)
        with suppress(OSError):
            os.unlink(path)


def remove_folder(environ: Mapping[str, str], episode_id: str) -> None:
    """Remove the folder of a finished run, including answers that no session has read."""
    folder = answers_folder(environ, episode_id)
    for _ in collect_answers(environ, episode_id):
        pass
    with suppress(OSError):
        os.rmdir(folder)
