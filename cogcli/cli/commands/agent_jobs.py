"""`agent jobs ls|run`: jobs that learn about users (docs/reference/user-memory.md#jobs)."""

from __future__ import annotations

from typing import Annotated

from cogcli.agent.use_cases import jobs as agent_jobs
from cogcli.base.errors import NO, OK
from cogcli.base.terminal_text import visible
from cogcli.cli.context import CommandContext
from cogcli.cli.listing import Column, show
from cogcli.cli.options import ListFlags, command, integer, switch, text
from cogcli.declarations.value_types import Json
from cogcli.report.humanize import count_of

COLUMNS = (
    Column("job_id", "id"),
    Column("kind"),
    Column("user_id", "user"),
    Column("tenant_id", "tenant"),
    Column("from_n", "from", right=True),
    Column("to_n", "to", right=True),
    Column("state"),
    Column("attempts", right=True),
    Column("error"),
    Column("created_at"),
)


@command(
    examples=(
        ("cogcli agent jobs ls", "waiting and failed jobs"),
        ("cogcli agent jobs ls --all --user cust_7 --tenant acme", "finished jobs, too"),
        (
            "cogcli agent jobs ls --all --format jsonl | jq .transcript",
            "the transcripts of the model",
        ),
    ),
    exits=(0, 2, 3),
)
def ls(
    context: CommandContext,
    *,
    all: Annotated[bool, switch("--all", help="also list finished jobs")] = False,
    user: Annotated[str | None, text("--user", "ID", "only this user")] = None,
    tenant: Annotated[str | None, text("--tenant", "ID", "only this tenant")] = None,
    flags: ListFlags,
) -> int:
    """List the jobs of all tenants, oldest first."""
    rows = agent_jobs.list_jobs(context.settings, tenant, user, all=all)
    context.own["jobs"] = rows
    if not context.json:
        show(context, COLUMNS, rows, flags)
    return OK


@command(
    examples=(
        ("cogcli agent jobs run", "all waiting jobs"),
        (
            "cogcli agent jobs run --limit 10 --model scripted:replies.yaml",
            "ten jobs with another model",
        ),
        ("cogcli agent jobs run --json | jq .jobs", "for scripts"),
    ),
    exits=(0, 1, 2, 3),
)
def run(
    context: CommandContext,
    *,
    limit: Annotated[
        int | None, integer("--limit", "run at most N jobs", minimum=1, maximum=10**6)
    ] = None,
    model: Annotated[
        str | None,
        text("--model", "ADAPTER[:NAME]", "the language model that answers", default="[model]"),
    ] = None,
) -> int:
    """Run waiting jobs, oldest first. Return exit code 1 if a job failed."""
    worked = agent_jobs.run_jobs(context.settings, model or "", limit=limit)
    rows = [each.to_payload() for each in worked]
    context.own["jobs"] = rows
    context.answer("".join(f"{visible(_job_line(row))}\n" for row in rows))
    if not rows:
        context.note("there is no job")
    return NO if any(row["error"] for row in rows) else OK


def _job_line(row: Json) -> str:
    """Return the line about a finished job: its outcome, and its error or number of proposals."""
    what = f"{row['outcome']} {row['job_id']}: {row['kind']} {row['from_n']}-{row['to_n']} of {row['user_id']}"
    more = row["error"] or count_of(len(row["proposals"]), "proposal")
    return f"{what}, {more}"
