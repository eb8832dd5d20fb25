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
    """A login, and what it is bound to."""

    schema: str
    service: str
    server: str
    """The URL of the server, to which alone the token is sent."""
    layer: str
    """The real path of the folder that holds the service file."""
    issuer: str
    """The authorization server, as it was at the login."""
    resource: str
    """The server by its own name, which each request of a token repeats."""
    token_endpoint: str
    revocation_endpoint: str | None = None
    grant: str
    client_id: str
    client_auth: str
    """How the client proves itself: `none`, `basic` or `body`."""
    scope: str | None = None
    user: str | None = None
    """The user, as the authorization server names them; None if it names none."""
    since: str
    until: str | None = None
    """When the access token is used no longer; None if the server does not say."""
    renewable: bool
    """Whether a run can get a new token without a person."""
    ended: str | None = None
    """Why the login is over; None as long as it is not."""
    keyring: bool
    """Whether the secrets are in the keyring instead of `secrets`."""
    secrets: LoginSecrets | None = None
