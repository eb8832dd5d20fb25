"""Language models behind one port (docs/reference/models.md). `MODELS` in the settings lists the adapters.

No adapter is imported before a model is opened, so a run without a model pays for none.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, cast

from cogcli.app.settings.model_adapters import MODELS

if TYPE_CHECKING:
    from cogcli.agent.models.port import LanguageModel
    from cogcli.agent.models.settings import ModelContext, ModelSettings

    Open = Callable[[ModelSettings, ModelContext], LanguageModel]


def open_model(settings: ModelSettings, context: ModelContext) -> LanguageModel:
    """Return the model that the settings name. Raise ProblemsFound for a file with faults."""
    adapter = import_module(MODELS[settings.adapter].module)
    return cast("Open", adapter.open_adapter)(settings, context)
