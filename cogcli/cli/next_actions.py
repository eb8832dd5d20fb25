"""An episode as `trace` takes it: what its run waits for, and the commands that continue it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from cogcli.cli.run_flags import TraceFlags
from cogcli.events.envelope import Event
from cogcli.report.humanize import fuzzy_time, short_episode
from cogcli.report.run_fold import Ask, RunFold
from cogcli.report.unfinished_runs import UnfinishedState, describe, is_expired

if TYPE_CHECKING:
    from pathlib import Path

    from cogcli.cli.context import CommandContext
    from cogcli.report.styled_text import StyledLine


class TracedEpisode(NamedTuple):
    """An episode as `trace` displays it. `only` is the step of `--step`, `note` a line about other episodes of the
    trace."""

    fold: RunFold
    status: str
    flags: TraceFlags = TraceFlags()
    only: str = ""
    note: str = ""
    events: tuple[Event, ...] = ()
    directory: Path | None = None
    unfinished: UnfinishedState = UnfinishedState()
    unsealed: bool = False
    """Whether the run has ended without a manifest: a crash while sealing."""

    @property
    def status_text(self) -> str:
        """The status in words."""
        return "interrupted, not finalised" if self.status == "interrupted" else self.status

    @property
    def out_of_disk(self) -> bool:
        """Whether a full disk ended the run."""
        error = self.fold.root.error if self.fold.root else None
        return error is not None and error.get("code") == "env.disk"


def waiting_lines(
    context: CommandContext, shown: TracedEpisode, *, width: int | None, in_tree: bool
) -> list[StyledLine]:
    """A line per open request, call in doubt and other reason why the run has not ended.

    Times are relative where there is a width. The error of the run is left out with `in_tree`: the tree has it.
    """
    from cogcli.report.tree import run_error

    now = context.settings.clock.now()
    rows = [("error", error)] if (error := run_error(shown.fold)) and not in_tree else []
    rows += describe(shown.unfinished, now, lambda at: at if width is None else fuzzy_time(at, now))
    if shown.unsealed:
        rows.append(("unsealed", "the run has ended, but its process died before everything was written"))
    size = max((len(word) for word, _ in rows), default=0)
    return [[(f"{word:<{size}}  ", "warning"), (text, "")] for word, text in rows]


def next_commands(context: CommandContext, shown: TracedEpisode) -> list[str]:
    """The commands that continue the run; empty for one that has ended or is running."""
    if shown.directory is None or not shown.fold.chained:
        return []
    episode = _episode_argument(context, shown)
    return [
        f"cogcli {text}{context.again}"
        for text in _continuations(shown, episode, context.settings.clock.now())
    ]


def _continuations(shown: TracedEpisode, episode: str, now: str) -> Iterator[str]:
    if shown.unsealed:
        yield f"verify {episode} --repair"
        return
    if shown.status not in ("pending", "interrupted"):
        if shown.out_of_disk:
            yield f"rerun {episode}{_from_flag(shown)}"
        return
    open_asks = [ask for ask in shown.unfinished.asks if not is_expired(ask, now)]
    for name in _approval_names(open_asks):
        yield f"resume {episode} --approve {name}"
        yield f"resume {episode} --reject {name}"
    if shown.unfinished.doubtful:
        from cogcli.runs.doubt_decisions import resume_commands

        steps = [step.id for step in shown.unfinished.doubtful]
        yield from (command.removeprefix("cogcli ") for command in resume_commands(episode, steps))
    if not open_asks and not shown.unfinished.doubtful:
        yield f"resume {episode}"


def _approval_names(asks: Iterable[Ask]) -> Iterator[str]:
    """The name for `--approve` of each request: its capability, or its id where two requests have the same."""
    from shlex import quote

    capabilities = [ask.capability for ask in asks]
    for ask in asks:
        yield quote(ask.capability if capabilities.count(ask.capability) == 1 else ask.approval_id)


def _from_flag(shown: TracedEpisode) -> str:
    """`--from STEP` with the first step that is not done; empty where that is the first step of all."""
    from shlex import quote

    steps = shown.fold.root.own if shown.fold.root else []
    left = next((step.id for step in steps if step.status != "done"), "")
    return f" --from {quote(left)}" if left and left != steps[0].id else ""


def _episode_argument(context: CommandContext, shown: TracedEpisode) -> str:
    """The short id of an episode in the runs directory, else its path, quoted for the shell."""
    from pathlib import Path
    from shlex import quote

    directory = shown.directory
    if directory is None:
        return ""
    home = Path(context.settings.runs_dir)
    if directory.parent == home or directory.parent == home.resolve():
        return short_episode(directory.name)
    return quote(str(directory))
