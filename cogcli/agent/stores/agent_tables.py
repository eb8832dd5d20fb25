"""The tables of `memory.db` for agents: users, interactions, conversations and jobs
(docs/reference/user-memory.md#tables).
"""

from __future__ import annotations

from typing import Final

_OF_USER: Final = "tenant_id TEXT NOT NULL, user_id TEXT NOT NULL"
AGENT_TABLES: Final = (
    f"CREATE TABLE profile ({_OF_USER}, created_at TEXT NOT NULL, last_updated TEXT NOT NULL, interaction_count INTEGER"
    " NOT NULL, synthesis_version INTEGER NOT NULL, version INTEGER NOT NULL, PRIMARY KEY (tenant_id, user_id))",
    f"CREATE TABLE interaction ({_OF_USER}, n INTEGER NOT NULL, run_id TEXT NOT NULL, episode_id TEXT NOT NULL,"
    " event_id TEXT NOT NULL, session_id TEXT NOT NULL, query TEXT NOT NULL, response TEXT NOT NULL,"
    " success INTEGER NOT NULL, mode_used TEXT NOT NULL, iterations INTEGER NOT NULL,"
    " calls INTEGER NOT NULL, intent TEXT NOT NULL, template TEXT"
    " NOT NULL, failure_code TEXT NOT NULL, at TEXT NOT NULL, rules TEXT NOT NULL, version INTEGER NOT NULL,"
    " PRIMARY KEY (tenant_id, user_id, n), UNIQUE (tenant_id, user_id, run_id))",
    f"CREATE TABLE session ({_OF_USER}, session_id TEXT NOT NULL, mode TEXT NOT NULL, reasoning TEXT NOT NULL,"
    " last_run_failed INTEGER NOT NULL, summary TEXT NOT NULL, created_at TEXT NOT NULL, last_updated TEXT NOT NULL,"
    " version INTEGER NOT NULL, PRIMARY KEY (tenant_id, user_id, session_id))",
    f"CREATE TABLE message ({_OF_USER}, session_id TEXT NOT NULL, n INTEGER NOT NULL, run_id TEXT NOT NULL, episode_id"
    " TEXT NOT NULL, body TEXT NOT NULL, version INTEGER NOT NULL, PRIMARY KEY (tenant_id, user_id, session_id, n))",
    "CREATE INDEX message_of_run ON message (tenant_id, user_id, run_id)",
    f"CREATE TABLE job (job_id TEXT PRIMARY KEY, {_OF_USER}, kind TEXT NOT NULL, from_n INTEGER NOT NULL, to_n INTEGER"
    " NOT NULL, state TEXT NOT NULL, attempts INTEGER NOT NULL, lease_until TEXT NOT NULL, error TEXT NOT NULL,"
    " transcript TEXT NOT NULL, created_at TEXT NOT NULL, version INTEGER NOT NULL,"
    " UNIQUE (tenant_id, user_id, kind, to_n))",
    "CREATE INDEX job_open ON job (state, created_at) WHERE state IN ('queued', 'leased')",
)
"""The tables of agents. Every row belongs to a tenant and a user, and contains the number of its version."""
