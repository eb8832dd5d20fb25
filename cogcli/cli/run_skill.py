"""A skill as `run SKILL` and `trace SKILL` run it: checked, run, its outputs on stdout
(docs/reference/command-line.md#streams, docs/reference/command-line.md#inputs)."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from cogcli.app.registry import open_registry, untrusted_warning
from cogcli.app.run_skill import options_of, parse_hosts, policy_request, run_given
from cogcli.app.settings import Settings
from cogcli.cli.context import CommandContext
from cogcli.cli.display import Display
from cogcli.cli.inputs import assemble
from cogcli.cli.live_run import (
    DisplayListener,
    answer_pause,
    display_of,
    report_result,
    watch_start,
)
from cogcli.cli.progress import EventStream, MaskedJson
from cogcli.cli.run_flags import RunFlags, TraceFlags
from cogcli.cli.streams import Screen
from cogcli.core.errors import CogcliError, EnvironmentRefusal, SkillNotFoundError, UsageError
from cogcli.core.problems import meant_hint
from cogcli.core.terminal_text import visible
from cogcli.events.envelope import Event
from cogcli.runs.given_inputs import GivenRun
from cogcli.runs.policy_request import PolicyRequest
from cogcli.runs.prepare import PreparedRun, RunRequest
from cogcli.runs.results import Control, RunResult
from cogcli.specs.id_grammar import USER_ID_WORDS, is_user_id


def run_skill(
    context: CommandContext, skill_id: str, flags: RunFlags, *, display: Display | None = None, answer: bool = True,
    after: Callable[[RunResult], None] | None = None,
) -> int:  # fmt: skip
    """Run a skill and report the result; returns its exit code.

    `trace SKILL` gives its own `display`, and `after`, which is called before the last lines.
    """
    given = _read_given(context, skill_id, flags)
    warn_of_distrust(context, "skill", skill_id)
    if flags.plan:
        from cogcli.cli.plan import show_plan

        return show_plan(context, given)
    listener = DisplayListener(display or display_of(context))

    def watch(prepared: PreparedRun, control: Control) -> AbstractContextManager[DisplayListener]:
        context.warnings += [warning.to_payload() for warning in prepared.warnings]
        return watch_start(context, listener, control)

    result = run_given(context.settings, given, watch)
    for text in result.leftovers:
        context.warn(EnvironmentRefusal("service.leftover", text))
    result, listener = answer_pause(context, result, listener)
    report_result(context, result, listener, after, answer=answer)
    return result.exit_code


def warn_of_distrust(context: CommandContext, kind: str, id: str) -> None:
    """Warn where a run of a skill or a pack leaves out what a project holds that is not trusted."""
    if (warning := untrusted_warning(context.settings, kind, id)) is not None:
        context.warn(warning)


def _read_given(context: CommandContext, skill_id: str, flags: RunFlags) -> GivenRun:
    """What the command line asks for, with the problems of reading it. Raises SkillNotFoundError for a path instead of
    an id, and what settings do."""
    if "/" in skill_id or skill_id.endswith((".yaml", ".yml")):
        raise SkillNotFoundError(
            "skill.not-found",
            f"`{skill_id}` is not a skill id",
            hint=meant_hint(_skills_of_file(context.settings, skill_id))
            or "an id is domain.slug; see cogcli skills ls",
        )
    problems: list[CogcliError] = []
    options = run_options(context, flags, problems)
    read = assemble(context, flags)
    policy = _policy_request(context, skill_id, flags, problems)
    request = RunRequest(
        skill_id=skill_id,
        inputs=read.inputs,
        origins=read.origins,
        frame=read.frame,
        policy=policy,
        **options,
    )
    return GivenRun(request, [*problems, *read.problems], read.doubtful)


def _skills_of_file(settings: Settings, path: str) -> list[str]:
    """The ids of the skills that a file holds."""
    registry, wanted = open_registry(settings), os.path.realpath(os.path.join(settings.base, path))
    files = (
        (id, os.path.realpath(file))
        for id in registry.ids("skill")
        for file in registry.paths("skill", id)
    )
    return [id for id, file in files if file == wanted]


def run_options(
    context: CommandContext, flags: RunFlags, problems: list[CogcliError]
) -> dict[str, Any]:
    """The fields of a RunRequest that flags and settings decide; wrong values are added to `problems`."""
    return {
        "trace_id": _trace_id(flags.trace_id, problems),
        "confirmed": tuple(flags.confirm),
        "binds": parse_pairs(flags.bind, "--bind", "CAP=BINDING", problems),
        "seed": flags.seed or 0,
        "tags": parse_pairs(flags.tag, "--tag", "k=v", problems),
        "allow_hosts": parse_allowed_hosts(flags.allow_host, problems),
        **options_of(context.settings),
    }


def _policy_request(
    context: CommandContext, skill_id: str, flags: RunFlags, problems: list[CogcliError]
) -> PolicyRequest | None:
    """What the flags say of the policy of a run; None where they say nothing. Raises
    EnvironmentRefusal as `policy_request`."""
    budget = parse_budget(flags.budget, problems)
    require_user_flag(flags.user, problems)
    request = PolicyRequest(
        flags.pack or "", flags.intent or "", flags.user or "", flags.safety_mode or "", budget
    )
    try:
        return policy_request(context.settings, request, skill_id)
    except UsageError as error:
        problems.append(error)
        return None


def require_user_flag(user: str | None, problems: list[CogcliError]) -> None:
    """Add an error to `problems` if `--user` is given and is not an id of a user."""
    if user is not None and not is_user_id(user):
        problems.append(
            UsageError("usage.value", f"`--user`: found `{user[:60]}`", expected=USER_ID_WORDS)
        )


def parse_budget(given: list[str], problems: list[CogcliError]) -> dict[str, int]:
    """The limits of `--budget`; an error for each that is not a number is added to `problems`."""
    budget = {}
    for key, value in parse_pairs(given, "--budget", "k=N", problems).items():
        if value.isascii() and value.isdigit() and len(value) < 16:
            budget[key] = int(value)
        else:
            problems.append(
                UsageError(
                    "usage.value", f"`--budget {key}`: found `{value[:60]}`, expected a number"
                )
            )
    return budget


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


def parse_allowed_hosts(given: list[str], problems: list[CogcliError]) -> tuple[str, ...]:
    """The hosts of `--allow-host`, each in one form; an error for any other text is added to `problems`."""
    hosts: list[str] = []
    for text in given:
        try:
            hosts += parse_hosts([text])
        except UsageError as error:
            problems.append(error)
    return tuple(hosts)


def parse_pairs(
    given: list[str], flag: str, shape: str, problems: list[CogcliError]
) -> dict[str, str]:
    """The `name=value` texts of a repeatable flag; an error for any other text is added to `problems`."""
    pairs: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name or not value:
            problems.append(
                UsageError("usage.value", f"`{flag}`: found `{text[:60]}`, expected {shape}")
            )
        elif pairs.setdefault(name, value) != value:
            problems.append(
                UsageError(
                    "usage.value", f"`{flag} {name}` is given twice", hint="keep one of them"
                )
            )
    return pairs


def trace_run(context: CommandContext, skill_id: str, flags: TraceFlags, run: RunFlags) -> int:
    """Run a skill; returns the exit code of the run."""
    jsonl = flags.format == "jsonl" and not context.json
    display = LiveEvents(context.screen, jsonl=jsonl)
    context.note(f"running {visible(skill_id)} (to inspect, name an episode)")

    def after(result: RunResult) -> None:
        if context.screen.quiet:
            return
        from cogcli.cli.trace_tree import TracedEpisode, tree_lines

        for line in tree_lines(context, TracedEpisode(display.fold, result.status), on_stderr=True):
            context.screen.notify_line(line)

    return run_skill(context, skill_id, run, display=display, answer=not jsonl, after=after)


class LiveEvents(EventStream):
    """Writes events as lines to stderr, or as JSON lines to stdout, and folds them for the tree."""

    def __init__(self, screen: Screen, *, jsonl: bool) -> None:
        from cogcli.episode.history import History  # `run` imports this module, and folds nothing

        super().__init__(screen)
        self.fold = History()
        self._jsonl = jsonl
        self._logged = MaskedJson()

    def __call__(self, event: Event) -> None:
        self.fold.apply(event)
        if self._jsonl:
            self.screen.answer(self._logged.line(event))
        elif not self.screen.quiet:
            super().__call__(event)
