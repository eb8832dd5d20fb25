"""The session that a log records, for replay and resume."""

from __future__ import annotations

from cogcli.declarations.envelope import Event
from cogcli.declarations.run_start import start_of
from cogcli.gateway.program import SessionProgram
from cogcli.run.launch import rebuild_policy
from cogcli.run.prepare import AgentRun
from cogcli.specs.catalog import Catalog


def session_of(start_event: Event, catalog: Catalog) -> AgentRun:
    """Return the run of a session over its log. No client makes further calls."""
    start = start_of(start_event)
    gateway = start.gateway.json if start.gateway else {}
    policy = rebuild_policy(catalog, start_event)
    return AgentRun(start.task, {}, {}, SessionProgram(), policy, gateway=gateway)
