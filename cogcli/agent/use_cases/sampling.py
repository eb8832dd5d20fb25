"""The configured model for services that ask it inside a call (docs/reference/mcp.md#sampling).

A request is sent once. Its tokens and its cost are reserved before, and charged as used after it; a request that
fails is charged with the tokens of its prompt.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from cogcli.agent.context.tokenizer import estimate
from cogcli.agent.models.port import (
    LanguageModel,
    ModelError,
    ModelReply,
    ModelRequest,
    TokenUsage,
    count_request,
)
from cogcli.agent.use_cases.language_model import ChosenModel, chosen_model, open_chosen
from cogcli.app.settings import Settings
from cogcli.base.calls import Cancellation, SampleRefused, SampleReply, SampleRequest, TakeSample
from cogcli.base.errors import CogcliError, RuntimeErrorBase, ServiceResolutionError
from cogcli.policy.prices import COST, Prices
from cogcli.run.model_budget import TOKENS, ModelBudget, model_budget
from cogcli.run.policy_request import PolicyRequest
from cogcli.specs.catalog import Catalog

_SHORTEST: Final = 1.0
"""Seconds below which no request is sent."""


def open_sampler(
    settings: Settings, learn: Callable[[str], None], catalog: Catalog, policy: PolicyRequest | None,
    spent: Mapping[str, int],
) -> TakeSample | None:  # fmt: skip
    """Open the configured model for services, within the budget of a run; None without a model. `learn` takes its key.
    Raise ServiceResolutionError `env.missing`, `env.extra` for a model that cannot be opened.
    """
    try:
        chosen = chosen_model(settings)
        model = open_chosen(settings, chosen, learn=learn)
    except RuntimeErrorBase:
        raise
    except CogcliError as error:
        text = f"the model that a service may ask cannot be opened: {error}"
        raise ServiceResolutionError("env.missing", text, left=False) from error
    if model is None:
        return None
    return partial(_ask, model, chosen, model_budget(catalog, policy, spent))


def _ask(
    model: LanguageModel, chosen: ChosenModel, budget: ModelBudget, asked: SampleRequest, cancel: Cancellation
) -> SampleReply:  # fmt: skip
    """Return the answer of the model. Raise SampleRefused."""
    seconds = min(asked.seconds, chosen.settings.timeout_s)
    if seconds < _SHORTEST:
        raise SampleRefused("call.timeout", "too little time is left in the call")
    request = ModelRequest(
        tuple({"role": role, "content": text} for role, text in asked.messages),
        max_tokens=min(asked.max_tokens, budget.most_output),
        temperature=asked.temperature,
        stop=asked.stop,
        timeout_ms=int(seconds * 1000),
    )
    prices = Prices.if_known(chosen.settings.price_in, chosen.settings.price_out)
    prompt = count_request(estimate, request)
    needs = _amounts(prices, TokenUsage(prompt, request.max_tokens))
    if COST in budget.budgets.limits and prices is None:
        raise SampleRefused("budget.exceeded", f"`{COST}` is limited, and no price is known")
    reserved = budget.budgets.reserve(needs)
    if reserved.overrun is not None:
        key, used, limit = reserved.overrun
        text = f"the request needs {needs[key]:,} of `{key}`, {used:,} of {limit:,} are used"
        raise SampleRefused("budget.exceeded", text)
    usage = TokenUsage(prompt, 0)
    try:
        reply = model.generate(request, cancel)
        usage = reply.usage
        return _build_reply(reply, prices)
    except ModelError as error:
        name = chosen.settings.name
        charged = _build_reply(ModelReply("", (), "", usage, name), prices)
        raise SampleRefused(error.code, error.message, charged) from error
    finally:
        reserved.commit(_amounts(prices, usage))


def _amounts(prices: Prices | None, usage: TokenUsage) -> dict[str, int]:
    """Return what a usage takes of each budget."""
    amounts = {TOKENS: usage.tokens_in + usage.tokens_out}
    if prices is not None:
        amounts[COST] = prices.cost(usage.tokens_in, usage.tokens_out)
    return amounts


def _build_reply(reply: ModelReply, prices: Prices | None) -> SampleReply:
    usage = reply.usage
    cost = None if prices is None else prices.cost(usage.tokens_in, usage.tokens_out)
    return SampleReply(
        reply.text, reply.finish, reply.model, usage.tokens_in, usage.tokens_out, cost
    )
