"""`agent profile show|export|forget`: display, export or delete the stored data of a user
(docs/reference/user-memory.md#profile).
"""

from __future__ import annotations

from functools import partial
from shlex import quote
from typing import Annotated

from cogcli.agent.stores.memory_store import tenant_flag
from cogcli.agent.use_cases import user_memory as agent_memory
from cogcli.agent.use_cases.jobs import NEXT_JOBS, work_after_answer
from cogcli.base.errors import OK, UsageError
from cogcli.base.terminal_text import visible
from cogcli.cli.context import CommandContext
from cogcli.cli.envelope import dumps
from cogcli.cli.options import OUTPUT, SAFETY, argument, choice, command, switch, text
from cogcli.cli.user_view import deletion_line, export_lines, profile_lines
from cogcli.report.humanize import count_of

Tenant = Annotated[str | None, text("--tenant", "ID", "the tenant of the user", default="local")]
_SHOWN = 20
"""The number of episodes displayed; `--json` has all."""


@command(
    examples=(
        ("cogcli agent profile show cust_7", "what agents know about a user, and why"),
        ("cogcli agent profile show cust_7 --tenant acme", "a user of a pack's tenant"),
        ("cogcli agent profile show cust_7 --json | jq .profile.entries", "for scripts"),
    ),
    exits=(0, 2, 3),
)
def show(
    context: CommandContext,
    user: Annotated[str | None, argument("[USER]")] = None,
    *,
    tenant: Tenant = None,
) -> int:
    """Display the profile of a user (default: `default`): each entry with its episodes and its
    approver.
    """
    found = agent_memory.profile_payload(
        context.settings, tenant or "local", "default" if user is None else user
    )
    context.own["profile"] = found
    context.answer("".join(f"{line}\n" for line in profile_lines(found)))
    if not found["entries"]:
        context.note(visible(f"nothing is known of {found['user_id']} in {found['tenant_id']}"))
    context.afterwards.append(partial(work_after_answer, context.settings, limit=NEXT_JOBS))
    return OK


@command(
    examples=(
        ("cogcli agent profile export cust_7 > cust_7.json", "everything about a user"),
        ("cogcli agent profile export cust_7 --format md", "as a page to read"),
        ("cogcli agent profile export cust_7 --tenant acme --json", "for scripts"),
    ),
    exits=(0, 2, 3),
)
def export(
    context: CommandContext,
    user: Annotated[str | None, argument("[USER]")] = None,
    *,
    format: Annotated[
        str | None, choice("--format", "WORD", ("json", "md"), panel=OUTPUT, default="json")
    ] = None,
    tenant: Tenant = None,
) -> int:
    """Write all stored data of a user (default: `default`): profile, memory, captures,
    interactions, sessions, jobs.
    """
    found = agent_memory.export_payload(
        context.settings, tenant or "local", "default" if user is None else user
    )
    context.own["export"] = found
    text = "".join(f"{line}\n" for line in export_lines(found)) if format == "md" else None
    context.answer(text or dumps(found, indent=True) + "\n")
    context.afterwards.append(partial(work_after_answer, context.settings, limit=NEXT_JOBS))
    return OK


@command(
    examples=(
        ("cogcli agent profile forget cust_7 --yes", "delete it: this cannot be undone"),
        ("cogcli agent profile export cust_7", "what would be deleted"),
        ("cogcli agent profile forget cust_7 --tenant acme --yes --json", "for scripts"),
    ),
    exits=(0, 2, 3),
)
def forget(
    context: CommandContext,
    user: Annotated[str, argument("USER")],
    *,
    yes: Annotated[
        bool, switch("--yes", help="required, because it cannot be undone", panel=SAFETY)
    ] = False,
    tenant: Tenant = None,
) -> int:
    """Delete all stored data of a user. Episodes are kept, and those that name the user are listed."""
    if not yes:
        raise _unconfirmed_error(user, tenant)
    found = agent_memory.forget(context.settings, tenant or "local", user)
    context.own["forgotten"] = found
    context.answer(f"{deletion_line(found)}\n")
    if episodes := found["episodes"]:
        named = ", ".join(episodes[:_SHOWN]) + (", …" if len(episodes) > _SHOWN else "")
        stay = "stays" if len(episodes) == 1 else "stay"
        context.note(f"{count_of(len(episodes), 'episode')} of this user {stay}: {named}")
    return OK


def _unconfirmed_error(user: str, tenant: str | None) -> UsageError:
    """Return the error for a missing `--yes`."""
    flag, named = tenant_flag(tenant or "local"), quote(user)
    if user.startswith("-"):
        named = f"-- {named}"
    return UsageError(
        "usage.flag",
        "to forget a user cannot be undone",
        expected="`--yes`",
        next=(
            f"cogcli agent profile export{flag} {named}",
            f"cogcli agent profile forget --yes{flag} {named}",
        ),
    )
