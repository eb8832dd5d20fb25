"""The tree of an episode for `trace` (docs/reference/command-line.md#views), with its open requests
and the commands that continue it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from shlex import quote

from cogcli.base.named_tuple import NamedTuple
from cogcli.base.step_path import StepPath
from cogcli.base.terminal_text import truncate_bytes, visible, visible_block
from cogcli.cli.approval_screen import input_lines, request_lines
from cogcli.cli.context import CommandContext
from cogcli.cli.drawing import draw_lines
from cogcli.cli.envelope import dumps
from cogcli.cli.run_flags import TraceFlags
from cogcli.declarations.envelope import Event
from cogcli.declarations.governance_events import ApprovalRequested
from cogcli.episode.history import DecisionRequest, History, input_flags
from cogcli.episode.run_history import StepHistory
from cogcli.report.approval_view import view_request
from cogcli.report.humanize import fuzzy_time, short_episode
from cogcli.report.styled_text import StyledLine, named_rows
from cogcli.report.tree import footer, header, run_error, tree
from cogcli.report.unfinished_runs import UnfinishedState, describe, is_expired


class TracedEpisode(NamedTuple):
    """An episode as `trace` displays it.

    `step` is that of `--step`, or empty. `note` is a line about other episodes of the trace.
    """

    history: History
    status: str
    flags: TraceFlags = TraceFlags()
    step: str = ""
    note: str = ""
    events: tuple[Event, ...] = ()
    log: tuple[Event, ...] = ()
    """All events, including those outside the view."""
    directory: Path | None = None
    unfinished: UnfinishedState = UnfinishedState()
    unsealed: bool = False
    """Whether the run has ended without a manifest: a crash while sealing."""
    stalled: bool = False
    """Whether it continues without giving signs of life."""
    fault_status: str = ""
    """`altered` or `unsealed` if the files of the episode do not agree."""

    @property
    def status_text(self) -> str:
        """The status as text, including a disagreement between the files and the log."""
        if self.stalled:
            return "stalled, no sign of life"
        if self.fault_status:
            return f"{self.fault_status}, the log says {self.status}"
        return "interrupted, not finalised" if self.status == "interrupted" else self.status

    @property
    def note_lines(self) -> list[StyledLine]:
        """The note as the first line of a view; empty without a note."""
        return [[(visible(self.note), "dim")]] if self.note else []

    @property
    def out_of_disk(self) -> bool:
        """Whether a full disk ended the run."""
        error = self.history.root.error if self.history.root else None
        return error is not None and error.code == "env.disk"


def waiting_lines(
    context: CommandContext, traced: TracedEpisode, *, width: int | None, in_tree: bool
) -> list[StyledLine]:
    """Return a line for each open request, call in doubt and other reason why the run has not
    ended.

    Times are relative if there is a width. With `in_tree` the error of the run is omitted, because
    the tree shows it.
    """
    now = context.settings.clock.now()
    rows = [("error", error)] if (error := run_error(traced.history)) and not in_tree else []
    rows += describe(
        traced.unfinished, now, lambda at: at if width is None else fuzzy_time(at, now)
    )
    if traced.unsealed:
        rows.append(
            ("unsealed", "the run has ended, but its process died before everything was written")
        )
    return named_rows(rows, indent="", style="warning")


def next_commands(context: CommandContext, traced: TracedEpisode) -> list[str]:
    """Return the commands that continue the run, or those to suggest after its failure.

    Empty for a successful or running one.
    """
    directory = traced.directory
    if directory is None or not traced.history.chained:
        return []
    # The short id of an episode in the runs directory, else its path.
    is_here = directory.parent == Path(context.settings.runs_dir)
    episode = short_episode(directory.name) if is_here else quote(str(directory))
    now = context.settings.clock.now()
    found = [
        *continuations(traced, episode, now),
        *_commands_after_failure(context, traced, episode),
    ]
    return [f"cogcli {text}{context.again}" for text in found]


def _commands_after_failure(
    context: CommandContext, traced: TracedEpisode, episode: str
) -> list[str]:
    """Return the commands to suggest after the failure of the run, without the current command."""
    root = traced.history.root
    if root is None or root.error is None or traced.status not in ("error", "vetoed", "partial"):
        return []
    if traced.unsealed or traced.out_of_disk:
        return []
    from cogcli.cli.after_failure import commands_after_failure

    found = commands_after_failure(context, root, traced.log, episode)
    answered = traced.flags.io and traced.step == root.error.step
    return [
        line for line in found if line != f"trace {episode}" and not (answered and " --io" in line)
    ]


def continuations(traced: TracedEpisode, episode: str, now: str) -> Iterator[str]:
    """Yield the commands that continue a run, without the tool's name.

    A request is open if it has not expired at `now`.
    """
    if traced.fault_status == "altered":
        yield f"verify {episode}"
    elif traced.unsealed:
        yield f"verify {episode} --repair"
    elif traced.status in ("pending", "interrupted"):
        yield from _resume_commands(traced, episode, now)
    elif traced.out_of_disk:
        yield f"rerun {episode}{_from_flag(traced)}"


def _from_flag(traced: TracedEpisode) -> str:
    """Return the flag of a rerun that begins at the first unfinished step; empty if that is the
    first step.
    """
    steps = traced.history.root.own if traced.history.root else []
    unfinished = next((step.id for step in steps if step.status != "done"), "")
    return f" --from {quote(unfinished)}" if unfinished and unfinished != steps[0].id else ""


def _decision_flags(asks: list[DecisionRequest]) -> Iterator[str]:
    """Yield the flags of `resume` that approve and that reject each of these requests."""
    names = [ask.name for ask in asks]
    for ask in asks:
        # The id, where two requests are for one capability.
        name = ask.name if names.count(ask.name) == 1 else ask.approval_id
        for flag in ("--approve", "--reject"):
            yield ask.answer_flags(flag, name)


def _resume_commands(traced: TracedEpisode, episode: str, now: str) -> Iterator[str]:
    """Yield the commands that answer the open requests of a run, or resume it."""
    open_asks = [ask for ask in traced.unfinished.asks if not is_expired(ask, now)]
    inputs = traced.unfinished.inputs
    for flags in (*_decision_flags(open_asks), *input_flags(inputs)):
        yield f"resume {episode} {flags}"
    doubtful = [step.id for step in traced.unfinished.doubtful]
    if doubtful:
        from cogcli.run.doubt_decisions import resume_commands

        for command in resume_commands(episode, doubtful):
            yield command.removeprefix("cogcli ")
    elif not open_asks and not inputs:
        yield f"resume {episode}"


def tree_lines(
    context: CommandContext, traced: TracedEpisode, *, on_stderr: bool = False
) -> list[StyledLine]:
    """Return the head line, the tree and the totals, for stdout or for stderr."""
    stream = context.screen.err if on_stderr else context.screen.out
    now = context.settings.clock.now()
    width, glyphs, fold = stream.width, stream.glyphs, traced.history
    lines = traced.note_lines
    lines.append(header(fold, glyphs, status=traced.status_text, now=now, width=width))
    full, word = traced.flags.full, traced.status_text
    lines += tree(fold, glyphs, status=word, width=width, only=traced.step, full=full)
    if not traced.step:
        lines.append(footer(fold, glyphs))
    return lines


def show_tree(context: CommandContext, traced: TracedEpisode) -> None:
    """Write the tree, the open requests, and with `--io` the values of the steps."""
    waiting = waiting_lines(context, traced, width=context.screen.out.width, in_tree=True)
    out, lines = context.screen.out, tree_lines(context, traced)
    if out.width is None:
        context.screen.answer_lines(lines)
    else:
        context.screen.answer(draw_lines(out, lines))
    context.screen.answer_lines([*waiting, *_value_lines(context, traced)])


def _value_lines(context: CommandContext, traced: TracedEpisode) -> list[StyledLine]:
    """Return the input, attempts and output of each step if `--io` is set."""
    lines: list[StyledLine] = []
    if traced.flags.io:
        lines += [*_request_lines(context, traced), *_form_lines(context, traced)]
        for run in traced.history.runs.values():
            for step in run.steps.values():
                if not traced.step or StepPath(step.id).within(traced.step):
                    lines += [[("", "")], [(visible(step.id), "bold")]]
                    answers = run.answers.get(step.id, ())
                    lines += _step_value_lines(step, answers, traced.flags.max_bytes)
    return lines


def _request_lines(context: CommandContext, traced: TracedEpisode) -> list[StyledLine]:
    """Return the open requests for approval of the shown steps, in full."""
    now, skill = (
        context.settings.clock.now(),
        traced.history.root.skill if traced.history.root else "",
    )
    waiting = {ask.approval_id for ask in traced.unfinished.asks}
    lines: list[StyledLine] = []
    for event in traced.log:
        if event.event_type != ApprovalRequested.event.name:
            continue
        view = view_request(event, skill=skill or "", now=now, global_flags=context.again)
        if view.approval_id in waiting and (
            not traced.step or StepPath(view.step).within(traced.step)
        ):
            lines += [[("", "")], *request_lines(context, view, in_full=traced.flags.full)]
    return lines


def _form_lines(context: CommandContext, traced: TracedEpisode) -> Iterator[StyledLine]:
    """Yield the forms that services ask a person to fill in, with their fields."""
    for asked in traced.unfinished.inputs:
        if not traced.step or StepPath(asked.step_id).within(traced.step):
            yield [("", "")]
            yield from input_lines(context, asked)


def _step_value_lines(
    step: StepHistory, answers: Sequence[str], maximum: int | None
) -> list[StyledLine]:
    """Return the input, the answers of people, attempts, output and error of a step."""
    lines = _json_lines("input", step.input, maximum)
    lines += _text_lines("answered", "\n".join(answers), maximum)
    several = len(step.attempts) > 1
    for number, attempt in enumerate(step.attempts, start=1):
        if several:
            words = (attempt.binding_id, attempt.status, attempt.code, attempt.message)
            text = visible("  ".join(word for word in words if word))
            lines.append([(f"  attempt {number}  ", "dim"), (text, "")])
        if attempt.url:
            lines += _text_lines("sent", f"{attempt.method or ''} {attempt.url}".strip(), maximum)
        lines += _json_lines("request", attempt.request, maximum)
        lines += _json_lines("reply", attempt.reply, maximum)
        lines += _text_lines("printed", attempt.printed, maximum)
        lines += _text_lines("stderr", attempt.stderr, maximum)
        lines += _text_lines("noticed", "\n".join(attempt.notices), maximum)
    error = step.error.json if step.error else None
    return (
        lines + _json_lines("output", step.output, maximum) + _json_lines("error", error, maximum)
    )


def _json_lines(word: str, value: object, maximum: int | None) -> list[StyledLine]:
    """Return the lines of a value as JSON; empty for None."""
    if value is None:
        return []
    return _labeled_lines(word, dumps(value, indent=True), maximum)


def _text_lines(word: str, text: object, maximum: int | None) -> list[StyledLine]:
    """Return the lines of a string that a call printed; empty for an empty text."""
    return (
        _labeled_lines(word, text.rstrip("\n"), maximum) if isinstance(text, str) and text else []
    )


def _labeled_lines(word: str, block: str, maximum: int | None) -> list[StyledLine]:
    """Return the lines of a string, with a word before the first."""
    head, more = truncate_bytes(block, maximum)
    text = [*visible_block(head).split("\n"), *([more] if more else [])]
    return [
        [(f"  {word if n == 0 else '':<7}  ", "dim"), (line, "")] for n, line in enumerate(text)
    ]
