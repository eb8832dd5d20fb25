"""The login of a person or a client at an MCP server, as the user's store keeps it
(docs/reference/mcp.md#store)."""

from __future__ import annotations

from typing import Final

from cogcli.declarations.record import Record

LOGIN_SCHEMA: Final = "cogcli.login/1"


class LoginSecrets(Record):
    """The secrets of a login. Each is masked from the moment it is read."""

    access_token: str
    refresh_token: str | None = None
    client_secret: str | None = None
    """The secret of a client that a login registered; None for one that the service file names."""


class LoginRecord(Record):
    """A login, and the server and layer to which it is bound."""

    schema: str
    service: str
    server: str
    """The URL of the server. The token is sent to no other address."""
    layer: str
    """The real path of the folder that contains the service file."""
    issuer: str
    """The authorization server, as it was at the login."""
    resource: str
    """The server's own identifier, repeated in each token request."""
    token_endpoint: str
    revocation_endpoint: str | None = None
    grant: str
    client_id: str
    client_auth: str
    """The client's authentication: `none`, `basic`, `body` or `key`."""
    scope: str | None = None
    user: str | None = None
    """The user's name at the authorization server; None if the server does not state it."""
    since: str
    until: str | None = None
    """The time from which the access token is no longer used; None if the server does not state its lifetime."""
    renewable: bool
    """Whether a run can get a new token without a person."""
    ended: str | None = None
    """The reason why the login has ended; None while it is valid."""
    keyring: bool
    """Whether the secrets are in the keyring instead of `secrets`."""
    secrets: LoginSecrets | None = None
