"""The inbox: the open requests for approval of all waiting runs, and answers to them
(docs/reference/execution.md#approvals)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from cogcli.app.episodes import find, list_episodes
from cogcli.app.live_answers import (
    LiveRequests,
    check_answers,
    deliver_answers,
    is_live_session,
)
from cogcli.app.run_skill import environment_of
from cogcli.app.settings import Settings
from cogcli.base.errors import CogcliError, UsageError
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.envelope import Event
from cogcli.declarations.governance_events import (
    Approval,
    ApprovalGranted,
    ApprovalRejected,
    InputRequested,
)
from cogcli.declarations.value_types import Json
from cogcli.episode.history import describe_answer
from cogcli.episode.listing.episode_row import EpisodeFilter, EpisodeRow, read_row
from cogcli.episode.log_reader import iterate_events
from cogcli.report.approval_view import ApprovalView, view_request
from cogcli.run.answers import Approver
from cogcli.run.log_index import LogIndex
from cogcli.run.record_answers import record_answers

WAITING = EpisodeFilter(outcomes=("pending", "running"))
REQUEST_PREFIX = "ap_"
_MAX_LISTED = 5


class WaitingRequest(NamedTuple):
    """An open request and the directory of its episode."""

    directory: Path
    view: ApprovalView
    event: Event
    is_live: bool = False
    """Whether its run goes on with other calls meanwhile, as a session of a gateway does."""


class WaitingForms(NamedTuple):
    """What services ask a person for in one waiting run."""

    episode_id: str
    asked: list[InputRequested]


class WaitingQuestions(NamedTuple):
    """All that waiting runs ask people."""

    approvals: list[WaitingRequest]
    forms: list[WaitingForms]


def list_requests(
    settings: Settings, warn: Callable[[CogcliError], None], global_flags: str = ""
) -> list[WaitingRequest]:
    """Return the open requests of all waiting runs and of sessions that are alive, newest first.

    `warn` gets the errors of logs that cannot be read."""
    return list_questions(settings, warn, global_flags).approvals


def list_questions(
    settings: Settings, warn: Callable[[CogcliError], None], global_flags: str = ""
) -> WaitingQuestions:
    """Return the same requests, and the input forms of services in waiting runs, newest run first."""
    requests: list[WaitingRequest] = []
    forms: list[WaitingForms] = []
    for row in list_episodes(settings, WAITING, None):
        if not _may_have_requests(row):
            continue
        try:
            open_ones = questions_of(settings, row, global_flags)
        except CogcliError as error:
            warn(error)
            continue
        requests += open_ones.approvals
        if open_ones.inputs:
            forms.append(WaitingForms(row.id, open_ones.inputs))
    newest = sorted(requests, key=lambda each: each.view.requested_at, reverse=True)
    return WaitingQuestions(newest, forms)


class RecordedAnswer(NamedTuple):
    """An answer that was recorded, whose run has not continued since."""

    view: ApprovalView
    answer: Approval
    granted: bool

    def to_payload(self) -> Json:
        """Return the object of `--json`: the request, and who answered."""
        signature = self.answer.signature
        return {
            **self.view.to_payload(),
            "answer": "granted" if self.granted else "rejected",
            "answered_by": self.answer.by,
            "role": self.answer.role,
            "os_uid": self.answer.os_uid,
            "os_user": self.answer.os_user,
            "signed_with": signature.key if signature else None,
        }


def list_answers(settings: Settings, warn: Callable[[CogcliError], None]) -> list[RecordedAnswer]:
    """Return the answers whose runs wait for `resume`, newest run first.

    `warn` gets the errors of logs that cannot be read."""
    found: list[RecordedAnswer] = []
    for row in list_episodes(settings, EpisodeFilter(outcomes=("pending",)), None):
        try:
            for request, event in LogIndex(iterate_events(row.directory)).unused_answers:
                found.append(_answer_of(row, request, event))
        except CogcliError as error:
            warn(error)
    return found


class ShownRequest(NamedTuple):
    """A request, and its answer if it has one."""

    view: ApprovalView
    answer: RecordedAnswer | None = None

    def to_payload(self) -> Json:
        """Return the object of `--json`."""
        return self.view.to_payload() if self.answer is None else self.answer.to_payload()


def find_requests_to_show(
    settings: Settings,
    names: Sequence[str],
    warn: Callable[[CogcliError], None],
    global_flags: str = "",
) -> list[ShownRequest]:
    """Return the requests that these names match, each once, open or answered.

    A name matches an open request as in `find_requests`. The ids of answered requests are looked up
    in the waiting runs. An episode matches all its requests, also after its end. Raise the errors
    of `find_requests`.
    """
    waiting = list_requests(settings, warn, global_flags)
    found: dict[str, ShownRequest] = {}
    for name in names:
        shown = [*_find_answered_requests(settings, name, warn)]
        try:
            shown += [ShownRequest(each.view) for each in _match_name(settings, waiting, name)]
        except UsageError as error:
            if not shown:
                error.hint = "a request of a run that ended: name its episode"
                raise
        found |= {each.view.approval_id: each for each in shown}
    return list(found.values())


def _find_answered_requests(
    settings: Settings, name: str, warn: Callable[[CogcliError], None]
) -> Iterator[ShownRequest]:
    """Yield the answered requests of an episode. If `name` begins like a request id, yield the
    matching requests of all waiting runs.
    """
    is_id = name.startswith(REQUEST_PREFIX)
    try:
        rows = list_episodes(settings, WAITING, None) if is_id else [read_row(find(settings, name))]
    except UsageError:  # the word may name a capability or a gate
        return
    for row in rows:
        try:
            answered = LogIndex(iterate_events(row.directory)).answered_requests
        except CogcliError as error:
            warn(error)
            continue
        for request, event in answered:
            found = _answer_of(row, request, event)
            if not is_id or found.view.approval_id.startswith(name):
                yield ShownRequest(found.view, found)


def _answer_of(row: EpisodeRow, request: Event, event: Event) -> RecordedAnswer:
    granted = event.event_type == ApprovalGranted.event.name
    kind = ApprovalGranted if granted else ApprovalRejected
    answer = kind.of(event.payload)
    view = view_request(request, episode_id=row.id, skill=row.skill or "")
    return RecordedAnswer(view._replace(answer=describe_answer(answer)), answer, granted)


def _may_have_requests(row: EpisodeRow) -> bool:
    """Return whether a run waits for a person, or continues while some of its calls wait."""
    return is_live_session(row) or row.shown_status == "pending"


class OpenQuestions(NamedTuple):
    """The open requests of an episode to people."""

    approvals: list[WaitingRequest]
    inputs: list[InputRequested]
    """The input requests of services in its unfinished calls."""


def questions_of(settings: Settings, row: EpisodeRow, global_flags: str = "") -> OpenQuestions:
    """Return the open requests of an episode. Its log is read once. Raise UnusableEnvironment `episode.unreadable`."""
    now, log = settings.clock.now(), LogIndex(iterate_events(row.directory))
    approvals = [
        WaitingRequest(
            row.directory,
            view_request(
                event, episode_id=row.id, skill=row.skill or "", now=now, global_flags=global_flags
            ),
            event,
            row.shown_status == "running",
        )
        for event in log.open_requests
    ]
    inputs = [InputRequested.of(each.payload) for each in log.open_inputs]
    return OpenQuestions(approvals, inputs)


def find_requests(
    settings: Settings,
    names: Sequence[str],
    warn: Callable[[CogcliError], None],
    global_flags: str = "",
) -> list[WaitingRequest]:
    """Return the open requests that these names match, each once. A name is the id of a request or its beginning, an
    episode, or the capability or gate of a single request. An episode matches all its requests. Raise UsageError
    `episode.unknown-approval`, `episode.ambiguous`.
    """
    waiting = list_requests(settings, warn, global_flags)
    found: list[WaitingRequest] = []
    for name in names:
        found += [each for each in _match_name(settings, waiting, name) if each not in found]
    return found


def _match_name(
    settings: Settings, waiting: list[WaitingRequest], name: str
) -> list[WaitingRequest]:
    if name.startswith(REQUEST_PREFIX):
        fitting = [each for each in waiting if each.view.approval_id.startswith(name)]
        return _require_one(fitting, name, waiting)
    named = [each for each in waiting if name in (each.view.action, each.view.gate)]
    if named:
        return _require_one(named, name, waiting)
    return _requests_of_episode(settings, waiting, name)


def _require_one(
    matches: list[WaitingRequest], name: str, waiting: list[WaitingRequest]
) -> list[WaitingRequest]:
    """Return the only request that a word names. Raise UsageError for none, or for several."""
    if not matches:
        raise _unknown_error(name, waiting)
    if len(matches) > 1:
        ids = ", ".join(each.view.approval_id for each in matches[:_MAX_LISTED])
        raise UsageError(
            "episode.ambiguous",
            f"`{name}` names {len(matches)} requests",
            expected="the id of one, or of each that you mean",
            found=ids,
            next=("cogcli approvals ls",),
        )
    return matches


def _requests_of_episode(
    settings: Settings, waiting: list[WaitingRequest], name: str
) -> list[WaitingRequest]:
    """Return the requests of the episode that a word names, which may be outside the runs directory."""
    try:
        directory = find(settings, name)
    except UsageError as error:
        if error.code == "episode.unknown":
            raise _unknown_error(name, waiting) from error
        raise
    found = [each for each in waiting if each.directory.resolve() == directory.resolve()]
    if not found and directory.parent != Path(settings.runs_dir):
        row = read_row(directory)
        found = questions_of(settings, row).approvals if _may_have_requests(row) else []
    if not found:
        raise _unknown_error(name, waiting)
    return found


def _unknown_error(name: str, waiting: list[WaitingRequest]) -> UsageError:
    ids = [each.view.approval_id for each in waiting]
    more = f" and {len(ids) - _MAX_LISTED} more" if len(ids) > _MAX_LISTED else ""
    return UsageError(
        "episode.unknown-approval",
        f"no request that waits is called `{name:.80}`",
        expected=f"one of: {', '.join(ids[:_MAX_LISTED])}{more}" if ids else "nothing waits",
        next=("cogcli approvals ls",),
    )


def record(
    settings: Settings, requests: Sequence[WaitingRequest], approver: Approver, *, is_granted: bool
) -> list[Path]:
    """Record the answer to all these requests, or to none, and return the directories of the runs that wait.

    Sessions that are alive record their answers themselves, after the others. Raise the errors of
    `run.record_answers` and of `deliver_answers`.
    """
    by_run: dict[Path, list[str]] = {}
    live: dict[Path, LiveRequests] = {}
    for each in requests:
        if each.is_live:
            none = LiveRequests(each.directory, each.view.episode_id, ())
            known = live.get(each.directory, none)
            live[each.directory] = known._replace(ids=(*known.ids, each.view.approval_id))
        else:
            by_run.setdefault(each.directory, []).append(each.view.approval_id)
    for of_session in live.values():
        check_answers(settings, of_session, approver, is_granted=is_granted)
    record_answers(environment_of(settings), by_run, approver, granted=is_granted)
    for of_session in live.values():
        deliver_answers(settings, of_session, approver, is_granted=is_granted)
    return list(by_run)
