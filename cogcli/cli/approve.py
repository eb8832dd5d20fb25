"""Prompts at the terminal for the approval that a paused run waits for
(docs/reference/command-line.md#prompts).

The pause is on disk before the prompt, and the answer is an ordinary `resume`: closing the terminal
loses nothing."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cogcli.cli.approval_screen import request_lines
from cogcli.cli.context import CommandContext
from cogcli.cli.input_prompt import prompt_answer, report_inputs
from cogcli.cli.live_question import take_question
from cogcli.cli.prompt import ask, can_ask
from cogcli.declarations.envelope import Event
from cogcli.declarations.governance_events import ApprovalRequested
from cogcli.declarations.reading import read_record
from cogcli.episode.log_reader import iterate_events
from cogcli.report.approval_view import ApprovalView, view_request
from cogcli.run.log_index import LogIndex
from cogcli.run.results import RunResult
from cogcli.run.resume import ResumeRequest

__all__ = ("ask_approval", "interruptible", "report_requests", "show_request", "take_question")


def ask_approval(
    context: CommandContext,
    result: RunResult,
    by: str,
    resume_with: Callable[[ResumeRequest], RunResult],
) -> tuple[RunResult, bool]:
    """Prompt for each open approval, and return the result with whether the last prompt was left
    undecided.

    `d` or Ctrl-C leaves a prompt undecided. `resume_with` continues the run after each answer. If
    no user can be prompted, return `result` unchanged.
    """
    while result.status == "pending" and not result.stopped_by and can_ask(context):
        requests = LogIndex(iterate_events(Path(result.directory))).open_requests
        if requests and _needs_command_line(requests[0]):
            break
        if not requests and not result.inputs:
            break  # it waits for a decision about a call in doubt
        try:
            with interruptible():
                answer = _prompt_answer(context, result, requests, by)
        except KeyboardInterrupt:
            context.screen.notify("\n")
            answer = None
        if answer is None:
            return result, True
        result = resume_with(answer)
    return result, False


def _needs_command_line(question: Event) -> bool:
    """Return whether only a command line can answer a request, since it can assert a role, and sign."""
    asked = read_record(ApprovalRequested, question.payload)
    return bool(asked.approver_roles or asked.signed)


def _prompt_answer(
    context: CommandContext, result: RunResult, requests: Sequence[Event], by: str
) -> ResumeRequest | None:
    """Prompt for the first open approval, or else the first form of a service. Return None if it is left for later."""
    if not requests:
        given = prompt_answer(context, result.inputs[0])
        return None if given is None else ResumeRequest(inputs=(given,), by=by)
    answer = _prompt_decision(context, requests[0], result.finished.state.skill_id)
    if answer == "d":
        return None
    names = (read_record(ApprovalRequested, requests[0].payload).approval_id,)
    if answer == "y":
        return ResumeRequest(approve=names, by=by)
    return ResumeRequest(reject=names, by=by)


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C raise KeyboardInterrupt within the `with` block, so that the command still reports the paused run."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous if previous is not None else signal.SIG_DFL)


def _prompt_decision(context: CommandContext, question: Event, skill: str) -> str:
    """Prompt for `y`, `n` or `d`, and return it. Any other answer repeats the prompt; the end of
    input is `d`.
    """
    show_request(context, question, in_full=False, skill=skill)
    while True:
        answer = ask(context, "Approve?  [y] once  [n] reject  [v] view all  [d] decide later ")
        if answer == "v":
            show_request(context, question, in_full=True, skill=skill)
        elif answer is None or answer in ("y", "n", "d"):
            return answer or "d"


def show_request(
    context: CommandContext, question: Event, *, in_full: bool, skill: str = ""
) -> None:
    """Write a recorded request for approval to stderr, with secrets masked."""
    view = _approval_view(context, question, skill)
    for line in request_lines(context, view, in_full=in_full):
        context.screen.notify_line(line)


def report_requests(context: CommandContext, result: RunResult, *, writes_to_stderr: bool) -> None:
    """Add the open requests of a run to the envelope. With `writes_to_stderr`, print them, unless
    `-q`.
    """
    if result.inputs:
        report_inputs(context, result.inputs, writes_to_stderr=writes_to_stderr)
    if not result.requests:
        return
    skill = result.finished.state.skill_id
    views = [_approval_view(context, each, skill) for each in result.requests]
    context.own["approvals"] = [each.to_payload() for each in views]
    if not writes_to_stderr or context.screen.quiet:
        return
    for view in views:
        for line in request_lines(context, view):
            context.screen.notify_line(line)


def _approval_view(context: CommandContext, question: Event, skill: str) -> ApprovalView:
    now = context.settings.clock.now()
    return view_request(question, skill=skill, now=now, global_flags=context.again)
