"""Signing answers to requests for approval with an SSH key (docs/reference/execution.md#signed).

The signature is made before any log is locked: the person may have to type a passphrase, or to touch a key."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from cogcli.app.settings import Settings
from cogcli.base.errors import UsageError
from cogcli.base.ssh_signatures import fingerprint_of, sign
from cogcli.declarations.envelope import Event
from cogcli.declarations.governance_events import AnswerSignature, ApprovalRequested
from cogcli.episode.log_reader import iterate_events
from cogcli.policy.approvals import NAMESPACE
from cogcli.run.answers import RequestAnswer, match_answers, state_answer
from cogcli.run.log_index import LogIndex

Signatures = dict[str, AnswerSignature]
"""Signatures by the ids of the requests that they answer."""


def sign_requests(
    settings: Settings, requests: Iterable[Event], by: str, key: str, *, is_granted: bool
) -> Signatures:
    """Sign the same answer to each of these requests with the key in a file.

    Raise UnusableEnvironment `signing.ssh`."""
    return _sign_answers(settings, [RequestAnswer(each, is_granted) for each in requests], by, key)


def sign_answers(
    settings: Settings,
    directory: Path,
    approve: Sequence[str],
    reject: Sequence[str],
    by: str,
    key: str,
) -> Signatures:
    """Sign the answers to the open requests of a run that these names mean.

    Raise UsageError `usage.flag` without an answer, UnusableEnvironment `signing.ssh`, and the errors of
    `match_answers`."""
    if not (approve or reject):
        raise UsageError(
            "usage.flag", "`--sign` signs an answer", hint="add --approve ID or --reject ID"
        )
    log = LogIndex(iterate_events(directory))
    return _sign_answers(settings, match_answers(log, approve, reject), by, key)


def _sign_answers(
    settings: Settings, answers: Iterable[RequestAnswer], by: str, key: str
) -> Signatures:
    found: Signatures = {}
    for each in answers:
        request = ApprovalRequested.of(each.asked.payload)
        statement = state_answer(request, by, granted=each.granted)
        armored = sign(statement.to_bytes(), key, NAMESPACE, settings.environ)
        found[request.approval_id] = AnswerSignature(key=fingerprint_of(armored), value=armored)
    return found
