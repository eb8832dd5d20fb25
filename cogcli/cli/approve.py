"""Prompts at the terminal for the approval that a paused run waits for
(docs/reference/command-line.md#prompts).

The pause is on disk before the prompt, and the answer is an ordinary `resume`: closing the terminal
loses nothing."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from cogcli.base.terminal_text import visible, visible_block
from cogcli.cli.context import CommandContext
from cogcli.cli.envelope import dumps
from cogcli.cli.prompt import ask, can_ask, terminal_safe
from cogcli.declarations.governance_events import ApprovalRequested
from cogcli.declarations.reading import read_record
from cogcli.episode.log_reader import iterate_events
from cogcli.run.log_index import LogIndex
from cogcli.run.results import RunResult
from cogcli.run.resume import ResumeRequest

_EXCERPT: Final = 160


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
        if not requests:
            break  # it waits for a decision about a call in doubt
        question = read_record(ApprovalRequested, requests[0].payload)
        if question.approver_roles:
            break  # only a command line can assert a role
        try:
            with interruptible():
                answer = _prompt_decision(context, question)
        except KeyboardInterrupt:
            context.screen.notify("\n")
            return result, True
        if answer == "d":
            return result, True
        names = (question.approval_id,)
        result = resume_with(
            ResumeRequest(approve=names, by=by)
            if answer == "y"
            else ResumeRequest(reject=names, by=by)
        )
    return result, False


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C raise KeyboardInterrupt within the block, so that the command still reports the
    paused run.
    """
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous if previous is not None else signal.SIG_DFL)


def _prompt_decision(context: CommandContext, question: ApprovalRequested) -> str:
    """Prompt for `y`, `n` or `d`, and return it. Any other answer repeats the prompt; the end of
    input is `d`.
    """
    show_request(context, question, whole=False)
    while True:
        answer = ask(context, "Approve?  [y] once  [n] reject  [v] view all  [d] decide later ")
        if answer == "v":
            show_request(context, question, whole=True)
        elif answer is None or answer in ("y", "n", "d"):
            return answer or "d"


def show_request(context: CommandContext, question: ApprovalRequested, *, whole: bool) -> None:
    """Write a recorded request for approval, with secrets masked."""
    screen = context.screen
    dot = f" {screen.err.glyphs.dot} "
    parts = (question.capability, question.step_id, question.binding)
    screen.notify_line([(dot.join(part for part in parts if part), "bold")])
    for name, text in _request_rows(question, whole=whole):
        for number, line in enumerate(text.split("\n")):
            head = "" if number else name
            screen.notify_line([(f"  {head:<9}  ", "dim"), (terminal_safe(context, line), "")])


def _request_rows(question: ApprovalRequested, *, whole: bool) -> list[tuple[str, str]]:
    """Return the displayed details of a request, by name; with `whole` all of its input."""
    sent = visible_block(dumps(question.input or {}, indent=whole))
    rows = [("will send", sent if whole or len(sent) <= _EXCERPT else f"{sent[:_EXCERPT]}…")]
    if question.gate:
        rows.append(("gate", visible(question.gate)))
    rows.append(("because", visible(question.reason or "")))
    if whole:
        rows.append(("expires", visible(question.expires_at or "")))
        rows.append(("request", visible(question.approval_id)))
    return rows
