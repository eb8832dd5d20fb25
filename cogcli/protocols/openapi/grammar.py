"""openapi: the keys of its services (docs/reference/service.md#keys)."""

from __future__ import annotations

from typing import Final

from cogcli.specs.protocol import Grammar
from cogcli.specs.service_shape import CREDENTIALS, DOCUMENT, URL

GRAMMAR: Final = Grammar(
    keys={"base_url": URL, "spec_ref": DOCUMENT, "auth_ref": CREDENTIALS},
    addresses=("base_url", "spec_ref"),
    sends_files=True,
    documents=("openapi", "swagger"),
)
