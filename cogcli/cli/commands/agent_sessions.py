"""`agent sessions ls|show|forget`: conversations with agents (docs/reference/user-memory.md#sessions)."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from cogcli.agent.use_cases import sessions as agent_sessions
from cogcli.agent.use_cases.jobs import NEXT_JOBS, work_after_answer
from cogcli.base.errors import OK
from cogcli.base.terminal_text import visible
from cogcli.cli.context import CommandContext
from cogcli.cli.listing import Column, show
from cogcli.cli.options import Flags, ListFlags, argument, command, text
from cogcli.cli.user_view import session_lines
from cogcli.report.humanize import count_of

COLUMNS = (
    Column("session_id", "session"),
    Column("tenant_id", "tenant"),
    Column("user_id", "user"),
    Column("messages", right=True),
    Column("mode"),
    Column("last_run_failed", "last failed"),
    Column("last_updated"),
    Column("created_at", "begun"),
)
SessionId = Annotated[str, argument("SESSION")]


class SessionFlags(Flags):
    """The flags that select the user of a session."""

    tenant: str | None = text("--tenant", "ID", "the tenant of the user", default="local")
    user: str | None = text(
        "--user", "ID", "the user of the conversation", default="the unnamed user"
    )


@command(
    examples=(
        ("cogcli agent sessions ls", "those of all users"),
        ("cogcli agent sessions ls --user cust_7 --tenant acme", "those of one user"),
        ("cogcli agent sessions ls --format jsonl | jq -r .session_id", "for scripts"),
    ),
    exits=(0, 2, 3),
)
def ls(
    context: CommandContext,
    *,
    user: Annotated[str | None, text("--user", "ID", "only this user")] = None,
    tenant: Annotated[str | None, text("--tenant", "ID", "only users of this tenant")] = None,
    flags: ListFlags,
) -> int:
    """List sessions, most recently used first."""
    rows = agent_sessions.list_sessions(context.settings, tenant, user)
    context.own["sessions"] = rows
    if not context.json:
        show(context, COLUMNS, rows, flags)
    context.afterwards.append(partial(work_after_answer, context.settings, limit=NEXT_JOBS))
    return OK


@command(
    examples=(
        ("cogcli agent sessions show trip --user cust_7", "its messages"),
        ("cogcli agent sessions show trip", "for the unnamed user"),
        (
            "cogcli agent sessions show trip --user cust_7 --json | jq .session.messages",
            "for scripts",
        ),
    ),
    exits=(0, 2, 3),
)
def show_one(context: CommandContext, session: SessionId, *, flags: SessionFlags) -> int:
    """Display a session: its messages with their episodes, its mode and its goal."""
    found = agent_sessions.session_payload(
        context.settings, flags.tenant or "local", flags.user or "default", session
    )
    context.own["session"] = found
    context.answer("".join(f"{line}\n" for line in session_lines(found)))
    context.afterwards.append(partial(work_after_answer, context.settings, limit=NEXT_JOBS))
    return OK


@command(
    examples=(
        ("cogcli agent sessions forget trip --user cust_7", "delete its messages"),
        ("cogcli agent sessions forget trip", "for the unnamed user"),
        ("cogcli agent sessions forget trip --user cust_7 --json", "for scripts"),
    ),
    exits=(0, 2, 3),
)
def forget(context: CommandContext, session: SessionId, *, flags: SessionFlags) -> int:
    """Delete a session and its messages. Its episodes and the facts learned from it are kept."""
    tenant, user = flags.tenant or "local", flags.user or "default"
    count = agent_sessions.forget_session(context.settings, tenant, user, session)
    context.own["forgotten"] = {
        "tenant_id": tenant,
        "user_id": user,
        "session_id": session,
        "messages": count,
    }
    context.answer(visible(f"forgot {session} of {user}: {count_of(count, 'message')}") + "\n")
    return OK
