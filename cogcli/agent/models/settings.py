"""The settings of a model, and the ports of its adapter (docs/reference/models.md#settings)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cogcli.app.settings.model_adapters import TEMPLATE
from cogcli.base.named_tuple import NamedTuple
from cogcli.protocols.secrets import Secrets


class ModelSettings(NamedTuple):
    """A model. `name` is its name at the provider, or a file name for adapters that read a file.
    `file` is the path of that file."""

    adapter: str = TEMPLATE
    name: str = ""
    file: str = ""
    base_url: str = ""
    """Empty for the provider's own address."""
    auth_ref: str = ""
    """The reference to the key. Empty: the usual variable for the provider's own address, no key for another."""
    timeout_s: float = 60.0
    context_tokens: int | None = None
    price_in: float | None = None
    """Dollars per million tokens of requests. None if it is not known."""
    price_out: float | None = None
    use_env_proxy: bool = False


class ModelContext(NamedTuple):
    """The ports of an adapter."""

    secrets: Secrets
    count: Callable[[str], int]
    """Estimates the tokens of a text for providers without counts."""
    environ: Mapping[str, str] = {}
    sent: int = 0
    """The number of requests of the run with an outcome, for adapters that answer by number."""


def parse_model(text: str) -> tuple[str, str]:
    """Split `ADAPTER[:NAME]` into adapter and name. Either may be empty."""
    adapter, _, name = text.partition(":")
    return adapter, name
