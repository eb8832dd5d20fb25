"""openapi: the keys of its services (docs/reference/service.md#keys)."""

from __future__ import annotations

from typing import Final

from cogcli.base.jsonvalue import NOTHING
from cogcli.declarations.service_spec import Credential, SecretLocation, Url
from cogcli.declarations.spec import Spec
from cogcli.declarations.spec_types import Words
from cogcli.specs.auth_shape import check_auth
from cogcli.specs.protocol import Grammar


class WebApi(Spec):
    """A web API."""

    base_url: Url | None = None
    """Http or https, without user info (`service.url`).
    Default: the one absolute server of the document"""
    spec_ref: Words | None = None
    """Its OpenAPI [document](#documents); without it `base_url` is required."""
    auth_ref: SecretLocation | None = None
    """The reference to the [bearer token](#secrets)."""
    auth: dict[Words, Credential] = NOTHING
    """[Credentials](#auth) by the names of the document's security schemes; not next to `auth_ref`, and
    only with `base_url`."""


GRAMMAR: Final = Grammar(
    settings=WebApi,
    addresses=("base_url", "spec_ref"),
    sends_files=True,
    has_headers=True,
    documents=("openapi", "swagger"),
    check_service=check_auth,
)
