"""One skill, four steps, four protocols: run, killed, continued with, and replayed when no server is left."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from support.asgi import serving_app

pytestmark = pytest.mark.sampled(12)

BIN = Path(sys.executable).parent
FUNCTION = """
import os

def stamp(text: str) -> dict[str, object]:
    return {"text": text + "!", "worker": os.getpid()}
"""


class Servers:
    """A web API and a JSON-RPC service of other people's making; what they were asked, and a way to hold one up."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.go_on = threading.Event()
        self.go_on.set()

    def web(self) -> Any:
        from fastapi import FastAPI

        app = FastAPI()

        @app.get("/notes/{name}")
        def note(name: str, lang: str) -> dict[str, Any]:
            self.asked.append(f"web {name} {lang}")
            return {"note": {"name": name, "hour": "12:00"}}

        return app

    def rpc(self) -> Any:
        from openrpc import RPCApp
        from starlette.applications import Starlette
        from starlette.requests import Request
        from starlette.responses import Response
        from starlette.routing import Route

        server = RPCApp()

        @server.method(name="clock.shift")  # type: ignore[untyped-decorator]
        async def shift(hour: str, by: int) -> dict[str, str]:
            self.asked.append(f"rpc {hour} {by}")
            await asyncio.to_thread(self.go_on.wait, 20)
            hours, minutes = hour.split(":")
            return {"hour": f"{(int(hours) + by) % 24:02}:{minutes}"}

        async def answer(request: Request) -> Response:
            return Response(
                await server.process(await request.body()), media_type="application/json"
            )

        return Starlette(routes=[Route("/rpc", answer, methods=["POST"])])


@pytest.fixture
def servers() -> Iterator[tuple[Servers, ExitStack, str, str]]:
    made = Servers()
    with ExitStack() as running:
        web = running.enter_context(serving_app(made.web()))
        rpc = running.enter_context(serving_app(made.rpc()))
        yield made, running, web, rpc
        made.go_on.set()


def wired(project: Any, web: str, rpc: str) -> Any:
    """The skill and what it stands on."""
    project.env["PATH"] = f"{BIN}{os.pathsep}{project.env['PATH']}"
    project.write("stamping.py", FUNCTION)
    project.write(
        "services/local/stamps.yaml", "{id: stamps, kind: pythoncall, module: stamping}\n"
    )
    project.write(
        "services/local/notes.yaml",
        f"id: notes\nkind: openapi\nbase_url: {web}\nspec_ref: notes.json\nnetwork: private\n",
    )
    project.write(
        "services/local/shifts.yaml",
        f"id: shifts\nkind: openrpc\nurl: {rpc}/rpc\nnetwork: private\n",
    )
    project.write(
        "services/local/zones.yaml",
        "id: zones\nkind: mcp\ncommand: mcp-server-time\nargs: [--local-timezone, UTC]\n",
    )
    text, number = "{type: string, required: true}", "{type: integer, required: true}"
    bound = (
        ("text.note.stamp", "stamps", "pythoncall", "stamp", f"text: {text}", f"text: {text}",
         "text: input.text", "text: response.text"),
        ("text.note.read", "notes", "openapi", "note_notes__name__get", f"name: {text}, lang: {text}",
         f"hour: {text}", "path.name: input.name, lang: input.lang", "hour: response.note.hour"),
        ("time.hour.shift", "shifts", "openrpc", "clock.shift", f"hour: {text}, by: {number}", f"hour: {text}",
         "hour: input.hour, by: input.by", "hour: response.hour"),
        ("time.zone.convert", "zones", "mcp", "convert_time", f"hour: {text}", f"difference: {text}",
         "source_timezone: Etc/UTC, time: input.hour, target_timezone: Asia/Kathmandu",
         "difference: response.time_difference"),
    )  # fmt: skip
    for id, service, protocol, operation, inputs, outputs, request, response in bound:
        project.write(
            f"capabilities/{id}.yaml",
            f'id: {id}\nversion: "1.0.0"\ndescription: Over {protocol}.\ninputs: {{{inputs}}}\n'
            f"outputs: {{{outputs}}}\nproperties: {{side_effects: false}}\n",
        )
        project.write(
            f"bindings/local/{id}/{service}.yaml",
            f"id: {service}_{protocol}\ncapability: {id}\nservice: {service}\nprotocol: {protocol}\n"
            f"operation: {operation}\nrequest: {{{request}}}\nresponse: {{{response}}}\n",
        )
    project.skill(
        "demo.four",
        """
        - {id: stamp, uses: text.note.stamp, input: {text: inputs.name}, output: {text: vars.name}}
        - {id: read, uses: text.note.read, input: {name: vars.name, lang: {$literal: en}}, output: {hour: vars.hour}}
        - {id: shift, uses: time.hour.shift, input: {hour: vars.hour, by: 3}, output: {hour: outputs.hour}}
        - {id: convert, uses: time.zone.convert, input: {hour: outputs.hour}, output: {difference: outputs.difference}}
        """,
        inputs=f"{{name: {text}}}",
        outputs=f"{{hour: {text}, difference: {text}}}",
    )
    return project


def test_one_skill_over_four_protocols_survives_a_kill_and_the_end_of_its_servers(
    project: Any, servers: tuple[Servers, ExitStack, str, str]
) -> None:
    served, running, web, rpc = servers
    wired(project, web, rpc)
    from urllib.request import urlopen

    with urlopen(f"{web}/openapi.json") as document:
        project.write("services/local/notes.json", document.read())
    project.run("validate", "--json").assert_ok()

    served.go_on.clear()
    command = [str(BIN / "cogcli"), "run", "demo.four", "-p", "name=b ü", "-q"]
    process = subprocess.Popen(command, cwd=project.root, env=project.env, start_new_session=True)
    until = time.monotonic() + 40
    while "rpc 12:00 3" not in served.asked:
        assert time.monotonic() < until, served.asked
        assert process.poll() is None
        time.sleep(0.02)
    process.kill()
    process.wait()
    served.go_on.set()
    assert "interrupted" in project.run("ls").assert_ok().out

    outputs = project.run("resume", "@last", "-q").assert_ok().json
    assert outputs == {"hour": "15:00", "difference": "+5.75h"}
    assert served.asked == ["web b ü! en", "rpc 12:00 3", "rpc 12:00 3"]
    project.run("verify", "@last").assert_ok()

    running.close()
    project.env["PATH"] = os.defpath
    project.run("replay", "@last").assert_ok()
    assert served.asked[-1:] == ["rpc 12:00 3"]
    attempts = [
        attempt
        for line in (project.episode / "events.jsonl").read_text().splitlines()
        for attempt in json.loads(line)["payload"].get("attempts", [])
    ]
    assert [attempt["status"] for attempt in attempts] == ["success"] * 4
    assert [attempt.get("status_code") for attempt in attempts] == [None, 200, 200, None]
