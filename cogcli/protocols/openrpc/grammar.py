"""openrpc: the keys of its services and the names of its methods (docs/reference/service.md#keys,
docs/reference/protocols.md#openrpc)."""

from __future__ import annotations

import re
from typing import Final

from cogcli.specs.protocol import Grammar
from cogcli.specs.service_shape import CREDENTIALS, DOCUMENT, URL

METHOD_NAME: Final = re.compile(r"(?!rpc\.)[A-Za-z0-9_.:/-]{1,128}")


def _operation(operation: str) -> str:
    return "" if METHOD_NAME.fullmatch(operation) else "a method name, not beginning with `rpc.`"


GRAMMAR: Final = Grammar(
    keys={"url": URL, "base_url": URL, "spec_ref": DOCUMENT, "auth_ref": CREDENTIALS},
    addresses=("url", "base_url"),
    exclusive=True,
    unused=("method", "response_mode"),
    operation=_operation,
    documents=("openrpc",),
)
