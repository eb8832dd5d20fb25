"""`approvals ls|show|approve|reject`: the requests of all waiting runs, and answers to them
(docs/reference/execution.md#approvals).
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

from cogcli.app import approvals
from cogcli.app.approvals import WaitingForms, WaitingRequest
from cogcli.app.episodes import find_unreadable, unreadable_warning
from cogcli.app.signed_answers import sign_requests
from cogcli.base.errors import OK
from cogcli.base.system import current_user
from cogcli.base.terminal_text import visible
from cogcli.cli.approval_screen import write_request
from cogcli.cli.context import CommandContext
from cogcli.cli.listing import Column, report_empty_list, show
from cogcli.cli.live_run import report_result, resume_run
from cogcli.cli.options import SAFETY, Flags, ListFlags, argument, command, switch, text
from cogcli.cli.render_error import next_lines
from cogcli.declarations.value_types import Json
from cogcli.episode.history import input_flags
from cogcli.report.humanize import fuzzy_time, short_episode
from cogcli.run.answers import Approver
from cogcli.run.resume import ResumeRequest

Names = Annotated[list[str], argument("REQUEST|EP", "episodes")]


class AnswerFlags(Flags):
    """The flags of an answer."""

    by: str | None = text(
        "--by", "NAME[:ROLE]", "the name of the approver", SAFETY, default="OS user"
    )
    sign: str | None = text(
        "--sign", "FILE", "sign the answer with this SSH key", SAFETY, completes="files"
    )
    reason: str | None = text("--reason", "TEXT", "the reason", SAFETY)
    resume: bool = switch("--resume", help="then continue the runs", panel=SAFETY)


@command(
    examples=(
        ("cogcli approvals ls", "what waits for an answer, newest first"),
        ("cogcli approvals ls --role finance", "what this role may answer"),
        ("cogcli approvals ls --json", "for scripts"),
    ),
    exits=(0, 2, 3),
)
def ls(
    context: CommandContext,
    *,
    role: Annotated[str | None, text("--role", "ROLE", "only what this role may answer")] = None,
    answered: Annotated[
        bool, switch("--answered", help="instead: what was answered and waits for `resume`")
    ] = False,
    flags: ListFlags,
) -> int:
    """List the open requests of all waiting runs, newest first."""
    if unreadable := find_unreadable(context.settings):
        context.warn(unreadable_warning(unreadable))
    if answered:
        return _list_answers(context, role, flags)
    found, forms = approvals.list_questions(context.settings, context.warn, context.again)
    kept = [
        each for each in found if role is None or role in each.view.roles or not each.view.roles
    ]
    context.own["approvals"] = [each.view.to_payload() for each in kept]
    context.own["input_requests"] = [
        {"episode_id": each.episode_id, **asked.json} for each in forms for asked in each.asked
    ]
    _print_waiting_forms(context, forms)
    if not kept and not forms:
        report_empty_list(context, "request", [("--role", role)], lambda: len(found))
    if not context.json and (kept or not forms):
        show(
            context,
            _request_columns(context),
            [_request_row(each) for each in kept],
            flags,
            whole=True,
        )
    return OK


def _print_waiting_forms(context: CommandContext, forms: Sequence[WaitingForms]) -> None:
    """Print to stderr the runs that wait for form input, and the commands that answer.

    Print nothing with `-q` or `--json`.
    """
    if context.screen.quiet or context.json:
        return
    for each in forms:
        episode = short_episode(each.episode_id)
        for asked in each.asked:
            context.note(
                visible(f"{episode} waits for input, step {asked.step_id}: {asked.reason}")
            )
        commands = [
            f"cogcli resume {episode} {flag}{context.again}" for flag in input_flags(each.asked)
        ]
        for line in next_lines(commands):
            context.screen.notify_line(line)


def _list_answers(context: CommandContext, role: str | None, flags: ListFlags) -> int:
    """List the answers whose runs have not continued, with the approvers and the evidence of their identity."""
    found = approvals.list_answers(context.settings, context.warn)
    kept = [each.to_payload() for each in found if role is None or each.answer.role == role]
    context.own["approvals"] = kept
    if not kept:
        report_empty_list(context, "answer", [("--role", role)], lambda: len(found))
    if not context.json:
        rows = [{**each, "signed_with": each["signed_with"] or "unsigned"} for each in kept]
        show(context, _ANSWER_COLUMNS, rows, flags, whole=True)
    return OK


_ANSWER_COLUMNS: Final = (
    Column("approval_id", title="request"),
    Column("action"),
    Column("answer"),
    Column("answered_by", title="by"),
    Column("role"),
    Column("os_user", title="as"),
    Column("signed_with", title="signed"),
    Column("episode_id", title="episode", shown=short_episode),
)


def _request_row(request: WaitingRequest) -> Json:
    view = request.view
    return {
        **view.to_payload(),
        "expires_at": "expired" if view.expired else view.expires_at,
        "deciding": "  ".join(
            f"{each.name}={each.text}" for each in view.arguments if each.decides
        ),
        "roles": ", ".join(view.roles),
    }


def _request_columns(context: CommandContext) -> tuple[Column, ...]:
    now = context.settings.clock.now()
    return (
        Column("approval_id", title="request"),
        Column("action"),
        Column("deciding", title="with", prose=True),
        Column("gate"),
        Column("roles"),
        Column("expires_at", title="until", shown=lambda text: fuzzy_time(text, now)),
        Column("requested_at", title="asked", shown=lambda text: fuzzy_time(text, now)),
        Column("episode_id", title="episode", shown=short_episode),
        Column("skill"),
    )


@command(
    examples=(
        ("cogcli approvals show ap_01JD8", "one request, with its whole input"),
        ("cogcli approvals show @last", "all requests of a run"),
        ("cogcli approvals show ap_01JD8 --json", "for scripts"),
    ),
    exits=(0, 2, 3),
)
def show_requests(context: CommandContext, names: Names) -> int:
    """Display requests in full: the action, the reason for the request, and the people who may answer or answered."""
    found = approvals.find_requests_to_show(context.settings, names, context.warn, context.again)
    context.own["approvals"] = [each.to_payload() for each in found]
    if context.json:
        return OK
    for number, each in enumerate(found):
        if number:
            context.screen.answer("\n")
        write_request(context, each.view, context.screen.answer_lines, in_full=True)
    return OK


@command(
    examples=(
        ("cogcli approvals approve ap_01JD8 --by ana:finance", "record the answer; nothing runs"),
        ("cogcli approvals approve ap_01JD8 ap_01JD9 --resume", "both or none, then continue"),
        ("cogcli approvals approve @last --reason 'checked the invoice'", "all requests of a run"),
    ),
    exits=(0, 1, 2, 3, 4, 5, 6),
)
def approve(context: CommandContext, names: Names, *, flags: AnswerFlags) -> int:
    """Approve requests: all of them, or none if one cannot be approved."""
    return _record_answer(context, names, flags, is_granted=True)


@command(
    examples=(
        (
            "cogcli approvals reject ap_01JD8 --reason 'not today'",
            "record the answer; nothing runs",
        ),
        ("cogcli approvals reject @last --resume", "reject all requests of a run, and end it"),
        ("cogcli approvals reject ap_01JD8 --json", "for scripts"),
    ),
    exits=(0, 1, 2, 3, 4, 5, 6),
)
def reject(context: CommandContext, names: Names, *, flags: AnswerFlags) -> int:
    """Reject requests: their steps are vetoed when the runs continue."""
    return _record_answer(context, names, flags, is_granted=False)


def _record_answer(
    context: CommandContext, names: Sequence[str], flags: AnswerFlags, *, is_granted: bool
) -> int:
    """Record one answer to all named requests, then continue their runs with `--resume`."""
    requests = approvals.find_requests(context.settings, names, context.warn, context.again)
    by = flags.by or context.user
    signatures = {}
    if flags.sign is not None:
        events = [each.event for each in requests]
        signatures = sign_requests(context.settings, events, by, flags.sign, is_granted=is_granted)
    approver = Approver(by, flags.reason or "", signatures)
    with _signals_blocked():
        runs = approvals.record(context.settings, requests, approver, is_granted=is_granted)
    word = "granted" if is_granted else "rejected"
    context.own["approvals"] = [
        {
            **each.view.to_payload(),
            "answer": word,
            "answered_by": by,
            "os_uid": current_user().uid,
            "os_user": current_user().name,
            "signed_with": signed.key
            if (signed := signatures.get(each.view.approval_id))
            else None,
        }
        for each in requests
    ]
    if not flags.resume:
        for each in requests:
            context.answer(f"{word} {each.view.approval_id} {each.view.action}\n")
        if not context.screen.quiet:
            lines = [f"cogcli resume {short_episode(each.name)}{context.again}" for each in runs]
            for line in next_lines(lines):
                context.screen.notify_line(line)
        return OK
    return _resume_runs(context, runs)


_HELD: Final = ("SIGINT", "SIGTERM", "SIGHUP")


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """Block signals within the `with` block, so that none arrives between two answers of one command."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    signals_to_block = {getattr(signal, name) for name in _HELD}
    previous_mask = signal.pthread_sigmask(signal.SIG_BLOCK, signals_to_block)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous_mask)


def _resume_runs(context: CommandContext, directories: Sequence[Path]) -> int:
    """Continue these runs, and return the first exit code that is not 0."""
    code = OK
    rows: list[Json] = []
    durability = str(context.settings.value("durability"))
    for directory in directories:
        request = ResumeRequest(durability=durability)
        result, listener = resume_run(context, directory, request)
        report_result(context, result, listener, None, answer=len(directories) == 1)
        rows.append(
            {
                "episode_id": result.episode_id,
                "status": result.status,
                "exit_code": result.exit_code,
                "outputs": result.outputs,
                "error": context.error,
            }
        )
        code = code or result.exit_code
    context.own["runs"] = rows
    if len(rows) > 1:
        context.error = next((each["error"] for each in rows if each["error"]), None)
    return code
