"""The key that signs what this user seals: `COGCLI_SIGNING_KEY`, a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cogcli.core.outside import variable

if TYPE_CHECKING:
    from cogcli.app.settings import Settings
    from cogcli.episode.signing import Sign

VARIABLE: Final = "COGCLI_SIGNING_KEY"


def signer_of(settings: Settings) -> Sign | None:
    """A function that signs a manifest; None without a key. Raises EnvironmentRefusal `signing.key`, `env.extra`."""
    path = variable(settings.environ, VARIABLE)
    if not path:
        return None
    from cogcli.episode.signing import signer

    return signer(path)
