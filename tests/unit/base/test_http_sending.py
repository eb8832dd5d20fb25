"""One request and its reply: what goes out, what comes back, and what the library is kept from doing."""

from __future__ import annotations

import gzip
import socket
import threading
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpcore
import pytest
from support.certificates import server_tls
from support.raw_server import Conversation, serving

from cogcli.base.calls import Cancellation
from cogcli.base.connections import Backend
from cogcli.base.errors import (
    CallTimeoutError,
    RequestMappingError,
    ResponseMappingError,
    RuntimeErrorBase,
    SafetyScopeError,
    TransportError,
)
from cogcli.base.http import Http, HttpReply, HttpRequest


@pytest.fixture
def http() -> Iterator[Http]:
    made = Http()
    yield made
    made.close()


def send(
    http: Http, url: str, *, seconds: float = 10, cancel: Cancellation | None = None, **rest: Any
) -> HttpReply:
    request = HttpRequest(
        rest.pop("method", "GET"), url, network=rest.pop("network", "private"), **rest
    )
    return http.send(request, time.monotonic() + seconds, cancel or Cancellation())


def failure(http: Http, url: str, **rest: Any) -> RuntimeErrorBase:
    with pytest.raises(RuntimeErrorBase) as caught:
        send(http, url, **rest)
    return caught.value


def ok(conversation: Conversation) -> None:
    conversation.reply(b'{"ok": true}')


def test_a_request_goes_out_as_given_and_nothing_is_added_but_what_http_needs(http: Http) -> None:
    with serving(ok) as server:
        reply = send(
            http,
            f"{server.url}/a%2Fb/%7e/./x?q=a+b&q=%20",
            method="POST",
            headers=(("X-One", "1"),),
            body=b"{}",
        )
        (sent,) = server.requests
    assert reply.status == 200
    assert reply.body == b'{"ok": true}'
    assert reply.header("content-TYPE") == "application/json"
    assert sent.line == "POST /a%2Fb/%7e/./x?q=a+b&q=%20 HTTP/1.1"
    assert sent.headers == {
        "host": f"127.0.0.1:{server.port}",
        "accept-encoding": "identity",
        "x-one": "1",
        "content-length": "2",
    }


def test_the_librarys_pool_uses_our_sockets(http: Http) -> None:
    with serving(ok) as server:
        send(http, server.url)
        (transport,) = http._lanes
        assert isinstance(transport._pool, httpcore.ConnectionPool)
        assert isinstance(transport._pool._network_backend, Backend)


def test_connections_are_kept_for_the_run_and_none_survives_close(http: Http) -> None:
    with serving(ok) as server:
        for _ in range(5):
            send(http, server.url)
        assert server.connections == 1
        http.close()
        http.close()
        assert failure(http, server.url).left is False


def test_an_idle_connection_that_the_server_closed_is_not_used(http: Http) -> None:
    closed = threading.Event()

    def answer(conversation: Conversation) -> None:
        ok(conversation)
        conversation.close()
        closed.set()

    with serving(answer) as server:
        for _ in range(3):
            assert send(http, server.url).status == 200
            assert closed.wait(60)
            closed.clear()
        assert server.connections == 3


def test_redirects_are_not_followed_and_cookies_are_forgotten(http: Http) -> None:
    def answer(conversation: Conversation) -> None:
        conversation.reply(b"", status="302 Found", headers="Location: /other\r\nSet-Cookie: a=b")

    with serving(answer) as server:
        for _ in range(2):
            reply = send(http, server.url)
            assert (reply.status, reply.header("location")) == (302, "/other")
        assert [c.line for c in server.requests] == ["GET / HTTP/1.1"] * 2
        assert "cookie" not in server.requests[1].headers


