"""Services echo each form of each of ten secrets, in every way that they can: none is found in any file or on any
screen. A secret is known from the moment that a call has read it, so the first step of each run asks for it."""

from __future__ import annotations

import html
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.raw_server import Conversation, serving
from support.secret_echoes import HALVES, SECRETS, echoes, shifted_echoes

ECHOES = {kind: [*echoes(secret).values(), *(text for text, _ in shifted_echoes(secret).values())]
          for kind, secret in SECRETS.items()}  # fmt: skip
MODULE = """
import json, os, sys
from pathlib import Path

from cogcli.sdk import secret

PLACE = Path({place!r})
ECHOES = json.loads((PLACE / "echoes.json").read_text())

def next_of(way):
    "The echoes one after the other, with None between and at the end: no service fails five times in a row."
    counter = PLACE / way
    done = len(counter.read_bytes()) if counter.exists() else 0
    with counter.open("ab") as file:
        file.write(b".")
    return ECHOES[done // 2] if done < 2 * len(ECHOES) and done % 2 == 0 else None

def is_last(way):
    return len((PLACE / way).read_bytes()) > 2 * len(ECHOES)

def long_text(echo):
    "A text that is cut at 500 characters in the middle of the echo."
    return "x" * (488 - len(echo) // 2) + " " + echo + " " + "y" * 600

def read() -> dict[str, object]:
    return {{"text": str(len(secret()))}}

def raise_in_thread() -> dict[str, object]:
    if (echo := next_of("thread")) is not None:
        print(echo)
        raise ValueError(long_text(echo))
    return reply() if is_last("thread") else {{"text": "fine"}}

def raise_in_worker() -> dict[str, object]:
    if (echo := next_of("worker")) is not None:
        print(echo, file=sys.stderr)
        raise ValueError(long_text(echo))
    return reply() if is_last("worker") else {{"text": "fine"}}

def die() -> dict[str, object]:
    if not (PLACE / "died").exists():
        (PLACE / "died").touch()
        os.write(2, ("z" * 70_000 + "\\n".join(ECHOES)).encode())
        os._exit(3)
    return reply()

def reply() -> dict[str, object]:
    return {{"text": {{"list": ECHOES, "keys": {{echo: 1 for echo in ECHOES}}, "json": json.dumps(ECHOES)}}}}

def misfit() -> dict[str, object]:
    return {{"number": "x" * 45 + ECHOES[0], "other": ECHOES[0]}}
"""
SERVER = """
import json, os, sys
from pathlib import Path

sys.path.insert(0, {root!r})
import echo_services as echoes

ECHOES = echoes.ECHOES

def send(message):
    sys.stdout.write(json.dumps(message) + "\\n")
    sys.stdout.flush()

def call(id):
    if not (echoes.PLACE / "ended").exists():
        (echoes.PLACE / "ended").touch()
        os.write(2, "\\n".join([*ECHOES, *ECHOES[0].splitlines()]).encode())
        os._exit(4)
    if (echo := echoes.next_of("mcp")) is not None:
        os.write(2, echo.encode() + b"\\n")
        return send({{"jsonrpc": "2.0", "id": id, "error": {{"code": -32603, "message": echoes.long_text(echo)}}}})
    text = json.dumps(echoes.reply() if echoes.is_last("mcp") else {{"text": "fine"}})
    send({{"jsonrpc": "2.0", "id": id, "result": {{"content": [{{"type": "text", "text": text}}]}}}})

schema = {{"type": "object", "description": "\\n".join(ECHOES)}}
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if method == "initialize":
        about = {{"name": "echo", "version": "1"}}
        version = message["params"]["protocolVersion"]
        send({{"jsonrpc": "2.0", "id": id, "result":
              {{"protocolVersion": version, "capabilities": {{"tools": {{}}}}, "serverInfo": about}}}})
    elif method == "tools/list":
        tool = {{"name": "echo", "description": " ".join(ECHOES), "inputSchema": schema}}
        send({{"jsonrpc": "2.0", "id": id, "result": {{"tools": [tool]}}}})
    elif method == "tools/call":
        call(id)
    elif id is not None:
        send({{"jsonrpc": "2.0", "id": id, "error": {{"code": -32601, "message": "unknown"}}}})
"""
REPEATED = ("thread", "worker", "http", "mcp")
STEPS = ("read", "thread", "worker", "die", "http", "mcp")
RETRY = "retry: {max_attempts: 4, backoff_seconds: 0}"


