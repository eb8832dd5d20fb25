"""`rerun EP`: a new episode that reuses the results before a step (docs/reference/episode.md#rerun)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cogcli.app import episodes
from cogcli.cli.commands.run import parse_pairs
from cogcli.cli.effects import ask_effects, parse_effects, show_plan
from cogcli.cli.live_run import DisplayListener, SignalHandlers, report_result
from cogcli.cli.progress import display_for
from cogcli.core.errors import CogcliError
from cogcli.core.terminal_text import visible

if TYPE_CHECKING:
    from cogcli.cli.context import CommandContext
    from cogcli.runs.rerun import Reuse

_SETTINGS: Final = {
    "--trust-level": "trust_level",
    "--max-workers": "max_workers",
    "--timeout": "timeout",
    "--step-timeout": "step_timeout",
    "--conformance": "conformance",
    "--durability": "durability",
}
"""Flags that replace options of the earlier run, each with its setting."""


def execute(context: CommandContext) -> int:
    """Run the skill of an earlier episode again; returns the exit code of the run."""
    from cogcli.app import run_skill as app
    from cogcli.runs.rerun import UnmaskedRunner
    from cogcli.runs.results import Control

    settings, given = context.settings, context.arguments
    directory = episodes.find(settings, given.words[0])
    loaded, reuse = app.prepare_reuse(
        settings, directory, given.text("--from"), _overrides(context), context.warn
    )
    choices = parse_effects(given.many("--effects"))
    reuse = reuse._replace(effects=reuse.effects.with_choices(choices))
    if given.on("--plan"):
        return show_plan(context, reuse)
    reuse = ask_effects(context, app.probe_effects(settings, loaded, reuse))
    _write_reasons(context, reuse)
    display = display_for(context.screen, str(settings.value("progress")), verbose=given.on("--verbose"))
    control, listener = Control(), DisplayListener(display)
    context.warn_of_shared_runs()
    context.screen.claim_stdout()
    try:
        with SignalHandlers(context, control, display):
            result = app.run(
                settings, loaded, listener=listener, control=control, taken_over=reuse.steps,
                effects=reuse.effects.to_payload(context.user), around=UnmaskedRunner,
            )  # fmt: skip
    except CogcliError as error:
        listener.add_trace_command(error)
        raise
    finally:
        display.close()
    report_result(context, result, listener, None, answer=True)
    return result.exit_code


def _overrides(context: CommandContext) -> dict[str, Any]:
    given = context.arguments
    problems: list[CogcliError] = []
    changed: dict[str, Any] = {
        name: context.settings.value(name) for flag, name in _SETTINGS.items() if given.given(flag)
    }
    if given.on("--keep-going"):
        changed["fail_fast"] = False
    if given.many("--confirm"):
        changed["confirmed"] = tuple(given.many("--confirm"))
    for flag, name, shape in (("--bind", "binds", "CAP=BINDING"), ("--tag", "tags", "k=v")):
        if given.many(flag):
            changed[name] = parse_pairs(given.many(flag), flag, shape, problems)
    for problem in problems:
        raise problem
    return changed


def _write_reasons(context: CommandContext, reuse: Reuse) -> None:
    """Write one line per step to stderr: reused, or why it runs."""
    if context.screen.quiet:
        return
    width = max(len(step_id) for step_id in reuse.why)
    for step_id, why in reuse.why.items():
        word = f"reused from {reuse.episode_id}" if why == "reused" else f"runs: {why}"
        context.screen.notify(visible(f"  {step_id:<{width}}  {word}") + "\n")
