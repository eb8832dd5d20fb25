"""Foreign text is masked before it is cut, joined or encoded: no half of a secret is left in a file or on a screen."""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from support.raw_server import Conversation, serving
from support.remote_project import remote

pytestmark = pytest.mark.sampled(10)

WORDS = "open-sesame-"
SECRET = WORDS * 75
"""Nine hundred characters, of which no part looks random: only the whole of it is a secret."""
LINES = "first line of a pass phrase\nsecond line of a pass phrase\nthird line of it"
ENCODED = "".join(f"%{byte:02X}" for byte in SECRET.encode()).encode()
ENV = {"A_KEY": SECRET, "B_KEY": LINES}
AUTH = "auth_ref: A_KEY\n"
MODULE = f"""
from cogcli.sdk import Refused, secret

def known() -> str:
    return {WORDS[::-1]!r}[::-1] * 75

def read(text: str) -> dict[str, object]:
    return {{"text": str(len(secret()))}}

def raises(text: str) -> dict[str, object]:
    raise ValueError("x" * 450 + known())

def refuses(text: str) -> dict[str, object]:
    raise Refused("r" * 30 + known(), "m" * 450 + known(), "h" * 450 + known())

def prints(text: str) -> dict[str, object]:
    print(known() + "\\n" + "y" * (65536 - 100))
    raise ValueError("no luck")

def dies(text: str) -> dict[str, object]:
    import os
    os.write(2, b"x" * 380 + known().encode())
    os._exit(3)

def misfits(text: str) -> dict[str, object]:
    return {{"text": {{}}, "number": "x" * 40 + known()}}

def twice(text: str) -> dict[str, object]:
    return {{"text": {{1: "a", "1": "b", known(): object()}}}}
"""


def look(project: Any, *screens: str) -> None:
    """Fail where a piece of a secret is on a screen or in a file around the project, but in its own module."""
    pieces = [WORDS[:10], "second line of", "third line of"]
    for screen in screens:
        assert not [piece for piece in pieces if piece in screen], screen[:3000]
    files = [
        path
        for path in Path(project.root.parent).rglob("*")
        if path.is_file() and path.suffix != ".py"
    ]
    for path in files:
        data = path.read_bytes()
        assert not [piece for piece in pieces if piece.encode() in data], path
    assert files


def run(project: Any, *arguments: str) -> None:
    """Run a command three ways, and look at what it shows and leaves."""
    for flags in ((), ("--json",), ("-v", "--debug")):
        done = project.run(*(word for word in arguments if word != "--json"), *flags, env=ENV)
        assert done.code != 70, done.err
        look(project, done.out, done.err)


FUNCTIONS = ("raises", "refuses", "prints", "misfits", "twice")
CALLS = [(name, where) for name in FUNCTIONS for where in ("thread", "process")] + [
    ("dies", "process")
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("function", "isolation"), CALLS)
def test_what_a_function_raises_and_prints(project: Any, function: str, isolation: str) -> None:
    project.write("demo_services.py", MODULE)
    held = "kind: pythoncall\nmodule: demo_services\nisolation: "
    project.write("services/local/held.yaml", f"id: held\n{held}thread\n{AUTH}")
    project.write("services/local/demo.yaml", f"id: demo\n{held}{isolation}\n")
    project.capability("demo.key.read", "read")
    (project.root / "bindings/local/demo.key.read/demo_key_read.yaml").write_text(
        "id: demo_key_read\ncapability: demo.key.read\nservice: held\nprotocol: pythoncall\noperation: read\n"
        "request: {text: input.text}\nresponse: {text: response.text}\n"
    )
    outputs = "{text: {type: any}, number: {type: number}}"
    project.capability(
        "demo.text.try",
        function,
        outputs=outputs,
        response="{text: response.text, number: response.number}",
    )
    project.skill(
        "demo.try",
        "- {id: read, uses: demo.key.read, input: {text: inputs.text}, output: {text: vars.n}}\n"
        "- {id: try, uses: demo.text.try, input: {text: inputs.text}, output: {text: outputs.text}}",
        inputs="{text: {type: string, default: x}}",
        outputs="{text: {type: any}}",
    )
    run(project, "run", "demo.try")


REPLIES = {
    "text of a failure": ("500 No", "text/plain", SECRET.encode() * 10),
    "detail of a failure": ("400 No", "application/json", json.dumps({"detail": "x" * 450 + SECRET}).encode()),
    "a number that is none": ("200 OK", "application/json", json.dumps({"text": "x" * 40 + SECRET}).encode()),
    "no JSON": ("200 OK", "text/html", b"x" * 60 + SECRET.encode()),
    "a type": ("200 OK", "text/" + "x" * 60 + SECRET, b"fine"),
    "a charset": ("200 OK", "text/plain; charset=" + "x" * 60 + SECRET, b"fine"),
    "usage": ("200 OK", "application/json", json.dumps({"usage": {f"{'x' * 30}{SECRET}_tokens": "a"}}).encode()),
}  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.parametrize("mode", ["json", "text", "raw"])
@pytest.mark.parametrize("case", REPLIES)
def test_what_a_web_service_replies(project: Any, case: str, mode: str) -> None:
    status, media, body = REPLIES[case]

    def answer(conversation: Conversation) -> None:
        conversation.reply(body, status=status, headers=f"Content-Type: {media}")

    with serving(answer) as server:
        outputs = "{text: {type: number}}" if mode == "json" else "{text: {type: any}}"
        command = remote(
            project,
            "openapi",
            server.url,
            "ask",
            service=AUTH,
            outputs=outputs,
            metadata=f"{{response_mode: {mode}}}",
        )
        run(project, *command)
        assert server.requests[0].headers["authorization"] == f"Bearer {SECRET}"


