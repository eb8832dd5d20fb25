"""mcp: the keys of its services (docs/reference/service.md#keys)."""

from __future__ import annotations

from typing import Final

from cogcli.specs.protocol import Grammar
from cogcli.specs.service_shape import CREDENTIALS, URL
from cogcli.specs.shape import ListOf, MapOf, Text

GRAMMAR: Final = Grammar(
    keys={
        "command": Text(empty=False),
        "args": ListOf(Text()),
        "env": MapOf(Text(), foreign=True),
        "cwd": Text(empty=False),
        "url": URL,
        "server": Text(empty=False),
        "auth_ref": CREDENTIALS,
    },
    addresses=("command", "url", "server"),
    exclusive=True,
    beside={"command": ("args", "env", "cwd"), "url": ("auth_ref",)},
    unused=("method",),
)
