"""The signed proof of a client that has a private key instead of a secret (RFC 7523, docs/reference/mcp.md#key).

The key goes nowhere but into the signature. A proof names the authorization server that it is for, and ends soon.
"""

from __future__ import annotations

from typing import Final

from cogcli.declarations.service_spec import Service
from cogcli.protocols.mcp.grammar import McpLogin
from cogcli.protocols.mcp.login_store import login_error
from cogcli.protocols.secrets import Secrets

ASSERTION_TYPE: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_SECONDS: Final = 60
"""The lifetime of a proof."""


async def sign_assertion(
    service: Service, login: McpLogin, secrets: Secrets, client_id: str, issuer: str
) -> str:
    """Return a proof for an authorization server, masked from now on. Raise ServiceResolutionError `service.login`
    for a file without a key and for a key that does not fit its algorithm, and the errors of a secret.
    """
    from mcp.client.auth.extensions.client_credentials import SignedJWTParameters

    if login.signing_key is None or login.signing_algorithm is None:
        raise login_error(service, "its file names no key, which the login was made with")
    parameters = SignedJWTParameters(
        issuer=client_id,
        subject=client_id,
        signing_key=secrets.resolve(login.signing_key),
        signing_algorithm=login.signing_algorithm,
        lifetime_seconds=_SECONDS,
    )
    try:
        signed = await parameters.create_assertion_provider()(issuer)
    except Exception:  # of several libraries, by kind of key and of fault
        # Without the cause: what a library says about a key may quote it.
        algorithm = login.signing_algorithm
        failed = login_error(service, f"`login.signing_key` is no private key for {algorithm}")
        failed.hint = "give it a key in PEM without a password, of the kind of its algorithm"
        raise failed from None
    secrets.add_secret(signed)
    return signed
