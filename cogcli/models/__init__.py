"""Language models: one port, and the adapters behind it in the table `MODELS` (docs/reference/models.md).

Nothing of an adapter is imported before a model is opened: a run without one pays for none.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple, cast

if TYPE_CHECKING:
    from cogcli.models.port import LanguageModel
    from cogcli.models.settings import ModelContext, ModelSettings

    Open = Callable[[ModelSettings, ModelContext], LanguageModel]


class ModelAdapter(NamedTuple):
    """One adapter: where its `open_adapter` is, and what others ask of it."""

    module: str
    reads_file: bool = False
    """Whether its name is the path of a file."""
    online: bool = False
    """Whether asking it sends anything over a network."""

    def open(self, settings: ModelSettings, context: ModelContext) -> LanguageModel:
        """The model that settings name. Raises ProblemsFound for a file with faults."""
        return cast("Open", import_module(self.module).open_adapter)(settings, context)


MODELS: Final[dict[str, ModelAdapter]] = {
    "scripted": ModelAdapter("cogcli.models.scripted", reads_file=True),
    "openai": ModelAdapter("cogcli.models.provider", online=True),
    "anthropic": ModelAdapter("cogcli.models.provider", online=True),
    "replay": ModelAdapter("cogcli.models.transcript", reads_file=True),
}
"""By name. `template`, the default, is not a model, so that it is not here."""
