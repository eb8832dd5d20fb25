"""The last lines of a run: error, outcome, next commands
(docs/reference/command-line.md#errors)."""

from __future__ import annotations

from typing import Any

from cogcli.cli.context import CommandContext
from cogcli.cli.render_error import error_lines, next_lines
from cogcli.core.terminal_text import visible
from cogcli.report.humanize import duration, short_episode
from cogcli.report.styled_text import StyledLine, style_of
from cogcli.runs.results import RunResult

_COUNTED = ("done", "failed", "skipped", "vetoed")


def error_of(result: RunResult, again: str = "", *, here: bool = False) -> dict[str, Any] | None:
    """The `error` object of the envelope, with a command in `next`; `here` names the episode `@last`."""
    if result.error is None:
        return None
    error = dict(result.error)
    error.setdefault("retryable", False)
    error.setdefault("hint", "")
    if not error.get("next"):
        error["next"] = _next(result, again, here=here)
    return error


def _next(result: RunResult, again: str, *, here: bool) -> list[str]:
    error = result.error or {}
    step = error.get("step")
    episode = "@last" if here else short_episode(result.episode_id)
    found = []
    if result.approve:
        found.append(f"cogcli resume {episode} {result.approve}{again}")
    if result.in_doubt:
        from cogcli.runs.doubt_decisions import resume_commands

        found += [f"{command}{again}" for command in resume_commands(episode, result.in_doubt)]
    if found:
        return found
    step = f" --step {step} --io" if isinstance(step, str) and step else ""
    return [f"cogcli trace {episode}{step}{again}"]


def final_lines(
    context: CommandContext, result: RunResult, wall_ms: int | None, *, brief: bool
) -> list[StyledLine]:
    """The lines after the answer: error, outcome, next commands.

    With `-q`, and after a display that wrote the outcome (`brief`), only the error.
    """
    screen = context.screen
    failed = result.status != "aborted"
    error = error_of(result, context.again, here=screen.err.tty and not screen.ci) if failed else None
    lines = []
    if error:
        lines = error_lines(error, base=context.base, width=screen.err.width, verbose=context.verbose)
    if brief or screen.quiet:
        return lines + (next_lines(error["next"]) if error else [])
    gap: list[StyledLine] = [[("", "")]] if error else []
    lines = [*gap, *lines, *gap, _outcome(context, result, wall_ms)]
    if error:
        return lines + next_lines(error["next"])
    return lines + (
        next_lines([f"cogcli trace @last{context.again}"]) if screen.hints and result.status == "ok" else []
    )


def _outcome(context: CommandContext, result: RunResult, wall_ms: int | None) -> StyledLine:
    """`ok in 2.07s · ep_01M7XJNZDYM9 · .cogcli/episodes/ep_...`."""
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
