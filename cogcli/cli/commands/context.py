"""`context compile`: what a model would be given for a request (docs/reference/pack.md#compiler)."""

from __future__ import annotations

from typing import Annotated

from cogcli.app.compile_context import compile_request, request_from
from cogcli.app.packs import find_pack
from cogcli.cli.context import CommandContext
from cogcli.cli.envelope import dumps
from cogcli.cli.inputs import object_of
from cogcli.cli.options import argument, command, text
from cogcli.core.errors import NO, OK, VETOED, UsageError
from cogcli.core.terminal_text import visible


@command(
    examples=(
        (
            "cogcli context compile request.json --pack support-desk@4.0.0 | jq .redactions",
            "what is kept from the model?",
        ),
        ("cogcli context compile --message refund --pack support-desk@4.0.0", "of a message alone"),
        ("cogcli context compile request.json --pack packs/support-desk/4.0.0.yaml", "by the pack's file"),
    ),
    exits=(0, 1, 2, 3, 4),
)
def compile(
    context: CommandContext,
    request: Annotated[str | None, argument("[REQUEST.json]")] = None,
    *,
    message: Annotated[str | None, text("--message", "TEXT", "the request, without a file")] = None,
    pack: Annotated[str | None, text("--pack", "ID[@VERSION]|FILE", "the pack", completes="packs")] = None,
) -> int:
    """Compile the context of a request: no model is asked, no episode is written. 4 where the request is refused, 1
    where policy or tools find no room."""
    if pack is None or bool(request) is bool(message):
        lacking = "`--pack` is missing" if pack is None else "give a file, or `--message`"
        hint = "cogcli context compile REQUEST.json --pack ID@VERSION"
        raise UsageError("usage.flag", lacking, hint=hint)
    found = find_pack(context.settings, pack)
    given = request_from(object_of(f"@{request}", "request") if request else {"message": message})
    compiled = compile_request(context.settings, found, given)
    context.own["context"] = compiled.payload
    context.answer(dumps(compiled.payload) + "\n")
    if compiled.refused:
        context.note(visible(f"refused: {compiled.refused}"))
        return VETOED
    if compiled.overpacked:
        context.note("context.overpacked: policy or tools find no room")
        return NO
    return OK