@pytest.mark.parametrize("where", ["body", "message", "answer", "id"])
def test_what_a_json_rpc_service_replies(project: Any, where: str) -> None:
    def answer(conversation: Conversation) -> None:
        id = json.loads(conversation.body)["id"]
        error = {"code": -32000, "message": "x" * 450 + SECRET}
        replies: dict[str, Any] = {
            "message": {"jsonrpc": "2.0", "id": id, "error": error},
            "answer": "x" * 40 + SECRET,
            "id": {"jsonrpc": "2.0", "id": "x" * 40 + SECRET, "result": 1},
        }
        body = (
            json.dumps(replies[where]).encode() if where in replies else b"x" * 60 + SECRET.encode()
        )
        conversation.reply(body)

    with serving(answer) as server:
        run(project, *remote(project, "openrpc", server.url, "ask", service=AUTH))


MCP_SERVER = """
import json, os, sys

way, long, lines = sys.argv[1], os.environ["A_KEY"], os.environ["B_KEY"]

def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

if way == "silent":
    os.write(2, lines.encode() + b"\\n")
    sys.exit(1)
schema = {"type": "object", "description": long}
gives = {"type": "object", "properties": {"text": {"type": "number"}}}
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if method == "initialize":
        version = message["params"]["protocolVersion"]
        about = {"name": "t", "version": "1"}
        send(id=id, result={"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about})
    elif method == "tools/list":
        name = "other" + long if way == "unknown" else "ask"
        tool = {"name": name, "description": lines, "inputSchema": schema, "outputSchema": gives}
        send(id=id, result={"tools": [tool]})
    elif method == "tools/call" and way == "ends":
        os.write(2, lines.encode() + b"\\n")
        os._exit(1)
    elif method == "tools/call" and way == "error":
        send(id=id, error={"code": -32603, "message": long * 10})
    elif method == "tools/call":
        send(id="s", method="x" * 60 + long)
        send(id="y" * 60 + long, result={})
        text = "x" * 40 + long
        failed = way == "failed"
        content = [{"type": "text", "text": long * 10 if failed else "fine"}]
        send(id=id, result={"content": content, "isError": failed, "structuredContent": {"text": text}})
    elif id is not None:
        send(id=id, error={"code": -32601, "message": "unknown"})
"""


def mcp_project(project: Any, way: str) -> tuple[str, ...]:
    """A project whose one skill calls a tool of a server that behaves in this way; the command that runs it."""
    command = remote(project, "mcp", "http://127.0.0.1:9", "ask", request="{}")
    project.write("server.py", MCP_SERVER)
    project.write(
        "services/local/remote.yaml",
        f"id: remote\nkind: mcp\ncommand: {sys.executable}\nargs: [server.py, {way}]\n"
        'env: {A_KEY: "${A_KEY}", B_KEY: "${B_KEY}"}\n',
    )
    return command


@pytest.mark.slow
@pytest.mark.parametrize("way", ["silent", "ends", "error", "failed", "unknown", "misfit"])
def test_what_an_mcp_server_says(project: Any, way: str) -> None:
    run(project, *mcp_project(project, way))


@pytest.mark.sampled(20)
@pytest.mark.slow
def test_what_tools_are_locked_and_pinned_as(project: Any) -> None:
    command = mcp_project(project, "misfit")
    done = project.run("services", "refresh", "remote", "--accept", env=ENV)
    assert done.code == 0, done.err
    assert "[masked]" in (project.root / "cogcli.lock.json").read_text()
    look(project, done.out, done.err)
    again = project.run("services", "refresh", "remote", "--json", env=ENV)
    assert again.json["services"][0]["verdict"] == "same"
    failed = project.run(*command, env=ENV)
    assert (
        failed.json["error"]["code"] == "call.server-error"
    )  # of the reply: the tool is the one that is locked


def test_what_a_fetched_document_holds(project: Any) -> None:
    operation = {
        "operationId": "ask",
        "description": SECRET,
        "responses": {"200": {"description": "ok"}},
    }
    about = {"title": SECRET, "version": "1"}
    document = {"openapi": "3.1.0", "info": about, "paths": {"/ask": {"get": operation}}}
    with serving(lambda c: c.reply(json.dumps(document).encode())) as server:
        remote(project, "openapi", server.url, "ask", service=f"{AUTH}spec_ref: api.json\n")
        done = project.run("services", "refresh", "remote", "--accept", env=ENV)
    look(project, done.out, done.err)
    assert "[masked]" in next(project.root.rglob("api.json")).read_text()


def test_bytes_that_are_recorded_in_base64_are_masked_before(project: Any) -> None:
    body = b"\xff\xfe" + ENCODED
    with serving(
        lambda c: c.reply(body, status="500 No", headers="Content-Type: image/png")
    ) as server:
        project.run(*remote(project, "openapi", server.url, "ask", service=AUTH), env=ENV)
    log = (project.episode / "events.jsonl").read_text()
    recorded = log.partition('"body_base64":"')[2].partition('"')[0]
    assert base64.b64decode(recorded) == b"\xff\xfe[masked]"
