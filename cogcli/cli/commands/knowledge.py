"""`knowledge import|query|snapshot`: statements with their evidence
(docs/reference/pack.md#knowledge).
"""

from __future__ import annotations

from typing import Annotated

from cogcli.agent.use_cases.knowledge import edge_payload, edges_around, import_lines, snapshot_of
from cogcli.base.errors import OK
from cogcli.base.strict_json import MAX_BYTES
from cogcli.base.terminal_text import visible
from cogcli.cli.context import CommandContext
from cogcli.cli.envelope import dumps
from cogcli.cli.inputs import read_bytes
from cogcli.cli.options import argument, command, integer, text
from cogcli.cli.prompt import read_stdin
from cogcli.report.humanize import count_of

Tenant = Annotated[
    str | None, text("--tenant", "ID", "the tenant of the knowledge", default="local")
]


@command(
    examples=(
        ("cogcli knowledge import facts.jsonl", "one JSON object a line, all or none"),
        ("cogcli knowledge import - --tenant acme", "from stdin"),
        ("cogcli knowledge import facts.jsonl --json", "for scripts"),
    ),
    exits=(0, 2, 3),
)
def import_file(
    context: CommandContext, file: Annotated[str, argument("FILE|-")], *, tenant: Tenant = None
) -> int:
    """Append the statements of a file to the project's graph."""
    data = read_stdin(context.screen, MAX_BYTES) if file == "-" else read_bytes(context, file)
    count, snapshot = import_lines(context.settings, data, file, tenant=tenant or "local")
    context.own["snapshot"] = snapshot._asdict()
    context.answer(f"{snapshot.ref}\n")
    context.note(f"{count_of(count, 'edge')} appended, {snapshot.seq} in all")
    return OK


@command(
    examples=(
        ("cogcli knowledge query order:ord_881", "what is known about an order"),
        ("cogcli knowledge query order:ord_881 --hops 2 | jq -c .", "and about what it leads to"),
        ("cogcli knowledge query order:ord_881 --tenant acme --json", "for scripts"),
    ),
    exits=(0, 2, 3),
)
def query(
    context: CommandContext,
    entity: Annotated[str, argument("TYPE:ID")],
    *,
    hops: Annotated[
        int | None,
        integer("--hops", "the number of hops to follow", minimum=1, maximum=8, default="1"),
    ] = None,
    at: Annotated[
        str | None, text("--at", "SNAPSHOT", "query this snapshot instead of the latest one")
    ] = None,
    tenant: Tenant = None,
) -> int:
    """Write the edges around an entity, one JSON object per line."""
    edges, snapshot = edges_around(
        context.settings, entity, tenant=tenant or "local", hops=hops or 1, at=at or ""
    )
    context.own["snapshot"] = snapshot._asdict()
    context.own["edges"] = [edge_payload(edge) for edge in edges]
    context.answer("".join(f"{dumps(edge_payload(edge))}\n" for edge in edges))
    context.note(visible(f"{count_of(len(edges), 'edge')} of {snapshot.ref}"))
    return OK


@command(
    examples=(
        ("cogcli knowledge snapshot", "the name of the graph's current state"),
        ("cogcli knowledge snapshot --json", "for scripts"),
        ("cogcli knowledge query order:ord_881", "what is known about an order"),
    ),
    exits=(0, 3),
)
def snapshot(context: CommandContext) -> int:
    """Print the id of the graph's current snapshot."""
    found = snapshot_of(context.settings)
    context.own["snapshot"] = found._asdict()
    context.answer(f"{found.ref}\n")
    return OK
