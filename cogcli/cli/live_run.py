"""A run with its display, signals, prompts and last lines, shared by `run`, `resume` and `rerun`
(docs/reference/command-line.md#streams, docs/reference/command-line.md#prompts)."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cogcli.base.errors import CogcliError, EnvironmentRefusal
from cogcli.base.step_path import StepPath
from cogcli.base.terminal_text import visible, visible_block
from cogcli.cli.context import CommandContext
from cogcli.cli.display import Display
from cogcli.cli.envelope import dumps
from cogcli.cli.progress import display_for
from cogcli.cli.run_report import error_of, final_lines, rerun_flags
from cogcli.cli.streams import silence_stdout
from cogcli.declarations.envelope import Event
from cogcli.declarations.value_types import Json
from cogcli.episode.decision import read_summary
from cogcli.episode.log_reader import iterate_events
from cogcli.report.humanize import short_episode
from cogcli.run.results import Control, RunResult

if TYPE_CHECKING:
    from cogcli.run.engine.context import Fallback
    from cogcli.run.resume import ResumeRequest

_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")


class DisplayListener:
    """Passes the events of a run to its display, and measures the root run's wall time in
    milliseconds.

    A display that raises gets no further event, so that a display never ends a run. `before` is
    called once, before the first event."""

    def __init__(self, display: Display, before: Callable[[], None] | None = None) -> None:
        self.display = display
        self._before = before
        self.wall_ms: int | None = None
        self.decided_later = False
        """Whether a person was asked for an approval and left it open."""
        self._failed = False
        self._root: str | None = None
        self._episode = ""

    def __call__(self, event: Event) -> None:
        self._root = self._root or event.run_id
        self._episode = self._episode or event.episode_id
        if event.phase == "terminate" and event.run_id == self._root:
            self.wall_ms = round((event.metrics or {}).get("duration_ms") or 0)
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
        """Set `next` of an error to `cogcli trace EPISODE`, if the run had begun and the error
        suggests no command."""
        if self._episode and not error.next:
            error.next = (f"cogcli trace {short_episode(self._episode)}",)


def open_display(context: CommandContext) -> Display:
    """Return the display of a run for the setting `progress`."""
    return display_for(
        context.screen, str(context.settings.value("progress")), verbose=context.verbose
    )


@contextmanager
def watch_start(
    context: CommandContext, listener: DisplayListener, control: Control
) -> Iterator[DisplayListener]:
    """Inside, a new run has its display and signal handlers. An error after its begin gets the
    command that shows its trace."""
    context.warn_of_shared_runs()
    try:
        with _watch(context, listener, control):
            yield listener
    except CogcliError as error:
        listener.add_trace_command(error)
        raise


@contextmanager
def _watch(context: CommandContext, listener: DisplayListener, control: Control) -> Iterator[None]:
    """Inside, a signal cancels the run, and a second one ends the grace period. At the end the
    display is closed."""
    previous: dict[int, Any] = {}
    seen: list[int] = []

    def handle(number: int, frame: object) -> None:
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
                previous[number] = signal.signal(number, handle)
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
        listener.display.close()


def answer_pause(
    context: CommandContext, result: RunResult, listener: DisplayListener
) -> tuple[RunResult, DisplayListener]:
    """Return the result of a run after the user's answers at the terminal, with the listener of its
    last part.

    Both are unchanged if the run does not wait, or if no user can be prompted."""
    if result.status != "pending":
        return result, listener
    from cogcli.cli.approve import ask_approval

    latest = listener

    def resume_with(request: ResumeRequest) -> RunResult:
        nonlocal latest
        durable = request._replace(durability=str(context.settings.value("durability")))
        after, latest = resume_run(context, Path(result.directory), durable)
        return after

    answered, latest.decided_later = ask_approval(context, result, context.user, resume_with)
    return answered, latest


def resume_run(
    context: CommandContext, directory: Path, request: ResumeRequest
) -> tuple[RunResult, DisplayListener]:
    """Resume a run with a display. Raise the errors of `app.resume.resume`."""
    from cogcli.app.resume import resume

    done: list[str] = []

    def tell_kept() -> None:
        if done and not request.abort and not context.screen.quiet:
            context.screen.notify(visible(f"kept from before: {', '.join(done)}") + "\n")

    control, listener = Control(), DisplayListener(open_display(context), tell_kept)
    with suppress(CogcliError):  # of a damaged log: `resume` refuses it
        listener.display.recall(_collect_done_steps(iterate_events(directory), done))
    with _watch(context, listener, control):
        result = resume(
            context.settings, directory, request,
            listener=listener, control=control, on_response=listener.display.on_response,
        )  # fmt: skip
    return result, listener


def _collect_done_steps(events: Iterable[Event], done: list[str]) -> Iterator[Event]:
    """Yield the events, and add the finished steps of the root run to `done`."""
    root = None
    for event in events:
        root = root or event.run_id
        path = event.step_id or ""
        if event.event_type == "step.completed" and event.run_id == root and StepPath(path).is_step:
            done.append(path)
        yield event


def warn_of_fallback(context: CommandContext, fallback: Fallback) -> None:
    """Report that a fallback binding answered, even with `-q`: it affects the meaning of the
    answer."""
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

    `after` is called between the two."""
    rerun = rerun_flags(context, result)
    decision = read_summary(result.directory)
    _fill_envelope(context, result, rerun, decision)
    _warn_of_lacks(context, result)
    if answer and not context.json and result.status in ("ok", "partial"):
        _write_outputs(context, result.outputs, is_agent=decision is not None)
    if after:
        after(result)
    how = {"brief": listener.display.brief, "decided_later": listener.decided_later}
    for line in final_lines(context, result, listener.wall_ms, rerun=rerun, **how):
        context.screen.notify_line(line)


def _fill_envelope(
    context: CommandContext, result: RunResult, rerun: str | None, decision: Json | None
) -> None:
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
    context.error = error_of(result, context.again, rerun=rerun)


def _warn_of_lacks(context: CommandContext, result: RunResult) -> None:
    """Warn of fallbacks, of what the store lacks, and of a trace that was not sent."""
    for each in result.finished.fallbacks:
        warn_of_fallback(context, each)
    unstored = result.finished.not_stored
    if unstored is not None:
        text = f"the log has what the run learned, its store does not: {unstored.message}"
        context.warn(EnvironmentRefusal(unstored.code, text))
    if result.not_exported:
        text = f"the trace was not sent: {result.not_exported}"
        context.warn(EnvironmentRefusal("export.failed", text))


def _write_outputs(context: CommandContext, outputs: Json | None, *, is_agent: bool) -> None:
    """Write the outputs to stdout: of an agent the text of its response, if it has one."""
    if outputs is None:
        return
    response = outputs.get("response") if is_agent else None
    is_text = isinstance(response, str)
    text = visible_block(str(response)) if is_text else dumps(outputs, indent=True)
    try:
        context.screen.answer(text + "\n")
    except BrokenPipeError:  # the reader closed the pipe; exit code and last lines do not change
        silence_stdout()
        context.screen.out.file = None
