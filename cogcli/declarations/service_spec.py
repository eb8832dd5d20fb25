"""Services: the programs that do the work (docs/reference/service.md#keys)."""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self

from cogcli.base.jsonvalue import NOTHING
from cogcli.declarations.field import key, place
from cogcli.declarations.record import Record
from cogcli.declarations.spec import Spec, SpecLimits
from cogcli.declarations.spec_types import (
    Headers,
    PlainId,
    ProtocolName,
    Seconds,
    ServiceTarget,
    Words,
)
from cogcli.declarations.value_types import Json

HTTP_URL: Final = r"https?://([^/?#\s@]+)(?:[/?][^#\s]*)?"
Url = Annotated[
    str,
    SpecLimits(
        pattern=rf"{HTTP_URL}|\{{[A-Za-z_][A-Za-z0-9_]*\}}[^#\s@]*",
        ignore_case=True,
        code="service.url",
        expected="an http or https URL without user info",
        hint="write https://HOST/PATH; a password or token goes into auth_ref",
        secretive=True,
    ),
]
"""An address, or one that begins with a variable of the service."""
SecretLocation = Annotated[
    str,
    SpecLimits(
        pattern=r"(?:env:)?[A-Z][A-Z0-9_]*|file:/.+|keyring:[^/\s]+/\S+",
        code="secret.literal",
        expected="`NAME`, `env:NAME`, `file:/path` or `keyring:service/user`",
        hint="name where the secret is, as in auth_ref: NOTES_TOKEN for the environment variable "
        "of that name",
        secretive=True,
    ),
]
VariableName = Annotated[
    str,
    SpecLimits(
        pattern=r"[A-Za-z_][A-Za-z0-9_]*",
        expected="a letter or `_`, then letters, digits, `_`",
    ),
]
EnvironmentName = Annotated[
    str, SpecLimits(pattern=r"[A-Z][A-Z0-9_]*", expected="a name of A-Z, 0-9 and `_`")
]


Rate = Annotated[
    str,
    SpecLimits(
        pattern=r"(?:[1-9][0-9]{0,5}(?:\.[0-9]{1,6})?|0\.[0-9]{0,5}[1-9])/s",
        expected="calls a second, such as 5/s or 0.5/s",
    ),
]


class ServiceVariable(Spec):
    """The source of the value of a variable."""

    env: EnvironmentName | None = None
    """The environment variable that contains the value."""
    default: Words | None = None
    """Its value where that is not set or empty."""


class Credential(Spec):
    """One way to authenticate: a bearer token, an API key, a user with a password, or a client of
    OAuth 2."""

    bearer: SecretLocation | None = None
    """The reference to a token, sent as `Authorization: Bearer TOKEN`."""
    word: Annotated[str, SpecLimits(pattern=r"[A-Za-z0-9._~+-]{1,64}", expected="one word")] = (
        "Bearer"
    )
    """The word before the token of `bearer`."""
    api_key: SecretLocation | None = None
    """The reference to an API key."""
    place: Literal["header", "query", "cookie"] = key(default="header", name="in")
    """The header, query parameter or cookie that contains `api_key`."""
    name: (
        Annotated[
            str,
            SpecLimits(pattern=r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}", expected="a name of a header"),
        ]
        | None
    ) = None
    """The name of the header, the query parameter or the cookie of `api_key`."""
    user: SecretLocation | None = None
    """The reference to a user name, sent with `password` as `Authorization: Basic`."""
    password: SecretLocation | None = None
    """The reference to the user's password."""
    client_id: SecretLocation | None = None
    """The reference to the id of an OAuth 2 client. The client gets [tokens](protocols.md#oauth) by the grant
    `client_credentials`.
    """
    client_secret: SecretLocation | None = None
    """The reference to the client's secret."""
    token_url: Url | None = None
    """The address that issues tokens to the client."""
    scopes: tuple[Words, ...] = ()
    """The scopes that the client requests."""
    audience: Words | None = None
    """The audience that the client requests."""
    client_auth: Literal["basic", "body"] = "basic"
    """The client's authentication method: `Authorization: Basic`, or in the body."""

    @property
    def refs(self) -> tuple[str, ...]:
        """The references to its values."""
        found = (self.user, self.client_id, *self.secrets)
        return tuple(ref for ref in found if ref is not None)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The references to its secrets. Names of users and clients are not secrets."""
        found = (self.bearer, self.api_key, self.password, self.client_secret)
        return tuple(ref for ref in found if ref is not None)

    @property
    def header(self) -> str:
        """Return the header that transmits the credential; empty if it is transmitted elsewhere."""
        if self.api_key is None:
            return "Authorization"
        return (self.name or "") if self.place == "header" else ""


class LoginCredential(Credential):
    """The credentials of a login: those of a client, which may have a private key."""

    signing_key: SecretLocation | None = None
    """The reference to the client's private key."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """The references to its secrets."""
        return super().secrets if self.signing_key is None else (*super().secrets, self.signing_key)