def test_the_environment_decides_nothing(
    http: Http, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login user password secret")
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    with serving(ok) as server:
        assert send(http, server.url).status == 200
        assert "authorization" not in server.requests[0].headers


def test_a_proxy_is_used_only_when_it_is_handed_in() -> None:
    with serving(ok) as proxy:
        http = Http(proxies={"HTTP_PROXY": f"127.0.0.1:{proxy.port}", "NO_PROXY": "spared.example"})
        try:
            assert send(http, "http://nobody.example/x", network="public").status == 200
            assert proxy.requests[0].line == "GET http://nobody.example/x HTTP/1.1"
            assert isinstance(
                failure(http, "http://127.0.0.1:1/", network="public"), SafetyScopeError
            )
        finally:
            http.close()


@pytest.mark.parametrize("url", ["http://nobody.example/", "https://nobody.example/"])
def test_a_proxy_that_cannot_be_reached_is_named_as_the_proxy(url: str) -> None:
    for proxy, said in (
        ("http://me:secret@127.0.0.1:1", "the proxy 127.0.0.1:1: connection refused"),
        ("http://proxy.invalid:3128", "the proxy proxy.invalid: the name is not known"),
    ):
        http = Http(proxies={"all_proxy": proxy}, resolve=unknown)
        error = failure(http, url, network="public")
        http.close()
        assert (error.code, error.message, error.left) == ("call.transport", said, False)
        assert "HTTPS_PROXY" in error.hint


def unknown(host: str, port: int) -> list[Any]:
    raise OSError(host)


def test_a_proxy_that_leads_nowhere_is_named_as_the_proxy() -> None:
    with serving(lambda each: each.reply(b"", status="407 Who Are You")) as proxy:
        http = Http(proxies={"https_proxy": proxy.url})
        error = failure(http, "https://nobody.example/", network="public")
        http.close()
        assert error.message == "the proxy does not lead there: 407 Who Are You"
        assert "HTTPS_PROXY" in error.hint


# -- addresses --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.1", "2130706433", "[::1]", "[::ffff:127.0.0.1]"]
)
def test_a_public_service_does_not_reach_this_machine(http: Http, host: str) -> None:
    with serving(ok) as server:
        error = failure(http, f"http://{host}:{server.port}/", network="public")
        assert (error.code, error.left) == ("safety.scope", False)
        assert server.connections == 0


def test_what_was_opened_for_a_private_service_is_not_used_for_a_public_one(http: Http) -> None:
    with serving(ok) as server:
        send(http, server.url, network="private")
        assert isinstance(failure(http, server.url, network="public"), SafetyScopeError)


def row(address: str, port: int) -> tuple[Any, ...]:
    return (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))


def test_a_name_is_looked_up_once_and_that_answer_is_judged_and_used() -> None:
    answers = [["127.0.0.1"], ["93.184.216.34"]]
    asked = []

    def resolve(host: str, port: int) -> list[tuple[Any, ...]]:
        asked.append(host)
        return [row(address, port) for address in answers[min(len(asked), 2) - 1]]

    with serving(ok) as server:
        http = Http(resolve=resolve)
        error = failure(http, f"http://rebind.example:{server.port}/", network="public")
        http.close()
    assert isinstance(error, SafetyScopeError)
    assert "rebind.example (127.0.0.1) is loopback" in error.message
    assert asked == ["rebind.example"]


def test_of_several_addresses_only_allowed_ones_are_connected_to() -> None:
    with serving(ok) as server:
        http = Http(
            resolve=lambda host, port: [row("169.254.169.254", port), row("127.0.0.1", port)]
        )
        assert send(http, f"http://both.example:{server.port}/").status == 200
        http.close()


def test_the_next_address_is_tried_where_one_does_not_answer() -> None:
    with serving(ok) as server:
        http = Http(resolve=lambda host, port: [row("127.0.0.2", port), row("127.0.0.1", port)])
        assert send(http, f"http://both.example:{server.port}/").status == 200
        http.close()


# -- what goes wrong --------------------------------------------------------------------------------------------------


def test_nobody_listens(http: Http) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    error = failure(http, f"http://127.0.0.1:{port}/")
    assert isinstance(error, TransportError)
    assert error.left is False
    assert "connection refused" in error.message


def test_an_unknown_name() -> None:
    def resolve(host: str, port: int) -> list[tuple[Any, ...]]:
        raise socket.gaierror(-2, "Name or service not known")

    http = Http(resolve=resolve)
    error = failure(http, "http://nowhere.example/", network="public")
    http.close()
    assert isinstance(error, TransportError)
    assert (error.left, error.message) == (False, "nowhere.example: the name is not known")