class Echoing:
    """A project whose services echo one secret, and the texts that tell of it."""

    def __init__(self, project: Any, kind: str, place: Path) -> None:
        self.project = project
        self.secret = SECRETS[kind]
        self.echoes = ECHOES[kind]
        cores = [core for _, core in shifted_echoes(self.secret).values()]
        self.telling = [*echoes(self.secret).values(), *cores, *HALVES[kind]]
        place.mkdir()
        (place / "echoes.json").write_text(json.dumps(self.echoes))
        project.write("echo_services.py", MODULE.format(place=str(place)))
        project.write("echo_server.py", SERVER.format(root=str(project.root)))
        self.env = {"A_KEY": self.secret}
        self.seen = 0

    def answer(self, conversation: Conversation) -> None:
        """Failures with an echo each, in the body, the status line's place and a header; then a reply with all."""
        number, is_success = divmod(self.seen, 2)
        self.seen += 1
        if number >= len(self.echoes):
            told = {"text": self.echoes, "echo": dict.fromkeys(self.echoes, 1)}
            conversation.reply(json.dumps(told).encode())
            return
        if is_success:
            conversation.reply(b'{"text": "fine"}')
            return
        echo = self.echoes[number]
        long = f"{'x' * 480} {echo} {'y' * 600}"
        one_line = "".join(c if c.isprintable() and ord(c) < 256 else "?" for c in echo)
        headers = f"X-Echo: {one_line}\r\nContent-Type: "
        ways = (
            (json.dumps({"detail": long}).encode(), "application/json"),
            (long.encode(), "text/plain"),
            (b"\xff\xfe" + long.encode(), f"text/plain; x={one_line}"),
        )
        body, media = ways[number % len(ways)]
        conversation.reply(body, status="500 Broken", headers=headers + media)

    def write(self, url: str) -> None:
        """Services, capabilities and the two skills."""
        write = self.project.write
        write(
            "services/local/held.yaml",
            "id: held\nkind: pythoncall\nmodule: echo_services\nisolation: thread\nauth_ref: A_KEY\n",
        )
        write("services/local/worker.yaml", "id: worker\nkind: pythoncall\nmodule: echo_services\n")
        write(
            "services/local/web.yaml",
            f"id: web\nkind: openapi\nbase_url: {url}\nnetwork: private\n",
        )
        write(
            "services/local/tool.yaml",
            f'id: tool\nkind: mcp\ncommand: {sys.executable}\nargs: [echo_server.py]\nenv: {{A_KEY: "${{A_KEY}}"}}\n',
        )
        ways = {
            "read": ("held", "pythoncall", "read"), "thread": ("held", "pythoncall", "raise_in_thread"),
            "worker": ("worker", "pythoncall", "raise_in_worker"), "die": ("worker", "pythoncall", "die"),
            "http": ("web", "openapi", "echo"), "mcp": ("tool", "mcp", "echo"),
        }  # fmt: skip
        for way, (service, protocol, operation) in ways.items():
            self._capability(
                way, service, protocol, operation, "{text: {type: any}}", "{text: response.text}"
            )
        numbers = "{number: {type: number}, other: {type: array}}"
        for service in ("held", "worker"):
            self._capability(
                f"misfit-{service}",
                service,
                "pythoncall",
                "misfit",
                numbers,
                "{number: response.number, other: response.other}",
            )
        outputs = f"{{{', '.join(f'{way}: {{type: any}}' for way in STEPS)}}}"
        each = f"foreach: {{items: {list(range(len(self.echoes) + 1))}}}"
        config = {
            way: f"{{{RETRY}, {each}}}" if way in REPEATED else f"{{{RETRY}}}" for way in STEPS
        }
        steps = "\n".join(
            f"- {{id: {way}, uses: echo.{way}.ask, output: {{text: outputs.{way}}}, config: {config[way]}}}"
            for way in STEPS
        )
        self.project.skill("echo.all", steps, outputs=outputs)
        self.project.skill(
            "echo.misfit",
            "- {id: read, uses: echo.read.ask, output: {text: vars.text}}\n"
            "- {id: misfit, uses: echo.misfit-worker.ask, output: {number: outputs.n}}",
            outputs="{n: {type: number}}",
        )

    def _capability(
        self, way: str, service: str, protocol: str, operation: str, outputs: str, response: str
    ) -> None:
        id = f"echo.{way}.ask"
        self.project.write(
            f"capabilities/{id}.yaml",
            f'id: {id}\nversion: "1.0.0"\ndescription: Asks.\ninputs: {{}}\noutputs: {outputs}\n'
            "properties: {side_effects: false}\n",
        )
        self.project.write(
            f"bindings/local/{id}/{way}.yaml",
            f"id: echo_{way}\ncapability: {id}\nservice: {service}\nprotocol: {protocol}\noperation: {operation}\n"
            f"request: {{}}\nresponse: {response}\n",
        )

    def run(self, *arguments: str, code: int = 0) -> str:
        """What the installed command writes, looked at. It is started as users start it: its screens are those of a
        process, and its workers are those of the installed package."""
        done = self.project.installed(*arguments, env=self.env)
        text = done.out + done.err
        assert done.code == code, text[-3000:]
        self.look(" ".join(arguments), text)
        return str(text)

    def look(self, where: str, text: str) -> None:
        """Fail where a text tells of the secret."""
        for form in self.telling:
            once = json.dumps(form)[1:-1]
            shown = {form, once, json.dumps(once)[1:-1], json.dumps(form, ensure_ascii=False)[1:-1]}
            found = [each for each in shown if each in text]
            assert not found, (
                f"{where}: {found[0]!r} at {text.find(found[0])}: {text[max(0, text.find(found[0]) - 200) :][:400]}"
            )

    def look_at_files(self) -> int:
        """Look at every file around the project; how many there are."""
        files = [path for path in Path(self.project.root.parent).rglob("*") if path.is_file()]
        for path in files:
            text = path.read_bytes().decode("utf-8", "replace")
            self.look(str(path), text)
            if path.suffix == ".html":
                self.look(str(path), html.unescape(text))
        return len(files)


