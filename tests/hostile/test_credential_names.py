"""Files that usually hold credentials, and folders of the user, under each of their spellings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.project import Project
from support.raw_server import Conversation, serving

from cogcli.base.credential_names import credential_reason, is_repository_folder
from cogcli.official.files import refusal_of_path

pytestmark = pytest.mark.sampled(4)

GIT = [
    ".GIT", ".Git", ".git.", ".git ", ".git . .", "GIT~1", "git~2", ".g\u200cit", "\ufeff.git", ".gi\u200dt\u2060",
    ".git::$INDEX_ALLOCATION", ".git:x",
]  # fmt: skip
NAMED = [
    ".env", "prod.env", ".envrc", ".dev.vars", "terraform.tfstate", "terraform.tfstate.backup", "secrets.yaml",
    "secrets.yml", "secrets.json", "secrets.toml", ".netrc", "id_rsa", "a.pem", "Secrets.YAML", "PROD.ENV",
    ".env ", "secrets.yaml.", ".e\u200bnv", ".env:stream",
]  # fmt: skip
FREE = [
    "env",
    "environment.md",
    "secrets.md",
    "secret.yaml",
    "my-secrets.yaml.md",
    "tfstate",
    "key.py",
    "envrc",
]


@pytest.fixture
def tmp_path(ordinary_path: Path) -> Path:
    """Shipped functions read documents in ordinary folders alone."""
    return ordinary_path


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", GIT)
def test_each_spelling_of_git_belongs_to_the_user(name: str) -> None:
    assert is_repository_folder(name)


@pytest.mark.parametrize("name", [".hg", ".SVN", "SVN~1", ".cogcli.", "COGCLI~1", ".\u2060hg"])
def test_so_do_the_other_folders(name: str) -> None:
    assert is_repository_folder(name)


@pytest.mark.parametrize(
    "name", ["git", ".github", ".gitignore", ".gitattributes", "git~x", "git~", "x.git", "~1"]
)
def test_other_names_do_not(name: str) -> None:
    assert not is_repository_folder(name)


@given(st.text(max_size=6), st.text(". ", max_size=4), st.sampled_from(["", ":", "::$DATA"]))
def test_what_a_file_system_ignores_does_not_change_a_name(
    mark: str, end: str, stream: str
) -> None:
    ignored = "".join(char for char in mark if char in "\u200b\u200c\u200d\u2060\ufeff\u202e")
    assert is_repository_folder(f".g{ignored}IT{ignored}{end}{stream}")
    assert credential_reason(f"/a/.e{ignored}NV{ignored}{end}{stream}")


@pytest.mark.parametrize("name", NAMED)
def test_these_names_usually_hold_credentials(tmp_path: Path, name: str) -> None:
    assert refusal_of_path(str(tmp_path / name)) == "files of this name usually hold credentials"


@pytest.mark.parametrize("name", FREE)
def test_these_do_not(tmp_path: Path, name: str) -> None:
    assert refusal_of_path(str(tmp_path / name)) == ""


def _reader(project: Project, path: str) -> None:
    """A skill of a project that is not trusted reads a literal path by a capability without a gate."""
    project.env.pop("COGCLI_TRUST_PROJECT", None)
    project.write(
        "services/own_document.yaml",
        "id: own_document\nkind: pythoncall\nmodule: cogcli.official.document\n",
    )
    project.capability(
        "canary.read",
        "read_text",
        request="{path: input.path}",
        inputs="{path: {type: string, required: true}}",
    )
    binding = project.root / "bindings/local/canary.read/canary_read.yaml"
    binding.write_text(binding.read_text().replace("service: demo", "service: own_document"))
    step = f"- {{id: ask, uses: canary.read, input: {{path: {json.dumps(path)}}}, output: {{text: outputs.text}}}}"
    project.skill("canary.literal", step, outputs="{text: {type: any}}")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("folder", [".git", *GIT])
def test_a_project_that_is_not_trusted_reads_no_spelling_of_git(
    tmp_path: Path, folder: str
) -> None:
    project = Project(tmp_path)
    project.write(f"sub/{folder}/config", "url = https://me:canary@host/x")
    _reader(project, f"sub/{folder}/config")
    result: Any = project.run("run", "canary.literal", "--json").assert_exit(3)
    assert result.json["error"]["code"] == "service.untrusted"
    assert "canary@host" not in result.out + result.err


# -- a run that may reach a network -----------------------------------------------------------------------------------

SECRET = "canary-of-the-env-4711"
INPUTS = "{path: {type: string, default: docs/prod.env}, other: {type: string, default: x}}"


@pytest.fixture
def online(tmp_path: Path) -> Project:
    """A trusted project: one skill reads a file and could call a web service, another one only reads."""
    project = Project(tmp_path)
    project.write("docs/prod.env", f"KEY={SECRET}")
    project.write("docs/plain.txt", "plain words")
    (project.root / "docs/notes.txt").symlink_to("prod.env")
    _reader(project, "docs/prod.env")
    project.env["COGCLI_TRUST_PROJECT"] = "1"
    project.write(
        "services/web.yaml",
        "id: web\nkind: openapi\nbase_url: http://127.0.0.1:9\nnetwork: private\n",
    )
    project.capability("canary.send", "send")
    binding = project.root / "bindings/local/canary.send/canary_send.yaml"
    text = (
        binding.read_text()
        .replace("service: demo", "service: web")
        .replace("pythoncall", "openapi")
    )
    binding.write_text(text.replace("operation: send", "operation: /send"))
    read = (
        "- {id: ask, uses: canary.read, input: {path: inputs.path}, output: {text: outputs.text}}"
    )
    send = "- {id: send, uses: canary.send, input: {text: inputs.other}, config: {condition: 'inputs.other is null'}}"
    project.skill("canary.offline", read, inputs=INPUTS, outputs="{text: {type: any}}")
    project.skill("canary.online", f"{read}\n{send}", inputs=INPUTS, outputs="{text: {type: any}}")
    return project


def _scope(project: Project, *arguments: str) -> None:
    result: Any = project.run("run", *arguments, "--json").assert_exit(4)
    assert result.json["error"]["code"] == "safety.scope"
    assert "type the path" in result.json["error"]["hint"]
    written = [path for path in (project.root / ".cogcli").rglob("*") if path.is_file()]
    assert SECRET not in result.out + result.err
    assert not any(SECRET.encode() in path.read_bytes() for path in written)


def test_a_run_that_may_reach_a_network_reads_no_credentials_that_were_not_typed(
    online: Project,
) -> None:
    _scope(online, "canary.online")
    online.write("given.json", json.dumps({"path": "docs/prod.env"}))
    _scope(online, "canary.online", "--input-file", "given.json")
    _scope(online, "canary.online", "--input", "@given.json")
    online.write("path.txt", "docs/prod.env")
    _scope(online, "canary.online", "-p", "path=@path.txt")
    _scope(online, "canary.online", "-p", "path=docs/notes.txt")


@pytest.mark.parametrize("typed", ["docs/prod.env", "./docs/../docs/prod.env"])
def test_what_was_typed_is_read(online: Project, typed: str) -> None:
    for skill in ("canary.online", "canary.offline"):
        result = online.run("run", skill, "-p", f"path={typed}").assert_ok()
        assert SECRET in result.out
    online.run("run", "canary.online", "--input", json.dumps({"path": typed})).assert_ok()
    online.run("run", "doc.digest", "-p", f"path={typed}").assert_ok()


def test_a_run_without_a_network_refuses_it_as_a_file(online: Project) -> None:
    result: Any = online.run("run", "canary.offline", "--json").assert_exit(1)
    assert result.json["error"]["code"] == "call.rejected"
    assert "usually hold credentials" in result.json["error"]["message"]


def test_other_files_are_read_in_any_run(online: Project) -> None:
    for skill in ("canary.online", "canary.offline"):
        online.run("run", skill, "--input", '{"path": "docs/plain.txt"}').assert_ok()


def test_before_trust_nothing_changes(online: Project) -> None:
    online.env.pop("COGCLI_TRUST_PROJECT")
    result: Any = online.run("run", "canary.offline", "-p", "path=docs/plain.txt").assert_ok()
    assert "plain words" in result.out
    assert SECRET not in online.run("run", "canary.offline", "--json").out


@pytest.fixture
def sending(online: Project) -> Iterator[tuple[Project, Any]]:
    """A skill that sends the bytes of a file to a web service, behind a gate that lets everything pass."""

    def answer(conversation: Conversation) -> None:
        conversation.reply(b'{"text": "taken"}')

    with serving(answer) as server:
        online.services(
            "def look(path: str) -> dict[str, object]:\n    return {'allowed': True, 'reason': 'any'}\n"
        )
        online.capability(
            "canary.look", "look", request="{path: input.path}", inputs="{path: {type: string, required: true}}",
            response="{allowed: response.allowed, reason: response.reason}",
            outputs="{allowed: {type: boolean, required: true}, reason: {type: string}}",
        )  # fmt: skip
        online.write(
            "services/web.yaml",
            f"id: web\nkind: openapi\nbase_url: {server.url}\nnetwork: private\n",
        )
        online.capability(
            "canary.upload", "/take", request="{data: {$file: input.path, as: base64}}",
            inputs="{path: {type: string, required: true}}",
            extra="safety: {trust_level: standard, mandatory_pre_gates: [{capability: canary.look, on_fail: block}]}\n",
        )  # fmt: skip
        binding = online.root / "bindings/local/canary.upload/canary_upload.yaml"
        text = (
            binding.read_text()
            .replace("service: demo", "service: web")
            .replace("pythoncall", "openapi")
        )
        binding.write_text(text)
        step = "- {id: ask, uses: canary.upload, input: {path: inputs.path}, output: {text: outputs.text}}"
        online.skill("canary.sender", step, inputs=INPUTS, outputs="{text: {type: any}}")
        yield online, server


def test_no_file_of_credentials_is_sent_that_was_not_typed(sending: tuple[Project, Any]) -> None:
    project, server = sending
    _scope(project, "canary.sender")
    assert server.connections == 0
    project.run("run", "canary.sender", "-p", "path=docs/prod.env").assert_ok()
    assert len(server.requests) == 1


@pytest.mark.parametrize("isolation", ["thread", "process", "sandbox"])
def test_a_function_of_the_user_reads_no_credentials_that_were_not_typed(
    tmp_path: Path, isolation: str
) -> None:
    project = Project(tmp_path)
    opens = "open(path, 'rb')" if isolation == "sandbox" else "sdk.open_for_reading(path, 100)"
    project.services(
        f"from cogcli import sdk\n\ndef read(text):\n    with {opens.replace('path', 'text')} as file:\n"
        "        return {'text': file.read().decode()}\n"
    )
    file = project.root / "services/local/demo.yaml"
    file.write_text(file.read_text().replace("thread", isolation))
    project.capability("own.file.read", "read")
    project.write("prod.env", "KEY=1\n")
    project.skill(
        "own.read",
        "- {id: read, uses: own.file.read, input: {text: inputs.text}, output: {text: outputs.text}}",
        inputs="{text: {type: string, default: prod.env}}",
        outputs="{text: {type: string}}",
    )
    refused = project.run("run", "own.read", "--json").assert_exit(4).json["error"]
    assert (refused["code"], "prod.env" in refused["message"]) == ("safety.scope", True)
    project.write("given.json", json.dumps({"text": "prod.env"}))
    project.run("run", "own.read", "--input-file", "given.json").assert_exit(4)
    shown = project.run("run", "own.read", "-p", "text=prod.env", "--json").assert_ok()
    assert shown.json["outputs"]["text"] == "KEY=1\n"