@pytest.mark.parametrize(
    "sent", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{"]
)
def test_a_connection_that_ends_too_early_is_a_transport_failure_that_left(
    http: Http, sent: bytes
) -> None:
    def answer(conversation: Conversation) -> None:
        conversation.send(sent)
        conversation.close()

    with serving(answer) as server:
        error = failure(http, server.url)
    assert isinstance(error, TransportError)
    assert error.left is True


def test_an_early_refusal_is_read_although_the_body_could_not_be_written(http: Http) -> None:
    def answer(listener: socket.socket) -> None:
        sock, _ = listener.accept()
        with sock:
            sock.recv(1024)
            sock.sendall(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n")
            sock.shutdown(socket.SHUT_RDWR)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answer, args=(listener,), daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        assert send(http, url, method="POST", body=b"x" * 5_000_000).status == 413
        http.close()
        thread.join(60)


@pytest.mark.parametrize(
    "url",
    ["ftp://a/", "file:///etc/passwd", "http://", "http://u:p@h/", "http://h:99999/", "http://[::"],
)
def test_urls_that_are_none_of_ours_never_leave(http: Http, url: str) -> None:
    error = failure(http, url)
    assert isinstance(error, RequestMappingError)
    assert (error.code, error.left) == ("request.value", False)


def test_headers_that_http_does_not_allow_never_leave(http: Http) -> None:
    with serving(ok) as server:
        error = failure(http, server.url, headers=(("X", "a\r\nY: b"),))
        assert isinstance(error, RequestMappingError)
        assert error.left is False
        assert server.requests == []


# -- time -------------------------------------------------------------------------------------------------------------


def holds(conversation: Conversation) -> None:
    conversation.hold()


def drips_headers(conversation: Conversation) -> None:
    conversation.drip(b"HTTP/1.1 200 OK\r\n" + b"X-Long: 1\r\n" * 100_000)


def drips_body(conversation: Conversation) -> None:
    conversation.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    conversation.drip(b"x" * 100_000)


@pytest.mark.slow
@pytest.mark.parametrize("answer", [holds, drips_headers, drips_body])
def test_the_deadline_covers_every_byte(http: Http, answer: Any) -> None:
    with serving(answer) as server:
        error = failure(http, server.url, seconds=0.3)
    assert isinstance(error, CallTimeoutError)
    assert error.left is True


def test_a_deadline_that_passed_sends_nothing(http: Http) -> None:
    with serving(ok) as server:
        error = failure(http, server.url, seconds=-1)
        assert isinstance(error, CallTimeoutError)
        assert error.left is False
        assert server.requests == []


def test_a_look_up_that_hangs_ends_at_the_deadline() -> None:
    free = threading.Event()

    def resolve(host: str, port: int) -> list[tuple[Any, ...]]:
        free.wait(20)
        return []

    http = Http(resolve=resolve)
    error = failure(http, "http://slow.example/", network="public", seconds=0.2)
    free.set()
    http.close()
    assert isinstance(error, CallTimeoutError)
    assert error.left is False


def test_a_tls_handshake_that_hangs_ends_at_the_deadline(http: Http) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        error = failure(http, f"https://127.0.0.1:{listener.getsockname()[1]}/", seconds=0.3)
    assert isinstance(error, CallTimeoutError)
    assert error.left is False


def test_a_server_that_does_not_read_ends_at_the_deadline(http: Http) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        error = failure(http, url, seconds=0.3, method="POST", body=b"x" * 30_000_000)
    assert isinstance(error, CallTimeoutError)
    assert error.left is True


@pytest.mark.parametrize("by_close", [False, True])
def test_giving_up_ends_a_call_at_once_and_closes_its_socket(http: Http, by_close: bool) -> None:
    closed = threading.Event()
    came = threading.Event()
    cancel = Cancellation()

    def answer(conversation: Conversation) -> None:
        came.set()
        if conversation.hold():
            closed.set()

    def give_up() -> None:
        came.wait(60)
        if by_close:
            http.close()
        else:
            cancel.set()

    with serving(answer) as server:
        thread = threading.Thread(target=give_up)
        thread.start()
        error = failure(http, server.url, seconds=30, cancel=cancel)
        thread.join()
        assert isinstance(error, TransportError)
        assert error.left is True
        assert closed.wait(60)


def test_a_call_given_up_before_it_began_sends_nothing(http: Http) -> None:
    cancel = Cancellation()
    cancel.set()
    with serving(ok) as server:
        assert failure(http, server.url, cancel=cancel).left is False
        assert server.requests == []


# -- size -------------------------------------------------------------------------------------------------------------


def announces_much(conversation: Conversation) -> None:
    conversation.send(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n")
    conversation.pour(b"x" * 65536)


def chunks_without_end(conversation: Conversation) -> None:
    conversation.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    conversation.pour(b"1000\r\n" + b"x" * 4096 + b"\r\n")


def headers_without_end(conversation: Conversation) -> None:
    conversation.send(b"HTTP/1.1 200 OK\r\n")
    conversation.pour(b"X-More: " + b"x" * 1000 + b"\r\n")


def greetings_without_end(conversation: Conversation) -> None:
    conversation.pour(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")


def many_headers(conversation: Conversation) -> None:
    conversation.reply(b"{}", headers="\r\n".join(f"X-{n}: {'y' * 1000}" for n in range(66)))


def bomb(conversation: Conversation) -> None:
    squeezed = gzip.compress(bytes(50_000_000))
    conversation.reply(squeezed, headers="Content-Encoding: gzip")


@pytest.mark.parametrize(
    "answer",
    [
        announces_much,
        chunks_without_end,
        headers_without_end,
        greetings_without_end,
        many_headers,
        bomb,
    ],
)
def test_no_reply_grows_beyond_its_cap(http: Http, answer: Any) -> None:
    with serving(answer) as server:
        error = failure(http, server.url, max_response_bytes=1_000_000)
    assert isinstance(error, ResponseMappingError)
    assert (error.code, error.left) == ("response.size", True)


def test_a_reply_of_just_the_cap_is_read(http: Http) -> None:
    with serving(lambda c: c.reply(b"x" * 1000)) as server:
        assert len(send(http, server.url, max_response_bytes=1000).body) == 1000
        assert failure(http, server.url, max_response_bytes=999).code == "response.size"


def raw_deflate(data: bytes) -> bytes:
    squeezer = zlib.compressobj(wbits=-15)
    return squeezer.compress(data) + squeezer.flush()


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", gzip.compress(b"hello", mtime=0)),
        ("x-gzip", gzip.compress(b"hel", mtime=0) + gzip.compress(b"lo", mtime=0)),
        ("GZip", gzip.compress(b"hello", mtime=0)),
        ("deflate", zlib.compress(b"hello")),
        ("deflate", raw_deflate(b"hello")),
        ("identity", b"hello"),
    ],
)
def test_common_encodings_are_undone_although_none_was_asked_for(
    http: Http, encoding: str, body: bytes
) -> None:
    with serving(lambda c: c.reply(body, headers=f"Content-Encoding: {encoding}")) as server:
        assert send(http, server.url).body == b"hello"


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("br", b"x"),
        ("zstd", b"x"),
        ("gzip, gzip", gzip.compress(gzip.compress(b"hello", mtime=0), mtime=0)),
        ("gzip", b"not gzip at all"),
        ("gzip", gzip.compress(b"hello", mtime=0)[:-4]),
        ("deflate", zlib.compress(b"hello") + b"rest"),
    ],
)
def test_other_encodings_are_refused(http: Http, encoding: str, body: bytes) -> None:
    with serving(lambda c: c.reply(body, headers=f"Content-Encoding: {encoding}")) as server:
        assert failure(http, server.url).code == "response.not-json"


