"""The last lines of a run: error, outcome, next commands
(docs/reference/command-line.md#errors)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from cogcli.base.errors import TRANSIENT, exit_code
from cogcli.base.system_text import shell_word
from cogcli.base.terminal_text import visible
from cogcli.cli.context import CommandContext
from cogcli.cli.render_error import error_lines, next_lines
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Json
from cogcli.report.humanize import duration, short_episode
from cogcli.report.styled_text import StyledLine, style_of

if TYPE_CHECKING:
    from cogcli.run.rerun_point import RerunPoint
    from cogcli.run.results import RunResult

_COUNTED = ("done", "failed", "skipped", "vetoed")


def error_of(
    result: RunResult, global_flags: str = "", *, rerun: str | None = None, here: bool = False
) -> Json | None:
    """Return the `error` object of the envelope, with commands in `next`; None if the run has no
    error.

    `rerun` is the result of `rerun_flags`. With `here` the commands name the episode `@last`.
    """
    if result.error is None:
        return None
    error = dict(result.error)
    error.setdefault("retryable", False)
    error.setdefault("hint", "")
    if not error.get("next"):
        error["next"] = _next_commands(result, global_flags, rerun, here=here)
    return error


def rerun_flags(context: CommandContext, result: RunResult) -> str | None:
    """Return the flags of a `rerun` that continues a failed or stopped run with the permissions of
    this command.

    They include `--plan` if effects need a decision. None if no rerun is possible.
    """
    given = context.call.given
    return flags_from_point(
        result.rerun, given.get("trust_level") or "", given.get("confirm") or ()
    )


def flags_from_point(
    point: RerunPoint | None, trust_level: str, confirmed_capabilities: Iterable[str]
) -> str | None:
    """Return the flags of a `rerun` that continues at a point with these permissions; None without
    a point.
    """
    if point is None:
        return None
    words = ["--failed-items"] if point.items else ["--from", point.first] if point.first else []
    words += ["--trust-level", trust_level] if trust_level else []
    words += [word for capability in confirmed_capabilities for word in ("--confirm", capability)]
    return "".join(f" {shell_word(word)}" for word in [*words, *(["--plan"] if point.asks else [])])


def _next_commands(
    result: RunResult, global_flags: str, rerun: str | None, *, here: bool
) -> list[str]:
    """Return the commands after an error."""
    episode = _episode_name(result, here=here)
    found = []
    if result.approve:
        found.append(f"cogcli resume {episode} {result.approve}{global_flags}")
    if result.in_doubt:
        from cogcli.run.doubt_decisions import resume_commands

        found += [
            f"{command}{global_flags}" for command in resume_commands(episode, result.in_doubt)
        ]
    found += [f"cogcli resume {episode} {flags}{global_flags}" for flags in result.answer]
    if found:
        return found
    error = read_record(FailedRun, result.error)
    commands = failure_commands(episode, error, result.rerun, rerun or "")
    return [f"cogcli {words}{global_flags}" for words in commands]


class FailedRun(Record):
    """The members of a run's error that the next commands depend on."""

    code: str
    step: str
    instead: str
    """`CAP=BINDING` for a binding that needs no network; empty for none."""


def failure_commands(
    episode: str, error: FailedRun, point: RerunPoint | None, flags: str
) -> Iterator[str]:
    """Yield the commands to suggest after a failed run, without the tool's name.

    They inspect the calls of the failed step. They also rerun it if earlier steps can be reused or
    the service may answer next time. `flags` are flags of `rerun`.
    """
    yield f"trace {episode} --step {error.step} --io" if error.step else f"trace {episode}"
    if point is not None and (point.keeps or exit_code(error.code) == TRANSIENT):
        yield f"rerun {episode}{flags}"
        if error.instead:
            yield f"rerun {episode}{flags} --bind {error.instead}"


def _episode_name(result: RunResult, *, here: bool) -> str:
    """Return the name of the episode in commands."""
    return "@last" if here else short_episode(result.episode_id)


