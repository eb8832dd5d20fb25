"""What the caller of `verify` trusts."""

from __future__ import annotations

from typing import Final, NamedTuple


class Trusted(NamedTuple):
    """What the caller knows for sure."""

    key: str | None = None
    """The `key_id` that must have signed."""
    head: str | None = None
    """The hash that the log must have ended with."""
    owner: bytes | None = None
    """The user's key."""
    own_keys: frozenset[str] = frozenset()
    """Further keys whose signatures count, where there is one: those that the user signs with."""
    signature: bool = False
    """Whether all of it must be signed by one of these keys."""


NO_TRUST: Final = Trusted()
