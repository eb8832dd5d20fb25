"""The model of an agent's run: that of settings and flags, or the one that the run began with
(docs/reference/models.md#settings)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial

from cogcli.agent.cognition.model_calls import OnResponse
from cogcli.agent.cognition.reasoning import ModelAccess
from cogcli.agent.models.port import LanguageModel, ModelInfo
from cogcli.agent.use_cases.language_model import chosen_model, open_chosen
from cogcli.app.settings import Settings
from cogcli.app.settings.model_adapters import TEMPLATE
from cogcli.base.errors import InternalError, ServiceResolutionError, UsageError
from cogcli.declarations.envelope import Event
from cogcli.declarations.run_start import start_of
from cogcli.policy.prices import COST, Prices
from cogcli.run.prepare import LearnedSecrets
from cogcli.specs.catalog import Catalog


def model_access(
    settings: Settings, named: str, mode: str, on_response: OnResponse | None = None
) -> ModelAccess | None:
    """Return the model of a new run, or None if templates plan. Raise the errors of `language_model.model_of`."""
    chosen, secrets = chosen_model(settings, named), LearnedSecrets()
    model = open_chosen(settings, chosen, learn=secrets.add)
    if model is None:
        return None
    info, timeout = model.describe(), chosen.settings.timeout_s
    prices = Prices.if_known(chosen.settings.price_in, chosen.settings.price_out)
    return ModelAccess(info, lambda known: model, on_response, mode, timeout, secrets, prices)


def require_prices(model: ModelAccess, limits: Mapping[str, float]) -> None:
    """Raise UsageError for a limit of costs that nothing could be charged to, because no price is known."""
    if COST not in limits or model.prices is not None:
        return
    text = f"`{COST}` is limited, and no price of `{model.info.name}` is known"
    expected = "price_in and price_out in [model] of cogcli.toml, in dollars per million tokens"
    raise UsageError("usage.value", text, expected=expected, hint="set them, or drop the limit")


def asks_model(settings: Settings, named: str) -> bool:
    """Return whether a model plans a new run, and not templates. No model is opened. Raise the errors of
    `chosen_model`.
    """
    return chosen_model(settings, named).settings.adapter != TEMPLATE


def require_trust(catalog: Catalog) -> None:
    """Raise ServiceResolutionError `service.untrusted` for the pack of an untrusted project, whose texts a model would
    get."""
    if catalog.distrust:
        text = f"{catalog.distrust}, so its pack asks no language model"
        error = ServiceResolutionError(
            "service.untrusted", text, hint="trust the project, if it may ask yours"
        )
        error.next = ("cogcli config trust",)
        raise error


def recorded_model(
    settings: Settings | None, started: Event, on_response: OnResponse | None = None
) -> ModelAccess:
    """Return the recorded model of a run to continue with. It is opened once, and never without settings."""
    start = start_of(started)
    pinned, agent = start.pins.model, start.agent
    if pinned is None or agent is None or agent.mode is None or agent.timeout_s is None:
        raise InternalError("internal", "this run records no model")
    info, secrets = ModelInfo.from_payload(pinned.json), LearnedSecrets()
    reopen = cache(partial(_reopen_model, settings, info, secrets)) if settings else None
    return ModelAccess(
        info,
        reopen,
        on_response,
        secrets=secrets,
        mode=agent.mode,
        timeout_s=agent.timeout_s,
        prices=Prices.if_known(agent.price_in, agent.price_out),
    )


def _reopen_model(
    settings: Settings, info: ModelInfo, secrets: LearnedSecrets, known: int
) -> LanguageModel:
    chosen = chosen_model(settings, f"{info.adapter}:{info.name}")
    # The log of the run names the model, not a flag of this command.
    chosen = chosen._replace(origin="the run")
    model = open_chosen(settings, chosen, learn=secrets.add, sent=known)
    if model is None:
        raise InternalError("internal", "a run that a model planned has none")
    return model
