"""The endpoints that a service file names for an authorization server without metadata
(docs/reference/mcp.md#endpoints).

They take the place of the documents that the SDK would look up: what it asks for is answered from the file, so nothing
is looked up and no server can name another address.
"""

from __future__ import annotations

from cogcli.base.jsonvalue import Json
from cogcli.declarations.service_spec import Service
from cogcli.protocols.mcp.grammar import LoginEndpoints, McpLogin, McpServer
from cogcli.specs.login_shape import origin_of


class NamedEndpoints:
    """The endpoints of one service, as whole addresses."""

    def __init__(self, service: Service, login: McpLogin, endpoints: LoginEndpoints) -> None:
        self._url = service.keys.address
        self.token = self._resolve(endpoints.token)
        self.authorize = self._resolve(endpoints.authorize or endpoints.token)
        self.register = self._resolve(endpoints.register) if endpoints.register else None
        self.issuer = login.issuer or origin_of(self.token)

    @classmethod
    def of(cls, service: Service) -> NamedEndpoints | None:
        """Return the endpoints that the file of a service names; None without any."""
        login = McpServer.of(service.settings).login
        if login is None or login.endpoints is None:
            return None
        return cls(service, login, login.endpoints)

    def _resolve(self, endpoint: str) -> str:
        """Return a whole address. A path is appended to the origin of the service, not joined: so it stays there."""
        return f"{origin_of(self._url)}{endpoint}" if endpoint.startswith("/") else endpoint

    @property
    def resource_document(self) -> Json:
        """The metadata of the server (RFC 9728): its own address, so that each token is bound to it."""
        return {"resource": self._url, "authorization_servers": [self.issuer]}

    @property
    def server_document(self) -> Json:
        """The metadata of the authorization server (RFC 8414). PKCE is sent, whatever the server does with it."""
        found: Json = {
            "issuer": self.issuer,
            "authorization_endpoint": self.authorize,
            "token_endpoint": self.token,
            "code_challenge_methods_supported": ["S256"],
        }
        return found | ({"registration_endpoint": self.register} if self.register else {})
