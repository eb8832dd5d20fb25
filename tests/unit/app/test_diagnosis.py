"""What `doctor` says of services and specs: everything that is missing, and what to paste."""

from __future__ import annotations

from pathlib import Path

import pytest

from cogcli.app.checks.doctor import diagnose
from cogcli.app.checks.doctor_services import DoctorCheck
from cogcli.app.settings import Settings

pytestmark = pytest.mark.sampled(6)

CAPABILITY = """\
id: note.item.read
version: "1.0.0"
description: Read a note.
inputs: {id: {type: string, required: true}}
outputs: {text: {type: string, required: true}}
properties: {side_effects: false}
"""
BINDING = """\
id: api_read
capability: note.item.read
service: api
protocol: openapi
operation: notes/{id}
request: {id: input.id}
response: {text: response.text}
metadata: {method: GET, headers: {X-Own: "${OWN_KEY}"}}
"""
API = """\
id: api
kind: openapi
base_url: https://notes.example
auth_ref: NOTES_TOKEN
metadata: {headers: {X-Key: "${NOTES_KEY}"}}
"""
PLACE = "bindings/local/note.item.read/api.yaml"


def told(
    root: Path, files: dict[str, str], *, trusted: bool = True
) -> dict[tuple[str, str], DoctorCheck]:
    for name, text in {
        "cogcli.toml": "",
        "capabilities/note.item.read.yaml": CAPABILITY,
        **files,
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    environ = {
        "HOME": str(root),
        "PATH": "/usr/bin:/bin",
        "COGCLI_TRUST_PROJECT": "1" if trusted else "0",
    }
    checks = diagnose(Settings({}, environ, base=str(root))).checks
    return {(check.group, check.name): check for check in checks}


@pytest.mark.sampled(12)
def test_all_variables_of_a_service_and_its_bindings_are_one_line_with_all_to_paste(
    tmp_path: Path,
) -> None:
    check = told(tmp_path, {"services/local/api.yaml": API, PLACE: BINDING})["services", "api"]
    assert (
        check.message
        == "environment variables `OWN_KEY`, `NOTES_TOKEN` and `NOTES_KEY` are not set"
    )
    assert check.details == (
        f"{PLACE}:8:42",
        "services/local/api.yaml:4:11",
        "services/local/api.yaml:5:29",
    )
    assert check.fix.split("\n") == [
        f"export {name}=..." for name in ("OWN_KEY", "NOTES_TOKEN", "NOTES_KEY")
    ]


@pytest.mark.sampled(12)
def test_a_program_is_looked_for_only_where_it_could_be_started(tmp_path: Path) -> None:
    service = {"services/local/clock.yaml": "id: clock\nkind: mcp\ncommand: ./clock.sh --utc\n"}
    check = told(tmp_path, service)["services", "clock"]
    assert check.message == "program `./clock.sh --utc` is not found"
    assert check.fix == "command names one program: write command: ./clock.sh, and the rest as args"
    check = told(tmp_path, service, trusted=False)["services", "clock"]
    assert check.message == "its layer is not trusted, so `./clock.sh --utc` is not started"
    assert check.fix == "cogcli config trust"


@pytest.mark.sampled(24)
def test_a_spec_with_errors_is_told_with_what_helps_and_many_with_where_to_look(
    tmp_path: Path,
) -> None:
    files = {"services/local/api.yaml": API, PLACE: BINDING.replace("service: api", "service: apo")}
    check = told(tmp_path, files)["registry", "bindings"]
    assert check.details == (
        "binding `api_read`: unknown service `apo`",
        f"{PLACE}:3:10",
        "help: did you mean `api`?",
    )
    assert check.fix == ""
    for number in range(7):
        files[f"{PLACE}.{number}.yaml"] = files[PLACE].replace("api_read", f"api_read_{number}")
    check = told(tmp_path, files)["registry", "bindings"]
    assert (check.details[-1], check.fix) == ("and 3 more", "cogcli validate")


def test_a_broken_document_is_told_at_its_line_among_services(tmp_path: Path) -> None:
    files = {
        "services/local/api.yaml": f"{API}spec_ref: docs/api.yaml\n",
        "docs/api.yaml": "openapi: 3.1.0\npaths: 1\n",
    }
    check = told(tmp_path, files)["registry", "services"]
    assert (check.status, check.details[1]) == ("warning", "docs/api.yaml:2:8")