@pytest.fixture(params=SECRETS)
def echoing(request: Any, project: Any, tmp_path_factory: Any) -> Iterator[Echoing]:
    found = Echoing(project, request.param, tmp_path_factory.mktemp("echoes") / "place")
    with serving(found.answer) as server:
        found.write(server.url)
        yield found


@pytest.mark.slow
@pytest.mark.sampled(12)
def test_no_form_of_a_secret_is_found_anywhere(echoing: Echoing) -> None:
    shown = echoing.run("run", "echo.all", "--json", "-v")
    log = (echoing.project.episode / "events.jsonl").read_text()
    assert log.count("[masked]") > len(REPEATED) * len(echoing.echoes)
    assert "[masked]" in shown
    for arguments in (
        ("trace", "@last", "-v"),
        ("trace", "@last", "--io"),
        ("state", "show", "@last"),
    ):
        echoing.run(*arguments)
    echoing.run("report", "@last", "-o", "page.html")
    assert (echoing.project.root / "page.html").exists()
    echoing.run("services", "refresh", "tool", "--accept")
    assert "[masked]" in (echoing.project.root / "cogcli.lock.json").read_text()
    echoing.run("run", "echo.misfit", "-v", "--debug", code=1)
    assert echoing.look_at_files() > 20


CRASH = """
import sys
from cogcli.protocols.live.runner import LiveRunner
from cogcli.__main__ import start

place = sys.argv.pop()

def close(self, grace):
    raise RuntimeError(open(place).read())

LiveRunner.close = close
sys.argv[1:] = ["run", "echo.misfit", "--debug"]
sys.exit(start())
"""


@pytest.mark.slow
@pytest.mark.sampled(8)
def test_a_crash_tells_no_secret(echoing: Echoing, tmp_path_factory: Any) -> None:
    message = tmp_path_factory.mktemp("message") / "text"
    message.write_text("\n".join(echoing.echoes))
    done = subprocess.run(
        [sys.executable, "-c", CRASH, str(message)],
        cwd=echoing.project.root,
        env={**echoing.project.env, **echoing.env},
        capture_output=True,
        check=False,
        timeout=120,
    )
    text = (done.stdout + done.stderr).decode()
    assert done.returncode == 70, text
    assert "Traceback" in text
    assert "[masked]" in text
    echoing.look("the screen", text)
    assert any(echoing.project.home.rglob("crash-*.txt"))
    echoing.look_at_files()
