"""Agents' runs for `runs/`: their programs, and the memory that their proposals go to. Imported only for such a run."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any

from cogcli.app.memory import open_memory
from cogcli.app.settings import Settings
from cogcli.cognition.invocation import Invocation, recorded_invocation
from cogcli.cognition.loop import agent_run
from cogcli.cognition.progress import Remember
from cogcli.core.errors import EnvironmentRefusal
from cogcli.events.envelope import Event
from cogcli.runs.prepare import AgentRun
from cogcli.specs.catalog import Catalog


def agent_of(settings: Settings | None, started: Event, catalog: Catalog) -> AgentRun:
    """An agent's run by its log; without settings nothing is stored."""
    invocation = recorded_invocation(started, catalog)
    return agent_run(invocation, remember=remember_into(settings, invocation) if settings else None)


def remember_into(settings: Settings, invocation: Invocation) -> Remember:
    """What stores the proposals of a turn in the memory of the project."""
    return partial(_remember, settings, invocation)


def _remember(
    settings: Settings, invocation: Invocation, content: dict[str, Any], run_id: str, at: str
) -> None:
    """Store the proposals of a turn, and its calls as a capture; storing them again changes nothing. Where the store
    cannot be written nothing is lost: the proposals are in the log."""
    pack, user = invocation.pack, invocation.request.user
    impression = {"turn": content["turn"], "calls": content["calls"]}
    with suppress(EnvironmentRefusal), open_memory(settings) as store:
        store.capture(pack.tenant, user.user_id, run_id=run_id, content=impression, at=at)
        store.propose_all(
            pack.tenant,
            user.user_id,
            content["proposals"],
            pack.memory,
            consent=user.consent,
            run_id=run_id,
            at=at,
        )
