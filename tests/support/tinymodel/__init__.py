"""A tiny real model behind a real server on loopback, with both protocols (docs/reference/models.md#providers).

`with TinyModel(seed=1) as server:` serves `server.base_url` (for `openai`; `server.address` for `anthropic`) until the
block ends; `server.requests` holds what came in, `server.usage` what was counted. The model's name picks its behaviour:

- `bigram`, `bigram-json`, `bigram-half`: see `behaviours`;
- `script:NAME`: the next reply of `scripts[NAME]`, a text or an object, the last one again and again; an object
  `{native_calls: [{id, name, args}]}` calls tools by the protocol's own means;
- `schema:KIND`: an answer to the schema of the request, see `structured`; a vector, of which `schema:prose` is none;
- `fault:KIND`: a status (of 429 and 529 with the wish to be asked again at once), `slow` (says nothing), `stall` (says
  half, then nothing), `cut` (says half and goes), `garbage`; `fault:KIND:2` only for the first two requests, then as
  `bigram-json`; `fault:KIND:2:MODEL` then as that model.

Without the tests: `python -m support.tinymodel --seed 1 --port 8080` in the folder `tests`.
"""

from __future__ import annotations

import json
import random
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from support.tinymodel import structured
from support.tinymodel.behaviours import Answer, answer
from support.tinymodel.protocols import PROTOCOLS, Usage, usage_of

_VECTORS = {"schema:valid": "[0.25, -0.5]", "schema:prose": '"none"', "schema:wrong-type": '["a"]'}
Scripts = Mapping[str, Sequence[str | dict[str, Any]]]


class SeenRequest(NamedTuple):
    """One request as it came in."""

    path: str
    headers: dict[str, str]
    """By lower-case name."""
    body: dict[str, Any]
    raw: bytes
    """All of it, as it came."""


class _Copied:
    """A connection as it is read, with what was read since the last look."""

    def __init__(self, file: Any) -> None:
        self._file, self._seen = file, b""

    def readline(self, size: int = -1) -> bytes:
        return self._copy(self._file.readline(size))

    def read(self, size: int = -1) -> bytes:
        return self._copy(self._file.read(size))

    def close(self) -> None:
        self._file.close()

    def take(self) -> bytes:
        seen, self._seen = self._seen, b""
        return seen

    def _copy(self, data: bytes) -> bytes:
        self._seen += data
        return data


class TinyModel:
    """The server. With `key`, requests that do not give it are refused."""

    def __init__(
        self, *, seed: int = 0, key: str = "", scripts: Scripts | None = None, port: int = 0
    ) -> None:
        self.seed = seed
        self.key = key
        self.scripts = scripts or {}
        self.requests: list[SeenRequest] = []
        self.usage = Usage(0, 0)
        """What was counted for the answers without a fault."""
        self.answers = 0
        self.calls: Counter[str] = Counter()
        """By the model's name how often it was asked."""
        self.lock = threading.Lock()
        self.closing = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", port), _Handler)
        self._server.daemon_threads = True
        self._server.tiny = self  # type: ignore[attr-defined]
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}
        )

    @property
    def address(self) -> str:
        """The base address for `anthropic`."""
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def base_url(self) -> str:
        """The base address for `openai`."""
        return f"{self.address}/v1"

    def __enter__(self) -> TinyModel:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        super().setup()
        self.rfile: Any = _Copied(self.rfile)

    def do_POST(self) -> None:
        tiny: TinyModel = self.server.tiny  # type: ignore[attr-defined]
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        model = str(body.get("model"))
        headers = {name.lower(): value for name, value in self.headers.items()}
        with tiny.lock:
            tiny.requests.append(SeenRequest(self.path, headers, body, self.rfile.take()))
            tiny.calls[model] += 1
            number = tiny.calls[model]
        protocol = next((each for each in PROTOCOLS if self.path.endswith(each.path)), None)
        if protocol is None:
            self._send(404, b"not here", "text/plain")
            return
        self.protocol = protocol
        if tiny.key and protocol.key(self.headers) != tiny.key:
            self._fail(
                401, "invalid_api_key", f"the key {protocol.key(self.headers)} is not accepted"
            )
            return
        fault = ""
        if model.startswith("fault:"):
            _, fault, most, model = (*model.split(":", 3), "", "")[:4]
            fault, number = (
                (fault, 1) if not most or number <= int(most) else ("", number - int(most))
            )
            model = model or "bigram-json"
        media_type = "text/event-stream" if body.get("stream") else "application/json"
        if fault.isdigit():
            self._fail(int(fault), "fault", "as you wish")
        elif fault == "slow":
            tiny.closing.wait()
        elif fault == "garbage":
            self._send(200, b"data: \xff{]\n\n", media_type)
        else:
            self._answer(tiny, body, model, number, fault)

    def _answer(
        self, tiny: TinyModel, body: dict[str, Any], model: str, number: int, fault: str
    ) -> None:
        seen = self.protocol.seen(body)
        try:
            said = (
                _scripted(tiny, model, number)
                if model.startswith("script:")
                else structured.answer(model.removeprefix("schema:"), body)
                if model.startswith("schema:") and "messages" in body
                else Answer(_VECTORS[model])
                if model.startswith("schema:")
                else answer(model, tiny.seed, seen)
            )
        except (KeyError, IndexError):
            self._fail(404, "model_not_found", f"there is no model {model}")
            return
        usage = usage_of(seen, body.get("tools", []), said)
        id = f"tiny_{number}"
        with tiny.lock:
            if not fault:
                tiny.answers += 1
                tiny.usage = Usage(*(a + b for a, b in zip(tiny.usage, usage, strict=True)))
        if body.get("stream"):
            self._stream(tiny, "".join(self.protocol.events(body, id, said, usage)).encode(), fault)
        else:
            data = json.dumps(self.protocol.whole(id, body["model"], said, usage)).encode()
            self._send(200, data, "application/json", fault)

    def _fail(self, status: int, kind: str, message: str) -> None:
        body = json.dumps(self.protocol.error(status, kind, message)).encode()
        self._send(status, body, "application/json")

    def _send(self, status: int, data: bytes, media_type: str, fault: str = "") -> None:
        """A whole answer, or the half of one."""
        self.send_response(status)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(data)))
        if status in (429, 529):
            self.send_header("Retry-After", "0")
        self.end_headers()
        self._write([data if not fault else data[: len(data) // 2]], fault)

    def _stream(self, tiny: TinyModel, events: bytes, fault: str) -> None:
        """The events, in pieces that end anywhere."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self.close_connection = True
        if fault:
            events = events[: len(events) // 2]
        rng, pieces = random.Random(tiny.seed), []
        while events:
            size = rng.choice([1, 3, 17, 100, 1000])
            pieces.append(events[:size])
            events = events[size:]
        self._write(pieces, fault)

    def _write(self, pieces: list[bytes], fault: str) -> None:
        try:
            for piece in pieces:
                self.wfile.write(piece)
                self.wfile.flush()
        except OSError:  # the client has gone
            self.close_connection = True
        if fault == "stall":
            self.server.tiny.closing.wait()  # type: ignore[attr-defined]
        if fault:
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Nothing is printed."""


def _scripted(tiny: TinyModel, model: str, number: int) -> Answer:
    replies = tiny.scripts[model.removeprefix("script:")]
    reply = replies[min(number, len(replies)) - 1]
    if isinstance(reply, str):
        return Answer(reply)
    return (
        Answer("", tuple(reply["native_calls"]))
        if "native_calls" in reply
        else Answer(json.dumps(reply))
    )
