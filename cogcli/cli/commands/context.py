"""`context compile|explain|diff`: the context that a model gets for a request, and the reasons for
its content (docs/reference/pack.md#compiler).
"""

from __future__ import annotations

from typing import Annotated

from cogcli.agent.context.difference import difference
from cogcli.agent.use_cases.compile_context import compile_request, request_from
from cogcli.agent.use_cases.recorded_contexts import turn_context
from cogcli.app.packs import find_pack
from cogcli.base.errors import NO, OK, VETOED, UsageError
from cogcli.base.terminal_text import visible
from cogcli.cli.context import CommandContext
from cogcli.cli.context_view import answer_lines, difference_lines, explanation_lines
from cogcli.cli.envelope import dumps
from cogcli.cli.inputs import read_json_flag
from cogcli.cli.options import OUTPUT, Episode, argument, command, integer, switch, text


@command(
    examples=(
        (
            "cogcli context compile request.json --pack support-desk@4.0.0 | jq .redactions",
            "what the model does not see",
        ),
        (
            "cogcli context compile --message refund --pack support-desk@4.0.0",
            "for a message alone",
        ),
        (
            "cogcli context compile request.json --pack packs/support-desk/4.0.0.yaml",
            "with the pack's file",
        ),
    ),
    exits=(0, 1, 2, 3, 4),
)
def compile(
    context: CommandContext,
    request: Annotated[str | None, argument("[REQUEST.json]")] = None,
    *,
    message: Annotated[str | None, text("--message", "TEXT", "the request, without a file")] = None,
    pack: Annotated[
        str | None, text("--pack", "ID[@VERSION]|FILE", "the pack to use", completes="packs")
    ] = None,
) -> int:
    """Compile the context of a request without calling a model or writing an episode.

    Return exit code 4 if the request is refused, 1 if the policy or the tools do not fit.
    """
    if pack is None or bool(request) is bool(message):
        lacking = "`--pack` is missing" if pack is None else "give a file, or `--message`"
        hint = "cogcli context compile REQUEST.json --pack ID@VERSION"
        raise UsageError("usage.flag", lacking, hint=hint)
    found = find_pack(context.settings, pack)
    given = request_from(
        read_json_flag(context, f"@{request}", "request") if request else {"message": message}
    )
    compiled = compile_request(context.settings, found, given)
    context.own["context"] = compiled.payload
    context.answer(dumps(compiled.payload) + "\n")
    if compiled.refused:
        context.note(visible(f"refused: {compiled.refused}"))
        return VETOED
    if compiled.is_overpacked:
        context.note("context.overpacked: policy or tools find no room")
        return NO
    return OK


@command(
    examples=(
        ("cogcli context explain @last", "what was in the context, what was not, and why"),
        (
            "cogcli context explain @last --why payments.refund",
            "why a capability is offered, or not",
        ),
        ("cogcli context explain @last --turn 1 --json | jq .context.placements", "for scripts"),
    ),
    exits=(0, 2, 3),
)
def explain(
    context: CommandContext,
    episode: Episode,
    *,
    turn: Annotated[
        int | None,
        integer("--turn", "the context of this turn", minimum=1, maximum=10**6, default="the last"),
    ] = None,
    why: Annotated[
        str | None,
        text("--why", "NAME", "only this capability, slot.fact, entity, evidence, memory or block"),
    ] = None,
) -> int:
    """Explain the context of a turn from its episode alone.

    Each item that the turn knew of is in the context, cut or out, with the stage and the reason.
    """
    found = turn_context(context.settings, episode, turn)
    explained = found.explained(why)
    context.own["context"] = explained
    width = context.screen.out.width
    context.answer(
        answer_lines(explained, width) if why else explanation_lines(explained, width=width)
    )
    return OK


@command(
    examples=(
        ("cogcli context diff @last~1 @last", "the last turns of two episodes"),
        ("cogcli context diff '@last#1' '@last#2'", "two turns of one episode"),
        ("cogcli context diff @last~1 @last --exit-code --json", "for scripts"),
    ),
    exits=(0, 1, 2, 3),
)
def diff(
    context: CommandContext,
    first: Annotated[str, argument("EP[#TURN]", "episodes")],
    second: Annotated[str, argument("EP[#TURN]", "episodes")],
    *,
    exit_code: Annotated[
        bool, switch("--exit-code", help="exit 1 if they differ", panel=OUTPUT)
    ] = False,
) -> int:
    """Compare the contexts of two turns: blocks in, out and cut, each with its reason, and the
    differences of their origins.
    """
    sides = turn_context(context.settings, first), turn_context(context.settings, second)
    found = difference(sides[0].context, sides[1].context)
    names = f"{sides[0].episode_id}#{sides[0].turn}", f"{sides[1].episode_id}#{sides[1].turn}"
    context.own["diff"] = {"contexts": list(names), **found.to_payload()}
    context.answer(difference_lines(found, names, width=context.screen.out.width))
    return NO if exit_code and not found.is_identical else OK
