"""Bindings of MCP tools and JSON-RPC methods are made from lock and document, and nothing is started
(docs/reference/command-line.md#new).
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from support.mcp_calls import SERVER
from support.project import Project

LEDGER = {
    "openrpc": "1.3.2",
    "info": {"title": "Ledger", "version": "1"},
    "methods": [
        {
            "name": "entry.add",
            "params": [
                {"name": "amount", "required": True, "schema": {"type": "integer"}},
                {"name": "note", "schema": {"type": ["string", "null"]}},
            ],
            "result": {
                "name": "entry",
                "schema": {
                    "type": "object",
                    "required": ["id"],
                    "properties": {"id": {"type": "string"}},
                },
            },
        },
        {"name": "ping", "params": []},
        {"name": "old", "deprecated": True, "params": []},
    ],
}


@pytest.fixture
def begun(project: Project) -> Project:
    project.run("new", "project", ".").assert_ok()
    return project


@pytest.fixture
def locked(begun: Project) -> Project:
    """A project with the test server, whose tools are locked and which cannot be started any more."""
    write_server(begun, SERVER)
    begun.run("services", "refresh", "tools", "--accept").assert_ok()
    write_server(begun, str(begun.root / "gone.py"))
    return begun


def write_server(project: Project, *arguments: str) -> None:
    project.write(
        "services/local/tools.yaml",
        f"id: tools\nkind: mcp\ncommand: {sys.executable}\nargs: {json.dumps(['-S', *arguments])}\n",
    )


@pytest.mark.sampled(6)
def test_a_tool_is_bound_from_the_lock_and_runs(locked: Project) -> None:
    made = locked.run("new", "binding", "words.text.echo", "--from-mcp", "tools", "--tool", "echo")
    assert made.assert_ok().out.splitlines() == [
        "capabilities/words.text.echo.yaml",
        "bindings/local/words.text.echo/mcp_words_text_echo.yaml",
    ]
    locked.run("validate", "--strict").assert_ok()
    write_server(locked, SERVER)
    locked.skill(
        "demo.call",
        "- {id: c, uses: words.text.echo, input: {text: hi}, output: {text: outputs.text}}",
        outputs="{text: {type: string}}",
    )
    assert json.loads(locked.run("run", "demo.call").assert_ok().out) == {"text": "hi"}


@pytest.mark.sampled(6)
def test_all_tools_are_bound_as_with_effects_if_they_say_nothing(locked: Project) -> None:
    made = locked.run("new", "binding", "words", "--from-mcp", "tools", "--all", "--keep-going")
    assert " bound, " in made.assert_ok().err
    texts = [path.read_text() for path in locked.root.glob("capabilities/words.*.yaml")]
    assert len(texts) > 20
    assert all("it is taken to have an effect" in text for text in texts)
    assert all("side_effects: true" in text for text in texts)
    locked.run("validate").assert_ok()


@pytest.mark.sampled(6)
def test_what_a_tool_claims_of_its_effects_is_a_proposal(locked: Project) -> None:
    write_server(locked, SERVER, "--readonly")
    locked.run("services", "refresh", "tools", "--accept").assert_ok()
    words = ("new", "binding", "words.text.echo", "--from-mcp", "tools", "--tool", "echo")
    locked.run(*words).assert_ok()
    text = (locked.root / "capabilities/words.text.echo.yaml").read_text()
    assert "are proposals of the tool itself: check them" in text
    assert "side_effects: false, idempotent: true" in text


@pytest.mark.sampled(6)
def test_locked_tools_are_shown_and_nothing_is_started(locked: Project) -> None:
    shown = locked.run("services", "show", "tools").assert_ok().out
    assert "\n  echo  Does echo.\n" in shown
    assert '    takes   {"properties":{"text":{"type":"string"}}' in shown
    spec = locked.run("services", "show", "tools", "--json").json["spec"]
    assert {"name", "description", "inputSchema", "outputSchema", "annotations"} == {
        *spec["tools"][0]
    }


def test_tools_that_nobody_accepted_are_not_bound(begun: Project) -> None:
    write_server(begun, str(begun.root / "gone.py"))
    refused = begun.run("new", "binding", "words", "--from-mcp", "tools", "--all").assert_exit(2)
    assert "cogcli services refresh tools --accept" in refused.err
    assert not (begun.root / "capabilities").exists()


@pytest.mark.sampled(6)
def test_methods_are_bound_from_their_document(begun: Project) -> None:
    begun.write("docs/ledger.json", json.dumps(LEDGER))
    begun.write(
        "services/local/ledger.yaml",
        "{id: ledger, kind: openrpc, url: 'https://ledger.example/rpc', spec_ref: docs/ledger.json}\n",
    )
    made = begun.run("new", "binding", "book", "--from-openrpc", "ledger", "--all").assert_exit(1)
    assert "skipped old: it is deprecated" in made.err
    assert "2 bound, 1 skipped" in made.err
    begun.run("validate", "--strict").assert_ok()
    begun.run("new", "scenario", "openrpc_book_entry-add").assert_ok()
    begun.run("openapi", "verify-bindings", "--all", "--protocol", "openrpc").assert_ok()


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--from-mcp", "nothing", "--tool", "echo"), "`nothing` is no mcp service"),
        (("--from-mcp", "tools", "--tool", "ecko"), "did you mean `echo`?"),
        (("--from-mcp", "tools"), "name one with --tool"),
        (("--from-mcp", "tools", "--from-openrpc", "tools"), "needs one of"),
        (("--from-mcp", "tools", "--all", "--tool", "echo"), "`--all` names no single operation"),
    ],
)
def test_words_that_name_no_tool_write_nothing(
    locked: Project, words: tuple[str, ...], said: str
) -> None:
    refused = locked.run("new", "binding", "words.text.echo", *words).assert_exit(2)
    assert said in refused.err
    assert not Path(os.path.join(locked.root, "capabilities")).exists()