def test_a_failures_status_is_told_even_where_its_body_cannot_be_read(http: Http) -> None:
    with serving(
        lambda c: c.reply(b"x", status="503 Busy", headers="Content-Encoding: br")
    ) as server:
        reply = send(http, server.url)
    assert (reply.status, reply.body) == (503, b"")
    assert "`br`" in reply.fault


def test_a_head_reply_has_no_body_and_its_connection_is_kept(http: Http) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\nContent-Encoding: br\r\n\r\n"
    with serving(lambda c: c.send(head)) as server:
        for _ in range(2):
            assert send(http, server.url, method="HEAD").body == b""
        assert server.connections == 1


# -- TLS --------------------------------------------------------------------------------------------------------------


def test_a_certificate_nobody_vouches_for_is_refused(http: Http, tmp_path: Path) -> None:
    tls, _ = server_tls(tmp_path)
    with serving(ok, tls) as server:
        error = failure(http, server.url)
        assert isinstance(error, TransportError)
        assert error.left is False
        assert "certificate" in error.message
        assert server.requests == []


def test_the_processs_environment_vouches_for_nobody(
    http: Http, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tls, chain = server_tls(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(chain))
    with serving(ok, tls) as server:
        assert failure(http, server.url).code == "call.transport"


@pytest.mark.parametrize(("name", "fits"), [("127.0.0.1", True), ("other.example", False)])
def test_a_trusted_certificate_must_be_for_the_host(tmp_path: Path, name: str, fits: bool) -> None:
    tls, chain = server_tls(tmp_path, name)
    http = Http(proxies={"SSL_CERT_FILE": str(chain)})
    with serving(ok, tls) as server:
        if fits:
            assert send(http, server.url).status == 200
        else:
            assert "certificate not accepted" in failure(http, server.url).message
    http.close()


# -- many at once -----------------------------------------------------------------------------------------------------


def test_many_threads_share_the_connections(http: Http) -> None:
    with serving(lambda c: c.reply(c.line.split()[1].encode())) as server:
        got: dict[int, bytes] = {}

        def one(n: int) -> None:
            for _ in range(5):
                got[n] = send(http, f"{server.url}/{n}").body

        threads = [threading.Thread(target=one, args=(n,)) for n in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert got == {n: f"/{n}".encode() for n in range(16)}
        assert server.connections <= 16
