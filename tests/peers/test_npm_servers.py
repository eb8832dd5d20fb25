"""Servers of other people's making from npm, through the installed command (docs/reference/protocols.md#counterparts).

An optional job: it downloads, so it runs with `COGCLI_LONG_TESTS=1` (`check.py --long`) alone, and where there is node.
`COGCLI_NPM_DIR` names a directory in which the packages are installed already.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.mcp_calls import Caller
from support.mcp_http import service
from support.remote_project import attempts, remote
from support.waiting import wait_until

PACKAGES = (
    "@modelcontextprotocol/server-everything",
    "@modelcontextprotocol/server-filesystem",
    "@stoplight/prism-cli@5",
)
WHY_NOT = (
    "npm: not asked for (COGCLI_LONG_TESTS=1, or check.py --long)"
    if not os.environ.get("COGCLI_LONG_TESTS")
    else ""
    if shutil.which("npm") and shutil.which("node")
    else "npm: no node"
)
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the packages' programs."""
    folder = Path(os.environ.get("COGCLI_NPM_DIR") or tmp_path_factory.mktemp("npm"))
    programs = folder / "node_modules" / ".bin"
    if not (programs / "prism").exists():
        install = ["npm", "install", "--no-audit", "--no-fund", "--silent", *PACKAGES]
        done = subprocess.run(
            install, cwd=folder, capture_output=True, text=True, timeout=600, check=False
        )
        if done.returncode:
            pytest.skip(f"npm: packages cannot be installed: {done.stderr.strip()[-200:]}")
    return programs


def mcp(
    project: Any, installed: Path, program: str, arguments: list[str], tool: str, **fields: str
) -> Any:
    """Run a skill of one call of one tool."""
    command = remote(project, "mcp", "", tool, **fields)
    node = os.path.dirname(str(shutil.which("node")))
    project.env["PATH"] = f"{installed}{os.pathsep}{node}{os.pathsep}{project.env['PATH']}"
    project.write(
        "services/local/remote.yaml",
        f"id: remote\nkind: mcp\ncommand: {program}\nargs: {json.dumps(arguments)}\n"
        "metadata: {timeout_seconds: 60}\n",
    )
    return project.run(*command, "--step-timeout", "120")


def test_the_reference_server_of_the_protocol_answers(project: Any, installed: Path) -> None:
    done = mcp(
        project, installed, "mcp-server-everything", ["stdio"], "echo",
        request="{message: input.text}", response="{text: response.text}",
        outputs="{text: {type: string, required: true}}", metadata="{response_mode: text}",
    ).assert_ok()  # fmt: skip
    assert done.json["outputs"]["text"].endswith("x")
    project.run("verify", "@last").assert_ok()


def test_the_filesystem_server_reads_where_it_may_and_nowhere_else(
    project: Any, installed: Path
) -> None:
    project.write("shared/note.txt", "from a file")
    fields = {
        "request": "{path: input.text}", "response": "{text: response.text}", "metadata": "{response_mode: text}",
        "outputs": "{text: {type: string, required: true}}",
    }  # fmt: skip
    folder = str(project.root / "shared")
    inputs = f"{{text: {{type: string, default: {json.dumps(folder + '/note.txt')}}}}}"
    done = mcp(
        project,
        installed,
        "mcp-server-filesystem",
        [folder],
        "read_text_file",
        inputs=inputs,
        **fields,
    )
    assert done.assert_ok().json["outputs"] == {"text": "from a file"}
    refused = project.run("run", "remote.asking", "--json", "-p", "text=/etc/hostname").assert_exit(
        1
    )
    assert refused.json["error"]["code"] == "call.rejected"


def test_an_optional_argument_that_was_not_given_is_left_out(project: Any, installed: Path) -> None:
    project.write("shared/note.txt", "one\ntwo\n")
    folder = str(project.root / "shared")
    inputs = f"{{text: {{type: string, default: {json.dumps(folder + '/note.txt')}}}, head: {{type: any}}}}"
    done = mcp(
        project, installed, "mcp-server-filesystem", [folder], "read_text_file", inputs=inputs,
        request="{path: input.text, head: input.head}", response="{text: response.text}",
        metadata="{response_mode: text}", outputs="{text: {type: string, required: true}}",
    )  # fmt: skip
    assert done.assert_ok().json["outputs"] == {"text": "one\ntwo\n"}
    done = project.run("run", "remote.asking", "--json", "-p", "head:=1").assert_ok()
    assert done.json["outputs"] == {"text": "one"}


