"""A service written with FastAPI is bound whole from its own document and called with the installed command:
forms, files, a cookie and a client of OAuth 2.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from urllib.request import urlopen

import pytest
from support.asgi import serving_app
from support.project import Project
from support.service_app import app, tokens

STEPS = """
- {id: order, uses: desk.order, input: {item: tea, count: 2}, output: {result: outputs.order}}
- {id: photo, uses: desk.photo, input: {picture: inputs.photo, title: Cat}, output: {result: outputs.photo}}
- {id: blob, uses: desk.blob, input: {key: k1, body: inputs.photo}, output: {result: outputs.blob}}
- {id: profile, uses: desk.profile, output: {result: outputs.profile}}
- {id: report, uses: desk.report, output: {result: outputs.report}}
"""
OUTPUTS = ("order", "photo", "blob", "profile", "report")
SECRETS = {"DESK_API_KEY": "cookie-5e55", "DESK_CLIENT": "shop", "DESK_SECRET": "s3cr3t-b2f1"}


@pytest.fixture
def address() -> Iterator[str]:
    with serving_app(app) as url:
        yield url


def test_a_fastapi_service_is_bound_and_called(project: Project, address: str) -> None:
    project.run("new", "project", ".").assert_ok()
    with urlopen(f"{address}/openapi.json") as reply:
        project.write("openapi.json", reply.read())
    words = ("--from-openapi", "openapi.json", "--all", "--base-url", address)
    made = project.installed("new", "binding", "desk", *words).assert_ok()
    assert "6 bound, 0 skipped" in made.err
    service = project.root / "services/local/desk.yaml"
    client = f"client_id: DESK_CLIENT, client_secret: DESK_SECRET, token_url: '{address}/token'"
    service.write_text(service.read_text().replace("bearer: DESK_TOKEN", client))
    outputs = ", ".join(f"{name}: {{type: object}}" for name in OUTPUTS)
    inputs = "{photo: {type: file, default: assets/cat.png}}"
    project.skill("demo.desk", STEPS, inputs=inputs, outputs=f"{{{outputs}}}")
    project.write("assets/cat.png", b"a cat")
    project.env.update(SECRETS)
    project.installed("validate", "--strict").assert_ok()
    ran = project.installed("run", "demo.desk").assert_ok()
    digest = hashlib.sha256(b"a cat").hexdigest()
    assert ran.json["order"] == {"item": "tea", "count": 2}
    assert ran.json["photo"]["picture"]["sha256"] == digest
    assert ran.json["blob"]["sha256"] == digest
    assert ran.json["profile"] == {"user": "ana"}
    assert ran.json["report"] == {"rows": 3}
    written = [path.read_bytes() for path in project.root.glob(".cogcli/**/*") if path.is_file()]
    for secret in ("cookie-5e55", "s3cr3t-b2f1", tokens[-1]):
        assert secret not in ran.out + ran.err
        assert not any(secret.encode() in data for data in written)
