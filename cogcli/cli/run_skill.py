"""Runs of skills for `run SKILL` and `trace SKILL`, which write the outputs to stdout
(docs/reference/command-line.md#streams, docs/reference/command-line.md#inputs).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final

from cogcli.app.registry import open_registry, untrusted_warning
from cogcli.app.run_skill import build_options, resolve_pack_option, run_requested_skill
from cogcli.app.settings import Settings
from cogcli.base.errors import CogcliError, SkillNotFoundError, UnusableEnvironment, UsageError
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import suggestion_hint
from cogcli.base.terminal_text import visible
from cogcli.cli.context import CommandContext
from cogcli.cli.display import Display
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
from cogcli.cli.progress import EventStream, MaskedJson
from cogcli.cli.run_flags import RunFlags, TraceFlags
from cogcli.cli.streams import Screen
from cogcli.declarations.envelope import Event
from cogcli.declarations.options import RunOptions
from cogcli.declarations.value_types import Json
from cogcli.run.given_inputs import RequestedRun
from cogcli.run.prepare import PreparedRun, RunRequest
from cogcli.run.results import Control, RunResult


def run_skill(
    context: CommandContext, skill_id: str, flags: RunFlags, *, display: Display | None = None, answer: bool = True,
    after: Callable[[RunResult], None] | None = None,
) -> int:  # fmt: skip
    """Run a skill, report the result, and return its exit code. `trace SKILL` passes `display`, and `after`, which is
    called before the last lines.
    """
    given = _read_request(context, skill_id, flags)
    warn_of_distrust(context, "skill", skill_id)
    if flags.plan:
        from cogcli.cli.plan import show_plan

        return show_plan(context, given)

    def start() -> tuple[RunResult, DisplayListener]:
        listener = DisplayListener(display or open_display(context))

        def watch(
            prepared: PreparedRun, control: Control
        ) -> AbstractContextManager[DisplayListener]:
            """Report the warnings of a prepared run, and display it within the block."""
            context.warnings += [warning.to_payload() for warning in prepared.warnings]
            return watch_start(context, listener, control)

        person = find_person(context, listener.display)
        return run_requested_skill(context.settings, given, watch, person), listener

    name = given.request.options.exclusive
    if name or flags.has_name_conflict:
        from cogcli.cli.exclusive import start_in_turn  # most runs hold no name

        started = start_in_turn(context, name, flags, start)
    else:
        started = start()
    if started is None:
        return 0
    result, listener = started
    for text in result.leftovers:
        context.warn(UnusableEnvironment("service.leftover", text))
    result, listener = answer_pause(context, result, listener)
    report_result(context, result, listener, after, answer=answer)
    return result.exit_code


SHADOW_NOTE: Final = (
    "shadow: no rule of the pack is enforced; permissions, built-in gates and trust hold"
)
"""The note of a command that starts a run under `--shadow`."""


def warn_of_distrust(context: CommandContext, kind: str, id: str) -> None:
    """Warn if a run of a skill or a pack omits parts of an untrusted project."""
    if (warning := untrusted_warning(context.settings, kind, id)) is not None:
        context.warn(warning)


def _read_request(context: CommandContext, skill_id: str, flags: RunFlags) -> RequestedRun:
    """Return the run that a command line requests, with the problems found while reading it.

    Raise SkillNotFoundError for a path instead of an id, and the errors of the settings.
    """
    require_skill_id(context, skill_id)
    read = read_inputs(context, flags)
    request = read_options_of(context, skill_id, flags, read.frame)
    return RequestedRun(
        RunRequest(skill_id, read.inputs, request.options, read.origins),
        [*request.problems, *read.problems],
        read.doubtful,
    )


def require_skill_id(context: CommandContext, skill_id: str) -> None:
    """Raise SkillNotFoundError for a path instead of an id."""
    if "/" in skill_id or skill_id.endswith((".yaml", ".yml")):
        raise SkillNotFoundError(
            "skill.not-found",
            f"`{skill_id}` is not a skill id",
            hint=suggestion_hint(_skill_ids_in_file(context.settings, skill_id))
            or "an id is domain.slug; see cogcli skills ls",
        )


class GivenOptions(NamedTuple):
    """The options of a command line, with the problems of reading them."""

    options: RunOptions
    problems: list[CogcliError]


def read_options_of(
    context: CommandContext, skill_id: str, flags: RunFlags, frame: Json
) -> GivenOptions:
    """Return the options of a run of a skill. Raise the errors of the settings."""
    problems: list[CogcliError] = []
    given = read_options(flags, problems)
    options = build_options(context.settings, {**given, "frame": frame})
    try:
        options = resolve_pack_option(context.settings, options, skill_id)
    except UsageError as error:
        problems.append(error)
    if options.shadow:
        context.note(SHADOW_NOTE)
    return GivenOptions(options, problems)


def _skill_ids_in_file(settings: Settings, path: str) -> list[str]:
    """Return the ids of the skills in a file."""
    registry, wanted = open_registry(settings), os.path.realpath(os.path.join(settings.base, path))
    files = (
        (id, os.path.realpath(file))
        for id in registry.ids("skill")
        for file in registry.paths("skill", id)
    )
    return [id for id, file in files if file == wanted]


def trace_run(context: CommandContext, skill_id: str, flags: TraceFlags, run: RunFlags) -> int:
    """Run a skill with its trace on stderr, and return the exit code of the run."""
    jsonl = flags.format == "jsonl" and not context.json
    display = LiveEvents(context.screen, jsonl=jsonl)
    context.note(f"running {visible(skill_id)} (to inspect, name an episode)")

    def after(result: RunResult) -> None:
        """Write the tree of the finished run."""
        if context.screen.quiet:
            return
        from cogcli.cli.trace_tree import TracedEpisode, tree_lines

        for line in tree_lines(context, TracedEpisode(display.fold, result.status), on_stderr=True):
            context.screen.notify_line(line)

    return run_skill(context, skill_id, run, display=display, answer=not jsonl, after=after)


class LiveEvents(EventStream):
    """A display that writes events as lines to stderr or as JSON lines to stdout, and collects the
    history for the tree.
    """

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