class ServiceMetadata(Spec):
    """Settings of the calls of a service, and descriptions for readers."""

    description: str | None = None
    maintained_by: str | None = None
    status: str | None = None
    purpose: str | None = None
    """Stated for readers."""
    timeout_seconds: Seconds | None = None
    """Limit of one attempt, after that of the binding; the start of a program has as much, else 60,
    in addition; a limit of the binding bounds the start, too.
    Default: `30`"""
    max_rate: Rate | None = None
    """Calls a second that [batches](batch.md#rates) make at most: `5/s`, `0.5/s`."""
    max_concurrent: Annotated[int, SpecLimits(minimum=1, maximum=1000)] | None = None
    """Lines of [batches](batch.md#rates) that reach it at a time, at most."""
    headers: Headers = NOTHING
    """Sent with each request ([rules](protocols.md#headers)); `${NAME}` is a variable."""
    targets: tuple[ServiceTarget, ...] = ()
    """The [demands](binding.md#eligibility) that the service meets."""


class ProtocolKeys(Record):
    """The keys of a service's protocol that several rooms read; each is absent in some protocols."""

    base_url: str | None = None
    url: str | None = None
    spec_ref: str | None = None
    server: str | None = None
    env: dict[str, str] | None = None
    login: Json | None = None
    auth: dict[str, Json] | None = None
    auth_ref: str | None = None

    @property
    def address(self) -> str:
        """Return the address to which requests are sent; empty if the service declares none."""
        return self.base_url or self.url or ""


class Service(Spec):
    """A service as declared in its file.

    The keys of its protocol are declared by the grammar of the protocol
    (`cogcli/protocols/*/grammar.py`).
    """

    id: PlainId
    """[Its name](spec-files.md#ids), that of its file.
    Default: required, but not in [`services.yaml`](binding.md#host-overrides)"""
    kind: ProtocolName
    """The protocol of the service."""
    network: Literal["public", "private"] = "public"
    """Which [addresses](#addresses) it may have; of a Python module: its functions reach the network,
    so that it meets [demands of targets and network](binding.md#eligibility) as a remote service does.
    Default: public; of a Python module none"""
    variables: dict[VariableName, ServiceVariable] = NOTHING
    """[Values set by the host](#variables), for addresses and requests."""
    metadata: ServiceMetadata = ServiceMetadata()
    """Settings of its calls, and words for readers."""
    declares_network: bool = place(default=False)
    """Whether its file has `network`, so that its functions reach other machines."""
    module: str | None = place(default=None)
    isolation: str | None = place(default=None)
    """Those keys of a Python service."""
    settings: Json = place(default=NOTHING)
    """The keys of the other protocols as written: base_url, url, spec_ref, auth_ref, command, args,
    env, cwd; addresses with the values of variables."""
    values: dict[str, str] = place(default=NOTHING)
    """By variable its value; one without is left out."""
    written: dict[str, str] = place(default=NOTHING)
    """The addresses that contain variables, as written in the file."""
    address_by_host: bool = place(default=False)
    """Whether the environment, not the file, gives its address."""
    layer: str = place(default="")
    root: str = place(default="")
    """The directory of the layer, where a pythoncall module may be."""
    trusted: bool = place(default=False)
    """Whether its layer may start code and read the environment (docs/reference/service.md#trust)."""
    file: str = place(default="")
    at: tuple[str, ...] = place(default=())
    """Its path in its file; empty if the file contains nothing else."""
    distrust: str = place(default="")
    """The reason why its layer is not trusted; empty if there is no special reason."""
    allow_hosts: tuple[str, ...] = place(default=())
    """The public hosts that calls reach although it is not trusted."""

    @property
    def auth_ref(self) -> str | None:
        """The reference to the secret of its calls; None if the service declares none."""
        return self.keys.auth_ref

    @property
    def credentials(self) -> dict[str, Credential]:
        """Return the credentials of `auth` by the names of their security schemes, or that of a `login`."""
        if (login := self.keys.login) is not None:
            return {"login": LoginCredential.of(login)}
        declared = self.keys.auth or {}
        return {name: Credential.of(each) for name, each in declared.items()}

    @property
    def keys(self) -> ProtocolKeys:
        """Return the keys of its protocol."""
        return ProtocolKeys.of(self.settings)

    @classmethod
    def of(cls, json: Json, **places: object) -> Self:
        """Return the service of a checked mapping. `places` contains the members that no file has."""
        own = cls.file_keys()
        settings = {
            key: value for key, value in json.items() if key not in own and not key.startswith("x-")
        }
        places |= {key: settings.pop(key, None) for key in ("module", "isolation")}
        declares_network = json.get("network") is not None
        return super().of(json, settings=settings, declares_network=declares_network, **places)
