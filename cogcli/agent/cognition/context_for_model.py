"""The context of a turn for a model: compiled so that its prompt fits as it is sent
(docs/reference/agent-state.md#sizes). Pure.

1. A prompt that fits whole needs no reserved room.
2. Otherwise the required parts come first: instructions, tools, request, notices of the loop guard.
3. Profile, reasoning, results and notices get at most half of the rest, or what the blocks leave.
4. The blocks get what remains. Every line that has no room is an omission of the context.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from cogcli.agent.context.buckets import FIXED
from cogcli.agent.context.compiled import STATE, ContextBlock, Omission
from cogcli.agent.context.compiler import CompiledContext, compile_context
from cogcli.agent.context.inputs import CompileInput
from cogcli.agent.sections import Prompt
from cogcli.declarations.layer_records import BudgetReport
from cogcli.declarations.value_types import Json

BuildPrompt = Callable[[CompiledContext, int], Prompt]
"""Builds the prompt of a context; its lines of state shrink to reach this number of tokens."""
_ALL = 1_000_000_000
"""More tokens than any prompt has."""


def fit_context(context: CompiledContext, build: BuildPrompt, max_tokens: int) -> CompiledContext:
    """Return the context whose prompt has at most `max_tokens` tokens, or an overpacked one."""
    if context.refused or context.is_overpacked:
        return context
    prompt = build(context, max_tokens)
    if prompt.tokens > max_tokens or any(cut.reason != "digest" for cut in prompt.cuts):
        context = _compile_with_room(context, build, max_tokens)
        if context.is_overpacked:
            return context
        prompt = build(context, max_tokens)
    omissions = tuple(
        Omission(cut.line_id, STATE, 0, cut.tokens, cut.reason) for cut in prompt.cuts
    )
    if not omissions:
        return context
    return compile_context(context.compilation.compile_input._replace(state_omissions=omissions))


def _compile_with_room(
    context: CompiledContext, build: BuildPrompt, max_tokens: int
) -> CompiledContext:
    """Return the context, compiled with room for the additions of its prompt."""
    compilation, compile_input = context.compilation, context.compilation.compile_input
    total = int(compile_input.limits["tokens.context"])
    fixed = [block for block in compilation.candidates if block.bucket in FIXED]
    fixed_only = _with_blocks(context, fixed)
    required = build(fixed_only, 0).tokens
    if required > max_tokens:
        return compile_context(compile_input._replace(reserved=total + 1))
    rest = max_tokens - required
    wanted_by_state = build(fixed_only, _ALL).tokens - required
    wanted_by_blocks = build(_with_blocks(context, compilation.candidates), 0).tokens - required
    share = min(max(0, wanted_by_state), max(rest // 2, rest - wanted_by_blocks))
    most = total - sum(block.tokens for block in fixed)
    reserved = min(most, max(0, total - max_tokens + required - (total - most) + share))
    while True:
        context = compile_context(compile_input._replace(reserved=reserved))
        excess = build(context, 0).tokens + share - max_tokens
        if excess <= 0 or reserved >= most:
            break
        reserved = min(most, reserved + excess)
    if build(context, 0).tokens > max_tokens:
        return compile_context(compile_input._replace(reserved=total + 1))
    return context


def _with_blocks(context: CompiledContext, blocks: Iterable[ContextBlock]) -> CompiledContext:
    """Return the context with these blocks in its prompt, to measure them."""
    shown = [block.to_payload() for block in blocks]
    prompt: Json = {**context.payload["compiled_prompt"], "context_blocks": shown}
    return context._replace(payload={**context.payload, "compiled_prompt": prompt})


def restore_recorded_sizes(compile_input: CompileInput, report: BudgetReport) -> CompileInput:
    """Return the input of a compilation with the needs of its prompt, as its recorded report has them."""
    omissions = tuple(Omission(**each.json) for each in report.omissions if each.bucket == STATE)
    return compile_input._replace(reserved=report.reserved, state_omissions=omissions)
