"""`rerun EP`: a new episode that reuses the results before a step (docs/reference/episode.md#rerun)."""

from __future__ import annotations

from typing import Annotated, Final

from cogcli.app import episodes
from cogcli.app.resume import RerunRequest, prepare_rerun
from cogcli.app.run_skill import answering_environment, environment_of
from cogcli.base.errors import CogcliError, UnusableEnvironment, UsageError
from cogcli.base.terminal_text import visible
from cogcli.cli.context import CommandContext
from cogcli.cli.effects import ask_effects, parse_effects, show_plan
from cogcli.cli.exclusive import start_in_turn
from cogcli.cli.given_options import read_options
from cogcli.cli.inputs import read_inputs
from cogcli.cli.live_run import (
    DisplayListener,
    answer_pause,
    find_person,
    open_display,
    report_result,
    watch_start,
)
from cogcli.cli.options import EXECUTION, SAFETY, Episode, command, switch, text
from cogcli.cli.run_flags import RerunFlags
from cogcli.cli.run_skill import warn_of_distrust
from cogcli.declarations.options import normalized
from cogcli.declarations.value_types import Json
from cogcli.run.launch import EarlierRun, launch
from cogcli.run.rerun import ReusedSteps
from cogcli.run.rerun_probes import probe_effects
from cogcli.run.results import Control, RunResult
from cogcli.run.resume_adapters import send_unmasked

_EFFECTS: Final = (
    "an effect that would happen again: reuse its answer, repeat it, or fail (repeatable)"
)


@command(
    examples=(
        ("cogcli rerun @failed --from summarize", "keep the steps before it, try again"),
        ("cogcli rerun @last -p max_words=40", "all of it with another input"),
        ("cogcli rerun @failed --failed-items", "in a loop, only the items that are left"),
    ),
    exits=(0, 1, 2, 3, 4, 5, 6),
)
def rerun(
    context: CommandContext,
    episode: Episode,
    *,
    first: Annotated[
        str | None,
        text(
            "--from",
            "STEP",
            "the first step to run again",
            EXECUTION,
            default="first",
            completes="steps",
        ),
    ] = None,
    failed_items: Annotated[
        bool,
        switch(
            "--failed-items", help="in loops, run only the items that are not done", panel=EXECUTION
        ),
    ] = False,
    effects: Annotated[
        list[str], text("--effects", "STEP=WORD", _EFFECTS, SAFETY, completes="effects")
    ],
    flags: RerunFlags,
) -> int:
    """Run the skill of an earlier episode again, and return the exit code of the run."""
    settings = context.settings
    directory = episodes.find(settings, episode)
    given = read_inputs(context, flags)
    if failed_items and first:
        what = "`--failed-items` cannot be given together with `--from`"
        raise UsageError(
            "usage.flag", what, hint="it names the steps itself: loops with open items"
        )
    wanted = RerunRequest(
        first, failed_items, _typed_options(flags), given.inputs, given.problems, given.origins
    )
    try:
        prepared, reuse = prepare_rerun(settings, directory, wanted, context.warn)
    except UnusableEnvironment as error:
        context.keep_typed_flags(error, "--trust-level")
        raise
    warn_of_distrust(context, "skill", prepared.skill.id)
    choices = parse_effects(effects)
    reuse = reuse._replace(effects=reuse.effects.with_choices(choices))
    if flags.plan:
        return show_plan(context, reuse)
    reuse = ask_effects(context, probe_effects(environment_of(settings), prepared, reuse))
    _write_reasons(context, reuse)

    effects_of_source = reuse.effects.to_payload(context.user)
    earlier = EarlierRun(reuse.steps, effects_of_source, reuse.approvals)

    def start() -> tuple[RunResult, DisplayListener]:
        control, listener = Control(), DisplayListener(open_display(context))
        with watch_start(context, listener, control):
            person = find_person(context, listener.display)
            result = launch(
                answering_environment(settings, person),
                prepared,
                listener=listener,
                control=control,
                earlier=earlier,
                intercept=send_unmasked,
            )
        return result, listener

    started = start_in_turn(context, prepared.request.options.exclusive, flags, start)
    if started is None:
        return 0
    result, listener = answer_pause(context, *started)
    report_result(context, result, listener, None, answer=True)
    return result.exit_code


def _typed_options(flags: RerunFlags) -> Json:
    """Return the typed options, which replace those of the earlier run. Raise UsageError."""
    problems: list[CogcliError] = []
    typed = read_options(flags, problems)
    for problem in problems:
        raise problem
    return normalized(typed)


def _write_reasons(context: CommandContext, reuse: ReusedSteps) -> None:
    """Write to stderr, for each step, that it is reused or why it runs."""
    if context.screen.quiet:
        return
    width = max(len(step_id) for step_id in reuse.why)
    for step_id, why in reuse.why.items():
        word = f"reused from {reuse.episode_id}" if why == "reused" else f"runs: {why}"
        context.screen.notify(visible(f"  {step_id:<{width}}  {word}") + "\n")
