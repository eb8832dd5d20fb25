"""`trace [EP|SKILL]`: the positional decides whether an episode is inspected or a skill is run
(docs/reference/command-line.md#skill-or-episode)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from cogcli.cli.context import CommandContext, is_skill
from cogcli.cli.options import argument, command, wrong_flag
from cogcli.cli.run_flags import EXPORTED, RunFlags, TraceFlags
from cogcli.declarations.options import OPTIONS

_EPISODE_FLAGS = ("why", "follow", "step", "o", "push")


@command(
    examples=(
        ("cogcli trace @last", "the newest episode as a tree"),
        ("cogcli trace --trace-id trace-001 --why outputs.report", "why is this so, or missing?"),
        ("cogcli trace text.summarize -p text=@notes.md", "run, events live"),
    ),
    exits=(0, 1, 2, 3, 4, 5, 6, 70, 130, 143),
)
def trace(
    context: CommandContext,
    target: Annotated[str | None, argument("[EP|SKILL]", "episodes skills")] = None,
    *,
    flags: TraceFlags,
    run: RunFlags,
) -> int:
    """Inspect an episode, or run a skill and display its trace."""
    if target is not None and is_skill(context, target):
        from cogcli.cli.run_skill import trace_run

        _refuse_flags(context, _EPISODE_FLAGS, "`trace EP`", "run it, then look at the episode")
        if flags.format in EXPORTED:
            what = f"`--format {flags.format}` belongs to `trace EP`"
            raise wrong_flag(what, "run it, then export the episode")
        return trace_run(context, target, flags, run)
    names = (name for name, _, _ in RunFlags.declared() if name != "trace_id")
    _refuse_flags(context, names, "`trace SKILL`", "an episode that exists is only looked at")
    from cogcli.cli.trace_episode import find_episode, inspect

    directory, note = find_episode(context, target, run.options.get("trace_id"))
    if flags.push is not None:
        return _send_trace(context, directory, flags.push)
    return inspect(context, directory, note, flags)


def _send_trace(context: CommandContext, directory: Path, url: str) -> int:
    """Send the trace of an episode to a URL, or to the collector in the environment variables."""
    from cogcli.app.otel_variables import find_collector
    from cogcli.app.trace_push import send_trace

    collector = find_collector(url, context.settings.environ)
    send_trace(context.settings, directory, collector)
    context.screen.notify(f"sent {directory.name} to {url}\n")
    return 0


def _refuse_flags(context: CommandContext, names: Iterable[str], owner: str, hint: str) -> None:
    """Raise UsageError if a flag of the other use is typed."""
    for name in names:
        if name in context.call.given:
            raise wrong_flag(f"`{_flag_spelling(name)}` belongs to {owner}", hint)


def _flag_spelling(name: str) -> str:
    """Return the spelling of a flag."""
    if name in OPTIONS:
        return OPTIONS[name].flag
    return f"-{name}" if len(name) == 1 else f"--{name.replace('_', '-')}"
