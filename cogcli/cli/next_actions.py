"""An episode as `trace` takes it: what its run waits for, and the commands that continue it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cogcli.report.unfinished_runs import UnfinishedState, describe, is_expired

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from cogcli.cli.context import CommandContext
    from cogcli.events.envelope import Event
    from cogcli.report.run_fold import RunFold
    from cogcli.report.styled_text import StyledLine
    from cogcli.report.unfinished_runs import Ask


class TracedEpisode(NamedTuple):
    """An episode to be shown: its fold and events, the status word, the step asked for, a note about its trace."""

    fold: RunFold
    status: str
    only: str = ""
    note: str = ""
    events: tuple[Event, ...] = ()
    directory: Path | None = None
    standing: UnfinishedState = UnfinishedState()
    unsealed: bool = False
    """Whether its run has ended, but no manifest says so."""

    @property
    def said(self) -> str:
        """The status as people read it."""
        return "interrupted, not finalised" if self.status == "interrupted" else self.status

    @property
    def out_of_disk(self) -> bool:
        """Whether the run ended for want of room."""
        error = self.fold.root.error if self.fold.root else None
        return error is not None and error.get("code") == "env.disk"


def lines(
    context: CommandContext, shown: TracedEpisode, *, width: int | None, in_tree: bool
) -> list[StyledLine]:
    """A line for each thing that a run waits for or that is unclear about it; times as this width shows them.

    Why it ended stands in the tree itself.
    """
    from cogcli.report.humanize import fuzzy_time
    from cogcli.report.tree import run_error

    now = context.settings.clock.now()
    rows = [("error", error)] if (error := run_error(shown.fold)) and not in_tree else []
    rows += describe(shown.standing, now, lambda at: at if width is None else fuzzy_time(at, now))
    if shown.unsealed:
        rows.append(("unsealed", "the run has ended, but its process died before everything was written"))
    size = max((len(word) for word, _ in rows), default=0)
    return [[(f"{word:<{size}}  ", "warning"), (text, "")] for word, text in rows]


def commands(context: CommandContext, shown: TracedEpisode) -> list[str]:
    """How to go on, as commands that can be pasted; none for a run that has ended or is alive."""
    if shown.directory is None or not shown.fold.chained:
        return []
    episode = _named(context, shown)
    return [f"cogcli {text}{context.again}" for text in _ways(shown, episode, context.settings.clock.now())]


def _ways(shown: TracedEpisode, episode: str, now: str) -> Iterator[str]:
    if shown.unsealed:
        yield f"verify {episode} --repair"
        return
    if shown.status not in ("pending", "interrupted"):
        if shown.out_of_disk:
            yield f"rerun {episode}{_from(shown)}"
        return
    open_asks = [ask for ask in shown.standing.asks if not is_expired(ask, now)]
    for name in _names(open_asks):
        yield f"resume {episode} --approve {name}"
        yield f"resume {episode} --reject {name}"
    if shown.standing.doubtful:
        from cogcli.app.doubt_decisions import resume_commands

        steps = [step.id for step in shown.standing.doubtful]
        yield from (command.removeprefix("cogcli ") for command in resume_commands(episode, steps))
    if not open_asks and not shown.standing.doubtful:
        yield f"resume {episode}"


def _names(asks: Iterable[Ask]) -> Iterator[str]:
    """What to approve each by: its capability, unless another request asks for that too."""
    from shlex import quote

    capabilities = [ask.capability for ask in asks]
    for ask in asks:
        yield quote(ask.capability if capabilities.count(ask.capability) == 1 else ask.approval_id)


def _from(shown: TracedEpisode) -> str:
    """The step to begin with again: the first that was not done."""
    from shlex import quote

    steps = shown.fold.root.own if shown.fold.root else []
    left = next((step.id for step in steps if step.status != "done"), "")
    return f" --from {quote(left)}" if left and left != steps[0].id else ""


def _named(context: CommandContext, shown: TracedEpisode) -> str:
    """The episode's short id where that finds it, else its place."""
    from pathlib import Path
    from shlex import quote

    from cogcli.report.humanize import short_episode

    directory = shown.directory
    if directory is None:
        return ""
    home = Path(context.settings.runs_dir)
    if directory.parent == home or directory.parent == home.resolve():
        return short_episode(directory.name)
    return quote(str(directory))
