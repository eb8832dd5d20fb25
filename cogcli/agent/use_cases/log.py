"""The whole log of an agent's run, and the specs that it pinned (docs/reference/agent-run.md#decision)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cogcli.base.errors import CogcliError, UsageError
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.checked import problem_of
from cogcli.declarations.envelope import Event
from cogcli.declarations.events import RunStarted
from cogcli.declarations.reading import read_record
from cogcli.episode.layout import EVENTS
from cogcli.episode.log_reader import iterate_events
from cogcli.episode.refusals import unreadable
from cogcli.run.replay import read_pinned_catalog
from cogcli.specs.catalog import Catalog
from cogcli.specs.spec_snapshot import without_secret_requirements


class AgentLog(NamedTuple):
    """The log of an agent's run."""

    directory: Path
    events: list[Event]

    @property
    def started(self) -> Event:
        """The first event."""
        return self.events[0]

    def read_catalog(self) -> Catalog:
        """Return the specs that the run pinned. Raise UnusableEnvironment `episode.unreadable`."""
        return without_secret_requirements(read_pinned_catalog(self.started, self.directory))

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Raise UnusableEnvironment `episode.unreadable` for a malformed event that the body reads."""
        try:
            yield
        except (KeyError, TypeError, ValueError, AttributeError, CogcliError) as error:
            why = f"an event is none of ours ({type(error).__name__}: {error!s:.60})"
            raise unreadable(self.directory, why, file=EVENTS) from error


def read_agent_log(directory: Path) -> AgentLog:
    """Read the log of an agent's run.

    Raise UsageError for another episode, UnusableEnvironment `episode.unreadable` for a damaged one.
    """
    events = list(iterate_events(directory, whole=True))
    start = read_record(RunStarted, events[0].payload)
    # A malformed `agent` belongs to a damaged log of an agent, not to another skill's.
    if not start.json.get("agent") or events[0].seq is None:
        skill = start.skill.id
        raise UsageError(
            "usage.value",
            f"`{directory.name}` is not a run of an agent: it has no context and no decision",
            expected="an episode of `agent invoke`",
            found=f"a run of `{skill}`" if skill else "another tool's episode",
            next=(f"cogcli trace {directory.name}", "cogcli ls"),
        )
    if problem := problem_of(RunStarted.event.name, start.json):
        why = f"does not say what was asked as a log of ours does: {problem}"
        raise unreadable(directory, why, file=EVENTS, line=1)
    return AgentLog(directory, events)
