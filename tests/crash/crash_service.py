"""A service on loopback whose effects leave a line each in a ledger, in a process that no kill of the tool touches."""

from __future__ import annotations

import json
import os
import shutil
import threading
import urllib.request
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

SECRET = "crash-secret-0123456789"
"""What the service answers under a key that names a secret, like `registry/crash_effects.py`."""


class Service:
    """The service, for as many ledgers as there are tokens."""

    def __init__(self) -> None:
        self._ledgers: dict[str, Path] = {}
        self._server = _Server(self._ledgers)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def registry(self, source: Path, copy: Path) -> Path:
        """A copy of a registry whose service is this one."""
        shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
        for file in (*copy.glob("services/local/*.yaml"), *copy.glob("*.py")):
            file.write_text(file.read_text().replace("http://127.0.0.1:9", self.url))
        return copy

    @contextmanager
    def held(self) -> Iterator[None]:
        """Within this, what is asked for has begun and does not happen; after it, it does."""
        self._server.go_on.clear()
        try:
            yield
        finally:
            self._server.go_on.set()

    def token(self, ledger: Path) -> str:
        """What a caller identifies itself with whose effects are for this ledger."""
        token = uuid.uuid4().hex
        self._ledgers[token] = ledger
        return token

    def settled(self) -> None:
        """Wait until everything that was sent so far has happened, or never will: its sender is gone."""
        with urllib.request.urlopen(f"{self.url}/settled", timeout=60) as reply:
            reply.read()

    def has_begun(self, ledger: Path) -> bool:
        """Whether something for this ledger has begun that has not happened yet."""
        return self._server.effects.has_begun(ledger)

    def close(self) -> None:
        """Listen no more."""
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, ledgers: dict[str, Path]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.ledgers = ledgers
        self.effects = _Effects()
        self.go_on = threading.Event()
        self.go_on.set()
        self._changed = threading.Condition()
        self._accepted = 0
        self._open: Counter[int] = Counter()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Connections are taken in the order in which they came; each has a number, before anything is read."""
        with self._changed:
            self._accepted += 1
            self._open[id(request)] = self._accepted
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        super().shutdown_request(request)
        self.over(request)

    def over(self, request: Any) -> None:
        """Nothing happens any more because of this connection."""
        with self._changed:
            self._open.pop(id(request), None)
            self._changed.notify_all()

    def wait_for_those_before(
        self, request: Any, until: Callable[[], bool] = lambda: False
    ) -> None:
        """Until every connection that came earlier is over, or something else is so."""
        with self._changed:
            own = self._open.pop(id(request))
            self._changed.notify_all()
            self._changed.wait_for(
                lambda: until() or not any(n < own for n in self._open.values()), timeout=30
            )


class _Effects:
    """What was asked for under which key: an effect begins once at most, and never under a key that was closed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: dict[tuple[Path, str], Any] = {}
        self._begun: set[tuple[Path, str]] = set()
        self._closed: set[str] = set()

    def make(self, ledger: Path, key: str, value: Any, once: str, go_on: threading.Event) -> bool:
        """Happen: one line in the ledger. False where the caller's idempotency key was closed before."""
        place = (ledger, key)
        with self._lock:
            if once in self._closed:
                return False
            self._begun.add(place)
        go_on.wait(30)
        with self._lock:
            _append(ledger, key)
            self._made[place] = value
            self._begun.discard(place)
        return True

    def has_begun(self, ledger: Path) -> bool:
        """Whether something was begun and has not happened yet."""
        with self._lock:
            return any(each == ledger for each, _ in self._begun)

    def happened(self, ledger: Path, key: str, once: str) -> dict[str, Any]:
        """Whether it did; null while it may yet. An idempotency key that nothing began under is closed with the answer;
        of a caller that sends none, like a function, every request that it had begun is over by now."""
        place = (ledger, key)
        with self._lock:
            if place in self._made:
                return {"happened": True, "output": {"value": self._made[place]}}
            if place in self._begun:
                return {"happened": None}
            self._closed.add(once)
            return {"happened": False}


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = 30

    def do_GET(self) -> None:
        """Tells when all is settled."""
        self.server.wait_for_those_before(self.request)
        self._answer({})

    def do_POST(self) -> None:
        """Happens: one line in the ledger, on disk before it answers. A request that is not whole is none."""
        ledger = self.server.ledgers.get(
            (self.headers["Authorization"] or "").removeprefix("Bearer ")
        )
        size = int(self.headers["Content-Length"])
        body = self.rfile.read(size)
        if ledger is None or len(body) != size:
            self.send_error(401 if ledger is None else 400)
            return
        sent = json.loads(body)
        if self.path == "/happened":
            self.server.wait_for_those_before(
                self.request, until=lambda: self.server.effects.has_begun(ledger)
            )
            self._answer(self.server.effects.happened(ledger, sent["key"], sent["idempotency_key"]))
            return
        rpc = self.path == "/rpc"
        asked = sent["params"] if rpc else sent
        once = self.headers["Idempotency-Key"] or ""
        if not self.server.effects.make(
            ledger, asked["key"], asked.get("value"), once, self.server.go_on
        ):
            self.send_error(409)
            return
        answer = {"value": asked.get("value"), "api_key": SECRET}
        self._answer({"jsonrpc": "2.0", "id": sent["id"], "result": answer} if rpc else answer)

    def _answer(self, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        try:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        except OSError:
            return  # nobody waits for it any more

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


def _append(ledger: Path, key: str) -> None:
    handle = os.open(ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(handle, b"\n" + json.dumps({"key": key}).encode() + b"\n")
    finally:
        os.close(handle)
