"""`memory ls|proposals|promote|reject|recall`: display promoted memory and open proposals, and
decide on proposals (docs/reference/pack.md#memory-commands).
"""

from __future__ import annotations

from collections import Counter
from typing import Annotated

from cogcli.agent.stores.memory_store import tenant_flag
from cogcli.agent.use_cases import memory
from cogcli.base.errors import OK
from cogcli.base.terminal_text import visible
from cogcli.cli.context import CommandContext
from cogcli.cli.listing import show
from cogcli.cli.memory_view import COLUMNS, cells_of, decided_text, decision_lines, why_lines
from cogcli.cli.options import SAFETY, Flags, ListFlags, argument, choice, command, switch, text
from cogcli.cli.render_error import next_lines, redirect_command
from cogcli.declarations.pack_spec import PROPOSAL_CLASSES
from cogcli.declarations.value_types import Json
from cogcli.report.humanize import count_of

ProposalId = Annotated[str, argument("ID")]


class ScopeFlags(Flags):
    """The flags that select the user and the tenant."""

    tenant: str | None = text(
        "--tenant", "ID", "the tenant of the memory", default="local, or the pack's"
    )
    user: str | None = text("--user", "ID", "only this user")


class RecallFlags(ScopeFlags):
    """The flags that decide whether memory is recalled."""

    consent: list[str] = choice(
        "--consent",
        "CLASS",
        PROPOSAL_CLASSES,
        "the user consents to memory of this class (repeatable)",
        SAFETY,
    )
    pack: str | None = text(
        "--pack",
        "ID[@VERSION]|FILE",
        "use the tenant, classification, lifetimes and limit of this pack",
        completes="packs",
    )


class DecisionFlags(ScopeFlags):
    """The flags that name the approver."""

    by: str | None = text(
        "--by", "NAME", "the name of the person who decides", SAFETY, default="OS user"
    )


@command(
    examples=(
        ("cogcli memory ls --user cust_7", "what is kept about a user"),
        (
            "cogcli memory ls --why mp_0123456789abcdef",
            "its origin, who decided, and whether it is recalled",
        ),
        ("cogcli memory ls --tenant acme --json", "for scripts"),
    ),
    exits=(0, 2, 3),
)
def ls(
    context: CommandContext,
    *,
    why: Annotated[
        str | None, text("--why", "ID", "explain one memory or proposal in any state")
    ] = None,
    flags: ListFlags,
    scope: RecallFlags,
) -> int:
    """List promoted memory, oldest first, or explain one memory or proposal."""
    named = _memory_scope(context, scope)
    if why is None:
        return _answer_list(
            context, memory.list_proposals(context.settings, named), flags, "memories"
        )
    found = memory.why(context.settings, named, why)
    context.own["memories"] = [found]
    context.answer("".join(f"{line}\n" for line in why_lines(found)))
    return OK


@command(
    examples=(
        ("cogcli memory proposals", "those that wait for a decision"),
        ("cogcli memory proposals --all --tenant acme", "rejected and superseded ones, too"),
        ("cogcli memory proposals --format jsonl | jq -r .proposal_id", "for scripts"),
    ),
    exits=(0, 2, 3),
)
def proposals(
    context: CommandContext,
    *,
    all: Annotated[
        bool, switch("--all", help="also list rejected and superseded proposals")
    ] = False,
    flags: ListFlags,
    scope: ScopeFlags,
) -> int:
    """List open proposals, oldest first."""
    states = memory.NOT_PROMOTED if all else ("proposed",)
    return _answer_list(
        context,
        memory.list_proposals(context.settings, _memory_scope(context, scope), states),
        flags,
        "proposals",
    )


