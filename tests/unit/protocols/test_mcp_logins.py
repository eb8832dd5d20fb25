"""Logins at MCP servers, against a real authorization server (docs/reference/mcp.md#logins)."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from fakes.surroundings import surroundings
from support.logins import SECONDS, Person
from support.mcp_calls import Caller
from support.mcp_http import service
from support.oauth_server import MARK, Desk, guarded_server, parameters_of

from cogcli.base.errors import RuntimeErrorBase, UnusableEnvironment
from cogcli.declarations.login_record import LoginRecord, LoginSecrets
from cogcli.declarations.service_spec import Service
from cogcli.protocols.mcp.connect import require_sdk
from cogcli.protocols.mcp.login_redirect import RedirectListener
from cogcli.protocols.mcp.login_store import LoginStore
from cogcli.protocols.mcp.login_tokens import LoginTokens, is_protected, revoke

pytestmark = pytest.mark.slow

ELSEWHERE = "https://id.example.org"


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


@pytest.fixture
def person(desk: Desk, tmp_path: Path) -> Person:
    return Person(desk, tmp_path)


def call(caller: Caller, of: Person) -> Any:
    return caller("add", {"a": 2, "b": 40}, service=of.service).body


def test_a_login_is_used_renewed_and_revoked(desk: Desk, person: Person) -> None:
    login = person.log_in()
    assert (login.user, login.issuer, login.resource) == (
        "ada@example.org",
        desk.issuer,
        desk.resource,
    )
    caller = person.caller()
    assert call(caller, person) == {"sum": 42}
    desk.expire()  # the server refuses the token earlier than it said
    assert call(caller, person) == {"sum": 42}
    assert desk.grants == ["authorization_code", "refresh_token"]
    assert any(MARK in secret for secret in caller.learned)
    caller.invoker.close(5)

    kept = person.store.read(person.context.secrets)
    assert kept is not None
    assert revoke(person.service, person.context, kept)
    assert not desk.tokens
    assert not desk.refresh


@pytest.mark.parametrize("status", [200, 400])
def test_a_server_may_want_a_login_after_the_first_request(
    desk: Desk, person: Person, status: int
) -> None:
    desk.connect_status = status
    assert person.log_in().user == "ada@example.org"


def test_a_token_that_has_expired_is_renewed_before_it_is_sent(desk: Desk, person: Person) -> None:
    login, kept = person.store, person.log_in()
    with login.locked(time.monotonic() + SECONDS):
        login.write(kept.replace(until="2020-01-01T00:00:00.000000Z"))
    caller = person.caller()
    assert call(caller, person) == {"sum": 42}
    assert desk.grants == ["authorization_code", "refresh_token"]
    after = login.describe()
    assert after is not None
    assert after.until is not None
    assert after.until > kept.since
    caller.invoker.close(5)


def test_of_many_that_wait_one_renews(desk: Desk, person: Person) -> None:
    kept = person.log_in().replace(until="2020-01-01T00:00:00.000000Z")
    with person.store.locked(time.monotonic() + SECONDS):
        person.store.write(kept)
    askers = [LoginTokens(person.service, person.context) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        tokens = set(pool.map(LoginTokens.token, askers))
    assert len(tokens) == 1
    assert desk.grants == ["authorization_code", "refresh_token"]


def test_without_a_login_a_call_names_the_command_and_sends_nothing(
    desk: Desk, person: Person
) -> None:
    caller = person.caller()
    error = caller.refused("add", {"a": 1, "b": 2}, service=person.service)
    assert (error.code, error.left) == ("service.login", False)
    assert error.hint == "cogcli services login web"
    caller.invoker.close(5)
    assert desk.requests == []


def test_a_login_that_is_not_renewed_is_over(desk: Desk, person: Person) -> None:
    person.log_in()
    desk.expire()
    desk.refresh.clear()
    for _ in range(2):  # a second run asks no server
        caller = person.caller()
        error = caller.refused("add", {"a": 1, "b": 2}, service=person.service)
        assert error.code == "service.login"
        assert "invalid_grant" in error.message
        caller.invoker.close(5)
    assert desk.requests == ["authorization_code", "refresh_token"]
    assert not any(MARK in text for text in person.texts())


def test_a_server_that_fails_ends_no_login(desk: Desk, person: Person) -> None:
    person.log_in()
    desk.expire()
    desk.token_status = 503
    caller = person.caller()
    error = caller.refused("add", {"a": 1, "b": 2}, service=person.service)
    assert error.code == "call.overloaded"
    desk.token_status = 200
    assert call(caller, person) == {"sum": 42}
    caller.invoker.close(5)


REFUSALS: dict[str, tuple[dict[str, Any], str]] = {
    "answer of another server (mix-up)": ({"iss": ELSEWHERE}, "another authorization server"),
    "answer of no server": ({"iss": None}, "does not name its authorization server"),
    "the person says no": ({"error": "access_denied"}, "gave no code: access_denied"),
    "no PKCE": ({"pkce": ("plain",)}, "does not offer PKCE with S256"),
    "issuer of another server": (
        {"metadata": {"issuer": ELSEWHERE}},
        "names another issuer",
    ),
    "tokens over plain http": (
        {"metadata": {"token_endpoint": "http://192.0.2.1/token"}},
        "`192.0.2.1` is not https",
    ),
    "browser over plain http": (
        {"metadata": {"authorization_endpoint": "http://192.0.2.1/authorize"}},
        "is not reached over https",
    ),
    "no metadata": ({"metadata": {"issuer": None}}, "no authorization server with metadata"),
    "no login is wanted": ({"connect_status": 404}, "asks for no login (HTTP 404)"),
    "wrong audience": ({"audience": ELSEWHERE}, "does not accept its new token (HTTP 401)"),
    "no token": ({"token_status": 400}, "invalid_grant: no more"),
    "redirect to another origin": ({"token_status": 307}, "refuses the login"),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", REFUSALS)
def test_what_is_not_a_login_leaves_nothing(desk: Desk, person: Person, name: str) -> None:
    faults, words = REFUSALS[name]
    desk.__dict__.update(faults)
    error = person.refused()
    assert error.code == "service.login"
    assert words in error.message
    assert MARK not in error.message
    assert person.store.describe() is None
    assert person.texts() == []


def test_an_answer_with_another_state_is_not_taken(desk: Desk, person: Person) -> None:
    desk.state = "guessed"
    error = person.refused(seconds=1.0)
    assert error.code == "call.timeout"
    assert desk.requests == []


def test_a_slow_browser_ends_the_wait(desk: Desk, person: Person) -> None:
    seen: list[str] = []
    error = person.refused(lambda issuer, address: seen.append(address), seconds=1.0)
    assert error.code == "call.timeout"
    assert parameters_of(seen[0])["resource"] == desk.resource
    with pytest.raises(OSError, match="refused"):  # nothing listens any more
        urlopen(parameters_of(seen[0])["redirect_uri"], timeout=SECONDS)


def test_a_login_stays_with_its_authorization_server(desk: Desk, tmp_path: Path) -> None:
    person = Person(desk, tmp_path)
    kept = person.log_in()
    with person.store.locked(time.monotonic() + SECONDS):
        person.store.write(kept.replace(issuer=ELSEWHERE))
    assert f"the earlier login was at {ELSEWHERE}" in person.refused().message
    person = Person(desk, tmp_path / "other", issuer=ELSEWHERE)
    shown: list[str] = []
    error = person.refused(lambda issuer, address: shown.append(address))
    assert f"its file names {ELSEWHERE}" in error.message
    assert shown == []


def test_a_token_serves_one_service_at_one_address_of_one_folder(
    desk: Desk, person: Person
) -> None:
    person.log_in()
    own = person.service
    others = {
        "id": own.replace(id="other"),
        "address": own.replace(settings={**own.settings, "url": f"{desk.resource}/"}),
        "folder": own.replace(root=str(person.folder)),
    }
    for other in others.values():
        with pytest.raises(RuntimeErrorBase) as caught:
            LoginTokens(other, person.context).token()
        assert caught.value.code == "service.login"
    with pytest.raises(RuntimeErrorBase) as caught:
        LoginTokens(own.replace(trusted=False), person.context)
    assert caught.value.code == "service.untrusted"
    narrowed = own.replace(settings={**own.settings, "login": {"issuer": ELSEWHERE}})
    with pytest.raises(RuntimeErrorBase, match="asks for another login"):
        LoginTokens(narrowed, person.context).token()


def test_a_client_logs_in_without_a_person(desk: Desk, tmp_path: Path) -> None:
    client = {
        "grant": "client_credentials", "issuer": desk.issuer,
        "client_id": "ROBOT", "client_secret": "ROBOT_SECRET",
    }  # fmt: skip
    person = Person(desk, tmp_path, **client)
    login = person.log_in(lambda issuer, address: pytest.fail("a browser is opened"))
    assert login.renewable
    desk.expire()
    caller = Caller(
        {"ROBOT": "robot", "ROBOT_SECRET": f"{MARK}-robot-secret"}, state_dir=str(tmp_path)
    )
    assert call(caller, person) == {"sum": 42}
    assert desk.grants == ["client_credentials", "client_credentials"]
    caller.invoker.close(5)
    assert not any("robot-secret" in text for text in person.texts())
    elsewhere = Person(desk, tmp_path / "x", **{**client, "issuer": ELSEWHERE})
    assert elsewhere.refused().code == "service.login"
    assert len(desk.requests) == 2  # the secret was sent to no other server


def test_a_registered_secret_is_kept_with_the_tokens(desk: Desk, person: Person) -> None:
    desk.client_secret = f"{MARK}-client"
    person.log_in()
    desk.expire()
    caller = person.caller()
    assert call(caller, person) == {"sum": 42}
    assert desk.client_secret in caller.learned
    caller.invoker.close(5)


def test_a_revocation_that_fails_removes_nothing(desk: Desk, person: Person) -> None:
    login = person.log_in()
    desk.revoke_status = 503
    with pytest.raises(RuntimeErrorBase) as caught:
        revoke(person.service, person.context, login)
    assert caught.value.code == "service.login"
    assert not revoke(person.service, person.context, login.replace(revocation_endpoint=None))


# -- the store --------------------------------------------------------------------------------------------------------


def kept_login(store: LoginStore, own: Service, *, keyring: bool) -> LoginRecord:
    """A login in the store."""
    login = LoginRecord(
        schema="cogcli.login/1", service=own.id, server=own.keys.address, layer=store.layer, issuer=ELSEWHERE,
        resource=own.keys.address, token_endpoint=f"{ELSEWHERE}/token", grant="authorization_code", client_id="c",
        client_auth="none", since="2026-01-01T00:00:00.000000Z", renewable=False, keyring=keyring,
        secrets=LoginSecrets(access_token=f"access-{MARK}", refresh_token=f"refresh-{MARK}"),
    )  # fmt: skip
    with store.locked(time.monotonic() + SECONDS):
        return store.write(login)


@pytest.fixture
def own() -> Service:
    return service("https://notes.example/mcp", login={})


def test_the_file_is_its_owners_alone(tmp_path: Path, own: Service) -> None:
    store, context = LoginStore(str(tmp_path), own), surroundings()
    kept_login(store, own, keyring=False)
    assert os.stat(store.path).st_mode & 0o777 == 0o600
    assert os.stat(os.path.dirname(store.path)).st_mode & 0o777 == 0o700
    described = store.describe()
    assert described is not None
    assert described.secrets is None
    assert context.secrets.mask_text(f"a refresh-{MARK}") == f"a refresh-{MARK}"
    store.read(context.secrets)
    assert MARK not in context.secrets.mask_text(f"an access-{MARK} and a refresh-{MARK}")


@pytest.mark.parametrize("fault", ["readable", "no JSON", "link", "another server", "no token"])
def test_a_file_that_may_not_be_trusted_is_no_login(
    tmp_path: Path, own: Service, fault: str
) -> None:
    store = LoginStore(str(tmp_path), own)
    login = kept_login(store, own, keyring=False)
    path = Path(store.path)
    if fault == "readable":
        path.chmod(0o644)
    elif fault == "no JSON":
        path.write_text("{")
    elif fault == "link":
        path.rename(tmp_path / "elsewhere.json")
        path.symlink_to(tmp_path / "elsewhere.json")
    else:
        other = {"server": ELSEWHERE} if fault == "another server" else {"secrets": None}
        with store.locked(time.monotonic() + SECONDS):
            store.write(login.replace(**other))
    with pytest.raises(RuntimeErrorBase) as caught:
        store.read(surroundings().secrets)
    assert caught.value.code == "service.login"
    assert caught.value.hint == "cogcli services logout web --forget"


def test_a_keyring_that_takes_the_secrets_keeps_them(
    tmp_path: Path, own: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    import keyring
    from keyring.backend import KeyringBackend

    class Drawer(KeyringBackend):
        priority = 1.0  # type: ignore[assignment]
        kept: ClassVar[dict[tuple[str, str], str]] = {}

        def get_password(self, service: str, username: str) -> str | None:
            return self.kept.get((service, username))

        def set_password(self, service: str, username: str, password: str) -> None:
            self.kept[service, username] = password

        def delete_password(self, service: str, username: str) -> None:
            del self.kept[service, username]

    before = keyring.get_keyring()
    keyring.set_keyring(Drawer())
    try:
        store, context = LoginStore(str(tmp_path), own), surroundings()
        assert kept_login(store, own, keyring=True).keyring
        assert MARK not in Path(store.path).read_text()
        found = store.read(context.secrets)
        assert found is not None
        assert found.secrets is not None
        assert found.secrets.access_token == f"access-{MARK}"
        with store.locked(time.monotonic() + SECONDS):
            store.remove()
        assert Drawer.kept == {}
        assert store.describe() is None
        kept_login(store, own, keyring=True)
        Drawer.kept.clear()
        with pytest.raises(RuntimeErrorBase, match="keyring does not give its token"):
            store.read(context.secrets)
    finally:
        keyring.set_keyring(before)


def test_without_a_state_directory_there_is_no_login(own: Service) -> None:
    store = LoginStore("", own)
    assert store.describe() is None
    with pytest.raises(RuntimeErrorBase), store.locked(time.monotonic()):
        pytest.fail("it is locked")


def test_a_lock_that_is_taken_ends_the_wait(tmp_path: Path, own: Service) -> None:
    store, other = LoginStore(str(tmp_path), own), LoginStore(str(tmp_path), own)
    with store.locked(time.monotonic() + SECONDS), pytest.raises(RuntimeErrorBase) as caught:
        other.locked(time.monotonic()).__enter__()
    assert caught.value.code == "call.timeout"


# -- the listener -----------------------------------------------------------------------------------------------------


def status_of(url: str, data: bytes | None = None) -> int:
    try:
        with urlopen(url, data, timeout=SECONDS) as reply:
            return int(reply.status)
    except HTTPError as error:
        return error.code


def test_only_the_answer_with_the_state_ends_the_wait() -> None:
    async def listen() -> tuple[list[int], Any]:
        async with RedirectListener(None) as listener:
            waits = asyncio.create_task(listener.wait("s1"))
            wrong = [
                "?code=c", "?code=c&state=s2", "?code=c&state=s1&state=s1", "?state=", "/x?code=c&state=s1",
            ]  # fmt: skip
            statuses = [await asyncio.to_thread(status_of, listener.url + each) for each in wrong]
            statuses.append(await asyncio.to_thread(status_of, f"{listener.url}?state=s1", b"x"))
            assert not waits.done()
            good = f"{listener.url}?code=c&state=s1&iss=i"
            statuses.append(await asyncio.to_thread(status_of, good))
            return statuses, await waits

    statuses, answer = asyncio.run(listen())
    assert statuses == [400] * 6 + [200]
    assert (answer.code, answer.iss, answer.error) == ("c", "i", "")


def test_a_port_that_is_taken_is_named() -> None:
    async def listen_twice() -> None:
        async with RedirectListener(None) as first:
            port = int(first.url.split(":")[2].split("/")[0])
            async with RedirectListener(port):
                pytest.fail("both listen")

    with pytest.raises(UnusableEnvironment, match="is not free"):
        asyncio.run(listen_twice())


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://a.example/x", True),
        ("http://127.0.0.1:1/x", True),
        ("http://localhost/x", True),
        ("http://a.example/x", False),
        ("http://127.0.0.1.example/x", False),
        ("ftp://127.0.0.1/x", False),
    ],
)
def test_secrets_go_over_https_or_on_loopback(url: str, expected: bool) -> None:
    assert is_protected(url) is expected
