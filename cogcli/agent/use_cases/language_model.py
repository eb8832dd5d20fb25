"""The choice of a language model for a command (docs/reference/models.md#settings)."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final

from cogcli.agent.context.tokenizer import estimate
from cogcli.agent.models import open_model
from cogcli.agent.models.port import LanguageModel, ModelInfo
from cogcli.agent.models.settings import ModelContext, ModelSettings, parse_model
from cogcli.app.settings import WHOLE_TABLE, Settings
from cogcli.app.settings.config import KEYS
from cogcli.app.settings.model_adapters import MODELS, TEMPLATE
from cogcli.base import system_text
from cogcli.base.errors import USAGE, CogcliError, UnusableEnvironment, UsageError
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import ProblemsFound, did_you_mean, suggestion_hint
from cogcli.protocols.secrets import Secrets

VARIABLE: Final = "COGCLI_MODEL"
NO_MODEL: Final = ModelInfo(TEMPLATE, "", None, True)
"""Stands for no model: the agent follows the templates of its pack."""


class ChosenModel(NamedTuple):
    """A chosen model, and the origin of the choice: a flag, a variable, `FILE:LINE`, or `default`."""

    settings: ModelSettings
    origin: str

    @property
    def title(self) -> str:
        """The model in one line."""
        given = self.settings
        if given.adapter == TEMPLATE:
            return "none: agents follow the templates of their pack"
        return f"{given.adapter} {given.name}{f' at {given.base_url}' if given.base_url else ''}"


def chosen_model(settings: Settings, flag: str | None = "") -> ChosenModel:
    """Return the model of the flag, the variable or the configuration, in this order. It is not opened. Raise
    UsageError `usage.value` and UnusableEnvironment `config.key`.
    """
    chosen = _read_configured_model(settings)
    given, origin = (
        (flag, "--model") if flag else (system_text.variable(settings.environ, VARIABLE), VARIABLE)
    )
    if given:
        chosen = ChosenModel(_parse_named_model(settings, chosen.settings, given, origin), origin)
    if chosen.settings.adapter != TEMPLATE and not chosen.settings.name:
        raise _missing_name_error(chosen)
    return chosen


def _read_configured_model(settings: Settings) -> ChosenModel:
    """Return the model of the table that applies. Its file is relative to the file of the table. Raise the errors
    of `Settings.value`.
    """
    prefix, proxy = f"{WHOLE_TABLE}.", settings.value("use_env_proxy")
    file = settings.file_with(WHOLE_TABLE)
    if file is None:
        return ChosenModel(ModelSettings(use_env_proxy=proxy), "default")
    keys = {
        name.removeprefix(prefix): settings.value(name) for name in KEYS if name.startswith(prefix)
    }
    path = os.path.join(os.path.dirname(file.path), keys["name"])
    line = min(line for name, line in file.lines.items() if name.startswith(prefix))
    return ChosenModel(
        ModelSettings(**keys, file=path, use_env_proxy=proxy), f"{file.shown}:{line}"
    )


def _parse_named_model(
    settings: Settings, configured: ModelSettings, text: str, origin: str
) -> ModelSettings:
    """Return the model that `ADAPTER[:NAME]` names, with the configured settings of its adapter.
    Raise UsageError `usage.value`."""
    adapter, name = parse_model(text)
    if adapter not in MODELS and adapter != TEMPLATE:
        message = f"{origin}: found `{text[:60]}`, expected ADAPTER[:NAME]"
        raise UsageError("usage.value", message, hint=_adapter_hint(adapter, name))
    if configured.adapter != adapter:
        configured = ModelSettings(adapter, use_env_proxy=configured.use_env_proxy)
    here = os.path.join(settings.base, name)
    # A run that is resumed in another directory names the file as the table does.
    if not name or (name == configured.name and not os.path.exists(here)):
        return configured
    return configured._replace(name=name, file=here, price_in=None, price_out=None)


def _adapter_hint(adapter: str, name: str) -> str:
    """Return the hint for an unknown adapter: the nearest ones, else all."""
    near = did_you_mean(adapter.strip().lower(), (*MODELS, TEMPLATE))
    meant = [
        each if each == TEMPLATE else f"{each}:{name}" for each in near if name or each == TEMPLATE
    ]
    write = f"write {near[0]}:NAME" if near else ""
    return suggestion_hint(meant) or write or f"adapters: {', '.join((TEMPLATE, *MODELS))}"


def _missing_name_error(chosen: ChosenModel) -> CogcliError:
    """Return the error for an adapter without the name of a model."""
    adapter = chosen.settings.adapter
    text = f"the adapter `{adapter}` needs the name of {'a file' if MODELS[adapter].reads_file else 'a model'}"
    if chosen.origin in ("--model", VARIABLE):
        return UsageError("usage.value", f"{chosen.origin}: {text}", hint=f"write {adapter}:NAME")
    file, _, line = chosen.origin.rpartition(":")
    return UnusableEnvironment(
        "config.key", text, file=file, line=int(line), column=1, hint="add `name`"
    )


def model_of(
    settings: Settings,
    flag: str | None = "",
    *,
    learn: Callable[[str], None] = lambda secret: None,
    sent: int = 0,
) -> LanguageModel | None:
    """Open the chosen model; None for none. `learn` takes each secret before it is used; `sent` is the number of
    requests that earlier processes of the run sent. Raise the errors of `chosen_model`; ServiceResolutionError
    `env.missing`, `env.extra` for a missing key; ProblemsFound for a faulty file."""
    chosen = chosen_model(settings, flag)
    return open_chosen(settings, chosen, learn=learn, sent=sent)


def open_chosen(
    settings: Settings, chosen: ChosenModel, *, learn: Callable[[str], None], sent: int = 0
) -> LanguageModel | None:
    """Open a chosen model; None for none. Raise the errors of `model_of`."""
    if chosen.settings.adapter == TEMPLATE:
        return None
    environ = settings.environ
    context = ModelContext(Secrets(environ, learn), estimate, environ, sent)
    try:
        return open_model(chosen.settings, context)
    except ProblemsFound as error:
        if chosen.origin != "--model":
            raise
        raise ProblemsFound(error.problems, unlisted=USAGE) from error
