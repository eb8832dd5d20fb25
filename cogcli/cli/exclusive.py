"""Runs that hold a name: what `--on-conflict` does if another run has it (docs/reference/execution.md#exclusive)."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from cogcli.base.errors import UnusableEnvironment
from cogcli.cli.context import CommandContext
from cogcli.cli.options import wrong_flag
from cogcli.cli.run_flags import RunFlags
from cogcli.episode.exclusive import HELD, find_holder

_Started = TypeVar("_Started")
_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 2.0


def start_in_turn(
    context: CommandContext, name: str, flags: RunFlags, start: Callable[[], _Started]
) -> _Started | None:
    """Return the result of `start` once no other run holds the name. Return None if the run is skipped. Raise
    UsageError for a flag without a name, and `run.exclusive` for a name that stays held.
    """
    _require_fitting_flags(name, flags)
    if not name:
        return start()
    deadline = None if flags.wait_timeout is None else time.monotonic() + flags.wait_timeout
    while True:
        try:
            _wait_for_name(context, name, flags, deadline)
            return start()
        except UnusableEnvironment as error:
            if error.code != HELD:
                raise
            if flags.on_conflict == "skip":
                # A schedule runs with `-q`, and exit code 0 alone would read as a night that was done.
                context.warn(_skipped_error(error), if_quiet=True)
                return None
            if not _may_try_again(context, name, flags, deadline):
                raise


def _require_fitting_flags(name: str, flags: RunFlags) -> None:
    """Raise UsageError for a flag without the flag that it requires."""
    if flags.has_name_conflict and not name:
        raise wrong_flag("`--on-conflict` needs `--exclusive NAME`", "name what one run may hold")
    if flags.wait_timeout is not None and flags.on_conflict != "wait":
        raise wrong_flag("`--wait-timeout` needs `--on-conflict wait`", "add it")


def _may_try_again(
    context: CommandContext, name: str, flags: RunFlags, deadline: float | None
) -> bool:
    """Return whether a waiting run should try again because another run took the name first."""
    if flags.on_conflict != "wait" or _is_over(deadline):
        return False
    settings = context.settings
    holder = find_holder(Path(settings.runs_dir), name, shared=settings.shares_episodes)
    return holder is None or holder.ends_by_itself


def _wait_for_name(
    context: CommandContext, name: str, flags: RunFlags, deadline: float | None
) -> None:
    """With `--on-conflict wait`, wait while another run holds the name. Raise its error if the wait could be
    endless.
    """
    shown, pause = "", _FIRST_PAUSE
    runs_dir, shared = Path(context.settings.runs_dir), context.settings.shares_episodes
    while flags.on_conflict == "wait":
        holder = find_holder(runs_dir, name, shared=shared)
        if holder is None:
            return
        error = holder.to_error()
        if not holder.ends_by_itself or _is_over(deadline):
            raise error
        if error.message != shown:
            context.note(f"waiting: {error.message}")
            shown = error.message
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


def _is_over(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() >= deadline


def _skipped_error(error: UnusableEnvironment) -> UnusableEnvironment:
    return UnusableEnvironment(error.code, f"nothing ran: {error.message}", next=error.next)
