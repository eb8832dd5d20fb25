"""Answers of people to requests of a run that is alive: a session of a gateway (docs/reference/gateway.md#pending).

1. The process of the run holds its log, so that no other process can record an answer there.
2. So the answer is a file in the user's state directory, one per request, which only this user can write. The run takes
   it, checks it again, and records it.
3. The command that leaves an answer waits until the log has it, and takes back an answer that no session took.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from cogcli.app.settings import Settings
from cogcli.app.settings.user_dirs import state_home
from cogcli.base.canonical import canonical
from cogcli.base.errors import PolicyApprovalError, UnusableEnvironment, UsageError
from cogcli.base.files import UnreadableFile, read_regular, write_atomic
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.strict_json import InvalidJson, loads
from cogcli.declarations.governance_events import ApprovalRequested
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.episode.log_reader import iterate_events
from cogcli.run.answers import Approver, RequestAnswer, require_approvers
from cogcli.run.log_index import LogIndex

SESSION_SKILL: Final = "gateway.session"
"""The skill of runs that take answers while they are alive."""
_LIMIT: Final = 64 * 1024
_SECONDS: Final = 10.0
_TICK: Final = 0.05


class AnswerFile(Record):
    """The file of one answer."""

    approval_id: str
    granted: bool
    by: str
    reason: str = ""


class LiveRequests(NamedTuple):
    """Requests of one run that is alive, by their ids."""

    directory: Path
    episode_id: str
    ids: Sequence[str]


def answers_folder(environ: Mapping[str, str], episode_id: str) -> str:
    """Return the folder with the answers for a run that is alive."""
    return os.path.join(state_home(environ), "answers", episode_id)


def check_answers(
    settings: Settings, requests: LiveRequests, approver: Approver, *, granted: bool
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
        require_approvers(log.started, [RequestAnswer(asked[id], granted)], approver.by)
        expires_at = ApprovalRequested.of(asked[id].payload).expires_at or ""
        if granted and settings.clock.now() >= expires_at:
            raise PolicyApprovalError(
                "policy.approval",
                f"the request `{id}` expired at {expires_at}",
                hint="reject it: the agent can make the call again, which asks again",
            )


def leave_answers(
    settings: Settings, requests: LiveRequests, approver: Approver, *, granted: bool
) -> None:
    """Leave the same answer for each of these requests, and wait until the run has recorded all of them.

    Raise UnusableEnvironment `env.disk`, or `episode.busy` if the run took none in time.
    """
    folder = answers_folder(settings.environ, requests.episode_id)
    paths = [os.path.join(folder, f"{id}.json") for id in requests.ids]
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        for id, path in zip(requests.ids, paths, strict=True):
            answer = AnswerFile(
                approval_id=id, granted=granted, by=approver.by, reason=approver.reason
            )
            write_atomic(path, canonical(answer.json))
    except OSError as error:
        raise UnusableEnvironment("env.disk", f"{folder} cannot be written: {error}") from error
    until = time.monotonic() + _SECONDS
    while any(map(os.path.exists, paths)) or _are_open(requests):
        if time.monotonic() > until:
            for path in paths:
                with suppress(OSError):
                    os.unlink(path)
            raise UnusableEnvironment(
                "episode.busy",
                f"the run of {requests.episode_id} did not take the answer",
                hint="look whether it is still alive: cogcli ls",
            )
        time.sleep(_TICK)


def _are_open(requests: LiveRequests) -> bool:
    """Return whether the log lacks an answer to one of these requests."""
    log = LogIndex(iterate_events(requests.directory))
    waiting = {ApprovalRequested.of(each.payload).approval_id for each in log.open_requests}
    return not waiting.isdisjoint(requests.ids)


def take_answers(environ: Mapping[str, str], episode_id: str) -> Iterator[AnswerFile]:
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
            yield read_record(AnswerFile, loads(read_regular(path, limit=_LIMIT)), whole=True)
        with suppress(OSError):
            os.unlink(path)


def remove_folder(environ: Mapping[str, str], episode_id: str) -> None:
    """Remove the folder of a run that is over. Answers that no session took are removed with it."""
    folder = answers_folder(environ, episode_id)
    for _ in take_answers(environ, episode_id):
        pass
    with suppress(OSError):
        os.rmdir(folder)