LOCAL = """
const net = require("net")
const listen = net.Server.prototype.listen
net.Server.prototype.listen = function (port, ...rest) {
  return listen.call(this, port, "127.0.0.1", ...rest.filter((each) => typeof each === "function"))
}
"""
"""Binds what would listen everywhere to loopback."""


@contextmanager
def everything(installed: Path, folder: Path, transport: str, port: int) -> Iterator[str]:
    """The address of the reference server over HTTP."""
    preload = folder / "local.js"
    preload.write_text(LOCAL)
    environ = {**os.environ, "PORT": str(port), "NODE_OPTIONS": f"-r {preload}"}
    with subprocess.Popen(
        [str(installed / "mcp-server-everything"), transport],
        env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        try:
            wait_until(lambda: _is_open(port))
            yield f"http://127.0.0.1:{port}/{'mcp' if transport == 'streamableHttp' else 'sse'}"
        finally:
            process.kill()


def _is_open(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        return port


def test_a_session_that_a_restart_lost_is_opened_anew(installed: Path, tmp_path: Path) -> None:
    port, call = free_port(), Caller()
    try:
        for word in ("one", "two", "three"):
            with everything(installed, tmp_path, "streamableHttp", port) as url:
                web = service(url)
                answer = call("echo", {"message": word}, service=web, effect="effect")
                assert answer.body["text"] == f"Echo: {word}"
                assert bool(answer.meta.notices) is (word != "one")
            error = call.refused("echo", {"message": "nobody"}, service=web, effect="effect")
            assert (error.code, error.left) == ("call.transport", False)
    finally:
        call.invoker.close(5)


def test_the_old_transport_is_named(installed: Path, tmp_path: Path) -> None:
    call = Caller()
    try:
        with everything(installed, tmp_path, "sse", free_port()) as url:
            error = call.refused("echo", {"message": "x"}, service=service(url))
            assert (error.code, error.left) == ("call.rejected", False)
            assert url in error.message
            assert "older transport" in error.hint
    finally:
        call.invoker.close(5)


API: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "Notes", "version": "1"},
    "paths": {
        "/notes/{id}": {
            "get": {
                "operationId": "getNote",
                "parameters": [
                    {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}},
                    {
                        "name": "lang",
                        "in": "query",
                        "required": True,
                        "schema": {"enum": ["de", "en"]},
                    },
                ],
                "responses": {
                    "200": {
                        "description": "one",
                        "content": {
                            "application/json": {
                                "schema": {
                                    "type": "object",
                                    "required": ["text"],
                                    "properties": {"text": {"type": "string"}},
                                },
                                "example": {"text": "from prism"},
                            }
                        },
                    }
                },
            }
        }
    },
}


@contextmanager
def prism(installed: Path, document: Path) -> Iterator[str]:
    """The address of a mock server that judges requests by the document."""
    command = [str(installed / "prism"), "mock", "-h", "127.0.0.1", "-p", "0", str(document)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    try:
        found = next(
            (
                m
                for line in process.stdout
                if (m := re.search(r"listening on (http://[0-9.:]+)", line))
            ),
            None,
        )
        assert found is not None, "prism does not start"
        yield found[1]
    finally:
        process.kill()
        process.wait(10)
        process.stdout.close()


def test_a_mock_server_made_of_the_document_takes_our_requests(
    project: Any, installed: Path
) -> None:
    document = project.write("docs/notes.json", json.dumps(API))
    with prism(installed, document) as url:
        command = remote(
            project, "openapi", url, "getNote", service="spec_ref: docs/notes.json\n",
            inputs="{id: {type: integer, required: true}, lang: {type: string, enum: [de, en], default: de}}",
            outputs="{text: {type: string, required: true}}",
            request="{id: input.id, lang: input.lang}", response="{text: response.text}",
        )  # fmt: skip
        done = project.run(*command, "-p", "id:=3").assert_ok()
        assert done.json["outputs"] == {"text": "from prism"}
        (attempt,) = attempts(project)
        assert attempt["status_code"] == 200
