"""A credential that is written out where it is refused is neither shown nor kept, whatever form it has."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.project import Project

pytestmark = pytest.mark.sampled(12)
"""A long run tries all of it."""

SECRET = "sk-live-canary0123456789ab"
API = "id: a\nkind: openapi\nbase_url: https://a.example\n"
MCP = "id: a\nkind: mcp\n"
BINDING = "id: b\ncapability: demo.a\nservice: a\nprotocol: openapi\noperation: x\nresponse: {t: response.t}\n"
SKILL = (
    'id: demo.s\nversion: "1.0.0"\nname: s\ndescription: d\nsteps:\n'
    "  - {id: a, uses: text.content.normalize, input: {text: x, api_key: SECRET}}\n"
)
SERVICES = {
    "header": API + "metadata: {headers: {X-Api-Key: SECRET}}\n",
    "header in a list": API + "metadata: {headers: {X-Api-Key: [SECRET]}}\n",
    "header in a list of lines": API
    + "metadata:\n  headers:\n    Authorization:\n      - Bearer SECRET\n",
    "header in an object": API + "metadata:\n  headers:\n    X-Api-Key:\n      value: SECRET\n",
    "header of another name": API + "metadata:\n  headers:\n    X-Other:\n      - Bearer SECRET\n",
    "auth_ref": API + "auth_ref: SECRET\n",
    "auth_ref in a list": API + "auth_ref: [SECRET]\n",
    "variable in a list": MCP + "command: x\nenv: {API_KEY: [SECRET]}\n",
    "argument": MCP + "command: x\nargs: [--token, SECRET]\n",
    "command": MCP + "command: x --api-key=SECRET\n",
}
"""What is told as a credential that is written out."""
OTHERS = {
    "headers as text": ("services/a.yaml", API + 'metadata:\n  headers: "Authorization: Bearer SECRET"\n'),
    "headers as a list": (
        "services/a.yaml", API + "metadata:\n  headers:\n    - {name: Authorization, value: Bearer SECRET}\n",
    ),
    "arguments as text": ("services/a.yaml", MCP + "command: x\nargs: --token SECRET\n"),
    "arguments in a list": ("services/a.yaml", MCP + "command: x\nargs: [[--token, SECRET]]\n"),
    "unknown key": ("services/a.yaml", API + "token: SECRET\n"),
    "unknown key of a list": ("services/a.yaml", API + "token:\n  - SECRET\n"),
    "misplaced binding": ("bindings/local/demo.b/b.yaml", BINDING + "request: {}\nx-token: SECRET\n"),
    "header of a binding": (
        "bindings/local/demo.a/b.yaml", BINDING + "request: {}\nmetadata: {headers: {X-Api-Key: [SECRET]}}\n",
    ),
    "skill": ("skills/local/demo/s/skill.yaml", SKILL),
    "misplaced skill": ("skills/local/demo/t/skill.yaml", SKILL),
}  # fmt: skip
SETTINGS = (
    'token = "SECRET"', 'authorization = "Bearer SECRET"', '[auth]\ntoken = "SECRET"', 'auth = {token = "SECRET"}',
    '"api-key"=["SECRET"]', 'token = "SECRET', 'token = """\nSECRET \\q"""', 'auth.token = "SECRET"', "token = SECRET",
    "token = ['SECRET',\n'SECRET\\'']", "x-token = 'SECRET'", "headers = 'Authorization: Bearer SECRET'",
)  # fmt: skip


def _is_nowhere(project: Project, file: Path) -> str:
    """All that commands say of a project, and that neither they nor what they leave hold the credential."""
    (project.root / "skills").mkdir(exist_ok=True)
    told = ""
    for command in (
        ("validate",),
        ("validate", "--json"),
        ("doctor",),
        ("config", "show"),
        ("services", "show", "a"),
    ):
        result = project.run(*command, env={"COGCLI_FORCE_TTY": "100"})
        assert result.code != 70
        told += result.out + result.err
    assert SECRET not in told
    kept = [
        path
        for place in (project.root, project.home)
        for path in place.rglob("*")
        if path.is_file()
    ]
    assert [path for path in kept if path != file and SECRET.encode() in path.read_bytes()] == []
    return told


@pytest.mark.sampled(24)
@pytest.mark.parametrize("name", SERVICES)
def test_a_literal_of_a_service_is_told_by_its_place_alone(project: Project, name: str) -> None:
    file = project.write("services/a.yaml", SERVICES[name].replace("SECRET", SECRET).encode())
    assert "secret.literal" in _is_nowhere(project, file)


@pytest.mark.sampled(24)
@pytest.mark.parametrize("name", OTHERS)
def test_a_literal_where_nothing_of_its_kind_stands_is_not_shown_either(
    project: Project, name: str
) -> None:
    path, text = OTHERS[name]
    _is_nowhere(project, project.write(path, text.replace("SECRET", SECRET).encode()))


@pytest.mark.parametrize("text", SETTINGS)
def test_a_literal_in_settings_is_not_shown(project: Project, text: str) -> None:
    _is_nowhere(project, project.write("cogcli.toml", text.replace("SECRET", SECRET).encode()))


def test_what_only_looks_like_one_is_shown(project: Project) -> None:
    (project.root / "skills").mkdir()
    project.write(
        "services/a.yaml",
        (API + "metadata: {headers: [X-Trace]}\nnote: a token of thanks\n").encode(),
    )
    result = project.run("validate", env={"COGCLI_FORCE_TTY": "100"})
    told = result.out + result.err
    assert "headers: [X-Trace]" in told
    assert "a token of thanks" in told
