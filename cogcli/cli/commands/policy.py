"""`policy test`, `policy eval`: do the rules of a pack say what they should? (docs/reference/pack.md#rules)."""

from __future__ import annotations

from typing import Annotated

from cogcli.app.packs import evaluate_call, find_pack
from cogcli.cli.context import CommandContext
from cogcli.cli.envelope import dumps
from cogcli.cli.inputs import object_of
from cogcli.cli.options import argument, command, text
from cogcli.cli.pack_reports import report_tests
from cogcli.core.errors import OK, PENDING, VETOED, UsageError
from cogcli.governance.pack_check import run_tests

PackName = Annotated[str, argument("ID[@VERSION]|FILE", "packs")]
"""A pack by `id@version`, perhaps with its hash, by a bare id that is pinned, or by its file."""


@command(
    examples=(
        ("cogcli policy test support-desk@4.0.0", "each rule against the tests beside it"),
        ("cogcli policy test packs/support-desk/4.0.0.yaml", "by its file"),
        ("cogcli policy test support-desk@4.0.0 --json", "for scripts"),
    ),
    exits=(0, 1, 2, 3),
)
def test(context: CommandContext, pack: PackName) -> int:
    """Run the tests beside the rules; each enforced rule needs a match and a no_match."""
    return report_tests(context, run_tests(find_pack(context.settings, pack).pack.policy.rules))


@command(
    examples=(
        (
            "cogcli policy eval support-desk@4.0.0 --capability payments.refund --data call.json",
            "may this call be made?",
        ),
        (
            "cogcli policy eval support-desk@4.0.0 --capability payments.refund --data call.json | jq .reads",
            "what did the rules look at?",
        ),
        ("cogcli pack check support-desk@4.0.0", "are its rules right?"),
    ),
    exits=(0, 2, 3, 4, 5),
)
def evaluate(
    context: CommandContext,
    pack: PackName,
    *,
    capability: Annotated[
        str | None, text("--capability", "CAP", "the call's capability", completes="capabilities")
    ],
    data: Annotated[str | None, text("--data", "FILE", "what rules see of the call, as JSON or YAML")],
) -> int:
    """What the three checks say of a call: 0 it may be made, 4 it may not, 5 a person decides."""
    if capability is None or data is None:
        lacking = "--capability" if capability is None else "--data"
        hint = "cogcli policy eval PACK --capability CAP --data FILE"
        raise UsageError("usage.flag", f"`{lacking}` is missing", hint=hint)
    found = find_pack(context.settings, pack)
    verdict = evaluate_call(found, capability, object_of(f"@{data}", "--data"))
    context.own["verdict"] = verdict.to_payload()
    context.answer(dumps(verdict.to_payload()) + "\n")
    if verdict.verdict in ("allow_with_gate", "escalate"):
        return PENDING
    return OK if verdict.allows else VETOED
