"""The display, signals, prompts and last lines of a run, shared by `run`, `resume` and `rerun`
(docs/reference/command-line.md#streams, docs/reference/command-line.md#prompts).
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import TYPE_CHECKING, Any

from cogcli.base.calls import PersonAtTerminal
from cogcli.base.errors import CogcliError, UnusableEnvironment
from cogcli.base.step_path import StepPath
from cogcli.base.terminal_text import visible, visible_block
from cogcli.cli.context import CommandContext
from cogcli.cli.display import Display
from cogcli.cli.envelope import dumps
from cogcli.cli.progress import display_for
from cogcli.cli.prompt import can_ask
from cogcli.cli.run_report import error_of, final_lines, rerun_flags, undone_lines
from cogcli.cli.streams import silence_stdout
from cogcli.declarations.call_records import RunError
from cogcli.declarations.envelope import Event
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Json
from cogcli.episode.document_bytes import measured_ms, read_decision_summary
from cogcli.episode.log_reader import iterate_events
from cogcli.report.humanize import short_episode
from cogcli.run.results import Control, RunResult

if TYPE_CHECKING:
    from concurrent.futures import Future
    from pathlib import Path

    from cogcli.base.calls import QuestionAnswer, ServerQuestion
    from cogcli.run.engine.context import Fallback
    from cogcli.run.resume import ResumeRequest

_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")
_ANSWER_SECONDS = 300.0
"""Seconds that a person has for all answers of one call."""


class DisplayListener:
    """A listener that passes events to a display, and measures the wall time of the root run in
    milliseconds.

    After a display raises, it gets no further event, so that a display never ends a run. `before`
    is called once, before the first event.
    """

    def __init__(self, display: Display, before: Callable[[], None] | None = None) -> None:
        self.display = display
        self._before = before
        self.wall_ms: int | None = None
        self.decided_later = False
        """Whether a request for approval was displayed and left open."""
        self._failed = False
        self._root: str | None = None
        self._episode = ""

    @property
    def ignored(self) -> frozenset[str]:
        """The types of events that are not sent to this listener."""
        return self.display.ignored

    def __call__(self, event: Event) -> None:
        self._root = self._root or event.run_id
        self._episode = self._episode or event.episode_id
        if event.phase == "terminate" and event.run_id == self._root:
            self.wall_ms = round(measured_ms(event) or 0)
        if self._failed:
            return
        try:
            if self._before:
                self._before()
                self._before = None
            self.display(event)
        except Exception:
            self._failed = True

    def add_trace_command(self, error: CogcliError) -> None:
        """Suggest `cogcli trace EPISODE` after an error of a run that had begun, unless the error
        suggests a command.
        """
        if self._episode and not error.next:
            error.next = (f"cogcli trace {short_episode(self._episode)}",)


def open_display(context: CommandContext) -> Display:
    """Return the display that the setting `progress` selects."""
    return display_for(
        context.screen, str(context.settings.value("progress")), verbose=context.verbose
    )


@contextmanager
def watch_start(
    context: CommandContext, listener: DisplayListener, control: Control
) -> Iterator[DisplayListener]:
    """Display a new run and handle signals within the block.

    An error after the first event gets the command that displays the trace.
    """
    context.warn_of_shared_runs()
    try:
        with _handle_signals(context, listener, control):
            yield listener
    except CogcliError as error:
        listener.add_trace_command(error)
        raise


@contextmanager
def _handle_signals(
    context: CommandContext, listener: DisplayListener, control: Control
) -> Iterator[None]:
    """Handle signals within the block, then close the display.

    The first signal cancels the run, and a second one ends the grace period.
    """
    previous: dict[int, Any] = {}
    seen: list[int] = []

    def handle_signal(number: int, frame: object) -> None:
        """Cancel the run, or end the grace period of a cancelled one."""
        name = signal.Signals(number).name
        seen.append(number)
        control.cancel("SIGINT" if name == "SIGBREAK" else name)
        if len(seen) == 1:
            listener.display.interrupt()
            hint = " (Ctrl-C again: now)" if name == "SIGINT" else ""
            context.screen.notify(f"stopping, up to 5s for running calls{hint}\n")

    context.screen.claim_stdout()
    try:
        for number in (getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)):
            if signal.getsignal(number) is not signal.SIG_IGN:
                previous[number] = signal.signal(number, handle_signal)
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
        listener.display.close()


def answer_pause(
    context: CommandContext, result: RunResult, listener: DisplayListener
) -> tuple[RunResult, DisplayListener]:
    """Prompt for the open approvals of a run, and return its result with the listener of its last
    part.

    Return both unchanged if the run does not wait, or if no user can be prompted.
    """
    if result.status != "pending":
        return result, listener
    latest = listener

    def resume_with(request: ResumeRequest) -> RunResult:
        """Resume the run with an answer."""
        nonlocal latest
        durable = request._replace(durability=str(context.settings.value("durability")))
        from pathlib import Path  # a run that does not wait makes no path

        after, latest = resume_run(context, Path(result.directory), durable)
        return after

    answered, latest.decided_later = _approve_module().ask_approval(
        context, result, context.user, resume_with
    )
    return answered, latest


def _approve_module() -> ModuleType:
    """Return the module about approvals, which only a run that waits imports."""
    from cogcli.cli import approve

    return approve


def find_person(context: CommandContext, display: Display) -> PersonAtTerminal | None:
    """Return the person at this terminal, who answers services while a call is open. None if no one is prompted, and on
    Windows, where a prompt cannot be ended.
    """
    if sys.platform == "win32" or not can_ask(context):
        return None

    def take(question: ServerQuestion) -> Future[QuestionAnswer]:
        """Prompt for the answer to a question."""
        answer: Future[QuestionAnswer] = _approve_module().take_question(context, display, question)
        return answer

    return PersonAtTerminal(take, _ANSWER_SECONDS)


def resume_run(
    context: CommandContext, directory: Path, request: ResumeRequest
) -> tuple[RunResult, DisplayListener]:
    """Resume a run with a display. Raise the errors of `app.resume.resume`."""
    from cogcli.app.resume import resume

    done: list[str] = []

    def write_finished_steps() -> None:
        """Write which steps were finished before."""
        if done and not request.abort and not context.screen.quiet:
            context.screen.notify(visible(f"kept from before: {', '.join(done)}") + "\n")

    control, listener = Control(), DisplayListener(open_display(context), write_finished_steps)
    with suppress(CogcliError):  # of a damaged log: `resume` refuses it
        listener.display.load_past_events(_collect_done_steps(iterate_events(directory), done))
    with _handle_signals(context, listener, control):
        result = resume(
            context.settings, directory, request,
            listener=listener, control=control, on_response=listener.display.on_response,
            person=find_person(context, listener.display),
        )  # fmt: skip
    return result, listener


def _collect_done_steps(events: Iterable[Event], done: list[str]) -> Iterator[Event]:
    """Yield the events, and append the finished steps of the root run to `done`."""
    root = None
    for event in events:
        root = root or event.run_id
        path = event.step_id or ""
        if event.event_type == "step.completed" and event.run_id == root and StepPath(path).is_step:
            done.append(path)
        yield event


def warn_of_fallback(context: CommandContext, fallback: Fallback) -> None:
    """Warn, even with `-q`, that a fallback binding answered: this may change the meaning of the
    answer.
    """
    message = f"{fallback.step} fell back to {fallback.binding} ({fallback.reason})"
    context.warnings.append(
        {"code": "binding.fallback", "message": message, "step": fallback.step, "binding": fallback.binding,
         "instead_of": fallback.instead_of}
    )  # fmt: skip
    context.screen.notify_line([("! ", "warning"), (visible(message), "")])


def report_result(
    context: CommandContext,
    result: RunResult,
    listener: DisplayListener,
    after: Callable[[RunResult], None] | None,
    *,
    answer: bool,
) -> None:
    """Fill the envelope, write the outputs to stdout (with `answer`), and the last lines to stderr.

    `after` is called between the outputs and the last lines.
    """
    rerun = rerun_flags(context, result)
    decision = read_decision_summary(result.directory)
    _fill_envelope(context, result, rerun, decision)
    if result.requests or result.inputs:
        _approve_module().report_requests(
            context, result, writes_to_stderr=not listener.decided_later
        )
    _warn_of_incomplete_result(context, result)
    if answer and not context.json:
        if result.status in ("ok", "partial"):
            _write_outputs(context, result.outputs, is_agent=decision is not None)
        elif decision is not None and (say := find_say(result)):
            _write_answer(context, visible_block(say))
    if after:
        after(result)
    how = {"brief": listener.display.brief, "decided_later": listener.decided_later}
    last = final_lines(context, result, listener.wall_ms, rerun=rerun, **how)
    for line in (*last, *undone_lines(context, result, decision)):
        context.screen.notify_line(line)


def _fill_envelope(
    context: CommandContext, result: RunResult, rerun: str | None, decision: Json | None
) -> None:
    """Add the result of a run to the envelope."""
    context.own.update(
        {
            "status": result.status,
            "episode_id": result.episode_id,
            "run_id": result.run_id,
            "trace_id": result.trace_id,
            "dir": context.settings.display_path(result.directory),
            "outputs": result.outputs,
            "metrics": result.metrics,
        }
    )
    if decision is not None:
        context.own["decision"] = decision
    if result.error is not None:
        context.error = error_of(result, context.again, rerun=rerun)


def _warn_of_incomplete_result(context: CommandContext, result: RunResult) -> None:
    """Warn of fallbacks, of data missing in the store, of a trace that was not sent, and of failed hooks."""
    for each in result.finished.fallbacks:
        warn_of_fallback(context, each)
    unstored = result.finished.not_stored
    if unstored is not None:
        text = f"the log has what the run learned, its store does not: {unstored.message}"
        context.warn(UnusableEnvironment(unstored.code, text))
    if result.not_exported:
        text = f"the trace was not sent: {result.not_exported}"
        context.warn(UnusableEnvironment("export.failed", text))
    for warning in result.warnings:
        # With `-q` too: no one learns of the run by a hook that failed.
        context.warn(warning, if_quiet=True)


class AgentOutputs(Record):
    """The output of an agent's run that a screen shows."""

    response: str | None = None


def _write_outputs(context: CommandContext, outputs: Json | None, *, is_agent: bool) -> None:
    """Write the outputs to stdout; for an agent the text of its response if there is one."""
    if outputs is None:
        return
    response = read_record(AgentOutputs, outputs).response if is_agent else None
    text = dumps(outputs, indent=True) if response is None else visible_block(response)
    _write_answer(context, text)


def find_say(result: RunResult) -> str:
    """Return the pack's text for the customer of a denied or waiting run. Empty if the pack has no text."""
    return read_record(RunError, result.error).say or ""


def _write_answer(context: CommandContext, text: str) -> None:
    """Write the answer to stdout."""
    try:
        context.screen.answer(text + "\n")
    except BrokenPipeError:  # the reader closed the pipe; exit code and last lines do not change
        silence_stdout()
        context.screen.out.file = None
