"""`run SKILL`: check, run, write the outputs to stdout (docs/reference/command-line.md#streams,
docs/reference/command-line.md#flags, docs/reference/command-line.md#inputs,
docs/reference/command-line.md#views)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cogcli.app import run_skill as app
from cogcli.cli import inputs as given
from cogcli.cli.command import command
from cogcli.cli.context import CommandContext
from cogcli.cli.live_run import DisplayListener, SignalHandlers, answer_pause, report_result
from cogcli.cli.options import Skill
from cogcli.cli.progress import Display, display_for
from cogcli.cli.run_flags import RunFlags
from cogcli.core.errors import CogcliError, EnvironmentRefusal, SkillNotFoundError, UsageError
from cogcli.runs.prepare import PreparedRun, RunRequest, skill_of

if TYPE_CHECKING:
    from cogcli.runs.results import RunResult


@command(
    examples=(
        ("cogcli run text.summarize -p text=@notes.md", "one input from a file"),
        ("cogcli run text.summarize --input-file in.json | jq .", "all inputs from a file"),
        ("cogcli run text.summarize -p text=@notes.md --plan", "what would run?"),
    ),
    exits=(0, 1, 2, 3, 4, 5, 6, 70, 130, 143),
)
def run(context: CommandContext, skill: Skill, *, flags: RunFlags) -> int:
    """Run a skill."""
    return run_skill(context, skill, flags)


def run_skill(
    context: CommandContext, skill_id: str, flags: RunFlags, *, display: Display | None = None, answer: bool = True,
    after: Callable[[RunResult], None] | None = None,
) -> int:  # fmt: skip
    """Run a skill and report the result; returns its exit code.

    `trace SKILL` gives its own `display`, and `after`, which is called before the last lines.
    """
    from cogcli.runs.results import Control

    loaded = _load(context, skill_id, flags)
    for warning in loaded.warnings:
        context.warnings.append(warning.to_payload() if hasattr(warning, "to_payload") else warning)
    if flags.plan:
        from cogcli.cli.plan import show_plan

        return show_plan(context, loaded)
    from cogcli.runs.launch import launch  # before signals are handled: one during this import starts no run

    word = str(context.settings.value("progress"))
    display = display or display_for(context.screen, word, verbose=context.verbose)
    control, listener = Control(), DisplayListener(display)
    context.warn_of_shared_runs()
    context.screen.claim_stdout()
    try:
        with SignalHandlers(context, control, display):
            environment = app.environment_of(context.settings)
            result = launch(environment, loaded, listener=listener, control=control)
    except CogcliError as error:
        listener.add_trace_command(error)
        raise
    finally:
        display.close()
    for text in result.leftovers:
        context.warn(EnvironmentRefusal("service.leftover", text))
    result, listener = answer_pause(context, result, listener)
    report_result(context, result, listener, after, answer=answer)
    return result.exit_code


def _load(context: CommandContext, skill_id: str, flags: RunFlags) -> PreparedRun:
    """The run that may start. Raises the problems of flags, inputs and specs together."""
    _check_id(skill_id)
    problems: list[CogcliError] = []
    options = run_options(context, flags, problems)
    catalog = app.reach(context.settings, skill_id)
    skill_of(catalog, skill_id)  # before stdin is read for a skill that cannot run
    assembled = given.assemble(context, flags)
    request = RunRequest(skill_id=skill_id, inputs=assembled.inputs, frame=assembled.frame, **options)
    problems += assembled.problems
    try:
        return app.load_given(context.settings, request, catalog, problems, assembled.doubtful)
    except CogcliError as error:
        if flags.plan:
            from cogcli.cli.plan import show_refused

            show_refused(context, catalog, request, error)
        raise


def _check_id(skill_id: str) -> None:
    """Raise SkillNotFoundError for a path in place of an id, with a hint."""
    if "/" in skill_id or skill_id.endswith((".yaml", ".yml")):
        raise SkillNotFoundError(
            "skill.not-found",
            f"`{skill_id}` is no skill id",
            hint="an id is domain.slug; see cogcli skills ls",
        )


def run_options(context: CommandContext, flags: RunFlags, problems: list[CogcliError]) -> dict[str, Any]:
    """The fields of a RunRequest that flags and settings decide; wrong values are added to `problems`."""
    settings = context.settings
    timeout = settings.value("timeout")
    return {
        "trace_id": _trace_id(flags.trace_id, problems),
        "trust_level": settings.value("trust_level"),
        "confirmed": tuple(flags.confirm),
        "binds": parse_pairs(flags.bind, "--bind", "CAP=BINDING", problems),
        "fail_fast": not settings.value("keep_going"),
        "max_workers": settings.value("max_workers"),
        "timeout": None if timeout is None else float(timeout),
        "step_timeout": float(settings.value("step_timeout")),
        "conformance": settings.value("conformance"),
        "seed": flags.seed or 0,
        "tags": parse_pairs(flags.tag, "--tag", "k=v", problems),
        "durability": settings.value("durability"),
    }


def _trace_id(text: str | None, problems: list[CogcliError]) -> str | None:
    if text is not None and not re.fullmatch(r"[A-Za-z0-9._:-]{1,128}", text):
        problems.append(
            UsageError(
                "usage.value",
                f"`--trace-id`: found `{text[:60]}`",
                expected="1 to 128 letters, digits, `.`, `_`, `:` or `-`",
            )
        )
    return text


def parse_pairs(given: list[str], flag: str, shape: str, problems: list[CogcliError]) -> dict[str, str]:
    """The `name=value` texts of a repeatable flag; an error for any other text is added to `problems`."""
    pairs: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name or not value:
            problems.append(UsageError("usage.value", f"`{flag}`: found `{text[:60]}`, expected {shape}"))
        elif pairs.setdefault(name, value) != value:
            problems.append(
                UsageError("usage.value", f"`{flag} {name}` is given twice", hint="keep one of them")
            )
    return pairs