def final_lines(
    context: CommandContext,
    result: RunResult,
    wall_ms: int | None,
    *,
    brief: bool,
    decided_later: bool = False,
    rerun: str | None = None,
) -> list[StyledLine]:
    """Return the lines after the answer: error, outcome, next commands.

    With `-q`, and after a display that wrote the outcome (`brief`), only the error. Empty if the
    user was prompted and `decided_later`.
    """
    screen = context.screen
    here = screen.err.tty and not screen.ci
    error = (
        None
        if result.status == "aborted"
        else error_of(result, context.again, rerun=rerun, here=here)
    )
    next = list(error["next"]) if error else _next_after_stop(context, result, rerun, here=here)
    lines: list[StyledLine] = []
    if decided_later:
        next += _reject_commands(next)
    elif error:
        lines = error_lines(
            error, base=context.base, width=screen.err.width, verbose=context.verbose
        )
    if brief or screen.quiet:
        return lines + next_lines(next)
    gap: list[StyledLine] = [[("", "")]] if lines else []
    looks = _inspection_lines(context) if result.status == "ok" else next_lines(next)
    return [*gap, *lines, *gap, _outcome_line(context, result, wall_ms), *looks]


def undone_lines(
    context: CommandContext, result: RunResult, decision: Json | None
) -> list[StyledLine]:
    """Return the lines about an agent's decision that was carried out only in part, or not at all.

    Empty for every other run, and for one whose error says so. `decision` is the `x-decision`.
    """
    if decision is None or result.status != "partial" or result.error is not None:
        return []
    screen = context.screen
    episode = _episode_name(result, here=screen.err.tty and not screen.ci)
    reason = decision["status_reason"] or decision["status"]
    line: StyledLine = [("not done: ", "warning"), (visible(reason), "")]
    return [line, *next_lines([f"cogcli trace {episode}{context.again}"])]


def _reject_commands(commands: list[str]) -> list[str]:
    """Return the command that rejects, for each command that approves."""
    approvals = [command for command in commands if " --approve " in command]
    return [command.replace(" --approve ", " --reject ") for command in approvals]


def _next_after_stop(
    context: CommandContext, result: RunResult, rerun: str | None, *, here: bool
) -> list[str]:
    """Return the command that continues or inspects a stopped run; empty for any other run."""
    if result.status != "aborted" or not result.exit_code or context.screen.quiet:
        return []
    episode = _episode_name(result, here=here)
    words = f"trace {episode}" if rerun is None else f"rerun {episode}{rerun}"
    return [f"cogcli {words}{context.again}"]


def _inspection_lines(context: CommandContext) -> list[StyledLine]:
    """Return the line with two commands that inspect a successful run; empty if hints are off."""
    if not context.screen.hints:
        return []
    looks = [f"cogcli {words}{context.again}" for words in ("trace @last", "report @last --open")]
    return next_lines([f"   {context.screen.err.glyphs.dot}   ".join(looks)])


def _outcome_line(context: CommandContext, result: RunResult, wall_ms: int | None) -> StyledLine:
    """Return the outcome, such as `ok in 2.07s · ep_01M7XJNZDYM9 · .cogcli/episodes/ep_...`."""
    err = context.screen.err
    dot = f" {err.glyphs.dot} "
    took = duration(int(result.metrics.get("elapsed_ms") or 0) if wall_ms is None else wall_ms)
    episode = short_episode(result.episode_id) if err.tty else result.episode_id
    parts = [f" in {took}", dot + episode]
    if result.status == "pending":
        parts = [dot + episode, " is saved and waits"]
    elif result.status == "ok":
        parts.append(dot + visible(context.settings.display_path(result.directory)))
    else:
        counts = [f"{result.counts[word]} {word}" for word in _COUNTED if result.counts.get(word)]
        parts.append(dot + ", ".join(counts) if counts else "")
    return [(result.status, style_of(result.status)), ("".join(parts), "")]
