"""Which model is meant, and what it takes from outside (docs/reference/models.md#settings)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from cogcli.app.settings.model_adapters import TEMPLATE
from cogcli.protocols.secrets import Secrets


class ModelSettings(NamedTuple):
    """One model. `name` is the provider's, or a file's as it was given, for adapters that read one; `file` is its
    path."""

    adapter: str = TEMPLATE
    name: str = ""
    file: str = ""
    base_url: str = ""
    """Empty: the provider's own."""
    auth_ref: str = ""
    """Where the key is. Empty: at the provider's own address in the usual variable, elsewhere there is none."""
    timeout_s: float = 60.0
    context_tokens: int | None = None
    use_env_proxy: bool = False


class ModelContext(NamedTuple):
    """What an adapter takes from outside."""

    secrets: Secrets
    count: Callable[[str], int]
    """About how many tokens a text has, where a provider does not say."""
    environ: Mapping[str, str] = {}
    sent: int = 0
    """How many requests of the run have an answer, or an error, already: adapters that answer by number go on there."""


def parse_model(text: str) -> tuple[str, str]:
    """Adapter and name of `ADAPTER[:NAME]`; either may be empty."""
    adapter, _, name = text.partition(":")
    return adapter, name
