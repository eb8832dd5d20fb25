"""A web API on loopback, answered by a function, and a project that calls it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from support.loopback_servers import running


class Seen(NamedTuple):
    """One request that the API received. Header names are in lower case."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


ROWS: Final[Mapping[str, Any]] = {"rows": {"type": "array", "required": True}}
READS: Final[Mapping[str, Any]] = {"side_effects": False}
Reply = tuple[int, Any, Mapping[str, str]]
"""Status, JSON body and headers."""


class WebApi:
    """The address of an API, and the requests that it received."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.seen: list[Seen] = []


@contextmanager
def web_api(answer: Callable[[Seen], Reply]) -> Iterator[WebApi]:
    """An API whose replies are those of `answer`."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body go out together

        def answer(self) -> None:
            parts = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            query = dict(parse_qsl(parts.query, keep_blank_values=True))
            seen = Seen(self.command, parts.path, query, headers, body)
            api.seen.append(seen)
            status, value, more = answer(seen)
            data = json.dumps(value).encode()
            self.send_response(status)
            named = {"Content-Type": "application/json", **more, "Content-Length": str(len(data))}
            for name, text in named.items():
                self.send_header(name, text)
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_DELETE = answer

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    api = WebApi(f"http://127.0.0.1:{server.server_port}")
    with running(server):
        yield api


class ApiProject:
    """A project with one capability, `demo.row.read`, that is bound to an API at `url`."""

    def __init__(self, project: Any, url: str) -> None:
        self.project = project
        self.url = url
        self.service()
        self.bind()
        self.capability()

    def service(self, more: str = "") -> None:
        self.project.write(
            "services/local/rows.yaml",
            f"id: rows\nkind: openapi\nbase_url: {self.url}/v1\nnetwork: private\n{more}".encode(),
        )

    def bind(self, more: str = "metadata: {method: GET}\n", **keys: str) -> None:
        found = {"operation": "rows", "request": "{}", "response": "{rows: response.rows}", **keys}
        lines = "".join(f"{key}: {value}\n" for key, value in found.items())
        head = "id: rows\ncapability: demo.row.read\nservice: rows\nprotocol: openapi\n"
        self.project.write(
            "bindings/local/demo.row.read/rows.yaml", f"{head}{lines}{more}".encode()
        )

    def capability(
        self,
        outputs: Mapping[str, Any] = ROWS,
        properties: Mapping[str, Any] = READS,
        inputs: Mapping[str, Any] = {},
    ) -> None:
        declared = {name: {**field, "required": False} for name, field in outputs.items()}
        fields = f"inputs: {json.dumps(inputs)}\noutputs: {json.dumps(outputs)}\n"
        self.project.write(
            "capabilities/demo.row.read.yaml",
            f'id: demo.row.read\nversion: "1.0.0"\ndescription: Reads rows.\n{fields}'
            f"properties: {json.dumps(properties)}\n".encode(),
        )
        named = json.dumps({name: f"outputs.{name}" for name in outputs})
        taken = json.dumps({name: f"inputs.{name}" for name in inputs})
        self.project.skill(
            "demo.reads",
            f"- {{id: read, uses: demo.row.read, input: {taken}, output: {named}}}",
            inputs=json.dumps(inputs),
            outputs=json.dumps(declared),
        )

    def document(self, paths: Any, schemes: Any = None, **more: Any) -> None:
        """The document of the service."""
        whole = {
            "openapi": "3.1.0",
            "info": {"title": "Rows", "version": "1"},
            "paths": paths,
            "components": {"securitySchemes": schemes or {}},
            **more,
        }
        self.project.write("docs/rows.json", json.dumps(whole).encode())

    def run(self, *words: str, code: int = 0, **named: Any) -> Any:
        """The JSON answer of a run."""
        return self.project.run("run", "demo.reads", *words, "--json", **named).assert_exit(code)
