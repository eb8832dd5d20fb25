"""`run SKILL`: check, run, write the outputs to stdout (docs/reference/command-line.md#streams,
docs/reference/command-line.md#flags, docs/reference/command-line.md#inputs,
docs/reference/command-line.md#views)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cogcli.cli import inputs as given
from cogcli.cli.live_run import DisplayListener, SignalHandlers, answer_pause, report_result
from cogcli.cli.progress import display_for
from cogcli.core.errors import CogcliError, EnvironmentRefusal, SkillNotFoundError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from cogcli.cli.context import CommandContext
    from cogcli.cli.progress import Display
    from cogcli.runs.prepare import PreparedRun, RunRequest
    from cogcli.runs.results import RunResult
    from cogcli.specs.catalog import Catalog


def execute(context: CommandContext) -> int:
    """Run the skill of the first word."""
    return run_skill(context, context.arguments.words[0])


def run_skill(
    context: CommandContext, skill_id: str, *, display: Display | None = None, answer: bool = True,
    after: Callable[[RunResult], None] | None = None,
) -> int:  # fmt: skip
    """Run a skill and report the result; returns its exit code.

    `trace SKILL` gives its own `display`, and `after`, which is called before the last lines.
    """
    from cogcli.app import run_skill as app
    from cogcli.runs.results import Control

    loaded = _load(context, skill_id)
    for warning in loaded.warnings:
        context.warnings.append(warning.to_payload() if hasattr(warning, "to_payload") else warning)
    if context.arguments.on("--plan"):
        from cogcli.cli.plan import show_plan

        return show_plan(context, loaded)
    word = str(context.settings.value("progress"))
    display = display or display_for(context.screen, word, verbose=context.arguments.on("--verbose"))
    control, listener = Control(), DisplayListener(display)
    context.warn_of_shared_runs()
    context.screen.claim_stdout()
    try:
        with SignalHandlers(context, control, display):
            result = app.run(context.settings, loaded, listener=listener, control=control)
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


def _load(context: CommandContext, skill_id: str) -> PreparedRun:
    """The run that may start. Raises the problems of flags, inputs and specs together."""
    from cogcli.app import run_skill as app
    from cogcli.runs.prepare import RunRequest, skill_of

    _check_id(skill_id)
    problems: list[CogcliError] = []
    options = run_options(context, problems)
    catalog = app.reach(context.settings, skill_id)
    assembled = given.assemble(context, skill_of(catalog, skill_id).inputs)
    request = RunRequest(skill_id=skill_id, inputs=assembled.inputs, frame=assembled.frame, **options)
    problems += assembled.problems
    try:
        return _check_all(context, request, catalog, problems, assembled.doubtful)
    except CogcliError as error:
        if context.arguments.on("--plan"):
            from cogcli.cli.plan import show_refused

            show_refused(context, catalog, request, error)
        raise


def _check_all(
    context: CommandContext,
    request: RunRequest,
    catalog: Catalog,
    problems: list[CogcliError],
    doubtful: Iterable[str],
) -> PreparedRun:
    from cogcli.app import run_skill as app
    from cogcli.cli.error_group import raise_together

    try:
        loaded = app.load(context.settings, request, catalog)
    except CogcliError as error:
        problems = [*problems, *_unknown_capabilities(request, catalog)]
        if not problems:
            raise
        raise_together(problems, error, doubtful=doubtful)
    raise_together([*problems, *_unknown_capabilities(request, catalog)])
    return loaded


def _unknown_capabilities(request: RunRequest, catalog: Catalog) -> Iterator[UsageError]:
    """An error per capability of `--bind` or `--confirm` that the skill never calls: a typo must not pass."""
    from cogcli.cli.parse import suggest

    known = {*catalog.capabilities, *catalog.aliases}
    for flag, names in (("--bind", request.binds), ("--confirm", request.confirmed)):
        for name in names:
            if name not in known:
                what = f"`{flag}`: `{request.skill_id}` uses no capability `{name[:60]}`"
                yield UsageError("usage.value", what, hint=suggest(name, sorted(known)) or "leave it out")


def _check_id(skill_id: str) -> None:
    """Raise SkillNotFoundError for a path in place of an id, with a hint."""
    if "/" in skill_id or skill_id.endswith((".yaml", ".yml")):
        raise SkillNotFoundError(
            "skill.not-found",
            f"`{skill_id}` is no skill id",
            hint="an id is domain.slug; see cogcli skills ls",
        )


def run_options(context: CommandContext, problems: list[CogcliError]) -> dict[str, Any]:
    """The fields of a RunRequest that flags and settings decide; wrong values are added to `problems`."""
    arguments, settings = context.arguments, context.settings
    timeout = settings.value("timeout")
    return {
        "trace_id": _trace_id(arguments.text("--trace-id"), problems),
        "trust_level": settings.value("trust_level"),
        "confirmed": tuple(arguments.many("--confirm")),
        "binds": parse_pairs(arguments.many("--bind"), "--bind", "CAP=BINDING", problems),
        "fail_fast": not settings.value("keep_going"),
        "max_workers": settings.value("max_workers"),
        "timeout": None if timeout is None else float(timeout),
        "step_timeout": float(settings.value("step_timeout")),
        "conformance": settings.value("conformance"),
        "seed": arguments.integer("--seed", 0),
        "tags": parse_pairs(arguments.many("--tag"), "--tag", "k=v", problems),
        "durability": settings.value("durability"),
    }


def _trace_id(text: str | None, problems: list[CogcliError]) -> str | None:
    import re

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
