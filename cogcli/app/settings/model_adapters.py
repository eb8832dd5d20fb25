"""The adapters of language models by name (docs/reference/models.md). `cogcli.agent.models` opens
them."""

from __future__ import annotations

from typing import Final

from cogcli.base.named_tuple import NamedTuple

TEMPLATE: Final = "template"
"""The default, which is not an adapter: a pack's templates are followed, and no model is called."""


class ModelAdapter(NamedTuple):
    """An adapter: the module of its `open_adapter`, and its properties."""

    module: str
    reads_file: bool = False
    """Whether its name is the path of a file."""
    online: bool = False
    """Whether a request to it goes over a network."""


MODELS: Final[dict[str, ModelAdapter]] = {
    "scripted": ModelAdapter("cogcli.agent.models.scripted", reads_file=True),
    "openai": ModelAdapter("cogcli.agent.models.provider", online=True),
    "anthropic": ModelAdapter("cogcli.agent.models.provider", online=True),
    "replay": ModelAdapter("cogcli.agent.models.transcript", reads_file=True),
}