@command(
    examples=(
        ("cogcli memory promote mp_0123456789abcdef --by ann", "keep it"),
        (
            "cogcli memory promote mp_0123456789abcdef --by ann --consent preference",
            "the user has consented since",
        ),
        ("cogcli memory promote mp_0123456789abcdef --by ann --json", "for scripts"),
    ),
    exits=(0, 2, 3),
)
def promote(
    context: CommandContext,
    id: ProposalId,
    *,
    consent: Annotated[
        list[str],
        choice(
            "--consent",
            "CLASS",
            PROPOSAL_CLASSES,
            "the user consents to memory of this class",
            SAFETY,
        ),
    ],
    flags: DecisionFlags,
) -> int:
    """Promote a proposal, and display the memory that contradicts the proposal."""
    named = _memory_scope(context, flags)._replace(consent=tuple(consent))
    return _record_decision(context, named, id, "promoted", by=flags.by)


@command(
    examples=(
        ("cogcli memory reject mp_0123456789abcdef --by ann", "reject it, now and in later runs"),
        ("cogcli memory reject mp_0123456789abcdef --by ann --reason moved", "with the reason"),
        ("cogcli memory reject mp_0123456789abcdef --by ann --json", "for scripts"),
    ),
    exits=(0, 2, 3),
)
def reject(
    context: CommandContext,
    id: ProposalId,
    *,
    reason: Annotated[str | None, text("--reason", "TEXT", "the reason", SAFETY)] = None,
    flags: DecisionFlags,
) -> int:
    """Reject a proposal, or revoke promoted memory. The same proposal is not opened again."""
    return _record_decision(
        context, _memory_scope(context, flags), id, "rejected", by=flags.by, reason=reason or ""
    )


@command(
    examples=(
        (
            "cogcli memory recall email --user cust_7 --consent preference",
            "what a request would recall",
        ),
        ("cogcli memory recall refund --user cust_7 --pack support-desk@4.0.0", "under a pack"),
        (
            "cogcli memory recall refund --user cust_7 --json | jq .omitted",
            "what is left out, and why",
        ),
    ),
    exits=(0, 2, 3),
)
def recall(
    context: CommandContext,
    query: Annotated[str, argument("QUERY")],
    *,
    flags: ListFlags,
    scope: RecallFlags,
) -> int:
    """Search a user's promoted memory by words as a request does, best match first."""
    found, omitted = memory.recall_memories(context.settings, _memory_scope(context, scope), query)
    context.own["omitted"] = omitted
    _answer_list(context, found, flags, "memories")
    for reason, count in sorted(Counter(each["reason"] for each in omitted).items()):
        context.note(f"left out: {count_of(count, 'memory', 'memories')} ({reason})")
    return OK


def _memory_scope(context: CommandContext, flags: ScopeFlags) -> memory.MemoryScope:
    consent, pack = getattr(flags, "consent", ()), getattr(flags, "pack", None)
    return memory.scope_of(
        context.settings, tenant=flags.tenant, user=flags.user, consent=consent, pack=pack
    )


def _answer_list(context: CommandContext, rows: list[Json], flags: ListFlags, key: str) -> int:
    """Write memories or proposals as a list, and fill the envelope."""
    context.own[key] = rows
    if not context.json:
        show(
            context, COLUMNS, rows if flags.format == "jsonl" else list(map(cells_of, rows)), flags
        )
    return OK


def _record_decision(
    context: CommandContext,
    scope: memory.MemoryScope,
    id: str,
    state: str,
    *,
    by: str | None,
    reason: str = "",
) -> int:
    """Record a decision about a proposal, and display it with the memory that contradicts it."""
    decision = memory.decide(
        context.settings, scope, id, state, by=context.user if by is None else by, reason=reason
    )
    row, others = (
        memory.payload_of(decision.stored),
        [memory.payload_of(each) for each in decision.existing],
    )
    context.own["proposals"], context.own["memories"] = [row], others
    context.answer("".join(f"{line}\n" for line in decision_lines(row, others)))
    if not decision.is_new:
        context.note(visible(f"nothing changed: {decided_text(row)}"))
    if decision.stored.verdict == "conflicts":
        tenant = tenant_flag(scope.tenant_id)
        commands = [f"cogcli memory reject {other['proposal_id']}{tenant}" for other in others]
        for line in next_lines([redirect_command(command, context.again) for command in commands]):
            context.screen.notify_line(line)
    return OK
