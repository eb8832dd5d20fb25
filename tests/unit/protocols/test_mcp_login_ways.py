"""Ways to log in that some MCP servers want: a document about the client, more scopes, a signing key, and endpoints
that the file names (docs/reference/mcp.md#logins)."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from fakes.surroundings import surroundings
from support.logins import Person
from support.mcp_http import service
from support.oauth_server import MARK, Desk, guarded_server

from cogcli.base.errors import RuntimeErrorBase
from cogcli.base.http import HttpReply
from cogcli.protocols.mcp.connect import require_sdk
from cogcli.protocols.mcp.login_endpoints import NamedEndpoints
from cogcli.protocols.mcp.login_scopes import find_scope_fault
from cogcli.protocols.mcp.login_tokens import LoginTokens, revoke

pytestmark = pytest.mark.slow

ELSEWHERE = "https://id.example.org"
DOCUMENT = "https://ada.example.org/cogcli.json"
SUM = {"a": 2, "b": 40}


@pytest.fixture(scope="module")
def server() -> Iterator[Desk]:
    require_sdk()
    with guarded_server() as desk:
        yield desk


@pytest.fixture
def desk(server: Desk) -> Desk:
    """The authorization server with its defaults, and without tokens."""
    fresh = Desk(issuer=server.issuer, resource=server.resource)
    server.__dict__.update(vars(fresh))
    return server


def call(person: Person) -> Any:
    """The result of a call in a run of its own."""
    caller = person.caller()
    try:
        return caller("add", SUM, service=person.service).body
    finally:
        caller.invoker.close(5)


def refused_call(person: Person) -> RuntimeErrorBase:
    caller = person.caller()
    try:
        return caller.refused("add", SUM, service=person.service)
    finally:
        caller.invoker.close(5)


# -- a document about the client --------------------------------------------------------------------------------------


def hosted(desk: Desk) -> Desk:
    """The authorization server after it has read the document."""
    desk.metadata = {"client_id_metadata_document_supported": True}
    desk.clients[DOCUMENT] = {"redirect_uris": ["http://127.0.0.1/callback"]}
    return desk


def test_a_document_is_the_client_where_the_server_takes_it(desk: Desk, tmp_path: Path) -> None:
    person = Person(hosted(desk), tmp_path, client_metadata_url=DOCUMENT)
    login = person.log_in()
    assert (login.client_id, login.client_auth) == (DOCUMENT, "none")
    assert list(desk.clients) == [DOCUMENT], "no client is registered"
    desk.expire()
    assert call(person) == {"sum": 42}
    assert desk.grants == ["authorization_code", "refresh_token"]


def test_a_server_that_takes_no_documents_registers_a_client(desk: Desk, tmp_path: Path) -> None:
    login = Person(desk, tmp_path, client_metadata_url=DOCUMENT).log_in()
    assert login.client_id == "client-0"


def test_a_server_that_registers_no_clients_is_asked_nowhere_else(
    desk: Desk, tmp_path: Path
) -> None:
    desk.metadata = {"registration_endpoint": None}
    assert "registers no clients" in Person(desk, tmp_path).refused().message
    assert desk.clients == {}


# -- scopes -----------------------------------------------------------------------------------------------------------


def test_the_command_of_a_refusal_gets_the_scopes(desk: Desk, tmp_path: Path) -> None:
    person = Person(desk, tmp_path, scopes=["base"])
    assert person.log_in().scope == "base"
    desk.wanted_scope = "notes:write"
    error = refused_call(person)
    assert error.code == "service.login"
    assert "notes notes:write" in error.message
    assert error.hint == "cogcli services login web --scope notes --scope notes:write"
    assert desk.scopes == ["base"], "a run asks for nothing"

    words = shlex.split(error.hint)
    login = person.log_in(scopes=[words[5], words[7]])
    assert login.scope == "base notes notes:write"
    assert call(person) == {"sum": 42}
    desk.expire()  # the scopes outlast a renewal
    assert call(person) == {"sum": 42}
    assert person.log_in(scopes=["more"]).scope == "base notes notes:write more"
    assert person.log_in().scope == "base", "a login without the flag is that of the file"


@pytest.mark.parametrize(
    ("challenge", "named"),
    [
        ('Bearer scope="a b", error="insufficient_scope"', "--scope a --scope b"),
        ("Bearer error=insufficient_scope, scope=https://a.example/drive.read", "drive.read"),
        ('Basic realm="x", Bearer error="insufficient_scope", scope="a"', "--scope a"),
        ('Bearer error="insufficient_scope", error_description="say scope=b", scope="a"', "--scope a"),
    ],
)  # fmt: skip
def test_a_refusal_names_its_scopes(challenge: str, named: str) -> None:
    fault = fault_of_challenge(challenge)
    assert fault is not None
    assert fault.hint.startswith("cogcli services login web --scope ")
    assert fault.hint.endswith(named)


@pytest.mark.parametrize(
    "scope",
    ["", "a;reboot", "$(reboot)", "`reboot`", "a|b", "-p", "--forget", "a'b", "a\\nb", "\x1b[2Jx", "naïve", "~", "a*",
     "x" * 201, " ".join(f"s{n}" for n in range(21))],
)  # fmt: skip
def test_what_a_shell_could_read_becomes_no_command(scope: str) -> None:
    fault = fault_of_challenge(f'Bearer error="insufficient_scope", scope="{scope}"')
    assert fault is not None
    assert "--scope" not in fault.hint
    assert fault.hint.endswith("cogcli services login web")
    assert "\x1b" not in fault.text
    assert len(fault.text) < 700


@pytest.mark.parametrize("faults", [{"error": "invalid_scope"}, {"token_status": 400}])
def test_a_refused_login_names_the_scopes_that_it_asked_for(
    desk: Desk, tmp_path: Path, faults: dict[str, Any]
) -> None:
    desk.__dict__.update(faults)
    person = Person(desk, tmp_path, scopes=["notes", "rows.read"])
    error = person.refused()
    assert error.message.endswith("; asked for the scopes notes rows.read")
    assert person.store.describe() is None


@pytest.mark.parametrize(
    "challenge", ["", "Bearer", 'Bearer error="invalid_token"', 'Bearer error_description="insufficient_scope"']
)  # fmt: skip
def test_another_refusal_is_no_lack_of_scopes(challenge: str) -> None:
    assert fault_of_challenge(challenge) is None
    assert fault_of_challenge('Bearer error="insufficient_scope"', status=401) is None


def fault_of_challenge(challenge: str, status: int = 403) -> Any:
    reply = HttpReply(status, (("www-authenticate", challenge),), b"")
    own = service("https://notes.example/mcp", login={})
    return find_scope_fault(own, reply, surroundings().secrets)


# -- a signing key ----------------------------------------------------------------------------------------------------


def pem_of(key: Any) -> str:
    kind = serialization.PrivateFormat.PKCS8
    return str(
        key.private_bytes(serialization.Encoding.PEM, kind, serialization.NoEncryption()).decode()
    )


def public_pem_of(key: Any) -> str:
    kind = serialization.PublicFormat.SubjectPublicKeyInfo
    return str(key.public_key().public_bytes(serialization.Encoding.PEM, kind).decode())


KEY = ec.generate_private_key(ec.SECP256R1())


class Robot(Person):
    """A client with a private key."""

    environ = {"ROBOT": "robot", "ROBOT_KEY": pem_of(KEY)}  # noqa: RUF012


def robot(desk: Desk, folder: Path, **login: Any) -> Robot:
    own = {
        "grant": "client_credentials", "issuer": desk.issuer, "client_id": "ROBOT",
        "signing_key": "ROBOT_KEY", "signing_algorithm": "ES256",
    }  # fmt: skip
    return Robot(desk, folder, **{**own, **login})


def test_a_client_proves_itself_by_its_key(desk: Desk, tmp_path: Path) -> None:
    desk.robot_key = public_pem_of(KEY)
    person = robot(desk, tmp_path)
    login = person.log_in(lambda issuer, address: pytest.fail("a browser is opened"))
    assert (login.client_auth, login.renewable) == ("key", True)
    desk.expire()
    assert call(person) == {"sum": 42}
    assert desk.grants == ["client_credentials", "client_credentials"]
    assert len(set(desk.proofs)) == 2, "each request has a proof of its own"
    assert Robot.environ["ROBOT_KEY"] in person.learned
    body = Robot.environ["ROBOT_KEY"].splitlines()[1]
    assert not any(body in text for text in person.texts())
    assert revoke(person.service, person.context, login)
    assert not any(token == (login.secrets and login.secrets.access_token) for token in desk.tokens)


def test_a_proof_goes_to_the_issuer_of_the_file_alone(desk: Desk, tmp_path: Path) -> None:
    desk.robot_key = public_pem_of(KEY)
    error = robot(desk, tmp_path, issuer=ELSEWHERE).refused()
    assert error.code == "service.login"
    assert desk.requests == []
    assert desk.proofs == []


@pytest.mark.parametrize("fault", ["no key", "another algorithm", "another kind", "a public key"])
def test_a_key_that_does_not_fit_is_not_quoted(desk: Desk, tmp_path: Path, fault: str) -> None:
    other_kind = pem_of(rsa.generate_private_key(65537, 2048)) if fault == "another kind" else ""
    keys = {
        "no key": f"{MARK} is no key",
        "a public key": public_pem_of(KEY),
        "another kind": other_kind,
    }
    algorithm = "RS256" if fault == "another algorithm" else "ES256"
    person = robot(desk, tmp_path, signing_algorithm=algorithm)
    person.context = surroundings(
        {**Robot.environ, "ROBOT_KEY": keys.get(fault, Robot.environ["ROBOT_KEY"])},
        state_dir=str(tmp_path),
    )
    error = person.refused()
    assert (error.code, desk.requests) == ("service.login", [])
    assert f"`login.signing_key` is no private key for {algorithm}" in error.message
    assert MARK not in f"{error.message}{error.hint}"


def test_a_login_by_a_key_that_the_file_no_longer_names_is_over(desk: Desk, tmp_path: Path) -> None:
    desk.robot_key = public_pem_of(KEY)
    person = robot(desk, tmp_path)
    person.log_in()
    desk.expire()
    secret = {"grant": "client_credentials", "client_id": "ROBOT", "client_secret": "ROBOT"}
    changed = person.service.replace(settings={**person.service.settings, "login": secret})
    tokens = LoginTokens(changed, person.context)
    with pytest.raises(RuntimeErrorBase, match="names no key"):
        tokens.token_instead(tokens.token())
    assert len(desk.requests) == 1


# -- endpoints that the file names ------------------------------------------------------------------------------------


def named(desk: Desk, **changes: str | None) -> dict[str, str]:
    found = {name: f"{desk.issuer}/{name}" for name in ("authorize", "token", "register")}
    return {name: each for name, each in {**found, **changes}.items() if each is not None}


def test_named_endpoints_are_used_and_nothing_is_looked_up(desk: Desk, tmp_path: Path) -> None:
    desk.metadata = {"token_endpoint": f"{ELSEWHERE}/token"}  # as an attacker would like it
    desk.servers = [ELSEWHERE]
    person = Person(desk, tmp_path, endpoints=named(desk))
    login = person.log_in()
    assert (login.issuer, login.token_endpoint) == (desk.issuer, f"{desk.issuer}/token")
    assert login.resource == desk.resource
    desk.expire()
    assert call(person) == {"sum": 42}
    assert {token.resource for token in desk.tokens.values()} == {desk.resource}
    assert desk.grants == ["authorization_code", "refresh_token"]
    assert desk.lookups == []


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "answer of another server (mix-up)": ({"iss": ELSEWHERE}, "another authorization server"),
    "wrong audience": ({"audience": ELSEWHERE}, "does not accept its new token (HTTP 401)"),
    "redirect to another origin": ({"token_status": 307}, "refuses the login"),
    "the person says no": ({"error": "access_denied"}, "gave no code: access_denied"),
}


@pytest.mark.parametrize("way", ["endpoints", "document"])
@pytest.mark.parametrize("name", WRONG)
def test_no_way_opens_a_login_to_an_attack(desk: Desk, tmp_path: Path, name: str, way: str) -> None:
    faults, words = WRONG[name]
    desk.__dict__.update(faults)
    if way == "document":
        hosted(desk)
    keys: dict[str, Any] = (
        {"client_metadata_url": DOCUMENT} if way == "document" else {"endpoints": named(desk)}
    )
    person = Person(desk, tmp_path, **keys)
    error = person.refused()
    assert error.code == "service.login"
    assert words in error.message
    assert person.store.describe() is None
    assert person.texts() == []


def test_endpoints_keep_an_issuer_and_may_differ_in_origin(desk: Desk, tmp_path: Path) -> None:
    person = Person(desk, tmp_path, issuer=ELSEWHERE, endpoints=named(desk))
    assert "another authorization server" in person.refused().message
    desk.iss = None  # a server that names no issuer in its answers
    assert person.log_in().issuer == ELSEWHERE


def test_a_login_is_over_when_the_file_names_another_token_endpoint(
    desk: Desk, tmp_path: Path
) -> None:
    person = Person(desk, tmp_path, endpoints=named(desk))
    person.log_in()
    moved = {"endpoints": named(desk, token=f"{ELSEWHERE}/token")}
    own = person.service.replace(settings={**person.service.settings, "login": moved})
    with pytest.raises(RuntimeErrorBase, match="asks for another login"):
        LoginTokens(own, person.context).token()
    assert desk.requests == ["authorization_code"]


def test_named_endpoints_are_not_reached_over_plain_http(desk: Desk, tmp_path: Path) -> None:
    person = Person(desk, tmp_path, endpoints=named(desk, token="http://192.0.2.1/token"))
    assert "`192.0.2.1` is not https" in person.refused().message


@pytest.mark.parametrize("path", ["/token", "/a/../token", "/:81/token"])
def test_a_path_stays_on_the_origin_of_the_service(path: str) -> None:
    own = service("https://notes.example:8443/mcp?x=1", login={"endpoints": {"token": path}})
    found = NamedEndpoints.of(own)
    assert found is not None
    assert found.token == f"https://notes.example:8443{path}"
    assert found.issuer == "https://notes.example:8443"
    assert found.register is None
